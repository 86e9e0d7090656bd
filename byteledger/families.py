"""How each family of models turns the fields of its config.json into layers: the family's own rules, in one place.

A rule takes a reader (hf_config.Fields) and gives an Architecture. Source of each rule: the configuration and modeling
files of the family in transformers 5.24.0, unless a comment names another.
"""

from . import parameters as p
from .architecture import Architecture, Layer, Mixer, Mlp


def _norm(kind, name, n):
    """The tensors of one norm: rms, layer (scale and shift), scale (a LayerNorm without shift), none (no weights)."""
    if kind == "none":
        return []
    return p.layer_norm(name, n) if kind == "layer" else p.rms_norm(name, n)


def _head(read, V, D, tied, bias=False):
    """The output head, unless the embedding serves as one."""
    return [] if tied else p.output_head(V, D, bias)


def _outside(read, V, D, tied, norm="rms", head_bias=False, before=()):
    return p.embedding(V, D) + list(before) + _norm(norm, "norm", D) + _head(read, V, D, tied, head_bias)


def _sizes(read):
    return read.size("vocab_size"), read.size("hidden_size"), read.size("num_hidden_layers", most=10_000)


def _attention_heads(read, D, key_value_heads=None):
    """(a, k, d): heads, KV heads and head size; k is a where the config has none, d is D / a."""
    a = read.size("num_attention_heads")
    k = read.size("num_key_value_heads", absent=a) if key_value_heads is None else key_value_heads
    return a, k, read.head_dim(D, a)


def _repeated(L, layer_of):
    """[(Layer, 1)] for each index; layer_of gives a key and a function, and equal keys share one Layer."""
    made, layers = {}, []
    for i in range(L):
        key, make = layer_of(i)
        if key not in made:
            made[key] = make()
        layers.append((made[key], 1))
    return layers


# --- windows: which layers see only the last tokens


def _windows(read, L, pattern=None, default=None):
    """window of each layer, or None for all tokens. layer_types decides where the config has it; else the family's pattern.

    pattern(i) is true for a layer with a window. default: the window of the family's configuration class.
    """
    types = read.layer_types(L)
    if pattern is None and types is None:
        return [None] * L
    window = read.optional_size("sliding_window", absent=default)
    if types is not None:
        return [window if kind in ("sliding_attention", "chunked_attention") else None for kind in types]
    return [window if window and pattern(i) else None for i in range(L)]


# --- Llama and its relatives


def decoder(
    read, tied, norm="rms", norms=2, parallel=False, qkv_bias="attention_bias", o_bias=None, fused=False, qk_norm=None,
    mlp="gated", mlp_bias=None, fused_mlp=False, head_bias=False, windows=None, sinks=False, moe=None, positions=None,
    key_value_heads=None, embedding_norm=False,
):  # fmt: skip
    """A decoder of equal layers: norms, grouped-query attention, norms, MLP or experts.

    qkv_bias, o_bias, mlp_bias: True, False, or the key that says it (o_bias None: as qkv_bias). norms: how many a layer
    has; parallel: attention and MLP share the one norm. qk_norm: "head" (over d) or "all" (over all heads).
    """
    V, D, L = _sizes(read)
    a, k, d = _attention_heads(read, D, key_value_heads)
    tied = read.tied(tied)
    with_qkv_bias, with_o_bias, with_mlp_bias = read.bias(qkv_bias), read.bias(qkv_bias if o_bias is None else o_bias), read.bias(mlp_bias)
    window = (windows or _windows)(read, L)
    with_qk_norm = qk_norm(read) if callable(qk_norm) else qk_norm
    f = read.size("intermediate_size") if moe is None or moe.needs_dense(read, L) else None

    def layer(window, sparse):
        def make():
            tensors = p.grouped_query_attention(D, a, k, d, with_qkv_bias, with_o_bias, fused)
            if with_qk_norm:
                tensors += p.query_key_norm(d, d) if with_qk_norm == "head" else p.query_key_norm(a * d, k * d)
            if sinks:
                tensors += [p.Tensor("sinks", (a,), "other")]
            mixer = Mixer("grouped_query", num_attention_heads=a, num_key_value_heads=k, head_dim=d, v_head_dim=d, window=window)
            if sparse:
                ffn, more = moe.block(read, D)
            else:
                ffn = Mlp(mlp, intermediate_size=f)
                more = p.gated_mlp(D, f, with_mlp_bias, fused=fused_mlp) if mlp == "gated" else p.plain_mlp(D, f, with_mlp_bias)
            for number in range(1 if parallel else norms):
                more = more + _norm(norm, "norm_%d" % number, D)
            return Layer(mixer, ffn, tensors + more)

        return (window, sparse), make

    sparse = moe.layers(read, L) if moe else [False] * L
    before = positions(read, D) if positions else []
    if embedding_norm:
        before = before + _norm(norm, "embedding_norm", D)
    return Architecture(
        read.model_type, D, V, tied, _outside(read, V, D, tied, norm, read.bias(head_bias), before), _repeated(L, lambda i: layer(window[i], sparse[i]))
    )


class Experts:
    """The experts of a family: under which keys it says what, and which layers have them."""

    def __init__(
        self, count="num_experts", width="moe_intermediate_size", per_token="num_experts_per_tok", bias=False, router_bias=False,
        shared=None, shared_gate=False, where=None, gated=True,
    ):  # fmt: skip
        self.count, self.width, self.per_token, self.bias, self.router_bias = count, width, per_token, bias, router_bias
        self.shared, self.shared_gate, self.where, self.gated = shared, shared_gate, where, gated

    def layers(self, read, L):
        return self.where(read, L) if self.where else [True] * L

    def needs_dense(self, read, L):
        return not all(self.layers(read, L))

    def block(self, read, D):
        """(Mlp, tensors) of one MoE layer."""
        E, f = read.size(self.count), read.size(self.width)
        K = read.size(self.per_token, most=E)
        shared = self.shared(read, f) if self.shared else 0
        tensors = p.router(E, D, self.router_bias) + p.experts(E, D, f, self.bias, self.gated)
        if shared:
            made = p.gated_mlp(D, shared, part="shared_experts") if self.gated else p.plain_mlp(D, shared, False, "shared_experts")
            tensors += [p.Tensor("shared_expert." + t.name, t.shape, t.part) for t in made]
            if self.shared_gate:
                tensors += p.linear("shared_expert_gate", D, 1, "shared_experts")
        return Mlp("experts", intermediate_size=f, num_experts=E, num_experts_per_tok=K, shared_intermediate_size=shared), tensors


def _sparse_step(read, L):
    """decoder_sparse_step: every n-th layer has experts, but those of mlp_only_layers."""
    step, dense = read.size("decoder_sparse_step", absent=1, quiet=True), read.indices("mlp_only_layers", L)
    return [i not in dense and (i + 1) % step == 0 for i in range(L)]


def _after_dense(read, L):
    """first_k_dense_replace: the first k layers are dense; moe_layer_freq: then every n-th has experts."""
    pattern = read.pattern("moe_layer_freq", L)
    if pattern is not None:
        return pattern
    first = read.size("first_k_dense_replace", absent=0, least=0)
    step = read.size("moe_layer_freq", absent=1, quiet=True)
    return [i >= first and i % step == 0 for i in range(L)]


def _shared_experts(read, f):
    """n_shared_experts experts as one MLP of their joint width."""
    return f * read.size("n_shared_experts", absent=0, least=0)


def _shared_width(read, f):
    """shared_expert_intermediate_size, 0 for none."""
    return read.size("shared_expert_intermediate_size", absent=0, least=0)


def _every_layer(read, L):
    """Mistral: one window for all layers, none if sliding_window is null or 0."""
    return _windows(read, L, lambda i: True)


def _upper_layers(read, L):
    """Qwen2, Qwen3: layers from max_window_layers on, and only with use_sliding_window."""
    if not read.flag("use_sliding_window", absent=False):
        return [None] * L
    first = read.size("max_window_layers", absent=28, least=0)
    return _windows(read, L, lambda i: i >= first)


def _alternating(period, default):
    """All but every period-th layer have a window."""

    def windows(read, L):
        every = read.size("sliding_window_pattern", absent=period, quiet=True) if period != 2 else 2
        return _windows(read, L, lambda i: (i + 1) % every != 0, default)

    return windows


def _chunks(read, L):
    """Llama 4: chunks of attention_chunk_size tokens, but every no_rope_layer_interval-th layer sees all."""
    size = read.optional_size("attention_chunk_size", absent=8192)
    types = read.layer_types(L)
    if types is not None:
        return [size if kind == "chunked_attention" else None for kind in types]
    marks = read.numbers("no_rope_layers", L)
    if marks:
        return [size if mark else None for mark in marks]
    every = read.size("no_rope_layer_interval", absent=4, quiet=True)
    return [size if (i + 1) % every else None for i in range(L)]


def _learned_positions(key, offset=0):
    def positions(read, D):
        return p.position_embedding(read.size(key) + offset, D)

    return positions


# --- families with rules of their own


def gpt2(read, tied=True):
    """GPT-2: learned positions, LayerNorm, biases everywhere, one fused QKV matrix; n_inner null means 4 D."""
    V, D, L = _sizes(read)
    a = read.size("num_attention_heads")
    d = read.divided("hidden_size", D, "num_attention_heads", a)
    f = read.size("intermediate_size", absent=4 * D, quiet=True)
    k = 1 if read.model_type == "gpt_bigcode" and read.flag("multi_query", absent=True) else a
    tied = read.tied(tied)
    tensors = p.grouped_query_attention(D, a, k, d, True, True, fused=True) + p.plain_mlp(D, f) + p.layer_norm("ln_1", D) + p.layer_norm("ln_2", D)
    mixer = Mixer("grouped_query", num_attention_heads=a, num_key_value_heads=k, head_dim=d, v_head_dim=d, window=None)
    layer = Layer(mixer, Mlp("plain", intermediate_size=f), tensors)
    outside = _outside(read, V, D, tied, "layer", before=p.position_embedding(read.size("max_position_embeddings"), D))
    return Architecture(read.model_type, D, V, tied, outside, [(layer, L)])


def gpt_neo(read):
    """GPT-Neo: as GPT-2, but query, key and value without bias; local layers see window_size tokens."""
    V, D, L = _sizes(read)
    a = read.size("num_attention_heads")
    d = read.divided("hidden_size", D, "num_attention_heads", a)
    f, tied = read.size("intermediate_size", absent=4 * D, quiet=True), read.tied(True)
    tensors = p.grouped_query_attention(D, a, a, d, False, True) + p.plain_mlp(D, f) + p.layer_norm("ln_1", D) + p.layer_norm("ln_2", D)
    kinds = read.attention_kinds(L)
    window = read.size("window_size", absent=256)

    def layer_of(i):
        w = window if kinds[i] == "local" else None
        mixer = Mixer("grouped_query", num_attention_heads=a, num_key_value_heads=a, head_dim=d, v_head_dim=d, window=w)
        return w, lambda: Layer(mixer, Mlp("plain", intermediate_size=f), tensors)

    outside = _outside(read, V, D, tied, "layer", before=p.position_embedding(read.size("max_position_embeddings"), D))
    return Architecture(read.model_type, D, V, tied, outside, _repeated(L, layer_of))


def gptj(read):
    """GPT-J: one LayerNorm for attention and MLP in parallel, no bias in attention, a head with bias."""
    V, D, L = _sizes(read)
    a = read.size("num_attention_heads")
    d = read.divided("hidden_size", D, "num_attention_heads", a)
    f, tied = read.size("intermediate_size", absent=4 * D, quiet=True), read.tied(False)
    tensors = p.grouped_query_attention(D, a, a, d) + p.plain_mlp(D, f) + p.layer_norm("ln_1", D)
    layer = Layer(_multi_head(a, d), Mlp("plain", intermediate_size=f), tensors)
    return Architecture(read.model_type, D, V, tied, _outside(read, V, D, tied, "layer", head_bias=True), [(layer, L)])


def _multi_head(a, d, k=None, window=None):
    return Mixer("grouped_query", num_attention_heads=a, num_key_value_heads=k or a, head_dim=d, v_head_dim=d, window=window)


def gpt_neox(read):
    """GPT-NeoX, Pythia: biases everywhere but in the head, two LayerNorms even where attention and MLP are parallel."""
    V, D, L = _sizes(read)
    a = read.size("num_attention_heads")
    d = read.divided("hidden_size", D, "num_attention_heads", a)
    f, tied, bias = read.size("intermediate_size"), read.tied(False), read.flag("attention_bias", absent=True)
    tensors = p.grouped_query_attention(D, a, a, d, bias, bias, fused=True) + p.plain_mlp(D, f) + p.layer_norm("ln_1", D) + p.layer_norm("ln_2", D)
    layer = Layer(_multi_head(a, d), Mlp("plain", intermediate_size=f), tensors)
    return Architecture(read.model_type, D, V, tied, _outside(read, V, D, tied, "layer"), [(layer, L)])


def opt(read):
    """OPT: positions + 2 learned; word_embed_proj_dim other than D adds two projections; a final norm only in pre-norm."""
    V, D, L = _sizes(read)
    a = read.size("num_attention_heads")
    d = read.divided("hidden_size", D, "num_attention_heads", a)
    f, tied = read.size("intermediate_size"), read.tied(True)
    narrow = read.size("word_embed_proj_dim", absent=D, quiet=True)
    bias = read.flag("enable_bias", absent=True)
    norm = "layer" if read.flag("layer_norm_elementwise_affine", absent=True) else "none"
    final = read.flag("do_layer_norm_before", absent=True) and not read.flag("_remove_final_layer_norm", absent=False)
    tensors = p.grouped_query_attention(D, a, a, d, bias, bias) + p.plain_mlp(D, f, bias) + _norm(norm, "ln_1", D) + _norm(norm, "ln_2", D)
    layer = Layer(_multi_head(a, d), Mlp("plain", intermediate_size=f), tensors)
    outside = p.embedding(V, narrow) + p.position_embedding(read.size("max_position_embeddings") + 2, D)
    if narrow != D:
        outside += p.linear("project_in", narrow, D, "other") + p.linear("project_out", D, narrow, "other")
    outside += _norm(norm, "norm", D) if final else []
    outside += [] if tied else p.output_head(V, narrow)
    return Architecture(read.model_type, D, V, tied, outside, [(layer, L)])


def bloom(read):
    """BLOOM: a norm after the embedding, biases everywhere, no positions (ALiBi), MLP of 4 D."""
    V, D, L = _sizes(read)
    a = read.size("num_attention_heads")
    d = read.divided("hidden_size", D, "num_attention_heads", a)
    read.fixed("intermediate_size", 4 * D)
    tied = read.tied(True)
    tensors = p.grouped_query_attention(D, a, a, d, True, True, fused=True) + p.plain_mlp(D, 4 * D) + p.layer_norm("ln_1", D) + p.layer_norm("ln_2", D)
    layer = Layer(_multi_head(a, d), Mlp("plain", intermediate_size=4 * D), tensors)
    return Architecture(read.model_type, D, V, tied, _outside(read, V, D, tied, "layer", before=p.layer_norm("embedding_norm", D)), [(layer, L)])


def falcon(read):
    """Falcon: with new_decoder_architecture k = num_kv_heads, else 1 if multi_query, else a; MLP of ffn_hidden_size or 4 D.

    The new architecture has two norms before its parallel block, the old parallel one a single norm. multi_query, which
    40B and 180B carry as true, has no say in the new architecture.
    """
    V, D, L = _sizes(read)
    a = read.size("num_attention_heads")
    d = read.divided("hidden_size", D, "num_attention_heads", a)
    new = read.flag("new_decoder_architecture", absent=read.model_type == "RefinedWeb")
    multi_query = read.flag("multi_query", absent=True)
    if new:
        k = read.size("num_key_value_heads", absent=a)
        if multi_query and k != 1:
            read.note("falcon_multi_query", key="multi_query", k=k)
    else:
        k = 1 if multi_query else a
        read.overruled("num_key_value_heads", k, "falcon_kv_heads")
    f = read.size("intermediate_size", absent=4 * D, quiet=True)
    bias, parallel, tied = read.flag("bias", absent=False), read.flag("parallel_attn", absent=True), read.tied(True)
    if new:
        norms = read.size("num_ln_in_parallel_attn", absent=2, quiet=True, most=2)
    else:
        norms = 1 if parallel else 2
    tensors = p.grouped_query_attention(D, a, k, d, bias, bias, fused=True) + p.plain_mlp(D, f, bias)
    for number in range(norms):
        tensors += p.layer_norm("ln_%d" % number, D)
    layer = Layer(_multi_head(a, d, k), Mlp("plain", intermediate_size=f), tensors)
    return Architecture(read.model_type, D, V, tied, _outside(read, V, D, tied, "layer"), [(layer, L)])


def mpt(read):
    """MPT: no biases with no_bias, LayerNorms then without shift; MLP of expansion_ratio D; kv_n_heads inside attn_config."""
    V, D, L = _sizes(read)
    a = read.size("num_attention_heads")
    d = read.divided("hidden_size", D, "num_attention_heads", a)
    inner = read.inside("attn_config")
    kind = inner.choice("attn_type", ("multihead_attention", "multiquery_attention", "grouped_query_attention"), absent="multihead_attention")
    k = {"multihead_attention": a, "multiquery_attention": 1}.get(kind) or inner.size("kv_n_heads")
    if inner.flag("qk_ln", absent=False):
        inner.refuse("qk_ln", "not_modelled")
    f = read.size("expansion_ratio", absent=4, quiet=True) * D
    bias, tied = not read.flag("no_bias", absent=True), read.tied(True)
    norm = "layer" if bias else "scale"
    tensors = p.grouped_query_attention(D, a, k, d, bias, bias, fused=True) + p.plain_mlp(D, f, bias) + _norm(norm, "norm_1", D) + _norm(norm, "norm_2", D)
    layer = Layer(_multi_head(a, d, k), Mlp("plain", intermediate_size=f), tensors)
    before = [] if inner.flag("alibi", absent=False) or inner.flag("rope", absent=False) else p.position_embedding(read.size("max_position_embeddings"), D)
    if before and not read.remote_code:
        # transformers' own MPT builds no position table whatever alibi says; the original code does.
        before = []
    return Architecture(read.model_type, D, V, tied, _outside(read, V, D, tied, norm, before=before), [(layer, L)])


def chatglm(read):
    """ChatGLM2, ChatGLM3, GLM-4-9B-chat: multi_query_attention with multi_query_group_num KV heads of kv_channels, padded_vocab_size.

    Source: modeling_chatglm.py of zai-org/chatglm3-6b.
    """
    V = read.size("padded_vocab_size", absent=None) if read.has("padded_vocab_size") else read.size("vocab_size")
    D, L = read.size("hidden_size"), read.size("num_hidden_layers", most=10_000)
    if read.has("inner_hidden_size") or read.has("position_encoding_2d"):
        read.refuse("inner_hidden_size" if read.has("inner_hidden_size") else "position_encoding_2d", "chatglm_first")
    a = read.size("num_attention_heads")
    d = read.head_dim(D, a)
    k = read.size("multi_query_group_num") if read.flag("multi_query_attention", absent=False) else a
    f, tied = read.size("intermediate_size"), read.tied(False)
    bias = read.flag("add_bias_linear", absent=False)
    qkv_bias = bias or read.flag("add_qkv_bias", absent=False)
    norm = "rms" if read.flag("rmsnorm", absent=True) else "layer"
    tensors = p.grouped_query_attention(D, a, k, d, qkv_bias, bias, fused=True) + p.gated_mlp(D, f, bias, fused=True)
    tensors += _norm(norm, "norm_1", D) + _norm(norm, "norm_2", D)
    layer = Layer(_multi_head(a, d, k), Mlp("gated", intermediate_size=f), tensors)
    final = norm if read.flag("post_layer_norm", absent=True) else "none"
    outside = _outside(read, V, D, tied, final, bias)
    return Architecture(read.model_type, D, V, tied, outside, [(layer, L)])


def phi(read):
    """Phi-1, Phi-1.5, Phi-2: one LayerNorm for attention and MLP in parallel, biases everywhere, a head with bias."""
    V, D, L = _sizes(read)
    a, k, d = _attention_heads(read, D)
    f, tied = read.size("intermediate_size"), read.tied(False)
    tensors = p.grouped_query_attention(D, a, k, d, True, True) + p.plain_mlp(D, f) + p.layer_norm("ln", D)
    if read.flag("qk_layernorm", absent=False):
        tensors += p.layer_norm("q_norm", d) + p.layer_norm("k_norm", d)
    layer = Layer(_multi_head(a, d, k), Mlp("plain", intermediate_size=f), tensors)
    return Architecture(read.model_type, D, V, tied, _outside(read, V, D, tied, "layer", head_bias=True), [(layer, L)])


def deepseek(read):
    """DeepSeek V2, V3, Kimi K2: latent attention; first_k_dense_replace dense layers, then experts with shared ones."""
    V, D, L = _sizes(read)
    a = read.size("num_attention_heads")
    r_q, r = read.optional_size("q_lora_rank"), read.size("kv_lora_rank")
    nope, rope, v = read.size("qk_nope_head_dim"), read.size("qk_rope_head_dim"), read.size("v_head_dim")
    tied, bias = read.tied(False), read.flag("attention_bias", absent=False)
    experts = Experts("n_routed_experts", shared=_shared_experts, where=_after_dense)
    sparse = experts.layers(read, L) if read.optional_size("n_routed_experts", quiet=True) else [False] * L
    f = read.size("intermediate_size") if not all(sparse) else None
    mixer = Mixer("latent", num_attention_heads=a, q_lora_rank=r_q, kv_lora_rank=r, qk_nope_head_dim=nope, qk_rope_head_dim=rope, v_head_dim=v, index_head_dim=0)
    attention = p.latent_attention(D, a, r_q, r, nope, rope, v, bias)
    if read.model_type == "deepseek_v32":
        heads, size = read.size("index_n_heads"), read.size("index_head_dim")
        attention += p.linear("indexer.wq_b", r_q, heads * size, "attention") + p.linear("indexer.wk", D, size, "attention")
        attention += p.layer_norm("indexer.k_norm", size) + p.linear("indexer.weights_proj", D, heads, "attention")
        mixer.index_head_dim = size

    def layer_of(i):
        def make():
            mlp, tensors = experts.block(read, D) if sparse[i] else (Mlp("gated", intermediate_size=f), p.gated_mlp(D, f))
            return Layer(mixer, mlp, attention + tensors + p.rms_norm("input_layernorm", D) + p.rms_norm("post_attention_layernorm", D))

        return sparse[i], make

    read.unmodelled_extra("num_nextn_predict_layers", "mtp")
    return Architecture(read.model_type, D, V, tied, _outside(read, V, D, tied), _repeated(L, layer_of))


def llama4(read):
    """Llama 4, text part: interleave_moe_layer_step; experts of intermediate_size with one shared, dense layers of intermediate_size_mlp."""
    V, D, L = _sizes(read)
    a, k, d = _attention_heads(read, D)
    tied, bias = read.tied(False), read.flag("attention_bias", absent=False)
    step, listed = read.size("interleave_moe_layer_step", absent=1, quiet=True), read.indices("moe_layers", L)
    sparse = [i in listed for i in range(L)] if listed else [(i + 1) % step == 0 for i in range(L)]
    experts = Experts("num_local_experts", "intermediate_size", shared=lambda read, f: f)
    f = None if all(sparse) else read.size("intermediate_size_mlp")
    window = _chunks(read, L)

    def layer_of(i):
        def make():
            mlp, tensors = experts.block(read, D) if sparse[i] else (Mlp("gated", intermediate_size=f), p.gated_mlp(D, f))
            tensors = tensors + p.rms_norm("input_layernorm", D) + p.rms_norm("post_attention_layernorm", D)
            return Layer(_multi_head(a, d, k, window[i]), mlp, p.grouped_query_attention(D, a, k, d, bias, bias) + tensors)

        return (window[i], sparse[i]), make

    return Architecture(read.model_type, D, V, tied, _outside(read, V, D, tied), _repeated(L, layer_of))


def mimo_v2_flash(read):
    """MiMo-V2-Flash: windowed layers with sinks and KV heads of their own, value heads narrower than keys, experts from layer 1 on.

    Source: transformers 5.24.0, modeling_mimo_v2_flash.py; hybrid_layer_pattern and swa_* of the published config.
    """
    V, D, L = _sizes(read)
    a, k = read.size("num_attention_heads"), read.size("num_key_value_heads")
    d, v = read.size("head_dim"), read.size("v_head_dim")
    tied, bias = read.tied(False), read.flag("attention_bias", absent=False)
    types = read.layer_types(L)
    marks = read.numbers("hybrid_layer_pattern", L)
    slides = [t == "sliding_attention" for t in types] if types else [bool(m) for m in marks] if marks else [i != 0 and (i + 1) % 6 != 0 for i in range(L)]
    window = read.size("sliding_window", absent=129)
    k_slide = read.size("swa_num_key_value_heads", absent=2 * k)
    read.fixed("swa_num_attention_heads", a), read.fixed("swa_head_dim", d), read.fixed("swa_v_head_dim", v)
    kinds = read.words("mlp_layer_types", L)
    experts = Experts("n_routed_experts", shared=_shared_experts)
    sparse = [kind == "sparse" for kind in kinds] if kinds else read.pattern("moe_layer_freq", L) or [i > 0 for i in range(L)]
    f = None if all(sparse) else read.size("intermediate_size")

    def layer_of(i):
        def make():
            kv = k_slide if slides[i] else k
            p.heads(a, kv)
            tensors = p.linear("q_proj", D, a * d, "attention", bias) + p.linear("k_proj", D, kv * d, "attention", bias)
            tensors += p.linear("v_proj", D, kv * v, "attention", bias) + p.linear("o_proj", a * v, D, "attention")
            if slides[i]:
                tensors += [p.Tensor("sinks", (a,), "other")]
            mlp, more = experts.block(read, D) if sparse[i] else (Mlp("gated", intermediate_size=f), p.gated_mlp(D, f))
            mixer = Mixer("grouped_query", num_attention_heads=a, num_key_value_heads=kv, head_dim=d, v_head_dim=v, window=window if slides[i] else None)
            return Layer(mixer, mlp, tensors + more + p.rms_norm("input_layernorm", D) + p.rms_norm("post_attention_layernorm", D))

        return (slides[i], sparse[i]), make

    return Architecture(read.model_type, D, V, tied, _outside(read, V, D, tied), _repeated(L, layer_of))


# --- state-space and hybrid families


def mamba(read):
    """Mamba, Falcon-Mamba: L mixers with one RMSNorm each, no attention and no MLP."""
    V, D, L = _sizes(read)
    tied = read.tied(True if read.model_type == "mamba" else False)
    d_inner, N, K, R = _mamba_sizes(read, D, "state_size", "conv_kernel", "expand", "time_step_rank")
    tensors = p.mamba(D, d_inner, N, R, K, read.flag("use_conv_bias", absent=True), read.flag("use_bias", absent=False)) + p.rms_norm("norm", D)
    layer = Layer(_state(d_inner * N, d_inner * K), Mlp("none"), tensors)
    return Architecture(read.model_type, D, V, tied, _outside(read, V, D, tied), [(layer, L)])


def _mamba_sizes(read, D, state, kernel, expand, rank):
    """(I, N, K, R): channels, state size, convolution kernel and rank of dt; R "auto" is ceil(D / 16)."""
    d_inner = read.size(expand, absent=2, quiet=True) * D
    R = read.size(rank, absent=-(-D // 16), quiet=True, words=("auto",))
    return d_inner, read.size(state, absent=16, quiet=True), read.size(kernel, absent=4, quiet=True), R


def _state(state_elements, conv_elements):
    return Mixer("recurrent", state_elements=state_elements, conv_elements=conv_elements)


def mamba2(read):
    """Mamba-2: L mixers with one RMSNorm each; heads of head_dim over expand D channels."""
    V, D, L = _sizes(read)
    tied = read.tied(False)
    d_inner = read.size("expand", absent=2, quiet=True) * D
    H, size = read.size("num_heads"), read.size("head_dim")
    read.equal("num_heads x head_dim", H * size, "expand x hidden_size", d_inner)
    N, G, K = read.size("state_size", absent=128, quiet=True), read.size("n_groups", absent=8), read.size("conv_kernel", absent=4, quiet=True)
    tensors = p.mamba2(D, d_inner, H, N, G, K, read.flag("use_conv_bias", absent=True), read.flag("use_bias", absent=False)) + p.rms_norm("norm", D)
    layer = Layer(_state(H * size * N, (d_inner + 2 * G * N) * K), Mlp("none"), tensors)
    return Architecture(read.model_type, D, V, tied, _outside(read, V, D, tied), [(layer, L)])


def jamba(read):
    """Jamba: attention every attn_layer_period-th layer, Mamba else; experts every expert_layer_period-th layer, a gated MLP else."""
    V, D, L = _sizes(read)
    a, k, d = _attention_heads(read, D)
    tied, f = read.tied(False), read.size("intermediate_size")
    attention_every, attention_at = read.size("attn_layer_period", absent=8), read.size("attn_layer_offset", absent=4, least=0)
    experts_every, experts_at = read.size("expert_layer_period", absent=2), read.size("expert_layer_offset", absent=1, least=0)
    E = read.size("num_experts", absent=16)
    d_inner, N, K, R = _mamba_sizes(read, D, "mamba_d_state", "mamba_d_conv", "mamba_expand", "mamba_dt_rank")
    conv_bias, bias = read.flag("mamba_conv_bias", absent=True), read.flag("mamba_proj_bias", absent=False)
    experts = Experts("num_experts", "intermediate_size")

    def layer_of(i):
        attends, sparse = i % attention_every == attention_at, E > 1 and i % experts_every == experts_at

        def make():
            if attends:
                mixer, tensors = _multi_head(a, d, k), p.grouped_query_attention(D, a, k, d)
            else:
                mixer, tensors = _state(d_inner * N, d_inner * K), p.mamba(D, d_inner, N, R, K, conv_bias, bias, norms=True)
            mlp, more = experts.block(read, D) if sparse else (Mlp("gated", intermediate_size=f), p.gated_mlp(D, f))
            return Layer(mixer, mlp, tensors + more + p.rms_norm("input_layernorm", D) + p.rms_norm("pre_ff_layernorm", D))

        return (attends, sparse), make

    return Architecture(read.model_type, D, V, tied, _outside(read, V, D, tied), _repeated(L, layer_of))


NEMOTRON_BLOCKS = {"M": "mamba", "-": "mlp", "*": "attention", "E": "moe"}


def nemotron_h(read):
    """Nemotron-H: one block a layer, Mamba-2, attention, MLP or experts, as hybrid_override_pattern says; a norm for each.

    Its MLP has no gate (squared ReLU). Source: transformers 5.24.0, modeling_nemotron_h.py.
    """
    V, D = read.size("vocab_size"), read.size("hidden_size")
    blocks = read.blocks("hybrid_override_pattern", "layers_block_type", NEMOTRON_BLOCKS)
    read.fixed("num_hidden_layers", len(blocks))
    tied = read.tied(False)
    bias, mlp_bias = read.flag("use_bias", absent=False), read.flag("mlp_bias", absent=False)

    def make(kind):
        norm = p.rms_norm("norm", D)
        if kind == "mamba":
            H, size, N, G = read.size("mamba_num_heads"), read.size("mamba_head_dim"), read.size("ssm_state_size"), read.size("n_groups")
            K = read.size("conv_kernel", absent=4, quiet=True)
            tensors = p.mamba2(D, H * size, H, N, G, K, read.flag("use_conv_bias", absent=True), bias)
            return Layer(_state(H * size * N, (H * size + 2 * G * N) * K), Mlp("none"), tensors + norm)
        if kind == "attention":
            a, k, d = _attention_heads(read, D)
            read.absent_or_false("attention_bias")
            return Layer(_multi_head(a, d, k), Mlp("none"), p.grouped_query_attention(D, a, k, d) + norm)
        if kind == "mlp":
            f = read.size("intermediate_size")
            return Layer(Mixer("none"), Mlp("plain", intermediate_size=f), p.plain_mlp(D, f, mlp_bias) + norm)
        if read.optional_size("moe_latent_size", quiet=True):
            read.refuse("moe_latent_size", "not_modelled")
        experts = Experts("n_routed_experts", shared=lambda read, f: read.size("moe_shared_expert_intermediate_size"), gated=False)
        mlp, tensors = experts.block(read, D)
        return Layer(Mixer("none"), mlp, tensors + norm)

    read.unmodelled_extra("num_nextn_predict_layers", "mtp")
    return Architecture(read.model_type, D, V, tied, _outside(read, V, D, tied), _repeated(len(blocks), lambda i: (blocks[i], lambda: make(blocks[i]))))


def qwen3_next(read):
    """Qwen3-Next, Qwen3.5: gated delta nets, and every full_attention_interval-th layer a gated attention; experts or a gated MLP."""
    V, D, L = _sizes(read)
    a, k, d = _attention_heads(read, D)
    tied, bias = read.tied(False), read.flag("attention_bias", absent=False)
    types = read.layer_types(L)
    every = read.size("full_attention_interval", absent=4, quiet=True)
    attends = [kind == "full_attention" for kind in types] if types else [(i + 1) % every == 0 for i in range(L)]
    H_k, d_k = read.size("linear_num_key_heads", absent=16), read.size("linear_key_head_dim", absent=128)
    H_v, d_v = read.size("linear_num_value_heads", absent=32), read.size("linear_value_head_dim", absent=128)
    K = read.size("linear_conv_kernel_dim", absent=4, quiet=True)
    if read.model_type in ("qwen3_next", "qwen3_5_moe_text", "qwen3_5_moe"):
        experts = Experts(shared=_shared_width, shared_gate=True, where=_sparse_step)
        sparse = experts.layers(read, L)
    else:
        experts, sparse = None, [False] * L
    f = None if all(sparse) else read.size("intermediate_size")

    def layer_of(i):
        def make():
            if attends[i]:
                mixer = _multi_head(a, d, k)
                tensors = p.grouped_query_attention(D, a, k, d, bias, bias, gated=True) + p.query_key_norm(d, d)
            else:
                mixer = _state(H_v * d_k * d_v, (2 * H_k * d_k + H_v * d_v) * K)
                tensors = p.gated_delta_net(D, H_k, d_k, H_v, d_v, K)
            mlp, more = experts.block(read, D) if sparse[i] else (Mlp("gated", intermediate_size=f), p.gated_mlp(D, f))
            return Layer(mixer, mlp, tensors + more + p.rms_norm("input_layernorm", D) + p.rms_norm("post_attention_layernorm", D))

        return (attends[i], sparse[i]), make

    read.unmodelled_extra("mtp_num_hidden_layers", "mtp")
    return Architecture(read.model_type, D, V, tied, _outside(read, V, D, tied), _repeated(L, layer_of))


def bert(read):
    """BERT, as AutoModel builds it: three embeddings and a norm, the encoder, a pooler, no language-model head."""
    V, D, L = _sizes(read)
    a = read.size("num_attention_heads")
    d = read.divided("hidden_size", D, "num_attention_heads", a)
    f, P, T = read.size("intermediate_size"), read.size("max_position_embeddings"), read.size("type_vocab_size", absent=2)
    if read.flag("is_decoder", absent=False) or read.flag("add_cross_attention", absent=False):
        read.refuse("is_decoder", "not_modelled")
    tensors = p.grouped_query_attention(D, a, a, d, True, True) + p.plain_mlp(D, f) + p.layer_norm("ln_1", D) + p.layer_norm("ln_2", D)
    layer = Layer(_multi_head(a, d), Mlp("plain", intermediate_size=f), tensors)
    outside = p.embedding(V, D) + p.position_embedding(P, D) + [p.Tensor("token_type_embeddings.weight", (T, D), "other")]
    outside += p.layer_norm("embedding_norm", D) + p.linear("pooler", D, D, "other", True)
    read.note("bert_scope")
    return Architecture(read.model_type, D, V, True, outside, [(layer, L)], causal=False)


# --- the table


def _rule(build, **options):
    def build_family(read):
        return build(read, **options)

    build_family.__doc__ = build.__doc__
    return build_family


_HEAD_NORM = {"qk_norm": "head"}
_NO_BIAS = {"qkv_bias": False, "mlp_bias": False}
_QWEN_MOE = Experts(where=_sparse_step)
_GEMMA = {"tied": True, "fused": False}

FAMILIES = {
    "llama": _rule(decoder, tied=False, mlp_bias="mlp_bias"),
    "mistral": _rule(decoder, tied=False, qkv_bias=False, windows=_every_layer),
    "ministral": _rule(decoder, tied=False, qkv_bias=False, windows=_every_layer),
    "ministral3": _rule(decoder, tied=False, qkv_bias=False, windows=_every_layer),
    "qwen2": _rule(decoder, tied=False, qkv_bias=True, o_bias=False, windows=_upper_layers),
    "qwen3": _rule(decoder, tied=False, windows=_upper_layers, **_HEAD_NORM),
    "gemma": _rule(decoder, tied=True),
    "gemma2": _rule(decoder, tied=True, norms=4, windows=_alternating(2, 4096)),
    "gemma3_text": _rule(decoder, tied=True, norms=4, windows=_alternating(6, 4096), **_HEAD_NORM),
    "phi": phi,
    "phi3": _rule(decoder, tied=False, qkv_bias=False, fused=True, fused_mlp=True, windows=_every_layer),
    "gpt2": gpt2,
    "gpt_bigcode": gpt2,
    "gpt_neo": gpt_neo,
    "gptj": gptj,
    "gpt_neox": gpt_neox,
    "opt": opt,
    "bloom": bloom,
    "falcon": falcon,
    "RefinedWeb": falcon,  # the model_type of Falcon before transformers took it in
    "RefinedWebModel": falcon,
    "mpt": mpt,
    "chatglm": chatglm,
    "glm": _rule(decoder, tied=False, o_bias=False, fused_mlp=True),
    "glm4": _rule(decoder, tied=False, o_bias=False, fused_mlp=True, norms=4),
    "granite": _rule(decoder, tied=False, mlp_bias="mlp_bias"),
    "olmo": _rule(decoder, tied=False, norm="none"),
    "olmo2": _rule(decoder, tied=False, qk_norm="all"),
    "olmo3": _rule(decoder, tied=False, qk_norm="all", windows=_alternating(4, 4096)),
    "smollm3": _rule(decoder, tied=True, mlp_bias="mlp_bias"),
    "seed_oss": _rule(decoder, tied=False, qkv_bias="attention_bias", o_bias="attention_out_bias", mlp_bias="mlp_bias"),
    "starcoder2": _rule(decoder, tied=True, norm="layer", mlp="plain", qkv_bias="use_bias", mlp_bias="use_bias", windows=_every_layer),
    "mixtral": _rule(decoder, tied=False, qkv_bias=False, windows=_every_layer, moe=Experts("num_local_experts", "intermediate_size")),
    "phimoe": _rule(decoder, tied=False, norm="layer", windows=_every_layer, head_bias="lm_head_bias", moe=Experts("num_local_experts", "intermediate_size")),
    "qwen2_moe": _rule(decoder, tied=False, qkv_bias="qkv_bias", o_bias=False, windows=_upper_layers, moe=Experts(shared=_shared_width, shared_gate=True, where=_sparse_step)),
    "qwen3_moe": _rule(decoder, tied=False, windows=_upper_layers, moe=_QWEN_MOE, **_HEAD_NORM),
    "olmoe": _rule(decoder, tied=False, qk_norm="all", moe=Experts("num_experts", "intermediate_size")),
    "gpt_oss": _rule(decoder, tied=False, qkv_bias=("attention_bias", True), windows=_alternating(2, 128), sinks=True, moe=Experts("num_local_experts", "intermediate_size", bias=True, router_bias=True)),
    "glm4_moe": _rule(decoder, tied=False, o_bias=False, moe=Experts("n_routed_experts", shared=_shared_experts, where=_after_dense), qk_norm=lambda read: "head" if read.flag("use_qk_norm", absent=False) else None),
    "minimax_m2": _rule(decoder, tied=False, qkv_bias=False, qk_norm="all", moe=Experts("num_local_experts", "intermediate_size")),
    "deepseek_v2": deepseek,
    "deepseek_v3": deepseek,
    "deepseek_v32": deepseek,
    "kimi_k2": deepseek,
    "llama4_text": llama4,
    "mimo_v2_flash": mimo_v2_flash,
    "mimo": _rule(decoder, tied=False, qkv_bias=True, o_bias=False, windows=_upper_layers),
    "mamba": mamba,
    "falcon_mamba": mamba,
    "mamba2": mamba2,
    "jamba": jamba,
    "nemotron_h": nemotron_h,
    "qwen3_next": qwen3_next,
    "qwen3_5_text": qwen3_next,
    "qwen3_5_moe_text": qwen3_next,
    "bert": bert,
}
