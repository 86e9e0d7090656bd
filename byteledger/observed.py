"""The estimate of each observation, and how far it is from what was measured. Bytes on one rank, or of one layer.

ratio = estimate / measured. No formula reads an observation: what differs is explained, or stands.
"""

from fnmatch import fnmatchcase

from . import activation_profiles, hf_config, loss, optimizers, parameters, per_rank, sharding, training
from .arguments import ArgumentError
from .one_record import Named
from .scenario import Scenario

# What is compared of an observation.
KINDS = ("peak", "between_steps", "states", "temporaries", "activations", "loss_kept", "loss_backward", "shards", "deepspeed", "device_peak")
# Dense blocks of Llama's kind: RMSNorm, gated MLP, rotary embedding, grouped queries.
DENSE = ("llama", "mistral", "qwen2", "qwen3")

# Precision of a case -> (ledger of its states, bytes of what the optimizer updates).
PRECISIONS = {
    "mixed": ("fp32-adamw", 4),
    "autocast": ("fp32-adamw", 4),
    "fp32": ("fp32-adamw", 4),
    "bf16": ("bf16-pure-adamw", 2),
    "bf16-master": ("bf16-fp32-gradients", 4),
}
LEDGERS, STRATEGIES = sorted({ledger for ledger, _ in PRECISIONS.values()}), ("ddp", "fsdp2")
# Settings of a measurement that are no settings of a run: which rank was looked at, and how its root unit reshards.
OF_THE_MEASUREMENT = ("rank", "root_reshard", "precision", "optimizer")
# The rule of optimizers.py, where a case names the optimizer's library, too.
RULES = {"adamw_4bit_torchao": "adamw_4bit", "adamw_8bit_bitsandbytes": "adamw_8bit"}
STATES = ("parameters", "gradients", "master")
IMPLEMENTATIONS = {"default": "for_loop"}  # PyTorch's choice on a CPU


class Comparison:
    """An estimate beside what was measured, in bytes; estimated is None where there is no model.

    observation: the id of its record. kind: one of KINDS. moments: (measured, estimated) of a training step, or None. dense: of
    a Llama-like model. group, cause: ids that together() gives it.
    """

    def __init__(self, kind, measured, estimated, moments=None):
        self.kind, self.measured, self.estimated, self.moments = kind, measured, estimated, moments
        self.observation = self.group = self.cause = None
        self.dense = self.held_out = False
        self.parameters, self.ranks = None, 1

    @property
    def id(self):
        """The name by which causes speak of it."""
        return "%s.%s" % (self.observation, self.kind)

    @property
    def difference(self):
        """estimated - measured, in bytes; None where there is no estimate."""
        return None if self.estimated is None else self.estimated - self.measured

    @property
    def percent(self):
        """100 (estimated / measured - 1); 0 where both are nought, None without an estimate."""
        if self.estimated is None:
            return None
        return 100 * self.difference / self.measured if self.difference else 0

    @property
    def size(self):
        """By what comparisons are sorted: the largest difference first, those without an estimate before all."""
        return float("inf") if self.percent is None else abs(self.percent)


def comparisons(id, record, models, ledgers, strategies):
    """The Comparisons of an Observation. models, ledgers, strategies: records by id. Raises ArgumentError, hf_config.Refusal."""
    architecture = None
    if record.settings.get("of") != "loss":
        architecture = hf_config.from_dict(record.fields(models), "data/observations.yaml " + id).architecture
    compare = {"fsdp2": _fsdp2, "states": _states, "saved": _saved, "shards": _shards, "cuda": _cuda}[record.measured]
    found = compare(record, architecture, ledgers, strategies)
    for one in found:
        one.observation, one.held_out = id, record.held_out
        one.parameters, one.ranks = record.parameters, record.settings["dp"] if record.measured == "fsdp2" else 1
        one.dense = architecture is not None and architecture.model_type in DENSE
    return found


def together(found, groups, differences):
    """{id: Comparison} in the order of the largest difference, each with its group and cause. groups, differences: records by id."""
    for one in found:
        one.group = next((id for id, group in groups.items() if _belongs(one, group)), None)
        one.cause = next((id for id, record in differences.items() if one.difference != 0 and explains(record, one)), None)
    return {one.id: one for one in sorted(found, key=lambda one: (-one.size, one.id))}


def explains(record, one):
    """Whether a record of differences.yaml speaks of a Comparison, and the difference is one that it explains."""
    within = one.percent is None or abs(one.percent) <= record.within_percent
    whole = one.difference is None or one.difference % record.multiple_of == 0
    return within and whole and any(fnmatchcase(one.id, pattern) for pattern in record.explains)


def _belongs(one, group):
    return one.kind in group.kinds and one.held_out == group.held_out and group.dense in (None, one.dense)


def of_run(estimate, compared, stage):
    """M = M_peak,rank, or M_states = weights + gradients + master weights + optimizer states: bytes of a rank of a training.Estimate.

    Returns (M, whether it is a floor: a term of that moment has no model). Raises ArgumentError where the activations have none.
    """
    rank = estimate.worst if stage is None else estimate.ranks[stage]
    if compared == "states":
        return sum(rank.moments["optimizer"][term] for term in ("weights", "gradients", "master", "optimizer")), False
    missing = {id for id, _ in estimate.unknown}
    if "activations" in missing:
        raise ArgumentError("run", estimate.profile, "the activations of this block have no model, so its peak has none")
    return rank.peak, "backward" in missing


class Spread:
    """Of a group of comparisons: how many, how many to the byte, with the moment right, and how far off they are, in per cent."""

    def __str__(self):
        return "%d" % self.number

    def __init__(self, found):
        sizes = sorted(one.size for one in found if one.estimated is not None)
        self.number = len(found)
        self.exact = sum(one.difference == 0 for one in found)
        staged = [one.moments for one in found if one.moments]
        self.moment_right = sum(a == b for a, b in staged) if staged else None
        self.median = (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2 if sizes else None
        self.largest = sizes[-1] if sizes else None


def run(record, architecture, ledgers, strategies):
    """The training.Estimate of the step that an fsdp2 or a cuda observation measured."""
    settings = record.settings
    strategy = "fsdp2" if record.measured == "fsdp2" else "ddp"  # on one device nothing is sharded
    ledger, _ = PRECISIONS[settings["precision"]]
    given = {name: value for name, value in settings.items() if name not in OF_THE_MEASUREMENT}
    if settings["precision"] == "fp32":
        given["precision"] = "fp32"
    scenario = Scenario(Named.of(ledgers, ledger), Named.of(strategies, strategy), **given)
    return training.estimate(architecture, scenario, settings.get("rank", 0))


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


def _state_bytes(sizes):
    """Of {kind: bytes} what is state; buffers and communication buckets are none."""
    return sum(size for kind, size in sizes.items() if kind in STATES or kind.startswith("optimizer."))


def _states(record, architecture, ledgers, strategies):
    """Parameters, gradients, master copy and optimizer state."""
    settings, tensors = record.settings, optimizers.in_order(architecture)
    ledger, b = PRECISIONS[settings["precision"]]
    N, rule = parameters.total(architecture), RULES.get(settings["optimizer"], settings["optimizer"])
    ledger = ledgers[ledger]
    implementation = IMPLEMENTATIONS.get(settings["optimizer_implementation"], settings["optimizer_implementation"])
    kept = int((ledger.weights + ledger.gradients + ledger.master_weights) * N) + optimizers.state(tensors, rule, b)
    try:
        update = optimizers.temporaries(tensors, rule, b, implementation)
    except ArgumentError:
        update = None
    return [
        Comparison("states", _state_bytes(record.bytes), kept),
        Comparison("temporaries", record.temporaries, update),
    ]


def _saved(record, architecture, ledgers, strategies):
    settings = record.settings
    B, S, precision = settings["micro_batch"], settings["sequence"], settings["precision"]
    logit, _ = activation_profiles.PRECISIONS[precision]
    if settings["of"] == "loss":
        given = B, S, record.config["vocab_size"], "fp32", logit
        return [
            Comparison("loss_kept", record.bytes["saved"], loss.saved(*given)),
            Comparison("loss_backward", record.bytes["backward"], loss.saved(*given) + loss.backward(*given)),
        ]
    profile, D = activation_profiles.of(architecture.model_type), architecture.hidden_size
    dropout = max(record.config.get(key, 0.0) for key in ("resid_pdrop", "attn_pdrop", "embd_pdrop"))

    def layer(one):
        return sum(activation_profiles.saved(one, D, profile, settings["attention"], precision, B, S, dropout, experts=settings["experts"]).values())

    if settings["of"] == "layer":
        return [Comparison("activations", sum(record.bytes.values()), layer(architecture.layers[0][0]))]
    kept = sum(times * layer(one) for one, times in architecture.layers)
    kept += sum(activation_profiles.outside(architecture, profile, precision, B, S, dropout).values())
    given = B, S, architecture.vocab_size, "fp32", logit
    return [Comparison("activations", sum(record.bytes.values()), kept + loss.saved(*given) + loss.logits(*given))]


def _shards(record, architecture, ledgers, strategies):
    """The rank that is furthest off: its parameters, gradients and optimizer state."""
    b, d, strategy = 4, record.settings["dp"], record.settings["strategy"]
    sizes, tensors = per_rank.sizes(architecture), optimizers.in_order(architecture)
    if strategy.startswith("deepspeed"):
        return [_deepspeed(record, sizes, d, int(strategy[-1]))]
    redundant = sharding.zero_redundancy(sizes, d) if strategy == "zero-redundancy" else None
    found = []
    for rank, measured in enumerate(record.ranks):
        kept, moments, states = sum(sizes), sum(sizes), len(sizes)
        if strategy == "fsdp2":
            kept, moments = sharding.fsdp2_stored(tensors, d), sharding.fsdp2_moments(tensors, d, rank)
        elif redundant:
            moments, states = sum(redundant[rank]), len(redundant[rank])
        estimated = 2 * b * kept + 2 * b * moments + optimizers.STEP * states
        found.append(Comparison("shards", _state_bytes(measured), estimated))
    return [_furthest(found)]


def _furthest(found):
    return max(found, key=lambda one: abs(one.difference))


def _deepspeed(record, sizes, d, stage):
    """Everything that is alive on the rank that is furthest off, but for the model's buffers: its gradients are freed in the step."""
    _, b = PRECISIONS[record.settings["precision"]]
    at_rest = sharding.deepspeed_at_rest(sizes, d, stage, b, record.settings["reduce_bucket_size"])
    at_rest += optimizers.STEP * (1 if stage else len(sizes))
    if stage == 3:
        at_rest += sharding.deepspeed_persistent_parameters(sizes, b)  # small ones stay whole
    return _furthest([Comparison("deepspeed", sum(rank.values()) - rank["buffers"], at_rest) for rank in record.ranks])


def _cuda(record, architecture, ledgers, strategies):
    """On one device: the estimate is of what is asked for, before the allocator rounds blocks up."""
    measured = max(record.requested, key=record.requested.get)
    rank = run(record, architecture, ledgers, strategies).worst
    return [Comparison("device_peak", record.requested[measured], rank.peak, (measured, rank.phase))]
