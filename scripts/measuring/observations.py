"""data/observations.yaml: what was measured, written as records and read back. Needs no PyTorch."""

import importlib.metadata
import json
import platform
import re
from pathlib import Path

from byteledger import strict_yaml

from .settings import complete

PATH = Path(__file__).resolve().parent.parent.parent / "data" / "observations.yaml"
PACKAGES = ("torch", "transformers")
HEAD = """# What PyTorch was measured to hold, in bytes; written by `python scripts/measure.py record`, nothing here is typed by hand.
# Each record says how to measure it again.
"""
_PLAIN = re.compile(r"[A-Za-z_]\w*([.+-]\w+)*$|[0-9]+\.[0-9]+\.[0-9][\w.+]*$")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")


def versions(settings={}):
    """{package: version} of what every measurement depends on, and of the package whose optimizer the settings name; None: absent."""
    more = [name for name in ("torchao", "bitsandbytes") if settings.get("optimizer", "").endswith(name)]
    more += ["deepspeed"] if settings.get("strategy", "").startswith("deepspeed") else []
    return {"python": platform.python_version(), **{name: _version(name) for name in [*PACKAGES, *more]}}


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def read(path=PATH):
    """{name: record} of the file as it is written."""
    return strict_yaml.load(path.read_text(encoding="utf-8"))[0] or {} if path.exists() else {}


def same(row, case):
    """Whether a row, or a record of the file, was measured for the same configuration and settings, with the versions of here.

    A package that is not installed here has no version that could differ: the cases can be listed without PyTorch.
    """
    if not row:
        return False
    config = {"model": row["model"]} if "model" in row else row["config"]
    given, wanted = (complete(case["kind"], settings) for settings in (row["settings"], case["settings"]))
    here = {name: version or row["versions"].get(name) for name, version in versions(case["settings"]).items()}
    return (config, given, row["versions"]) == (case["config"], wanted, here)


def brief(row):
    """A measurement in a few words, for the progress."""
    if row["kind"] == "fsdp2":
        return "%s  %s" % (f"{row['peak']:,}", row["phase"])
    if row["kind"] == "shards":
        return "ranks hold " + " ".join(f"{sum(size for kind, size in rank.items() if not kind.startswith('elements')):,}" for rank in row["ranks"])
    return f"{sum(row['bytes'].values()):,}"


def as_record(row, held_out):
    """A measurement as a record of the file."""
    record = {"measured": row["kind"]}
    record |= {"model": row["config"]["model"]} if "model" in row["config"] else {"config": row["config"]}
    record["settings"] = complete(row["kind"], row["settings"])
    if "parameters" in row:
        record["parameters"] = row["parameters"]
    if row["kind"] == "fsdp2":
        peak = row["phases"][row["phase"]]
        record |= {
            "bytes": row["by_kind"], "phases": {phase: found["bytes"] for phase, found in row["phases"].items()},
            "at": "%s in %s" % (peak["operation"], peak["module"]), "at_rest": row["at_rest"],
        }  # fmt: skip
    for key in ("bytes", "ranks", "phases", "reserved", "requested", "snapshot", "temporaries", "device"):
        if key in row:
            record[key] = record.get(key) or row[key]
    if row["name"] in held_out:
        record["held_out"] = True
    return record | {"versions": row["versions"], "date": row["date"], "command": row.get("command") or "python scripts/measure.py case " + row["name"]}


def write(rows, path, order, held_out):
    """Takes rows into the file: (all records, those that are new or differ). Records stand in the order of the cases."""
    records = read(path)
    before = dict(records)
    records |= {row["name"]: as_record(row, held_out) for row in rows}
    place = {name: i for i, name in enumerate(order)}
    names = sorted(records, key=lambda name: (place.get(name, len(place)), name))
    text = HEAD + "".join("\n%s:\n%s" % (name, "".join("  %s: %s\n" % (key, flow(value)) for key, value in records[name].items())) for name in names)
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
    return len(records), sum(before.get(name) != record for name, record in records.items())


def flow(value):
    """A value on one line, as strict_yaml reads it back."""
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (key, flow(each)) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(map(flow, value))
    if isinstance(value, str) and _PLAIN.match(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value)  # a number, true, false, null, or text in quotes
