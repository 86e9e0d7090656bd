"""The guide "Change a number": performs exactly the edits that it documents, on a copy, and looks for the new rows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from byteledger import catalog
from checkout import copy_sources

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r'^``` \{ \.\w+ title="([^"]+)" \}\n(.*?)^```$', re.M | re.S)


def documented(language):
    """[(file, text)] of the edits that the guide shows in one language, in their order."""
    return BLOCK.findall((ROOT / "docs" / language / "change-a-number.md").read_text(encoding="utf-8"))


def without_comments(text):
    return re.sub(r" +# .*", "", text)


def test_both_languages_document_the_same_edits():
    zh, en = documented("zh"), documented("en")
    assert [(file, without_comments(text)) for file, text in zh] == [(file, without_comments(text)) for file, text in en]
    assert {file for file, _ in zh} >= {"data/%s.yaml" % file for file in ("models", "accelerators", "ledgers", "strategies", "references", "terms", "claims", "tables", "changes")}


@pytest.fixture(scope="module")
def edited(once):
    """A copy with every documented edit appended to its file, built."""
    return once("edited", edit_and_build)


def edit_and_build(root):
    root.mkdir()
    copy_sources(root)
    for file, text in documented("en"):
        path = root / file
        path.write_text(path.read_text(encoding="utf-8").rstrip("\n") + "\n" * (2 if file.startswith("docs") else 1) + text, encoding="utf-8")
    address = {"SITE_URL": "https://ledger.example/base/"}
    done = subprocess.run([sys.executable, "scripts/build.py"], cwd=root, capture_output=True, text=True, env={**os.environ, **address, "PYTHONPATH": str(root)})
    assert done.returncode == 0, done.stdout + done.stderr


def page(edited, language, name):
    return (edited / "site" / ("en/" if language == "en" else "") / (name + ".html")).read_text(encoding="utf-8")


@pytest.mark.parametrize("language", ["zh", "en"])
def test_each_documented_edit_shows(edited, language):
    """A row, an entry or a table for each."""
    models = page(edited, language, "models")
    assert re.search(r'<th scope="row">Yi 6B</th>\s*<td>llama</td>\s*<td class="number"[^>]*><a [^>]*>6,061,035,520</a>', models)
    assert re.search(r'<th scope="row">NVIDIA RTX 3090</th>.*?>24,576</td>.*?>24</a>', page(edited, language, "accelerators"))
    name = {"zh": "FP32 + 带动量的 SGD", "en": "FP32 + SGD with momentum"}[language]
    assert re.search(r'<th scope="row">%s</th>.*?>12</a></td>\s*<td class="number"><a [^>]*>3</a>' % re.escape(name), page(edited, language, "ledger"))
    assert 'id="term.gradient-accumulation"' in page(edited, language, "glossary")
    references = page(edited, language, "references")
    assert re.search(r'id="ref\.fujii-2024">(?:(?!<div).)*estimation\.eighty-percent', references, re.S)
    assert 'id="estimation.eighty-percent"' in page(edited, language, "estimation")
    assert 'id="claim.estimation.eighty-percent"' in page(edited, language, "claims")
    table = page(edited, language, "tables")
    assert 'id="table.two-strategies"' in table
    row = re.search(r'<th scope="row">reshard_after_forward=False</th>.*?</tr>', table)[0]
    assert re.findall(r'<td class="number"><a [^>]*>([\d.,]+)', row) == ["140", "17.5"]
    assert 'id="change.2026-12-02-yi-6b"' in page(edited, language, "changes")


def test_a_site_with_an_address_names_it(edited):
    """Canonical links, alternates and the sitemap, in both languages."""
    text = page(edited, "en", "ledger")
    assert '<link rel="canonical" href="https://ledger.example/base/en/ledger.html">' in text
    assert 'hreflang="zh" href="https://ledger.example/base/ledger.html"' in text
    assert "https://ledger.example/base/en/ledger.html" in (edited / "site" / "en" / "sitemap.xml").read_text(encoding="utf-8")


def test_the_documented_change_is_what_the_draft_says(edited):
    """The entry for the changelog is the one that the golden difference gives."""
    done = subprocess.run(
        [sys.executable, "-m", "byteledger", "tables", "--draft"], cwd=edited, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(edited)}
    )
    (moved,) = [line for line in dict(documented("en"))["data/changes.yaml"].split("\n") if "yi-6b: new" in line]
    assert moved.strip() in [line.strip() for line in done.stdout.split("\n")], done.stdout


def test_the_documented_correction_is_what_the_command_prints(edited, tmp_path):
    shutil.copytree(ROOT / "data", tmp_path / "data")
    path = tmp_path / "data" / "ledgers.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("  first_moment: 4\n", "  first_moment: 2\n", 1), encoding="utf-8")
    from byteledger import golden

    lines = [str(change) for change in golden.changes(catalog.load(tmp_path / "data"))]
    (shown,) = re.findall(r"^```text\n(.*)\n```$", (ROOT / "docs/zh/change-a-number.md").read_text(encoding="utf-8"), re.M)
    assert shown in lines
