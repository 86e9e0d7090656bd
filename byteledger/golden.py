"""Every table as CSV in tests/golden/, so that a change of data shows as a difference of numbers."""

import csv
import io
from pathlib import Path

from . import export

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden"


class Change:
    """One cell that moved, or a row, column or table that came or went."""

    def __init__(self, table, row, column, old, new):
        self.table, self.row, self.column, self.old, self.new = table, row, column, old, new

    def __str__(self):
        where = self.table + "".join(": " + part for part in (self.row, self.column) if part)
        if self.old is None:
            return "%s: new: %s" % (where, self.new)
        if self.new is None:
            return "%s: gone: %s" % (where, self.old)
        return "%s: %s -> %s%s" % (where, self.old, self.new, by_how_much(self.old, self.new))


def by_how_much(old, new):
    """' (-25 %, -4)' for two numbers, else nothing."""
    try:
        first, second = float(old), float(new)
    except ValueError:
        return ""
    difference = second - first
    percent = " (%+.4g %%, %+.6g)" % (100 * difference / first, difference) if first else " (%+.6g)" % difference
    return percent


def rendered(catalog):
    """{table: CSV} of every table, as it should stand in tests/golden/."""
    return {id: export.as_csv(catalog, id) for id in catalog.tables}


def stored(folder=FOLDER):
    """{table: CSV} as it stands in tests/golden/."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path(folder).glob("*.csv"))}


def write(catalog, folder=FOLDER):
    """Writes tests/golden/; a table that is no longer there goes."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = rendered(catalog)
    for path in folder.glob("*.csv"):
        if path.stem not in wanted:
            path.unlink()
    for id, text in wanted.items():
        (folder / (id + ".csv")).write_text(text, encoding="utf-8")
    return list(wanted)


def changes(catalog, folder=FOLDER):
    """Every Change from tests/golden/ to what data gives now."""
    old, new = stored(folder), rendered(catalog)
    found = []
    for id in sorted(set(old) | set(new)):
        if id not in old:
            found.append(Change(id, "", "", None, "table of %d rows" % (new[id].count("\n") - 1)))
        elif id not in new:
            found.append(Change(id, "", "", "table of %d rows" % (old[id].count("\n") - 1), None))
        elif old[id] != new[id]:
            found.extend(_table(id, _read(old[id]), _read(new[id])))
    return found


def _read(text):
    """{row name: {column: cell}}; a row is named by its first cell, numbered where that repeats."""
    named = {}
    for cells in csv.DictReader(io.StringIO(text)):
        name = next(iter(cells.values()))
        number = 2
        unique = name
        while unique in named:
            unique, number = "%s (%d)" % (name, number), number + 1
        named[unique] = cells
    return named


def _table(id, old, new):
    for row in [*old, *(row for row in new if row not in old)]:
        if row not in new:
            yield Change(id, row, "", _some(old[row]), None)
        elif row not in old:
            yield Change(id, row, "", None, _some(new[row]))
        else:
            for column in [*old[row], *(c for c in new[row] if c not in old[row])]:
                before, after = old[row].get(column), new[row].get(column)
                if before != after:
                    yield Change(id, row, column, before, after)
    if list(old) != list(new) and sorted(old) == sorted(new):
        yield Change(id, "", "", "rows in the order " + ", ".join(old), "rows in the order " + ", ".join(new))


def _some(cells):
    return ", ".join(cell for cell in list(cells.values())[1:5] if cell)
