"""Building: what stops it, what it leaves, and that one number changed in data/ changes the site and its tests."""

import hashlib
import os
import re
import shutil
import subprocess
import sys

import pytest

from checkout import copy_sources



@pytest.fixture(scope="module")
def checkout(tmp_path_factory, site):
    """A copy of the sources with a good site/ in it."""
    root = tmp_path_factory.mktemp("checkout")
    copy_sources(root)
    shutil.copytree(site, root / "site")
    return root


def build(root, **environment):
    command = [sys.executable, "scripts/build.py"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, env={**os.environ, **environment})


def fingerprint(folder):
    """What a folder holds, name by name."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(str(path.relative_to(folder)).encode())
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def cells(page):
    """The figures in the table cells of a page."""
    return re.findall(r'<td class="number">(?:<a [^>]*>)?([\d,.]+)', page)


class Edit:
    """An edit of one file that is taken back at the end."""

    def __init__(self, path, old, new):
        self.path, self.old, self.new = path, old, new

    def __enter__(self):
        self.before = self.path.read_text(encoding="utf-8")
        assert self.old in self.before
        self.path.write_text(self.before.replace(self.old, self.new, 1), encoding="utf-8")

    def __exit__(self, *_):
        self.path.write_text(self.before, encoding="utf-8")


@pytest.mark.parametrize(
    "file, old, new, expected",
    [
        ("docs/zh/ledger.md", '<%= table("symbols") %>', '<%= table("symbols" %>', r"docs/zh/ledger\.md:\d+: a broken macro"),
        ("docs/en/ledger.md", '<%= table("symbols") %>', "<%= symbolz %>", r"docs/en/ledger\.md:\d+: undefined name 'symbolz'"),
        ("docs/en/ledger.md", "(distributed.md#distributed)", "(distributed.md#distribution)", r"docs/en/ledger\.md:\d+: no such anchor on distributed\.md: 'distribution'; did you mean 'distributed'"),
        ("data/ledgers.yaml", "  weights: 2\n", "  weights: 2\n  weights: 3\n", r"data/ledgers\.yaml:\d+ bf16-adamw: duplicate key 'weights'"),
        ("docs/zh/ledger.md", 'claim("ledger.symbols")', 'claim("ledger.symbol")', r"docs/zh/ledger\.md:\d+: unknown claim id 'ledger\.symbol'; did you mean 'ledger\.symbols'"),
        ("docs/en/ledger.md", '<%= claim("ledger.symbols") %>', "", r"docs/en/ledger\.md:1: claim 'ledger\.symbols' of data/claims\.yaml stands nowhere"),
        ("docs/zh/ledger.md", "{ #ledger.units }", "{ #ledger.unit }", r"headings differ between the languages"),
    ],
    ids=["broken-macro", "undefined-name", "missing-anchor", "duplicate-key", "unknown-claim", "claim-missing", "heading-differs"],
)
def test_a_fault_stops_the_build_and_leaves_the_site(checkout, file, old, new, expected):
    """The message names file and place; the last good site/ is byte for byte as it was."""
    before = fingerprint(checkout / "site")
    with Edit(checkout / file, old, new):
        result = build(checkout)
    assert result.returncode == 1
    assert re.search(expected, result.stderr), result.stderr
    assert "site is as it was" in result.stderr and "Traceback" not in result.stderr
    assert fingerprint(checkout / "site") == before
    assert not list((checkout / "build").glob("site-*")), "a work folder was left behind"


@pytest.mark.parametrize("config", ["mkdocs.yml", "mkdocs.en.yml"])
def test_plain_mkdocs_stops_as_well(checkout, config):
    """A MkDocs user who runs mkdocs itself gets the same messages."""
    with Edit(checkout / "docs/en/ledger.md", 'claim("ledger.symbols")', 'claim("ledger.symbol")'):
        result = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "-f", config], cwd=checkout, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(checkout)}
        )
    assert result.returncode != 0
    assert "docs/en/ledger.md" in result.stderr and "unknown claim id 'ledger.symbol'" in result.stderr, result.stderr


def test_one_number_in_data_changes_the_site_and_fails_its_tests(checkout):
    """The moments of the baseline at 2 B instead of 4: 12 B/parameter, 840 GB at 70B, and the old figures' tests fail."""
    with Edit(checkout / "data/ledgers.yaml", "  first_moment: 4\n  second_moment: 4\n", "  first_moment: 2\n  second_moment: 2\n"):
        # One language: tests/test_guide.py builds both after its edits.
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "mkdocs.en.yml", "-d", str(checkout / "changed")]
        result = subprocess.run(command, cwd=checkout, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(checkout)})
        assert result.returncode == 0, result.stderr
        text = (checkout / "changed" / "ledger.html").read_text(encoding="utf-8")
        assert ">12 B/parameter</a>" in text.replace("&#47;", "/") and ">16 B/parameter</a>" not in text.replace("&#47;", "/")
        assert "12" in cells(text)
        table = (checkout / "changed" / "estimation.html").read_text(encoding="utf-8")
        assert "2,100" in cells(table) and "2,800" not in cells(table)
        stale = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "scales or baseline or ratio", "tests/test_ledger.py", "tests/test_tables.py"],
            cwd=checkout, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(checkout)},
        )  # fmt: skip
    assert stale.returncode == 1
    failed = set(re.findall(r"^FAILED tests/\w+\.py::(\w+)", stale.stdout, re.M))
    assert {"test_whitepaper_scales", "test_baseline_states", "test_ratio_is_eight", "test_parameter_scales", "test_baseline_table"} <= failed, stale.stdout
