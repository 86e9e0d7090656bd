"""Chapter 3: what an optimizer keeps between two steps, what its step needs for a moment, and the copies around it.

Symbols: n elements of a tensor, T tensors, N their elements, b bytes of an element of the parameters; r rows and c columns
of a matrix. tensors: [(Tensor, how many of it)], as architecture.layers and architecture.outside hold them. All results
are bytes, of the tensors that are given: for one rank, give the shapes that the rank holds.
"""

from .arguments import ArgumentError, count, finite, quantity
from .weight_formats import is_converted

OPTIMIZERS = (
    "adamw", "adamw_amsgrad", "adamw_8bit", "adamw_8bit_embedding_32bit", "adamw_8bit_torchao", "adamw_4bit", "adafactor", "sgd", "sgd_momentum",
    "lion", "muon",
)  # fmt: skip
IMPLEMENTATIONS = ("foreach", "for_loop", "fused")

STEP = 4  # PyTorch counts the steps of each tensor in one FP32 scalar
SMALLEST_QUANTIZED = 4096  # tensors with fewer elements keep full moments: bitsandbytes, min_8bit_size; torchao follows it
SMALLEST_PAGED = 100_000  # bitsandbytes: a state of fewer elements is never paged
TABLES = ("embedding", "position_embedding")
NOT_HIDDEN = ("embedding", "output_head")


def in_order(architecture):
    """order = tables, layers, final norm and head: [(Tensor, times)] of a model as transformers registers them.

    A run of entries with the same times above 1 is a block that repeats. temporaries depends on the order, state does not.
    """
    tables = [(tensor, 1) for tensor in architecture.outside if tensor.part in TABLES]
    layers = [(tensor, times) for layer, times in architecture.layers for tensor in layer.tensors]
    return tables + layers + [(tensor, 1) for tensor in architecture.outside if tensor.part not in TABLES]


# --- what is kept between two steps


def state(tensors, optimizer, b):
    """M_optimizer = sum of the optimizer's bytes for each tensor: what it keeps from step to step, a master copy not in it.

    adamw                       2 b n + 4: both moments in the parameters' format, and a step in FP32
    adamw_amsgrad               3 b n + 4
    adamw_8bit                  2 (n + 4 ceil(n / 256)) bitsandbytes; 8 n where n < 4096
    adamw_8bit_embedding_32bit  the same, with 8 n for embeddings, too: StableEmbedding, or transformers' Trainer
    adamw_8bit_torchao          2 (n + 4 n / 256 + 1024) + 4; 2 b n + 4 where n < 4096 or 256 does not divide n
    adamw_4bit                  2 (n / 2 + 4 n / 128 + 64) + 4, torchao; 2 b n + 4 where n < 4096 or 128 does not divide n
    adafactor                   b (n / c + n / r) + 4 for a matrix, b n + 4 for a vector, without a first moment
    sgd, sgd_momentum, lion     0, b n, b n
    muon                        b n for hidden matrices, 2 b n + 4 for all else
    The 1024 and 64 are torchao's code tables, one a moment and tensor. bitsandbytes has one pair of tables for all, 2,048 B,
    which are not counted, and had blocks of 2,048 before 0.44. step stands in host memory unless fused or capturable.
    Source: PyTorch 2.13.0, measured; bitsandbytes, optim/optimizer.py; torchao, optim/adam.py; lion-pytorch.
    """
    quantity("b", b)
    if optimizer not in OPTIMIZERS:
        raise ArgumentError("optimizer", optimizer, "must be one of %s" % ", ".join(OPTIMIZERS))
    return finite("M_optimizer", sum(times * _kept(tensor, optimizer, b) for tensor, times in tensors))


def _kept(tensor, optimizer, b):
    n = tensor.size
    if optimizer == "sgd":
        return 0
    if optimizer in ("sgd_momentum", "lion") or (optimizer == "muon" and is_hidden_matrix(tensor)):
        return b * n
    if optimizer == "adamw_amsgrad":
        return 3 * b * n + STEP
    if optimizer == "adafactor":
        rows, columns, _ = _factors(tensor)
        return b * (rows + columns or n) + STEP
    if optimizer in ("adamw_8bit", "adamw_8bit_embedding_32bit"):
        full = n < SMALLEST_QUANTIZED or (optimizer.endswith("32bit") and tensor.part in TABLES)
        return 8 * n if full else 2 * (n + 4 * -(-n // 256))
    if optimizer == "adamw_8bit_torchao" and n >= SMALLEST_QUANTIZED and n % 256 == 0:
        return 2 * (n + 4 * (n // 256) + 4 * 256) + STEP
    if optimizer == "adamw_4bit" and n >= SMALLEST_QUANTIZED and n % 128 == 0:
        return 2 * (n // 2 + 4 * (n // 128) + 4 * 16) + STEP
    return 2 * b * n + STEP


def _factors(tensor):
    """(row factors, column factors, matrices) of Adafactor; no factors for a vector. A stack of matrices has them for each."""
    if len(tensor.shape) < 2:
        return 0, 0, 0
    rows, columns = tensor.shape[-2:]
    return tensor.size // columns, tensor.size // rows, tensor.size // (rows * columns)


def is_hidden_matrix(tensor):
    """h = 1 for a matrix that is neither embedding nor head, else 0: whether Muon takes it, or leaves it to AdamW.

    An expert's matrices count although PyTorch's own Muon refuses tensors of three dimensions: what the trainers that use
    Muon for experts keep is one momentum, however they split them. Source: PyTorch, optim/_muon.py; Jordan et al. 2024.
    """
    return is_converted(tensor, NOT_HIDDEN)


def galore_state(tensors, b, rank):
    """M_GaLore = sum of b (2 g max(r, c) + g min(r, c)) over matrices + 2 b n over all else: moments of the projected gradients, and projectors.

    g: the rank of the projection, rank here; a matrix whose shorter side is no longer than that is not projected. Projected
    are the matrices of attention and MLPs inside the layers. Source: Zhao et al. 2024 (arXiv 2403.03507), table 1.
    """
    g, total = count("rank", rank), 0
    quantity("b", b)
    for tensor, times in tensors:
        short, long = sorted(tensor.shape[-2:]) if len(tensor.shape) > 1 else (0, 0)
        if tensor.part in ("attention", "mlp", "shared_experts") and len(tensor.shape) == 2 and short > g:
            total += times * b * g * (2 * long + short)
        else:
            total += times * 2 * b * tensor.size
    return finite("M_GaLore", total)


def paged(tensors, bits=32):
    """M_paged = sum of 2 n bits / 8 over tensors of 100,000 elements and more: moments that can leave the device.

    bitsandbytes' paged optimizers put them into managed memory: they are in host memory when the device is full, and on the
    device while they are updated. Scales of 8-bit moments and smaller tensors stay. Source: bitsandbytes, optim/optimizer.py.
    """
    if bits not in (8, 32):
        raise ArgumentError("bits", bits, "must be 8 or 32")
    return sum(times * 2 * tensor.size * bits // 8 for tensor, times in tensors if tensor.size >= SMALLEST_PAGED)


def of_model(architecture, optimizer, b, rank=None):
    """M_optimizer = M_GaLore with a rank, else the state of all tensors: bytes of a whole model's optimizer state."""
    order = in_order(architecture)
    return state(order, optimizer, b) if rank is None else galore_state(order, b, rank)


def per_parameter(M_optimizer, N):
    """b_o = M_optimizer / N: bytes of optimizer state per parameter, with the overhead of blocks and small tensors."""
    return finite("b_o", quantity("M_optimizer", M_optimizer) / count("N", N))


# --- what a step needs for a moment


def temporaries(tensors, optimizer, b, implementation):
    """M_step = what optimizer.step() allocates at its peak and gives back: b N foreach, 2 b n_i + b n_(i-1) for the worst tensor for_loop.

    adamw, adamw_amsgrad   foreach b N + 8 + b; for_loop max(2 b n_i + b n_(i-1)) + 8 + b; fused 12
    sgd, sgd_momentum      0; 8 + b, foreach and for_loop
    adafactor              for_loop: b (n_i + n_(i-1)) for the worst pair, and the factors of the moment
    n_(i-1): what the tensor before has left behind, still held by a name. The 8 + b, a scalar in FP64 and in the parameters'
    format, are the CPU's; a GPU passes scalars as arguments. foreach is PyTorch's default on CUDA, for_loop on a CPU.
    Raises ArgumentError for what nobody has measured. tensors in the order of the update, see in_order.
    Source: measured with PyTorch 2.13.0, 64 of 66 cases to the byte; Adafactor in BF16 takes the CPU's scratch besides.
    """
    quantity("b", b)
    if implementation not in IMPLEMENTATIONS:
        raise ArgumentError("implementation", implementation, "must be one of %s" % ", ".join(IMPLEMENTATIONS))
    if optimizer not in OPTIMIZERS:
        raise ArgumentError("optimizer", optimizer, "must be one of %s" % ", ".join(OPTIMIZERS))
    scalar = 8 + b
    if optimizer in ("adamw", "adamw_amsgrad"):
        if implementation == "foreach":
            return finite("M_step", b * sum(times * tensor.size for tensor, times in tensors) + scalar)
        return _worst_pair(tensors, b) + scalar if implementation == "for_loop" else 8 + STEP
    if optimizer == "sgd" and implementation != "fused":
        return 0
    if optimizer == "sgd_momentum" and implementation != "fused":
        return scalar
    if optimizer == "adafactor" and implementation == "for_loop":
        return _adafactor_step(tensors, b)
    raise ArgumentError("implementation", implementation, "the temporaries of %s are not modelled" % optimizer)


def _walk(tensors):
    """The tensors one by one; of a block that repeats two passes, which is all that neighbours can be."""
    start = 0
    while start < len(tensors):
        times, end = tensors[start][1], start
        while end < len(tensors) and tensors[end][1] == times:
            end += 1
        for _ in range(min(times, 2)):
            for tensor, _ in tensors[start:end]:
                yield tensor
        start = end


def _worst_pair(tensors, b):
    """sqrt(v) and its quotient, and the quotient of the tensor before, which a name still holds."""
    worst = before = 0
    for tensor in _walk(tensors):
        worst, before = max(worst, 2 * tensor.size + before), tensor.size
    return finite("M_step", b * worst)


def _adafactor_step(tensors, b):
    """Names that hold a tensor from one pass of the loop to the next: both means, the squared gradient of a vector, the estimate."""
    worst = row = column = squared = estimate = 0
    for tensor in _walk(tensors):
        n = tensor.size
        rows, columns, matrices = _factors(tensor)
        if matrices:
            worst = max(worst, b * (row + rows + column + squared + estimate), b * (rows + column + columns + squared + estimate))
            row, column = rows, columns
            worst = max(worst, b * (row + column + squared + estimate + n + matrices) + 8 + b)
        else:
            worst = max(worst, b * (row + column + squared + n + estimate))
            squared = n
            worst = max(worst, b * (row + column + squared + estimate + n) + 8 + b)
        estimate = n
    return finite("M_step", worst)


# --- copies around the step


def fp32_gradient_copy(N):
    """M_copy = 4 N: gradients cast to FP32 for a step on FP32 master weights; the low-precision ones can go once they are copied."""
    return finite("M_copy", 4 * count("N", N))


def accumulation_buffer(N):
    """M_accumulation = 4 N: an FP32 buffer that sums the gradients of several micro-batches, beside those of the current one.

    Source: Ultra-Scale Playbook, 16 N without and 20 N with it.
    """
    return finite("M_accumulation", 4 * count("N", N))


def gradients_freed_in_backward(tensors, b_g):
    """M_gradients = b_g max(n): the one gradient that is alive where each is applied and freed as soon as it is complete.

    A floor: the gradients of one block are often complete together. Clipping by the norm of all gradients needs them all.
    Source: Lv et al. 2023 (LOMO); PyTorch, tutorial on fusing the optimizer step into backward.
    """
    return finite("M_gradients", quantity("b_g", b_g) * max(tensor.size for tensor, _ in tensors))


def fp8_copies(N_linear, transposed):
    """M_fp8 = N_linear (1 + 1 if transposed): FP8 copies of linear weights that Transformer Engine adds to those in 16 bit.

    transposed: Hopper's FP8 matrix products want one layout, so the copy exists in both; Blackwell shares one. What FP8
    saves are activations, not weights, unless the primary weights themselves are FP8. Source: Transformer Engine, documentation.
    """
    if not isinstance(transposed, bool):
        raise ArgumentError("transposed", transposed, "must be true or false")
    return finite("M_fp8", count("N_linear", N_linear) * (2 if transposed else 1))
