"""The cite control and the derivation of a number, in a real browser: by mouse, by keyboard, on a phone, from file://."""

import json
import re

import pytest

from byteledger.revision import revision

pytestmark = pytest.mark.browser
DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844, "mobile": True}


@pytest.fixture(scope="module")
def page(chromium):
    with chromium.page() as page:
        yield page


def focus(page, selector):
    page.evaluate("document.querySelector(%s).focus()" % json.dumps(selector))


def field(page):
    return page.evaluate("document.querySelector('dialog[open] textarea').value")


def choose(page, form):
    page.evaluate("document.querySelector('dialog[open] input[value=%s]').click()" % form)


# One of each kind that can be cited: the link, its id, and what the citation must name.
KINDS = {
    "heading": ('h2 a.headerlink[href="#ledger.weights"]', "ledger.weights", "2.2 "),
    "claim": ('a.claim[id="ledger.persistent-formula"]', "ledger.persistent-formula", "ledger.persistent-formula"),
    "table": ('a.permalink[href="#table.ledgers"]', "table.ledgers", ""),
    "formula": ('a.permalink[href="#eq.ledger.peak"]', "eq.ledger.peak", "2.3 "),
}


@pytest.mark.parametrize("language", ["", "en/"])
def test_by_keyboard_alone(page, server, language):
    """Enter opens it, Escape shuts it, the address bar holds the permalink, and all three forms name what is cited."""
    page.open(server + language + "ledger.html", **DESKTOP)
    for selector, id, named in KINDS.values():
        focus(page, selector)
        page.press("Enter")
        page.wait_for("!!document.querySelector('dialog[open]')")
        assert page.evaluate("location.hash") == "#" + id
        address = server + language + "ledger.html#" + id
        sentence = field(page)
        assert named in sentence and address in sentence and str(revision()) in sentence and revision().date in sentence
        choose(page, "markdown")
        assert "](%s)" % address in field(page) and str(revision()) in field(page).replace("\\", "")
        choose(page, "bibtex")
        bibtex = field(page)
        assert bibtex.startswith("@misc{byte-ledger-") and "url = {%s}" % address in bibtex and str(revision()) in bibtex
        assert bibtex.count("{") - bibtex.count("\\{") == bibtex.count("}") - bibtex.count("\\}")
        page.press("Escape")
        page.wait_for("!document.querySelector('dialog[open]')")
    assert not page.errors


@pytest.mark.parametrize("language, tag, says", [("", "外部验证", "Stage|第 2 阶段|梯度"), ("en/", "Externally verified", "gradients")])
def test_a_claim_brings_its_tag_its_words_and_its_sources(page, server, language, tag, says):
    """A reader must be able to cite Rajbhandari et al., not only us."""
    page.open(server + language + "distributed.html", **DESKTOP)
    focus(page, 'a.claim[id="distributed.stage-2"]')
    page.press("Enter")
    page.wait_for("!!document.querySelector('dialog[open]')")
    sentence = field(page)
    assert tag in sentence and re.search(says, sentence)
    assert "Samyam Rajbhandari" in sentence and "https://arxiv.org/abs/1910.02054" in sentence
    choose(page, "bibtex")
    assert "@article{zero-2019," in field(page) and "eprint = {1910.02054}" in field(page)
    assert "@misc{deepspeed-zero," in field(page)


def test_the_address_is_the_canonical_one(page, server, site):
    """Where the site has an address, the citation holds that and not where it was read."""
    page.open(server + "ledger.html", **DESKTOP)
    page.evaluate("""document.head.insertAdjacentHTML("beforeend", '<link rel="canonical" href="https://ledger.example/ledger.html">')""")
    focus(page, 'a.claim[id="ledger.symbols"]')
    page.press("Enter")
    page.wait_for("!!document.querySelector('dialog[open]')")
    assert "https://ledger.example/ledger.html#ledger.symbols" in field(page) and server not in field(page)


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_on_a_phone(page, server, site, scheme):
    """A tap opens it within the screen; from file:// too, where it names the page and the revision."""
    page.open((server if scheme == "http" else site.as_uri() + "/") + "ledger.html#ledger.persistent-formula", **PHONE)
    page.click('a.claim[id="ledger.persistent-formula"]')
    page.wait_for("!!document.querySelector('dialog[open]')")
    box = json.loads(page.evaluate("JSON.stringify(document.querySelector('dialog[open]').getBoundingClientRect())"))
    assert box["left"] >= 0 and box["right"] <= 390 and box["top"] >= 0 and box["bottom"] <= 844
    assert "ledger.html#ledger.persistent-formula" in field(page) and "file:" not in field(page) and str(revision()) in field(page)
    assert not page.errors


def test_copying(page, server):
    """The button puts the chosen form on the clipboard and says so."""
    page.open(server + "ledger.html", **DESKTOP)
    page.evaluate("window.copied = null; navigator.clipboard.writeText = async text => { window.copied = text }")
    focus(page, 'a.claim[id="ledger.symbols"]')
    page.press("Enter")
    page.wait_for("!!document.querySelector('dialog[open]')")
    choose(page, "bibtex")
    focus(page, "dialog[open] .bl-copy")
    page.press("Enter")
    page.wait_for("window.copied")
    assert page.evaluate("window.copied") == field(page)
    page.wait_for("document.querySelector('dialog[open] .bl-status').textContent")
    # The table's own button copies the table as Markdown.
    page.press("Escape")
    page.evaluate("window.copied = null")
    focus(page, 'button[data-copy="markdown.ledgers"]')
    page.press("Enter")
    page.wait_for("window.copied")
    copied = page.evaluate("window.copied")
    assert copied.startswith("**各家账本并列**") and "| ---:" in copied.replace("|---:", "| ---:") and "6.03125" in copied


@pytest.mark.parametrize("language", ["", "en/"])
def test_sixteen_times_what(page, server, language):
    """A number shows its formula with the values put in, each input with a link to its record, and its sources."""
    page.open(server + language + "ledger.html", **DESKTOP)
    focus(page, 'figure[id="table.ledgers"] a.value')
    page.press("Enter")
    page.wait_for("!!document.querySelector('dialog[open]')")
    said = page.evaluate("document.querySelector('dialog[open]').innerText")
    assert "b_w + b_g + b_master + b_m + b_v" in said and "16 B/parameter" in said
    assert page.evaluate("document.querySelector('dialog[open] a[href$=\"records.html#record.ledgers.bf16-adamw\"]') !== null")
    assert page.evaluate("document.querySelector('dialog[open] a[href$=\"ledger.html#eq.ledger.persistent\"]') !== null")
    assert "Rajbhandari" in said
    page.press("Escape")
    page.open(server + language + "estimation.html", **DESKTOP)
    focus(page, 'figure[id="table.sharding-70b"] td:last-child a.value')
    page.press("Enter")
    page.wait_for("!!document.querySelector('dialog[open]')")
    said = page.evaluate("document.querySelector('dialog[open]').innerText")
    for part in ("M_rank,lower", "M_persistent / W", "17.5 GB (17,500,000,000 B)", "M_persistent", "70,000,000,000", "64"):
        assert part in said, (part, said)


def test_without_scripts_they_are_plain_links(page, server):
    """Every one of them leads to its anchor, a number to its formula; nothing is hidden behind a script."""
    page.open(server + "ledger.html", scripts=False, **DESKTOP)
    page.click('a.claim[id="ledger.symbols"]')
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert page.evaluate("location.hash") == "#ledger.symbols"
    assert page.evaluate("[...document.querySelectorAll('a.value')].every(link => /\\.html#/.test(link.href))")
    assert page.evaluate("getComputedStyle(document.querySelector('button[data-copy]')).display") == "none"
