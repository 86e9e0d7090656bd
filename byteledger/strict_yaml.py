"""YAML without its silent surprises: text in, plain values and their line numbers out, every fault reported.

Taken as it looks: decimal integers (7_000_000_000), decimal fractions (1.015625), true, false, and text. Everything
that YAML would quietly turn into something else is a fault that says what to write instead.
"""

import re
import unicodedata

import yaml

_INT = re.compile(r"[-+]?(0|[1-9][0-9_]*)$")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9_]*)\.[0-9]+$")
_TRAPS = (
    (re.compile(r"(y|n|yes|no|on|off)$", re.I), "YAML reads {0!r} as a boolean", "write true or false, or quote it"),
    (re.compile(r"[-+]?0[0-9_]+$"), "YAML reads {0!r} as an octal number", "drop the leading zero, or quote it"),
    (re.compile(r"[-+]?0[xbo][0-9a-f_]+$", re.I), "{0!r} is no decimal number", "write it in decimal"),
    (re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$"), "YAML reads {0!r} in base sixty", "quote it"),
    (re.compile(r"[-+]?[0-9.][0-9_.]*e[-+]?[0-9]+$", re.I), "YAML may read {0!r} as text", "write all the digits, as 7_000_000_000"),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*\.)$"), "{0!r} is an unusual number", "write a digit on both sides of the point"),
    (re.compile(r"[-+]?\.?(inf|infinity|nan)$", re.I), "{0!r} is not a finite number", "write a finite number"),
    (re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?$"), "YAML reads {0!r} as a date", "quote it"),
    (re.compile(r"(~|Null|NULL)?$"), "empty value", "give a value, leave the key out, or write null where a config.json says null"),
)
_MAY_BE_TRAPPED = frozenset("+-.0123456789~yYnNoOiI")  # how any of them can begin
_LAYOUT = {"\n", "\r"}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Position:
    """Where a value stands: the path of keys to it, its line from 1, and whether the key or the value is meant."""

    def __init__(self, lines):
        self._lines = lines

    def has(self, path):
        """Whether something stands at path."""
        return tuple(path) in self._lines

    def line(self, path):
        """The line of the value at path; of the nearest enclosing one where it has none of its own."""
        path = tuple(path)
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)


def load(text):
    """(value, Position, faults): faults is a list of (line, path, finding, cure); value is None if it cannot be read."""
    faults = []
    lines = {}
    text = text.removeprefix("\ufeff")
    _characters(text, faults)
    try:
        node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        finding = getattr(error, "problem", None) or str(error).split("\n")[0]
        faults.append((mark.line + 1 if mark else 1, (), "not YAML: %s" % finding, "see the line above it, too: an indent, a colon, a quote"))
        return None, Position(lines), faults
    if node is None:
        faults.append((1, (), "the file is empty", "add a record, or remove the file"))
        return None, Position(lines), faults
    try:
        value = _value(node, (), lines, faults)
    except RecursionError:
        faults.append((1, (), "nested too deeply", "flatten it"))
        value = None
    return value, Position(lines), faults


def _characters(text, faults):
    if text.isascii() and "\t" not in text and not _CONTROL.search(text):
        return
    for number, line in enumerate(text.split("\n"), 1):
        # Nothing invisible is printable; an ideographic space is neither, and is looked at below.
        for character in "" if line.isprintable() else line:
            if character == "\t":
                faults.append((number, (), "a tab", "use spaces"))
                break
            if character not in _LAYOUT and unicodedata.category(character) in ("Cf", "Cc", "Co", "Cs", "Cn", "Zl", "Zp"):
                faults.append((number, (), "the invisible character U+%04X" % ord(character), "delete it"))
                break
            if character == "\u00a0":
                faults.append((number, (), "a no-break space (U+00A0)", "use a plain space"))
                break
        bare = line.split("#")[0].strip()
        if re.match(r"[A-Za-z0-9_.-]+：", bare):
            faults.append((number, (), "a full-width colon after a key", "use ': '"))


def _value(node, path, lines, faults):
    lines.setdefault(path, node.start_mark.line + 1)
    line = node.start_mark.line + 1
    if node.tag.startswith("!") or (node.tag.startswith("tag:yaml.org,2002:") and not getattr(node, "style", None) and node.tag.rsplit(":", 1)[1] in ("binary", "python")):
        faults.append((line, path, "the YAML tag %s" % node.tag, "remove it"))
        return None
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, lines, faults)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, path + (number,), lines, faults) for number, item in enumerate(node.value)]
    return _scalar(node, path, faults)


def _mapping(node, path, lines, faults):
    result = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            faults.append((line, path, "a key that is not text", "write a plain word before the colon"))
            continue
        key = key_node.value
        here = path + (key,)
        if key == "<<" and not key_node.style:
            faults.append((line, path, "a merge key '<<'", "write the values out"))
            continue
        if key in result:
            faults.append((line, here, "duplicate key %r, first on line %d" % (key, lines[here]), "keep one of them"))
            continue
        if not key_node.style and _trap(key) and not _trap(key)[0].startswith("YAML may"):
            faults.append((line, here, "the key: " + _trap(key)[0], "quote it"))
        lines[here] = line
        result[key] = _value(value_node, here, lines, faults)
    return result


def _trap(text):
    if text and text[0] not in _MAY_BE_TRAPPED:
        return None
    for pattern, finding, cure in _TRAPS:
        if pattern.match(text):
            return finding.format(text), cure
    return None


def _scalar(node, path, faults):
    text = node.value
    line = node.start_mark.line + 1
    if node.style:  # quoted, or a block: text as it stands
        hidden = next((c for c in text if not c.isprintable() and c not in "\n\u3000"), None)
        if hidden:
            faults.append((line, path, "the invisible character U+%04X" % ord(hidden), "delete it"))
        if text == "":
            faults.append((line, path, "empty value", "give a value, or leave the key out"))
        return text
    if text in ("true", "false"):
        return text == "true"
    if text == "null":  # a config.json says so of a window that a model does not have; a record that wants a value refuses it
        return None
    if _INT.match(text):
        digits = text.replace("_", "")
        if len(digits) > 40:
            faults.append((line, path, "an integer of %d digits" % len(digits), "nothing here is that large"))
            return None
        return int(digits)
    if _FLOAT.match(text):
        return float(text.replace("_", ""))
    trap = _trap(text)
    if trap:
        faults.append((line, path) + trap)
        return None
    if not text.isascii() and any(unicodedata.category(c) == "Nd" and not c.isascii() for c in text) and re.match(r"[-+]?[\d_.,]+$", text):
        faults.append((line, path, "full-width or other non-ASCII digits in %r" % text, "use 0-9"))
        return None
    return text
