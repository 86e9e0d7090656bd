"""Chapter 6: bytes that one rank sends per step for the sake of a sharding strategy.

`M` is the size of the message in bytes, the whole tensor that ends up gathered or reduced. Each result is what one rank
sends, and receives, under a ring, which moves the least possible; the paper's counts are the limit of large d.
"""

from .arguments import ArgumentError, count, finite, quantity


def gather_or_scatter(M, d):
    """V = M (d - 1) / d: bytes that a rank sends in an all-gather, or in a reduce-scatter, of M bytes over d ranks.

    Its own share does not travel. d = 1: nothing. Source: Rajbhandari et al. 2019, section 7; Thakur et al. 2005.
    """
    d = count("d", d)
    return finite("V", quantity("M", M) * (d - 1) / d)


def all_reduce(M, d):
    """V = 2 M (d - 1) / d: bytes that a rank sends in an all-reduce, a reduce-scatter and an all-gather.

    Source: Rajbhandari et al. 2019, section 7.1.
    """
    return 2 * gather_or_scatter(M, d)


def paper_volume(M, shards, zero_stage):
    """V = 2 M, or 3 M where weights are sharded: the paper's limit of large d, 2Ψ and 3Ψ, per step and rank.

    None for what is no stage of ZeRO (zero_stage is None, and something is sharded): the paper does not speak of it.

    DDP, ZeRO-1 and ZeRO-2 move the gradients in and the weights (or gradients) out; ZeRO-3 gathers the weights twice, for
    forward and for backward, and scatters the gradients. M: bytes of the weights, as of the gradients (16 bit both).
    Source: Rajbhandari et al. 2019, sections 7.1 and 7.2.
    """
    if _collection(shards) and zero_stage is None:
        return None
    return (3 if "weights" in shards else 2) * quantity("M", M)


def per_step(M_w, M_g, shards, d, keeps_gathered=False):
    """V = 2 M_g (d - 1) / d (DDP), (M_w + M_g) (d - 1) / d (ZeRO-1, 2), (2 M_w + M_g) (d - 1) / d (ZeRO-3): bytes per rank and step.

    One micro-batch. M_w, M_g: bytes of the whole model's weights and gradients as they travel. keeps_gathered: the
    weights gathered in forward serve backward too (SHARD_GRAD_OP, reshard_after_forward=False), so one gather less.
    Source: Rajbhandari et al. 2019, section 7; PyTorch FSDP, ShardingStrategy.
    """
    shards = _collection(shards)
    if not shards:
        return all_reduce(M_g, d)
    gathers = (1 if keeps_gathered else 2) if "weights" in shards else 1
    return gathers * gather_or_scatter(M_w, d) + gather_or_scatter(M_g, d)


def hybrid_inside(M_w, M_g, g):
    """V_in = (2 M_w + M_g) (g - 1) / g: bytes per rank and step inside a HYBRID_SHARD group of g ranks.

    Gathers and scatters stay inside the group, where the links are fast. Source: PyTorch FSDP, HYBRID_SHARD.
    """
    return per_step(M_w, M_g, ("weights",), g)


def hybrid_between(M_g, g, replicas):
    """V_out = 2 (M_g / g) (R - 1) / R: bytes per rank and step between the R replica groups.

    Only the rank's shard of the gradients is all-reduced there: 1 / g of what DDP would send. Source: PyTorch FSDP, HYBRID_SHARD.
    """
    return all_reduce(quantity("M_g", M_g) / count("g", g), count("replicas", replicas))


def _collection(shards):
    if isinstance(shards, str):
        raise ArgumentError("shards", shards, "must be a collection of names")
    return shards


def inside(M, shards, d, gathers):
    """V_in = 2, 3 or (kept gathered) 2 times M (d - 1) / d: bytes per rank and step over the d ranks that a state is divided over.

    M: bytes of the weights as they travel, and of the gradients, in 16 bit both. gathers: "model" if the weights gathered
    in forward are kept for backward. Source: Rajbhandari et al. 2019, section 7.
    """
    return per_step(M, M, shards, d, gathers == "model")


def between(M, d, replicas=None):
    """V_out = 2 (M / d) (R - 1) / R: bytes per rank and step between replica groups; None where there are none."""
    return None if replicas is None else hybrid_between(M, d, replicas)
