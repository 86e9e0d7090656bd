"""What most families share: a stack of like layers, grouped-query attention, an MLP or experts, and which layers have a window."""

from .. import parameters as p
from ..architecture import Architecture, Layer, Mixer, Mlp


def norm(kind, name, n):
    """The tensors of one norm: rms, layer (scale and shift), scale (a LayerNorm without shift), none (no weights)."""
    if kind == "none":
        return []
    return p.layer_norm(name, n) if kind == "layer" else p.rms_norm(name, n)


def outside(V, D, tied, kind="rms", head_bias=False, before=()):
    """Embedding, what comes before the layers, the final norm, and a head unless the embedding serves as one."""
    head = [] if tied else p.output_head(V, D)
    bias = [p.Tensor("lm_head.bias", (V,), "output_head")] if head_bias else []  # a tied head keeps its bias
    return p.embedding(V, D) + list(before) + norm(kind, "norm", D) + head + bias


def sizes(read):
    """(V, D, L)."""
    return read.size("vocab_size"), read.size("hidden_size"), read.size("num_hidden_layers", most=10_000)


def attention_heads(read, D):
    """(a, k, d): heads, KV heads and head size; k is a where the configuration has none, d is D / a."""
    a = read.size("num_attention_heads")
    return a, read.size("num_key_value_heads", absent=a), read.head_dim(D, a)


def multi_head(read, D):
    """(a, d) of a family whose heads are all D / a wide and have keys of their own."""
    a = read.size("num_attention_heads")
    read.fixed("num_key_value_heads", a)
    return a, read.divided("hidden_size", D, "num_attention_heads", a)


def mixer(a, d, k=None, window=None, v=None, **more):
    return Mixer("grouped_query", num_attention_heads=a, num_key_value_heads=k or a, head_dim=d, v_head_dim=v or d, window=window, **more)


def gated(read, D, f, bias=False, fused=False):
    """(Mlp, tensors) of a gated MLP."""
    return Mlp("gated", intermediate_size=f), p.gated_mlp(D, f, bias, fused=fused)


def two_norms(D):
    return p.rms_norm("input_layernorm", D) + p.rms_norm("post_attention_layernorm", D)


def stack(L, layer_of):
    """[(Layer, 1)] for each index; layer_of gives a key and a function, and equal keys share one Layer."""
    made, layers = {}, []
    for i in range(L):
        key, make = layer_of(i)
        if key not in made:
            made[key] = make()
        layers.append((made[key], 1))
    return layers


# --- windows: which layers see only the last tokens


def windows(read, L, pattern=None):
    """window of each layer, or None for all tokens. layer_types decides where the config has it; else the family's pattern.

    pattern(i) is true for a layer with a window. A family without one has windows nowhere, whatever sliding_window says.
    """
    types = read.layer_types(L)
    if types is not None and not any(kind == "sliding_attention" for kind in types):
        read.optional_size("sliding_window", absent=None)
        return [None] * L
    if pattern is None and types is None:
        return [None] * L
    window = read.optional_size("sliding_window")
    if types is not None:
        return [window if kind == "sliding_attention" else None for kind in types]
    return [window if pattern(i) else None for i in range(L)]


def every_layer(read, L):
    """Mistral: one window for all layers, none if sliding_window is null or 0."""
    return windows(read, L, lambda i: True)


def all_attend(read, L):
    """MiniMax-M2: attn_type_list, which MiniMax-M1 has for its two kinds of layers, names softmax attention everywhere."""
    if any(mark != 1 for mark in read.numbers("attn_type_list", L) or ()):
        read.refuse("attn_type_list", "not_modelled")
    return [None] * L


def upper_layers(read, L):
    """Qwen2, Qwen3: layers from max_window_layers on, and only with use_sliding_window."""
    if not read.flag("use_sliding_window", absent=False):
        read.ignored("sliding_window", "max_window_layers", "layer_types")
        return [None] * L
    first = read.size("max_window_layers", absent=28, least=0)
    return windows(read, L, lambda i: i >= first)


def alternating_lower(read, L):
    """Qwen2-MoE: every other layer below max_window_layers, and only with use_sliding_window."""
    if not read.flag("use_sliding_window", absent=False):
        read.ignored("sliding_window", "max_window_layers", "layer_types")
        return [None] * L
    first = read.size("max_window_layers", absent=28, least=0)
    return windows(read, L, lambda i: i % 2 == 0 and i < first)


def every_layer_if_used(read, L):
    """Qwen3-MoE: all layers with use_sliding_window."""
    if not read.flag("use_sliding_window", absent=False):
        read.ignored("sliding_window", "max_window_layers", "layer_types")
        return [None] * L
    return windows(read, L, lambda i: True)


def without_rope(read, L):
    """SmolLM3: layers without RoPE, every no_rope_layer_interval-th, and only with use_sliding_window."""
    if not read.flag("use_sliding_window", absent=False):
        read.ignored("sliding_window", "layer_types", "no_rope_layers", "no_rope_layer_interval")
        return [None] * L
    marks, every = read.numbers("no_rope_layers", L), read.size("no_rope_layer_interval", absent=4, quiet=True)
    return windows(read, L, lambda i: not marks[i] if marks else (i + 1) % every == 0)


def last_layers(read, L):
    """dots.llm1: layers from max_window_layers on."""
    first = read.size("max_window_layers", absent=62, least=0, quiet=True)
    return windows(read, L, lambda i: i >= first)


def interleaved(period, key="sliding_window_pattern", first=False):
    """All but every period-th layer have a window; a key, where the family has one, says another period. first: count from 0."""

    def of(read, L):
        every = read.size(key, absent=period, quiet=True) if key and not read.letters(key, "LG") else period
        marks = read.letters(key, "LG") if key else None
        if marks:  # EXAONE 4 writes "LLLG"; its last layer sees all tokens
            return windows(read, L, lambda i: i != L - 1 and marks[i % len(marks)] == "L")
        return windows(read, L, lambda i: (i + (0 if first else 1)) % every != 0)

    return of


def chunks(read, L):
    """Llama 4: chunks of attention_chunk_size tokens, but every no_rope_layer_interval-th layer sees all."""
    size = read.optional_size("attention_chunk_size")
    types = read.layer_types(L, ("full_attention", "chunked_attention"))
    if types is not None:
        return [size if kind == "chunked_attention" else None for kind in types]
    marks = read.numbers("no_rope_layers", L)
    if marks:
        return [size if mark else None for mark in marks]
    every = read.size("no_rope_layer_interval", absent=4, quiet=True)
    return [size if (i + 1) % every else None for i in range(L)]


# --- experts


class Experts:
    """The experts of a family: under which keys it says what, and which layers have them.

    shared(read, f): joint width of the shared experts, 0 for none. where(read, L): which layers have experts, [bool].
    buffer: the router's correction bias is a buffer, in the checkpoint but no parameter; "parameter": it counts.
    """

    def __init__(
        self, count="num_experts", width="moe_intermediate_size", per_token="num_experts_per_tok", bias=False, router_bias=False,
        shared=None, shared_gate=False, where=None, gated=True, buffer=False,
    ):  # fmt: skip
        self.count, self.width, self.per_token, self.bias, self.router_bias = count, width, per_token, bias, router_bias
        self.shared, self.shared_gate, self.where, self.gated, self.buffer = shared, shared_gate, where, gated, buffer

    def layers(self, read, L):
        sparse = self.where(read, L) if self.where else [True] * L
        if self.buffer and any(sparse):
            read.note("buffers", value=sum(sparse) * read.size(self.count))
        return sparse

    def block(self, read, D, E=None):
        """(Mlp, tensors) of one MoE layer."""
        E, f = E or read.size(self.count), read.size(self.width)
        K = read.size(self.per_token, most=E)
        shared = self.shared(read, f) if self.shared else 0
        tensors = p.router(E, D, self.router_bias) + p.experts(E, D, f, self.bias, self.gated)
        if shared:
            made = p.gated_mlp(D, shared, part="shared_experts") if self.gated else p.plain_mlp(D, shared, False, "shared_experts")
            tensors += [p.Tensor("shared_expert." + t.name, t.shape, t.part) for t in made]
        if self.shared_gate:
            tensors += p.linear("shared_expert_gate", D, 1, "shared_experts")
        return Mlp("experts", intermediate_size=f, num_experts=E, num_experts_per_tok=K, shared_intermediate_size=shared), tensors


def sparse_step(read, L):
    """decoder_sparse_step: every n-th layer has experts, but those of mlp_only_layers."""
    step, dense = read.size("decoder_sparse_step", absent=1, quiet=True), read.indices("mlp_only_layers", L)
    return [i not in dense and (i + 1) % step == 0 for i in range(L)]


def after_dense(absent=0, key="first_k_dense_replace"):
    """mlp_layer_types, or a moe_layer_freq of one entry a layer, where the config has them; else all but the first k layers."""

    def of(read, L):
        named = mlp_types(read, L)
        if named is not None:
            return named
        pattern = read.pattern("moe_layer_freq", L)
        if pattern is not None:
            return pattern
        read.fixed("moe_layer_freq", 1)
        first = read.size(key, absent=absent, least=0, quiet=True)
        return [i >= first for i in range(L)]

    return of


def first_dense(read, L):
    """mlp_layer_types, or a moe_layer_freq of one entry a layer; else only the first layer is dense, and nothing may say otherwise."""
    named = mlp_types(read, L)
    if named is None:
        named = read.pattern("moe_layer_freq", L)
    if named is None:
        read.fixed("first_k_dense_replace", 1), read.fixed("moe_layer_freq", 1)
    return named if named is not None else [i > 0 for i in range(L)]


def mlp_types(read, L, dense="dense", sparse="sparse"):
    """[bool] from mlp_layer_types, None where the config has none."""
    kinds = read.words("mlp_layer_types", L)
    for kind in kinds or ():
        if kind not in (dense, sparse):
            read.refuse("mlp_layer_types", "not_a_choice", value=kind, known="%s, %s" % (dense, sparse))
    return None if kinds is None else [kind == sparse for kind in kinds]


def shared_experts(*keys, least=0):
    """n_shared_experts experts as one MLP of their joint width."""

    def of(read, f):
        named = [key for key in keys if read.has(key)] or keys[:1]
        many = read.size(named[0], absent=least, least=least, quiet=True)
        for key in keys:
            read.fixed(key, many)
        return f * many

    return of


def shared_width(key):
    """The joint width itself, 0 for none."""
    return lambda read, f: read.size(key, absent=0, least=0, quiet=True)


# --- the decoder


def decoder(
    read, kind="rms", norms=2, parallel=False, qkv_bias="attention_bias", o_bias=None, fused=False, qk_norm=None, gate=False,
    mlp="gated", mlp_bias=False, fused_mlp=False, head_bias=False, layer_windows=windows, sinks=False, moe=None, before=None, final=None,
    tied=False, more=None, even=False,
):  # fmt: skip
    """A decoder of equal layers: norms, grouped-query attention, norms, MLP or experts.

    qkv_bias, o_bias, mlp_bias: True, False, or the key that says it (o_bias None: as qkv_bias). norms: how many a layer
    has; parallel: attention and MLP share the one norm. qk_norm: "head" (over d) or "all" (over all heads). norms, parallel
    and qk_norm may be functions of the reader. gate: the attention's output has a gate, a projection of its own. tied: the
    default where the family has no class in transformers. more(read, D, a, d, f): further tensors of a layer. even: d is
    always D / a.
    """
    V, D, L = sizes(read)
    a, k, d = attention_heads(read, D)
    if even:
        read.equal("head_dim", d, "hidden_size / num_attention_heads", read.divided("hidden_size", D, "num_attention_heads", a))
    tied = read.tied(tied)
    with_qkv_bias, with_o_bias, with_mlp_bias = read.bias(qkv_bias), read.bias(qkv_bias if o_bias is None else o_bias), read.bias(mlp_bias)
    window = layer_windows(read, L)
    with_qk_norm = qk_norm(read) if callable(qk_norm) else qk_norm
    if isinstance(qk_norm, str):
        read.must("use_qk_norm", True)
    sparse = moe.layers(read, L) if moe else [False] * L
    f = None if all(sparse) else read.size("intermediate_size")
    parallel, norms = parallel(read) if callable(parallel) else parallel, norms(read) if callable(norms) else norms

    def layer_of(i):
        def make():
            tensors = p.grouped_query_attention(D, a, k, d, with_qkv_bias, with_o_bias, fused)
            if with_qk_norm:
                tensors += p.query_key_norm(d, d) if with_qk_norm == "head" else p.query_key_norm(a * d, k * d)
            if gate:
                tensors += p.linear("gate_proj", D, a * d, "attention")
            if sinks:
                tensors += [p.Tensor("sinks", (a,), "other")]
            if sparse[i]:
                ffn, rest = moe.block(read, D)
            elif mlp == "gated":
                ffn, rest = gated(read, D, f, with_mlp_bias, fused_mlp)
            else:
                ffn, rest = Mlp("plain", intermediate_size=f), p.plain_mlp(D, f, with_mlp_bias)
            for number in range(1 if parallel else norms):
                rest = rest + norm(kind, "norm_%d" % number, D)
            return Layer(mixer(a, d, k, window[i]), ffn, tensors + rest + (more(read, D, a, d, f) if more else []))

        return (window[i], sparse[i]), make

    rest = outside(V, D, tied, final or kind, read.bias(head_bias), before(read, D) if before else [])
    return Architecture(read.model_type, D, V, tied, rest, stack(L, layer_of))


def rule(build, **options):
    """A family's rule: a builder with its options."""

    def build_family(read):
        return build(read, **options)

    build_family.__doc__ = build.__doc__
    return build_family
