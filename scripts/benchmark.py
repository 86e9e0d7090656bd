"""Times, as ratios within one run, since a second here is no second elsewhere: python scripts/benchmark.py [--rounds N]

- a command that answers (params, kv), beside a bare `python -c pass`: at most 6 times as long is the aim;
- a configuration read and counted, and a training run of a model that has been read, beside a fixed loop of 10,000
  additions in the same process; the aim for a run is 200 microseconds on a machine whose loop takes 300.
The rounds of the two alternate, and the least of each counts: what else the machine does only ever adds.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from byteledger import estimate, hf_config, kv_cache, one_record, parameters, training  # noqa: E402

COMMANDS = (("params", "llama-3.1-70b"), ("params", "deepseek-v3", "--json"), ("kv", "gpt-oss-120b", "--context", "128K"))
RUNS = (
    ("llama-3.1-8b", "fp32-adamw", "fsdp2", {"dp": 8, "checkpointing": "full"}),
    ("llama-3.1-70b", "bf16-fp32-gradients", "megatron-distributed-optimizer", {"dp": 8, "tp": 8, "sequence_parallel": True}),
    ("qwen3-8b", "bf16-adamw", "zero-3", {"dp": 64}),
)
BARE = [sys.executable, "-c", "pass"]


def least(rounds, *runs):
    """The least seconds of each of several functions, called in turn."""
    best = [float("inf")] * len(runs)
    for _ in range(rounds):
        for i, run in enumerate(runs):
            start = time.perf_counter()
            run()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def command(arguments):
    """A function that runs a command and fails if it does."""
    return lambda: subprocess.run([sys.executable, "-m", "byteledger", *arguments], cwd=ROOT, capture_output=True, check=True)


def reference():
    """The fixed loop: 10,000 additions."""
    total = 0
    for i in range(10_000):
        total += i
    return total


def evaluation(id):
    """A function that reads a model's configuration and computes its parameters and its KV cache."""
    record = one_record.config(one_record.record("models", id))

    def run():
        architecture = hf_config.from_dict(record, id).architecture
        return parameters.total(architecture), parameters.active(architecture), kv_cache.total(architecture, 32768, 1, 2)

    return run


def estimation(id, ledger, strategy, **settings):
    """A function that evaluates one training run of a model that has been read."""
    architecture = hf_config.from_dict(one_record.config(one_record.record("models", id)), id).architecture
    scenario = estimate.scenario(ledger, strategy, **settings)
    return lambda: training.estimate(architecture, scenario)


def main():
    """Prints the ratios; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="rounds of each (default: 15)")
    rounds = parser.parse_args().rounds
    for arguments in COMMANDS:
        bare, answer = least(rounds, lambda: subprocess.run(BARE, check=True), command(arguments))
        print("byteledger %-40s %5.2f x python -c pass" % (" ".join(arguments), answer / bare))
    for id in ("llama-3.1-70b", "deepseek-v3", "nemotron-h-8b"):
        loop, read = least(rounds, reference, evaluation(id))
        print("read and count %-36s %5.2f x the loop, %d a second here" % (id, read / loop, 1 / read))
    for id, ledger, strategy, settings in RUNS:
        loop, one = least(20 * rounds, reference, estimation(id, ledger, strategy, **settings))
        print("estimate %-42s %5.2f x the loop, %.0f us, %d a second here" % ("%s %s" % (id, strategy), one / loop, 1e6 * one, 1 / one))
    return 0


if __name__ == "__main__":
    sys.exit(main())
