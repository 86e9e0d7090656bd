"""How many parameters a model has: every tensor of every block, from the fields of its architecture.

Names are those of Hugging Face's config.json. A formula gives the tensors of one block, each with its shape and the part
of the count that it belongs to; a count is the sum over them. All results are counts of elements, not bytes.

D hidden_size, f intermediate_size, a num_attention_heads, k num_key_value_heads, d head_dim, V vocab_size, E experts.
Source of the shapes, where nothing else is said: transformers 5.24.0, the modeling file of the family.
"""

from .arguments import ArgumentError, count

# The parts of a count, in the order in which they are shown.
PARTS = (
    "embedding", "position_embedding", "attention", "state_space", "mlp", "experts", "shared_experts", "router", "norms",
    "biases", "output_head", "other",
)  # fmt: skip


class Tensor:
    """One weight tensor: its name inside its block, its shape, and the part of the count that it belongs to."""

    __slots__ = ("name", "shape", "part", "size")

    def __init__(self, name, shape, part):
        if part not in PARTS:
            raise ArgumentError("part", part, "must be one of %s" % ", ".join(PARTS))
        self.name, self.shape, self.part = name, tuple(count(name, n) for n in shape), part
        self.size = 1
        for n in self.shape:
            self.size *= n

    def __repr__(self):
        return "Tensor(%r, %r, %r)" % (self.name, self.shape, self.part)


def size(tensors):
    """n = sum of the products of the shapes: elements of a list of tensors."""
    return sum(tensor.size for tensor in tensors)


# --- pieces of a block


def linear(name, n_in, n_out, part, bias=False):
    """n = n_out n_in (+ n_out): a linear layer, weight [n_out, n_in] and a bias [n_out].

    The bias counts as part "biases", but that of an expert or of the output head stays with its owner.
    """
    tensors = [Tensor(name + ".weight", (n_out, n_in), part)]
    if bias:
        tensors.append(Tensor(name + ".bias", (n_out,), part if part in ("experts", "shared_experts", "router", "output_head") else "biases"))
    return tensors


def rms_norm(name, n):
    """n = n: the scale of an RMSNorm over n features."""
    return [Tensor(name + ".weight", (n,), "norms")]


def layer_norm(name, n, bias=True):
    """n = 2 n (n without bias): scale and shift of a LayerNorm over n features."""
    return rms_norm(name, n) + ([Tensor(name + ".bias", (n,), "norms")] if bias else [])


def embedding(V, D):
    """n = V D: the input embedding, weight [V, D]."""
    return [Tensor("embed_tokens.weight", (V, D), "embedding")]


def position_embedding(P, D):
    """n = P D: a learned embedding of P positions."""
    return [Tensor("embed_positions.weight", (P, D), "position_embedding")]


def output_head(V, D, bias=False):
    """n = V D (+ V): an output head of its own. A head tied to the embedding is no tensor: it is in memory once."""
    return linear("lm_head", D, V, "output_head", bias)


# --- attention


def heads(num_attention_heads, num_key_value_heads):
    """a mod k = 0: every KV head serves the same number of attention heads. Returns (a, k); raises ArgumentError else."""
    a, k = count("num_attention_heads", num_attention_heads), count("num_key_value_heads", num_key_value_heads)
    if a % k:
        raise ArgumentError("num_key_value_heads", k, "must divide num_attention_heads = %d" % a)
    return a, k


def grouped_query_attention(D, a, k, d, qkv_bias=False, o_bias=False, fused=False, gated=False):
    """n = 2 D a d + 2 D k d (+ (a + 2 k) d + D biases): query [a d, D], key and value [k d, D], output [D, a d].

    k = a is multi-head attention, k = 1 multi-query attention. gated: the query projection is twice as wide and holds
    the output's gate (Qwen3-Next). fused: one tensor for query, key and value, the same count.
    Source: Ainslie et al. 2023, section 2; transformers, modeling_llama.py, modeling_qwen2.py, modeling_qwen3_next.py.
    """
    a, k = heads(a, k)
    if fused:
        return linear("qkv_proj", D, (a + 2 * k) * d, "attention", qkv_bias) + linear("o_proj", a * d, D, "attention", o_bias)
    return (
        linear("q_proj", D, a * d * (2 if gated else 1), "attention", qkv_bias)
        + linear("k_proj", D, k * d, "attention", qkv_bias)
        + linear("v_proj", D, k * d, "attention", qkv_bias)
        + linear("o_proj", a * d, D, "attention", o_bias)
    )


def query_key_norm(n_query, n_key):
    """n = n_query + n_key: the RMSNorms of query and key, over one head (Qwen3) or over all of them (OLMo 2)."""
    return rms_norm("q_norm", n_query) + rms_norm("k_norm", n_key)


def latent_attention(D, a, q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, bias=False):
    """n = D r_q + r_q + r_q a (d_n + d_r) + D (r + d_r) + r + r a (d_n + d_v) + a d_v D: multi-head latent attention.

    r_q q_lora_rank (without it the query is one matrix, D a (d_n + d_r)), r kv_lora_rank, d_n, d_r, d_v the head sizes
    qk_nope, qk_rope and v. The r_q and r are norms. bias: on the two down-projections and the output.
    Source: DeepSeek-AI 2024 (arXiv 2405.04434), section 2.1; transformers, modeling_deepseek_v3.py.
    """
    d_query = qk_nope_head_dim + qk_rope_head_dim
    if q_lora_rank:
        query = linear("q_a_proj", D, q_lora_rank, "attention", bias) + rms_norm("q_a_layernorm", q_lora_rank)
        query += linear("q_b_proj", q_lora_rank, a * d_query, "attention")
    else:
        query = linear("q_proj", D, a * d_query, "attention")
    return (
        query
        + linear("kv_a_proj_with_mqa", D, kv_lora_rank + qk_rope_head_dim, "attention", bias)
        + rms_norm("kv_a_layernorm", kv_lora_rank)
        + linear("kv_b_proj", kv_lora_rank, a * (qk_nope_head_dim + v_head_dim), "attention")
        + linear("o_proj", a * v_head_dim, D, "attention", bias)
    )


# --- state-space layers and linear attention


def mamba(D, d_inner, N, R, K, conv_bias=True, bias=False, norms=False):
    """n = 2 D I + I K + I (R + 2 N) + R I + I + I N + I + I D (+ biases): one Mamba mixer, I = d_inner channels.

    N state size, R time_step_rank, K conv kernel; in order: input, convolution, x_proj, dt_proj with its bias, A_log, D,
    output. norms: Jamba's RMSNorms of dt, B and C. Source: Gu & Dao 2023; transformers, modeling_mamba.py.
    """
    tensors = linear("in_proj", D, 2 * d_inner, "state_space", bias)
    tensors += [Tensor("conv1d.weight", (d_inner, 1, K), "state_space")] + ([Tensor("conv1d.bias", (d_inner,), "biases")] if conv_bias else [])
    tensors += linear("x_proj", d_inner, R + 2 * N, "state_space") + linear("dt_proj", R, d_inner, "state_space", True)
    tensors += [Tensor("A_log", (d_inner, N), "state_space"), Tensor("D", (d_inner,), "state_space")]
    tensors += linear("out_proj", d_inner, D, "state_space", bias)
    return tensors + (rms_norm("dt_layernorm", R) + rms_norm("b_layernorm", N) + rms_norm("c_layernorm", N) if norms else [])


def mamba2(D, d_inner, H, N, G, K, conv_bias=True, bias=False, norm=True):
    """n = D (2 I + 2 G N + H) + (I + 2 G N) K + 3 H + I + I D (+ biases): one Mamba-2 mixer.

    I = d_inner channels in H heads, N state size, G groups, K conv kernel; 3 H is dt_bias, A_log and D, the lone I the
    gated norm. Source: Dao & Gu 2024; transformers, modeling_mamba2.py.
    """
    channels = d_inner + 2 * G * N
    tensors = linear("in_proj", D, d_inner + channels + H, "state_space", bias)
    tensors += [Tensor("conv1d.weight", (channels, 1, K), "state_space")] + ([Tensor("conv1d.bias", (channels,), "biases")] if conv_bias else [])
    tensors += [Tensor("dt_bias", (H,), "biases"), Tensor("A_log", (H,), "state_space"), Tensor("D", (H,), "state_space")]
    return tensors + (rms_norm("norm", d_inner) if norm else []) + linear("out_proj", d_inner, D, "state_space", bias)


def gated_delta_net(D, H_k, d_k, H_v, d_v, K):
    """n = D (2 H_k d_k + 2 H_v d_v + 2 H_v) + (2 H_k d_k + H_v d_v) K + 2 H_v + d_v + H_v d_v D: one gated delta net.

    H_k key heads of d_k, H_v value heads of d_v, K conv kernel; the 2 H_v are dt_bias and A_log, d_v the gated norm.
    Source: Yang et al. 2024 (arXiv 2412.06464); transformers, modeling_qwen3_next.py.
    """
    key, value = H_k * d_k, H_v * d_v
    return (
        linear("in_proj_qkvz", D, 2 * key + 2 * value, "state_space")
        + linear("in_proj_ba", D, 2 * H_v, "state_space")
        + [Tensor("conv1d.weight", (2 * key + value, 1, K), "state_space")]
        + [Tensor("dt_bias", (H_v,), "biases"), Tensor("A_log", (H_v,), "state_space")]
        + rms_norm("norm", d_v)
        + linear("out_proj", value, D, "state_space")
    )


def kimi_delta_attention(D, H, d, K):
    """n = 3 D H d + 3 H d K + H d + H + 2 (D d + d H d) + D H + d + H d D: one Kimi delta attention.

    H heads of d, K conv kernel; in order: query, key and value, their convolution, dt_bias, A_log, forget gate and output
    gate of rank d, the beta of each head, the gated norm, output. Source: transformers, modeling_kimi_linear.py.
    """
    tensors = []
    for name in ("q_proj", "k_proj", "v_proj"):
        tensors += linear(name, D, H * d, "state_space")
    tensors += [Tensor("conv1d.weight", (3 * H * d, 1, K), "state_space")]
    tensors += [Tensor("dt_bias", (H * d,), "biases"), Tensor("A_log", (H,), "state_space")]
    for name in ("f", "g"):
        tensors += linear(name + "_a_proj", D, d, "state_space") + linear(name + "_b_proj", d, H * d, "state_space")
    return tensors + linear("b_proj", D, H, "state_space") + rms_norm("o_norm", d) + linear("o_proj", H * d, D, "state_space")


def lightning_attention(D, a, d):
    """n = 5 D a d + a d: query, key, value, output and its gate, and a norm. Source: transformers, modeling_minimax.py."""
    return (
        linear("qkv_proj", D, 3 * a * d, "state_space")
        + linear("output_gate", D, a * d, "state_space")
        + rms_norm("norm", a * d)
        + linear("out_proj", a * d, D, "state_space")
    )


def short_convolution(D, K, bias=False):
    """n = 3 D D + D K + D D (+ 5 D biases): LFM2's gated convolution of kernel K. Source: transformers, modeling_lfm2.py."""
    tensors = linear("in_proj", D, 3 * D, "state_space", bias) + [Tensor("conv.weight", (D, 1, K), "state_space")]
    return tensors + ([Tensor("conv.bias", (D,), "biases")] if bias else []) + linear("out_proj", D, D, "state_space", bias)


def gated_recurrence(D, W, H, K):
    """n = 3 D W + 2 W + D + W K + W + W + 2 (W W / H + W): Griffin's recurrent block of width W with H blocks of gates.

    In order: two inputs and an output with biases, the convolution of kernel K with its bias, the recurrence, its two
    block-diagonal gates. Source: De et al. 2024; transformers, modeling_recurrent_gemma.py.
    """
    tensors = linear("linear_y", D, W, "state_space", True) + linear("linear_x", D, W, "state_space", True)
    tensors += linear("linear_out", W, D, "state_space", True) + [Tensor("recurrent_param", (W,), "state_space")]
    tensors += [Tensor("conv_1d.weight", (W, 1, K), "state_space"), Tensor("conv_1d.bias", (W,), "biases")]
    for name in ("input_gate", "recurrent_gate"):
        tensors += [Tensor(name + "_weight", (H, W // H, W // H), "state_space"), Tensor(name + "_bias", (H, W // H), "biases")]
    return tensors


# --- MLP and experts


def gated_mlp(D, f, bias=False, part="mlp", fused=False):
    """n = 3 D f (+ 2 f + D): a gated MLP, its gate and up projections [f, D] and its down projection [D, f].

    fused: gate and up are one tensor, the same count. Source: Shazeer 2020; transformers, modeling_llama.py.
    """
    inward = [("gate_up_proj", 2 * f)] if fused else [("gate_proj", f), ("up_proj", f)]
    tensors = []
    for name, width in inward:
        tensors += linear(name, D, width, part, bias)
    return tensors + linear("down_proj", f, D, part, bias)


def plain_mlp(D, f, bias=True, part="mlp"):
    """n = 2 D f (+ f + D): an MLP without a gate, up [f, D] and down [D, f]. Source: transformers, modeling_gpt2.py."""
    return linear("up_proj", D, f, part, bias) + linear("down_proj", f, D, part, bias)


def experts(E, D, f, bias=False, gated=True):
    """n = 3 E D f (+ E (2 f + D)): E routed experts of width f, gate and up [E, 2 f, D], down [E, D, f].

    Without a gate, 2 E D f. Every expert is in memory, however few of them a token uses.
    Source: transformers, modeling_mixtral.py, modeling_gpt_oss.py.
    """
    inward = 2 * f if gated else f
    tensors = [Tensor("experts.gate_up_proj", (E, inward, D), "experts"), Tensor("experts.down_proj", (E, D, f), "experts")]
    if bias:
        tensors += [Tensor("experts.gate_up_proj_bias", (E, inward), "experts"), Tensor("experts.down_proj_bias", (E, D), "experts")]
    return tensors


def router(E, D, bias=False):
    """n = E D (+ E): the router's scores of E experts."""
    return linear("router", D, E, "router", bias)


# --- the whole model


def by_part(architecture):
    """N_part = sum over the model's tensors of that part: {part: elements}, only parts that the model has."""
    totals = dict.fromkeys(PARTS, 0)
    for tensor in architecture.outside:
        totals[tensor.part] += tensor.size
    for layer, times in architecture.layers:
        for tensor in layer.tensors:
            totals[tensor.part] += times * tensor.size
    return {part: n for part, n in totals.items() if n}


def total(architecture):
    """N = embedding + head + sum over layers (attention + MLP or experts + norms + biases) + final norm: parameters.

    Tied weights count once: they are in memory once. Buffers (rotary frequencies, a router's correction bias) are no
    parameters. Source: transformers 5.24.0, the model built on the meta device and counted.
    """
    return size(architecture.outside) + sum(times * size(layer.tensors) for layer, times in architecture.layers)


def active(architecture):
    """N_active = N - sum over MoE layers n_experts (E - K) / E: parameters that one token goes through.

    K of the E routed experts work on a token; embeddings are counted as whole, as total does.
    """
    idle = 0
    for layer, times in architecture.layers:
        routed = size([tensor for tensor in layer.tensors if tensor.part == "experts"])
        if routed:
            idle += times * routed // layer.mlp.num_experts * (layer.mlp.num_experts - layer.mlp.num_experts_per_tok)
    return total(architecture) - idle


def non_embedding(architecture):
    """N_body = N - embedding - position_embedding - output_head: parameters without what grows with the vocabulary."""
    parts = by_part(architecture)
    return total(architecture) - sum(parts.get(part, 0) for part in ("embedding", "position_embedding", "output_head"))


def total_to_active(N, N_active):
    """r = N / N_active: how many parameters are in memory for each that works on a token; 1 for a dense model."""
    return count("N", N) / count("N_active", N_active)


def vocabulary_share(architecture):
    """p = 100 (embedding + output head) / N: the percentage of the parameters that the vocabulary takes."""
    parts = by_part(architecture)
    return 100 * (parts.get("embedding", 0) + parts.get("output_head", 0)) / total(architecture)


def untied(architecture):
    """N_untied = N + V D where the head is tied, else N: what the count would be with a head of its own."""
    return total(architecture) + (size(output_head(architecture.vocab_size, architecture.hidden_size)) if architecture.tied else 0)
