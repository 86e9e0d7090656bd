"""Chapter 4: what autograd keeps of one layer for its backward, tensor by tensor, by implementation.

A profile is the code of a block: the same model keeps 34 or 49 bytes per hidden element, depending on whose code runs.
All results are bytes on one rank. n = B S tokens, D hidden_size, a heads, k KV heads, d head_dim, f MLP width.

Profiles "llama", "qwen3" and "gpt2" are the blocks of transformers 5.24.0 under torch 2.13.0, as counted with
saved_tensors_hooks; "megatron" is the block of Korthikanti et al. 2022, section 4, and what newer blocks change in it.
A rank of a context-parallel group computes S / cp tokens of each sequence, and a pack of sequences is one sequence of
S tokens: in both cases give the S that the rank has.
"""

from .arguments import ArgumentError, count, quantity

PROFILES = ("llama", "qwen3", "gpt2", "megatron")
ATTENTION = ("sdpa", "eager")
EXPERTS = ("grouped_mm", "eager")

# (bytes of what a matrix multiplication gives, bytes of the residual stream): autocast multiplies in BF16 and adds in FP32.
PRECISIONS = {"bf16": (2, 2), "autocast": (2, 4), "fp32": (4, 4)}

# The Hugging Face profile of a model_type whose block keeps the same bytes. Each was counted in transformers 5.24.0: with
# both attentions and in all three precisions it gives what Llama's or Qwen3's block gives. Biases of the projections
# (Qwen2), scalar multipliers (Granite) and layers without rotary embedding (SmolLM3) keep nothing more.
BLOCKS = {
    **dict.fromkeys(("llama", "mistral", "ministral", "qwen2", "granite", "smollm3", "cwm", "internlm3", "mixtral"), "llama"),
    **dict.fromkeys(("qwen3", "qwen3_moe"), "qwen3"),
    "gpt2": "gpt2",
}

# A checkpoint also keeps the state of the random generators; only that of the CPU counts, and only where tensors live there.
CPU_RNG_STATE = 5056


def of(model_type):
    """profile = BLOCKS[model_type]: the Hugging Face profile of a model_type, counted on its code.

    Raises ArgumentError for a model_type whose block is other code (Gemma, Phi-3's fused projections, OLMo 2, …).
    """
    if model_type not in BLOCKS:
        raise ArgumentError("model_type", model_type, "its block has no activation profile; there is one for %s" % ", ".join(sorted(BLOCKS)))
    return BLOCKS[model_type]


def saved(
    layer, hidden_size, profile, attention, precision, B, S, dropout=0.0, tp=1, sequence_parallel=False, experts="grouped_mm", etp=None,
    mask=False, norm_topk_prob=False,
):  # fmt: skip
    """M_layer = sum of the parts: {part: bytes} that autograd keeps of one Layer for its backward.

    B sequences in the micro-batch, S tokens each on this rank. dropout: any rate above 0 adds masks. mask: a padding mask
    is given (Hugging Face, SDPA); a sliding window up to S long makes one too. norm_topk_prob: Qwen3's router normalizes
    its weights. tp, sequence_parallel and etp (tensor parallelism of the experts, tp if None) are for "megatron" alone.
    Parameters do not count; under autocast the BF16 copies of the linear weights do, as part weight_copies.
    Raises ArgumentError for what has no model. Source: see the module; sums to the byte in tests/test_activation_profiles.py.
    """
    _one_of("profile", profile, PROFILES)
    _one_of("attention", attention, ATTENTION)
    _one_of("precision", precision, PRECISIONS)
    _one_of("experts", experts, EXPERTS)
    if quantity("dropout", dropout) >= 1:
        raise ArgumentError("dropout", dropout, "must be from 0 to less than 1")
    if layer.mixer.kind != "grouped_query":
        raise ArgumentError("mixer", layer.mixer.kind, "activation profiles cover grouped-query attention alone")
    block = _Block(layer, hidden_size, attention, precision, B, S, dropout, mask)
    if profile == "megatron":
        parts = _megatron(block, count("tp", tp), sequence_parallel, count("etp", tp if etp is None else etp))
    else:
        if tp != 1 or sequence_parallel:
            raise ArgumentError("tp", tp, "profile %s is of one rank; tensor parallelism needs profile megatron" % profile)
        parts = _gpt2(block) if profile == "gpt2" else _gated(block, profile == "qwen3", experts, norm_topk_prob)
    if precision == "autocast":
        parts["weight_copies"] = 2 * sum(t.size for t in layer.tensors if t.part in ("attention", "mlp")) // (tp if profile == "megatron" else 1)
    return {part: size for part, size in parts.items() if size}


def checkpointed(B, S, hidden_size, precision):
    """M_checkpoint = r B S D: bytes of a layer that is recomputed in backward; its input is all that is kept.

    r = 2 in BF16, 4 under autocast and in FP32, where the residual stream is FP32. While it is recomputed the layer holds
    all of saved(). On a CPU 5,056 more for the generator's state. Source: Korthikanti et al. 2022, section 5; torch.utils.checkpoint.
    """
    _one_of("precision", precision, PRECISIONS)
    return PRECISIONS[precision][1] * count("B", B) * count("S", S) * count("hidden_size", hidden_size)


def outside(architecture, profile, precision, B, S, dropout=0.0, tp=1, sequence_parallel=False):
    """M_outside = final_norm + head_input + statistics + labels + rotary (+ positions, embedding_dropout): {part: bytes}.

    What autograd keeps outside the layers and the loss. Under autocast head_weight_copy is the head's BF16 copy, 2 V D.
    Megatron's first stage keeps embedding_dropout, n D / t, for every micro-batch in flight. Source: as saved().
    """
    _one_of("profile", profile, PROFILES)
    _one_of("precision", precision, PRECISIONS)
    B, S, tp = count("B", B), count("S", S), count("tp", tp)
    n, D, (e, r) = B * S, architecture.hidden_size, PRECISIONS[precision]
    u = _sequence_share(S, tp, sequence_parallel)
    if profile == "megatron":
        parts = {"final_norm": r * n * D // u, "head_input": e * n * D // u, "statistics": 8 * n // u, "labels": 8 * n}
    else:
        if tp != 1 or sequence_parallel:
            raise ArgumentError("tp", tp, "profile %s is of one rank; tensor parallelism needs profile megatron" % profile)
        if profile == "gpt2":
            parts = {"final_norm": r * n * D, "head_input": e * n * D, "statistics": 8 * n, "labels": 8 * n, "positions": 8 * S}
        else:
            d = max(layer.mixer.head_dim for layer, _ in architecture.layers)
            parts = {"final_norm": (4 + r) * n * D, "head_input": e * n * D, "statistics": 4 * n, "labels": 8 * n, "rotary": 2 * r * S * d}
    if dropout and profile in ("gpt2", "megatron"):
        parts["embedding_dropout"] = n * D // u
    if precision == "autocast":
        parts["head_weight_copy"] = 2 * architecture.vocab_size * D // tp
    return parts


# --- what the blocks share


class _Block:
    """The sizes of one block, under the letters of the formulas."""

    def __init__(self, layer, hidden_size, attention, precision, B, S, dropout, mask):
        mixer = layer.mixer
        self.layer, self.mlp, self.attention, self.precision, self.dropout = layer, layer.mlp, attention, precision, dropout
        self.B, self.S, self.D = count("B", B), count("S", S), count("hidden_size", hidden_size)
        self.n = self.B * self.S
        self.a, self.k, self.d = mixer.num_attention_heads, mixer.num_key_value_heads, mixer.head_dim
        self.e, self.r = PRECISIONS[precision]
        window = mixer.sizes.get("window")
        # A window as long as the sequence masks nothing, but transformers makes the mask all the same.
        self.masked = attention == "sdpa" and (mask or (window is not None and self.S >= window))

    @property
    def scores(self):
        """Elements of one score matrix."""
        return self.a * self.S * self.S * self.B

    def kernel(self):
        """What a fused attention keeps beside its inputs and its output: log-sum-exps, seeds, and the mask if there is one."""
        if self.attention == "eager":
            return {}
        if self.masked:
            # Only the memory-efficient kernel takes a mask; it pads the log-sum-exps to 32 rows, and the mask becomes a bias.
            return {"log_sum_exp": 4 * self.B * self.a * -(-self.S // 32) * 32, "seeds": 16, "mask": self.e * self.B * self.S * self.S}
        # Flash attention takes no FP32; the CPU's kernel, which does, keeps no seeds.
        return {"log_sum_exp": 4 * self.n * self.a, "seeds": 0 if self.precision == "fp32" else 24}

    def softmax(self, upcast):
        """What eager attention keeps of S x S elements: the probabilities, a copy in another type, dropout's mask and output."""
        if self.attention == "sdpa":
            return {}
        widened = 4 if upcast or self.precision != "bf16" else 2  # autocast computes the softmax in FP32
        if self.dropout:
            return {"scores": (widened + 1 + self.e) * self.scores}
        return {"scores": (widened + (self.e if widened != self.e else 0)) * self.scores}


# --- Hugging Face blocks


def _gated(x, with_query_key_norm, experts, norm_topk_prob):
    """Llama's and Qwen3's block: RMSNorm, attention with rotary embedding, RMSNorm, SwiGLU or experts."""
    if x.dropout:
        raise ArgumentError("dropout", x.dropout, "was not counted for this block; its models train without")
    n, a, k, d, e = x.n, x.a, x.k, x.d, x.e
    # Grouped query heads share K and V inside flash attention. Eager attention and the kernels that take a mask repeat them.
    keys = values = k
    if x.masked or x.attention == "eager":
        keys = values = a
        if x.attention == "eager" and k == 1 and x.B == 1:
            # One head broadcasts as a view of no bytes; a cast of the keys, as autocast makes, writes it out.
            values, keys = 1, a if x.precision == "autocast" else 1
    parts = {
        "input_norm": _rms_norm(x, 3),
        "query_key_value": e * n * d * (a + keys + values),
        **x.softmax(upcast=True),
        "attention_output": e * n * a * d,
        **x.kernel(),
        "post_norm": _rms_norm(x, 1 if x.mlp.kind == "experts" else 2),
        "statistics": 8 * n,
    }
    if with_query_key_norm:
        # Upcast of what the projection gave (in FP32 the output itself) and the normalized vector; one statistic per head.
        parts["query_key_norm"] = (4 + e) * n * d * (a + k)
        parts["statistics"] += 4 * n * (a + k)
    if x.mlp.kind == "gated":
        parts["mlp"] = 4 * e * n * x.mlp.intermediate_size  # gate, silu(gate), up, their product
    elif x.mlp.kind == "experts":
        parts.update(_routed(x, experts, not with_query_key_norm, norm_topk_prob))
    else:
        raise ArgumentError("mlp", x.mlp.kind, "this block has a gated MLP or experts")
    return parts


def _rms_norm(x, consumers):
    """(4 + 2 + 2) n D in BF16: the FP32 copy of the input, the normalized vector, the output that the projections read.

    Under autocast the input is FP32 already and every projection casts the output for itself.
    """
    outputs = 2 * consumers if x.precision == "autocast" else x.e
    return (4 + x.r + outputs) * x.n * x.D


def _routed(x, experts, mixtral, norm_topk_prob):
    """Mixtral's and Qwen3's experts: K rows for each token, whoever they go to, so balance does not matter."""
    E, K, f = x.mlp.num_experts, x.mlp.num_experts_per_tok, x.mlp.intermediate_size
    if x.mlp.shared_intermediate_size:
        raise ArgumentError("shared_intermediate_size", x.mlp.shared_intermediate_size, "a shared expert was not counted")
    if x.precision == "autocast":
        raise ArgumentError("precision", x.precision, "experts were counted in bf16 and fp32")
    rows = x.n * K
    weight = 4 if mixtral else x.e  # Mixtral keeps the router's weights in FP32
    normalized = mixtral or norm_topk_prob
    # Scores of all experts, the indices of the chosen ones and, if their weights are normalized, those and their sum; FP32 but for the indices.
    router = 4 * x.n * E + 8 * rows + (4 * x.n + 4 * rows if normalized else 0)
    if experts == "grouped_mm":
        # Sorted by expert: the input rows and the output rows; three permutations of 8 bytes, weights, where each expert ends.
        inputs, order = 2 * x.e * rows * x.D, (24 + weight) * rows + 4 * E
    else:
        # One expert after the other: input, output before and after weighting; two indices of 8 bytes, weights.
        inputs, order = 3 * x.e * rows * x.D, (16 + weight) * rows
    return {"router": router, "experts": inputs + 4 * x.e * rows * f, "dispatch": order}


def _gpt2(x):
    """GPT-2's block in transformers: LayerNorm, one fused projection, LayerNorm, an MLP whose GELU is written out."""
    if x.mlp.kind != "plain" or x.k != x.a:
        raise ArgumentError("mlp", x.mlp.kind, "GPT-2's block has a plain MLP and as many KV heads as heads")
    n, D, f, e, r = x.n, x.D, x.mlp.intermediate_size, x.e, x.r
    wide = 2 * e if x.precision == "autocast" else e  # pow and tanh run in FP32 under autocast
    return {
        "input_norm": (r + e) * n * D,
        "query_key_value": 3 * e * n * x.a * x.d,
        **x.softmax(upcast=False),
        "attention_output": e * n * x.a * x.d,
        **x.kernel(),
        "post_norm": (r + e) * n * D,
        # gelu_new: x for its cube, x / 2, tanh, 1 + tanh, and the product that the second projection reads.
        "mlp": (3 * wide + 2 * e) * n * f,
        "dropout_masks": 2 * n * D if x.dropout else 0,
        "statistics": 16 * n,
    }


# --- Megatron's block


def _megatron(x, t, sequence_parallel, etp):
    """Korthikanti et al. 2022, section 4.1 (equation 1: 34 sbh + 5 a s^2 b) and 4.2 (parallel), with what they leave out.

    Left out there: statistics of the norms, and of fused attention the log-sum-exps. Newer blocks, engineering estimates:
    K and V of k heads; a fused SwiGLU keeps gate, up and product; RMSNorm one statistic less; QK norm its input.
    """
    n, D, a, d, e, r = x.n, x.D, x.a, x.d, x.e, x.r
    if a % t:
        raise ArgumentError("tp", t, "must divide num_attention_heads = %d" % a)
    if x.k % t and t % x.k:
        raise ArgumentError("tp", t, "must divide num_key_value_heads = %d or be a multiple of it" % x.k)
    k_rank = max(x.k // t, 1)  # fewer KV heads than ranks: each rank has a copy of one
    u = _sequence_share(x.S, t, sequence_parallel)
    names = {tensor.name for tensor in x.layer.tensors}
    layer_norm = any(tensor.part == "norms" and tensor.name.endswith(".bias") for tensor in x.layer.tensors)
    parts = {
        "input_norm": (r + e) * n * D // u,
        "query_key_value": e * n * d * (a // t + 2 * k_rank),
        **{part: size // t for part, size in x.softmax(upcast=False).items()},
        "attention_output": e * n * a * d // t,
        **{part: size // (t if part == "log_sum_exp" else 1) for part, size in x.kernel().items()},
        "post_norm": (r + e) * n * D // u,
        "dropout_masks": 2 * n * D // u if x.dropout else 0,
        "statistics": (16 if layer_norm else 8) * n // u,
    }
    if "q_norm.weight" in names:
        parts["query_key_norm"] = e * n * d * (a // t + k_rank)
        parts["statistics"] += 4 * n * (a // t + k_rank)
    if x.mlp.kind == "experts":
        parts.update(_dispatched(x, t, u, etp))
    elif x.mlp.kind in ("plain", "gated"):
        f = x.mlp.intermediate_size
        if f % t:
            raise ArgumentError("tp", t, "must divide intermediate_size = %d" % f)
        # The activation's input and output; the input of a gated one is gate and up.
        parts["mlp"] = (2 if x.mlp.kind == "plain" else 3) * e * n * f // t
    else:
        raise ArgumentError("mlp", x.mlp.kind, "this block has an MLP or experts")
    return parts


def _dispatched(x, t, u, etp):
    """Experts in Megatron, an estimate: K rows per token, as many here as on any rank of the expert-parallel group.

    A rank sends away as many rows as it gets if routing is balanced; so ep does not divide them.
    """
    if t > 1 and u == 1:
        raise ArgumentError("sequence_parallel", False, "Megatron trains experts under tensor parallelism with sequence parallelism alone")
    if x.precision == "autocast":
        raise ArgumentError("precision", x.precision, "Megatron keeps BF16 weights of its own and does not use autocast")
    if etp not in (1, t):
        raise ArgumentError("etp", etp, "must be 1 or tp = %d" % t)
    E, K, f, shared = x.mlp.num_experts, x.mlp.num_experts_per_tok, x.mlp.intermediate_size, x.mlp.shared_intermediate_size
    rows = x.n * K
    parts = {
        "router": 4 * x.n * E // u,
        # Permuted input and unweighted output are gathered over etp; gate, up and product are split over it.
        "experts": x.e * (2 * rows * x.D * etp + 3 * rows * f) // u,
    }
    if shared:
        parts["shared_experts"] = 3 * x.e * x.n * shared // t
    return parts


def _sequence_share(S, t, sequence_parallel):
    """t under sequence parallelism, else 1: by how much the tensors between the matrix multiplications are split."""
    if not sequence_parallel:
        return 1
    if S % t:
        raise ArgumentError("tp", t, "sequence parallelism needs S = %d to be a multiple of it" % S)
    return t


def _one_of(name, value, allowed):
    if value not in allowed:
        raise ArgumentError(name, value, "must be one of %s" % ", ".join(allowed))
