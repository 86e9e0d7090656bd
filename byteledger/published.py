"""Published figures, each beside what the estimator gives for the same inputs: published.yaml, and distrusted.yaml.

A cell is one printed figure. It is compared in the unit that its source means, and it agrees if the estimator's value, rounded
to the digits that are printed, is the figure. A source that prints a formula is held to the formula's exact value.
"""

import ast
import re
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cached_property

from . import activations, distributed, ledger, offload, quantities, sharding
from .arguments import ArgumentError
from .nearest import suggestion
from .printed import number

# axis whose rows are the cells of records -> the file of those records
AXES = {"published_cell": "published", "distrusted_cell": "distrusted"}

# Functions that a record may name where no quantity takes what it needs, such as a bare count: (function, kind).
FUNCTIONS = {
    "activations.gpt_layer": (activations.gpt_layer, "bytes per element"),
    "activations.gpt_scores": (activations.gpt_scores, "bytes per element"),
    "activations.selective_saving": (activations.selective_saving, "percent"),
    "distributed.optimizer": (distributed.optimizer, "bytes"),
    "ledger.optimizer": (ledger.optimizer, "bytes"),
    "ledger.weights": (ledger.weights, "bytes"),
    "offload.zero2_host": (offload.zero2_host, "bytes"),
    "offload.zero3_host": (offload.zero3_host, "bytes"),
    "sharding.deepspeed_estimate_zero2": (sharding.deepspeed_estimate_zero2, "bytes"),
    "sharding.deepspeed_estimate_zero3": (sharding.deepspeed_estimate_zero3, "bytes"),
}

# unit -> (how many of the estimator's units it is, the kinds of number that it can be of)
UNITS = {
    **{name: (size, ("bytes", "exact bytes")) for name, size in (("B", 1), ("kB", 10**3), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30), ("GB", 10**9), ("TB", 10**12))},
    "B/parameter": (1, ("bytes per parameter", "bytes")),
    "B/sbh": (1, ("bytes per element",)),
    "%": (1, ("percent",)),
    "count": (1, ("count",)),
    "billion": (10**9, ("count",)),
    "trillion": (10**12, ("count",)),
}

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?$")
_EXACT = 4  # decimals that are shown where a formula is printed instead of digits


class InUnit:
    """A number of a cell in the unit of its row: value, its text, what a download has for it, and the Result behind it."""

    def __init__(self, value, text, plain=None, result=None):
        self.value, self.text, self.result = float(value), text, result
        self.plain = self.value if plain is None else plain


class Words:
    """Words in both languages."""

    def __init__(self, zh, en):
        self.zh, self.en = zh, en


class Where(Words):
    """Where a figure is printed: the source's short name and the place in it, in both languages."""

    def __init__(self, source, short, locator):
        Words.__init__(self, *("%s%s%s" % (short, between if short else "", place) for between, place in (("，", locator.zh), (", ", locator.en))))
        self.source = source


class Cell:
    """One figure: its record, and what the estimator gives for it. Raises ArgumentError or UnknownId where that is nothing."""

    # What a column of a table may ask for.
    model_fields = ("cell", "full", "printed", "computed", "difference", "ratio", "unit", "agrees", "cause", "verdict", "where", "locator", "why", "holds", "name")

    def __init__(self, catalog, file, id, key):
        self.record = record = getattr(catalog, file)[id]
        if key not in record.cells:
            raise ArgumentError("cell", "%s/%s" % (id, key), "no such cell; " + suggestion(key, record.cells))
        self.of = record.cells[key]
        self.cell, self.name = self.of.cell, record.name
        self.why, self.holds = getattr(record, "why", None), getattr(record, "holds", None)
        self.result = _evaluate(catalog, record, self.of)
        self.scale, kinds = UNITS[record.unit]
        if self.result.kind not in kinds or record.unit == "B/parameter" and self.result.kind == "bytes" and self.result.arguments.get("N") != 1:
            raise ArgumentError("unit", record.unit, "the estimator gives %s" % self.result.kind)
        if self.result.value is None:
            raise ArgumentError("inputs", self.of.inputs, "the estimator gives no value for them")
        self.exact = _fraction(self.result.value) / self.scale
        self.digits = len(self.of.printed.partition(".")[2]) if _NUMBER.match(self.of.printed) else None
        self.figure = Fraction(self.of.printed) if self.digits is not None else _formula(self.of.printed, _symbols(record, self.of)) / self.scale
        self.places = _EXACT if self.digits is None else self.digits + 2
        self.unit = catalog.terms["unit." + record.unit] if "unit." + record.unit in catalog.terms else record.unit
        self.cause = catalog.terms[self.of.cause] if self.of.cause else None
        self._verdicts = catalog.terms["label.same"], catalog.terms["label.differs"]
        self.where = Where(record.source[0], catalog.references[record.source[0]].short, record.locator)
        self.locator = Where(record.source[0], "", record.locator)

    @property
    def full(self):
        """What it is of, with the name of its record before it, for a table of several records."""
        return Words(*("%s%s%s" % (getattr(self.name, language), between, getattr(self.cell, language, self.cell)) for language, between in (("zh", "，"), ("en", ", "))))

    @cached_property
    def agrees(self):
        """Whether the estimator's value rounds to the printed digits; for a formula, whether it is the formula's value."""
        if self.digits is None:
            return abs(self.exact - self.figure) <= abs(self.figure) / 10**12  # what binary fractions lose
        return rounded(self.exact, self.digits) == self.figure

    @property
    def verdict(self):
        """That it is the printed figure, or why it is not."""
        same, differs = self._verdicts
        return same if self.agrees else self.cause or differs

    @property
    def within_last_digit(self):
        """Whether the two differ by less than one in the last printed digit, as they also do where digits are cut off."""
        return self.agrees if self.digits is None else abs(self.exact - self.figure) < Fraction(1, 10**self.digits)

    @property
    def printed(self):
        if self.digits is not None:
            return InUnit(self.figure, "{:,}".format(Decimal(self.of.printed)), self.of.printed)
        written = re.sub(r"\*(?=[0-9])", " × ", self.of.printed).replace("*", "")
        return InUnit(self.figure, "%s = %s" % (written, _shown(self.figure, self.places)), self.of.printed)

    @property
    def computed(self):
        return InUnit(self.exact, _shown(self.exact, self.places), result=self.result)

    @property
    def difference(self):
        """The estimator's value less the printed one."""
        difference = self.exact - self.figure
        shown = _shown(abs(difference), self.places)
        return InUnit(difference, shown if shown == "0" else ("+" if difference > 0 else "\u2212") + shown)

    @property
    def ratio(self):
        """The printed figure over the estimator's."""
        return InUnit(self.figure / self.exact, "%s ×" % _shown(self.figure / self.exact, 3)) if self.exact else None


def rounded(value, digits):
    """A Fraction rounded to that many decimals, halves away from zero."""
    scaled = value * 10**digits
    whole = int(abs(scaled) + Fraction(1, 2))
    return Fraction(whole if scaled >= 0 else -whole, 10**digits)


def cells(catalog, axis, ids):
    """The choices of an axis of cells, "record/cell", for the ids of records."""
    return ["%s/%s" % (id, key) for id in ids for key in getattr(catalog, AXES[axis])[id].cells]


def cell(catalog, axis, choice):
    """The Cell of a choice."""
    return _cell(catalog, AXES[axis], *str(choice).split("/", 1))


def _cell(catalog, file, id, key):
    """The Cell, worked out once: a page asks for each of its columns, and the tables of a page overlap."""
    if (file, id, key) not in catalog.cells:
        catalog.cells[file, id, key] = Cell(catalog, file, id, key)
    return catalog.cells[file, id, key]


def count(catalog, file, id, field):
    """How many cells a record has, or how many of them agree or differ."""
    found = [_cell(catalog, file, id, key).agrees for key in getattr(catalog, file)[id].cells]
    return {"cells": len(found), "agreeing": sum(found), "differing": len(found) - sum(found)}[field]


def faults(catalog, file, id, record):
    """Yields (path, finding, cure) for each cell that cannot be.

    That a cell does not agree is no fault of the data: an edited ledger moves the page, and fails the tests.
    """
    if (record.quantity is None) == (record.function is None):
        yield (), "needs exactly one of 'quantity' and 'function'", "name what gives the figure"
        return
    for key in record.cells:
        try:
            cell = _cell(catalog, file, id, key)
            cell.printed, cell.computed, cell.difference, cell.ratio  # what a table may ask for
        except (ArgumentError, KeyError) as error:  # or an id that no record has: catalog.UnknownId
            yield ("cells", key), "%s: %s" % (key, error), "correct it"


def _evaluate(catalog, record, of):
    """The Result for a cell: of a quantity for a selection, or of a function of its plain arguments."""
    inputs = {**record.inputs, **of.inputs}
    if record.quantity:
        return quantities.evaluate(catalog, record.quantity, inputs)
    if record.function not in FUNCTIONS:
        raise ArgumentError("function", record.function, "no such function; " + suggestion(record.function, FUNCTIONS))
    function, kind = FUNCTIONS[record.function]
    taken = function.__code__.co_varnames[: function.__code__.co_argcount]
    needed = taken[: len(taken) - len(function.__defaults__ or ())]
    for name in inputs:
        if name not in taken:
            raise ArgumentError(name, inputs[name], "%s does not take it; it takes %s" % (record.function, ", ".join(taken)))
    for name in needed:
        if name not in inputs:
            raise ArgumentError(name, None, "%s needs it" % record.function)
    quantity = quantities.Quantity(function, dict.fromkeys(inputs), kind)
    return quantities.Result(record.function, quantity, inputs, dict.fromkeys(inputs), function(**inputs))


def _fraction(value):
    # repr, so that 6.1875 is what is written and 2.03 is no binary fraction.
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def _shown(value, places):
    return number(Decimal(value.numerator) / Decimal(value.denominator), places)


def _symbols(record, of):
    """{letter: number} of a printed formula: an input by its name, or a number."""
    inputs = {**record.inputs, **of.inputs}
    found = {}
    for letter, meaning in record.symbols.items():
        value = inputs.get(meaning) if isinstance(meaning, str) else meaning
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ArgumentError("symbols", letter, "%r is no number among the inputs" % meaning)
        found[letter] = _fraction(value)
    return found


def _formula(text, symbols):
    """The exact value of a printed formula of +, -, *, / and letters."""
    try:
        return _node(ast.parse(text, mode="eval").body, symbols, text)
    except ArgumentError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError):
        raise ArgumentError("printed", text, "is neither a number nor a formula of +, -, *, / and letters") from None


def _node(node, symbols, text):
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_node(node.left, symbols, text), _node(node.right, symbols, text))
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _fraction(node.value)
    if isinstance(node, ast.Name):
        if node.id not in symbols:
            raise ArgumentError("printed", text, "'symbols' does not say what %r is" % node.id)
        return symbols[node.id]
    raise ValueError(text)


_OPERATIONS = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b, ast.Div: lambda a, b: a / b}
