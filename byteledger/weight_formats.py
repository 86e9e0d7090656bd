"""Weights by format: bytes of a quantized tensor with its scales, and of a model whose other tensors stay as they were.

A scale is bits for every `per` elements: a number of them along a row (flat: along the whole tensor), a "row" (an output
channel), a "column" (an input channel), a "tile" of 128 x 128, or a whole matrix ("tensor"). A zero point is a scale, too.
Symbols: n elements, q bits of an element, s_i bits of the scale i, g_i elements that share it. Results are bytes.
"""

import math

from . import parameters
from .arguments import ArgumentError, count, finite, positive, quantity

TILE = 128
NAMED = ("row", "column", "tile", "tensor")

# Never converted by any of the formats: what is added to a token or scales it, and tables that are no input embedding.
ALWAYS_KEPT = ("norms", "biases", "position_embedding", "other")
# Matrices in shape, yet no linear layers: the filters of a convolution, and the decay of a state-space layer.
NO_LINEAR_LAYER = ("conv1d.weight", "A_log")


class Scale:
    """What is stored besides the elements: `bits` for every `per` of them; flat: blocks do not stop at the end of a row."""

    __slots__ = ("bits", "per", "flat")

    def __init__(self, bits, per, flat=False):
        self.bits, self.per, self.flat = bits, per, flat


def bytes_per_element(bits, scales):
    """b_e = (q + sum of s_i / g_i) / 8: bytes of one quantized element with its share of the scales.

    MXFP4 is (4 + 8/32) / 8 = 0.53125. A scale of a tile is shared by 16,384 elements. Scales of a row, a column or a
    tensor need its shape and are not in this figure: a few bytes per thousand elements, which weights counts.
    Source: OCP Microscaling Formats 1.0; Dettmers et al. 2023 (QLoRA), section 3.
    """
    total = positive("bits", bits)
    for scale in scales:
        shared = TILE * TILE if scale.per == "tile" else scale.per
        if shared not in NAMED:
            total += positive("bits of a scale", scale.bits) / count("per", shared)
    return finite("b_e", total / 8)


def tensor_bytes(tensor, bits, scales):
    """M = ceil(n q / 8) + sum of ceil(n_i s_i / 8): bytes of one tensor, its elements packed, its scales beside them.

    n_i, the number of scales, for a tensor of m matrices of r rows and c columns: m r ceil(c / g) along rows,
    ceil(n / g) flat, m r per row, m c per column, m ceil(r / 128) ceil(c / 128) per tile, m per tensor. An expert's gate and
    up projection are one matrix here; where a file keeps them apart, it has a few more scales per tensor.
    Source: bitsandbytes, functional.py (flat); OCP Microscaling Formats 1.0; DeepSeek-V3, README_WEIGHTS.md (tiles).
    """
    return _bytes(tensor.size, bits) + sum(_bytes(_scales(tensor.shape, tensor.size, scale), scale.bits) for scale in scales)


def _bytes(n, bits):
    return -(-n * count("bits", bits) // 8)


def _scales(shape, n, scale):
    """How many values of one scale a tensor has."""
    columns = shape[-1]
    rows = shape[-2] if len(shape) > 1 else 1
    matrices = n // (rows * columns)
    if scale.per == "row":
        return matrices * rows
    if scale.per == "column":
        return matrices * columns
    if scale.per == "tensor":
        return matrices
    if scale.per == "tile":
        return matrices * math.ceil(rows / TILE) * math.ceil(columns / TILE)
    group = count("per", scale.per)
    return -(-n // group) if scale.flat else matrices * rows * -(-columns // group)


def is_converted(tensor, keeps):
    """c = 1 for a matrix of a part that is not kept, else 0: whether a tensor is stored in the format.

    A matrix has two or more dimensions and is multiplied with, or looked up by, a token: projections of attention, of MLPs
    and experts, of state-space layers, the embedding, the head. Norms, biases, position embeddings, convolutions and A_log
    are never converted.
    """
    if tensor.part in ALWAYS_KEPT or tensor.part in keeps or len(tensor.shape) < 2:
        return False
    return not tensor.name.endswith(NO_LINEAR_LAYER) and not tensor.name.endswith("bias")


def _tensors(architecture):
    """(tensor, how many of it) of a whole model."""
    for tensor in architecture.outside:
        yield tensor, 1
    for layer, times in architecture.layers:
        for tensor in layer.tensors:
            yield tensor, times


def _checked(keeps):
    for part in keeps:
        if part not in parameters.PARTS:
            raise ArgumentError("keeps", part, "must be one of %s" % ", ".join(parameters.PARTS))
    return keeps


def kept(architecture, keeps):
    """N_kept = N - N_converted: parameters that stay in the format they had."""
    return parameters.total(architecture) - converted(architecture, keeps)


def converted(architecture, keeps):
    """N_converted = sum of the sizes of the matrices whose part is not in keeps: parameters that are stored in the format."""
    _checked(keeps)
    return sum(times * tensor.size for tensor, times in _tensors(architecture) if is_converted(tensor, keeps))


def weights(architecture, bits, scales, keeps, b_kept=2):
    """M_weights = sum of M where c = 1 + b_kept N_kept: bytes of all weights, each converted tensor with its scales, the rest as it was.

    keeps: parts of parameters.PARTS that are not converted; b_kept: bytes of an element that stays, 2 in BF16.
    bitsandbytes, GPTQ, AWQ, FP8, NVFP4 and compressed-tensors convert the linear layers inside the layers of a model and
    keep embedding, head and router; gpt-oss converts only the experts; GGUF converts embedding and head, too.
    Not in it: code tables, padding of a kernel's layout, buffers, workspace for dequantized weights.
    """
    _checked(keeps)
    total = 0
    for tensor, times in _tensors(architecture):
        total += times * (tensor_bytes(tensor, bits, scales) if is_converted(tensor, keeps) else tensor.size * quantity("b_kept", b_kept))
    return finite("M_weights", total)


def bytes_per_parameter(M_weights, N):
    """b_w = M_weights / N: bytes per parameter of the whole model, above the format's own as far as tensors stay in 16 bit."""
    return finite("b_w", quantity("M_weights", M_weights) / count("N", N))
