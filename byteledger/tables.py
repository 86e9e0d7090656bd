"""Tables from data: what tables.yaml asks for, as cells that hold full values. No language, no rounding, no HTML.

A column is an axis of the table ("parameters", "world_size"), a quantity ("ledger.weights"), or a field of the row's
record ("parameters:reading"). `across` repeats each quantity that depends on its axis, once for each of its values.
"""

from collections import OrderedDict
from itertools import product

from . import distributed, published, quantities
from .arguments import ArgumentError
from .nearest import suggestion
from .printed import number
from .records import FILES

# Fields that follow from a record but stand in none, by axis.
DERIVED = {
    ("state", "bytes"): "the bytes that the state's formats take",
    ("state", "in_ledger"): "the bytes that the state takes in the fixed ledger",
    ("strategy", "scope"): "the groups of state that are divided",
    ("strategy", "replicates"): "the groups of state that every rank holds whole",
    ("strategy", "per_rank"): "bytes per rank as a formula",
    ("figure", "figure"): "the figure itself",
    ("run", "phase"): "the moment of a step in which the peak stands",
    ("published_measurement", "printed"): "the measured value in the unit of its source",
    ("published_measurement", "floor"): "whether a term of the estimate has no model",
    ("comparison", "moment"): "the moment in which the peak was measured, and the estimated one where it is another",
    **{(axis, field): "how many of its cells those are" for axis in ("published", "distrusted") for field in ("cells", "agreeing", "differing")},
    **{(axis, "where"): "where it is printed" for axis in ("published", "distrusted")},
    ("model", "layers"): "how many layers the family's rule makes",
    ("model", "vocabulary"): "rows of the embedding",
    ("model", "heads"): "heads / KV heads x head size, or what stands in their place",
    ("model", "windows"): "layers with a window of all layers that attend, and the window",
    ("model", "experts"): "experts per token of all experts, with shared ones",
}


STATES = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
BYTES_PER_PARAMETER = {("state", "bytes"), ("state", "in_ledger")} | {("ledger", state) for state in STATES}


# The kinds of numbers that comparisons hold.
COMPARED = {
    ("comparison", "measured"): "exact bytes",
    ("comparison", "estimated"): "exact bytes",
    ("comparison", "difference"): "exact bytes",
    ("comparison", "percent"): "signed percent",
    ("comparison_group", "within_percent"): "fine percent",
    ("difference", "within_percent"): "fine percent",
}
# The unit in the name of a record's field.
FIELD_UNITS = {"_mib": "MiB", "_gib": "GiB", "_gb_s": "GB/s"}


class Heading:
    """A column as it comes out: its id, the quantity's kind or None for words, its unit, and its value of `across`."""

    def __init__(self, id, kind=None, unit=None, across=None):
        self.id, self.kind, self.unit, self.across = id, kind, unit, across


class Row:
    """One row: its selection and a cell for each heading. A cell is a Result, a record's field, or None."""

    def __init__(self, selection, cells, claim=None, total=False):
        self.selection, self.cells, self.claim, self.total = selection, cells, claim, total


class Rendered:
    """A table with its headings and rows."""

    def __init__(self, id, record, headings, rows):
        self.id, self.record, self.headings, self.rows = id, record, headings, rows


# The last evaluated tables, by what each was evaluated from: one build prints a table in a dozen places, and a check of many
# edits leaves most tables as they were.
_EVALUATED, _MOST = OrderedDict(), 256
# The files that no number comes from, so that an edit of a claim or a term does not work out every run anew.
_WORDS = {"changes", "chapters", "claims", "comparison_groups", "differences", "formulas", "observations", "references", "tables", "terms"}
# What comparisons come from: models stand for the configurations of observations.
_COMPARED = {"comparison_groups", "differences", "ledgers", "models", "observations", "strategies"}
address = id


def _behind(catalog, record):
    """All that decides the numbers of a table: its record, and the files of its axes and of what their records refer to."""
    axes = {*record.rows, *record.across, *record.fixed}
    files = {quantities.AXES.get(axis) for axis in axes} - {None}
    if axes & {"comparison", "comparison_group"}:
        files = files - {"comparisons"} | _COMPARED
    if axes & {"figure", "published_measurement", "recipe", "run"}:
        files |= FILES.keys() - _WORDS  # what their records may select from
    if axes & {"published", "distrusted", *published.AXES}:
        files |= FILES.keys() - _WORDS | {"references", "terms"}
    if "parameters" in axes:
        files.add("models")  # a model's id stands for its count
    if "state" in axes:
        files.add("dtypes")
    return [record, *(catalog.read(file) for file in sorted(files))]


def evaluate(catalog, id):
    """The Rendered table, to be read only. Raises UnknownId or ArgumentError where data does not give it."""
    behind = _behind(catalog, catalog.tables[id])
    # By identity: a file that did not change gives the very same records again. What is kept holds them, so no number is used twice.
    key = (id, *(address(part) for part in behind))
    if key in _EVALUATED:
        _EVALUATED.move_to_end(key)
    else:
        _EVALUATED[key] = behind, _evaluate(catalog, id, catalog.tables[id])
        if len(_EVALUATED) > _MOST:
            _EVALUATED.popitem(last=False)
    return _EVALUATED[key][1]


def _evaluate(catalog, id, record):
    headings = _headings(catalog, record)
    rows = [_row(catalog, record, headings, selection) for selection in _selections(catalog, record)]
    if record.total:
        rows.append(_total(catalog, record, headings))
    return Rendered(id, record, headings, rows)


def _selections(catalog, record):
    axes = []
    for axis, choices in record.rows.items():
        if choices == "all":
            choices = list(getattr(catalog, quantities.AXES[axis] or "", ())) if axis in quantities.AXES else None
            if axis == "symbol":
                choices = [id for id in choices if catalog.terms[id].kind == "symbol"]
        if isinstance(choices, dict):
            if axis != "comparison":
                raise ArgumentError("rows", axis, "only comparisons stand in groups")
            group = choices["group"]
            catalog.comparison_groups[group]
            choices = [id for id, one in catalog.comparisons.items() if one.group == group]
            if not choices:
                return []  # nothing of the kind was measured yet
        if not choices:
            raise ArgumentError("rows", axis, "gives no row")
        for choice in choices:
            quantities.selected(catalog, axis, choice)
        if axis in published.AXES:
            choices = published.cells(catalog, axis, choices)
        axes.append([(axis, choice) for choice in choices])
    for axis, choice in record.fixed.items():
        quantities.selected(catalog, axis, choice)
    return [{**record.fixed, **dict(combination)} for combination in product(*axes)]


def _headings(catalog, record):
    headings = []
    for column in record.columns:
        id, unit = (column, "GB") if isinstance(column, str) else (column.column, column.unit)
        if id in quantities.QUANTITIES:
            kind = quantities.QUANTITIES[id].kind
            needed, optional = quantities.axes(id)
            across = [axis for axis in record.across if axis in needed | optional]
            for value in product(*(record.across[axis] for axis in across)):
                headings.append(Heading(id, kind, unit if kind == "bytes" else None, dict(zip(across, value))))
        else:
            axis, _, field = id.partition(":")
            if axis not in record.rows:
                raise ArgumentError("columns", id, "is no quantity, and its axis is not in rows")
            headings.append(Heading(id, _field_kind(catalog, record, axis, field)))
    return headings


def _selected(catalog, axis, choice):
    return (published.cell if axis in published.AXES else quantities.selected)(catalog, axis, choice)


def _field_kind(catalog, record, axis, field):
    """The kind of number that a field of a record holds, or None for words."""
    if axis in published.AXES:
        return "of the row" if field in ("printed", "computed", "difference", "ratio") else None
    if (axis, field) in DERIVED and axis in ("published", "distrusted"):
        return None if field == "where" else "count"
    if (axis, field) in BYTES_PER_PARAMETER:
        return "bytes per parameter"
    if (axis, field) in COMPARED:
        return COMPARED[axis, field]
    if axis == "comparison":
        return None
    if quantities.AXES[axis] is None:
        return "count"
    if (axis, field) in DERIVED and axis == "model":
        return "count" if field in ("layers", "vocabulary") else None
    for ending, unit in FIELD_UNITS.items():
        if field.endswith(ending):
            return unit
    file = quantities.AXES[axis]
    records = getattr(catalog, file).values() if file else ()
    value = next((getattr(one, field) for one in records if getattr(one, field, None) is not None), None)
    return "count" if isinstance(value, int) and not isinstance(value, bool) else None


def _row(catalog, record, headings, selection):
    cells = [_cell(catalog, heading, selection) for heading in headings]
    first = _selected(catalog, *next((axis, selection[axis]) for axis in record.rows))
    return Row(selection, cells, getattr(first, "claim", None) if record.claims else None)


def _cell(catalog, heading, selection):
    if heading.id in quantities.QUANTITIES:
        needed, optional = quantities.axes(heading.id)
        chosen = {**selection, **(heading.across or {})}
        if "model" in chosen and "parameters" in needed:
            chosen["parameters"] = chosen["model"]  # a model's own count
        chosen = {axis: value for axis, value in chosen.items() if axis in needed | optional}
        if heading.id.startswith("kv_cache.") and not catalog.architecture(chosen["model"]).causal:
            return None  # an encoder keeps no cache
        strategy = catalog.strategies[chosen["strategy"]] if "strategy" in chosen else None
        if strategy and strategy.shards is None:
            return None  # not modelled: the page says so in words
        if strategy and strategy.divides_over == "world":
            chosen.pop("replicas", None)
        if heading.id == "distributed.shard_group" and not strategy.shards:
            return None  # nothing is divided
        result = quantities.evaluate(catalog, heading.id, chosen)
        return None if result.value is None else result
    axis, _, field = heading.id.partition(":")
    choice = selection[axis]
    if not field:
        return choice
    record = _selected(catalog, axis, choice)
    if (axis, field) in DERIVED:
        return derived(catalog, axis, field, choice, record, selection)
    if not hasattr(record, field):
        raise ArgumentError("columns", heading.id, "no such field; " + suggestion(field, type(record).model_fields))
    return getattr(record, field)


def derived(catalog, axis, field, choice, record, selection):
    """The value of a derived field; see DERIVED."""
    if axis == "published_measurement":
        if field == "printed":
            return "%s %s" % (number(record.measured, 12), record.unit)
        return catalog.published_floor(choice)
    if axis == "comparison":
        return record.moments and tuple("estimate.moment." + moment for moment in dict.fromkeys(record.moments))
    if axis in ("published", "distrusted"):
        if field != "where":
            return published.count(catalog, axis, choice, field)
        return published.Where(record.source[0], catalog.references[record.source[0]].short, record.locator)
    if axis == "run":
        estimate = catalog.run(choice)
        return "estimate.moment." + estimate.worst.phase
    if axis == "model":
        return model_words(field, catalog.architecture(choice))
    if field == "bytes":
        sizes = [catalog.dtypes[dtype].bits / 8 for dtype in record.formats]
        return min(sizes), max(sizes)
    if field == "in_ledger":
        return state_in_ledger(catalog.ledgers[_ledger(selection)], choice)
    if field == "figure":
        return quantities.evaluate(catalog, record.quantity, record.selection) if record.quantity else record.tex
    if field in ("scope", "replicates") and getattr(record, field):
        return getattr(record, field)  # told in words where the groups do not say it
    if record.shards is None:
        return None
    if field == "per_rank":
        terms = zip(("b_w N", "b_g N", "K N"), distributed.GROUPS)
        return " + ".join(term + (" / d" if group in record.shards else "") for term, group in terms)
    return tuple(group for group in distributed.GROUPS if (group in record.shards) == (field == "scope"))


def model_words(field, architecture):
    """What a model's layers say, as a number or a short text without words; None where they say nothing."""
    if field == "layers":
        return architecture.num_hidden_layers
    if field == "vocabulary":
        return architecture.vocab_size
    found = []
    for layer, _ in architecture.layers:
        mixer, mlp, text = layer.mixer, layer.mlp, None
        if field == "heads" and mixer.kind == "grouped_query":
            text = "%d / %d × %d" % (mixer.num_attention_heads, mixer.num_key_value_heads, mixer.head_dim)
        elif field == "heads" and mixer.kind == "latent":
            text = "%d, MLA %d + %d" % (mixer.num_attention_heads, mixer.kv_lora_rank, mixer.qk_rope_head_dim)
        elif field == "windows" and getattr(mixer, "window", None):
            alike = sum(times for other, times in architecture.layers if getattr(other.mixer, "window", None) == mixer.window)
            attending = sum(times for other, times in architecture.layers if other.mixer.kind in ("grouped_query", "latent"))
            text = "%d / %d × %s" % (alike, attending, number(mixer.window, 0))
        elif field == "experts" and mlp.kind == "experts":
            shared = -(-mlp.shared_intermediate_size // mlp.intermediate_size)  # as many experts as its width makes
            text = "%d / %d%s" % (mlp.num_experts_per_tok, mlp.num_experts, " + %d" % shared if shared else "")
        if text and text not in found:
            found.append(text)
    return "; ".join(found) or None


def _ledger(selection):
    if "ledger" not in selection:
        raise ArgumentError("ledger", None, "state:in_ledger needs it, among what is fixed")
    return selection["ledger"]


def state_in_ledger(ledger, state):
    """The bytes per parameter that a ledger gives a state."""
    if state not in STATES:
        raise ArgumentError("state", state, "no ledger has such a key; " + suggestion(state, STATES))
    return getattr(ledger, state)


def _total(catalog, record, headings):
    """The last row: the ledger's sum under the column of its states."""
    cells = []
    for heading in headings:
        if heading.id == "state:in_ledger":
            cells.append(quantities.evaluate(catalog, "ledger.bytes_per_parameter", {"ledger": _ledger(record.fixed)}))
        else:
            cells.append(None)
    return Row(record.fixed, cells, total=True)
