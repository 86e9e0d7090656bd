"""Measures with real PyTorch, without a GPU: python scripts/measure.py --help

  list           the cases, and which of them are recorded
  case NAME …    measures cases, each in a process of its own, one file NAME.json for each into --out; patterns such as
                 'llama-*' and names of sets (small, grid, unseen, states, saved, shards) do. What is there already, or
                 recorded with the same configuration, settings and versions, is passed over.
  record         takes these files into data/observations.yaml
  fsdp2 …        one rank's peak under FSDP2 of a model given by its config.json's fields: one JSON object on stdout

Needs the packages of requirements-transformers.txt: make transformers installs them. Nothing imports this.
"""

import argparse
import json
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from byteledger import one_record  # noqa: E402
from measuring import observations, runner  # noqa: E402
from measuring.cases import CASES, HELD_OUT, SETS  # noqa: E402

FIELDS = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size", "vocab_size",
    "tie_word_embeddings", "num_local_experts", "num_experts", "num_experts_per_tok", "moe_intermediate_size", "n_embd", "n_layer", "n_head", "n_positions",
)  # fmt: skip
SWITCHES = {"checkpoint": ("checkpointing", "full"), "mixed": ("precision", "mixed")}


def value(text):
    """A number, true, false or null as JSON has them, and any other word as it stands."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def fields(config):
    """The config.json's fields of a case: its own, or those of a model of data/models.yaml."""
    if "model" not in config:
        return config
    return one_record.config(one_record.record("models", config["model"]))


def measure(kind, config, settings):
    """The measurement of one case, in this process."""
    return import_module("measuring." + kind).measure(fields(config), **settings)


def one(args):
    """fsdp2: prints the measurement of the model of the command line."""
    config = json.loads(Path(args.config).read_text(encoding="utf-8")) if args.config else {}
    config |= {name: given for name in ("model_type", *FIELDS) if (given := getattr(args, name)) is not None}
    config |= {name: value(text) for name, text in (pair.split("=", 1) for pair in args.field)}
    settings = {"precision": "bf16"} | {name: value(text) for name, text in (pair.split("=", 1) for pair in args.set)}
    for name in ("dp", "sequence", "micro_batch", "attention", "optimizer_implementation", "reshard_after_forward"):
        if (given := getattr(args, name)) is not None:
            settings[name] = given
    for switch, (name, meant) in SWITCHES.items():
        if getattr(args, switch):
            settings[name] = meant
    print(json.dumps({"config": config, "settings": settings, "versions": observations.versions(), **measure("fsdp2", config, settings)}))


def prepare(names):
    """Imports what the cases need, once, before each forks from this process."""
    if None in observations.versions().values():
        raise SystemExit("needs torch and transformers: make transformers installs both, then run it with build/transformers/bin/python")
    import torch

    torch.set_num_threads(1)  # a pool of threads would not survive a fork
    for kind in {CASES[name][0] for name in names}:
        import_module("measuring." + kind)
    import_module("measuring.models").preload({fields(CASES[name][1])["model_type"] for name in names})


def many(args):
    """case: measures the cases of the command line; returns 1 if one failed."""
    names = runner.chosen(args.names, CASES, SETS, () if args.held_out else HELD_OUT)
    if not names:
        print("no case has such a name; see `python scripts/measure.py list`", file=sys.stderr)
        return 2
    prepare(names)
    return runner.run(partial(runner.forked, measured), names, CASES, Path(args.out), args.timeout, args.again)


def measured(kind, config, settings):
    """One case with its versions."""
    return {"versions": observations.versions(settings), **measure(kind, config, settings)}


def record(args):
    """record: takes the files of --out into data/observations.yaml."""
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(args.out).glob("*.json"))]
    written = observations.write(rows, Path(args.into), tuple(CASES), HELD_OUT)
    print("%s: %d observations, %d of them new or measured again" % (args.into, *written))


def show(args):
    """list: every case."""
    recorded = observations.read()
    for name, (kind, config, settings) in CASES.items():
        there = observations.same(recorded.get(name), {"kind": kind, "config": config, "settings": settings})
        print("%-10s %-7s %-40s %s" % ("recorded" if there else "held out" if name in HELD_OUT else "open", kind, name, json.dumps(settings)))


def main():
    """Runs a command; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="{list,case,record,fsdp2}")
    commands.add_parser("list", help="the cases").set_defaults(run=show)
    case = commands.add_parser("case", help="measures cases, each in its own process")
    case.set_defaults(run=many)
    case.add_argument("names", nargs="+", help="names, patterns such as 'llama-*', or sets: " + ", ".join(SETS))
    case.add_argument("--timeout", type=int, default=600, help="seconds for one case")
    case.add_argument("--again", action="store_true", help="measure also what is there")
    case.add_argument("--held-out", action="store_true", help="also what is held out until the formulas are final")
    taken = commands.add_parser("record", help="takes measurements into data/observations.yaml")
    taken.set_defaults(run=record)
    taken.add_argument("--into", default=str(observations.PATH))
    for command in (case, taken):
        command.add_argument("--out", default=str(ROOT / "build" / "measurements"), help="folder of the measurements")
    fsdp2 = commands.add_parser("fsdp2", help="one rank's peak under FSDP2")
    fsdp2.set_defaults(run=one)
    fsdp2.add_argument("--config", help="a config.json to start from")
    fsdp2.add_argument("--model-type")
    for name in FIELDS:
        fsdp2.add_argument("--" + name.replace("_", "-"), type=value)
    fsdp2.add_argument("--field", action="append", default=[], metavar="NAME=VALUE", help="any other field of config.json")
    fsdp2.add_argument("--world-size", "--dp", dest="dp", type=int)
    fsdp2.add_argument("--sequence", type=int)
    fsdp2.add_argument("--micro-batch", type=int)
    fsdp2.add_argument("--attention", choices=("sdpa", "eager"))
    fsdp2.add_argument("--optimizer-implementation", choices=("foreach", "for_loop", "fused"))
    fsdp2.add_argument("--reshard", dest="reshard_after_forward", nargs="?", const=True, type=value, help="true (default), false, or ranks")
    fsdp2.add_argument("--checkpoint", action="store_true", help="checkpoint every layer")
    fsdp2.add_argument("--mixed", action="store_true", help="BF16 over FP32 parameters; without it BF16 throughout")
    fsdp2.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="any other setting of measuring/settings.py")
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
