"""Chapter 6: what one rank of a data-parallel job holds, between two steps.

`shards` is a collection of the groups of state that a strategy divides: "weights", "gradients", "optimizer" (the FP32
master weights and both moments). It comes from data/strategies.yaml. `d` is the number of ranks that a group is
divided over: the data-parallel degree, or for HYBRID_SHARD the ranks of one shard group.
"""

from . import ledger
from .arguments import ArgumentError, count, finite, positive, quantity

GROUPS = ("weights", "gradients", "optimizer")


def _groups(shards):
    if isinstance(shards, str):
        raise ArgumentError("shards", shards, "must be a collection of names out of %s" % ", ".join(GROUPS))
    for group in shards:
        if group not in GROUPS:
            raise ArgumentError("shards", group, "unknown group of state; known are %s" % ", ".join(GROUPS))
    return shards


def rank_lower(M_persistent, W):
    """M_rank,lower = M_persistent / W: bytes per rank if every state were split evenly over W ranks.

    A lower bound: it holds no activation, gathered layer, bucket, fragmentation or margin. Source: whitepaper 6.3.
    """
    return finite("M_rank,lower", quantity("M_persistent", M_persistent) / count("W", W))


def shard_group(W, replicas):
    """d = W / R: ranks of one HYBRID_SHARD shard group, W ranks in R replica groups.

    R must divide W: there is no fraction of a rank. Source: PyTorch FSDP, ShardingStrategy.HYBRID_SHARD.
    """
    count("W", W)
    count("replicas", replicas)
    if W % replicas:
        raise ArgumentError("replicas", replicas, "must divide W = %d; %d ranks would be left over" % (W, W % replicas))
    return W // replicas


def weights(N, b_w, shards, d):
    """M_w = b_w N / d if the strategy shards weights (ZeRO-3, full shard), else b_w N: bytes per rank.

    Source: Rajbhandari et al. 2019, section 5.3.
    """
    return ledger.weights(N, b_w) / (count("d", d) if "weights" in _groups(shards) else 1)


def gradients(N, b_g, shards, d):
    """M_g = b_g N / d from ZeRO-2 on, else b_g N: gradient bytes per rank.

    Source: Rajbhandari et al. 2019, section 5.2.
    """
    return finite("M_g", count("N", N) * quantity("b_g", b_g)) / (
        count("d", d) if "gradients" in _groups(shards) else 1
    )


def optimizer(N, b_master, b_m, b_v, shards, d):
    """M_os = K N / d from ZeRO-1 on, else K N, with K = b_master + b_m + b_v: optimizer bytes per rank.

    Source: Rajbhandari et al. 2019, section 5.1.
    """
    return ledger.optimizer(N, b_master, b_m, b_v) / (count("d", d) if "optimizer" in _groups(shards) else 1)


def persistent(N, b_w, b_g, b_master, b_m, b_v, shards, d):
    """M_rank = M_w + M_g + M_os: persistent bytes per rank between two steps, each divided by d if it is sharded.

    d = 1 gives M_persistent whatever the strategy shards. No gathered layer, bucket or padding: a real shard can
    be larger. Source: Rajbhandari et al. 2019, Figure 1.
    """
    return (
        weights(N, b_w, shards, d)
        + gradients(N, b_g, shards, d)
        + optimizer(N, b_master, b_m, b_v, shards, d)
    )


def gathered_weights(N, b_w):
    """M_gathered = b_w N: bytes of the whole model gathered on one rank, beside its own shard.

    What SHARD_GRAD_OP holds from the first forward to the end of backward, since it does not reshard after forward.
    Under full shard only a layer or two are gathered at a time. Source: PyTorch FSDP, ShardingStrategy.
    """
    return ledger.weights(N, b_w)


def largest_parameters(M, tp, b_w, b_g, b_master, b_m, b_v, shards, d):
    """N = tp M / M_rank(1): parameters of the largest model whose persistent state fits M bytes on each rank.

    tp ranks of a tensor-parallel group hold one part each; d data-parallel ranks divide what the strategy shards. Nothing else
    is on the rank: no activation, no buffer. Source: Rajbhandari et al. 2019, Table 2.
    """
    per_parameter = persistent(1, b_w, b_g, b_master, b_m, b_v, shards, d)
    return finite("N", quantity("M", M) * count("tp", tp) / positive("M_rank(1)", per_parameter))
