"""Checks a built site as a reader's browser would find it: links, anchors, images, ids, and both languages alike.

    python scripts/check_site.py [site]

MkDocs checks Markdown links only; this checks what came out, raw HTML included.
"""

import re
import sys
from collections import Counter
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LEFT_OVER = re.compile(r"<%[=%#]|%%>|&lt;%=|Macro (?:Syntax|Rendering) Error|<p>///[^<\n]*")
CODE = re.compile(r"<code[ >].*?</code>", re.S)
FORMULA = re.compile(r"<bl-math.*?</bl-math>", re.S)
POINTS = re.compile(r"\b(?:id|href|src)=")
VOID_LINKS = ("mailto", "tel", "javascript", "data")


class Document(HTMLParser):
    """The ids, links, assets and headings of one page."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.ids, self.links, self.assets, self.headings = Counter(), [], [], []
        self.claims, self.images_without_words = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        line = self.getpos()[0]
        if attributes.get("id"):
            self.ids[attributes["id"]] += 1
        if re.fullmatch("h[1-6]", tag) and attributes.get("id"):
            self.headings.append((int(tag[1]), attributes["id"]))
        if tag == "a" and "claim" in (attributes.get("class") or "").split() and attributes.get("id"):
            self.claims.append(attributes["id"])
        if tag in ("a", "area") and attributes.get("href") is not None:
            self.links.append((attributes["href"], line))
        if tag == "link" and "alternate" not in (attributes.get("rel") or "") and attributes.get("rel") != "canonical":
            self.assets.append((attributes.get("href"), line))
        if tag in ("img", "script", "iframe", "source", "video", "audio", "embed") and attributes.get("src"):
            self.assets.append((attributes["src"], line))
        if tag == "img" and attributes.get("alt") is None:
            self.images_without_words.append(line)


@lru_cache(maxsize=256)  # the tests check many copies of a site in which one page differs
def parsed(text):
    """The Document of a page's text."""
    # Half of all tags set formulas, which neither have an id nor lead anywhere; one that does is read like the rest.
    return Document(FORMULA.sub(lambda formula: formula[0] if POINTS.search(formula[0]) else "\n" * formula[0].count("\n"), text))


def faults(site):
    """Every fault of the site, as lines."""
    site = Path(site)
    documents = {}
    found = []
    for path in sorted(site.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        documents[path] = parsed(text)
        shown = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)  # a page may show a macro as code
        for match in LEFT_OVER.finditer(shown):
            found.append("%s:%d: markup was left over: %r" % (path.relative_to(site), text.count("\n", 0, match.start()) + 1, match[0]))
    places = {}
    for path, document in documents.items():
        found.extend("%s%s" % (path.relative_to(site), fault) for fault in _page(site, path, document, documents, places))
    found.extend(_styles(site))
    found.extend(_languages(site, documents))
    return found


def _page(site, path, document, documents, places):
    for id, count in document.ids.items():
        # Material draws its navigation toggles twice on purpose; an id of ours stands once.
        if count > 1 and not id.startswith("__"):
            yield ": id %r stands %d times" % (id, count)
    for line in document.images_without_words:
        yield ":%d: an image without alt" % line
    for href, line in document.assets:
        fault = _target(site, path, href, documents, places, asset=True)
        if fault:
            yield ":%d: %s" % (line, fault)
    for href, line in document.links:
        fault = _target(site, path, href, documents, places)
        if fault:
            yield ":%d: %s" % (line, fault)


def _target(site, path, href, documents, places, asset=False):
    parts = urlsplit(href or "")
    if parts.scheme in VOID_LINKS:
        return None
    if parts.scheme or parts.netloc:
        return "asset %r is on another host" % href if asset else None
    if path.name == "404.html" and parts.path.startswith("/"):
        return None  # served for any address, so its links are absolute
    place = path.parent, parts.path
    if parts.path and place not in places:
        places[place] = _place(site, *place)
    target, trouble = places[place] if parts.path else (path, None)
    if trouble:
        return "link %r %s" % (href, trouble)
    known = documents.get(target) if parts.fragment else None
    if known is not None and unquote(parts.fragment) not in known.ids:
        return "link %r: no such anchor on %s" % (href, target.name)
    return None


def _place(site, folder, address):
    """(path, what is wrong) of the file that an address in a page of folder leads to; the path begins with site."""
    root, target = site.resolve(), (folder / unquote(address)).resolve()
    if not target.is_relative_to(root):
        return target, "leads out of the site"
    if target.is_dir():
        target = target / "index.html"
    return site / target.relative_to(root), None if target.exists() else "leads nowhere"


def _styles(site):
    for path in sorted(site.rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        for url in re.findall(r"url\(\s*[\"']?([^\"')]+)", text):
            if url.startswith("data:") or url.startswith("#"):
                continue
            if re.match(r"https?:|//", url):
                yield "%s: %r is on another host" % (path.relative_to(site), url)
            elif not (path.parent / url.split("?")[0].split("#")[0]).exists():
                yield "%s: %r leads nowhere" % (path.relative_to(site), url)


def _languages(site, documents):
    english = site / "en"
    if not english.is_dir():
        yield "en/ is missing"
        return
    for path, zh in documents.items():
        if path.is_relative_to(english) or path.name == "404.html":
            continue
        name = path.relative_to(site)
        en = documents.get(english / name)
        if en is None:
            yield "en/%s is missing" % name
            continue
        if zh.headings != en.headings:
            yield "%s: headings differ between the languages: %s" % (name, sorted(set(zh.headings) ^ set(en.headings)) or "their order")
        if zh.claims != en.claims:
            yield "%s: claims differ between the languages: %s" % (name, sorted(set(zh.claims) ^ set(en.claims)) or "their order")


if __name__ == "__main__":
    found = faults(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "site")
    print("\n".join(found) or "the site is sound")
    sys.exit(1 if found else 0)
