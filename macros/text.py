"""Words and derivations as they are printed; numbers come from byteledger.printed."""

import html
import re

from byteledger.printed import amount, bare, number, phrase, unit_of

__all__ = ["amount", "bare", "number", "phrase", "unit_of"]
LANGUAGES = ("zh", "en")
# Punctuation that Markdown, its extensions or Jinja may read as markup.
_MARKUP = {ord(c): "&#%d;" % ord(c) for c in "\\`*_{}[]()#+-.!|$~^=:@/%&<>\"'"}


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
