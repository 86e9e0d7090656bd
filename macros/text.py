"""Numbers and words as they are printed: rounding happens here and nowhere else."""

import html
import re
from decimal import ROUND_HALF_UP, Context, Decimal

LANGUAGES = ("zh", "en")
_EXACT = Context(prec=60)
_UNITS = {"GB": 10**9, "GiB": 2**30, "MB": 10**6, "MiB": 2**20, "B": 1}
# Punctuation that Markdown, its extensions or Jinja may read as markup.
_MARKUP = {ord(c): "&#%d;" % ord(c) for c in "\\`*_{}[]()#+-.!|$~^=:@/%&<>\"'"}


def number(value, places):
    """value with at most `places` decimals, half away from zero, thousands separated, no trailing or negative zero."""
    exact = _decimal(value)
    rounded = exact.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP, context=_EXACT)
    if rounded == 0:
        rounded = abs(rounded)
    text = "{:,f}".format(rounded)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimal(value):
    # repr, so that 2.675 rounds as it is written and not as the nearest binary fraction.
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def amount(value, unit):
    """Bytes as a bare number in a unit: 140000000000 in GB is '140'.

    No decimals from 1,000 on, one from 10, two from 1, else three significant digits.
    """
    scaled = _EXACT.divide(_decimal(value), Decimal(_UNITS[unit]))
    magnitude = abs(scaled)
    if magnitude >= 1000:
        return number(scaled, 0)
    if magnitude >= 10:
        return number(scaled, 1)
    if magnitude >= 1 or magnitude == 0:
        return number(scaled, 2)
    return number(scaled, 2 - magnitude.adjusted())


def bare(value, kind, unit=None):
    """A quantity without its unit, for a table whose heading says it."""
    if kind == "bytes":
        return amount(value, unit or "GB")
    if kind == "bytes per parameter":
        return number(value, 6)
    if kind == "multiple":
        return number(value, 2)
    return number(value, 0)


def unit_of(kind, unit=None):
    """The unit as it is printed."""
    return {"bytes": unit or "GB", "bytes per parameter": "B/parameter", "multiple": "×"}.get(kind, "")


def phrase(value, kind, unit=None):
    """A quantity with its unit: '140 GB', '16 B/parameter', '8×'."""
    printed = unit_of(kind, unit)
    return bare(value, kind, unit) + ("" if printed in ("", "×") else " ") + printed


def derivation(result):
    """The formula with its values: 'M_weights = N × b_w; N = 70,000,000,000, b_w = 2'."""
    equation = result.equation.replace(" x ", " × ")
    inputs = ", ".join("%s = %s" % (name, _input(value)) for name, value in result.arguments.items() if value is not None)
    return "%s; %s" % (equation, inputs)


def steps(result):
    """The derivation in full, as [(name, right side, value, origin)]: the quantity first, then each of its inputs.

    An input that is a quantity itself is derived in its turn; origin is (file, id) of a record, or None.
    """
    name, _, right = result.equation.replace(" x ", " × ").partition(" = ")
    found = [(name, right, phrase(result.value, result.kind) + _exact(result), None)]
    for argument, value in result.arguments.items():
        origin = result.origins[argument]
        if hasattr(origin, "function"):
            found.extend(steps(origin))
        elif value is not None:
            found.append((argument, "", _input(value), origin))
    return list(dict.fromkeys(found))


def _exact(result):
    """The bytes themselves, beside the rounded amount."""
    return " (%s B)" % number(result.value, 3) if result.kind == "bytes" else ""


def _input(value):
    if isinstance(value, (list, tuple)):
        return "{%s}" % ", ".join(map(str, value))
    return number(value, 6) if isinstance(value, (int, float)) else str(value)


def words(bilingual, language):
    """The words of a record in one language."""
    return getattr(bilingual, language).strip()


def escape(text):
    """Text from data, safe inside HTML and its attributes; a macro's delimiter in it is told from one left over."""
    return html.escape(str(text), quote=True).replace("&lt;%", "&lt;&#37;")


def escape_inline(text):
    """Text from data, safe inside a Markdown paragraph or table cell: nothing in it is read as markup."""
    return " ".join(str(text).split()).translate(_MARKUP)


def attribute(text):
    """Text from data, safe in an attribute of HTML that stands inside a Markdown paragraph.

    Markdown looks for code, links and emphasis before it looks for tags, inside their attributes, too.
    """
    return escape(text).translate({ord(c): "&#%d;" % ord(c) for c in "\\`*_[]$~^"})


def escape_cell(text):
    """Text from data in a table cell of plain Markdown: one line, and no sign that ends the cell or starts markup."""
    return re.sub(r"([\\`*_\[\]<>|~#$]|(?<=<)%)", r"\\\1", " ".join(str(text).split()))
