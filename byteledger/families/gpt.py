"""GPT and what came of it: families with a plain MLP, LayerNorms and mostly biases."""

from .. import parameters as p
from ..architecture import Architecture, Layer, Mlp
from .decoder import mixer, multi_head, norm, outside, sizes


def learned_positions(offset=0):
    return lambda read, D: p.position_embedding(read.size("max_position_embeddings") + offset, D)


def _inner_width(read, D):
    """f from n_inner, the one name that transformers looks at here; null means 4 D."""
    f = read.size("n_inner", absent=4 * D, quiet=True)
    read.fixed("intermediate_size", f)
    return f


def _biased_block(D, a, d, f, k=None, qkv_bias=True, fused=True):
    """GPT-2's layer: attention and a plain MLP with biases, two LayerNorms."""
    tensors = p.grouped_query_attention(D, a, k or a, d, qkv_bias, True, fused=fused) + p.plain_mlp(D, f)
    return Layer(mixer(a, d, k), Mlp("plain", intermediate_size=f), tensors + p.layer_norm("ln_1", D) + p.layer_norm("ln_2", D))


def gpt2(read, final="layer"):
    """GPT-2: learned positions, LayerNorm, biases everywhere, one fused QKV matrix; n_inner null means 4 D.

    gpt_bigcode has one KV head with multi_query. The first GPT has no final norm.
    """
    V, D, L = sizes(read)
    a, d = multi_head(read, D)
    f = _inner_width(read, D)
    k = 1 if read.model_type == "gpt_bigcode" and read.flag("multi_query", absent=True) else a
    tied = read.tied(True)
    read.absent_or_false("add_cross_attention")
    rest = outside(V, D, tied, final, before=learned_positions()(read, D))
    return Architecture(read.model_type, D, V, tied, rest, [(_biased_block(D, a, d, f, k), L)])


def gpt_neo(read):
    """GPT-Neo: as GPT-2, but query, key and value without bias. Its local layers mask, they keep all tokens."""
    V, D, L = sizes(read)
    a, d = multi_head(read, D)
    f, tied = read.size("intermediate_size", absent=4 * D, quiet=True), read.tied(True)
    read.attention_kinds(L)
    rest = outside(V, D, tied, "layer", before=learned_positions()(read, D))
    return Architecture(read.model_type, D, V, tied, rest, [(_biased_block(D, a, d, f, qkv_bias=False, fused=False), L)])


def gptj(read):
    """GPT-J, CodeGen: one LayerNorm for attention and MLP in parallel, no bias in attention, a head with bias."""
    V, D, L = sizes(read)
    a, d = multi_head(read, D)
    f, tied = _inner_width(read, D), read.tied(False)
    tensors = p.grouped_query_attention(D, a, a, d, fused=read.model_type == "codegen") + p.plain_mlp(D, f) + p.layer_norm("ln_1", D)
    layer = Layer(mixer(a, d), Mlp("plain", intermediate_size=f), tensors)
    return Architecture(read.model_type, D, V, tied, outside(V, D, tied, "layer", head_bias=True), [(layer, L)])


def gpt_neox(read):
    """GPT-NeoX, Pythia: biases everywhere but in the head, two LayerNorms even where attention and MLP are parallel."""
    V, D, L = sizes(read)
    a, d = multi_head(read, D)
    f, tied, bias = read.size("intermediate_size"), read.tied(False), read.flag("attention_bias", absent=True)
    tensors = p.grouped_query_attention(D, a, a, d, bias, bias, fused=True) + p.plain_mlp(D, f)
    tensors += p.layer_norm("ln_1", D) + p.layer_norm("ln_2", D)
    layer = Layer(mixer(a, d), Mlp("plain", intermediate_size=f), tensors)
    return Architecture(read.model_type, D, V, tied, outside(V, D, tied, "layer"), [(layer, L)])


def opt(read):
    """OPT: positions + 2 learned; word_embed_proj_dim other than D adds two projections; a final norm only in pre-norm."""
    V, D, L = sizes(read)
    a, d = multi_head(read, D)
    f, tied = read.size("ffn_dim"), read.tied(True)
    read.fixed("intermediate_size", f)
    narrow = read.size("word_embed_proj_dim", absent=D, quiet=True)
    bias = read.flag("enable_bias", absent=True)
    kind = "layer" if read.flag("layer_norm_elementwise_affine", absent=True) else "none"
    final = read.flag("do_layer_norm_before", absent=True) and not read.flag("_remove_final_layer_norm", absent=False)
    tensors = p.grouped_query_attention(D, a, a, d, bias, bias) + p.plain_mlp(D, f, bias) + norm(kind, "ln_1", D) + norm(kind, "ln_2", D)
    layer = Layer(mixer(a, d), Mlp("plain", intermediate_size=f), tensors)
    rest = p.embedding(V, narrow) + p.position_embedding(read.size("max_position_embeddings") + 2, D)
    if narrow != D:
        rest += p.linear("project_in", narrow, D, "other") + p.linear("project_out", D, narrow, "other")
    rest += norm(kind, "norm", D) if final else []
    rest += [] if tied else p.output_head(V, narrow)
    return Architecture(read.model_type, D, V, tied, rest, [(layer, L)])


def biogpt(read, positions=None):
    """BioGPT: learned positions + 2, as OPT; XGLM: computed positions. LayerNorms and biases everywhere."""
    V, D, L = sizes(read)
    a, d = multi_head(read, D)
    f, tied = read.size("intermediate_size"), read.tied(True)
    read.absent_or_false("add_cross_attention")
    rest = outside(V, D, tied, "layer", before=positions(read, D) if positions else [])
    return Architecture(read.model_type, D, V, tied, rest, [(_biased_block(D, a, d, f, fused=False), L)])


def ctrl(read):
    """CTRL: computed positions, biases everywhere, also in the head."""
    V, D, L = sizes(read)
    a, d = multi_head(read, D)
    f, tied = read.size("intermediate_size"), read.tied(True)
    rest = outside(V, D, tied, "layer", head_bias=True)
    return Architecture(read.model_type, D, V, tied, rest, [(_biased_block(D, a, d, f, fused=False), L)])


def bloom(read):
    """BLOOM: a norm after the embedding, biases everywhere, no positions (ALiBi), MLP of 4 D."""
    V, D, L = sizes(read)
    a, d = multi_head(read, D)
    read.fixed("intermediate_size", 4 * D)
    tied = read.tied(True)
    rest = outside(V, D, tied, "layer", before=p.layer_norm("embedding_norm", D))
    return Architecture(read.model_type, D, V, tied, rest, [(_biased_block(D, a, d, 4 * D), L)])


def falcon(read):
    """Falcon: with new_decoder_architecture k = num_kv_heads, else 1 if multi_query, else a; MLP of ffn_hidden_size or 4 D.

    The new architecture has two norms before its parallel block, or one; the old parallel one a single norm. multi_query,
    which 40B and 180B carry as true, has no say in the new architecture.
    """
    V, D, L = sizes(read)
    a = read.size("num_attention_heads")
    d = read.divided("hidden_size", D, "num_attention_heads", a)
    # Before transformers took Falcon in, the 40B model was RefinedWeb and always of the new architecture.
    new = read.flag("new_decoder_architecture", absent=read.model_type == "RefinedWeb")
    multi_query = read.flag("multi_query", absent=True)
    if new:
        k = read.size("num_key_value_heads", absent=a)
        if multi_query and k != 1:
            read.note("falcon_multi_query", key="multi_query", k=k)
    else:
        k = 1 if multi_query else a
        read.overruled("num_key_value_heads", k, "falcon_kv_heads")
    f = read.size("ffn_hidden_size", absent=4 * D, quiet=True)
    read.fixed("intermediate_size", f)
    bias, parallel, tied = read.flag("bias", absent=False), read.flag("parallel_attn", absent=True), read.tied(True)
    stated = read.optional_size("num_ln_in_parallel_attn", quiet=True)
    norms = (stated or (2 if new else 1)) if parallel else 2
    if norms > 2 or stated and not parallel:
        read.refuse("num_ln_in_parallel_attn", "not_modelled")
    tensors = p.grouped_query_attention(D, a, k, d, bias, bias, fused=True) + p.plain_mlp(D, f, bias)
    for number in range(norms):
        tensors += p.layer_norm("ln_%d" % number, D)
    layer = Layer(mixer(a, d, k), Mlp("plain", intermediate_size=f), tensors)
    return Architecture(read.model_type, D, V, tied, outside(V, D, tied, "layer"), [(layer, L)])


def mpt(read):
    """MPT: no biases, LayerNorms without shift, ALiBi; MLP of 4 D.

    The original code also builds what transformers' class does not: biases without no_bias, another expansion_ratio,
    fewer KV heads, a table of positions without alibi. Refused, as the two would disagree.
    """
    V, D, L = sizes(read)
    a = read.size("num_attention_heads")
    d = read.divided("hidden_size", D, "num_attention_heads", a)
    inner = read.inside("attn_config")
    inner.choice("attn_type", ("multihead_attention",), absent="multihead_attention")
    inner.fixed("num_key_value_heads", a)
    inner.absent_or_false("qk_ln"), inner.absent_or_false("qk_gn"), inner.absent_or_false("rope")
    inner.must("alibi", True)
    read.must("no_bias", True)
    read.fixed("expansion_ratio", 4)
    tied = read.tied(True)
    tensors = p.grouped_query_attention(D, a, a, d, fused=True) + p.plain_mlp(D, 4 * D, False)
    tensors += norm("scale", "norm_1", D) + norm("scale", "norm_2", D)
    layer = Layer(mixer(a, d), Mlp("plain", intermediate_size=4 * D), tensors)
    return Architecture(read.model_type, D, V, tied, outside(V, D, tied, "scale"), [(layer, L)])


def phi(read, parallel=True):
    """Phi-1, Phi-1.5, Phi-2: one LayerNorm for attention and MLP in parallel, biases everywhere, a head with bias.

    Persimmon: two norms, a fused QKV matrix, norms of query and key, no bias in the head.
    """
    V, D, L = sizes(read)
    a = read.size("num_attention_heads")
    d = read.divided("hidden_size", D, "num_attention_heads", a)
    k = read.size("num_key_value_heads", absent=a, quiet=True) if parallel else a
    # The code that came with the first checkpoints, phi-msft, takes 4 D where n_inner is null.
    f = read.size("intermediate_size", absent=4 * D, quiet=True) if read.model_type == "phi-msft" else read.size("intermediate_size")
    tied = read.tied(False)
    read.fixed("head_dim", d)
    tensors = p.grouped_query_attention(D, a, k, d, True, True, fused=not parallel) + p.plain_mlp(D, f) + p.layer_norm("ln", D)
    if not parallel:
        tensors += p.layer_norm("ln_2", D)
    if read.flag("qk_layernorm", absent=False):
        tensors += p.layer_norm("q_norm", d) + p.layer_norm("k_norm", d)
    layer = Layer(mixer(a, d, k), Mlp("plain", intermediate_size=f), tensors)
    return Architecture(read.model_type, D, V, tied, outside(V, D, tied, "layer", head_bias=parallel), [(layer, L)])


def bert(read):
    """BERT, as AutoModel builds it: three embeddings and a norm, the encoder, a pooler, no language-model head."""
    V, D, L = sizes(read)
    a, d = multi_head(read, D)
    f, P, T = read.size("intermediate_size"), read.size("max_position_embeddings"), read.size("type_vocab_size", absent=2, quiet=True)
    for key in ("is_decoder", "add_cross_attention"):
        read.absent_or_false(key)
    read.fixed("embedding_size", D)
    rest = p.embedding(V, D) + p.position_embedding(P, D) + [p.Tensor("token_type_embeddings.weight", (T, D), "other")]
    rest += p.layer_norm("embedding_norm", D) + p.linear("pooler", D, D, "other", True)
    read.ignored("tie_word_embeddings")
    read.note("bert_scope")
    return Architecture(read.model_type, D, V, True, rest, [(_biased_block(D, a, d, f, fused=False), L)], causal=False)
