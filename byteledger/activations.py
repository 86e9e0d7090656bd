"""Chapter 4: activations. Shapes first, then what the layers of a model keep under an implementation of them.

An implementation is a profile of byteledger.activation_profiles (None: the model's own Hugging Face block), an attention, a
precision and a dropout. All results are bytes on one rank, without parallelism inside the model.
"""

from . import activation_profiles
from .arguments import count, finite, positive, quantity

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
