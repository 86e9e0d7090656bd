"""Tables and records for other programs: CSV and JSON, with full values, units in the headings and sources kept."""

import csv
import io
import json

from pydantic import TypeAdapter

from . import published, quantities, tables
from .records import FILES

UNITS = {
    "bytes": "bytes", "exact bytes": "bytes", "bytes per parameter": "bytes/parameter", "bytes per element": "bytes/element", "multiple": "ratio", "percent": "percent", "signed percent": "percent", "fine percent": "percent", "count": "count", "of the row": "in the unit of the row",
    **{unit: unit for unit in tables.FIELD_UNITS.values()},
}  # fmt: skip
LANGUAGES = ("zh", "en")


def columns(table):
    """[(heading, index of its cell, language or None)]: one for each column, two for words, which stand in both languages."""
    found = []
    seen = set()
    for index, heading in enumerate(table.headings):
        name = heading.id
        if heading.across:
            name += " @ " + ", ".join("%s=%s" % item for item in heading.across.items())
        if heading.kind:
            name += " [%s]" % UNITS[heading.kind]
            if name in seen:
                continue  # the same number in another unit: bytes say both
            seen.add(name)
        if not heading.kind and any(hasattr(row.cells[index], "zh") for row in table.rows):
            found.extend(("%s (%s)" % (name, language), index, language) for language in LANGUAGES)
        else:
            found.append((name, index, None))
    return found


def plain(cell, language=None):
    """A cell as a number or text."""
    if isinstance(cell, quantities.Result):
        return whole(cell.value)
    if isinstance(cell, published.InUnit):
        return whole(cell.plain)
    if hasattr(cell, "zh"):
        return getattr(cell, language or "en").strip()
    if isinstance(cell, tuple) and all(isinstance(part, float) for part in cell):  # a range
        return " to ".join(str(whole(part)) for part in sorted(set(cell)))
    if isinstance(cell, (tuple, list)):
        return " ".join(str(part) for part in cell)
    return "" if cell is None else whole(cell)


def whole(value):
    """A float that is a whole number as one: 140000000000.0 is 140000000000."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def rows(catalog, id):
    """(headings, rows) of a table with full values: first the ids of each row, last the sources."""
    table = tables.evaluate(catalog, id)
    axes = [axis for axis in table.record.rows if axis not in [heading.id for heading in table.headings]]
    found = columns(table)
    source = " ".join(table.record.source)
    body = []
    for row in table.rows:
        ids = [row.selection[axis] for axis in axes]
        cells = [plain(row.cells[index], language) for _, index, language in found]
        if row.total:
            ids = ids and ["total"] * len(ids)
            cells[0] = cells[0] or "total"
        body.append(ids + cells + [source])
    return axes + [name for name, _, _ in found] + ["source"], body


def as_csv(catalog, id, revision=None):
    """The table as CSV; the revision, if given, in a last column, so that no row loses it."""
    headings, body = rows(catalog, id)
    if revision:
        headings, body = headings + ["revision"], [row + [str(revision)] for row in body]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([inert(heading) for heading in headings])
    writer.writerows([inert(cell) for cell in row] for row in body)
    return out.getvalue()


def inert(cell):
    """Text that a spreadsheet would run as a formula gets an apostrophe before it; numbers stay numbers."""
    if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + cell
    return cell


def as_json(catalog, id, revision):
    """The table as JSON: its columns with kind and unit, its rows by column, its sources with addresses."""
    table = tables.evaluate(catalog, id)
    headings, body = rows(catalog, id)
    return json.dumps(
        {
            "table": id,
            "title": table.record.title.model_dump(),
            "note": table.record.note.model_dump() if table.record.note else None,
            "revision": str(revision),
            "date": revision.date,
            "columns": headings,
            "rows": [dict(zip(headings, row)) for row in body],
            "sources": {reference: catalog.references[reference].url for reference in table.record.source},
        },
        ensure_ascii=False,
        indent=1,
    )


def everything(catalog, revision):
    """All records and all tables, as one JSON document; schema() describes it."""
    return json.dumps(
        {
            "revision": str(revision),
            "date": revision.date,
            **{file: {id: record.model_dump(exclude_none=True) for id, record in getattr(catalog, file).items()} for file in FILES},
            "rendered": {id: json.loads(as_json(catalog, id, revision)) for id in catalog.tables},
        },
        ensure_ascii=False,
        indent=1,
    )


def schema():
    """The JSON Schema of everything(), generated from the records."""
    properties, definitions = {"revision": {"type": "string"}, "date": {"type": "string"}, "rendered": {"type": "object"}}, {}
    for file, record in FILES.items():
        part = TypeAdapter(dict[str, record]).json_schema(ref_template="#/$defs/{model}")
        definitions.update(part.pop("$defs", {}))
        properties[file] = {**part, "description": record.__doc__.split("\n")[0]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Byte Ledger: all data",
        "type": "object",
        "required": sorted(properties),
        "additionalProperties": False,
        "properties": properties,
        "$defs": definitions,
    }
