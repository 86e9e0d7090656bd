"""The estimate of each observation, and how far it is from what was measured. Bytes on one rank, or of one layer.

ratio = estimate / measured. No formula reads an observation: what differs is explained, or stands.
"""

from . import activation_profiles, loss, optimizers, sharding, training
from .arguments import ArgumentError
from .one_record import Named
from .scenario import Scenario

# What is compared, in the order of the page.
CLASSES = ("peak", "between_steps", "states", "temporaries", "activations", "loss", "shards")

# Precision of a case -> (ledger of its states, bytes of what the optimizer updates).
PRECISIONS = {
    "mixed": ("fp32-adamw", 4),
    "autocast": ("fp32-adamw", 4),
    "fp32": ("fp32-adamw", 4),
    "bf16": ("bf16-pure-adamw", 2),
    "bf16-master": ("bf16-fp32-gradients", 4),
}
# Settings of a measurement that are no settings of a run: which rank was looked at, and how its root unit reshards.
OF_THE_MEASUREMENT = ("rank", "root_reshard", "precision", "optimizer")
# The rule of optimizers.py, where a case names the optimizer's library, too.
RULES = {"adamw_4bit_torchao": "adamw_4bit", "adamw_8bit_bitsandbytes": "adamw_8bit"}
STATES = ("parameters", "gradients", "master")
IMPLEMENTATIONS = {"default": "for_loop"}  # PyTorch's choice on a CPU


class Comparison:
    """measured and estimated: bytes, estimated None where there is no model. moments: (measured, estimated) of a step, or None."""

    __slots__ = ("kind", "measured", "estimated", "moments")

    def __init__(self, kind, measured, estimated, moments=None):
        self.kind, self.measured, self.estimated, self.moments = kind, measured, estimated, moments

    @property
    def ratio(self):
        """r = estimated / measured; None without an estimate, or where nothing was measured to be there."""
        return self.estimated / self.measured if self.measured and self.estimated is not None else None

    @property
    def difference(self):
        """estimated - measured, in bytes; None where there is no estimate."""
        return None if self.estimated is None else self.estimated - self.measured


def comparisons(record, architecture, ledgers, strategies):
    """The Comparisons of an Observation. architecture: of its configuration, None for the loss alone. Raises ArgumentError."""
    return {"fsdp2": _fsdp2, "states": _states, "saved": _saved, "shards": _shards}[record.measured](record, architecture, ledgers, strategies)


def run(record, architecture, ledgers, strategies):
    """The training.Estimate of what an fsdp2 observation measured."""
    settings = record.settings
    ledger, _ = PRECISIONS[settings["precision"]]
    given = {name: value for name, value in settings.items() if name not in OF_THE_MEASUREMENT}
    if settings["precision"] == "fp32":
        given["precision"] = "fp32"
    return training.estimate(architecture, Scenario(Named(ledger, dict(ledgers[ledger])), Named("fsdp2", dict(strategies["fsdp2"])), **given), settings["rank"])


def _fsdp2(record, architecture, ledgers, strategies):
    rank, settings = run(record, architecture, ledgers, strategies).worst, record.settings
    _, b = PRECISIONS[settings["precision"]]
    measured = max(record.phases, key=record.phases.get)
    tensors = optimizers.in_order(architecture)
    d, number = settings["dp"], settings["rank"]
    at_rest = b * sharding.fsdp2_stored(tensors, d) + 2 * b * sharding.fsdp2_moments(tensors, d, number) + optimizers.STEP * rank.share.tensors + rank.step.fixed
    return [
        Comparison("peak", record.phases[measured], rank.peak, (measured, rank.phase)),
        Comparison("between_steps", sum(record.at_rest.values()), at_rest),
    ]


def _states(record, architecture, ledgers, strategies):
    """Parameters, gradients, master copy and optimizer state; buffers are no state."""
    settings, tensors = record.settings, optimizers.in_order(architecture)
    ledger, b = PRECISIONS[settings["precision"]]
    N, rule = sum(times * tensor.size for tensor, times in tensors), RULES.get(settings["optimizer"], settings["optimizer"])
    ledger = ledgers[ledger]
    implementation = IMPLEMENTATIONS.get(settings["optimizer_implementation"], settings["optimizer_implementation"])
    kept = int((ledger.weights + ledger.gradients + ledger.master_weights) * N) + optimizers.state(tensors, rule, b)
    try:
        update = optimizers.temporaries(tensors, rule, b, implementation)
    except ArgumentError:
        update = None
    return [
        Comparison("states", sum(size for kind, size in record.bytes.items() if kind in STATES or kind.startswith("optimizer.")), kept),
        Comparison("temporaries", record.temporaries, update),
    ]


def _saved(record, architecture, ledgers, strategies):
    settings = record.settings
    B, S, precision = settings["micro_batch"], settings["sequence"], settings["precision"]
    if settings["of"] == "loss":
        given = B, S, record.config["vocab_size"], "fp32", 2 if precision == "bf16" else 4
        return [
            Comparison("loss", record.bytes["saved"], loss.saved(*given)),
            Comparison("loss", record.bytes["backward"], loss.saved(*given) + loss.backward(*given)),
        ]
    profile, D = activation_profiles.of(architecture.model_type), architecture.hidden_size
    dropout = max(record.config.get(key, 0.0) for key in ("resid_pdrop", "attn_pdrop", "embd_pdrop"))

    def layer(one):
        return sum(activation_profiles.saved(one, D, profile, settings["attention"], precision, B, S, dropout, experts=settings["experts"]).values())

    if settings["of"] == "layer":
        return [Comparison("activations", sum(record.bytes.values()), layer(architecture.layers[0][0]))]
    kept = sum(times * layer(one) for one, times in architecture.layers)
    kept += sum(activation_profiles.outside(architecture, profile, precision, B, S, dropout).values())
    given = B, S, architecture.vocab_size, "fp32", 2 if precision == "bf16" else 4
    return [Comparison("activations", sum(record.bytes.values()), kept + loss.saved(*given) + loss.logits(*given))]


def _shards(record, architecture, ledgers, strategies):
    """The rank that is furthest off: its parameters, gradients and optimizer state; buffers and communication buckets are no state."""
    b, d, strategy = 4, record.settings["dp"], record.settings["strategy"]
    tensors = optimizers.in_order(architecture)
    flat = [tensor for tensor, times in tensors for _ in range(times)]
    N = sum(tensor.size for tensor in flat)
    redundant = sharding.zero_redundancy([tensor.size for tensor in flat], d) if strategy == "zero-redundancy" else None
    found = []
    for rank, measured in enumerate(record.ranks):
        kept, moments, states = N, N, len(flat)
        if strategy == "fsdp2":
            kept, moments = sharding.fsdp2_stored(tensors, d), sharding.fsdp2_moments(tensors, d, rank)
        elif redundant:
            moments, states = sum(redundant[rank]), len(redundant[rank])
        estimated = 2 * b * kept + 2 * b * moments + optimizers.STEP * states
        found.append(Comparison("shards", sum(size for kind, size in measured.items() if kind in STATES or kind.startswith("optimizer.")), estimated))
    return [max(found, key=lambda one: abs(one.difference))]
