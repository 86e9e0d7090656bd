"""What a model keeps of the tokens it has read, so as not to read them again: the KV cache and recurrent state.

Bytes of the whole model on one device, unless a name says per token or per layer; divide by the tensor-parallel degree only
as far as there are KV heads to divide. b: bytes per element of the cache, which need not be that of the weights.
Measured beside: transformers 5.24.0, DynamicCache (tests/test_kv_cache.py).
"""

from .arguments import ArgumentError, count, finite, positive, quantity

# Bytes per element of a recurrent state where the configuration does not say: transformers 5.24.0 keeps it in FP32.
B_STATE = 4


def grouped_query(k, d, d_v, b, d_i=0):
    """m = (k (d + d_v) + d_i) b, with d_v = d and d_i = 0: 2 k d b: bytes per token of one layer, keys and values of k KV heads.

    d_i the key of a sparse indexer where there is one. Neither the number of attention heads nor hidden_size / heads comes in: d is head_dim. Source: Shazeer 2019;
    Ainslie et al. 2023.
    """
    return (count("k", k) * (count("d", d) + count("d_v", d_v)) + quantity("d_i", d_i)) * quantity("b", b)


def latent(r, d_r, b, d_i=0):
    """m = (r + d_r + d_i) b: bytes per token of one layer of latent attention: one latent and one RoPE key, no factor 2.

    r kv_lora_rank, d_r qk_rope_head_dim, d_i the key of a sparse indexer where there is one (DeepSeek V3.2).
    Source: DeepSeek-AI 2024 (arXiv 2405.04434), section 2.1.
    """
    return (count("r", r) + count("d_r", d_r) + quantity("d_i", d_i)) * quantity("b", b)


def recurrent(state_elements, conv_elements, b, b_state):
    """m = n_state b_state + n_conv b_conv, b_conv = max(b, 2): bytes per sequence of one recurrent layer, whatever its length.

    The state's own format is b_state; the convolution's last inputs stay in the format of the activations, 16 bit or
    wider even where a KV cache would be in 8. Source: transformers 5.24.0, LinearAttentionLayer.
    """
    return count("n_state", state_elements) * quantity("b_state", b_state) + count("n_conv", conv_elements) * max(quantity("b", b), 2)


def tokens_kept(window, S):
    """n = min(S, window - 1), or S without a window: tokens that a layer keeps between two steps, after S tokens.

    During a step the current token comes on top: min(S, window). Source: transformers 5.24.0,
    DynamicSlidingWindowLayer, measured.
    """
    S = count("S", S)
    return S if window is None else min(S, count("window", window) - 1)


def layer_per_token(layer, b):
    """m = grouped_query or latent, 0 else: bytes per token of one layer; a recurrent one keeps nothing that grows."""
    mixer = layer.mixer
    if mixer.kind in ("grouped_query", "hybrid") and not getattr(mixer, "shares_cache", False):
        return grouped_query(mixer.num_key_value_heads, mixer.head_dim, mixer.v_head_dim, b, getattr(mixer, "index_head_dim", 0))
    if mixer.kind == "latent":
        return latent(mixer.kv_lora_rank, mixer.qk_rope_head_dim, b, mixer.index_head_dim)
    return 0


def _refuse(architecture):
    """Raises ArgumentError for what has no cache, or a cache without a rule here."""
    if not architecture.causal:
        raise ArgumentError("model_type", architecture.model_type, "an encoder keeps no KV cache")
    if any(layer.mixer.kind == "compressed" for layer, _ in architecture.layers):
        raise ArgumentError("model_type", architecture.model_type, "its compressed cache is not modelled")


def bytes_per_token(architecture, b):
    """M_token = sum over layers of m: bytes that one more token of one sequence adds, before any window is full."""
    _refuse(architecture)
    return finite("M_token", sum(times * layer_per_token(layer, b) for layer, times in architecture.layers))


def steady_bytes_per_token(architecture, b):
    """M_steady = sum over layers without a window of m: bytes that one more token adds once every window is full."""
    _refuse(architecture)
    return finite("M_steady", sum(times * layer_per_token(layer, b) for layer, times in architecture.layers if not _window(layer)))


def _window(layer):
    return getattr(layer.mixer, "window", None)


def multi_head(architecture, b):
    """M_multi_head = sum over layers of a (d + d_v) b: bytes per token if every attention head kept keys and values of its own.

    For latent attention d is qk_nope + qk_rope: what the cache takes once the latent is expanded for every head. Of a
    model with windows, before any is full; of a recurrent layer, nothing.
    """
    _refuse(architecture)
    expanded = 0
    for layer, times in architecture.layers:
        mixer = layer.mixer
        if mixer.kind in ("grouped_query", "hybrid"):
            expanded += times * grouped_query(mixer.num_attention_heads, mixer.head_dim, mixer.v_head_dim, b)
        elif mixer.kind == "latent":
            expanded += times * grouped_query(mixer.num_attention_heads, mixer.qk_nope_head_dim + mixer.qk_rope_head_dim, mixer.v_head_dim, b)
    return finite("M_multi_head", expanded)


def saving(M_multi_head, M_token):
    """r = M_multi_head / M_token: how many times smaller the cache is than one with keys and values for every head."""
    return quantity("M_multi_head", M_multi_head) / positive("M_token", M_token)


def fixed_bytes_per_sequence(architecture, b, b_state=B_STATE):
    """M_fixed = sum over recurrent layers of m: bytes that a sequence takes whatever its length; 0 for attention alone."""
    _refuse(architecture)
    fixed = 0
    for layer, times in architecture.layers:
        if layer.mixer.kind in ("recurrent", "hybrid"):
            fixed += times * recurrent(layer.mixer.state_elements, layer.mixer.conv_elements, b, b_state)
    return finite("M_fixed", fixed)


def total(architecture, S, B, b, b_state=B_STATE):
    """M_kv = B (M_fixed + sum over layers of m n): bytes of B sequences of S tokens each, n the tokens that a layer keeps.

    The ideal: a layer with a window keeps no token that it will not look at again.
    """
    kept = sum(times * layer_per_token(layer, b) * tokens_kept(_window(layer), S) for layer, times in architecture.layers)
    return finite("M_kv", count("B", B) * (fixed_bytes_per_sequence(architecture, b, b_state) + kept))


def reserved(architecture, S, B, b, b_state=B_STATE, block=1):
    """M_reserved = B (M_fixed + M_token block ceil(S / block)): what an engine holds that pages every layer whole.

    It gives no page back that has left a window, and rounds a sequence up to blocks of `block` tokens.
    Source: hf-mem issues 60 and 70, on vLLM.
    """
    S, block = count("S", S), count("block", block)
    paged = -(-S // block) * block
    return finite("M_reserved", count("B", B) * (fixed_bytes_per_sequence(architecture, b, b_state) + bytes_per_token(architecture, b) * paged))


def largest_batch(architecture, budget, S, b, b_state=B_STATE):
    """B = floor(budget / M_kv(S, 1)): sequences of S tokens that fit in a budget of bytes, 0 if not one does."""
    return int(quantity("budget", budget) // total(architecture, S, 1, b, b_state))


def largest_context(architecture, budget, B, b, b_state=B_STATE):
    """S = max {S : M_kv(S, B) <= budget}: tokens per sequence that fit, 0 if not one does, None if any number does.

    None: nothing grows once every window is full (recurrent or windowed layers alone). M_kv never falls as S grows, so
    the largest S is found by halving.
    """
    quantity("budget", budget)
    if total(architecture, 1, B, b, b_state) > budget:
        return 0
    growing = steady_bytes_per_token(architecture, b) * B
    windows = [_window(layer) for layer, _ in architecture.layers if _window(layer)]
    if not growing:
        if total(architecture, max(windows + [1]), B, b, b_state) <= budget:
            return None
        low, high = 1, max(windows)
    else:
        low, high = 1, int(budget // growing) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if total(architecture, middle, B, b, b_state) <= budget:
            low = middle
        else:
            high = middle
    return low
