"""State-space and hybrid families: layers whose state does not grow with the context, alone or among attention layers."""

from .. import parameters as p
from ..architecture import Architecture, Layer, Mixer, Mlp
from .decoder import (
    Experts, after_dense, attention_heads, gated, mixer, outside, shared_experts, shared_width, sizes, sparse_step, stack, two_norms,
)  # fmt: skip
from .latent import latent_mixer, latent_sizes


def state(state_elements, conv_elements):
    return Mixer("recurrent", state_elements=state_elements, conv_elements=conv_elements)


def _untied(read):
    """A family whose class never ties its head, whatever the configuration says."""
    if read.tied(False):
        read.refuse("tie_word_embeddings", "not_modelled", value="true")
    return False


def mamba(read):
    """Mamba, Falcon-Mamba: L mixers with one RMSNorm each, no attention and no MLP."""
    V, D, L = sizes(read)
    tied = read.tied(read.model_type == "mamba")
    d_inner, N, K, R = _mamba_sizes(read, D, "state_size", "conv_kernel", "expand", "time_step_rank")
    d_inner = read.size("intermediate_size", absent=d_inner, quiet=True)  # goes before expand; Falcon-Mamba 7B has both
    conv_bias, bias = read.flag("use_conv_bias", absent=True), read.flag("use_bias", absent=False)
    tensors = p.mamba(D, d_inner, N, R, K, conv_bias, bias) + p.rms_norm("norm", D)
    layer = Layer(state(d_inner * N, d_inner * K), Mlp("none"), tensors)
    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), [(layer, L)])


def _mamba_sizes(read, D, state_size, kernel, expand, rank):
    """(I, N, K, R): channels, state size, convolution kernel and rank of dt; R "auto" is ceil(D / 16)."""
    d_inner = read.size(expand, absent=2, quiet=True) * D
    R = read.size(rank, absent=-(-D // 16), quiet=True, words=("auto",))
    return d_inner, read.size(state_size, absent=16, quiet=True), read.size(kernel, absent=4, quiet=True), R


def mamba2(read):
    """Mamba-2: L mixers with one RMSNorm each; heads of head_dim over expand D channels."""
    V, D, L = sizes(read)
    tied = read.tied(False)
    d_inner = read.size("expand", absent=2, quiet=True) * D
    H, size = read.size("num_heads"), read.size("head_dim")
    read.equal("num_heads x head_dim", H * size, "expand x hidden_size", d_inner)
    N, G = read.size("state_size", absent=128, quiet=True), read.size("n_groups", absent=8, quiet=True)
    K = read.size("conv_kernel", absent=4, quiet=True)
    conv_bias, bias = read.flag("use_conv_bias", absent=True), read.flag("use_bias", absent=False)
    tensors = p.mamba2(D, d_inner, H, N, G, K, conv_bias, bias) + p.rms_norm("norm", D)
    layer = Layer(state(H * size * N, (d_inner + 2 * G * N) * K), Mlp("none"), tensors)
    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), [(layer, L)])


def jamba(read):
    """Jamba: attention every attn_layer_period-th layer, Mamba else; experts every expert_layer_period-th layer, a gated MLP else."""
    V, D, L = sizes(read)
    a, k, d = attention_heads(read, D)
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
                of_layer, tensors = mixer(a, d, k), p.grouped_query_attention(D, a, k, d)
            else:
                of_layer, tensors = state(d_inner * N, d_inner * K), p.mamba(D, d_inner, N, R, K, conv_bias, bias, norms=True)
            mlp, more = experts.block(read, D) if sparse else gated(read, D, f)
            return Layer(of_layer, mlp, tensors + more + two_norms(D))

        return (attends, sparse), make

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(L, layer_of))


NEMOTRON_BLOCKS = {"M": "mamba", "-": "mlp", "*": "attention", "E": "moe"}


def nemotron_h(read):
    """Nemotron-H: one block a layer, Mamba-2, attention, MLP or experts, as hybrid_override_pattern says; a norm for each.

    Its MLP has no gate (squared ReLU). moe_latent_size: the routed experts work on a projection of that size.
    Source: transformers 5.24.0, modeling_nemotron_h.py.
    """
    V, D = read.size("vocab_size"), read.size("hidden_size")
    blocks = read.blocks("hybrid_override_pattern", "layers_block_type", NEMOTRON_BLOCKS)
    read.fixed("num_hidden_layers", len(blocks))
    tied = _untied(read)
    bias, mlp_bias = read.flag("use_bias", absent=False), read.flag("mlp_bias", absent=False)
    read.absent_or_false("attention_bias"), read.absent_or_false("mamba_proj_bias")
    if "moe" in blocks:
        read.note("buffers", value=blocks.count("moe") * read.size("n_routed_experts"))

    def make(kind):
        one = p.rms_norm("norm", D)
        if kind == "mamba":
            H, size, N, G = read.size("mamba_num_heads"), read.size("mamba_head_dim"), read.size("ssm_state_size"), read.size("n_groups")
            K = read.size("conv_kernel", absent=4, quiet=True)
            tensors = p.mamba2(D, H * size, H, N, G, K, read.flag("use_conv_bias", absent=True), bias)
            return Layer(state(H * size * N, (H * size + 2 * G * N) * K), Mlp("none"), tensors + one)
        if kind == "attention":
            a, k, d = attention_heads(read, D)
            return Layer(mixer(a, d, k), Mlp("none"), p.grouped_query_attention(D, a, k, d) + one)
        if kind == "mlp":
            f = read.size("intermediate_size")
            return Layer(Mixer("none"), Mlp("plain", intermediate_size=f), p.plain_mlp(D, f, mlp_bias) + one)
        E, f, shared = read.size("n_routed_experts"), read.size("moe_intermediate_size"), read.size("moe_shared_expert_intermediate_size")
        K, latent = read.size("num_experts_per_tok", most=E), read.optional_size("moe_latent_size", quiet=True)
        read.fixed("n_shared_experts", 1)
        tensors = p.router(E, D) + p.experts(E, latent or D, f, gated=False) + p.plain_mlp(D, shared, mlp_bias, "shared_experts")
        if latent:
            tensors += p.linear("fc1_latent_proj", D, latent, "other", mlp_bias) + p.linear("fc2_latent_proj", latent, D, "other", mlp_bias)
        mlp = Mlp("experts", intermediate_size=f, num_experts=E, num_experts_per_tok=K, shared_intermediate_size=shared)
        return Layer(Mixer("none"), mlp, tensors + one)

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(len(blocks), lambda i: (blocks[i], lambda: make(blocks[i]))))


def qwen3_next(read, moe=False):
    """Qwen3-Next, Qwen3.5: gated delta nets, and every full_attention_interval-th layer a gated attention; experts or a gated MLP."""
    V, D, L = sizes(read)
    a, k, d = attention_heads(read, D)
    tied, bias = read.tied(False), read.flag("attention_bias", absent=False)
    types = read.layer_types(L, ("full_attention", "linear_attention"))
    every = read.size("full_attention_interval", absent=4, quiet=True)
    attends = [kind == "full_attention" for kind in types] if types else [(i + 1) % every == 0 for i in range(L)]
    read.must("attn_output_gate", True)
    H_k, d_k = read.size("linear_num_key_heads", absent=16), read.size("linear_key_head_dim", absent=128)
    H_v, d_v = read.size("linear_num_value_heads", absent=32), read.size("linear_value_head_dim", absent=128)
    K = read.size("linear_conv_kernel_dim", absent=4, quiet=True)
    experts = Experts(shared=shared_width("shared_expert_intermediate_size"), shared_gate=True, where=sparse_step if moe == "step" else None)
    sparse = experts.layers(read, L) if moe else [False] * L
    if moe == "step" and read.size("num_experts", absent=1, least=0, quiet=True) == 0:
        sparse = [False] * L
    f = None if all(sparse) else read.size("intermediate_size")

    def layer_of(i):
        def make():
            if attends[i]:
                of_layer = mixer(a, d, k)
                tensors = p.grouped_query_attention(D, a, k, d, bias, bias, gated=True) + p.query_key_norm(d, d)
            else:
                of_layer = state(H_v * d_k * d_v, (2 * H_k * d_k + H_v * d_v) * K)
                tensors = p.gated_delta_net(D, H_k, d_k, H_v, d_v, K)
            mlp, more = experts.block(read, D) if sparse[i] else gated(read, D, f)
            return Layer(of_layer, mlp, tensors + more + two_norms(D))

        return (attends[i], sparse[i]), make

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(L, layer_of))


def olmo_hybrid(read):
    """OLMo Hybrid: three gated delta nets, then an attention with norms of query and key over all heads."""
    V, D, L = sizes(read)
    a, k, d = attention_heads(read, D)
    f, tied, bias = read.size("intermediate_size"), read.tied(False), read.flag("attention_bias", absent=False)
    types = read.layer_types(L, ("full_attention", "linear_attention"))
    if types is None:  # every fourth layer, and at least one
        types = ["full_attention" if i % 4 == 3 or (L < 4 and i == L - 1) else "linear_attention" for i in range(L)]
    H_k, H_v = read.size("linear_num_key_heads", absent=a, quiet=True), read.size("linear_num_value_heads", absent=a, quiet=True)
    d_k = read.size("linear_key_head_dim", absent=max(1, int(0.75 * D / H_k)), quiet=True)
    d_v, K = read.size("linear_value_head_dim", absent=2 * d_k, quiet=True), read.size("linear_conv_kernel_dim", absent=4, quiet=True)

    def layer_of(i):
        attends = types[i] == "full_attention"

        def make():
            tensors = p.gated_mlp(D, f) + two_norms(D)
            if attends:
                tensors += p.grouped_query_attention(D, a, k, d, bias, bias) + p.query_key_norm(a * d, k * d)
                return Layer(mixer(a, d, k), Mlp("gated", intermediate_size=f), tensors)
            of_layer = state(H_v * d_k * d_v, (2 * H_k * d_k + H_v * d_v) * K)
            return Layer(of_layer, Mlp("gated", intermediate_size=f), tensors + p.gated_delta_net(D, H_k, d_k, H_v, d_v, K))

        return attends, make

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(L, layer_of))


def _mamba2_of(read, D, d_inner):
    """(state mixer, tensors) of a Mamba-2 mixer whose fields begin with mamba_."""
    H, N, G = read.size("mamba_n_heads", absent=128), read.size("mamba_d_state", absent=256), read.size("mamba_n_groups", absent=1, quiet=True)
    K = read.size("mamba_d_conv", absent=4, quiet=True)
    size = read.size("mamba_d_head", absent=d_inner // H or 1, quiet=True, words=("auto",))
    read.equal("mamba_n_heads x mamba_d_head", H * size, "channels", d_inner)
    conv_bias, bias = read.flag("mamba_conv_bias", absent=True), read.flag("mamba_proj_bias", absent=False)
    norms = read.flag("mamba_rms_norm", absent=False) if read.model_type == "falcon_h1" else True
    tensors = p.mamba2(D, d_inner, H, N, G, K, conv_bias, bias, norms)
    return state(H * size * N, (d_inner + 2 * G * N) * K), tensors


def granite_hybrid(read):
    """Granite 4 hybrid, Bamba: Mamba-2 layers and some attention layers; a gated MLP, with experts beside it where there are any."""
    V, D, L = sizes(read)
    a, k, d = attention_heads(read, D)
    tied, bias = read.tied(False), read.flag("attention_bias", absent=False)
    granite = read.model_type == "granitemoehybrid"
    if granite:
        types = read.layer_types(L, ("full_attention", "linear_attention"), key="layers_block_type") or ["linear_attention"] * L
        f = read.size("shared_intermediate_size", absent=1024)
        E = read.size("num_local_experts", absent=8, least=0)
    else:
        listed = read.indices("attn_layer_indices", L)
        types, f, E = ["full_attention" if i in listed else "linear_attention" for i in range(L)], read.size("intermediate_size"), 0
    mlp_bias = False if granite else read.flag("mlp_bias", absent=False)
    experts = Experts("num_local_experts", "intermediate_size", shared=lambda read, width: f)
    d_inner = read.size("mamba_expand", absent=2, quiet=True) * D
    made = _mamba2_of(read, D, d_inner) if "linear_attention" in types else None

    def layer_of(i):
        attends = types[i] == "full_attention"

        def make():
            of_layer, tensors = (mixer(a, d, k), p.grouped_query_attention(D, a, k, d, bias, bias)) if attends else made
            mlp, more = experts.block(read, D) if E else gated(read, D, f, mlp_bias)
            return Layer(of_layer, mlp, tensors + more + two_norms(D))

        return attends, make

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(L, layer_of))


def falcon_h1(read):
    """Falcon-H1: attention and Mamba-2 side by side in every layer, then a gated MLP; mamba_d_ssm channels, or mamba_expand D."""
    V, D, L = sizes(read)
    a, k, d = attention_heads(read, D)
    f, tied = read.size("intermediate_size"), read.tied(False)
    bias, mlp_bias = read.flag("attention_bias", absent=False), read.flag("mlp_bias", absent=False)
    d_inner = read.optional_size("mamba_d_ssm", quiet=True) or read.size("mamba_expand", absent=2, quiet=True) * D
    recurrent, tensors = _mamba2_of(read, D, d_inner)
    tensors = [t for t in tensors if not t.name.startswith("out_proj")]
    tensors += p.linear("out_proj", d_inner, D, "state_space", read.flag("projectors_bias", absent=False))
    attention = mixer(a, d, k)
    both = Mixer("hybrid", **attention.sizes, **recurrent.sizes)
    mlp, more = gated(read, D, f, mlp_bias)
    layer = Layer(both, mlp, tensors + p.grouped_query_attention(D, a, k, d, bias, bias) + more + two_norms(D))
    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), [(layer, L)])


def recurrent_gemma(read):
    """RecurrentGemma: block_types repeated, recurrent blocks of lru_width and attention with a window; an MLP of intermediate_size / 2."""
    V, D, L = sizes(read)
    a = read.size("num_attention_heads")
    k, d = read.size("num_key_value_heads", absent=a), read.divided("hidden_size", D, "num_attention_heads", a)
    f, tied, bias = read.size("intermediate_size", least=2), read.tied(True), read.flag("attention_bias", absent=False)
    window, K = read.size("attention_window_size", absent=2048), read.size("conv1d_width", absent=4, quiet=True)
    W = read.size("lru_width", absent=D, quiet=True)
    read.fixed("head_dim", d), read.fixed("sliding_window", window)
    read.divided("lru_width", W, "num_attention_heads", a)
    kinds = read.words("block_types", None) or ["recurrent", "recurrent", "attention"]
    if any(kind not in ("recurrent", "attention") for kind in kinds):
        read.refuse("block_types", "not_a_choice", known="recurrent, attention")

    def layer_of(i):
        attends = kinds[i % len(kinds)] == "attention"

        def make():
            tensors = p.gated_mlp(D, f // 2, True) + two_norms(D)
            if attends:
                of_layer, more = mixer(a, d, k, window), p.grouped_query_attention(D, a, k, d, bias, True)
            else:
                of_layer, more = state(W, W * (K - 1)), p.gated_recurrence(D, W, a, K)
            return Layer(of_layer, Mlp("gated", intermediate_size=f // 2), tensors + more)

        return attends, make

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(L, layer_of))


def lfm2(read, moe=False):
    """LFM2: short gated convolutions, and attention where layer_types says; an MLP of 2/3 of its width, or experts.

    block_auto_adjust_ff_dim: f = 2 intermediate_size / 3, times block_ffn_dim_multiplier, up to a multiple of block_multiple_of.
    """
    V, D, L = sizes(read)
    a, k, d = attention_heads(read, D)
    tied, bias, K = _lfm2_tied(read), read.flag("conv_bias", absent=False), read.size("conv_L_cache", absent=3)
    types = read.layer_types(L, ("full_attention", "conv"))
    if types is None:
        if moe:
            read.refuse("layer_types", "missing")
        listed = read.indices("full_attn_idxs", L) if read.has("full_attn_idxs") else range(L)
        types = ["full_attention" if i in listed else "conv" for i in range(L)]
    f = read.size("block_ff_dim") if not moe and read.has("block_ff_dim") else read.size("intermediate_size")
    if not moe and read.flag("block_auto_adjust_ff_dim", absent=True):
        unit = read.size("block_multiple_of", absent=256, quiet=True)
        f = -(-int(read.ratio("block_ffn_dim_multiplier", absent=1.0) * int(2 * f / 3)) // unit) * unit
    experts = Experts(where=after_dense(2, "num_dense_layers"), buffer=moe and read.flag("use_expert_bias", absent=True))
    sparse = experts.layers(read, L) if moe else [False] * L

    def layer_of(i):
        attends = types[i] == "full_attention"

        def make():
            if attends:
                of_layer, tensors = mixer(a, d, k), p.grouped_query_attention(D, a, k, d) + p.query_key_norm(d, d)
            else:
                of_layer, tensors = state(0, D * K), p.short_convolution(D, K, bias)
            mlp, more = experts.block(read, D) if sparse[i] else gated(read, D, f)
            return Layer(of_layer, mlp, tensors + more + two_norms(D))

        return (attends, sparse[i]), make

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(L, layer_of))


def _lfm2_tied(read):
    return read.flag("tie_embedding", absent=True) if read.has("tie_embedding") else read.tied(True)


def minimax(read):
    """MiniMax-Text-01, MiniMax-M1: lightning attention and, where layer_types or attn_type_list says, softmax attention; experts."""
    V, D, L = sizes(read)
    a, k, d = attention_heads(read, D)
    tied = read.tied(False)
    types, marks = read.layer_types(L, ("full_attention", "linear_attention")), read.numbers("attn_type_list", L)
    attends = [t == "full_attention" for t in types] if types else [bool(m) for m in marks] if marks else [bool((i + 1) % 2) for i in range(L)]
    experts = Experts("num_local_experts", "intermediate_size")
    read.fixed("shared_intermediate_size", 0)
    read.optional_size("sliding_window", absent=None)

    def layer_of(i):
        def make():
            if attends[i]:
                of_layer, tensors = mixer(a, d, k), p.grouped_query_attention(D, a, k, d)
            else:
                of_layer, tensors = state(a * d * d, 0), p.lightning_attention(D, a, d)
            mlp, more = experts.block(read, D)
            return Layer(of_layer, mlp, tensors + more + two_norms(D))

        return attends[i], make

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(L, layer_of))


def kimi_linear(read):
    """Kimi Linear: Kimi delta attention, and latent attention where linear_attn_config says; dense layers first, then experts."""
    V, D, L = sizes(read)
    latent = latent_sizes(read)
    tied, bias = _untied(read), read.flag("attention_bias", absent=False)
    inner = read.inside("linear_attn_config")
    H = inner.size("num_heads", absent=read.size("linear_num_heads", absent=32, quiet=True), quiet=True)
    d = inner.size("head_dim", absent=read.size("linear_head_dim", absent=128, quiet=True), quiet=True)
    K = inner.size("short_conv_kernel_size", absent=read.size("linear_conv_kernel_dim", absent=4, quiet=True), quiet=True)
    types = read.layer_types(L, ("full_attention", "linear_attention"))
    attends = [kind == "full_attention" for kind in types] if types else _kimi_layers(inner, L)
    experts = Experts("num_experts", shared=shared_experts("n_shared_experts", "num_shared_experts"), where=after_dense(1), buffer=True)
    sparse = experts.layers(read, L)
    f = None if all(sparse) else read.size("intermediate_size")

    def layer_of(i):
        def make():
            if attends[i]:
                of_layer, tensors = latent_mixer(latent), p.latent_attention(D, bias=bias, **latent)
            else:
                of_layer, tensors = state(H * d * d, 3 * H * d * K), p.kimi_delta_attention(D, H, d, K)
            mlp, more = experts.block(read, D) if sparse[i] else gated(read, D, f)
            return Layer(of_layer, mlp, tensors + more + two_norms(D))

        return (attends[i], sparse[i]), make

    return Architecture(read.model_type, D, V, tied, outside(V, D, tied), stack(L, layer_of))


def _kimi_layers(inner, L):
    """Which layers attend: full_attn_layers and kda_layers count from 1 and name every layer once."""
    if not (inner.has("full_attn_layers") and inner.has("kda_layers")):
        return [bool(i and i % 4 == 0) for i in range(L)]
    full, linear = inner.indices("full_attn_layers", L), inner.indices("kda_layers", L)
    if sorted(full + linear) != list(range(1, L + 1)):
        inner.refuse("full_attn_layers", "not_a_list", k=L)
    return [i + 1 in full for i in range(L)]
