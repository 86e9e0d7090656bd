import pytest

from byteledger import activations, units
from byteledger.arguments import ArgumentError


def test_zero_activations_of_gpt2():
    """Rajbhandari et al. 2019, section 3.2: GPT-2 1.5B with sequence 1,024 and batch 32 needs about 60 GB of activations.

    Their count is 12 x hidden x batch x sequence x layers elements of 2 bytes: 12 hidden-state tensors in each layer.
    """
    one = activations.hidden_states(B=32, S=1024, D=1600, b=2)
    assert 12 * 48 * one == pytest.approx(units.from_gb(60), rel=0.01)


def test_hidden_states_are_linear():
    """Whitepaper 4.1: B x S x D."""
    one = activations.hidden_states(1, 1024, 4096, 2)
    assert activations.hidden_states(3, 1024, 4096, 2) == 3 * one
    assert activations.hidden_states(1, 4096, 4096, 2) == 4 * one
    assert activations.hidden_states_elements(2, 3, 5) == 30


@pytest.mark.parametrize("argument", ["B", "S", "D"])
@pytest.mark.parametrize("bad", [0, -1, 1.5, float("nan"), True, "8"])
def test_bad_shapes_are_refused_by_name(argument, bad):
    with pytest.raises(ArgumentError) as error:
        activations.hidden_states(**{**dict(B=1, S=8, D=8, b=2), argument: bad})
    assert error.value.name == argument and repr(bad) in str(error.value)
