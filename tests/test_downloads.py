"""What programs get: CSV, JSON, the schema, BibTeX, the feed, Markdown twins; and the revision in each of them."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ET

import jsonschema
import pytest

from byteledger import catalog, export
from byteledger.revision import revision
from macros import citations, pages

DATA = catalog.load()


@pytest.mark.parametrize("id", DATA.tables)
def test_csv_and_json_hold_full_values(site, id):
    """Full precision, the unit in the heading, the sources, the revision; the same rows in both."""
    text = (site / "data" / "tables" / (id + ".csv")).read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    document = json.loads((site / "data" / "tables" / (id + ".json")).read_text(encoding="utf-8"))
    assert document["revision"] == str(revision()) and all(row["revision"] == str(revision()) for row in rows)
    # A table of what nobody has measured yet is empty until somebody does.
    assert len(rows) == len(document["rows"]) > (-1 if isinstance(next(iter(DATA.tables[id].rows.values())), dict) else 0)
    for row, other in zip(rows, document["rows"]):
        for column in document["columns"]:
            assert row[column].lstrip("'") == str(other[column]).lstrip("'")
    assert all(row["source"] == " ".join(DATA.tables[id].source) for row in rows)
    assert list(document["sources"]) == DATA.tables[id].source


def test_the_values_are_not_rounded(site):
    """ZeRO-1 at 70B and d = 64 holds 293,125,000,000 bytes, which the page prints as 293.1 GB."""
    rows = list(csv.DictReader(io.StringIO((site / "data/tables/zero-stages.csv").read_text(encoding="utf-8-sig"))))
    (row,) = [row for row in rows if row["strategy"] == "zero-1"]
    assert row["distributed.persistent [bytes]"] == "293125000000"


def test_data_json_keeps_its_schema(site):
    """One document for everything, described by a schema that comes from the records."""
    document = json.loads((site / "data/data.json").read_text(encoding="utf-8"))
    schema = json.loads((site / "data/data.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    assert schema == json.loads(json.dumps(export.schema()))
    assert document["ledgers"]["bf16-adamw"]["weights"] == 2 and document["revision"] == str(revision())
    document["ledgers"]["bf16-adamw"]["wieghts"] = 2
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


def test_the_bibliography_names_every_source(site):
    text = (site / "data/references.bib").read_text(encoding="utf-8")
    entries = dict(re.findall(r"^@\w+\{([^,]+),\n(.*?)^\}", text, re.M | re.S))
    assert set(entries) == {"byte-ledger"} | {citations.key(id) for id in DATA.references}
    assert "author = {Samyam Rajbhandari and Jeff Rasley and Olatunji Ruwase and Yuxiong He}" in entries["zero-2019"]
    assert "eprint = {1910.02054}" in entries["zero-2019"] and str(revision().version) in entries["byte-ledger"]
    for entry in entries.values():
        assert entry.count("{") - entry.count("\\{") == entry.count("}") - entry.count("\\}")


def test_the_feed_is_atom(site):
    feed = ET.fromstring((site / "data/changes.atom").read_text(encoding="utf-8"))
    atom = "{http://www.w3.org/2005/Atom}"
    assert [feed.find(atom + name) is not None for name in ("id", "title", "updated", "author")] == [True] * 4
    assert [entry.find(atom + "id").text for entry in feed.iter(atom + "entry")] == ["tag:byte-ledger,2026:changes/" + id for id in DATA.changes]


@pytest.mark.parametrize("language, root", [("zh", ""), ("en", "en/")])
def test_each_page_has_a_markdown_twin(site, language, root):
    """Macros rendered, tables with pipes, formulas in TeX, no HTML of ours, the revision at the end; llms.txt lists them."""
    listed = (site / (root + "llms.txt")).read_text(encoding="utf-8")
    for name, page in pages.read(language).items():
        twin = (site / (root + name)).read_text(encoding="utf-8")
        outside_code = re.sub(r"```.*?```|`[^`]*`", "", twin, flags=re.S)
        assert "<%" not in outside_code and "</a>" not in outside_code and "katex" not in twin, name
        assert twin.rstrip().endswith(str(revision()))
        for call in page.calls:
            if call.name == "formula":
                assert DATA.formulas[call.first].tex.strip() in twin
        if not name.startswith("research/"):
            assert "](%s)" % name in listed
    twin = (site / (root + "ledger.md")).read_text(encoding="utf-8")
    assert re.search(r"^\| .*: \| ---:|^\|---\|---:", twin, re.M) and "140 GB" in twin and "1,043 GiB" in twin


def test_the_revision_depends_on_content_alone(tmp_path):
    """Line endings, a byte-order mark and the time of day do not count; one digit does."""
    import shutil

    from byteledger import revision as module

    for name in ("data", "byteledger"):
        shutil.copytree(module.ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    assert module.content_hash(tmp_path) == revision().hash
    path = tmp_path / "data" / "dtypes.yaml"
    before = path.read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + before.replace(b"\n", b"\r\n"))
    assert module.content_hash(tmp_path) == revision().hash
    path.write_bytes(before.replace(b"bits: 32", b"bits: 64"))
    assert module.content_hash(tmp_path) != revision().hash


def test_the_revision_stands_everywhere(site):
    """In the footer of each page, in the twins, in the downloads; and title, authors and version stand in CITATION.cff only."""
    for path in site.rglob("*.html"):
        assert str(revision()) in path.read_text(encoding="utf-8"), path
    pyproject = (revision.__wrapped__.__globals__["ROOT"] / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in pyproject and not re.search(r'^version = "', pyproject, re.M)
    assert "authors" not in pyproject
