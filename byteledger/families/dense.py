"""Families with a gated MLP and no experts, or few, whose layers the common decoder does not cover."""

from .. import parameters as p
from ..architecture import Architecture, Layer, Mixer, Mlp
from .decoder import mixer, norm, outside, sizes, stack, two_norms


def chatglm(read):
    """ChatGLM2, ChatGLM3, GLM-4-9B-chat: multi_query_attention with multi_query_group_num KV heads of kv_channels, padded_vocab_size.

    Source: modeling_chatglm.py of zai-org/chatglm3-6b.
    """
    if read.has("inner_hidden_size") or read.has("position_encoding_2d"):
        read.refuse("inner_hidden_size" if read.has("inner_hidden_size") else "position_encoding_2d", "chatglm_first")
    V = read.size("padded_vocab_size" if read.has("padded_vocab_size") else "vocab_size")
    D, L = read.size("hidden_size"), read.size("num_hidden_layers", most=10_000)
    a = read.size("num_attention_heads")
    d = read.head_dim(D, a)
    k = read.size("num_key_value_heads") if read.flag("multi_query_attention", absent=False) else a
    f, tied = read.size("intermediate_size"), read.tied(False)
    bias = read.flag("add_bias_linear", absent=False)
    qkv_bias = read.flag("add_qkv_bias", absent=False) or bias
    kind = "rms" if read.flag("rmsnorm", absent=True) else "layer"
    tensors = p.grouped_query_attention(D, a, k, d, qkv_bias, bias, fused=True) + p.gated_mlp(D, f, bias, fused=True)
    tensors += norm(kind, "norm_1", D) + norm(kind, "norm_2", D)
    layer = Layer(mixer(a, d, k), Mlp("gated", intermediate_size=f), tensors)
    final = kind if read.flag("post_layer_norm", absent=True) else "none"
    return Architecture(read.model_type, D, V, tied, outside(V, D, tied, final, bias), [(layer, L)])


def qwen(read):
    """Qwen (the first): one fused QKV matrix with bias, RMSNorm, a gated MLP of intermediate_size / 2.

    Source: modeling_qwen.py of Qwen/Qwen-7B: ff_dim_in = config.intermediate_size // 2.
    """
    V, D, L = sizes(read)
    a = read.size("num_attention_heads")
    d = read.head_dim(D, a)
    f, tied = read.size("intermediate_size"), read.tied(False)
    read.divided("intermediate_size", f, "2", 2)
    read.must("no_bias", True)
    tensors = p.grouped_query_attention(D, a, a, d, True, False, fused=True) + p.gated_mlp(D, f // 2) + two_norms(D)
    layer = Layer(mixer(a, d), Mlp("gated", intermediate_size=f // 2), tensors)
    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), [(layer, L)])


def mllama(read):
    """Llama 3.2 Vision, text part: Llama, and cross-attention to the image in cross_attention_layers; 8 more embeddings.

    A cross-attention layer caches the image's keys and values, as many as there are image tokens, and none of the text's.
    Source: transformers 5.24.0, modeling_mllama.py.
    """
    V, D, L = sizes(read)
    a = read.size("num_attention_heads")
    k, d = read.size("num_key_value_heads", absent=a), read.divided("hidden_size", D, "num_attention_heads", a)
    f, tied = read.size("intermediate_size"), read.tied(False)
    if not read.has("cross_attention_layers"):
        read.refuse("cross_attention_layers", "missing")
    crossing = read.indices("cross_attention_layers", L)
    read.note("cross_attention", key=read.prefix + "cross_attention_layers", k=len(crossing))

    def layer_of(i):
        cross = i in crossing

        def make():
            tensors = p.grouped_query_attention(D, a, k, d) + two_norms(D)
            if cross:
                tensors += p.query_key_norm(d, d) + [p.Tensor("attention_gate", (1,), "other"), p.Tensor("mlp_gate", (1,), "other")]
            return Layer(Mixer("none") if cross else mixer(a, d, k), Mlp("gated", intermediate_size=f), tensors + p.gated_mlp(D, f))

        return cross, make

    rest = p.embedding(V + 8, D) + p.rms_norm("norm", D) + p.output_head(V, D)
    if tied:
        read.refuse("tie_word_embeddings", "not_modelled")
    return Architecture(read.model_type, D, V, tied, rest, stack(L, layer_of))


def decilm(read):
    """DeciLM, Llama-Nemotron: Llama with KV heads and MLP of each layer its own; a layer may lack either.

    block_configs: a layer's KV heads are a / n_heads_in_group, its MLP is 2 ffn_mult D / 3 rounded up to a multiple of
    256; num_key_value_heads_per_layer: the KV heads alone. Source: modeling_decilm.py of
    nvidia/Llama-3_3-Nemotron-Super-49B-v1, as vLLM and SGLang carry it.
    """
    V, D, L = sizes(read)
    a = read.size("num_attention_heads")
    d, tied = read.head_dim(D, a), read.tied(False)
    bias, mlp_bias = read.flag("attention_bias", absent=False), read.flag("mlp_bias", absent=False)
    blocks = read.objects("block_configs", L)
    if blocks is None:
        f, heads = read.size("intermediate_size"), read.sizes("num_key_value_heads_per_layer", L)
        pairs = [(k, f) for k in heads or [read.size("num_key_value_heads")] * L]
    else:
        pairs = [(_kept_heads(block, a), _kept_width(block, D)) for block in blocks]

    def layer_of(i):
        k, f = pairs[i]

        def make():
            tensors = p.grouped_query_attention(D, a, k, d, bias, bias) + p.rms_norm("input_layernorm", D) if k else []
            tensors = tensors + (p.gated_mlp(D, f, mlp_bias) + p.rms_norm("post_attention_layernorm", D) if f else [])
            return Layer(mixer(a, d, k) if k else Mixer("none"), Mlp("gated", intermediate_size=f) if f else Mlp("none"), tensors)

        return (k, f), make

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(L, layer_of))


def _kept_heads(block, a):
    """KV heads of a block, 0 for one without attention."""
    attention = block.inside("attention")
    if attention.flag("no_op", absent=False):
        return 0
    for key in ("replace_with_linear", "sparsify", "window_length", "num_sink_tokens", "unshifted_sink"):
        attention.absent_or_false(key)
    group = attention.size("n_heads_in_group")
    return attention.divided("n_heads_in_group", a, "n_heads_in_group", group)


def _kept_width(block, D):
    """Width of a block's MLP, 0 for one without."""
    ffn = block.inside("ffn")
    if ffn.flag("no_op", absent=False):
        return 0
    for key in ("replace_with_linear", "sparsify"):
        ffn.absent_or_false(key)
    return -(-int(2 * ffn.ratio("ffn_mult") * D / 3) // 256) * 256


def openelm(read):
    """OpenELM: query heads, KV heads and MLP of each layer its own, query and key norms, one fused QKV matrix; no head of its own.

    An MLP is ffn_multipliers D, to the nearest multiple of ffn_dim_divisor. Source: modeling_openelm.py of apple/OpenELM-270M.
    """
    V, D, L = read.size("vocab_size"), read.size("model_dim"), read.size("num_transformer_layers", most=10_000)
    d = read.size("head_dim")
    query, key = read.sizes("num_query_heads", L), read.sizes("num_kv_heads", L)
    if query is None or key is None:
        read.refuse("num_query_heads" if query is None else "num_kv_heads", "missing")
    multipliers, unit = read.numbers("ffn_multipliers", L), read.size("ffn_dim_divisor", absent=256, quiet=True)
    if multipliers is None:
        read.refuse("ffn_multipliers", "missing")
    read.must("ffn_with_glu", True)
    norms, tied = read.flag("normalize_qk_projections", absent=True), read.flag("share_input_output_layers", absent=True)

    def layer_of(i):
        a, k = query[i], key[i]
        f = max(unit, int(multipliers[i] * D + unit / 2) // unit * unit)
        f += unit if f < 0.9 * multipliers[i] * D else 0

        def make():
            tensors = p.grouped_query_attention(D, a, k, d, fused=True) + (p.query_key_norm(d, d) if norms else [])
            return Layer(mixer(a, d, k), Mlp("gated", intermediate_size=f), tensors + p.gated_mlp(D, f, fused=True) + two_norms(D))

        return (a, k, f), make

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(L, layer_of))


def gemma3n(read):
    """Gemma 3n, text part: an embedding for every layer, AltUp's streams, LAuReL, and last layers that use earlier keys and values.

    The layers' embedding is vocab_size_per_layer_input x L hidden_size_per_layer_input. Source: modeling_gemma3n.py.
    """
    V, D, L = sizes(read)
    a = read.size("num_attention_heads")
    k, d = read.size("num_key_value_heads", absent=a), read.head_dim(D, a)
    tied, bias = read.tied(True), read.flag("attention_bias", absent=False)
    widths = read.sizes("intermediate_size", L) or [read.size("intermediate_size")] * L
    window = _gemma_windows(read, L, 5)
    shared = read.size("num_kv_shared_layers", absent=15, least=0, most=L)
    P, E = read.size("vocab_size_per_layer_input", absent=262144), read.size("hidden_size_per_layer_input", absent=256)
    streams, rank = read.size("altup_num_inputs", absent=4, quiet=True, most=64), read.size("laurel_rank", absent=64, quiet=True)
    read.ignored("altup_correct_scale")  # says whether the scale is used, not whether it is there

    def layer_of(i):
        f, reuses = widths[i], i >= L - shared

        def make():
            tensors = _attention_or_query(D, a, k, d, bias, reuses) + p.gated_mlp(D, f) + _gemma_norms(D) + _layer_input(D, E)
            tensors += [p.Tensor("altup.correct_output_scale", (D,), "other")]
            tensors += p.linear("altup.correction_coefs", streams, streams, "other")
            tensors += p.linear("altup.prediction_coefs", streams, streams**2, "other")
            tensors += p.linear("altup.modality_router", D, streams, "other") + p.rms_norm("altup.router_norm", D)
            tensors += p.linear("laurel.linear_left", D, rank, "other") + p.linear("laurel.linear_right", rank, D, "other")
            tensors += p.rms_norm("laurel.norm", D)
            return Layer(mixer(a, d, k, window[i], shares_cache=reuses), Mlp("gated", intermediate_size=f), tensors)

        return (f, reuses, window[i]), make

    rest = outside(V, D, tied, before=_input_of_every_layer(D, L, P, E))
    for number in range(streams - 1):
        rest += p.linear("altup_projection_%d" % number, D, D, "other") + p.linear("altup_unembed_projection_%d" % number, D, D, "other")
    return Architecture(read.model_type, D, V, tied, rest, stack(L, layer_of))


def gemma4(read):
    """Gemma 4, text part: full layers with heads of global_head_dim, an embedding for every layer, shared keys and values, experts.

    attention_k_eq_v: full layers have no value matrix, and num_global_key_value_heads KV heads. num_kv_shared_layers: the
    last layers use an earlier layer's cache; use_double_wide_mlp doubles their MLP. Experts work beside the MLP, not in its
    place. Source: transformers 5.24.0, modeling_gemma4.py.
    """
    V, D, L = sizes(read)
    a = read.size("num_attention_heads")
    k, d = read.size("num_key_value_heads", absent=a), read.head_dim(D, a)
    tied, bias, f = read.tied(True), read.flag("attention_bias", absent=False), read.size("intermediate_size")
    window = _gemma_windows(read, L, 6)
    if window[-1]:
        window[-1] = None  # transformers makes the last layer a full one
    read.ignored("use_bidirectional_attention")
    if read.config.get("use_bidirectional_attention") == "all":
        read.refuse("use_bidirectional_attention", "not_modelled")
    same = read.flag("attention_k_eq_v", absent=False)
    d_full = read.size("global_head_dim", absent=512)
    k_full = read.optional_size("num_global_key_value_heads", quiet=True) if same else None
    shared = read.size("num_kv_shared_layers", absent=0, least=0, most=L)
    wide = read.flag("use_double_wide_mlp", absent=False)
    E_layer = read.size("hidden_size_per_layer_input", absent=256, least=0)
    P = read.size("vocab_size_per_layer_input", absent=262144) if E_layer else 0
    if read.flag("enable_moe_block", absent=False):
        E, f_e = read.size("num_experts"), read.size("moe_intermediate_size")
        K = read.size("top_k_experts", most=E)
    else:
        E = None
        read.ignored("num_experts", "moe_intermediate_size", "top_k_experts")

    def layer_of(i):
        full, reuses = window[i] is None, i >= L - shared
        width = 2 * f if wide and reuses else f

        def make():
            kv, size = (k_full or k, d_full) if full else (k, d)
            tensors = _attention_or_query(D, a, kv, size, bias, reuses, no_value=same and full) + _gemma_norms(D) + p.gated_mlp(D, width)
            tensors += _layer_input(D, E_layer) if E_layer else []
            mlp = Mlp("gated", intermediate_size=width)
            if E:
                tensors += p.router(E, D) + [p.Tensor("router.scale", (D,), "router"), p.Tensor("router.per_expert_scale", (E,), "router")]
                tensors += p.experts(E, D, f_e) + p.rms_norm("norm_5", D) + p.rms_norm("norm_6", D) + p.rms_norm("norm_7", D)
                mlp = Mlp("experts", intermediate_size=f_e, num_experts=E, num_experts_per_tok=K, shared_intermediate_size=width)
            return Layer(mixer(a, size, kv, window[i], shares_cache=reuses), mlp, tensors)

        return (full, reuses, width), make

    rest = outside(V, D, tied, before=_input_of_every_layer(D, L, P, E_layer) if E_layer else [])
    return Architecture(read.model_type, D, V, tied, rest, stack(L, layer_of))


def _gemma_windows(read, L, period):
    types = read.layer_types(L)
    size = read.size("sliding_window", absent=512)
    return [size if (kind == "sliding_attention" if types else (i + 1) % period) else None for i, kind in enumerate(types or [None] * L)]


def _attention_or_query(D, a, k, d, bias, reuses, no_value=False):
    """Attention with query and key norms; a layer that uses another's keys and values has neither of its own."""
    a, k = p.heads(a, k)
    tensors = p.linear("q_proj", D, a * d, "attention", bias) + p.rms_norm("q_norm", d)
    if not reuses:
        tensors += p.linear("k_proj", D, k * d, "attention", bias) + p.rms_norm("k_norm", d)
        tensors += [] if no_value else p.linear("v_proj", D, k * d, "attention", bias)
    return tensors + p.linear("o_proj", a * d, D, "attention", bias)


def _gemma_norms(D):
    return two_norms(D) + p.rms_norm("pre_feedforward_layernorm", D) + p.rms_norm("post_feedforward_layernorm", D)


def _layer_input(D, E):
    return p.linear("per_layer_input_gate", D, E, "other") + p.linear("per_layer_projection", E, D, "other") + p.rms_norm("per_layer_norm", D)


def _input_of_every_layer(D, L, P, E):
    table = [p.Tensor("embed_tokens_per_layer.weight", (P, L * E), "embedding")]
    return table + p.linear("per_layer_model_projection", D, L * E, "other") + p.rms_norm("per_layer_projection_norm", E)
