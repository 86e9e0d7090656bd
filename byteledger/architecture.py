"""A model as the formulas see it: its layers, each a mixer and an MLP with their tensors, and what stands outside them."""


class Mixer:
    """What mixes the tokens of a layer. kind: one of KINDS; the sizes that its formulas need are attributes.

    grouped_query      num_attention_heads, num_key_value_heads, head_dim, v_head_dim, window (None: all tokens); where a
                       family has them, shares_cache (true: it uses an earlier layer's) and index_head_dim (one more key)
    latent             num_attention_heads, kv_lora_rank, qk_rope_head_dim, qk_nope_head_dim, v_head_dim, q_lora_rank, index_head_dim
    recurrent          state_elements, conv_elements (per sequence)
    hybrid             attention and recurrence side by side: the sizes of grouped_query and of recurrent
    compressed         head_dim, window, rate (that many tokens become one entry; None: the window alone), index_head_dim
    none               a layer that only has an MLP
    """

    KINDS = ("grouped_query", "latent", "recurrent", "hybrid", "compressed", "none")

    def __init__(self, kind, **sizes):
        if kind not in self.KINDS:
            raise ValueError(kind)
        self.kind, self.sizes = kind, sizes
        for name, value in sizes.items():
            setattr(self, name, value)


class Mlp:
    """What works on each token of a layer alone. kind: gated, plain, experts or none; sizes are attributes.

    gated, plain       intermediate_size
    experts            intermediate_size (of one expert), num_experts, num_experts_per_tok, shared_intermediate_size (0: none)
    """

    KINDS = ("gated", "plain", "experts", "none")

    def __init__(self, kind, **sizes):
        if kind not in self.KINDS:
            raise ValueError(kind)
        self.kind, self.sizes = kind, sizes
        for name, value in sizes.items():
            setattr(self, name, value)


class Layer:
    """One layer: its mixer, its MLP, and all its tensors."""

    def __init__(self, mixer, mlp, tensors):
        self.mixer, self.mlp, self.tensors = mixer, mlp, tensors


class Architecture:
    """A whole model.

    layers: [(Layer, how many of the same in a row)], from the input on. outside: the tensors outside the layers, a tied
    head not among them. causal: False for an encoder, which keeps no KV cache.
    """

    def __init__(self, model_type, hidden_size, vocab_size, tied, outside, layers, causal=True):
        self.model_type, self.hidden_size, self.vocab_size, self.tied = model_type, hidden_size, vocab_size, tied
        self.outside, self.layers, self.causal = outside, _merged(layers), causal

    def __str__(self):
        return "%s, D = %d, V = %d, L = %d" % (self.model_type, self.hidden_size, self.vocab_size, self.num_hidden_layers)

    @property
    def num_hidden_layers(self):
        return sum(times for _, times in self.layers)


def _merged(layers):
    """Equal neighbours as one entry. Layers are equal if they are the same object."""
    merged = []
    for layer, times in layers:
        if not times:
            continue
        if merged and merged[-1][0] is layer:
            merged[-1] = (layer, merged[-1][1] + times)
        else:
            merged.append((layer, times))
    return merged
