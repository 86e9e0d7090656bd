"""Families with multi-head latent attention: the cache holds one latent vector and one RoPE key for all heads."""

from .. import parameters as p
from ..architecture import Architecture, Layer, Mixer, Mlp
from .decoder import Experts, after_dense, gated, outside, shared_experts, sizes, stack, two_norms


def latent_sizes(read):
    """The sizes of latent attention, by their names in p.latent_attention."""
    return dict(
        a=read.size("num_attention_heads"),
        q_lora_rank=read.optional_size("q_lora_rank"),
        kv_lora_rank=read.size("kv_lora_rank"),
        qk_nope_head_dim=read.size("qk_nope_head_dim"),
        qk_rope_head_dim=read.size("qk_rope_head_dim"),
        v_head_dim=read.size("v_head_dim"),
    )


def latent_mixer(sizes_of, index_head_dim=0):
    kept = {key: value for key, value in sizes_of.items() if key != "a"}
    return Mixer("latent", num_attention_heads=sizes_of["a"], index_head_dim=index_head_dim, **kept)


def _indexer(D, r_q, heads, size):
    """DeepSeek's sparse attention: queries from the query's latent, one key for all heads, weights of the heads."""
    return (
        p.linear("indexer.wq_b", r_q, heads * size, "attention")
        + p.linear("indexer.wk", D, size, "attention")
        + p.layer_norm("indexer.k_norm", size)
        + p.linear("indexer.weights_proj", D, heads, "attention")
    )


def deepseek(read, indexer=None, where=after_dense(), buffer=True, rope_head=False):
    """DeepSeek V2, V3, V3.2, Kimi K2, GLM-5: latent attention; first_k_dense_replace dense layers, then experts with shared ones.

    indexer(read, L): which layers have an indexer, for families with sparse attention. rope_head: head_dim, where it is
    given, is another name of qk_rope_head_dim.
    """
    V, D, L = sizes(read)
    latent = latent_sizes(read)
    if rope_head:
        read.fixed("head_dim", latent["qk_rope_head_dim"])
    tied, bias = read.tied(False), read.flag("attention_bias", absent=False)
    experts = Experts("n_routed_experts", shared=shared_experts("n_shared_experts"), where=where, buffer=buffer)
    sparse = experts.layers(read, L) if read.optional_size("n_routed_experts", quiet=True) else [False] * L
    f = None if all(sparse) else read.size("intermediate_size")
    indexed = indexer(read, L) if indexer else [False] * L
    heads, size = (read.size("index_n_heads"), read.size("index_head_dim")) if any(indexed) else (0, 0)
    if any(indexed) and not latent["q_lora_rank"]:
        read.refuse("q_lora_rank", "missing")

    def layer_of(i):
        def make():
            mlp, tensors = experts.block(read, D) if sparse[i] else gated(read, D, f)
            attention = p.latent_attention(D, bias=bias, **latent) + (_indexer(D, latent["q_lora_rank"], heads, size) if indexed[i] else [])
            return Layer(latent_mixer(latent, size if indexed[i] else 0), mlp, attention + tensors + two_norms(D))

        return (indexed[i], sparse[i]), make

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(L, layer_of))


def all_indexed(read, L):
    """DeepSeek V3.2: every layer has an indexer."""
    read.layer_types(L, ("indexed_attention",))
    return [True] * L


def some_indexed(read, L):
    """GLM-5: indexer_types, or index_topk_pattern, or every index_topk_freq-th layer; the others use the last one's choice."""
    read.layer_types(L, ("indexed_attention",))
    named = read.words("indexer_types", L)
    letters = read.letters("index_topk_pattern", "FS")
    if named or letters:
        marks = named or list(letters)
        if len(marks) != L or any(mark not in ("full", "shared", "F", "S") for mark in marks):
            read.refuse("indexer_types" if named else "index_topk_pattern", "not_a_list", k=L)
        return [mark in ("full", "F") for mark in marks]
    every, offset = read.size("index_topk_freq", absent=1, quiet=True), read.size("index_skip_topk_offset", absent=2, least=0, quiet=True)
    return [max(i - offset + 1, 0) % every == 0 for i in range(L)]


def minicpm3(read):
    """MiniCPM3: latent attention, a gated MLP; v_head_dim null means D / a."""
    V, D, L = sizes(read)
    a = read.size("num_attention_heads")
    latent = dict(
        a=a, q_lora_rank=read.size("q_lora_rank"), kv_lora_rank=read.size("kv_lora_rank"), qk_nope_head_dim=read.size("qk_nope_head_dim"),
        qk_rope_head_dim=read.size("qk_rope_head_dim"),
        v_head_dim=read.size("v_head_dim", absent=0, quiet=True) or read.divided("hidden_size", D, "num_attention_heads", a),
    )  # fmt: skip
    f, tied, bias = read.size("intermediate_size"), read.tied(True), read.flag("attention_bias", absent=False)
    read.absent_or_false("mlp_bias")
    mlp, tensors = gated(read, D, f)
    layer = Layer(latent_mixer(latent), mlp, p.latent_attention(D, bias=bias, **latent) + tensors + two_norms(D))
    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), [(layer, L)])


def longcat_flash(read):
    """LongCat-Flash: a layer is two of latent attention and a dense MLP, and one set of experts beside both; counted as two layers.

    zero_expert_num experts pass their input on: the router scores them, they hold nothing. Source: modeling_longcat_flash.py
    of meituan-longcat/LongCat-Flash-Chat; transformers 5.24.0 gives the zero experts a gate and up matrix on the meta
    device, which no checkpoint has.
    """
    V, D = read.size("vocab_size"), read.size("hidden_size")
    L = read.size("num_hidden_layers", most=5_000)
    latent = latent_sizes(read)
    tied, bias = read.tied(False), read.flag("attention_bias", absent=False)
    f, f_e = read.size("intermediate_size"), read.size("moe_intermediate_size")
    E, zero = read.size("n_routed_experts"), read.size("zero_expert_num", absent=0, least=0)
    K = read.size("num_experts_per_tok", most=E + zero)
    read.note("zero_experts", key="zero_expert_num", value=zero, k=K)
    read.note("buffers", value=L * (E + zero))
    half = p.latent_attention(D, bias=bias, **latent) + p.gated_mlp(D, f) + two_norms(D)
    router_bias = read.flag("router_bias", absent=False)
    experts = Mlp("experts", intermediate_size=f_e, num_experts=E, num_experts_per_tok=min(K, E), shared_intermediate_size=f)
    first = Layer(latent_mixer(latent), experts, half + p.router(E + zero, D, router_bias) + p.experts(E, D, f_e))
    second = Layer(latent_mixer(latent), Mlp("gated", intermediate_size=f), half)
    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), [(first, 1), (second, 1)] * L)


# DeepSeek V4's compress_ratios: how many tokens become one entry of a layer's cache; 0 keeps the window alone.
_RATES = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
_KINDS = ("sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention")


def deepseek_v4(read):
    """DeepSeek V4: one KV head, caches compressed by 4 or 128, hyper-connections of hc_mult streams, experts in every layer.

    Attention: D r_q + r_q + r_q a d + D d + d + a (sinks), output through o_groups of o_lora_rank. A compressor has two
    projections to d (2 d with an indexer), a norm and a position bias for each of its tokens. hc: ((2 + c) c + c) of c D.
    Source: transformers 5.24.0, modeling_deepseek_v4.py.
    """
    V, D, L = sizes(read)
    a, d, r_q = read.size("num_attention_heads"), read.size("head_dim"), read.size("q_lora_rank")
    read.fixed("num_key_value_heads", 1)
    groups, r_o, c = read.size("o_groups"), read.size("o_lora_rank"), read.size("hc_mult", absent=4, most=64)
    heads, size, window = read.size("index_n_heads"), read.size("index_head_dim"), read.size("sliding_window")
    tied = read.tied(False)
    read.absent_or_false("attention_bias"), read.absent_or_false("mlp_bias")
    kinds = _compressed(read, L)
    sparse_rate, heavy_rate = _rates(read)
    experts = Experts("n_routed_experts", "moe_intermediate_size", shared=lambda read, f: f, buffer=False)
    read.fixed("n_shared_experts", 1), read.fixed("intermediate_size", read.size("moe_intermediate_size"))
    hashed = read.words("mlp_layer_types", L) or ["hash_moe"] * min(L, read.size("num_hash_layers", absent=3, least=0, quiet=True))
    read.note("buffers", value=max(L - sum(kind == "hash_moe" for kind in hashed), 0) * read.size("n_routed_experts"))
    mix = (2 + c) * c

    def layer_of(i):
        kind = kinds[i]

        def make():
            tensors = [p.Tensor("sinks", (a,), "other")] + p.linear("q_a_proj", D, r_q, "attention") + p.rms_norm("q_a_norm", r_q)
            tensors += p.linear("q_b_proj", r_q, a * d, "attention") + p.linear("kv_proj", D, d, "attention") + p.rms_norm("kv_norm", d)
            tensors += p.linear("o_a_proj", read.divided("o_groups", a * d, "o_groups", groups), groups * r_o, "attention")
            tensors += p.linear("o_b_proj", groups * r_o, D, "attention")
            rate = {"compressed_sparse_attention": sparse_rate, "heavily_compressed_attention": heavy_rate}.get(kind)
            if rate:
                tensors += _compressor("compressor", D, d, rate, kind == "compressed_sparse_attention")
            if kind == "compressed_sparse_attention":
                tensors += _compressor("indexer", D, size, rate, True) + p.linear("indexer.q_b_proj", r_q, heads * size, "attention")
                tensors += p.linear("indexer.weights_proj", D, heads, "attention")
            for name in ("attn_hc", "ffn_hc"):
                tensors += _streams(name, (("fn", (mix, c * D)), ("base", (mix,)), ("scale", (3,))))
            mlp, more = experts.block(read, D)
            indexed = size if kind == "compressed_sparse_attention" else 0
            return Layer(Mixer("compressed", head_dim=d, window=window, rate=rate, index_head_dim=indexed), mlp, tensors + more + two_norms(D))

        return kind, make

    rest = outside(V, D, tied)
    rest += _streams("hc_head", (("fn", (c, c * D)), ("base", (c,)), ("scale", (1,))))
    return Architecture(read.model_type, D, V, tied, rest, stack(L, layer_of))


def _streams(name, shapes):
    """The tensors of one hyper-connection."""
    return [p.Tensor(name + "." + part, shape, "other") for part, shape in shapes]


def _compressed(read, L):
    """The kind of each layer, from layer_types or compress_ratios, which may hold more entries for the layers of MTP."""
    types = read.layer_types(L, _KINDS)
    ratios = read.numbers("compress_ratios", None)
    if types is not None:
        return types
    if ratios is None:
        return [_KINDS[2] if i < 2 or i % 2 == 0 else _KINDS[1] for i in range(L)]
    if len(ratios) < L or any(ratio not in _RATES for ratio in ratios):
        read.refuse("compress_ratios", "not_a_list", k=L)
    return [_RATES[ratio] for ratio in ratios[:L]]


def _rates(read):
    rates = read.inside("compress_rates")
    return (
        rates.size("compressed_sparse_attention", absent=read.size("compress_rate_csa", absent=4, quiet=True), quiet=True),
        rates.size("heavily_compressed_attention", absent=read.size("compress_rate_hca", absent=128, quiet=True), quiet=True),
    )


def _compressor(name, D, d, rate, double):
    wide = 2 * d if double else d
    return (
        [p.Tensor(name + ".position_bias", (rate, wide), "attention")]
        + p.linear(name + ".kv_proj", D, wide, "attention")
        + p.linear(name + ".gate_proj", D, wide, "attention")
        + p.rms_norm(name + ".kv_norm", d)
    )
