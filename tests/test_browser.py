"""The built site in a real browser, over http and from file://, in both languages."""

import json
from collections import namedtuple
from urllib.parse import urlsplit

import pytest

pytestmark = pytest.mark.browser

LANGUAGES = {"zh": "", "en": "en/"}  # and where each stands
PHONE = {"width": 390, "height": 844, "mobile": True}
DESKTOP = {"width": 1440, "height": 900}
Visit = namedtuple("Visit", "name errors failed foreign wide raw")

# What reaches past the right edge, if anything does: the page itself, or a box around the text, which would cut it off.
# innerWidth is no measure: on a phone the browser zooms out until the widest element fits.
WIDE = """(() => {
  const width = %d
  let reach = 0
  for (let box = document.querySelector("article") || document.body; box; box = box.parentElement)
    reach = Math.max(reach, box.getBoundingClientRect().left + box.scrollWidth)
  if (reach <= width + 1) return []
  const scrolls = element => {
    for (let box = element.parentElement; box.tagName != "ARTICLE"; box = box.parentElement)
      if (getComputedStyle(box).overflowX != "visible") return true
  }
  const name = element => {
    const formula = element.closest(".katex"), place = element.closest("[id]:not(article)")
    const text = (formula ? formula.querySelector("annotation") : element).textContent.trim().replace(/\\s+/g, " ")
    return (formula ? "formula" : element.tagName.toLowerCase()) + (place ? " in #" + place.id : "") + ": " + text.slice(0, 60)
  }
  const wide = [...document.querySelectorAll("article *")].filter(e => e.getBoundingClientRect().right > width + 1 && !scrolls(e))
  const outermost = wide.filter(e => !wide.includes(e.parentElement))
  return ["reaches to " + Math.round(reach) + " px", ...new Set(outermost.map(name))]
})()"""

# Text that still reads as TeX, outside of code and of what is kept for copying (KaTeX's annotations, a table as Markdown);
# and KaTeX's own error marks.
RAW = r"""(() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = []
  while (texts.nextNode()) {
    const text = texts.currentNode.data
    if (/\$\$|\\(frac|text|times|approx|sum|sqrt|left|begin)\b|\\[[(]/.test(text) && !texts.currentNode.parentElement.closest("annotation, textarea, code, pre, script, style"))
      found.push(text.trim().slice(0, 60))
  }
  return found.concat([...document.querySelectorAll(".katex-error")].map(e => "katex-error: " + e.title))
})()"""


@pytest.fixture(scope="module")
def page(chromium):
    """One tab for all tests: a new one costs half a second. What must begin without a memory makes its own."""
    with chromium.page() as page:
        yield page


@pytest.fixture(scope="module", params=LANGUAGES)
def visits(request, once, page, site, server):
    """Every page of one language, opened once on a phone: what the tests below ask of it."""
    visited = once("visits-" + request.param, lambda file: file.write_text(json.dumps(visit(page, site, server, request.param))))
    return [Visit(*seen) for seen in json.loads(visited.read_text())]


def visit(page, site, server, language):
    other = [site / "en"] if language == "zh" else []
    pages = [path for path in sorted((site / LANGUAGES[language]).rglob("*.html")) if not any(map(path.is_relative_to, other))]
    assert len(pages) > 10
    seen = []
    for path in pages:
        name = path.relative_to(site).as_posix()
        page.open(server + name, **PHONE)
        foreign = [url for url in page.requests if not url.startswith((server, "data:"))]
        seen.append(Visit(name, page.errors, page.failed, foreign, page.evaluate(WIDE % PHONE["width"]), page.evaluate(RAW)))
    return seen


def hold_none(visits, field):
    """Fails with every finding of one kind, a line each with its page."""
    found = ["%s: %s" % (visit.name, finding) for visit in visits for finding in getattr(visit, field)]
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def test_no_errors(visits):
    """Guards against scripts that throw or complain on some page, in the page and in the search worker."""
    hold_none(visits, "errors")


def test_no_failed_requests(visits):
    """Guards against files that a page asks for and does not get, also those that only scripts and styles name."""
    hold_none(visits, "failed")


def test_no_foreign_requests(visits):
    """Guards the promise that a reader's browser talks to the host of the site alone."""
    hold_none(visits, "foreign")


def test_no_sideways_scroll(visits):
    """Guards reading on a phone: wide tables and formulas scroll in a box of their own, and nothing is cut off."""
    hold_none(visits, "wide")


def test_formulas_are_rendered(visits):
    """Guards against TeX that reached the reader as it was typed."""
    hold_none(visits, "raw")


@pytest.mark.parametrize("name", ["index.html", "ledger.html", "research/LLM_training_memory_sources.html"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_reads_from_a_folder(page, site, language, name):
    """Guards the site unpacked on a disk: no server, no net, nothing missing, nothing refused."""
    page.open((site / LANGUAGES[language] / name).as_uri())
    foreign = [url for url in page.requests if not url.startswith((site.as_uri() + "/", "data:"))]
    assert not page.errors + page.failed + foreign
    assert page.evaluate("document.querySelector('article').innerText.trim()")


QUERIES = [
    *(("zh", "http", query) for query in ("显存", "优化器状态", "重计算", "ZeRO", "DeepSpeed")),
    *(("en", "http", query) for query in ("optimizer", "ZeRO", "DeepSpeed")),
    ("zh", "file", "优化器状态"),
    ("en", "file", "optimizer"),
]


@pytest.mark.parametrize("language, scheme, query", QUERIES, ids=map("-".join, QUERIES))
def test_search(page, site, request, language, scheme, query):
    """Guards the search index: words inside a Chinese phrase, English words on a Chinese page, one language alone.

    The theme's defaults lose the first two (toolchain.md, section 2); a merged index loses the third.
    """
    root = address(request, site, scheme) + LANGUAGES[language]
    page.open(root + "index.html", **DESKTOP)
    page.click("[data-md-component=search-query]")
    page.type(query)
    meta = "document.querySelector('.md-search-result__meta').textContent.trim()"
    page.wait_for("document.querySelector('.md-search-result__item') && /[1-9]/.test(%s)" % meta, timeout=30, explain=meta)
    links = page.evaluate("[...document.querySelectorAll('.md-search-result__link')].map(link => link.href)")
    other = root + "en/" if language == "zh" else None
    assert not [link for link in links if not link.startswith(root) or (other and link.startswith(other))]
    # A word that the search marks belongs to the query: the result is no accident of a neighbour.
    marks = page.evaluate("[...document.querySelectorAll('.md-search-result mark')].map(mark => mark.textContent.toLowerCase())")
    assert [mark for mark in marks if mark in query.lower() or query.lower() in mark], marks
    assert not page.errors + page.failed
    # The first result leads to a page that has it: both languages name their pages alike, so an address alone proves little.
    title = page.evaluate("document.querySelector('.md-search-result__article :is(h1, h2)').textContent.trim()").replace("\u200b", "")
    page.click(".md-search-result__link")
    page.wait_for("document.readyState == 'complete' && location.pathname == %s" % json.dumps(urlsplit(links[0]).path), timeout=30, explain="location.href")
    assert page.evaluate("document.documentElement.lang").startswith(language)
    headings = page.evaluate("[document.title, ...[...document.querySelectorAll('article :is(h1, h2, h3)')].map(heading => heading.textContent)]")
    assert any(title in heading for heading in headings), (title, headings)


@pytest.mark.parametrize("scheme", ["http", "file"])
@pytest.mark.parametrize("name", ["ledger.html", "research/LLM_training_memory_sources.html"])
def test_language_switch(page, site, request, scheme, name):
    """Guards the switch: the same page at the same anchor, there and back, also from a page in a folder.

    The theme's own switch leads to the home page when one language stands at the root (toolchain.md, section 2).
    """
    root = address(request, site, scheme)
    page.open(root + name, **DESKTOP)
    anchor = "ledger.persistent" if name == "ledger.html" else page.evaluate("[...document.querySelectorAll('article :is(h1, h2)[id]')].at(-1).id")
    page.open("%s%s#%s" % (root, name, anchor), **DESKTOP)
    for language in ("en", "zh"):
        page.click("a[data-language]")
        there = "%s%s%s#%s" % (root, LANGUAGES[language], name, anchor)
        page.wait_for("document.readyState == 'complete' && location.href == %s" % json.dumps(there), timeout=30, explain="location.href")
        assert page.evaluate("document.documentElement.lang").startswith(language)
        page.wait_for(in_sight(anchor), timeout=30, explain=top(anchor))


@pytest.mark.parametrize("window", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_claim_permalink(page, server, language, window):
    """Guards the citation of a claim: its permalink leads to the claim, and the sticky header does not cover it."""
    claim = "ledger.persistent-formula"
    page.open(server + LANGUAGES[language] + "ledger.html#" + claim, **window)
    page.wait_for(in_sight(claim), timeout=30, explain=top(claim))
    assert page.evaluate("scrollY") > 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_reads_without_scripts(page, server, language):
    """Guards the rule that tables, formulas and claims need no JavaScript; KaTeX runs when the site is built."""
    page.open(server + LANGUAGES[language] + "ledger.html", **DESKTOP, scripts=False)
    assert page.evaluate("document.documentElement.className") == "no-js"  # else scripts ran, and this proves nothing
    shown = (
        "(selector => [...document.querySelectorAll(selector)].filter(element => element.checkVisibility({opacityProperty: true,"
        " visibilityProperty: true}) && element.getBoundingClientRect().height > 0 && element.textContent.trim()).length)(%r)"
    )
    for selector in ("article table.data tbody tr", "article .katex-html", "article a.claim"):
        written = page.evaluate("document.querySelectorAll(%r).length" % selector)
        assert written > 5, selector
        assert page.evaluate(shown % selector) == written, selector


@pytest.mark.parametrize("language", LANGUAGES)
def test_light_and_dark(chromium, server, language):
    """Guards both palettes: each follows the system on a first visit, and its text can be read on its ground."""
    ground, text = {}, {}
    for scheme in ("light", "dark"):
        with chromium.page() as page:
            page.open(server + LANGUAGES[language] + "ledger.html", **DESKTOP, scheme=scheme)
            ground[scheme], text[scheme] = (luminance(pixel) for pixel in page.evaluate(PIXELS))
    assert ground["light"] > 0.7 and ground["dark"] < 0.1
    assert (ground["light"] + 0.05) / (text["light"] + 0.05) > 4.5  # WCAG 2.2, 1.4.3
    assert (text["dark"] + 0.05) / (ground["dark"] + 0.05) > 4.5


# The ground of the page and its text upon it, as they are painted, in whatever notation the styles give them.
PIXELS = """(() => {
  const brush = document.createElement("canvas").getContext("2d")
  const paint = colour => { brush.fillStyle = colour; brush.fillRect(0, 0, 1, 1); return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3) }
  return [paint(getComputedStyle(document.body).backgroundColor), paint(getComputedStyle(document.querySelector("article p")).color)]
})()"""


def luminance(pixel):
    """WCAG's relative luminance of a pixel."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (channel / 255 for channel in pixel)]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))


def address(request, site, scheme):
    """The root of the site, served or in its folder."""
    return request.getfixturevalue("server") if scheme == "http" else site.as_uri() + "/"


def in_sight(id):
    """JavaScript: whether an element is in the window and nothing, such as the header, lies over it."""
    return """(element => {
      const box = element?.getClientRects()[0]
      return box && box.bottom <= innerHeight && element.contains(document.elementFromPoint(box.left + 2, box.top + box.height / 2))
    })(document.getElementById(%s))""" % json.dumps(id)


def top(id):
    """JavaScript: where an element begins, in pixels from the top of the window."""
    return "document.getElementById(%s)?.getBoundingClientRect().top" % json.dumps(id)


@pytest.mark.parametrize("window", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_catalogue_keeps_its_headings(page, server, window):
    """However far its rows are scrolled, down and sideways, the headings stay above and the names to the left, and cover what passes."""
    page.open(server + "en/models.html", **window)
    page.wait_for("!!document.querySelector('.table-filter input')")
    seen = page.evaluate(
        """(async () => {
          const box = document.querySelector(".table-scroll:has(table[data-filter])"), corner = box.querySelector("thead th")
          box.scrollIntoView({ block: "center" })
          box.scrollTo(400, 2000)
          await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
          const edge = box.getBoundingClientRect(), at = corner.getBoundingClientRect()
          const name = document.elementFromPoint(edge.left + 12, edge.top + edge.height / 2), top = document.elementFromPoint(edge.left + 12, at.bottom - 8)
          return [box.scrollLeft, box.scrollTop, at.left - edge.left, at.top - edge.top, name.closest("th")?.scope, corner.contains(top)]
        })()"""
    )
    assert seen[:2] == [400, 2000] and abs(seen[2]) < 1 and abs(seen[3]) < 1 and seen[4:] == ["row", True]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_catalogue_is_searched_and_sorted(page, server, language):
    """A word and a number narrow the rows, clearing shows them all; a heading sorts by full values, and once more turns round."""
    page.open(server + LANGUAGES[language] + "models.html", **DESKTOP)
    page.wait_for("!!document.querySelector('.table-filter input')")
    shown = "[...document.querySelectorAll('table[data-filter] tbody tr')].filter(r => !r.hidden).map(r => r.cells[0].textContent)"
    everything = page.evaluate(shown)

    def search(text):
        page.evaluate("(i => { i.value = %s; i.dispatchEvent(new Event('input')) })(document.querySelector('.table-filter input'))" % json.dumps(text))
        return page.evaluate(shown)

    assert len(everything) > 100 and search("deepseek-v3") == ["DeepSeek-V3", "DeepSeek-V3.2"]
    assert search("70553706496") == search("70,553,706,496") == ["Llama 3 70B", "Llama 3.1 70B"] and search("") == everything
    page.evaluate("document.querySelector('th[data-column=\"2\"] button').click()")
    assert page.evaluate(shown)[0] == "Kimi K2"  # 1,026,408,209,408, the most of all
    page.evaluate("document.querySelector('th[data-column=\"2\"] button').click()")
    assert page.evaluate(shown)[0] == "BERT base (cased)" and page.evaluate("document.querySelector('th[data-column=\"2\"]').getAttribute('aria-sort')") == "ascending"
