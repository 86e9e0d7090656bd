"""Chapter 7: the memory of a training run on every rank that differs, from an architecture and a scenario.

Puts together what the other modules compute: states (ledger, optimizers), shares of a rank (sharding, parallel),
activations (activation_profiles), the loss, and the moments of a step (step). All results are bytes on one rank.
What was taken for granted and what has no model is listed by name, with the values that go into its words.
"""

import math

from . import activation_profiles, collectives, lora, loss, offload, optimizers, parallel, sharding, weight_formats
from .arguments import ArgumentError
from .parameters import Tensor
from .step import Step, Unit, attention_backward, dense_backward, gpt2_backward, materialized_backward, normalized_backward, peak, projection_backward, routed_backward

FSDP1, FSDP2, DDP, DEEPSPEED, MEGATRON = "PyTorch FSDP", "PyTorch FSDP2", "PyTorch DistributedDataParallel", "DeepSpeed", "Megatron-LM"
PYTORCH = (FSDP1, FSDP2, DDP)
LINEAR = ("attention", "mlp", "experts", "shared_experts")  # parts whose matrices an FP8 recipe converts
THROUGH_BACKWARD = ("rotary", "positions", "layer_inputs")  # what is no layer's, and is there until the first layer's backward is done
# Settings that only some runs read: name -> (whether this one does, which do).
READ_BY = {
    "reshard_after_forward": (lambda run: run.by_rows and run.framework == FSDP2, "FSDP2 reads it"),
    "gradient_as_bucket_view": (lambda run: run.framework == DDP, "DistributedDataParallel reads it"),
    "reduce_bucket_size": (lambda run: run.stage in (1, 2, 3), "DeepSpeed's stages 1 to 3 read it"),
    "overlap_comm": (lambda run: run.stage in (1, 2), "DeepSpeed's stages 1 and 2 get a second bucket by it"),
    "stage3_max_live_parameters": (lambda run: run.stage == 3, "DeepSpeed's stage 3 reads it"),
    "lora_targets": (lambda run: run.scenario.lora_rank, "a run with adapters reads it: give lora_rank"),
    "loss_chunks": (lambda run: run.scenario.loss == "chunked", "the chunked loss reads it: give loss chunked"),
    "gpus_per_node": (lambda run: run.scenario.offload != "none" or run.scenario.paged, "what is held in host memory is counted by it: give offload or paged"),
}
# The moments of AdamW that PyTorch keeps in a plain format; quantized ones have an update of their own.
PLAIN_MOMENTS = (2, 4)


class Rank:
    """What one rank of a pipeline stage (counted from 0) holds: its moments, its peak, and shares of the model."""

    def __init__(self, stage, step, share):
        self.stage, self.step, self.share = stage, step, share
        # A share divided evenly need not be whole elements; bytes are.
        self.moments = {moment: {term: math.ceil(n) for term, n in terms.items()} for moment, terms in step.moments().items()}
        self.phase, self.peak = peak(self.moments)

    def most(self):
        """{term: the most bytes that it takes at any moment}."""
        found = {}
        for moment in self.moments.values():
            for term, n in moment.items():
                found[term] = max(found.get(term, 0), n)
        return found


class Estimate:
    """ranks: a Rank for each pipeline stage. assumptions, unknown: [(id, values)]. host_bytes on one node, moved by each rank in a step."""

    def __init__(self, ranks, run, host_bytes, moved):
        self.ranks, self.assumptions, self.unknown = ranks, run.assumptions, run.unknown
        self.profile, self.precision, self.degree = run.profile, run.precision, run.degree
        self.host_bytes, self.moved = host_bytes, moved

    def __str__(self):
        return "%s, %s, d = %d" % (self.profile or "?", self.precision, self.degree)

    @property
    def worst(self):
        """The Rank with the highest peak."""
        return max(self.ranks, key=lambda rank: rank.peak)


class _Share:
    """Elements on one rank: computed with, stored as weights, kept of gradients, held by the optimizer; tensors and the largest."""

    FIELDS = ("elements", "stored", "kept", "held", "tensors")

    def __init__(self):
        self.elements = self.stored = self.kept = self.held = self.tensors = self.largest = 0

    def add(self, other, times=1):
        """Takes in another share, `times` of it."""
        for name in self.FIELDS:
            setattr(self, name, getattr(self, name) + times * getattr(other, name))
        self.largest = max(self.largest, other.largest)


class _Run:
    """What follows from a scenario for every layer alike."""

    def __init__(self, architecture, scenario, rank):
        self.architecture, self.scenario, self.rank = architecture, scenario, rank
        self.assumptions, self.unknown = [], []
        s, ledger, strategy = scenario, scenario.ledger, scenario.strategy
        if strategy.shards is None:
            raise ArgumentError("strategy", strategy.id, "has no model of its own; offload is a setting beside a strategy")
        self.framework, self.shards = strategy.framework, frozenset(strategy.shards)
        # Data-parallel and context-parallel ranks hold the same weights; a hybrid divides over one group of them.
        self.degree = s.dp * s.cp // (s.replicas or 1)
        self.expert_degree = s.tp * s.cp * s.dp // (s.ep * s.etp) // (s.replicas or 1)
        self.by_rows = self.framework in (FSDP1, FSDP2) and bool(self.shards)
        if self.framework == FSDP1 and self.shards:
            self.assume("as_fsdp2")
        self.stage = strategy.zero_stage
        self.split = s.tp > 1 or s.ep > 1 or s.etp > 1
        if not ledger.gradients and not ledger.first_moment:
            raise ArgumentError("ledger", ledger.id, "keeps neither gradients nor moments: it is no ledger of training")
        self.b_w, self.b_g = ledger.weights, ledger.gradients
        self.precision = s.precision or ("bf16" if self.b_w == 2 or self.by_rows or s.lora_rank else "autocast")
        if self.precision != "bf16" and self.b_w != 4:
            raise ArgumentError("precision", self.precision, "needs FP32 weights; ledger %s keeps %s bytes of each" % (ledger.id, self.b_w))
        if self.precision == "autocast" and self.by_rows:
            raise ArgumentError("precision", self.precision, "FSDP casts what it gathers; give bf16")
        self.c = 4 if self.precision == "fp32" else 2
        for name, (reads, whose) in READ_BY.items():
            if name in s.stated and not reads(self):
                raise ArgumentError(name, getattr(s, name), "changes nothing here: it is a setting %s" % ("that is " + whose if whose.startswith("of ") else "of " + whose))
        if self.by_rows and self.b_w == 4 and self.c == 2:
            self.assume("mixed_shards")
        if not self.b_g:
            self.b_g = self.c
            self.assume("gradients_temporary", value=self.c)
        self.sequence = parallel.sequence(s.sequence, s.cp)
        self.tokens = s.micro_batch * self.sequence
        self.profile = self._profile()
        self.loss = s.loss
        if self.profile == "megatron" and "loss" not in s.stated:
            self.loss = "vocabulary_parallel"
            self.assume("vocabulary_parallel")
        self.optimizer = self._optimizer()
        self._check_copies()
        self.pages = 0
        self.adapted = lora.adapted(architecture, s.lora_targets) if s.lora_rank else None

    def assume(self, id, **values):
        """Notes an assumption, once."""
        if (id, values) not in self.assumptions:
            self.assumptions.append((id, values))

    def miss(self, id, **values):
        """Notes a term without a model, once."""
        if (id, values) not in self.unknown:
            self.unknown.append((id, values))

    def _profile(self):
        s = self.scenario
        if s.profile:
            return s.profile
        if s.tp > 1 or s.pp > 1 or s.ep > 1 or self.framework == MEGATRON:
            self.assume("megatron_profile")
            return "megatron"
        try:
            return activation_profiles.of(self.architecture.model_type)
        except ArgumentError as error:
            self.miss("activations", detail=str(error))
            return None

    def _optimizer(self):
        """The optimizer whose state is counted by tensors; None: the ledger's bytes per parameter."""
        s = self.scenario
        if s.optimizer is None:
            return None
        if self.framework in (DEEPSPEED, MEGATRON) and self.shards and s.optimizer != "adamw":
            raise ArgumentError("optimizer", s.optimizer, "%s keeps its optimizer in flat partitions; only AdamW is modelled there" % self.framework)
        if self.by_rows and self.degree > 1 and s.optimizer == "adafactor":
            raise ArgumentError("optimizer", s.optimizer, "its row and column factors of sharded matrices have no model")
        if s.optimizer == "adamw":
            return None
        self.assume("optimizer_by_tensor", value=s.optimizer)
        return s.optimizer

    def _check_copies(self):
        """Refuses paged moments and FP8 copies where they have no model."""
        s, ledger = self.scenario, self.scenario.ledger
        if s.fp8_copies and (self.precision != "bf16" or s.lora_rank):
            raise ArgumentError("fp8_copies", s.fp8_copies, "they stand beside 16-bit weights that are trained; here is %s" % ("a frozen base" if s.lora_rank else self.precision))
        if not s.paged:
            return
        if self.shards or self.split or s.pp > 1:
            raise ArgumentError("paged", True, "bitsandbytes pages whole tensors of an unsharded model; a sharded one has no model")
        if self.optimizer not in (None, "adamw_8bit") or (self.optimizer is None and ledger.first_moment != 4):
            raise ArgumentError("paged", True, "bitsandbytes pages FP32 or 8-bit moments: give a ledger with FP32 moments, or optimizer adamw_8bit")
        if s.offload != "none":
            raise ArgumentError("offload", s.offload, "what is offloaded is not paged: give one of the two")

    def share(self, tensors):
        """The _Share of a list of tensors, and the tensors as one rank's optimizer sees them."""
        share, mine = _Share(), []
        s = self.scenario
        for tensor in tensors:
            elements = parallel.tensor_parallel(tensor, s.tp, s.ep, s.etp) if self.split else tensor.size
            d = self.expert_degree if tensor.part == "experts" else self.degree
            share.elements += elements
            share.tensors += 1
            if self.by_rows:
                if elements == tensor.size:
                    stored, held = sharding.fsdp2_storage(tensor.shape, d), sharding.fsdp2_held(tensor.shape, d, self.rank % d)
                else:
                    stored = held = -(-elements // d)
                    self.assume("even_split")
                kept = stored
            else:
                part = -(-elements // d) if self.stage == 3 else elements / d
                stored, kept, held = (part if group in self.shards else elements for group in ("weights", "gradients", "optimizer"))
            share.stored += stored
            share.kept += 0 if s.gradient_release else kept
            share.held += held
            share.largest = max(share.largest, held)
            if self.optimizer or s.paged:
                rows = -(-tensor.shape[0] // d) if self.by_rows else tensor.shape[0]
                mine.append(Tensor(tensor.name, (rows,) + tensor.shape[1:], tensor.part))
        return share, mine

    def frozen(self, tensors):
        """Bytes of a frozen base: in its format, or 16 bit."""
        format = self.scenario.base_format
        if format is None:
            return 2 * sum(tensor.size for tensor in tensors)
        return sum(
            weight_formats.tensor_bytes(tensor, format.bits, format.scales) if weight_formats.is_converted(tensor, format.keeps) else format.kept_bytes * tensor.size
            for tensor in tensors
        )

    def heights(self, layer, saved, share, parts):
        """The heights of a layer's backward, or None where they have no model."""
        s = self.scenario
        if self.profile == "gpt2" and self.c == 2 and self.precision == "bf16" and not s.dropout and not s.lora_rank:
            scores = layer.mixer.num_attention_heads * self.sequence**2 * s.micro_batch
            return gpt2_backward(saved, self.architecture.hidden_size, layer.mlp.intermediate_size, self.tokens, self.c, share.elements, scores, s.attention == "eager")
        if self.profile not in ("llama", "qwen3") or self.precision == "autocast":
            return None
        D, n, f, mixer = self.architecture.hidden_size, self.tokens, layer.mlp.intermediate_size, layer.mixer
        a, k, d = mixer.num_attention_heads, mixer.num_key_value_heads, mixer.head_dim
        # The norms' statistics are 4 bytes for each head and token, after those of the layer's two norms.
        normalized = parts["query_key_norm"] + parts["statistics"] - 8 * n if "query_key_norm" in parts else 0
        if layer.mlp.kind == "experts" and s.experts == "grouped_mm" and s.attention == "sdpa" and self.c == 2 and not s.lora_rank:
            routed = _size(layer.tensors, "experts")
            found = routed_backward(saved, D, f, n * layer.mlp.num_experts_per_tok, n, self.c, share.elements, routed)
        elif layer.mlp.kind == "gated":
            found = dense_backward(saved, D, f, n, self.c, share.elements)
        else:
            return None
        if s.attention == "sdpa":
            later = ("input_norm", "query_key_value", "attention_output", "log_sum_exp", "seeds", "mask")
            read = sum(tensor.size for tensor in layer.tensors if tensor.part in ("attention", "biases") and not tensor.name.startswith("o_proj"))
            read += D + (2 * d if normalized else 0)
            kept = sum(parts.get(part, 0) for part in later) + normalized + 4 * n
            found.append(attention_backward(kept, read, n * a * d, 2 * n * k * d, share.elements, self.c))
        else:
            repeated = n * d if k == s.micro_batch == 1 else n * a * d
            found.append(materialized_backward(D, f, n, self.c, n * a * d, repeated, a * self.sequence**2 * s.micro_batch, normalized))
        found.append(projection_backward(parts["input_norm"], D, n * a * d, n, self.c, share.elements))
        if normalized:
            found += normalized_backward(D, d, n * a * d, n * k * d, n, self.c, share.elements)
        if s.lora_rank:  # a frozen matrix has no gradient; those of all adapters are the most there can be
            return [(activations, self.c * share.elements, temporaries) for activations, _, temporaries in found]
        return found


def _stages(run):
    """(stage, [(layer, times)], tensors outside the layers) of every pipeline stage."""
    s, architecture = run.scenario, run.architecture
    if s.pp == 1:
        return [(0, architecture.layers, architecture.outside)]
    flat = [layer for layer, times in architecture.layers for _ in range(times)]
    stages = []
    for stage in range(s.pp):
        groups = []
        for i in parallel.stage_layers(len(flat), s.pp, stage, s.virtual_pp):
            if groups and groups[-1][0] is flat[i]:
                groups[-1][1] += 1
            else:
                groups.append([flat[i], 1])
        inside = {id(tensor) for layer, _ in groups for tensor in layer.tensors}
        outside = [tensor for tensor, _ in parallel.stage_tensors(architecture, s.pp, stage, s.virtual_pp) if id(tensor) not in inside]
        stages.append((stage, [(layer, times) for layer, times in groups], outside))
    if architecture.tied:
        run.assume("tied_on_both_ends")
    return stages


def _rank(run, stage, layers, outside):
    """The Rank of one pipeline stage."""
    s, ledger, architecture = run.scenario, run.scenario.ledger, run.architecture
    D, V, n, S, B = architecture.hidden_size, architecture.vocab_size, run.tokens, run.sequence, s.micro_batch
    first, last = stage == 0, stage == s.pp - 1
    trained, base, optimized = _Share(), 0.0, []
    divided = run.degree if "weights" in run.shards else 1
    root, mine = run.share([] if s.lora_rank else outside)
    trained.add(root)
    optimized += [(tensor, 1) for tensor in mine]
    root_gathered = run.c * root.elements
    if s.lora_rank:
        root_gathered = run.frozen(outside)
        base += root_gathered / divided
    units, copies = [], 0
    # A LayerNorm, and an RMSNorm in FP32, keeps the very tensor that the checkpoint does.
    shares_input = run.precision == "fp32" or run.profile == "gpt2"
    for layer, times in layers:
        saved = kept = 0
        tensors = lora.of_layer(layer, s.lora_rank, run.adapted) if s.lora_rank else layer.tensors
        share, mine = run.share(tensors)
        optimized += [(tensor, times) for tensor in mine]
        trained.add(share, times)
        gathered = run.c * share.elements
        if s.lora_rank:
            frozen = run.frozen(layer.tensors)
            gathered += frozen
            base += times * frozen / divided
        if run.profile:
            parts = activation_profiles.saved(layer, D, run.profile, s.attention, run.precision, B, S, s.dropout, s.tp, s.sequence_parallel, s.experts, s.etp)
            copies += times * parts.pop("weight_copies", 0)
            if s.fp8_copies:
                linear = [tensor for tensor in layer.tensors if tensor.part in LINEAR and len(tensor.shape) > 1]
                elements = int(sum(parallel.tensor_parallel(tensor, s.tp, s.ep, s.etp) if run.split else tensor.size for tensor in linear))
                copies += times * optimizers.fp8_copies(elements, s.fp8_copies == 2)
                run.assume("fp8_copies", value=s.fp8_copies)
            saved = kept = sum(parts.values())
            if s.checkpointing == "full":
                kept = activation_profiles.checkpointed(B, S, D, run.precision)
            elif s.checkpointing == "selective":
                kept = saved - parts.get("scores", 0)
        reduced = run.degree * share.stored if run.by_rows else share.elements
        units.append(Unit(gathered + run.c * (reduced - share.elements), run.c * share.elements, reduced, share.kept, kept, s.checkpointing == "full", shares_input, run.heights(layer, saved, share, parts) if run.profile else [(0, 0, 0)], times))
    states = _states(run, trained, optimized, base)
    head = 0
    if last and not s.lora_rank:
        head = run.c * _size(outside, "embedding" if architecture.tied else "output_head") // s.tp + run.c * _size(outside, "norms")
    through, between, head_copy = _outside(run, first, last)
    saved_all = sum(unit.saved * unit.times for unit in units)
    in_flight = parallel.in_flight(s.pp, stage, s.micro_batches, s.virtual_pp) if s.pp > 1 else 1
    gathers = "none" if "weights" not in run.shards else run.scenario.strategy.gathers
    if run.by_rows and "reshard_after_forward" in s.stated:
        gathers = {True: "layer", False: "model"}[s.reshard_after_forward] if isinstance(s.reshard_after_forward, bool) else s.reshard_after_forward
        if gathers not in ("layer", "model"):
            run.assume("spread_root")
    if run.framework == FSDP2 and run.degree == 1:
        run.assume("one_rank")
    elif run.framework == FSDP2 and gathers == "layer":
        run.assume("root_resharded")
    live = bucket = buffers = 0
    if run.stage == 3:
        live = math.ceil(sharding.deepspeed_live_parameters(trained.elements, run.c, s.stage3_max_live_parameters))
        buffers = run.c * s.reduce_bucket_size
        run.assume("deepspeed_buckets", value=s.reduce_bucket_size, live=s.stage3_max_live_parameters)
    elif run.stage:
        bucket = run.c * s.reduce_bucket_size * (2 if s.overlap_comm else 1)
        run.assume("deepspeed_bucket", value=s.reduce_bucket_size)
    elif run.framework == DDP and s.dp * s.cp > 1 and not s.gradient_as_bucket_view:
        buffers = math.ceil(run.b_g * trained.elements)
        run.assume("ddp_buckets")
    root_reduced = run.degree * root.stored if run.by_rows else root.elements
    table, positions = (0, 0) if s.lora_rank else (run.c * _size(outside, "embedding") // s.tp, run.c * _size(outside, "position_embedding"))
    rope = 4 * max((layer.mixer.head_dim for layer, _ in layers), default=0) if run.profile in ("llama", "qwen3") else 0
    step = Step(
        units,
        Unit(root_gathered + run.c * (root_reduced - root.elements), run.c * root.elements, root_reduced, root.kept, 0, False, False, []),
        *states[:3],
        # Under CPUOffloadPolicy a reduced gradient goes to the host at once.
        0 if run.by_rows and s.offload == "parameters" else run.b_g,
        max(run.b_g, run.c),
        head,
        table if first else 0,
        positions if first else 0,
        architecture.tied,
        gathers,
        run.by_rows,
        (between, through),
        (8 * n if first or last else 0) + rope,
        _loss(run) if last and run.profile else (0, 0, 0, 0),
        run.c * n * D if run.profile else 0,
        states[3],
        final_norm=_final_norm(n, D, run.c) if last and run.profile in ("llama", "qwen3") and run.precision != "autocast" else None,
        held=_layer_inputs(run) if run.profile in ("llama", "qwen3") and s.checkpointing != "full" else 0,
        labels=8 * n if last and run.profile and run.loss == "fp32" else 0,
        last=0 if s.lora_rank or architecture.tied else run.c * _size(outside, "output_head") // s.tp,
        accumulated=s.micro_batches > 1 or run.framework == MEGATRON or run.stage == 3,
        waiting=math.ceil((in_flight - 1) * (saved_all + through)),
        weight_copies=copies + head_copy,
        buffers=buffers,
        bucket=bucket,
        initial=math.ceil(run.b_w * trained.elements) if s.initialization == "device" else None,
        live=live if run.stage == 3 else None,
    )
    return Rank(stage, step, trained)


def _size(tensors, part):
    return sum(tensor.size for tensor in tensors if tensor.part == part)


def _states(run, trained, optimized, base):
    """(weights, master, optimizer, temporaries of the update) of a rank, in bytes, after offload."""
    s, ledger = run.scenario, run.scenario.ledger
    width = 4 if ledger.master_weights else run.b_w
    weights = math.ceil(base) + math.ceil(run.b_w * trained.stored)
    master = math.ceil(ledger.master_weights * trained.held)
    held = trained.held
    if run.stage in (1, 2):
        held = sharding.deepspeed_flat([trained.elements], run.degree) // run.degree if trained.elements == int(trained.elements) else held
        master = math.ceil(ledger.master_weights * held)
    if run.optimizer:
        moments = math.ceil(optimizers.state(optimized, run.optimizer, width))
        try:
            update = optimizers.temporaries(optimized, run.optimizer, width, s.optimizer_implementation)
        except ArgumentError:
            run.miss("optimizer_temporaries", value=run.optimizer)
            update = 0
    else:
        moments = math.ceil((ledger.first_moment + ledger.second_moment) * held)
        if ledger.first_moment and ledger.first_moment in PLAIN_MOMENTS:
            if run.framework in PYTORCH:
                moments += optimizers.STEP * trained.tensors
                update = {"foreach": width * held, "for_loop": 2 * width * trained.largest, "fused": 0}[s.optimizer_implementation]
            elif run.stage is not None:
                # The partition of the gradients in FP32; an unfused AdamW needs two more tensors as large as it.
                update = 4 * held + (8 * held if s.optimizer_implementation != "fused" and "optimizer_implementation" in s.stated else 0)
            else:
                update = 0
        else:
            update = 0
            if ledger.first_moment:
                run.miss("optimizer_temporaries", value=ledger.id)
    if ledger.master_weights and run.b_g == 2 and run.framework in PYTORCH:
        update += optimizers.fp32_gradient_copy(1) * held
        run.assume("fp32_gradient_copy")
    if s.paged:
        run.pages = optimizers.paged(optimized, 8 if run.optimizer else 32)
        moments, update = moments - run.pages, update + run.pages
        run.assume("paged")
    if s.gradient_release:
        update = run.pages
        run.assume("gradient_release")
    if s.offload == "none":
        return weights, master, moments, math.ceil(update)
    return (0 if s.offload == "parameters" else weights), 0, 0, 0  # _host refuses what cannot be offloaded so


def _outside(run, first, last):
    """(bytes until the first layer's backward, bytes between the last layer and the loss, BF16 copy of the head)."""
    s = run.scenario
    if not run.profile:
        return 0, 0, 0
    parts = activation_profiles.outside(run.architecture, run.profile, run.precision, s.micro_batch, run.sequence, s.dropout, s.tp, s.sequence_parallel)
    head_copy = parts.pop("head_weight_copy", 0)
    parts.pop("labels", None)  # the same tensor as the inputs, which stand all the time
    if s.checkpointing == "full" and run.profile in ("llama", "qwen3"):
        parts["layer_inputs"] = _layer_inputs(run)
    through = sum(size for part, size in parts.items() if part in THROUGH_BACKWARD) + (parts.get("embedding_dropout", 0) if first else 0)
    between = sum(size for part, size in parts.items() if part not in THROUGH_BACKWARD + ("embedding_dropout",))
    return through, between if last else 0, head_copy if last else 0


def _final_norm(n, D, c):
    """(8 n D + 4 n, 24 n D): what the norm after the last layer takes in forward beside what it keeps, and all of its backward.

    In FP32 4 n D and 20 n D + 8 n, as the norm needs no copy of its input.
    """
    return (8 * n * D + 4 * n, 24 * n * D) if c == 2 else (4 * n * D + 4 * n, 20 * n * D + 8 * n)


def _layer_inputs(run):
    """8 S + c B S^2: position ids and, with eager attention, the 4-D mask, which every layer is given besides its hidden states.

    The model's forward holds them until it returns; a checkpoint keeps them for its layer's backward.
    """
    s = run.scenario
    return 8 * run.sequence + (run.c * s.micro_batch * run.sequence**2 if s.attention == "eager" else 0)


def _loss(run):
    """(kept, logits, more in forward, more in backward) of the loss, in bytes."""
    s, V, n = run.scenario, run.architecture.vocab_size, run.tokens
    given = (s.micro_batch, run.sequence, V, run.loss, run.c, s.loss_chunks, s.tp)
    more = loss.backward(*given)
    # Forward makes the FP32 logits, unless they are, beside their log-probabilities; labels are shifted and, in a batch, copied in one piece.
    forward = (4 * n * V if run.c == 2 else 0) + 8 * n * (2 if s.micro_batch > 1 else 1) + 8 * s.micro_batch if run.loss == "fp32" else more
    if not s.keeps_logits:
        forward += loss.logits(*given)  # until the model's forward returns they exist all the same
    scalars = 8  # the loss, and the sum of the labels' weights
    return loss.saved(*given), (loss.logits(*given) if s.keeps_logits else 0) + scalars, forward, more


def _host(run, ranks):
    """Bytes of host memory on one node that offload takes; refuses what has no model."""
    s = run.scenario
    if s.offload == "none" and not s.paged:
        return 0
    per_node = min(s.gpus_per_node, s.world)
    if s.world % per_node:
        raise ArgumentError("gpus_per_node", s.gpus_per_node, "must divide the %d ranks of the job" % s.world)
    if s.paged:
        return run.pages * per_node
    if run.by_rows:
        if s.offload != "parameters":
            raise ArgumentError("offload", s.offload, "FSDP2's CPUOffloadPolicy moves weights, gradients and optimizer together: give parameters")
        ledger, share = run.scenario.ledger, ranks[0].share
        per_rank = (ledger.master_weights + ledger.first_moment + ledger.second_moment) * share.held
        run.assume("fsdp_offload")
        if s.lora_rank or run.split or s.pp > 1:  # which tensors a rank pins is not told by its sums
            run.assume("unrounded")
            return math.ceil((per_rank + run.b_w * share.stored + run.b_g * share.kept) * per_node)
        for tensor, times in optimizers.in_order(run.architecture):
            stored = sharding.fsdp2_storage(tensor.shape, run.degree)
            per_rank += times * sum(offload.pinned_rounded(math.ceil(b * stored)) for b in (run.b_w, run.b_g))
        return math.ceil(per_rank * per_node)
    if not run.stage:
        raise ArgumentError("offload", s.offload, "no model of offload under %s; DeepSpeed's stages 1 to 3 and FSDP have one" % run.scenario.strategy.id)
    if s.offload == "parameters" and run.stage != 3:
        raise ArgumentError("offload", s.offload, "only stage 3 offloads parameters")
    P = ranks[0].share.elements
    largest = max(max((unit.gradient for unit in ranks[0].step.units), default=1), ranks[0].step.root.gradient) // run.c
    run.assume("deepspeed_offload")
    if run.stage == 3:
        return offload.zero3_host(P, largest, per_node, s.world // per_node, True, s.offload == "parameters")
    return offload.zero2_host(P, per_node, s.world // per_node)


def _moved(run, rank):
    """{what: bytes} that one rank sends in a step among the ranks that share a state."""
    s, share = run.scenario, rank.share
    if s.dp * s.cp == 1 or s.lora_rank:
        return {}
    M_w, M_g = run.c * share.elements, (run.b_g if run.by_rows else min(run.b_g, 4)) * share.elements
    if s.replicas and s.replicas > 1:
        return {"inside": math.ceil(collectives.hybrid_inside(M_w, M_g, run.degree)), "between": math.ceil(collectives.hybrid_between(M_g, run.degree, s.replicas))}
    keeps = rank.step.gathers == "model"
    return {"data_parallel": math.ceil(collectives.per_step(M_w, M_g, tuple(sorted(run.shards)), run.degree, keeps))}


def estimate(architecture, scenario, rank=0):
    """M_peak,rank = max over the moments of a step: the Estimate of a run, a Rank for every pipeline stage.

    rank: which of the ranks that share a state under FSDP2; the first one never holds less than another.
    Raises ArgumentError for a setting that has no model. Source: see step, and the modules that it puts together.
    """
    run = _Run(architecture, scenario, rank)
    if scenario.lora_rank:
        if run.split:
            raise ArgumentError("lora_rank", scenario.lora_rank, "adapters under tensor or expert parallelism have no model")
        run.assume("lora_activations")
    if scenario.ep > 1 and not any(layer.mlp.kind == "experts" for layer, _ in architecture.layers):
        raise ArgumentError("ep", scenario.ep, "the model has no routed experts")
    for layer, _ in architecture.layers:
        if scenario.tp > 1:
            parallel.heads_per_rank(layer.mixer, scenario.tp)
    ranks = [_rank(run, *stage) for stage in _stages(run)]
    if run.profile and any(rank.step.floor for rank in ranks):
        run.miss("backward", value=run.profile)
    if not run.profile:
        run.miss("loss")
    if scenario.micro_batches > 1:
        run.assume("accumulated", value=scenario.micro_batches)
    return Estimate(ranks, run, _host(run, ranks), _moved(run, ranks[0]))
