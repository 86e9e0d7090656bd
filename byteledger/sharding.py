"""Chapter 6: what one rank really stores, as PyTorch, DeepSpeed and Megatron-LM cut the tensors.

`distributed.persistent` divides by d and stops there. Libraries cut whole rows, whole tensors or padded flat buffers, so
a real shard is larger, and its ranks are not alike. Everything here counts elements unless it says bytes; `sizes` are
the elements of the tensors in the order of `model.parameters()`, `d` the ranks that a state is divided over.
"""

from . import distributed
from .arguments import ArgumentError, count, finite, quantity


def _rank(rank, d):
    if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < d:
        raise ArgumentError("rank", rank, "must be a whole number from 0 to %d, as d = %d" % (d - 1, d))
    return rank


def _sizes(sizes):
    return [count("sizes", n) for n in sizes]


def _rows(shape, d):
    """(rows that each rank stores, rows in all, elements of a row)"""
    if not shape:
        raise ArgumentError("shape", shape, "FSDP2 shards dimension 0, and a scalar has none")
    n0, row = count("shape", shape[0]), 1
    for n in shape[1:]:
        row *= count("shape", n)
    return -(-n0 // count("d", d)), n0, row


# --- FSDP2: fully_shard


def fsdp2_storage(shape, d):
    """n_stored = ceil(n_0 / d) n_1 n_2 ...: elements that every rank stores of one tensor, padding included.

    Parameters and gradients are stored so, on the last ranks too, which may hold no row. With n_0 < d each rank stores
    one row: of 8 fused experts over 64 ranks one whole expert. Source: torch 2.13.0, torch/distributed/fsdp/_fully_shard.
    """
    rows, _, row = _rows(shape, d)
    return rows * row


def fsdp2_held(shape, d, rank):
    """n_held = min(c, max(0, n_0 - c rank)) n_1 n_2 ..., c = ceil(n_0 / d): elements of the rows that a rank really has.

    AdamW's moments have this size, without padding. Over all ranks the sum is the tensor. Source: torch.chunk on dim 0.
    """
    rows, n0, row = _rows(shape, d)
    return min(rows, max(0, n0 - rows * _rank(rank, d))) * row


def fsdp2_stored(tensors, d):
    """N_stored = sum over tensors of ceil(n_0 / d) n / n_0: elements of weights, and of gradients, that each rank stores.

    tensors: (Tensor, times) pairs, as Architecture.layers and Architecture.outside give them.
    """
    return sum(times * fsdp2_storage(tensor.shape, d) for tensor, times in tensors)


def fsdp2_moments(tensors, d, rank):
    """N_held = sum over tensors of the rank's rows: elements of each moment on one rank."""
    return sum(times * fsdp2_held(tensor.shape, d, rank) for tensor, times in tensors)


def fsdp2_to_ideal(tensors, d):
    """r = N_stored d / N: how many times the ideal share every rank stores; 1 without padding.

    Mixtral-8x7B at d = 64 stores 7.76 times N / d, as 8 experts cannot be cut into 64. Source: measured, torch 2.13.0.
    """
    N = sum(times * tensor.size for tensor, times in tensors)
    return fsdp2_stored(tensors, d) * d / N


def fsdp2_persistent(tensors, b_w, b_g, b_os, d, rank=0):
    """M_rank = (b_w + b_g) N_stored + b_os N_held: bytes of weights and gradients, padded, and of the optimizer's real rows.

    b_os: bytes per parameter of all that the optimizer keeps. Rank 0 has the most. Source: torch 2.13.0, measured.
    """
    stored = (quantity("b_w", b_w) + quantity("b_g", b_g)) * fsdp2_stored(tensors, d)
    return finite("M_rank", stored + quantity("b_os", b_os) * fsdp2_moments(tensors, d, rank))


# --- FSDP1: FullyShardedDataParallel


def _flat_positions(sizes, b):
    """([(first, last) of each parameter], elements) of a flat parameter before it is padded to its ranks.

    With use_orig_params each parameter starts at a multiple of 16 bytes, so that its view is aligned.
    """
    aligned = 16 // count("b", b) if b < 16 else 1
    positions, end = [], 0
    for n in _sizes(sizes):
        start = -(-end // aligned) * aligned
        end = start + n
        positions.append((start, end))
    return positions, end


def fsdp1_flat(sizes, d, b):
    """n_flat = ceil(n_aligned / d): elements that every rank stores of one unit's flat parameter.

    n_aligned is the sum of the sizes, each rounded up to 16 bytes at b bytes per element (use_orig_params=True), and the
    last one padded to a multiple of d. Gradients have the same size. Source: torch 2.13.0, torch/distributed/fsdp/_flat_param.py.
    """
    return -(-_flat_positions(sizes, b)[1] // count("d", d))


def fsdp1_pieces(sizes, d, rank, b):
    """n_i = |[start_i, end_i) and [rank n_flat, (rank + 1) n_flat)|: elements of each parameter that lie on a rank.

    Parameters with none are left out: they have no optimizer state there. Their sum is what AdamW's moments cover.
    """
    positions, end = _flat_positions(sizes, b)
    shard = -(-end // count("d", d))
    low = shard * _rank(rank, d)
    pieces = [min(end, low + shard) - max(start, low) for start, end in positions]
    return [n for n in pieces if n > 0]


# --- ZeroRedundancyOptimizer and DDP


def zero_redundancy(sizes, d):
    """n_rank = sum of the tensors that fall to it: whole tensors, the largest first, each to the rank with the least.

    Returns for each rank the list of its tensors' sizes. Not N / d: a rank cannot have less than the largest tensor.
    Weights and gradients stay whole on every rank. Source: torch 2.13.0, ZeroRedundancyOptimizer._partition_parameters.
    """
    ranks = [[] for _ in range(count("d", d))]
    totals = [0] * len(ranks)
    for n in sorted(_sizes(sizes), reverse=True):
        least = totals.index(min(totals))
        ranks[least].append(n)
        totals[least] += n
    return ranks


def ddp_gradients(N, b_g, gradient_as_bucket_view=False):
    """M_g = 2 b_g N, or b_g N with gradient_as_bucket_view: bytes of DDP's gradients on each rank.

    By default DDP keeps a copy of all gradients in its buckets. Source: torch 2.13.0, DistributedDataParallel, measured.
    """
    return finite("M_g", count("N", N) * quantity("b_g", b_g) * (1 if gradient_as_bucket_view else 2))


# --- DeepSpeed as it stores

STAGES = (0, 1, 2, 3)


def _stage(stage):
    if isinstance(stage, bool) or stage not in STAGES:
        raise ArgumentError("stage", stage, "must be one of 0, 1, 2, 3")
    return stage


def deepspeed_flat(sizes, d):
    """n_flat = ceil(N / (2 d)) 2 d: elements of the flat buffer of stages 1 and 2, padded to its alignment.

    d equal partitions, the start of each aligned to 2 elements of 2 bytes. Source: DeepSpeed 0.19.8, stage_1_and_2.py.
    """
    aligned = 2 * count("d", d)
    return -(-sum(_sizes(sizes)) // aligned) * aligned


def deepspeed_stage3_shard(sizes, d):
    """n_shard = sum of ceil(n_i / d): elements that each rank stores under stage 3, which pads each parameter to d.

    Source: DeepSpeed 0.19.8, partition_parameters.py.
    """
    d = count("d", d)
    return sum(-(-n // d) for n in _sizes(sizes))


def deepspeed_weights(sizes, d, stage, b):
    """M_w = b N (stages 0 to 2, flat from 1 on), b n_shard (stage 3): bytes of the weights that compute, at rest."""
    if _stage(stage) == 3:
        return quantity("b", b) * deepspeed_stage3_shard(sizes, d)
    return quantity("b", b) * (deepspeed_flat(sizes, d) if stage else sum(_sizes(sizes)))


def deepspeed_optimizer(sizes, d, stage, b):
    """M_os = 12 N (stage 0), 12 n_flat / d (1, 2), 12 n_shard (3): bytes of FP32 master weights and both AdamW moments.

    Under FP32 (b = 4) stage 0 has no master weights apart, 8 N; the other stages keep an FP32 master beside FP32 weights.
    Source: DeepSpeed 0.19.8, measured on gloo.
    """
    if _stage(stage) == 0:
        return (8 if b == 4 else 12) * sum(_sizes(sizes))
    return 12 * (deepspeed_flat(sizes, d) // d if stage < 3 else deepspeed_stage3_shard(sizes, d))


def deepspeed_stage3_buffers(sizes, d, b, reduce_bucket_size=500_000_000):
    """M_buffer = b n_shard + b n_bucket: bytes of stage 3's permanent buffers, at rest too.

    The partitions of the gradients are allocated once, and so is the reduce bucket of reduce_bucket_size elements
    (default 5e8: 1 GB in BF16). Source: DeepSpeed 0.19.8, stage3.py, measured.
    """
    return quantity("b", b) * (deepspeed_stage3_shard(sizes, d) + count("reduce_bucket_size", reduce_bucket_size))


def deepspeed_gradients(sizes, d, stage, rank, b):
    """M_g = b N (stage 0), b (sum of n_i that touch the rank's partition) (1, 2), 0 (3): bytes added by backward.

    A parameter that lies across the edge of a partition stays whole on both ranks until the step. Stage 3's gradients
    are in its permanent buffer already. Source: DeepSpeed 0.19.8, stage_1_and_2.py, measured.
    """
    sizes = _sizes(sizes)
    if _stage(stage) in (0, 3):
        return quantity("b", b) * sum(sizes) if stage == 0 else 0
    partition = deepspeed_flat(sizes, d) // d
    low = partition * _rank(rank, d)
    touched, start = 0, 0
    for n in sizes:
        if start < low + partition and start + n > low:
            touched += n
        start += n
    return quantity("b", b) * touched


def deepspeed_at_rest(sizes, d, stage, b, reduce_bucket_size=500_000_000):
    """M_rest = M_w + M_os + M_buffer: bytes on one rank between two steps; all ranks are alike.

    14 N (stage 0), 2 N + 12 N / d (1 and 2), 16 N / d + 2 n_bucket (3) in 16 bit, plus padding. AdamW's `step` scalars are
    not in it: 4 bytes per parameter tensor at stage 0, 4 bytes from stage 1 on. Source: DeepSpeed 0.19.8, measured.
    """
    rest = deepspeed_weights(sizes, d, stage, b) + deepspeed_optimizer(sizes, d, stage, b)
    return rest + (deepspeed_stage3_buffers(sizes, d, b, reduce_bucket_size) if stage == 3 else 0)


def deepspeed_persistent_parameters(sizes, b, param_persistence_threshold=100_000, model_persistence_threshold=None):
    """M_small = b (sum of n_i < threshold): bytes that stage 3 leaves whole on every rank, beside their shards.

    Small parameters (norms, biases) are not worth a gather. model_persistence_threshold stops at that many elements in
    all; by default it is practically infinite. Source: DeepSpeed 0.19.8, zero/config.py and partition_parameters.py.
    """
    whole, limit = 0, model_persistence_threshold
    for n in _sizes(sizes):
        if n <= quantity("param_persistence_threshold", param_persistence_threshold) and (limit is None or whole + n <= limit):
            whole += n
    return quantity("b", b) * whole


def deepspeed_live_parameters(N, b, max_live_parameters=1_000_000_000):
    """M_live = b min(N, max_live_parameters): bytes of gathered weights that stage 3 may leave after forward.

    At the default of 1e9 a model of less than that stays whole: +2 N in BF16. Source: DeepSpeed 0.19.8, measured; zero/config.py.
    """
    return quantity("b", b) * min(count("N", N), quantity("max_live_parameters", max_live_parameters))


# --- DeepSpeed as its published estimators count


def deepspeed_estimate_zero2(P, gpus, cpu_offload=False):
    """M_gpu = 2 P + 18 P / G, or 2 P with the optimizer offloaded: what estimate_zero2_model_states_mem_needs prints.

    18 = 2 + 4 gradients in 16 bit and FP32, 4 master weights, 8 moments; G all GPUs. It is the moment of the step: between
    steps DeepSpeed holds 2 P + 12 P / G. Its documentation page still prints 4 P + 16 P / G, which the code left in 2024.
    Source: DeepSpeed, runtime/zero/stage_1_and_2.py.
    """
    P, gpus = count("P", P), count("gpus", gpus)
    return 2 * P + (0 if cpu_offload else 18 * P // gpus)


def deepspeed_estimate_zero3(P, largest_layer, gpus, cpu_offload=False, cpu_offload_params=False):
    """M_gpu = 4 L_max + 18 P / G; 4 L_max + 2 P / G, optimizer offloaded; 4 L_max, parameters too: estimate_zero3_model_states_mem_needs.

    L_max the parameters of the largest module of its own: its 16-bit weights and gradients gathered. No bucket, no
    activation. Source: DeepSpeed, runtime/zero/stage3.py.
    """
    P, gpus, largest = count("P", P), count("gpus", gpus), 4 * count("largest_layer", largest_layer)
    if cpu_offload_params:
        if not cpu_offload:
            raise ArgumentError("cpu_offload_params", cpu_offload_params, "parameters are offloaded only together with the optimizer (cpu_offload)")
        return largest
    return largest + (2 if cpu_offload else 18) * P // gpus


# --- Megatron-LM: the distributed optimizer


def distributed_optimizer(N, b_kept, b_sharded, d):
    """M_rank = b_kept N + b_sharded N / d: bytes under Megatron-LM's distributed optimizer, per rank.

    N the parameters of one rank after tensor and pipeline parallelism. BF16 weights with FP32 gradients: 6 + 12 / d; FP16
    with FP16 gradients 4 + 16 / d (an FP32 copy of the gradients is sharded too); FP32: 8 + 8 / d. d is the
    data-parallel degree times the context-parallel one; routed experts have their own.
    Source: Megatron-LM, docs, dist_optimizer.
    """
    return finite("M_rank", count("N", N) * (quantity("b_kept", b_kept) + quantity("b_sharded", b_sharded) / count("d", d)))


def distributed_optimizer_experts(N_dense, N_experts, b_kept, b_sharded, d, d_experts):
    """M_rank = b_kept (N_dense + N_experts) + b_sharded (N_dense / d + N_experts / d_experts): bytes of a rank of a MoE.

    Both counts are what one rank holds after tensor, expert and pipeline parallelism. Source: Megatron-LM, dist_optimizer.
    """
    return distributed_optimizer(N_dense, b_kept, b_sharded, d) + distributed_optimizer(N_experts, b_kept, b_sharded, d_experts)


# --- HYBRID_SHARD


def hybrid_shard(tensors, b_w, b_g, b_os, W, replicas, rank=0):
    """M_rank = FSDP2's M_rank over d = W / R: bytes per rank where R groups of d ranks each hold the whole state.

    rank counts inside a group. Source: torch 2.13.0, fully_shard on a mesh of two dimensions.
    """
    return fsdp2_persistent(tensors, b_w, b_g, b_os, distributed.shard_group(W, replicas), rank)
