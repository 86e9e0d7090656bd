"""Measures one training step on one CUDA device: python scripts/measure_gpu.py [NAME …]

Each case runs in a process of its own; all together stay under eight minutes, and what is measured is passed over next time.
It writes build/measurements_gpu/NAME.json; `python scripts/measure.py record --out build/measurements_gpu` takes these into
data/observations.yaml. Needs PyTorch with CUDA and the transformers of requirements-transformers.txt.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from measure import fields  # noqa: E402
from measuring import observations, runner  # noqa: E402
from measuring.cases import CUDA  # noqa: E402


def child(case):
    """One case, measured in this process, as JSON on the last line."""
    from measuring import cuda

    _, config, settings = json.loads(case)
    print(json.dumps({"versions": observations.versions(settings), **cuda.measure(fields(config), **settings), "command": "python scripts/measure_gpu.py"}))


def main():
    """Measures the cases that are asked for; returns the exit status."""
    if sys.argv[1:2] == ["child"]:
        return child(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["*"], help="names or patterns; all without any: " + ", ".join(CUDA))
    parser.add_argument("--out", default=str(ROOT / "build" / "measurements_gpu"))
    parser.add_argument("--timeout", type=int, default=90, help="seconds for one case")
    parser.add_argument("--seconds", type=int, default=470, help="seconds for all: no case runs longer than that")
    parser.add_argument("--again", action="store_true", help="measure also what is there")
    args = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device here: nothing was measured", file=sys.stderr)
        return 2
    names = runner.chosen(args.names, CUDA)
    return runner.run(partial(runner.apart, __file__), names, CUDA, Path(args.out), args.timeout, args.again, args.seconds, settled=False)


if __name__ == "__main__":
    sys.exit(main())
