import pytest

from byteledger import activations, attention
from byteledger.arguments import ArgumentError


@pytest.mark.parametrize("n_h, D, published", [(96, 12288, 80), (128, 20480, 64)])
def test_score_matrix_of_gpt3(n_h, D, published):
    """Korthikanti et al. 2022: 5as/h is 80 for GPT-3 175B and 64 for MT-NLG 530B, at s = 2,048.

    5as^2b over sbh: five bytes for each score against one byte for each hidden element.
    """
    scores = attention.score_matrix(B=1, n_h=n_h, S=2048, b=5)
    assert scores / activations.hidden_states(B=1, S=2048, D=D, b=1) == published


def test_score_matrix_is_quadratic():
    """Whitepaper 5.1: B x n_h x S^2 x b, linear in all but S."""
    one = attention.score_matrix(1, 32, 1024, 2)
    assert attention.score_matrix(1, 32, 8192, 2) == 64 * one
    assert attention.score_matrix(2, 32, 1024, 2) == attention.score_matrix(1, 64, 1024, 2) == 2 * one


@pytest.mark.parametrize("argument", ["B", "n_h", "S"])
@pytest.mark.parametrize("bad", [0, -1, 2.5, float("inf"), False, None])
def test_bad_shapes_are_refused_by_name(argument, bad):
    with pytest.raises(ArgumentError) as error:
        attention.score_matrix(**{**dict(B=1, n_h=8, S=8, b=2), argument: bad})
    assert error.value.name == argument and repr(bad) in str(error.value)
