"""Bytes to GB and GiB and back. Everything else in the package counts bytes.

GB is decimal, GiB is binary; neither is ever called by the other's name.
"""

from .arguments import finite, quantity

GB = 10**9
GiB = 2**30
MB = 10**6
MiB = 2**20


def gb(M):
    """M_GB = M / 10^9: bytes to decimal gigabytes. Source: SI prefixes, IEC 80000-13."""
    return quantity("M", M) / GB


def gib(M):
    """M_GiB = M / 2^30: bytes to binary gibibytes, the unit that GPU monitors use. Source: IEC 80000-13."""
    return quantity("M", M) / GiB


def from_gb(M_GB):
    """M = M_GB x 10^9: decimal gigabytes to bytes."""
    return finite("M", quantity("M_GB", M_GB) * GB)


def from_gib(M_GiB):
    """M = M_GiB x 2^30: binary gibibytes to bytes."""
    return finite("M", quantity("M_GiB", M_GiB) * GiB)


def in_bytes(value, unit):
    """M = value x 10^9 (GB), x 2^30 (GiB) or x 1 (B): a printed amount in bytes."""
    return finite("M", quantity("value", value) * {"GB": GB, "GiB": GiB, "B": 1}[unit])
