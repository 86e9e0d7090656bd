"""Chapter 4: activations. Shapes first, then what the layers of a model keep under an implementation of them.

An implementation is a profile of byteledger.activation_profiles (None: the model's own Hugging Face block), an attention, a
precision and a dropout. All results are bytes on one rank, without parallelism inside the model.
"""

from . import activation_profiles, parameters
from .architecture import Layer, Mixer, Mlp
from .arguments import ArgumentError, count, finite, positive, quantity

# The parts of activation_profiles.saved() in groups that a table can show; what is in no group is "other".
GROUPS = {
    "norms": ("input_norm", "post_norm"),
    "attention": ("query_key_norm", "query_key_value", "attention_output", "log_sum_exp", "mask"),
    "scores": ("scores",),
    "mlp": ("mlp", "router", "experts", "dispatch", "shared_experts"),
}


def hidden_states_elements(B, S, D):
    """n = B x S x D: elements of one hidden-state tensor.

    B sequences in the micro-batch, S tokens each, D hidden size. Source: whitepaper 4.1.
    """
    return count("B", B) * count("S", S) * count("D", D)


def hidden_states(B, S, D, b):
    """M_hidden = B x S x D x b: bytes of one hidden-state tensor of shape B x S x D, b bytes per element.

    Per tensor: a layer keeps several of them for backward. Source: whitepaper 4.1.
    """
    return finite("M_hidden", hidden_states_elements(B, S, D) * quantity("b", b))


def layer_parts(architecture, profile, attention, precision, dropout, B, S):
    """M_part = the sum over the tensors of that part: {part: bytes} of the layer that keeps most.

    Raises ArgumentError as activation_profiles.saved() does.
    """
    profile = profile or activation_profiles.of(architecture.model_type)
    kinds = [
        activation_profiles.saved(layer, architecture.hidden_size, profile, attention, precision, B, S, dropout)
        for layer, _ in architecture.layers
    ]  # fmt: skip
    return max(kinds, key=lambda parts: sum(parts.values()))


def layer(architecture, profile, attention, precision, dropout, B, S):
    """M_layer = sum of its parts: bytes that one layer keeps for backward; of layers that differ, the one that keeps most."""
    return sum(layer_parts(architecture, profile, attention, precision, dropout, B, S).values())


def layer_group(architecture, profile, attention, precision, dropout, B, S, group):
    """M_group = sum of the parts in it: bytes that one layer keeps in its norms, attention, scores, mlp, or in "other"."""
    named = {part for parts in GROUPS.values() for part in parts}
    parts = layer_parts(architecture, profile, attention, precision, dropout, B, S)
    return sum(size for part, size in parts.items() if (part not in named if group == "other" else part in GROUPS[group]))


def over_hidden(M_layer, D, B, S):
    """c = M_layer / (B S D): bytes per element of the hidden state, the number that papers put before sbh."""
    return M_layer / positive("elements", hidden_states_elements(B, S, D))


def layers(architecture, profile, attention, precision, dropout, B, S):
    """M_layers = sum over the layers of M_layer: bytes that all layers keep at the end of forward, without checkpointing."""
    profile = profile or activation_profiles.of(architecture.model_type)
    return sum(
        times * sum(activation_profiles.saved(one, architecture.hidden_size, profile, attention, precision, B, S, dropout).values())
        for one, times in architecture.layers
    )


def checkpoints(architecture, precision, B, S):
    """M_checkpoints = L r B S D: bytes of the inputs of all layers, if each is checkpointed; r = 2 in BF16, else 4."""
    return architecture.num_hidden_layers * activation_profiles.checkpointed(B, S, architecture.hidden_size, precision)


def with_checkpointing(M_checkpoints, M_layer):
    """M_checkpointed = M_checkpoints + M_layer: the inputs of all layers, and the one layer that is being recomputed."""
    return finite("M_checkpointed", M_checkpoints + M_layer)


def freed(M_layers, M_checkpointed):
    """p = 100 (1 - M_checkpointed / M_layers): the percentage of the layers' activations that checkpointing each layer saves."""
    return 100 * (1 - M_checkpointed / positive("M_layers", M_layers))


def gpt_layer(D, a, S, tp=1, sequence_parallel=False, recompute="none"):
    """c = M_layer / (B S D): bytes per element of the hidden state that a rank keeps of one layer of Megatron's GPT block.

    Dropout, f = 4 D, a heads, attention that writes its scores out, BF16. recompute: "none", "selective" (the scores are not
    kept) or "full" (the layer's input alone). Statistics of the two norms are counted, 16 B S, which the paper leaves out.
    Source: Korthikanti et al. 2022, Table 2.
    """
    if recompute not in ("none", "selective", "full"):
        raise ArgumentError("recompute", recompute, "must be none, selective or full")
    if count("D", D) % count("a", a):
        raise ArgumentError("a", a, "must divide D = %d" % D)
    if recompute == "full":
        return over_hidden(activation_profiles.checkpointed(1, S, D, "bf16"), D, 1, S)
    mixer = Mixer("grouped_query", num_attention_heads=a, num_key_value_heads=a, head_dim=D // a, v_head_dim=D // a)
    block = Layer(mixer, Mlp("plain", intermediate_size=4 * D), parameters.layer_norm("norm", D))
    parts = activation_profiles.saved(block, D, "megatron", "eager", "bf16", 1, S, 0.1, tp, sequence_parallel)
    return over_hidden(sum(size for part, size in parts.items() if recompute == "none" or part != "scores"), D, 1, S)


def selective_saving(D, a, S):
    """p = 100 (1 - c_selective / c_none): the percentage of a layer's activations that selective recomputation saves.

    Of Megatron's GPT block, as gpt_layer(); the same under tensor and sequence parallelism. Source: Korthikanti et al. 2022, section 5.
    """
    return 100 * (1 - gpt_layer(D, a, S, recompute="selective") / gpt_layer(D, a, S))


def gpt_scores(D, a, S):
    """c = 5 a S / D: bytes per element of the hidden state that the score matrices of Megatron's GPT block take, with dropout.

    Source: Korthikanti et al. 2022, section 5.
    """
    return gpt_layer(D, a, S) - gpt_layer(D, a, S, recompute="selective")
