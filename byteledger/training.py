"""Chapter 7: the memory of a training run on every rank that differs, from an architecture and a scenario.

Puts together what the other modules compute: states (ledger, optimizers), shares of a rank (sharding, parallel),
activations (activation_profiles), the loss, and the moments of a step (step). All results are bytes on one rank.
What was taken for granted and what has no model is listed by name, with the values that go into its words.
"""

import math

from . import activation_profiles, collectives, loss, offload, optimizers, parallel, sharding
from .arguments import ArgumentError
from .step import Step, Unit, dense_backward, peak

FSDP, DDP, DEEPSPEED, MEGATRON = "PyTorch FSDP", "PyTorch DistributedDataParallel", "DeepSpeed", "Megatron-LM"
THROUGH_BACKWARD = ("rotary", "mask", "positions")  # what is no layer's, and is there until the first layer's backward is done


class Rank:
    """What one rank holds. stage: its pipeline stage, from 0. parameters: elements that it computes with."""

    def __init__(self, stage, step, parameters, shard):
        self.stage, self.step, self.parameters, self.shard = stage, step, parameters, shard
        self.moments = step.moments()
        self.phase, self.peak = peak(self.moments)

    def most(self):
        """{term: the most bytes that it takes at any moment}; gradients are those of a whole step."""
        found = {}
        for moment in self.moments.values():
            for term, n in moment.items():
                found[term] = max(found.get(term, 0), n)
        return found


class Estimate:
    """ranks: a Rank for each pipeline stage. assumptions, unknown: [(id, values)]. host_bytes: on one node."""

    def __init__(self, ranks, assumptions, unknown, host_bytes, moved):
        self.ranks, self.assumptions, self.unknown, self.host_bytes, self.moved = ranks, assumptions, unknown, host_bytes, moved

    @property
    def worst(self):
        """The Rank with the highest peak."""
        return max(self.ranks, key=lambda rank: rank.peak)


class _Share:
    """Elements of a list of (tensor, times) on one rank: computed with, stored, kept of gradients, and held by the optimizer."""

    def __init__(self, tensors, run):
        self.elements = self.stored = self.kept = self.held = self.tensors = self.largest = 0
        for tensor, times in tensors:
            elements = run.elements(tensor)
            d = run.expert_degree if tensor.part == "experts" else run.degree
            self.elements += times * elements
            self.tensors += times
            if run.by_rows:
                stored = sharding.fsdp2_storage(tensor.shape, d) if elements == tensor.size else -(-elements // d)
                self.stored += times * stored
                self.kept += times * stored
                self.held += times * stored
            else:
                stored, kept, held = (elements / d if group in run.shards else elements for group in ("weights", "gradients", "optimizer"))
                self.stored += times * stored
                self.kept += times * kept
                self.held += times * held
                stored = held
            self.largest = max(self.largest, stored)

    def __iadd__(self, other):
        for name in ("elements", "stored", "kept", "held", "tensors"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.largest = max(self.largest, other.largest)
        return self


class _Run:
    """A scenario's consequences that do not depend on the layer."""

    def __init__(self, architecture, scenario):
        self.architecture, self.scenario = architecture, scenario
        self.assumptions, self.unknown = [], []
        s, ledger, strategy = scenario, scenario.ledger, scenario.strategy
        self.framework = strategy.framework
        self.shards = frozenset(strategy.shards)
        if not self.shards and s.replicas:
            raise ArgumentError("replicas", s.replicas, "%s shards nothing" % strategy.id)
        # Ranks that a dense state is divided over: data parallel and context parallel ranks hold the same weights.
        self.degree = s.dp * s.cp
        if s.replicas:
            self.degree //= s.replicas
        self.expert_degree = s.tp * s.cp * s.dp // (s.ep * s.etp) // (s.replicas or 1)
        self.by_rows = self.framework == FSDP and bool(self.shards)
        self.split = s.tp > 1 or s.ep > 1 or s.etp > 1
        self.b_w, self.b_g = ledger.weights, ledger.gradients
        if not ledger.gradients and not ledger.first_moment:
            raise ArgumentError("ledger", ledger.id, "keeps neither gradients nor moments: it is no ledger of training")
        self.precision = s.precision or ("bf16" if self.b_w == 2 or self.by_rows else "autocast")
        if self.precision == "autocast" and self.b_w != 4:
            raise ArgumentError("precision", "autocast", "autocast casts FP32 weights; ledger %s keeps %s bytes" % (ledger.id, self.b_w))
        if self.precision == "fp32" and self.b_w != 4:
            raise ArgumentError("precision", "fp32", "ledger %s keeps weights of %s bytes" % (ledger.id, self.b_w))
        self.c = 4 if self.precision == "fp32" else 2
        if not self.b_g:
            self.b_g = self.c
            self.assume("gradients_temporary", value=self.c)
        self.tokens = s.micro_batch * s.sequence // s.cp
        self.profile = self._profile()

    def assume(self, id, **values):
        """Notes an assumption, once."""
        if (id, values) not in self.assumptions:
            self.assumptions.append((id, values))

    def miss(self, id, **values):
        """Notes a term without a model, once."""
        if (id, values) not in self.unknown:
            self.unknown.append((id, values))

    def elements(self, tensor):
        """Elements of a tensor on one rank, after tensor and expert parallelism."""
        s = self.scenario
        return parallel.tensor_parallel(tensor, s.tp, s.ep, s.etp) if self.split else tensor.size

    def _profile(self):
        s = self.scenario
        if s.profile:
            return s.profile
        if s.tp > 1 or self.framework == MEGATRON:
            self.assume("megatron_profile")
            return "megatron"
        try:
            return activation_profiles.of(self.architecture.model_type)
        except ArgumentError as error:
            self.miss("activations", detail=str(error))
            return None

    def backward(self, layer, saved, share):
        """The heights of a layer's backward, or None."""
        s = self.scenario
        if self.profile not in ("llama", "qwen3") or layer.mlp.kind != "gated" or self.precision == "autocast":
            return None
        a, d = layer.mixer.num_attention_heads, layer.mixer.head_dim
        S = s.sequence // s.cp
        return dense_backward(
            saved, self.architecture.hidden_size, layer.mlp.intermediate_size, S, s.micro_batch, self.c, share.elements,
            a * d, layer.mixer.num_key_value_heads * d, a * S * S * s.micro_batch, s.attention == "eager",
        )  # fmt: skip


def _stages(run):
    """[(stage, [(layer, times)], tensors outside the layers, has the head)] of every pipeline stage."""
    s, architecture = run.scenario, run.architecture
    if s.pp == 1:
        return [(0, architecture.layers, architecture.outside, True)]
    head = [tensor for tensor in architecture.outside if tensor.part in ("output_head",) or tensor.part == "norms"]
    first = [tensor for tensor in architecture.outside if tensor not in head]
    if architecture.tied:
        head = head + [tensor for tensor in first if tensor.part == "embedding"]
        run.assume("tied_on_both_ends")
    flat = [layer for layer, times in architecture.layers for _ in range(times)]
    stages = []
    for stage in range(s.pp):
        mine = [flat[i] for i in parallel.stage_layers(len(flat), s.pp, stage, s.virtual_pp)]
        groups = []
        for layer in mine:
            if groups and groups[-1][0] is layer:
                groups[-1][1] += 1
            else:
                groups.append([layer, 1])
        outside = (first if stage == 0 else []) + (head if stage == s.pp - 1 else [])
        stages.append((stage, [(layer, times) for layer, times in groups], outside, stage == s.pp - 1))
    return stages


def _rank(run, stage, layers, outside, has_head):
    """The Rank of one pipeline stage."""
    s, ledger, architecture = run.scenario, run.scenario.ledger, run.architecture
    D, V, n, S = architecture.hidden_size, architecture.vocab_size, run.tokens, s.sequence // s.cp
    total = root = _Share([(tensor, 1) for tensor in outside], run)
    total = _Share([], run)
    total += root
    units = []
    for layer, times in layers:
        share = _Share([(tensor, 1) for tensor in layer.tensors], run)
        saved = recomputed = kept = 0
        if run.profile:
            parts = activation_profiles.saved(
                layer, D, run.profile, s.attention, run.precision, s.micro_batch, S, s.dropout, s.tp, s.sequence_parallel, s.experts
            )
            saved = kept = sum(parts.values())
            if s.checkpointing == "full":
                kept, recomputed = activation_profiles.checkpointed(s.micro_batch, S, D, run.precision), saved
            elif s.checkpointing == "selective":
                kept = saved - parts.get("scores", 0)
        heights = run.backward(layer, saved, share) if run.profile else None
        units.append(Unit(run.c * share.elements, share.elements, share.kept, kept, recomputed, heights, times))
        for _ in range(1):
            scaled = _Share([], run)
            scaled += share
            for name in ("elements", "stored", "kept", "held", "tensors"):
                setattr(scaled, name, getattr(scaled, name) * times)
            total += scaled
    head = sum(tensor.size for tensor in outside if tensor.part == ("embedding" if architecture.tied else "output_head")) if has_head else 0
    weights = math.ceil(run.b_w * total.stored)
    master = math.ceil(ledger.master_weights * total.held)
    moments = math.ceil((ledger.first_moment + ledger.second_moment) * total.held)
    if ledger.first_moment and run.framework in (FSDP, DDP):
        moments += 4 * total.tensors
    update_width = 4 if ledger.master_weights else run.b_w
    update = {"foreach": update_width * total.held, "for_loop": 2 * update_width * total.largest, "fused": 0}[s.optimizer_implementation]
    outside_parts = activation_profiles.outside(architecture, run.profile, run.precision, s.micro_batch, S) if run.profile else {}
    if s.checkpointing == "full" and run.profile in ("llama", "qwen3"):
        # A checkpoint keeps the inputs of its layer: the position ids and, with eager attention, the 4-D mask.
        outside_parts = {**outside_parts, "positions": 8 * S, "mask": run.c * s.micro_batch * S * S if s.attention == "eager" else 0}
    through = sum(size for part, size in outside_parts.items() if part in THROUGH_BACKWARD)
    between = sum(size for part, size in outside_parts.items() if part not in THROUGH_BACKWARD + ("labels",)) if has_head else 0
    loss_terms = (0, 0, 0, 0)
    if has_head:
        kept = loss.saved(s.micro_batch, S, V, s.loss, run.c, s.loss_chunks, s.tp)
        logits = loss.logits(s.micro_batch, S, V, s.loss, run.c, s.loss_chunks, s.tp) if s.keeps_logits else 0
        more = loss.backward(s.micro_batch, S, V, s.loss, run.c, s.loss_chunks, s.tp)
        forward = 4 * n * V + 8 * n * (2 if s.micro_batch > 1 else 1) + 8 * s.micro_batch if s.loss == "fp32" else more
        loss_terms = (kept, logits + 8, forward, more)
    in_flight = parallel.in_flight(s.pp, stage, s.micro_batches, s.virtual_pp) if s.pp > 1 else 1
    saved_all = sum(unit.saved * unit.times for unit in units)
    gathers = {"none": "none", "layer": "layer", "model": "model"}[run.scenario.strategy.gathers]
    if run.by_rows and s.reshard_after_forward is not True:
        gathers = "model" if s.reshard_after_forward is False else s.reshard_after_forward
    sharded_gradients = run.by_rows
    rope = 4 * layers[0][0].mixer.head_dim if run.profile in ("llama", "qwen3") and layers else 0
    step = Step(
        units,
        Unit(run.c * root.elements, root.elements, root.kept, 0, 0, []),
        weights,
        master,
        moments,
        run.b_g,
        max(run.b_g, run.c) if run.by_rows else run.b_g,
        run.c * head,
        gathers if run.shards else "none",
        sharded_gradients,
        (between, through),
        8 * n + rope,
        loss_terms,
        run.c * n * D,
        math.ceil(update),
        accumulated=s.micro_batches > 1 or run.framework == MEGATRON,
        waiting=math.ceil((in_flight - 1) * (saved_all + through)),
    )
    return Rank(stage, step, total.elements, total)


def estimate(architecture, scenario):
    """M_peak,rank for every pipeline stage: an Estimate. Raises ArgumentError for what has no model."""
    run = _Run(architecture, scenario)
    ranks = [_rank(run, *stage) for stage in _stages(run)]
    return Estimate(ranks, run.assumptions, run.unknown, 0, {})
