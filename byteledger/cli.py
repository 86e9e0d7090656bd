"""The command line: python -m byteledger COMMAND."""

import argparse
import re
import sys

from .revision import revision


class Version(argparse.Action):
    """--version: the revision is only worked out where it is asked for."""

    def __init__(self, **options):
        super().__init__(nargs=0, **options)

    def __call__(self, parser, namespace, values, option_string=None):
        print("Byte Ledger %s (%s)" % (revision(), revision().date))
        parser.exit()


def main(arguments=None):
    """Runs a command; returns the exit status: 0 with a result, 1 where a check fails, 2 with a refusal on standard error."""
    parser = argparse.ArgumentParser(prog="python -m byteledger", description="The memory that large language models need, byte by byte.")
    parser.add_argument("--version", action=Version, help="the version and the hash of data and formulas")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    params = commands.add_parser("params", help="how many parameters a model has, by part")
    kv = commands.add_parser("kv", help="how many bytes its KV cache takes")
    estimate = commands.add_parser("estimate", help="the memory of a training run, rank by rank, and where its peak stands")
    for command in (params, kv):
        command.add_argument("model", nargs="?" if command is params else None, metavar="MODEL|config.json", help="an id of data/models.yaml, or a Hugging Face config.json or its folder")
    for command in (params, kv, estimate):
        command.add_argument("--json", action="store_true", help="for programs")
        command.add_argument("--lang", choices=("zh", "en"), default="en", help="the language of what is said (default: en)")
    params.add_argument("--list", action="store_true", help="all models of the catalogue, and every model_type that has a rule")
    kv.add_argument("--context", type=tokens, default=8192, metavar="N", help="tokens of each sequence; 8K is 8,192 (default: 8192)")
    kv.add_argument("--batch", type=tokens, default=1, metavar="N", help="sequences at the same time (default: 1)")
    kv.add_argument("--dtype", choices=("bf16", "fp16", "fp8", "int8", "fp32"), default="bf16", help="format of the cache (default: bf16)")
    kv.add_argument("--budget", type=memory, metavar="SIZE", help="memory for the cache, as 40GB or 40GiB: tells the largest batch and context")
    kv.add_argument("--block", type=tokens, default=1, metavar="N", help="tokens to a page of a paging engine, for what it reserves (default: 1)")
    if "estimate" in (sys.argv if arguments is None else arguments):
        add_settings(estimate)  # some forty flags, for which the other commands need not wait
    check = commands.add_parser("check", help="checks all of data/ and tells every fault at once")
    check.add_argument("--data", help="the folder to check (default: data)")
    tables = commands.add_parser("tables", help="renders every table into tests/golden/*.csv")
    tables.add_argument("--check", action="store_true", help="only compare: fail if they are stale, and show what moved")
    tables.add_argument("--draft", action="store_true", help="only print what moved as a draft for data/changes.yaml")
    given = parser.parse_args(arguments)
    if given.command == "params" and given.model is None and not given.list:
        params.error("give a MODEL or a config.json, or --list for all there are")
    return {"check": run_check, "tables": run_tables, "params": run_model, "kv": run_model, "estimate": run_estimate}[given.command](given)


def add_settings(command):
    """What `estimate` takes: a model, records by id, and a flag for each setting of a scenario, under its own name."""
    from .scenario import SETTINGS

    command.add_argument("model", metavar="MODEL|config.json|COUNT", help="an id of data/models.yaml, a config.json or its folder, or a bare count such as 70B")
    command.add_argument("--ledger", default="bf16-adamw", metavar="ID", help="bytes per parameter of each state: an id of data/ledgers.yaml (default: bf16-adamw)")
    command.add_argument("--strategy", default="ddp", metavar="ID", help="what is sharded: an id of data/strategies.yaml (default: ddp)")
    command.add_argument("--accelerator", metavar="ID", help="the device to hold it against: an id of data/accelerators.yaml")
    command.add_argument("--base-format", metavar="ID", help="format of a frozen base under LoRA: an id of data/weight_formats.yaml, as nf4 (default: bf16)")
    for name, (default, kind) in SETTINGS.items():
        flag = "--" + name.replace("_", "-")
        if kind == "flag":
            command.add_argument(flag, action=argparse.BooleanOptionalAction, default=None)
        elif kind == "count":
            command.add_argument(flag, type=tokens if name == "sequence" else whole, default=None, metavar="N", help="(default: %s)" % default if default else None)
        elif kind == "share":
            command.add_argument(flag, type=float, default=None, metavar="P")
        elif kind == "reshard":
            command.add_argument(flag, type=reshard, default=None, metavar="true|false|N", help="FSDP2: free gathered weights after forward, keep them, or spread them over N ranks")
        elif kind == "names":
            command.add_argument(flag, type=lambda text: text if text == "all-linear" else tuple(text.split(",")), default=None, metavar="NAME,…|all-linear", help="(default: %s)" % ",".join(default))
        else:
            command.add_argument(flag, type=type(kind[0]), choices=kind, default=None, help="(default: %s)" % default if default else None)


def whole(text):
    """A whole number, 1 or more: 64 or 1_000."""
    digits = re.sub("[_,]", "", text)
    if not re.fullmatch(r"[0-9][0-9_,]*", text) or not int(digits):
        raise argparse.ArgumentTypeError("%r: a whole number, 1 or more" % text)
    return int(digits)


def reshard(text):
    """true, false or a number of ranks."""
    return {"true": True, "false": False}[text] if text in ("true", "false") else whole(text)


def run_estimate(given):
    """The estimate on standard output, or a refusal on standard error."""
    from . import estimate
    from .scenario import SETTINGS

    settings = {name: getattr(given, name) for name in SETTINGS}
    return answer(
        given,
        lambda: estimate.estimate(given.model, given.ledger, given.strategy, given.accelerator, given.base_format, **settings),
        estimate.as_json if given.json else estimate.text,
    )


def answer(given, compute, said):
    """Prints what is said of a result and returns 0, or tells a refusal on standard error and returns 2."""
    from . import hf_config
    from .arguments import ArgumentError

    try:
        result = compute()
    except hf_config.Refusal as refusal:
        print(refusal.said(given.lang), file=sys.stderr)
        return 2
    except ArgumentError as error:
        print(error, file=sys.stderr)
        return 2
    print(said(result, given.lang, revision()))
    return 0


def tokens(text):
    """A count: 8192, 8,192, 8K. K is 1,024 here, as context lengths are named; M is 1,048,576."""
    match = re.fullmatch(r"([0-9][0-9,_]*)([KkMm]?)", text)
    if not match or not int(re.sub("[,_]", "", match[1])):
        raise argparse.ArgumentTypeError("%r: a whole number, 1 or more, such as 8192 or 8K (8,192)" % text)
    return int(re.sub("[,_]", "", match[1])) * {"": 1, "K": 1024, "M": 1024**2}[match[2].upper()]


def memory(text):
    """Bytes: 40GB is 40 x 10^9, 40GiB is 40 x 2^30, 1000B. A bare number has no unit and is refused."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(B|GB|GiB|MB|MiB|TB|TiB)", text)
    if not match:
        raise argparse.ArgumentTypeError("%r: give a number with its unit, as 40GB (10^9) or 40GiB (2^30)" % text)
    return int(float(match[1]) * {"B": 1, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30, "TB": 10**12, "TiB": 2**40}[match[2]])


def run_model(given):
    """params and kv: the result on standard output, or a refusal on standard error."""
    from . import report

    if given.command == "params" and given.list:
        print(report.listed_json(revision()) if given.json else report.listed_text(given.lang))
        return 0
    if given.command == "params":
        compute, text = (lambda: report.params(given.model)), report.params_text
    else:
        compute, text = (lambda: report.kv(given.model, given.context, given.batch, given.dtype, given.budget, given.block)), report.kv_text
    return answer(given, compute, report.as_json if given.json else text)


def run_check(given):
    """Every fault, one a line, on standard output."""
    from . import catalog

    found, faults = catalog.examine(given.data or catalog.DATA)
    for fault in sorted(faults, key=lambda fault: (fault.file, fault.line, str(fault))):
        print(fault)
    if faults:
        print("%d fault%s" % (len(faults), "s" if len(faults) > 1 else ""), file=sys.stderr)
        return 1
    print("data is sound: %d records, revision %s" % (sum(len(getattr(found, file)) for file in catalog.FILES), revision()))
    return 0


def run_tables(given):
    """Writes or compares tests/golden/."""
    from . import catalog, golden

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
