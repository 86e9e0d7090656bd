"""Chapter 7: the minimal estimate."""

from .arguments import finite, quantity


def peak_rank(M_rank_lower, M_activation, M_comm, M_temp, M_fragmentation, M_safety):
    """M_peak,rank = M_rank,lower + M_activation + M_comm + M_temp + M_fragmentation + M_safety: bytes on one rank.

    Every term per rank and given by the caller; one that is not known has to be measured, not set to 0.
    Source: whitepaper 7.1.
    """
    return finite(
        "M_peak,rank",
        quantity("M_rank_lower", M_rank_lower)
        + quantity("M_activation", M_activation)
        + quantity("M_comm", M_comm)
        + quantity("M_temp", M_temp)
        + quantity("M_fragmentation", M_fragmentation)
        + quantity("M_safety", M_safety),
    )
