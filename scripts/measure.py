"""Measures with real PyTorch, without a GPU: python scripts/measure.py --help

  fsdp2 …        one rank's peak under FSDP2, of a model given by its config.json's fields: one JSON object on stdout
  case NAME …    cases of scripts/measuring/cases.py, each in a process of its own, one file NAME.json for each into --out

Needs the packages of requirements-transformers.txt; imported by nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

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


def versions():
    """{package: version} of what a measurement depends on."""
    import platform

    import torch
    import transformers

    return {"python": platform.python_version(), "torch": torch.__version__, "transformers": transformers.__version__}


def measure(kind, config, settings):
    """The measurement of one case, in this process."""
    from importlib import import_module

    return import_module("measuring." + kind).measure(config, **settings)


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
    print(json.dumps({"config": config, "settings": settings, "versions": versions(), **measure("fsdp2", config, settings)}))


def many(args):
    """case: measures each case in a process of its own; a case whose file is there with the same versions and configuration is passed over."""
    from measuring.cases import SMALL

    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    names = [name for name in SMALL if any(fnmatch(name, pattern) for pattern in args.names)]
    failed = []
    for i, name in enumerate(names, 1):
        kind, config, settings = SMALL[name]
        path = out / (name + ".json")
        if path.exists() and not args.again:
            record = json.loads(path.read_text(encoding="utf-8"))
            if (record["config"], record["settings"]) == (config, settings):
                continue
        start = time.monotonic()
        command = [sys.executable, __file__, "child", json.dumps([kind, config, settings])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout, env=os.environ | {"OMP_NUM_THREADS": "1"})
            said = done.stderr.strip().splitlines()[-1:] if done.returncode else []
        except subprocess.TimeoutExpired:
            done, said = None, ["over %d s" % args.timeout]
        if said or done is None:
            failed.append(name)
            print("%d/%d  %s  failed: %s" % (i, len(names), name, " ".join(said)), flush=True)
            continue
        result = json.loads(done.stdout.splitlines()[-1])
        record = {"name": name, "kind": kind, "config": config, "settings": settings, **result}
        path.with_suffix(".part").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        path.with_suffix(".part").replace(path)
        print("%d/%d  %s  %s  %s  %.0f s" % (i, len(names), name, f"{result['peak']:,}", result["phase"], time.monotonic() - start), flush=True)
    return 1 if failed else 0


def child(args):
    """child: one case as JSON, measured in this process."""
    kind, config, settings = json.loads(args.case)
    print(json.dumps({"versions": versions(), **measure(kind, config, settings)}))


def main():
    """Runs a command; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
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
    fsdp2.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="any other setting of measuring/fsdp2.py")
    case = commands.add_parser("case", help="cases, each in its own process")
    case.set_defaults(run=many)
    case.add_argument("names", nargs="+", help="names or patterns such as 'llama-*'")
    case.add_argument("--out", default=str(ROOT / "build" / "measurements"))
    case.add_argument("--timeout", type=int, default=600, help="seconds for one case")
    case.add_argument("--again", action="store_true", help="measure also what is there")
    hidden = commands.add_parser("child")
    hidden.set_defaults(run=child)
    hidden.add_argument("case")
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
