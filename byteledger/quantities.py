"""Every number that a page can show, by name: which function gives it, and where each argument comes from.

An argument is a field of a selected record ("ledger:weights" is the field `weights` of the selected ledger), a selected
number ("world_size", or "replicas?" where it may be left out), or another quantity ("ledger.persistent"). So a page, a table, a download and a citation name a number in
one way, and its formula, inputs and value can be shown together.
"""

from functools import lru_cache

from . import activations, attention, distributed, kv_cache, ledger, lora, loss, optimizers, parameters, rank_quantities, step, units, weight_formats
from .arguments import ArgumentError
from .nearest import suggestion

# axis -> the file of data/ that its ids come from; None: a whole number.
AXES = {
    "parameters": "parameters",  # or a model's id, or a whole number
    "model": "models",
    "accelerator": "accelerators",
    "weight_format": "weight_formats",
    "ledger": "ledgers",
    "strategy": "strategies",
    "state": "states",
    "figure": "figures",
    "symbol": "terms",
    "world_size": None,
    "replicas": None,
    "micro_batch": None,
    "sequence_length": None,
    "heads": None,
    "hidden_size": None,
    "bytes_per_element": None,
    "layers": None,
    "dtype": "dtypes",  # of a KV cache, of logits
    "implementation": "implementations",
    "loss_policy": "loss_policies",
    "optimizer": "optimizers",
    "adapters": "adapters",
    "recipe": "recipes",
    "run": "runs",
    "comparison": "comparisons",  # of estimates with observations
    "comparison_group": "comparison_groups",
    "difference": "differences",
    "published_measurement": "published_measurements",
    "published": "published",
    "distrusted": "distrusted",
    "published_cell": "published",  # the cells of its records
    "distrusted_cell": "distrusted",
    "context": None,  # tokens of one sequence
    "batch": None,  # sequences
    "budget_bytes": None,
    **dict.fromkeys(rank_quantities.DEGREES),
}

_MODEL, _STATES = rank_quantities.MODEL, rank_quantities.STATES
_N = {"N": "parameters:count"}
_K = {key: _STATES[key] for key in ("b_master", "b_m", "b_v")}
_SHARD = {"shards": "strategy:shards", "d": "distributed.shard_group"}


class Quantity:
    """A function of byteledger, where its arguments come from, and what kind of number it gives."""

    def __init__(self, function, arguments, kind):
        self.function, self.arguments, self.kind = function, arguments, kind


def _the_weights(b_w):
    """b_w: bytes per parameter of the weights."""
    return b_w


def _divided_over(divides_over, W, replicas=None):
    """d = W, or W / R under HYBRID_SHARD: ranks that a sharded state is divided over."""
    if divides_over == "shard_group":
        if replicas is None:
            raise ArgumentError("replicas", replicas, "HYBRID_SHARD divides over a shard group; give the number of replica groups")
        return distributed.shard_group(W, replicas)
    if replicas not in (None, 1):
        raise ArgumentError("replicas", replicas, "only HYBRID_SHARD has replica groups")
    return W


def _reported(reported_mib):
    """M_reported = reported_mib x 2^20: bytes of memory that the driver reports."""
    return None if reported_mib is None else reported_mib * units.MiB


def _marketed(memory_gb):
    """M_marketed = memory_gb x 10^9: bytes of memory as the vendor prints them, if its GB are decimal."""
    return units.from_gb(memory_gb)


_B = {"b": "dtype:bytes"}
_KV = {"S": "context", "B": "batch", **_B}


def _part(part):
    def count(architecture):
        return parameters.by_part(architecture).get(part, 0)

    count.__doc__ = "N_%s = sum of the sizes of its tensors: parameters of one part." % part
    return count


def _shortfall(memory_gb, M_reported):
    """M_short = memory_gb x 2^30 - M_reported: bytes that the driver's total lacks if the vendor's GB were GiB."""
    return None if M_reported is None else units.from_gib(memory_gb) - M_reported


def _group(group):
    def size(architecture, profile, attention, precision, dropout, B, S):
        return activations.layer_group(architecture, profile, attention, precision, dropout, B, S, group)

    size.__doc__ = "M_%s = sum of its parts: bytes that one layer keeps there for backward." % group
    return size


def _over_hidden(M_layer, architecture, B, S):
    return activations.over_hidden(M_layer, architecture.hidden_size, B, S)


def _of_vocabulary(function):
    """A function of the loss, of a model's vocabulary."""

    def size(architecture, B, S, policy, b, chunks, tp):
        return function(B, S, architecture.vocab_size, policy, b, chunks, tp)

    size.__doc__ = function.__doc__
    return size


_over_hidden.__doc__ = activations.over_hidden.__doc__
_BATCH = {"B": "micro_batch", "S": "sequence_length"}
_LAYERS = {
    **_MODEL, "profile": "implementation:profile", "attention": "implementation:attention", "precision": "implementation:precision",
    "dropout": "implementation:dropout", **_BATCH,
}  # fmt: skip
_LOSS = {**_MODEL, **_BATCH, "policy": "loss_policy:policy", **_B, "chunks": "loss_policy:chunks", "tp": "loss_policy:tp"}
def _foreach_step(architecture, optimizer, b, rank):
    """M_step = b N + 8 + b: temporaries of AdamW's foreach step; None for another optimizer, which has a scalar or was not measured."""
    if rank is not None or optimizer not in ("adamw", "adamw_amsgrad"):
        return None
    return optimizers.temporaries(optimizers.in_order(architecture), optimizer, b, "foreach")


def _held_per_rank(M_base, M_adapters, shards, d):
    return lora.per_rank(M_base, M_adapters, d, "weights" in shards)


_held_per_rank.__doc__ = lora.per_rank.__doc__
_STATE = {**_MODEL, "optimizer": "optimizer:rule", "b": "optimizer:element_bytes", "rank": "optimizer:rank"}
_ADAPTERS = {**_MODEL, "r": "adapters:r", "target_modules": "adapters:target_modules"}
_RECIPE = {
    "architecture": "recipe:model.architecture",
    **{name: "recipe:adapters." + name for name in ("r", "target_modules")},
    **{name: "recipe:weight_format." + name for name in ("bits", "scales", "keeps")},
    "b_kept": "recipe:weight_format.kept_bytes",
    **{name: "recipe:" + source.replace(":", ".") for name, source in _STATES.items()},
}
_FORMAT = {"bits": "weight_format:bits", "scales": "weight_format:scales"}
_KEEPS = {"keeps": "weight_format:keeps"}

def _moment(moment, doc):
    def sum_of(estimate):
        return sum(estimate.worst.moments[moment].values()) if moment in estimate.worst.moments else None

    sum_of.__doc__ = doc
    return sum_of


def _run_states(estimate):
    """M_states = weights + master weights + optimizer states: bytes of a rank between two steps, without gradients."""
    step = estimate.worst.step
    return step.weights + step.master + step.optimizer


def _run_peak(estimate):
    """M_peak,rank = max over the moments of a step: bytes of the rank that holds most."""
    return estimate.worst.peak


def _peak_to_states(M_peak, M_states):
    """r = M_peak / M_states: the peak of a rank as a multiple of what it holds between two steps."""
    return M_peak / M_states


def _run_term(term):
    def most(estimate):
        return estimate.worst.most().get(term, 0)

    most.__doc__ = "M_%s = max over the moments of that term: the most that it takes in a step, bytes on one rank." % term
    return most


def _published(M_run):
    """M_run = M_peak,rank or M_states of the run, less those of another run where the source tells a difference: bytes on one rank."""
    return M_run


def _measured(M):
    """M_measured = what PyTorch was measured to hold: bytes, as the observation tells."""
    return M


def _over_weights(M_measured, N, d):
    """r = M_measured / (2 N / d): as a multiple of the BF16 weights, or of a rank's even share of them."""
    return M_measured / (2 * N / d)


def _published_percent(M_run, measured, unit):
    """e = 100 (M_run / M_printed - 1): how far the estimate of a run is from what somebody printed, in per cent."""
    return 100 * (M_run / units.in_bytes(measured, unit) - 1)


def _of_spread(field, doc):
    def value(spread):
        return getattr(spread, field)

    value.__doc__ = doc
    return value


_SPREAD = {"spread": "comparison_group:spread"}
_RUN = {"estimate": "run:estimate"}

QUANTITIES = {
    "observed.measured": Quantity(_measured, {"M": "comparison:measured"}, "bytes"),
    "observed.over_weights": Quantity(_over_weights, {"M_measured": "observed.measured", "N": "comparison:parameters", "d": "comparison:ranks"}, "multiple"),
    "observed.number": Quantity(_of_spread("number", "n = number of comparisons of the group: a count."), _SPREAD, "count"),
    "observed.exact": Quantity(_of_spread("exact", "n_exact = number of those whose difference is 0 bytes: a count."), _SPREAD, "count"),
    "observed.moment_right": Quantity(_of_spread("moment_right", "n_moment = number of those whose peak is estimated in the moment that was measured: a count."), _SPREAD, "count"),
    "observed.median": Quantity(_of_spread("median", "e_median = median of 100 |M_estimated / M_measured - 1|: per cent."), _SPREAD, "fine percent"),
    "observed.largest": Quantity(_of_spread("largest", "e_largest = largest 100 |M_estimated / M_measured - 1|: per cent."), _SPREAD, "fine percent"),
    "observed.published": Quantity(_published, {"M_run": "published_measurement:estimate"}, "bytes"),
    "observed.published_percent": Quantity(
        _published_percent, {"M_run": "observed.published", "measured": "published_measurement:measured", "unit": "published_measurement:unit"}, "signed percent"
    ),
    "step.states": Quantity(_run_states, _RUN, "bytes"),
    "step.forward": Quantity(_moment("forward", step.Step.forward.__doc__), _RUN, "bytes"),
    "step.loss": Quantity(_moment("loss", step.Step.loss.__doc__), _RUN, "bytes"),
    "step.backward": Quantity(_moment("backward", step.Step.backward.__doc__), _RUN, "bytes"),
    "step.reduce": Quantity(_moment("reduce", step.Step.reduce.__doc__), _RUN, "bytes"),
    "step.update": Quantity(_moment("optimizer", step.Step.update.__doc__), _RUN, "bytes"),
    "step.peak": Quantity(_run_peak, _RUN, "bytes"),
    "step.peak_to_states": Quantity(_peak_to_states, {"M_peak": "step.peak", "M_states": "step.states"}, "multiple"),
    **{"step.most." + term: Quantity(_run_term(term), _RUN, "bytes") for term in ("activations", "loss", "gathered", "in_flight", "temporaries")},
    "parameters.total": Quantity(parameters.total, _MODEL, "count"),
    "parameters.active": Quantity(parameters.active, _MODEL, "count"),
    "parameters.non_embedding": Quantity(parameters.non_embedding, _MODEL, "count"),
    **{"parameters." + part: Quantity(_part(part), _MODEL, "count") for part in parameters.PARTS},
    "kv_cache.bytes_per_token": Quantity(kv_cache.bytes_per_token, {**_MODEL, **_B}, "exact bytes"),
    "kv_cache.steady_bytes_per_token": Quantity(kv_cache.steady_bytes_per_token, {**_MODEL, **_B}, "exact bytes"),
    "kv_cache.fixed_bytes_per_sequence": Quantity(kv_cache.fixed_bytes_per_sequence, {**_MODEL, **_B}, "bytes"),
    "kv_cache.multi_head": Quantity(kv_cache.multi_head, {**_MODEL, **_B}, "exact bytes"),
    "kv_cache.saving": Quantity(kv_cache.saving, {"M_multi_head": "kv_cache.multi_head", "M_token": "kv_cache.bytes_per_token"}, "multiple"),
    "parameters.total_to_active": Quantity(parameters.total_to_active, {"N": "parameters.total", "N_active": "parameters.active"}, "multiple"),
    "parameters.vocabulary_share": Quantity(parameters.vocabulary_share, _MODEL, "percent"),
    "parameters.untied": Quantity(parameters.untied, _MODEL, "count"),
    "kv_cache.total": Quantity(kv_cache.total, {**_MODEL, **_KV}, "bytes"),
    "kv_cache.reserved": Quantity(kv_cache.reserved, {**_MODEL, **_KV}, "bytes"),
    "kv_cache.largest_batch": Quantity(kv_cache.largest_batch, {**_MODEL, "budget": "budget_bytes", "S": "context", **_B}, "count"),
    "kv_cache.largest_context": Quantity(kv_cache.largest_context, {**_MODEL, "budget": "budget_bytes", "B": "batch", **_B}, "count"),
    "weight_formats.bytes_per_element": Quantity(weight_formats.bytes_per_element, _FORMAT, "bytes per parameter"),
    "weight_formats.kept": Quantity(weight_formats.kept, {**_MODEL, **_KEEPS}, "count"),
    "weight_formats.converted": Quantity(weight_formats.converted, {**_MODEL, **_KEEPS}, "count"),
    "weight_formats.weights": Quantity(weight_formats.weights, {**_MODEL, **_FORMAT, **_KEEPS, "b_kept": "weight_format:kept_bytes"}, "bytes"),
    "weight_formats.bytes_per_parameter": Quantity(
        weight_formats.bytes_per_parameter, {"M_weights": "weight_formats.weights", "N": "parameters.total"}, "bytes per parameter"
    ),
    "optimizers.state": Quantity(optimizers.of_model, _STATE, "bytes"),
    "optimizers.per_parameter": Quantity(optimizers.per_parameter, {"M_optimizer": "optimizers.state", "N": "parameters.total"}, "bytes per parameter"),
    "optimizers.foreach": Quantity(_foreach_step, _STATE, "bytes"),
    "lora.trainable": Quantity(lora.trainable, _ADAPTERS, "count"),
    "lora.trainable_share": Quantity(lora.trainable_share, {"N_LoRA": "lora.trainable", "N": "parameters.total"}, "percent"),
    "lora.base": Quantity(lora.base, {**_MODEL, **_FORMAT, **_KEEPS, "b_kept": "weight_format:kept_bytes"}, "bytes"),
    "lora.adapter_states": Quantity(lora.adapter_states, {"N_LoRA": "lora.trainable", **_STATES}, "bytes"),
    "lora.persistent": Quantity(lora.persistent, {"M_base": "lora.base", "N_LoRA": "lora.trainable", **_STATES}, "bytes"),
    "lora.per_rank": Quantity(
        _held_per_rank, {"M_base": "lora.base", "M_adapters": "lora.adapter_states", "shards": "strategy:shards", "d": "world_size"}, "bytes"
    ),
    "lora.of_recipe": Quantity(lora.of_recipe, _RECIPE, "bytes"),
    "lora.recipe_parameters": Quantity(parameters.total, {"architecture": "recipe:model.architecture"}, "count"),
    "lora.over_weights": Quantity(lora.over_weights, {"M_recipe": "lora.of_recipe", "N": "lora.recipe_parameters"}, "multiple"),
    "accelerators.marketed": Quantity(_marketed, {"memory_gb": "accelerator:memory_gb"}, "bytes"),
    "accelerators.reported": Quantity(_reported, {"reported_mib": "accelerator:reported_mib"}, "bytes"),
    "accelerators.shortfall": Quantity(
        _shortfall, {"memory_gb": "accelerator:memory_gb", "M_reported": "accelerators.reported"}, "bytes"
    ),
    "ledger.weights_bytes": Quantity(_the_weights, {"b_w": "ledger:weights"}, "bytes per parameter"),
    "ledger.weights": Quantity(ledger.weights, {**_N, "b_w": "ledger:weights"}, "bytes"),
    "ledger.optimizer": Quantity(ledger.optimizer, {**_N, **_K}, "bytes"),
    "ledger.bytes_per_parameter": Quantity(ledger.bytes_per_parameter, _STATES, "bytes per parameter"),
    "ledger.persistent": Quantity(ledger.persistent, {**_N, **_STATES}, "bytes"),
    "ledger.persistent_to_weights": Quantity(ledger.persistent_to_weights, _STATES, "multiple"),
    "ledger.six_times_heuristic": Quantity(ledger.six_times_heuristic, {"M_weights": "ledger.weights"}, "bytes"),
    "activations.hidden_states": Quantity(
        activations.hidden_states,
        {"B": "micro_batch", "S": "sequence_length", "D": "hidden_size", "b": "bytes_per_element"},
        "bytes",
    ),
    "activations.layer": Quantity(activations.layer, _LAYERS, "bytes"),
    **{"activations." + group: Quantity(_group(group), _LAYERS, "bytes") for group in (*activations.GROUPS, "other")},
    "activations.over_hidden": Quantity(_over_hidden, {"M_layer": "activations.layer", **_MODEL, **_BATCH}, "bytes per element"),
    "activations.layers": Quantity(activations.layers, _LAYERS, "bytes"),
    "activations.checkpoints": Quantity(activations.checkpoints, {**_MODEL, "precision": "implementation:precision", **_BATCH}, "bytes"),
    "activations.with_checkpointing": Quantity(
        activations.with_checkpointing, {"M_checkpoints": "activations.checkpoints", "M_layer": "activations.layer"}, "bytes"
    ),
    "activations.freed": Quantity(
        activations.freed, {"M_layers": "activations.layers", "M_checkpointed": "activations.with_checkpointing"}, "percent"
    ),
    "loss.saved": Quantity(_of_vocabulary(loss.saved), _LOSS, "bytes"),
    "loss.logits": Quantity(_of_vocabulary(loss.logits), _LOSS, "bytes"),
    "loss.backward": Quantity(_of_vocabulary(loss.backward), _LOSS, "bytes"),
    "loss.peak": Quantity(loss.peak, {"M_kept": "loss.saved", "M_logits": "loss.logits", "M_more": "loss.backward"}, "bytes"),
    "attention.score_matrix": Quantity(
        attention.score_matrix,
        {"B": "micro_batch", "n_h": "heads", "S": "sequence_length", "b": "bytes_per_element"},
        "bytes",
    ),
    "distributed.rank_lower": Quantity(
        distributed.rank_lower, {"M_persistent": "ledger.persistent", "W": "world_size"}, "bytes"
    ),
    "distributed.shard_group": Quantity(
        _divided_over, {"divides_over": "strategy:divides_over", "W": "world_size", "replicas": "replicas?"}, "count"
    ),
    "distributed.weights": Quantity(distributed.weights, {**_N, "b_w": "ledger:weights", **_SHARD}, "bytes"),
    "distributed.gradients": Quantity(distributed.gradients, {**_N, "b_g": "ledger:gradients", **_SHARD}, "bytes"),
    "distributed.optimizer": Quantity(distributed.optimizer, {**_N, **_K, **_SHARD}, "bytes"),
    "distributed.persistent": Quantity(distributed.persistent, {**_N, **_STATES, **_SHARD}, "bytes"),
    "distributed.largest_parameters": Quantity(
        distributed.largest_parameters, {"M": "budget_bytes", "tp": "tp", **_STATES, **_SHARD}, "count"
    ),
    "distributed.gathered_weights": Quantity(
        distributed.gathered_weights, {**_N, "b_w": "ledger:weights"}, "bytes"
    ),
    **{id: Quantity(*entry) for id, entry in rank_quantities.QUANTITIES.items()},
}

# What a formula record may name in `computes`.
FUNCTIONS = sorted(set(QUANTITIES) - {"ledger.weights_bytes", *(id for id in QUANTITIES if id.startswith("accelerators."))} | {"ledger.peak", "estimation.peak_rank"})


class Result:
    """A value with the quantity that gave it, the arguments that went in, and where each of them came from.

    origins: argument -> Result of another quantity, or (file, id) of a record, or None for a number that was selected.
    """

    def __init__(self, id, quantity, arguments, origins, value):
        self.id, self.kind, self.function = id, quantity.kind, quantity.function
        self.arguments, self.origins, self.value = arguments, origins, value

    @property
    def equation(self):
        """The equation in words, as the function's docstring opens with it."""
        return self.function.__doc__.split(":")[0]


def evaluate(catalog, id, selection):
    """The Result of a quantity for a selection {axis: record id or whole number}.

    Raises UnknownId for an id that no record has, ArgumentError for a selection that lacks an axis, names one that is
    not used, or gives a value for which the formula has no meaning.
    """
    if id not in QUANTITIES:
        raise ArgumentError("quantity", id, "no such quantity; " + suggestion(id, QUANTITIES))
    _refuse_unused(id, selection)
    return _evaluate(catalog, id, selection)


@lru_cache(maxsize=None)
def axes(id):
    """The axes that a quantity needs, and those that it can take: (needed, optional)."""
    needed, optional = set(), set()
    for source in QUANTITIES[id].arguments.values():
        if source in QUANTITIES:
            inner = axes(source)
            needed |= inner[0]
            optional |= inner[1]
        elif source.endswith("?"):
            optional.add(source[:-1])
        else:
            needed.add(source.split(":")[0])
    return frozenset(needed), frozenset(optional)


def _refuse_unused(id, selection):
    needed, optional = axes(id)
    for axis in selection:
        if axis not in needed | optional:
            raise ArgumentError(axis, selection[axis], "%s does not use it; it takes %s" % (id, ", ".join(sorted(needed | optional))))
    for axis in sorted(needed):
        if axis not in selection:
            raise ArgumentError(axis, None, "%s needs it" % id)


def _evaluate(catalog, id, selection):
    quantity = QUANTITIES[id]
    arguments, origins = {}, {}
    for name, source in quantity.arguments.items():
        if source in QUANTITIES:
            origins[name] = _evaluate(catalog, source, selection)
            arguments[name] = origins[name].value
        else:
            arguments[name], origins[name] = _selected_argument(catalog, source, selection)
    return Result(id, quantity, arguments, origins, _value(quantity.function, arguments))


def _value(function, arguments):
    """The function's value; what it says of one architecture is worked out once, as a table asks again and again."""
    if "architecture" not in arguments:
        return function(**arguments)
    try:
        return _of_architecture(function, tuple(arguments.items()))
    except TypeError:  # an argument that cannot be a key, such as a list of scales
        return function(**arguments)


@lru_cache(maxsize=4096)
def _of_architecture(function, arguments):
    return function(**dict(arguments))


def _selected_argument(catalog, source, selection):
    """(value, origin) of an argument that is selected: a number itself, or a field of a record."""
    if source.endswith("?"):
        return selection.get(source[:-1]), None
    axis, _, field = source.partition(":")
    record = selected(catalog, axis, selection[axis])
    if isinstance(record, int):
        return record, None
    if field == "estimate":
        estimate = catalog.run if axis == "run" else catalog.published_estimate
        return estimate(selection[axis]), (AXES[axis], selection[axis])
    if "." in field:  # a field of the record that this one names: recipe:ledger.weights
        inner, _, field = field.partition(".")
        named = getattr(record, inner)
        return (catalog.architecture(named) if field == "architecture" else getattr(selected(catalog, inner, named), field)), (AXES[axis], selection[axis])
    if field == "architecture":
        return catalog.architecture(selection[axis]), (AXES[axis], selection[axis])
    if axis == "comparison":
        return getattr(record, field), ("observations", record.observation)
    if axis == "comparison_group" and field == "spread":
        return catalog.spread(selection[axis]), (AXES[axis], selection[axis])
    value = getattr(record, field)
    if value is None and axis == "strategy" and field != "zero_stage":  # what is no stage of ZeRO has none
        reason = getattr(record, "not_modelled", None)
        raise ArgumentError(axis, selection[axis], "not modelled: " + reason.en if reason else "has no %r" % field)
    return value, (AXES[axis], selection[axis])


def selected(catalog, axis, choice):
    """The record, or the number, that a choice on an axis stands for."""
    if axis not in AXES:
        raise ArgumentError("axis", axis, "no such axis; " + suggestion(axis, AXES))
    file = AXES[axis]
    if file is None:
        if isinstance(choice, bool) or not isinstance(choice, int):
            raise ArgumentError(axis, choice, "must be a whole number")
        return choice
    if axis == "parameters" and isinstance(choice, int):
        return choice
    if axis == "parameters" and choice in catalog.models:
        return evaluate(catalog, "parameters.total", {"model": choice}).value
    return getattr(catalog, file)[choice]
