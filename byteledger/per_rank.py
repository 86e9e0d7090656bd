"""Chapter 6: one rank of a real model, the rules of sharding, parallel and offload applied to its architecture."""

from . import offload, parallel, parameters, sharding
from .arguments import ArgumentError


def sizes(architecture):
    """n_1, n_2, ... = elements of each tensor, in the order of model.parameters(): embeddings, layers, the rest."""
    first = [t.size for t in architecture.outside if t.part in ("embedding", "position_embedding")]
    layers = [t.size for layer, times in architecture.layers for _ in range(times) for t in layer.tensors]
    return first + layers + [t.size for t in architecture.outside if t.part not in ("embedding", "position_embedding")]


def largest_module(architecture):
    """L_max = max over modules of their own parameters: of one module, its children not among them.

    A linear with its bias is one module, and so are all fused experts of a layer. Source: DeepSpeed, runtime/zero/stage3.py, model_to_params.
    """
    largest = 0
    for tensors in [architecture.outside] + [layer.tensors for layer, _ in architecture.layers]:
        modules = {}
        for tensor in tensors:
            owner = tensor.name.rpartition(".")[0]
            modules[owner] = modules.get(owner, 0) + tensor.size
        largest = max(largest, *modules.values())
    return largest


# --- FSDP2


def fsdp2_stored(architecture, d):
    """N_stored = sum over tensors of ceil(n_0 / d) n / n_0: elements of the weights that every rank stores under FSDP2."""
    return sharding.fsdp2_stored(parallel.stage_tensors(architecture), d)


def fsdp2_to_ideal(architecture, d):
    """r = N_stored d / N: how many times N / d every rank stores under FSDP2; 1 where every dimension 0 is a multiple of d."""
    return sharding.fsdp2_to_ideal(parallel.stage_tensors(architecture), d)


def fsdp2_persistent(architecture, b_w, b_g, b_master, b_m, b_v, d):
    """M_rank = (b_w + b_g) N_stored + (b_master + b_m + b_v) N_held: bytes on rank 0 under FSDP2, the rank with the most.

    Weights and gradients are padded to whole rows, the optimizer has the real ones. Source: torch 2.13.0, measured.
    """
    return sharding.fsdp2_persistent(parallel.stage_tensors(architecture), b_w, b_g, b_master + b_m + b_v, d)


def fsdp2_last_rank(architecture, b_w, b_g, b_master, b_m, b_v, d):
    """M_last = (b_w + b_g) N_stored + (b_master + b_m + b_v) N_held(d - 1): bytes on the last rank, which may have no row."""
    return sharding.fsdp2_persistent(parallel.stage_tensors(architecture), b_w, b_g, b_master + b_m + b_v, d, d - 1)


# --- DeepSpeed


def deepspeed_at_rest(architecture, zero_stage, d):
    """M_rest = 14 N (0), 2 N + 12 N / d (1, 2), 16 N / d + 1e9 (3), padded: bytes that DeepSpeed holds between two steps.

    BF16 and FP32 AdamW, reduce_bucket_size at its default of 5e8. Source: DeepSpeed 0.19.8, measured.
    """
    return sharding.deepspeed_at_rest(sizes(architecture), d, zero_stage, 2)


def deepspeed_after_backward(architecture, zero_stage, d):
    """M_backward = M_rest + max over ranks of M_g: bytes that DeepSpeed holds on its fullest rank when backward is done.

    Stages 1 and 2 keep each parameter that touches the rank's partition whole. Source: DeepSpeed 0.19.8, measured.
    """
    elements = sizes(architecture)
    return sharding.deepspeed_at_rest(elements, d, zero_stage, 2) + max(sharding.deepspeed_gradients(elements, d, zero_stage, rank, 2) for rank in range(d))


def deepspeed_estimate(architecture, zero_stage, gpus, cpu_offload=False, cpu_offload_params=False):
    """M_gpu = 2 P + 18 P / G (2), 4 L_max + 18 P / G (3): what DeepSpeed's own estimators print, per GPU.

    Stages 0 and 1 have no estimator: None. Source: DeepSpeed, runtime/zero.
    """
    P = parameters.total(architecture)
    if zero_stage == 2:
        return sharding.deepspeed_estimate_zero2(P, gpus, cpu_offload)
    if zero_stage == 3:
        return sharding.deepspeed_estimate_zero3(P, largest_module(architecture), gpus, cpu_offload, cpu_offload_params)
    return None


# --- Megatron-LM


def distributed_optimizer(N, b_w, b_g, b_master, b_m, b_v, d):
    """M_rank = (b_w + b_g) N + (b_master + b_m + b_v) N / d: bytes under the distributed optimizer, of N parameters on a rank.

    A ledger with two gradients, 2 B in 16 bit and 4 B in FP32, shards the FP32 one: 4 + 16 / d. Source: Megatron-LM, dist_optimizer.
    """
    sharded_gradient = 4 if b_g > 4 else 0
    return sharding.distributed_optimizer(N, b_w + b_g - sharded_gradient, b_master + b_m + b_v + sharded_gradient, d)


def _stage_states(architecture, states, W, tp, pp, stage):
    degrees = parallel.Degrees(W, tp=tp, pp=pp)
    dense, experts = parallel.rank_parameters(architecture, pp, stage, 1, tp, 1, 1, 128)
    return distributed_optimizer(dense + experts, *states, degrees.optimizer)


def first_stage_parameters(architecture, tp, pp):
    """N_first = n(L / p layers) + n(embedding), each / tp where it is cut: parameters on a rank of the first stage.

    The vocabulary is padded to 128 tp, Megatron-LM's default. Source: Megatron-LM.
    """
    return sum(parallel.rank_parameters(architecture, pp, 0, 1, tp, 1, 1, 128))


def last_stage_parameters(architecture, tp, pp):
    """N_last = n(L / p layers) + n(final norm) + n(head), each / tp where it is cut: parameters on a rank of the last stage.

    A tied table counts here too. The vocabulary is padded to 128 tp. Source: Megatron-LM.
    """
    return sum(parallel.rank_parameters(architecture, pp, pp - 1, 1, tp, 1, 1, 128))


def first_stage_states(architecture, b_w, b_g, b_master, b_m, b_v, W, tp, pp):
    """M_first = (b_w + b_g) N_first + K N_first / dp, dp = W / (tp pp): bytes of states on a rank of the first stage."""
    return _stage_states(architecture, (b_w, b_g, b_master, b_m, b_v), W, tp, pp, 0)


def last_stage_states(architecture, b_w, b_g, b_master, b_m, b_v, W, tp, pp):
    """M_last = (b_w + b_g) N_last + K N_last / dp, dp = W / (tp pp): bytes of states on a rank of the last stage."""
    return _stage_states(architecture, (b_w, b_g, b_master, b_m, b_v), W, tp, pp, pp - 1)


def dense_parameters(architecture, tp, ep):
    """N_dense = n(all but the routed experts), each / tp where it is cut: on one rank, without pipeline."""
    return parallel.rank_parameters(architecture, tp=tp, ep=ep, make_vocab_size_divisible_by=128)[0]


def expert_parameters(architecture, tp, ep):
    """N_experts = n(routed experts) / ep: parameters of routed experts on one rank, without pipeline, etp = 1."""
    return parallel.rank_parameters(architecture, tp=tp, ep=ep, make_vocab_size_divisible_by=128)[1]


def expert_states(architecture, b_w, b_g, b_master, b_m, b_v, W, tp, ep):
    """M_rank = (b_w + b_g) (N_dense + N_experts) + K (N_dense / dp + N_experts / edp), edp = W / ep: bytes of states on a rank of a MoE.

    Source: Megatron-LM, dist_optimizer.
    """
    degrees = parallel.Degrees(W, tp=tp, ep=ep)
    dense, experts = parallel.rank_parameters(architecture, tp=tp, ep=ep, make_vocab_size_divisible_by=128)
    if not experts:
        raise ArgumentError("model", architecture.model_type, "has no routed experts")
    states = b_w, b_g, b_master, b_m, b_v
    return distributed_optimizer(dense, *states, degrees.optimizer) + distributed_optimizer(experts, *states, degrees.experts)


def first_stage_layers_in_flight(architecture, pp, micro_batches, virtual):
    """n_first = chunks in flight x L / (p v): layers' activations that the first stage holds at most; L under 1F1B."""
    return parallel.layers_in_flight(architecture.num_hidden_layers, pp, 0, micro_batches, virtual)


def last_stage_layers_in_flight(architecture, pp, micro_batches, virtual):
    """n_last = chunks in flight x L / (p v): layers' activations that the last stage holds at most; L / p under 1F1B."""
    return parallel.layers_in_flight(architecture.num_hidden_layers, pp, pp - 1, micro_batches, virtual)


# --- offload


def zero2_device(architecture):
    """M_gpu = 2 P: bytes that stay on each GPU under ZeRO-2 with the optimizer offloaded. Source: DeepSpeed, estimate_zero2."""
    return deepspeed_estimate(architecture, 2, 1, cpu_offload=True)


def zero3_device(architecture, gpus):
    """M_gpu = 4 L_max + 2 P / G: bytes that stay on each GPU under ZeRO-3 with the optimizer offloaded. Source: DeepSpeed, estimate_zero3."""
    return deepspeed_estimate(architecture, 3, gpus, cpu_offload=True)


def zero3_parameters_device(architecture):
    """M_gpu = 4 L_max: bytes that stay on each GPU under ZeRO-3 with optimizer and parameters offloaded. Source: DeepSpeed, estimate_zero3."""
    return deepspeed_estimate(architecture, 3, 1, cpu_offload=True, cpu_offload_params=True)


def zero3_host(architecture, gpus_per_node, nodes):
    """M_host = 16 P f / nodes, f = 1.5: host bytes per node under ZeRO-3 with the optimizer offloaded. Source: DeepSpeed, estimate_zero3."""
    return offload.zero3_host(parameters.total(architecture), largest_module(architecture), gpus_per_node, nodes)


def zero3_parameters_host(architecture, gpus_per_node, nodes):
    """M_host = 18 P f / nodes, f = 1.5: host bytes per node under ZeRO-3 with optimizer and parameters offloaded. Source: DeepSpeed, estimate_zero3."""
    return offload.zero3_host(parameters.total(architecture), largest_module(architecture), gpus_per_node, nodes, True, True)


def pinned_parameters(P):
    """M_pinned = 6 P: page-locked host bytes of the job with parameters offloaded. Source: DeepSpeed, memory requirements."""
    return offload.pinned(P, offload_params=True)
