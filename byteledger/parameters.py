"""How many parameters a model has, from the fields of its architecture. Dense decoders with a gated MLP for now.

Names are those of Hugging Face's config.json. All results are counts of elements, not bytes.
"""

from .arguments import ArgumentError, count

# What a family adds to the plain Llama layer. Source: the family's modeling file in transformers 5.24.0.
QKV_BIAS = ("qwen2",)
QK_NORM = ("qwen3",)
FAMILIES = ("llama", "mistral", "qwen2", "qwen3")


def attention(model_type, hidden_size, num_attention_heads, num_key_value_heads, head_dim):
    """n = 2 D a d + 2 D k d (+ (a + 2 k) d biases in Qwen2) (+ 2 d norms in Qwen3): parameters of one attention.

    D hidden_size, a num_attention_heads, k num_key_value_heads, d head_dim. Source: transformers, modeling_llama.py,
    modeling_qwen2.py, modeling_qwen3.py.
    """
    if model_type not in FAMILIES:
        raise ArgumentError("model_type", model_type, "no rule for this family; known are %s" % ", ".join(FAMILIES))
    D, a, k, d = count("hidden_size", hidden_size), count("num_attention_heads", num_attention_heads), count("num_key_value_heads", num_key_value_heads), count("head_dim", head_dim)
    if a % k:
        raise ArgumentError("num_key_value_heads", k, "must divide num_attention_heads = %d" % a)
    matrices = 2 * D * a * d + 2 * D * k * d
    return matrices + ((a + 2 * k) * d if model_type in QKV_BIAS else 0) + (2 * d if model_type in QK_NORM else 0)


def gated_mlp(hidden_size, intermediate_size):
    """n = 3 D f: parameters of a gated MLP, its gate, up and down projections. f is intermediate_size.

    Source: transformers, modeling_llama.py.
    """
    return 3 * count("hidden_size", hidden_size) * count("intermediate_size", intermediate_size)


def dense_decoder(
    model_type,
    num_hidden_layers,
    hidden_size,
    intermediate_size,
    num_attention_heads,
    num_key_value_heads,
    vocab_size,
    tie_word_embeddings,
    head_dim=None,
):
    """N = V D (+ V D head) + L (attention + 3 D f + 2 D) + D: parameters of a dense decoder, a tied head counted once.

    head_dim is hidden_size / num_attention_heads where the configuration gives none; then it must divide.
    Source: transformers 5.24.0, the model built on the meta device and counted.
    """
    V, L, D = count("vocab_size", vocab_size), count("num_hidden_layers", num_hidden_layers), count("hidden_size", hidden_size)
    if head_dim is None:
        if D % count("num_attention_heads", num_attention_heads):
            raise ArgumentError("hidden_size", D, "num_attention_heads = %d does not divide it; give head_dim" % num_attention_heads)
        head_dim = D // num_attention_heads
    layer = attention(model_type, D, num_attention_heads, num_key_value_heads, head_dim) + gated_mlp(D, intermediate_size) + 2 * D
    return V * D * (1 if tie_word_embeddings else 2) + L * layer + D
