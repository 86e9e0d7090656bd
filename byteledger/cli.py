"""The command line: python -m byteledger COMMAND."""

import argparse
import sys
from pathlib import Path

from . import catalog, golden
from .revision import revision


def main(arguments=None):
    """Runs a command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m byteledger", description="The byte ledger's data and tables.")
    parser.add_argument("--version", action="version", version="Byte Ledger %s (%s)" % (revision(), revision().date))
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="checks all of data/ and tells every fault at once")
    check.add_argument("--data", type=Path, default=catalog.DATA, help="the folder to check (default: data)")
    tables = commands.add_parser("tables", help="renders every table into tests/golden/*.csv")
    tables.add_argument("--check", action="store_true", help="only compare: fail if they are stale, and show what moved")
    tables.add_argument("--draft", action="store_true", help="only print what moved as a draft for data/changes.yaml")
    given = parser.parse_args(arguments)
    return {"check": run_check, "tables": run_tables}[given.command](given)


def run_check(given):
    """Every fault, one a line, on standard output."""
    found, faults = catalog.examine(given.data)
    for fault in sorted(faults, key=lambda fault: (fault.file, fault.line, str(fault))):
        print(fault)
    if faults:
        print("%d fault%s" % (len(faults), "s" if len(faults) > 1 else ""), file=sys.stderr)
        return 1
    print("data is sound: %d records, revision %s" % (sum(len(getattr(found, file)) for file in catalog.FILES), revision()))
    return 0


def run_tables(given):
    """Writes or compares tests/golden/."""
    try:
        data = catalog.load()
    except catalog.DataError as error:
        print(error)
        return 1
    moved = golden.changes(data)
    if given.draft:
        print(draft(moved), end="")
        return 0
    for change in moved:
        print(change)
    if given.check:
        if moved:
            print("tests/golden is stale: %d changes; run `make tables` and look at the difference" % len(moved), file=sys.stderr)
        return 1 if moved else 0
    print("%d tables in %s, revision %s" % (len(golden.write(data)), golden.FOLDER, revision()))
    return 0


def draft(moved):
    """A record for data/changes.yaml, to be completed by hand."""
    lines = ["# draft: give it an id, say what changed and why", "YYYY-MM-DD-what:", "  date: '%s'" % revision().date, "  what: {zh: …, en: …}", "  why: {zh: …, en: …}"]
    lines.append("  moved:" if moved else "  moved: []")
    for change in moved:
        lines.append("    - %s" % quoted(str(change)))
    return "\n".join(lines) + "\n"


def quoted(text):
    """YAML's single-quoted form."""
    return "'%s'" % text.replace("'", "''")
