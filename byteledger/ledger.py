"""Chapter 2: the training state ledger.

Symbols: N parameters; b_w, b_g, b_master, b_m, b_v bytes per parameter of the weights, the gradients, the FP32
master weights and AdamW's two moments. All results are bytes of the whole job unless the name says otherwise.
"""

from .arguments import count, finite, positive, quantity


def weights(N, b_w):
    """M_weights = N x b_w: bytes of the weights alone.

    No KV cache, workspace or runtime reserve. Raises ArgumentError for N < 1 or not whole, b_w < 0 or not finite.
    Source: whitepaper 2.2.
    """
    return finite("M_weights", count("N", N) * quantity("b_w", b_w))


def optimizer(N, b_master, b_m, b_v):
    """M_optimizer = N x (b_master + b_m + b_v): bytes of the FP32 master weights and both moments.

    What ZeRO calls K: K = b_master + b_m + b_v, 12 bytes per parameter for mixed-precision Adam.
    Source: Rajbhandari et al. 2019, section 3.1.
    """
    return finite("M_optimizer", count("N", N) * optimizer_bytes(b_master, b_m, b_v))


def optimizer_bytes(b_master, b_m, b_v):
    """K = b_master + b_m + b_v: optimizer bytes per parameter. Source: Rajbhandari et al. 2019, section 3.1."""
    return quantity("b_master", b_master) + quantity("b_m", b_m) + quantity("b_v", b_v)


def bytes_per_parameter(b_w, b_g, b_master, b_m, b_v):
    """b = b_w + b_g + b_master + b_m + b_v: persistent bytes per parameter, 16 in the baseline.

    Source: whitepaper 2.3.
    """
    return quantity("b_w", b_w) + quantity("b_g", b_g) + optimizer_bytes(b_master, b_m, b_v)


def persistent(N, b_w, b_g, b_master, b_m, b_v):
    """M_persistent = N x (b_w + b_g + b_master + b_m + b_v): bytes that live across updates.

    Holds no activation, communication buffer, temporary workspace, fragmentation or margin.
    Source: whitepaper 2.3.
    """
    return finite("M_persistent", count("N", N) * bytes_per_parameter(b_w, b_g, b_master, b_m, b_v))


def persistent_to_weights(b_w, b_g, b_master, b_m, b_v):
    """r = (b_w + b_g + b_master + b_m + b_v) / b_w: persistent state as a multiple of the weights.

    No constant: it follows from the ledger, 16 / 2 = 8 in the baseline. b_w must be above 0. Source: whitepaper 2.4.
    """
    positive("b_w", b_w)
    return finite("r", bytes_per_parameter(b_w, b_g, b_master, b_m, b_v) / b_w)


def six_times_heuristic(M_weights):
    """M_screen = 6 x M_weights: the rule of thumb, in bytes. A heuristic for a first look, never an estimate.

    Derived from no set of tensors; nothing else in this package calls it. Source: whitepaper 2.4.
    """
    return finite("M_screen", 6 * quantity("M_weights", M_weights))


def peak(M_persistent, M_activation, M_temp, M_comm):
    """M_peak = M_persistent + M_activation + M_temp + M_comm: bytes at the peak of a step, every term given.

    A reminder of the terms, not a profiler: a term that is not known has to be measured, not set to 0.
    Source: whitepaper 2.3.
    """
    return finite(
        "M_peak",
        quantity("M_persistent", M_persistent)
        + quantity("M_activation", M_activation)
        + quantity("M_temp", M_temp)
        + quantity("M_comm", M_comm),
    )
