"""python -m byteledger: check and tables, as a maintainer meets them."""

import os
import re
import subprocess
import sys

import pytest

from byteledger import catalog, golden
from byteledger.revision import revision
from checkout import ROOT, copy_sources


def run(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "byteledger", *arguments], cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(folder)}
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return copy_sources(tmp_path_factory.mktemp("cli"))


def test_the_golden_tables_are_fresh():
    """A change of data shows in the difference of tests/golden/: run `make tables`, look at it, and commit it."""
    assert [str(change) for change in golden.changes(catalog.load())] == []


def test_stale_tables_are_told_cell_by_cell(checkout):
    """Which table, which row, old and new value, by how much; exit code 1; and writing them makes it 0 again."""
    path = checkout / "data" / "ledgers.yaml"
    before = path.read_text(encoding="utf-8")
    assert run(checkout, "tables", "--check").returncode == 0
    path.write_text(before.replace("  first_moment: 4\n", "  first_moment: 3\n", 1), encoding="utf-8")
    stale = run(checkout, "tables", "--check")
    assert stale.returncode == 1 and "tests/golden is stale" in stale.stderr
    assert "ledgers: bf16-adamw: ledger.bytes_per_parameter [bytes/parameter]: 16 -> 15 (-6.25 %, -1)" in stale.stdout
    assert "sharding-70b: 70B: distributed.rank_lower @ world_size=64 [bytes]: 17500000000 -> 16406250000 (-6.25 %, -1.09375e+09)" in stale.stdout
    assert run(checkout, "tables").returncode == 0 and run(checkout, "tables", "--check").returncode == 0
    assert "bf16-adamw,2,2,4,3,4,15," in (checkout / "tests/golden/ledgers.csv").read_text(encoding="utf-8")
    path.write_text(before, encoding="utf-8")
    assert run(checkout, "tables").returncode == 0


def test_check_tells_all_faults_at_once(checkout):
    """One line each, file:line id: finding; cure. Exit code 1."""
    assert run(checkout, "check").returncode == 0
    texts = {}
    for file, old, new in (("ledgers", "  weights: 2\n", "  wieghts: 2\n"), ("models", "vocab_size: 32000", "vocab_size: 32001"), ("terms", "  en: FP16\n", "")):
        path = checkout / "data" / (file + ".yaml")
        texts[path] = path.read_text(encoding="utf-8")
        path.write_text(texts[path].replace(old, new, 1), encoding="utf-8")
    done = run(checkout, "check")
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    lines = done.stdout.strip().split("\n")
    assert done.returncode == 1 and len(lines) >= 4 and all(re.match(r"data/\w+\.yaml:\d+ \S+: .+; .+", line) for line in lines), lines
    assert {line.split(":")[0] for line in lines} == {"data/ledgers.yaml", "data/models.yaml", "data/terms.yaml"}
    assert "did you mean 'weights'?" in done.stdout and "Traceback" not in done.stderr


def test_the_version_names_the_revision():
    assert str(revision()) in run(ROOT, "--version").stdout
