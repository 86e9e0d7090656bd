"""Chapter 4: the loss. The one place where memory grows with the vocabulary: n V elements, n = B S tokens.

Policies: fp32 is what transformers does, logits upcast to FP32 and a plain cross entropy. chunked computes the logits of
n / chunks tokens at a time and recomputes them in backward. fused never writes them out (Cut Cross-Entropy). In
vocabulary_parallel each of tp ranks has its share of the vocabulary (Megatron). All results are bytes on one rank.
"""

from .arguments import ArgumentError, count, finite, quantity

POLICIES = ("fp32", "chunked", "fused", "vocabulary_parallel")

# The sum of the weights of all labels, one FP32 scalar, that a cross entropy keeps beside its log-probabilities.
TOTAL_WEIGHT = 4


def saved(B, S, V, policy, b, chunks=8, tp=1):
    """M_kept = 4 n V (fp32), 4 n V / t (vocabulary_parallel), 4 n (fused), 0 (chunked): bytes that autograd keeps of the loss.

    The FP32 log-probabilities, or one log-sum-exp per token. n = B S; V vocab_size, as padded; b bytes of a logit; t = tp.
    Source: saved_tensors_hooks, torch 2.13.0; Korthikanti et al. 2022, section 4.3; Wijmans et al. 2024 (fused).
    """
    n, V, _, _, tp = _sizes(B, S, V, policy, b, chunks, tp)
    kept = {"fp32": 4 * n * V, "chunked": 0, "fused": 4 * n, "vocabulary_parallel": 4 * n * -(-V // tp)}
    return finite("M_kept", kept[policy])


def logits(B, S, V, policy, b, chunks=8, tp=1):
    """M_logits = b n V (fp32), else 0: bytes of logits that the output object holds as long as it lives.

    Autograd does not need them; del output before backward frees them. The other policies give none out.
    Source: a real allocator against saved_tensors_hooks, torch 2.13.0.
    """
    n, V, b, _, _ = _sizes(B, S, V, policy, b, chunks, tp)
    return finite("M_logits", b * n * V if policy == "fp32" else 0)


def backward(B, S, V, policy, b, chunks=8, tp=1):
    """M_more = 8 n V (fp32), (b + 12) ceil(n / chunks) V (chunked), b n V / t (vocabulary_parallel), 0 (fused): at the peak.

    What the loss's backward adds to saved() and logits(): with fp32 the FP32 gradients of log-probabilities and of logits.
    A chunk makes its logits, log-probabilities and both gradients and frees them. Megatron turns its kept tensor into the
    gradient in place and casts it. Source: MemTracker, torch 2.13.0 (fp32); by reading, an estimate (the others).
    """
    n, V, b, chunks, tp = _sizes(B, S, V, policy, b, chunks, tp)
    more = {"fp32": 8 * n * V, "chunked": (b + 12) * -(-n // chunks) * V, "fused": 0, "vocabulary_parallel": b * n * -(-V // tp)}
    return finite("M_more", more[policy])


def peak(M_kept, M_logits, M_more):
    """M_peak,loss = M_kept + M_logits + M_more: bytes of the loss at its peak, 14 n V for BF16 logits under fp32."""
    return finite("M_peak,loss", M_kept + M_logits + M_more)


def _sizes(B, S, V, policy, b, chunks, tp):
    if policy not in POLICIES:
        raise ArgumentError("policy", policy, "must be one of %s" % ", ".join(POLICIES))
    return count("B", B) * count("S", S), count("V", V), quantity("b", b), count("chunks", chunks), count("tp", tp)
