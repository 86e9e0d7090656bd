"""Chapter 5: attention."""

from .arguments import count, finite, quantity


def score_matrix(B, n_h, S, b):
    """M_attention = B x n_h x S^2 x b: bytes of one materialized attention score matrix of one layer.

    B sequences, n_h heads, S tokens, b bytes per element. One copy of QK^T: a kernel may keep none
    (FlashAttention) or several (scores, softmax, dropout). Source: whitepaper 5.1.
    """
    return finite("M_attention", count("B", B) * count("n_h", n_h) * count("S", S) ** 2 * quantity("b", b))
