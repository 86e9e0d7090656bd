"""Text from data lands as text, whatever it says: in HTML, Markdown, CSV, JSON, BibTeX, the feed, and in a browser."""

import csv
import html
import io
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from checkout import copy_sources

# Each sign that some format would take for markup, and scripts that would leave a trace if they ran.
NAME = '=HYPERLINK("x")<img src=x onerror="hacked=1"><script>hacked=1</script></textarea></script>|a\\|b `c` **d** [e](javascript:hacked=1) <%= 1/0 %> {{ f }} { #g } $h$ "i" \'j\' &amp; ]]> <!-- %% \\n \\frac{'
YAML_NAME = json.dumps(NAME)  # JSON's quoting is YAML's, too


@pytest.fixture(scope="module")
def hostile(once):
    """A site built from data in which a ledger, a source, a term, a table, a model and a change bear that name."""
    return once("hostile", edit_and_build) / "site"


def edit_and_build(root):
    root.mkdir()
    copy_sources(root)
    edits = {
        "ledgers": ("  name: {zh: FP32 + AdamW, en: FP32 + AdamW}", "  name: {zh: %s, en: %s}" % (YAML_NAME, YAML_NAME)),
        "references": ("  title: Decoupled Weight Decay Regularization", "  title: %s" % YAML_NAME),
        "terms": ("  zh: FP16\n  en: FP16\n", "  zh: %s\n  en: %s\n" % (YAML_NAME, YAML_NAME)),
        "tables": ("title: {zh: 70B 在不同理想分片规模下, en: 70B under ideal sharding}", "title: {zh: %s, en: %s}" % (YAML_NAME, YAML_NAME)),
        "models": ("  name: Llama 2 7B\n", "  name: %s\n" % YAML_NAME),
        "changes": ("    en: Taken from the whitepaper; no figure had been published before.", "    en: %s" % YAML_NAME),
        "strategies": ("intuition: {zh: 先消除 AdamW 状态的重复, en: removes the duplicated AdamW state first}", "intuition: {zh: %s, en: %s}" % (YAML_NAME, YAML_NAME)),
    }
    for file, (old, new) in edits.items():
        path = root / "data" / (file + ".yaml")
        text = path.read_text(encoding="utf-8")
        assert old in text, file
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
    # One language: both come from the same macros.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(root / "site")]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)})
    assert done.returncode == 0, done.stdout + done.stderr


def page(site, name):
    return (site / (name + ".html")).read_text(encoding="utf-8")


class Attributes(HTMLParser):
    """What of a page's attributes would run: event handlers, and script addresses other than the theme's own."""

    def __init__(self, text):
        super().__init__()
        self.live = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.live += [(tag, key, value) for key, value in attributes if key.startswith("on") or (value or "").startswith("javascript:") and value != "javascript:void(0)"]


def words(source):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", source)).split())


def test_html_shows_it_as_it_is(hostile, site, language=""):
    """In headings, cells, attributes, lists and marks: the very text, and not one element more."""
    said = " ".join(NAME.split())
    assert said in words(re.search(r'<th scope="row">=HYPER.*?</th>', page(hostile, language + "ledger"))[0])
    assert said in words(re.search(r'<dt id="term\.fp16">.*?</dt>', page(hostile, language + "glossary"), re.S)[0])
    assert said in words(re.search(r'id="ref\.adamw-2017">.*?</cite>', page(hostile, language + "references"), re.S)[0].split(">", 1)[1])
    assert said in words(re.search(r'id="caption\.sharding-70b">.*?</caption>', page(hostile, language + "estimation"), re.S)[0].split(">", 1)[1])
    assert said in words(re.search(r'id="claim\.distributed\.stage-1".*?</div>', page(hostile, language + "claims"), re.S)[0].split(">", 1)[1])
    for name in ("ledger", "glossary", "references", "estimation", "claims", "models", "distributed", "tables", "changes", "records"):
        for element in ("script", "img", "textarea", "td", "th", "tr", "a"):
            count = len(re.findall("<%s[ >]" % element, page(hostile, language + name)))
            assert count == len(re.findall("<%s[ >]" % element, page(site, language + name))), (name, element)
        live = Attributes(page(hostile, language + name)).live
        assert not live, (name, live)


@pytest.mark.parametrize("id", ["ledgers", "sharding-70b", "models", "zero-stages"])
def test_no_column_is_lost(hostile, site, id):
    """CSV has the columns and rows of before, and no cell that a spreadsheet would run; JSON holds the text itself."""
    rows = list(csv.reader(io.StringIO((hostile / "data/tables" / (id + ".csv")).read_text(encoding="utf-8-sig"))))
    before = list(csv.reader(io.StringIO((site / "data/tables" / (id + ".csv")).read_text(encoding="utf-8-sig"))))
    assert [len(row) for row in rows] == [len(row) for row in before]
    assert not [cell for row in rows for cell in row if cell[:1] in ("=", "+", "@", "\t")]
    document = json.loads((hostile / "data/tables" / (id + ".json")).read_text(encoding="utf-8"))
    if id == "sharding-70b":
        assert document["title"] == {"zh": NAME, "en": NAME}
    if id == "zero-stages":
        assert document["rows"][1]["strategy:intuition (en)"] == NAME
    twin = (hostile / {"ledgers": "ledger.md", "sharding-70b": "estimation.md", "models": "models.md", "zero-stages": "distributed.md"}[id]).read_text(encoding="utf-8")
    for block in re.findall(r"(?:^\|.*\n)+", twin, re.M):
        columns = {len(re.findall(r"(?<!\\)\|", line)) for line in block.strip().split("\n")}
        assert len(columns) == 1, block


def test_bibtex_feed_and_data_stay_whole(hostile):
    text = (hostile / "data/references.bib").read_text(encoding="utf-8")
    entry = re.search(r"^@article\{adamw-2017,\n.*?^\}$", text, re.M | re.S)[0]
    bare = entry.replace("\\textbackslash{}", "").replace("\\{", "").replace("\\}", "")
    assert bare.count("{") == bare.count("}") and "\\%" in entry and "\\$" in entry
    feed = ET.fromstring((hostile / "data/changes.atom").read_text(encoding="utf-8"))
    assert any(NAME.split()[0] in (element.text or "") for element in feed.iter("{http://www.w3.org/2005/Atom}content"))
    assert json.loads((hostile / "data/data.json").read_text(encoding="utf-8"))["ledgers"]["fp32-adamw"]["name"]["en"] == NAME


@pytest.mark.browser
def test_nothing_runs(hostile, chromium):
    """In a browser no script from data leaves its trace, in the pages, the cite dialog, or the search results."""
    with chromium.page() as tab:
        for name in ("ledger", "glossary", "references", "estimation", "claims", "changes"):
            tab.open((hostile / (name + ".html")).as_uri(), width=1440, height=900)
            assert tab.evaluate("typeof hacked") == "undefined", name
            anchor = {"ledger": "table.ledgers", "references": "ref.adamw-2017", "estimation": "table.sharding-70b"}.get(name)
            if anchor:
                tab.evaluate("document.querySelector('a.permalink[href=\"#%s\"]').click()" % anchor)
                tab.wait_for("!!document.querySelector('dialog[open]')")
                for form in ("markdown", "bibtex"):
                    tab.evaluate("document.querySelector('dialog[open] input[value=%s]').click()" % form)
                assert tab.evaluate("typeof hacked") == "undefined"
            assert not tab.errors, name
