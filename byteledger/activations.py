"""Chapter 4: activations. Shapes and orders of magnitude here; no full formula for any one model."""

from .arguments import count, finite, quantity


def hidden_states_elements(B, S, D):
    """n = B x S x D: elements of one hidden-state tensor.

    B sequences in the micro-batch, S tokens each, D hidden size. Source: whitepaper 4.1.
    """
    return count("B", B) * count("S", S) * count("D", D)


def hidden_states(B, S, D, b):
    """M_hidden = B x S x D x b: bytes of one hidden-state tensor of shape B x S x D, b bytes per element.

    Per tensor: a layer keeps several of them for backward. Source: whitepaper 4.1.
    """
    return finite("M_hidden", hidden_states_elements(B, S, D) * quantity("b", b))
