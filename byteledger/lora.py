"""LoRA and QLoRA: a frozen base, and two small matrices beside each matrix that is adapted.

Symbols: r rank of the adapters; d_in, d_out sides of an adapted matrix; L how many there are. Results are elements or bytes.
Source: Hu et al. 2021 (arXiv 2106.09685); Dettmers et al. 2023 (QLoRA); peft, tuners/lora.
"""

from . import ledger, parameters, weight_formats
from .arguments import ArgumentError, count, finite, quantity

ALL_LINEAR = "all-linear"
LINEAR_PARTS = ("attention", "state_space", "mlp", "shared_experts")

# Names of modules in transformers -> our names of the same matrices, where they differ.
NAMES = {
    "c_attn": ("qkv_proj",),
    "c_proj": ("o_proj", "down_proj"),
    "c_fc": ("up_proj",),
    "query_key_value": ("qkv_proj",),
    "Wqkv": ("qkv_proj",),
    "dense": ("o_proj",),
    "out_proj": ("o_proj",),
    "dense_h_to_4h": ("up_proj",),
    "dense_4h_to_h": ("down_proj",),
    "fc1": ("up_proj",),
    "fc2": ("down_proj",),
    "fc_in": ("up_proj",),
    "fc_out": ("down_proj",),
}


def is_linear(tensor):
    """c = 1 for the weight of a linear layer inside a layer of the model, else 0: what all-linear adapts.

    Not the head, not the embedding. Nor routers and routed experts: transformers 5 keeps those of a layer in bare
    parameters, which peft reaches only if told to.
    """
    return tensor.part in LINEAR_PARTS and len(tensor.shape) == 2 and weight_formats.is_converted(tensor, ())


def adapters(architecture, r, target_modules):
    """n = r (d_in + d_out) for each adapted matrix: [(Tensor, times)] of A [r, d_in] and B [d_out, r].

    target_modules: "all-linear", or names as peft takes them: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj,
    down_proj; c_attn, c_proj and c_fc in GPT-2; query_key_value in GPT-NeoX. A fused matrix has one pair. Raises
    ArgumentError for a name that no linear layer of the model has.
    """
    chosen = adapted(architecture, target_modules)
    return [(adapter, times) for layer, times in architecture.layers for adapter in of_layer(layer, r, chosen)]


def adapted(architecture, target_modules):
    """names = linear layers of the model that target_modules stands for: our names of their matrices, for of_layer.

    Raises ArgumentError for a name that no linear layer has, and where nothing is left to adapt.
    """
    linear = dict.fromkeys(_name(tensor) for layer, _ in architecture.layers for tensor in layer.tensors if is_linear(tensor))
    if target_modules == ALL_LINEAR:
        chosen = set(linear)
    else:
        chosen = set()
        for name in [target_modules] if isinstance(target_modules, str) else target_modules:
            found = {name} & linear.keys() or set(NAMES.get(name, ())) & linear.keys()
            if not found:
                raise ArgumentError("target_modules", name, "this model's linear layers are %s; or all-linear" % ", ".join(linear))
            chosen |= found
    if not chosen:
        raise ArgumentError("target_modules", target_modules, "the model has no linear layer to adapt")
    return chosen


def of_layer(layer, r, chosen):
    """n = r (d_in + d_out) for each matrix of one layer among the chosen names: [Tensor] of A [r, d_in] and B [d_out, r]."""
    r, pairs = count("r", r), []
    for tensor in layer.tensors:
        if is_linear(tensor) and _name(tensor) in chosen:
            d_out, d_in = tensor.shape
            for side, shape in (("A", (r, d_in)), ("B", (d_out, r))):
                pairs.append(parameters.Tensor("%s.lora_%s.weight" % (_name(tensor), side), shape, tensor.part))
    return pairs


def _name(tensor):
    return tensor.name.removesuffix(".weight")


def trainable(architecture, r, target_modules):
    """N_LoRA = sum of r (d_in + d_out): parameters that are trained."""
    return sum(times * tensor.size for tensor, times in adapters(architecture, r, target_modules))


def trainable_share(N_LoRA, N):
    """p = 100 N_LoRA / N: trained parameters as a percentage of the base."""
    return 100 * count("N_LoRA", N_LoRA) / count("N", N)


def base(architecture, bits, scales, keeps, b_kept=2):
    """M_base = M_weights in the format: bytes of the frozen base, which has no gradient and no optimizer state.

    In NF4 0.5625 B an element, with double quantization 0.515869140625 B; embedding, head, norms and routers in 16 bit.
    """
    return weight_formats.weights(architecture, bits, scales, keeps, b_kept)


def persistent(M_base, N_LoRA, b_w, b_g, b_master, b_m, b_v):
    """M_LoRA = M_base + N_LoRA (b_w + b_g + b_master + b_m + b_v): base and the adapters' states by a ledger.

    Without activations, which a frozen base does not spare: gradients still pass through every layer.
    """
    return finite("M_LoRA", quantity("M_base", M_base) + adapter_states(N_LoRA, b_w, b_g, b_master, b_m, b_v))


def of_recipe(architecture, r, target_modules, bits, scales, keeps, b_kept, b_w, b_g, b_master, b_m, b_v):
    """M_recipe = N (b_w + b_g + b_master + b_m + b_v) where r = 0 and all is trained, else M_LoRA: persistent bytes of a recipe, whole job."""
    states = dict(b_w=b_w, b_g=b_g, b_master=b_master, b_m=b_m, b_v=b_v)
    if r == 0:
        return ledger.persistent(parameters.total(architecture), **states)
    return persistent(base(architecture, bits, scales, keeps, b_kept), trainable(architecture, r, target_modules), **states)


def over_weights(M_recipe, N):
    """r = M_recipe / (2 N): persistent state as a multiple of the BF16 weights, which is what the six-times rule claims to know."""
    return finite("r", quantity("M_recipe", M_recipe) / (2 * count("N", N)))


def adapter_states(N_LoRA, b_w, b_g, b_master, b_m, b_v):
    """M_adapters = N_LoRA (b_w + b_g + b_master + b_m + b_v): the adapters themselves, their gradients and their optimizer states."""
    return ledger.persistent(N_LoRA, b_w, b_g, b_master, b_m, b_v)


def per_rank(M_base, M_adapters, d, shards_base):
    """M_rank = M_base / d + M_adapters / d sharded, or M_base + M_adapters replicated: bytes of one of d data-parallel ranks.

    Sharded is FSDP or ZeRO-3, which divide both; a layer is still gathered whole, in the format of the base, while it
    computes. Replicated is DDP. The division is the ideal one, without padding. Source: peft, docs on FSDP and DeepSpeed.
    """
    if not isinstance(shards_base, bool):
        raise ArgumentError("shards_base", shards_base, "must be true or false")
    return finite("M_rank", (quantity("M_base", M_base) + quantity("M_adapters", M_adapters)) / (count("d", d) if shards_base else 1))
