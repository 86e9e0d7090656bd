"""Chapter 6: what tensor, expert, pipeline and context parallelism leave to one rank, after Megatron-LM.

W = tp cp pp dp ranks. Dense parts are cut by tp, routed experts by ep and etp; layers are dealt out to pp stages; cp cuts
the sequence and no weight. The distributed optimizer then divides what a rank has by dp cp, and experts by their own degree.
Names are Megatron-LM's: tp tensor_model_parallel_size, cp context_parallel_size, pp pipeline_model_parallel_size,
ep expert_model_parallel_size, etp expert_tensor_parallel_size, virtual chunks of layers per stage.
"""

from .arguments import ArgumentError, count

# By the last part of a tensor's name, without .weight and .bias.
_COLUMN = ("q_proj", "k_proj", "v_proj", "qkv_proj", "q_b_proj", "kv_b_proj", "gate_proj", "up_proj", "gate_up_proj")
_ROW = ("o_proj", "down_proj")
_WHOLE = ("q_a_proj", "kv_a_proj_with_mqa", "weights_proj", "wk", "wq_b", "shared_expert_gate", "pooler", "token_type_embeddings")


class Degrees:
    """Degrees of parallelism of a job of W ranks, and the data-parallel degrees that are left.

    dp data-parallel degree, W / (tp cp pp). optimizer: dp cp, over which the distributed optimizer divides dense parts.
    experts: W / (ep etp pp), over which it divides routed experts.
    """

    def __init__(self, world_size, tp=1, cp=1, pp=1, ep=1, etp=1, virtual=1):
        self.world_size = count("world_size", world_size)
        self.tp, self.cp, self.pp, self.ep, self.etp = count("tp", tp), count("cp", cp), count("pp", pp), count("ep", ep), count("etp", etp)
        self.virtual = count("virtual", virtual)
        self.dp = data_parallel(world_size, tp, cp, pp)
        self.optimizer = self.dp * self.cp
        self.experts = expert_data_parallel(world_size, ep, etp, pp)


def _divides(name, degree, what, n):
    """n / degree, or ArgumentError with the arithmetic."""
    if n % degree:
        raise ArgumentError(name, degree, "must divide %s = %d; %d mod %d = %d are left over" % (what, n, n, degree, n % degree))
    return n // degree


def data_parallel(W, tp=1, cp=1, pp=1):
    """dp = W / (tp cp pp): how many ranks hold the same part of the model and of the sequence.

    Raises ArgumentError if the product does not divide W. Source: Megatron-LM, parallel_state.initialize_model_parallel.
    """
    W, product = count("world_size", W), count("tp", tp) * count("cp", cp) * count("pp", pp)
    if W % product:
        raise ArgumentError("world_size", W, "must be a multiple of tp cp pp = %d x %d x %d = %d; %d mod %d = %d" % (tp, cp, pp, product, W, product, W % product))
    return W // product


def expert_data_parallel(W, ep=1, etp=1, pp=1):
    """edp = W / (ep etp pp): how many ranks hold the same routed experts. Its own degree, whatever tp and cp are.

    Source: Megatron-LM, parallel_state.initialize_model_parallel.
    """
    W, product = count("world_size", W), count("ep", ep) * count("etp", etp) * count("pp", pp)
    if W % product:
        raise ArgumentError("world_size", W, "must be a multiple of ep etp pp = %d x %d x %d = %d; %d mod %d = %d" % (ep, etp, pp, product, W, product, W % product))
    return W // product


# --- tensor and expert parallelism


def padded_vocabulary(V, tp=1, make_vocab_size_divisible_by=1):
    """V_padded = ceil(V / (m tp)) m tp: rows of the embedding and of the head, so that every rank has as many.

    m make_vocab_size_divisible_by; Megatron-LM's default is 128. Source: Megatron-LM, tokenizer, _vocab_size_with_padding.
    """
    multiple = count("make_vocab_size_divisible_by", make_vocab_size_divisible_by) * count("tp", tp)
    return -(-count("V", V) // multiple) * multiple


def tensor_parallel(tensor, tp=1, ep=1, etp=1, make_vocab_size_divisible_by=1):
    """n_rank = n / tp (column, row, embedding, head), n / (ep etp) (routed experts), n (the rest): elements of a tensor on one rank.

    Column-parallel linears (query, key, value, gate, up) are cut with their biases by output, row-parallel ones (output,
    down) by input, their biases whole. Norms, routers, position embeddings and the down-projections of latent attention
    are whole on every rank; shared experts are cut by tp. The vocabulary is padded.
    Raises ArgumentError for a dimension that tp, ep or etp does not divide, and for state-space layers under tp > 1, which have no model here.
    Source: Shoeybi et al. 2019, section 3; Megatron-LM, core/tensor_parallel and core/transformer.
    """
    tp, ep, etp = count("tp", tp), count("ep", ep), count("etp", etp)
    shape, part = tensor.shape, tensor.part
    if part in ("embedding", "output_head"):
        rows = padded_vocabulary(shape[0], tp, make_vocab_size_divisible_by)
        return tensor.size // shape[0] * (rows // tp)
    if part == "experts":
        return _expert(tensor, ep, etp)
    if part in ("norms", "router", "position_embedding") or tp == 1:
        return tensor.size
    owner, _, kind = tensor.name.rpartition(".")
    name = (owner or tensor.name).rpartition(".")[2]
    if part != "state_space":
        if name in _WHOLE:
            return tensor.size
        if name in _COLUMN:
            _divides("tp", tp, "the outputs of " + tensor.name, shape[0] // 2 if name == "gate_up_proj" else shape[0])
            return tensor.size // tp
        if name in _ROW:
            if kind == "bias":
                return tensor.size
            _divides("tp", tp, "the inputs of " + tensor.name, shape[1])
            return tensor.size // tp
        if name == "sinks":  # one number per attention head
            return _divides("tp", tp, "the heads of " + tensor.name, shape[0])
    raise ArgumentError("tp", tp, "no model of how %s (%s) is cut" % (tensor.name, part))


def _expert(tensor, ep, etp):
    """Elements of a tensor of all routed experts, [E, ...], on one rank."""
    local = _divides("ep", ep, "num_experts", tensor.shape[0])
    row_parallel = "down_proj" in tensor.name
    if row_parallel and "bias" in tensor.name:
        return local * tensor.shape[1]
    width = tensor.shape[2] if row_parallel else tensor.shape[1]
    _divides("etp", etp, "the width of " + tensor.name, width // 2 if "gate_up" in tensor.name else width)
    return tensor.size // tensor.shape[0] * local // etp


def heads_per_rank(mixer, tp):
    """a_rank = a / tp, k_rank = k / tp: attention heads and KV heads of one rank, as a pair.

    Refused where tp does not divide both, so tp > k is refused. Megatron-LM asserted the same; newer versions let tp be a
    multiple of k, cut the rows of the fused QKV evenly, heads or not, and gather its activations, of which there is no
    model here. (Some inference engines replicate KV heads instead.) Latent attention has no KV heads.
    Source: Megatron-LM, core/transformer/attention.py.
    """
    tp = count("tp", tp)
    if mixer.kind not in ("grouped_query", "latent"):
        if tp > 1:
            raise ArgumentError("tp", tp, "no model of how a mixer of kind %s is cut" % mixer.kind)
        return None, None
    a = _divides("tp", tp, "num_attention_heads", mixer.num_attention_heads)
    if mixer.kind == "latent":
        return a, None
    return a, _divides("tp", tp, "num_key_value_heads", mixer.num_key_value_heads)


def sequence(S, cp=1):
    """S_rank = S / cp: tokens of a sequence on one rank; weights are not cut.

    Megatron-LM gives each rank an early and a late piece, so that the causal work is even: 2 cp must divide S.
    Source: Megatron-LM, docs, context_parallel.
    """
    S, cp = count("S", S), count("cp", cp)
    if cp > 1 and S % (2 * cp):
        raise ArgumentError("cp", cp, "2 cp must divide S = %d, as each rank takes two pieces; %d mod %d = %d" % (S, S, 2 * cp, S % (2 * cp)))
    return S // cp


# --- pipeline stages


def _stage(stage, pp):
    if isinstance(stage, bool) or not isinstance(stage, int) or not 0 <= stage < pp:
        raise ArgumentError("stage", stage, "must be a whole number from 0 to %d, as pp = %d" % (pp - 1, pp))
    return stage


def _chunks(num_hidden_layers, pp, virtual):
    """Layers of one chunk, L / (pp v)."""
    L, pp, virtual = count("num_hidden_layers", num_hidden_layers), count("pp", pp), count("virtual", virtual)
    if virtual > 1 and pp == 1:
        raise ArgumentError("virtual", virtual, "interleaving needs pp of 2 or more")
    if L % (pp * virtual):
        name, degree = ("pp", pp) if L % pp else ("virtual", virtual)
        raise ArgumentError(name, degree, "pp virtual = %d x %d = %d must divide num_hidden_layers = %d; %d mod %d = %d" % (pp, virtual, pp * virtual, L, L, pp * virtual, L % (pp * virtual)))
    return L // (pp * virtual)


def stage_layers(num_hidden_layers, pp=1, stage=0, virtual=1):
    """layers(s) = {c L / v + s L / (p v) + i : c < v, i < L / (p v)}: which layers, counted from 0, a stage has.

    L / p each: uneven stages are refused. v chunks of every stage lie apart when interleaved.
    Source: Narayanan et al. 2021, section 2.2; Megatron-LM, transformer_layer.get_transformer_layer_offset.
    """
    each = _chunks(num_hidden_layers, pp, virtual)
    _stage(stage, pp)
    return [(chunk * pp + stage) * each + i for chunk in range(virtual) for i in range(each)]


def stage_tensors(architecture, pp=1, stage=0, virtual=1):
    """tensors(s) = layers(s) + embedding (s = 0) + final norm and head (s = p - 1): (Tensor, times) pairs of one stage.

    A tied table is on both ends, as the head multiplies by it there; at pp = 1 once. An encoder's pooler is on the last.
    Source: Megatron-LM, core/models/gpt/gpt_model.py.
    """
    layers = [layer for layer, times in architecture.layers for _ in range(times)]
    repeats = {}  # a layer object stands for all layers that are alike
    for i in stage_layers(len(layers), pp, stage, virtual):
        layer, n = repeats.get(id(layers[i]), (layers[i], 0))
        repeats[id(layer)] = (layer, n + 1)
    held = [(tensor, n) for layer, n in repeats.values() for tensor in layer.tensors]
    for tensor in architecture.outside:
        first = tensor.part in ("embedding", "position_embedding") or tensor.name.startswith(("embedding_norm", "token_type"))
        tied = architecture.tied and tensor.part == "embedding" and stage == pp - 1
        if tied or stage == (0 if first else pp - 1):
            held.append((tensor, 1))
    return held


def rank_parameters(architecture, pp=1, stage=0, virtual=1, tp=1, ep=1, etp=1, make_vocab_size_divisible_by=1):
    """(N_dense, N_experts) = sum over the stage's tensors of n_rank: parameters on one rank, without and of routed experts.

    Kept apart because experts are divided over a data-parallel degree of their own. Raises ArgumentError for degrees
    that do not divide heads, widths, experts or layers. Source: Megatron-LM.
    """
    for layer, _ in architecture.layers:
        if tp > 1 and layer.mixer.kind != "none":
            heads_per_rank(layer.mixer, tp)
    if ep > 1 and not any(layer.mlp.kind == "experts" for layer, _ in architecture.layers):
        raise ArgumentError("ep", ep, "the model has no routed experts")
    dense = experts = 0
    for tensor, times in stage_tensors(architecture, pp, stage, virtual):
        n = times * tensor_parallel(tensor, tp, ep, etp, make_vocab_size_divisible_by)
        if tensor.part == "experts":
            experts += n
        else:
            dense += n
    return dense, experts


# --- micro-batches in flight


def chunks_in_flight(pp=1, stage=0, micro_batches=1, virtual=1):
    """n = min(m, p - s) (1F1B), min(m v, 2 (p - s - 1) + (v - 1) p + 1) (interleaved): chunk activations that a stage holds at most.

    A chunk is L / (p v) layers of one micro-batch. Interleaving needs m to be a multiple of p.
    Source: Narayanan et al. 2021, section 2.2; Megatron-LM, core/pipeline_parallel/schedules.py, get_pp_rank_microbatches.
    """
    pp, m, virtual = count("pp", pp), count("micro_batches", micro_batches), count("virtual", virtual)
    _stage(stage, pp)
    if virtual == 1:
        return min(m, pp - stage)
    if pp == 1:
        raise ArgumentError("virtual", virtual, "interleaving needs pp of 2 or more")
    _divides("pp", pp, "micro_batches", m)
    return min(m * virtual, 2 * (pp - stage - 1) + (virtual - 1) * pp + 1)


def in_flight(pp=1, stage=0, micro_batches=1, virtual=1):
    """n / v = min(m, p - s), or p (1 + (p - 1) / (p v)) on the first interleaved stage: whole-stage micro-batches held at once.

    Activations of a stage are this times those of one micro-batch through its L / p layers: the first stage of 1F1B
    holds as much as a model without pipeline. Source: Korthikanti et al. 2022, section 4.2.3.
    """
    chunks = chunks_in_flight(pp, stage, micro_batches, virtual)
    return chunks // virtual if chunks % virtual == 0 else chunks / virtual


def layers_in_flight(num_hidden_layers, pp=1, stage=0, micro_batches=1, virtual=1):
    """n L / (p v) = chunks in flight times layers of a chunk: layers' activations that a stage holds at most, an exact count."""
    return chunks_in_flight(pp, stage, micro_batches, virtual) * _chunks(num_hidden_layers, pp, virtual)
