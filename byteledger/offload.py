"""Chapter 6: host memory of a job that offloads states to the CPU, and what stays on the GPU.

Host bytes are per node and for all its processes together, unless a docstring says otherwise.
"""

from .arguments import ArgumentError, count, finite, positive, quantity

BUFFER_FACTOR = 1.5


def _whole(name, value):
    # DeepSpeed's estimators cut to whole bytes.
    return int(finite(name, value))


def zero2_host(P, gpus_per_node, nodes=1, cpu_offload=True, buffer_factor=BUFFER_FACTOR):
    """M_host = P max(4 G, 16) f offloaded, 4 P n f else: host bytes of estimate_zero2_model_states_mem_needs.

    n GPUs per node, G = n nodes GPUs, f = 1.5 a margin. 4 G: each process first builds the model in FP32; 16: FP32 master
    weights, gradients and moments. Multiplied by all GPUs, not those of a node: with more than one node it is a node's bytes
    several times over. Source: DeepSpeed, runtime/zero/stage_1_and_2.py.
    """
    P, n, nodes = count("P", P), count("gpus_per_node", gpus_per_node), count("nodes", nodes)
    per_parameter = max(4 * n * nodes, 16) if cpu_offload else 4 * n
    return _whole("M_host", P * per_parameter * positive("buffer_factor", buffer_factor))


def zero3_host(P, largest_layer, gpus_per_node, nodes=1, cpu_offload=True, cpu_offload_params=False, zero_init=True, buffer_factor=BUFFER_FACTOR):
    """M_host = 18 P f / nodes (parameters and optimizer), 16 P f / nodes (optimizer), 4 L_max n f (none): host bytes per node.

    Without zero.Init each of the n processes first builds the FP32 model: P max(4 n, 18 / nodes) f, P max(4 n, 16 / nodes) f,
    4 P n f. L_max: parameters of the largest module. Source: DeepSpeed, runtime/zero/stage3.py.
    """
    P, n, nodes = count("P", P), count("gpus_per_node", gpus_per_node), count("nodes", nodes)
    factor = positive("buffer_factor", buffer_factor)
    if cpu_offload_params and not cpu_offload:
        raise ArgumentError("cpu_offload_params", cpu_offload_params, "parameters are offloaded only together with the optimizer (cpu_offload)")
    if not cpu_offload:
        return _whole("M_host", (count("largest_layer", largest_layer) if zero_init else P) * 4 * n * factor)
    offloaded = 18 if cpu_offload_params else 16
    return _whole("M_host", P * (offloaded if zero_init else max(4 * n * nodes, offloaded)) * factor / nodes)


def pinned(P, offload_params=False, gradient_accumulation=False):
    """M_pinned = 6 P with parameters offloaded (8 P if gradients accumulate), else 4 P: page-locked host bytes of the job.

    Source: DeepSpeed, documentation on memory requirements, section on pinned memory; an estimate of its authors.
    """
    if gradient_accumulation and not offload_params:
        raise ArgumentError("gradient_accumulation", gradient_accumulation, "the source gives its 2 bytes only with offloaded parameters")
    return count("P", P) * ((6 + (2 if gradient_accumulation else 0)) if offload_params else 4)


def pinned_rounded(M):
    """M_locked = 2^ceil(log2 M): bytes that PyTorch's pinned allocator takes for one tensor of M bytes.

    Every pinned block is rounded up to a power of two, so one can be almost twice its tensor. 0 bytes take none.
    Source: torch 2.13.0, ATen/core/CachingHostAllocator.h.
    """
    M = quantity("M", M)
    if M != int(M):
        raise ArgumentError("M", M, "must be a whole number of bytes")
    return 1 << (int(M) - 1).bit_length() if M else 0


def torchao_host(M_model, M_optimizer):
    """M_host = 2 M_model + M_optimizer: host bytes that torchao's CPU-offloaded optimizer needs, about.

    M_model, M_optimizer: bytes of the model and of the optimizer's state. Source: pytorch/ao, torchao/optim/README.md.
    """
    return finite("M_host", 2 * quantity("M_model", M_model) + quantity("M_optimizer", M_optimizer))


def staying(M_w, M_g, M_os, offloads):
    """M_gpu = sum of the states that are not offloaded: bytes of states that stay on the GPU between two steps.

    offloads: of "weights", "gradients", "optimizer". Offloaded weights still come back layer by layer to compute.
    """
    states = {"weights": quantity("M_w", M_w), "gradients": quantity("M_g", M_g), "optimizer": quantity("M_os", M_os)}
    if isinstance(offloads, str):
        raise ArgumentError("offloads", offloads, "must be a collection of names out of %s" % ", ".join(states))
    for state in offloads:
        if state not in states:
            raise ArgumentError("offloads", state, "unknown state; known are %s" % ", ".join(states))
    return sum(M for state, M in states.items() if state not in offloads)
