"""The built site, as files: what a reader gets."""

import html
import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from byteledger import catalog
from checkout import linked, replace_in

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import check_site  # noqa: E402

LANGUAGES = {"zh": "", "en": "en/"}


def page(site, language, name):
    return (site / (LANGUAGES[language] + name + ".html")).read_text(encoding="utf-8")


def words(source):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", source)).split())


def test_links_anchors_images_and_languages(site):
    """Every link, anchor, image and asset of the built site, raw HTML included; both languages alike."""
    assert check_site.faults(site) == []


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ('href="references.html#ref.zero-2019"', 'href="references.html#ref.zero-2018"', "ledger.html.*no such anchor on references.html"),
        ('href="references.html#ref.zero-2019"', 'href="refs.html"', "leads nowhere"),
        ('id="ledger.weights"', 'id="ledger.weight"', "headings differ between the languages|no such anchor"),
        ("</article>", '<img src="x.png"></article>', "leads nowhere|without alt"),
        ("</article>", '<script src="https://example.org/x.js"></script></article>', "is on another host"),
        ("</article>", "<p>&lt;%= value() %&gt;</p></article>", "markup was left over"),
        ("</article>", "<p>/// caption | ^</p></article>", "markup was left over"),
        ("</article>", '<p id="ledger.units"></p></article>', "stands 2 times"),
        ('id="ledger.symbols"', 'id="ledger.other"', "claims differ between the languages"),
    ],
)
def test_the_check_can_fail(site, tmp_path, old, new, expected):
    """Each injected fault is found."""
    replace_in(linked(site, tmp_path / "site") / "ledger.html", old, new)
    assert re.search(expected, "\n".join(check_site.faults(tmp_path / "site")))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_claim_of_the_whitepaper_stands_on_the_site(site, language):
    """With its id, its tag and its mark, once in the text and once in the index."""
    checklist = yaml.safe_load((ROOT / "tests" / "whitepaper_claims.yaml").read_text(encoding="utf-8"))
    data = catalog.load()
    index = page(site, language, "claims")
    pages = {chapter: page(site, language, chapter) for chapter, record in data.chapters.items() if record.claims}
    for id, tag in checklist.items():
        mark = re.findall(r'<a class="claim claim--(\w+)" id="%s" href="#%s"' % ((re.escape(id),) * 2), pages[data.chapter_of_claim(id)])
        assert mark == [tag], id
        entry = re.search(r'<div class="claim-entry" data-chapter="[^"]*" data-references="[^"]*" data-tag="%s" id="claim\.%s">(.*?)</div>' % (tag, re.escape(id)), index, re.S) or re.search(
            r'<div class="claim-entry" id="claim\.%s" data-tag="%s"[^>]*>(.*?)</div>' % (re.escape(id), tag), index, re.S
        )
        assert entry, id
        said = words(re.sub(r'<p class="claim-facts">.*', "", entry[1], flags=re.S)).replace(id, "")
        assert len(said) > 20, (id, said)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_figures_of_the_whitepaper_stand_on_their_pages(site, language):
    """Each as the estimator prints it, on the page where the whitepaper has it."""
    expected = {
        "summary": ["16 B/parameter", "2 B/parameter", "140 GB", "1,120 GB", "8×"],
        "ledger": ["140 GB", "130.4 GiB", "1,120 GB", "1,043 GiB", "840 GB", "8×", "16 B/parameter", "2–4"],
        "adamw": ["140 GB", "1,120 GB", "840 GB"],
        "estimation": ["14", "112", "26", "208", "350", "2,800", "1,120", "140", "70", "17.5"],
        "index": ["16 B/parameter", "140 GB", "1,120 GB", "8×"],
    }
    for name, figures in expected.items():
        said = words(page(site, language, name).split("<article", 1)[1])
        for figure in figures:
            assert re.search(r"(?<![\d,.])%s(?![\d])" % re.escape(figure), said), (name, figure)


@pytest.mark.parametrize("language", LANGUAGES)
def test_numbers_lead_to_their_formula(site, language):
    """A number in the text carries its formula with the values put in, and links to where it is derived."""
    source = page(site, language, "ledger")
    values = re.findall(r'<a class="value" href="([^"]+)" title="([^"]+)"[^>]*>([^<]+)</a>', source)
    assert len(values) > 15
    assert ("ledger.html#eq.ledger.weights", "M_weights = N × b_w; N = 70,000,000,000, b_w = 2", "140 GB") in [
        (href, html.unescape(title), html.unescape(shown)) for href, title, shown in values
    ]


def test_the_claims_index_names_sources_formulas_and_tests(site):
    entry = re.search(r'<div class="claim-entry"[^>]*id="claim\.distributed\.stage-2"[^>]*>(.*?)</div>', page(site, "en", "claims"), re.S)[1]
    assert "references.html#ref.zero-2019" in entry and "test_distributed.py::test_zero_figure_1" in entry
    entry = re.search(r'<div class="claim-entry"[^>]*id="claim\.ledger\.weights-formula"[^>]*>(.*?)</div>', page(site, "zh", "claims"), re.S)[1]
    assert "ledger.html#eq.ledger.weights" in entry


def test_each_source_lists_the_claims_that_rest_on_it(site):
    data = catalog.load()
    source = page(site, "en", "references")
    for id in data.references:
        entry = re.search(r'<div class="reference" id="ref\.%s">(.*?)</div>' % re.escape(id), source, re.S)[1]
        resting = [claim for claim, record in data.claims.items() if id in record.references]
        assert re.findall(r"<code>([^<]+)</code>", entry) == resting, id


def test_search_has_words_in_both_languages(site):
    """jieba marked the Chinese words (U+200B); each language has an index of its own; marks and formulas are left out."""
    zh = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    en = json.loads((site / "en" / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert "重\u200b计算" not in json.dumps(zh, ensure_ascii=False) and "\u200b重计算" in json.dumps(zh, ensure_ascii=False)
    assert not any(re.search("[\u4e00-\u9fff，。]{20}", entry["text"].replace("\u200b", "")) for entry in en["docs"] if not entry["location"].startswith("change-a-number"))
    assert not any(r"\text{" in entry["text"] or r"\frac" in entry["text"] for entry in zh["docs"] + en["docs"])


def test_without_an_address_nothing_pretends_to_have_one(site):
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert 'rel="canonical"' not in text and "og:url" not in text and "hreflang=\"x-default\"" not in text, path
    assert not list(site.rglob("sitemap.xml"))


def test_the_site_is_light(site):
    """No source maps, no stemmers that no page loads."""
    assert not list(site.rglob("*.map")) and not list(site.rglob("lunr"))
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 30_000_000  # two languages, with the derivation of every number of 128 models and all observations
