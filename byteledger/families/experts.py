"""Mixtures of experts whose layers the common decoder does not cover."""

from .. import parameters as p
from ..architecture import Architecture, Layer, Mlp
from .decoder import (
    Experts, attention_heads, chunks, first_dense, gated, mixer, mlp_types, outside, shared_experts, shared_width, sizes, stack, two_norms,
)  # fmt: skip


def llama4(read):
    """Llama 4, text part: interleave_moe_layer_step; experts of intermediate_size with one shared, dense layers of intermediate_size_mlp."""
    V, D, L = sizes(read)
    a, k, d = attention_heads(read, D)
    tied, bias = read.tied(False), read.flag("attention_bias", absent=False)
    read.ignored("use_qk_norm")  # a norm without weights
    step, listed = read.size("interleave_moe_layer_step", absent=1, quiet=True), read.indices("moe_layers", L)
    sparse = [i in listed for i in range(L)] if read.has("moe_layers") else [(i + 1) % step == 0 for i in range(L)]
    experts = Experts("num_local_experts", "intermediate_size", shared=lambda read, f: f)
    f = None if all(sparse) else read.size("intermediate_size_mlp")
    window = chunks(read, L)

    def layer_of(i):
        def make():
            mlp, tensors = experts.block(read, D) if sparse[i] else gated(read, D, f)
            return Layer(mixer(a, d, k, window[i]), mlp, p.grouped_query_attention(D, a, k, d, bias, bias) + tensors + two_norms(D))

        return (window[i], sparse[i]), make

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(L, layer_of))


def mimo_v2_flash(read):
    """MiMo-V2-Flash: windowed layers with sinks and KV heads of their own, value heads narrower than keys, experts from layer 1 on.

    Source: transformers 5.24.0, modeling_mimo_v2_flash.py; hybrid_layer_pattern and swa_* of the published configuration.
    """
    V, D, L = sizes(read)
    a, k = read.size("num_attention_heads"), read.size("num_key_value_heads")
    d, v = read.size("head_dim"), read.size("v_head_dim")
    tied, bias = read.tied(False), read.flag("attention_bias", absent=False)
    types, marks = read.layer_types(L), read.numbers("hybrid_layer_pattern", L)
    by_default = [i != 0 and (i + 1) % 6 != 0 for i in range(L)]
    slides = [t == "sliding_attention" for t in types] if types else [bool(m) for m in marks] if marks else by_default
    # sliding_window_size counts the tokens before the query, sliding_window the query too.
    window = read.size("sliding_window_size") + 1 if read.has("sliding_window_size") else read.size("sliding_window", absent=129)
    k_slide = read.size("swa_num_key_value_heads", absent=2 * k)
    read.fixed("swa_num_attention_heads", a), read.fixed("swa_head_dim", d), read.fixed("swa_v_head_dim", v)
    if read.flag("add_full_attention_sink_bias", absent=False) or not read.flag("add_swa_attention_sink_bias", absent=True):
        read.refuse("add_full_attention_sink_bias", "not_modelled")
    experts = Experts("n_routed_experts", shared=shared_experts("n_shared_experts"), where=first_dense, buffer=True)
    sparse = experts.layers(read, L)
    f = None if all(sparse) else read.size("intermediate_size")

    def layer_of(i):
        def make():
            kv = k_slide if slides[i] else k
            p.heads(a, kv)
            tensors = p.linear("q_proj", D, a * d, "attention", bias) + p.linear("k_proj", D, kv * d, "attention", bias)
            tensors += p.linear("v_proj", D, kv * v, "attention", bias) + p.linear("o_proj", a * v, D, "attention")
            if slides[i]:
                tensors += [p.Tensor("sinks", (a,), "other")]
            mlp, more = experts.block(read, D) if sparse[i] else gated(read, D, f)
            return Layer(mixer(a, d, kv, window if slides[i] else None, v), mlp, tensors + more + two_norms(D))

        return (slides[i], sparse[i]), make

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(L, layer_of))


def ernie_layers(read, L):
    """ERNIE 4.5: every moe_layer_interval-th layer between moe_layer_start_index and moe_layer_end_index has experts."""
    step = read.size("moe_layer_interval", absent=1, quiet=True)
    first = read.size("moe_layer_start_index", absent=1, least=0, quiet=True)
    last = read.size("moe_layer_end_index", absent=-1, least=-1, quiet=True)
    return [(i + 1) % step == 0 and first <= i <= (L - 1 if last == -1 else last) for i in range(L)]


def dbrx(read):
    """DBRX: fused QKV matrix, LayerNorms without shift, every layer with experts; sizes inside attn_config and ffn_config."""
    V, D, L = sizes(read)
    a = read.size("num_attention_heads")
    d, tied = read.divided("hidden_size", D, "num_attention_heads", a), read.tied(False)
    attention, ffn = read.inside("attn_config"), read.inside("ffn_config")
    k, f = attention.size("num_key_value_heads"), ffn.size("intermediate_size")
    E = ffn.size("num_experts")
    K = ffn.size("num_experts_per_tok", most=E)
    tensors = p.grouped_query_attention(D, a, k, d, fused=True) + p.router(E, D) + p.experts(E, D, f) + two_norms(D)
    mlp = Mlp("experts", intermediate_size=f, num_experts=E, num_experts_per_tok=K, shared_intermediate_size=0)
    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), [(Layer(mixer(a, d, k), mlp, tensors), L)])


def minimax_m3(read):
    """MiniMax-M3, text part: an indexer of blocks in its sparse layers, dense layers of dense_intermediate_size, one shared expert.

    The indexer's key is cached beside K and V. Source: transformers 5.24.0, modeling_minimax_m3_vl.py.
    """
    V, D, L = sizes(read)
    a, k, d = attention_heads(read, D)
    tied = read.tied(False)
    inner = read.inside("sparse_attention_config")
    types, marks = read.layer_types(L, ("full_attention", "minimax_m3_sparse")), inner.numbers("sparse_attention_freq", L)
    indexed = [t == "minimax_m3_sparse" for t in types] if types else [bool(m) for m in marks] if marks else [False] * L
    heads = inner.size("sparse_num_index_heads", absent=read.size("index_n_heads", absent=4, quiet=True), quiet=True)
    size = inner.size("sparse_index_dim", absent=read.size("index_head_dim", absent=128, quiet=True), quiet=True)
    read.absent_or_false("attention_output_gate")
    read.must("use_qk_norm", True)
    experts = Experts("num_local_experts", "intermediate_size", shared=shared_width("shared_intermediate_size"), where=_m3_layers, buffer=True)
    read.fixed("n_shared_experts", 1), read.fixed("moe_intermediate_size", read.size("intermediate_size"))
    sparse = experts.layers(read, L)
    f = None if all(sparse) else read.size("dense_intermediate_size")

    def layer_of(i):
        def make():
            tensors = p.grouped_query_attention(D, a, k, d) + p.query_key_norm(d, d)
            if indexed[i]:
                tensors += p.linear("indexer.q_proj", D, heads * size, "attention") + p.linear("indexer.k_proj", D, size, "attention")
                tensors += p.query_key_norm(size, size)
            mlp, more = experts.block(read, D) if sparse[i] else gated(read, D, f, fused=True)
            return Layer(mixer(a, d, k, index_head_dim=size if indexed[i] else 0), mlp, tensors + more + two_norms(D))

        return (indexed[i], sparse[i]), make

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(L, layer_of))


def _m3_layers(read, L):
    named = mlp_types(read, L)
    return named if named is not None else read.pattern("moe_layer_freq", L) or [True] * L
