import pytest

from byteledger import distributed, estimation, ledger, units
from byteledger.arguments import ArgumentError

TERMS = ["M_rank_lower", "M_activation", "M_comm", "M_temp", "M_fragmentation", "M_safety"]


def test_minimal_model():
    """Whitepaper 7.1: 70B on 8 ranks, 140 GB of state each, plus the five terms that the caller gives."""
    lower = distributed.rank_lower(ledger.persistent(70e9, 2, 2, 4, 4, 4), 8)
    assert lower == units.from_gb(140)
    assert estimation.peak_rank(lower, 10, 20, 30, 40, 50) == lower + 150


@pytest.mark.parametrize("term", TERMS)
def test_every_term_counts_once(term):
    given = dict.fromkeys(TERMS, 0)
    assert estimation.peak_rank(**{**given, term: 7}) == 7


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("bad", [-1, float("nan"), None, "10 GB", True])
def test_an_unknown_term_is_no_zero(term, bad):
    """A term that is not known must be asked for: nothing stands in for it."""
    with pytest.raises(ArgumentError) as error:
        estimation.peak_rank(**{**dict.fromkeys(TERMS, 0), term: bad})
    assert error.value.name == term
    with pytest.raises(TypeError):
        estimation.peak_rank(**{key: 0 for key in TERMS if key != term})
