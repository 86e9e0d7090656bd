"""The pages of docs/ as they are written: their headings, macro calls and claims, and what is wrong with them.

Read before MkDocs renders anything, so that a build stops with every fault at once, each with its file and line.
"""

import posixpath
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, TemplateSyntaxError, meta, nodes

from byteledger import quantities
from byteledger.arguments import ArgumentError
from byteledger.catalog import Fault, UnknownId
from byteledger.nearest import suggestion
from byteledger.records import FILES

from .text import LANGUAGES

DOCS = Path(__file__).resolve().parent.parent / "docs"
# The same delimiters as in mkdocs.yml: Jinja's own collide with { #id } and with TeX.
JINJA = dict(
    variable_start_string="<%=",
    variable_end_string="%>",
    block_start_string="<%%",
    block_end_string="%%>",
    comment_start_string="<%#",
    comment_end_string="#%>",
)
# macro -> the file of data/ that its first argument names
NAMES = {
    "claim": "claims",
    "table": "tables",
    "formula": "formulas",
    "term": "terms",
    "cite": "references",
    "value": None,
    "claims_index": None,
    "tables_index": None,
    "attributed": None,
    "glossary": None,
    "reference_list": None,
    "evidence_tags": None,
    "revision": None,
    "records": None,
    "changes": None,
    "download": None,
    "anchor": None,
}
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*(\{\s*#([^\s}]+)[^}]*\})?\s*$")
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_MATH = re.compile(r"(?<![\\$])\$(?!\$)([^$\n]+?)(?<!\\)\$(?!\$)")
_BLOCK_START = re.compile(r"^\s*([-*+]\s+|\d+\.\s+|\|.*\|?\s*|:\s+)?$")
_LINK = re.compile(r"\]\((?![a-z]+:)([\w./-]+\.md)?(?:#([^)\s]+))?\)")
_ID = re.compile(r"\bid=\"([^\"]+)\"|^``` ?\{[^}\n]*#([\w.-]+)", re.M)
# Macros that write a list of anchors: the prefix of each, and the file of data/ whose ids follow it.
_LISTS = {
    "glossary": ("term.", "terms"),
    "reference_list": ("ref.", "references"),
    "changes": ("change.", "changes"),
    "claims_index": ("claim.", "claims"),
}
_RAW = re.compile(r"<%%\s*raw\s*%%>.*?<%%\s*endraw\s*%%>", re.S)
_CLAIM = re.compile(r"<%=\s*claim\(\s*[\"']([^\"']+)[\"']\s*\)\s*%>\s*")


class Call:
    """A macro call with plain arguments."""

    def __init__(self, name, args, kwargs, line):
        self.name, self.args, self.kwargs, self.line = name, args, kwargs, line

    @property
    def first(self):
        return self.args[0] if self.args else None

    def __str__(self):
        shown = [repr(a) for a in self.args] + ["%s=%r" % item for item in self.kwargs.items()]
        return "%s(%s)" % (self.name, ", ".join(shown))


class Page:
    """One page of one language."""

    def __init__(self, name, text):
        self.name, self.text = name, text
        self.readable = True
        self.faults = []  # (line, finding, cure)
        self.headings = []  # (level, id, line)
        self.math = Counter()
        self.calls = []
        self._read_lines()
        self._read_calls()
        self.claims = self._read_claims()  # id -> (line, the words that follow it)

    def _read_lines(self):
        fence = None
        for line, text in enumerate(self.text.split("\n"), 1):
            mark = _FENCE.match(text)
            if mark:
                fence = None if fence and mark[1].startswith(fence) else fence or mark[1]
                continue
            if fence:
                continue
            heading = _HEADING.match(text)
            if heading:
                self.headings.append((len(heading[1]), heading[4], line))
                if not heading[4]:
                    self.faults.append((line, "the heading %r has no id" % heading[2], "end it with { #id }, the same in both languages"))
            self.math.update(m[1] for m in _MATH.finditer(re.sub(r"`[^`]*`", "", text)))

    def _read_calls(self):
        environment = Environment(**JINJA)
        try:
            tree = environment.parse(self.text)
        except TemplateSyntaxError as error:
            self.faults.append((error.lineno, "a broken macro: %s" % error.message, "close it with %>"))
            self.readable = False  # nothing else is blamed for what cannot be read here
            return
        called = set()
        for node in tree.find_all(nodes.Call):
            if not isinstance(node.node, nodes.Name):
                continue
            called.add(id(node.node))
            name = node.node.name
            if name not in NAMES:
                self.faults.append((node.lineno, "unknown macro %r" % name, suggestion(name, NAMES)))
                continue
            try:
                args = [argument.as_const() for argument in node.args]
                kwargs = {pair.key: pair.value.as_const() for pair in node.kwargs}
            except nodes.Impossible:
                self.faults.append((node.lineno, "%s() takes plain text and numbers" % name, "quote its arguments"))
                continue
            self.calls.append(Call(name, args, kwargs, node.lineno))
        undeclared = meta.find_undeclared_variables(tree)
        for node in tree.find_all(nodes.Name):
            if node.name in undeclared and id(node) not in called:
                self.faults.append((node.lineno, "undefined name %r" % node.name, suggestion(node.name, NAMES)))

    def _read_claims(self):
        claims = {}
        # What stands between raw and endraw is shown, not run.
        text = _RAW.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), self.text)
        for match in _CLAIM.finditer(text):
            line = self.text.count("\n", 0, match.start()) + 1
            before = self.text[self.text.rfind("\n", 0, match.start()) + 1 : match.start()]
            if not (_BLOCK_START.match(before) or before.rstrip().endswith("|")):
                self.faults.append((line, "claim %r is not at the start of a paragraph, list item or cell" % match[1], "move it there"))
            if match[1] in claims:
                self.faults.append((line, "claim %r stands here a second time, first on line %d" % (match[1], claims[match[1]][0]), "keep one"))
            claims[match[1]] = (line, _words_after(self.text, match.end(), "|" in before))
        return claims


def anchors(catalog, page):
    """The ids that a page will have, as far as its source tells them; what scripts and themes add is none of them."""
    found = {id for _, id, _ in page.headings if id} | set(page.claims)
    found |= {first or second for first, second in _ID.findall(page.text)}
    for call in page.calls:
        if call.name == "table" and call.first in catalog.tables:
            found |= {"table." + call.first, *claims_of_table(catalog, call.first)}
        elif call.name in ("formula", "anchor"):
            found.add(("eq." if call.name == "formula" else "") + str(call.first))
        elif call.name in _LISTS:
            prefix, file = _LISTS[call.name]
            found |= {prefix + id for id in getattr(catalog, file)}
        elif call.name == "evidence_tags":
            found |= {"table.evidence-tags", *("tag." + id for id, term in catalog.terms.items() if term.kind == "tag")}
        elif call.name == "records":
            found |= {"records." + file for file in FILES} | {"record.%s.%s" % (file, id) for file in FILES for id in getattr(catalog, file)}
        elif call.name == "attributed":
            found |= {"attributed." + id.removeprefix("source-") for id, term in catalog.terms.items() if term.kind == "chapter-of-source"}
    return found | ({"claims." + chapter for chapter in catalog.chapters} if any(c.name == "claims_index" for c in page.calls) else set())


def _links(catalog, pages):
    """(page, line, finding, cure) of every Markdown link whose page or anchor is not there."""
    known = {name: anchors(catalog, page) for name, page in pages.items()}
    for name, page in pages.items():
        for match in _LINK.finditer(page.text):
            target, anchor = match[1], match[2]
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target)) if target else name
            line = page.text.count("\n", 0, match.start()) + 1
            if path not in known:
                yield name, line, "the link leads to %r, which is no page" % target, suggestion(path, known)
            elif anchor and pages[path].readable and anchor not in known[path]:
                yield name, line, "no such anchor on %s: %r" % (path, anchor), suggestion(anchor, known[path])


def _words_after(text, start, in_cell):
    """From a claim's mark to the end of its paragraph, list item or table cell."""
    if in_cell:
        return re.split(r"(?<!\\)\||\n", text[start:], maxsplit=1)[0].strip()
    words = []
    for number, line in enumerate(text[start:].split("\n")):
        if number and (not line.strip() or re.match(r"\s*([-*+]\s|\d+\.\s|```|///|#|\|)", line)):
            break
        words.append(line.strip())
    return " ".join(words).strip()


def read(language, docs=DOCS):
    """{name: Page} of one language, in the order of their names. Not cached: a page may just have been edited."""
    root = Path(docs) / language
    return {
        path.relative_to(root).as_posix(): _page(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(root.rglob("*.md"))
    }


@lru_cache(maxsize=256)
def _page(name, text):
    return Page(name, text)


def faults(catalog, docs=DOCS):
    """Every fault of the pages, in both languages and between them."""
    pages = {language: read(language, docs) for language in LANGUAGES}
    found = []
    for language in LANGUAGES:
        found.extend(_alone(catalog, pages[language], language))
    found.extend(_together(pages))
    return found


def _fault(language, page, line, finding, cure):
    return Fault("docs/%s/%s" % (language, page), line, "", finding, cure)


def _alone(catalog, pages, language):
    found = []
    seen = {}
    for name, page in pages.items():
        for line, finding, cure in page.faults:
            found.append(_fault(language, name, line, finding, cure))
        ids = Counter(id for _, id, _ in page.headings if id)
        for _, id, line in page.headings:
            if ids[id] > 1:
                found.append(_fault(language, name, line, "heading id %r stands %d times" % (id, ids[id]), "give each its own"))
        for call in page.calls:
            for finding, cure in _call(catalog, call):
                found.append(_fault(language, name, call.line, finding, cure))
        for id, line in standing_claims(catalog, page).items():
            if id in seen:
                found.append(_fault(language, name, line, "claim %r stands on %s, too" % (id, seen[id]), "keep one"))
            seen[id] = name
            if id in catalog.claims and catalog.chapter_of_claim(id) + ".md" != name:
                found.append(_fault(language, name, line, "claim %r belongs on %s.md" % (id, catalog.chapter_of_claim(id)), "move it"))
    found.extend(_fault(language, *fault) for fault in _links(catalog, pages))
    for id in catalog.claims:
        if id not in seen:
            page = catalog.chapter_of_claim(id) + ".md"
            found.append(_fault(language, page, 1, "claim %r of data/claims.yaml stands nowhere" % id, 'write it, after <%%= claim("%s") %%>' % id))
    return found


def standing_claims(catalog, page):
    """{claim: line} of a page: those in its prose and those in the rows of its tables."""
    standing = {id: line for id, (line, _) in page.claims.items()}
    for call in page.calls:
        if call.name == "table" and call.first in catalog.tables:
            for id in claims_of_table(catalog, call.first):
                standing[id] = call.line
    return standing


def claims_of_table(catalog, id):
    """The claims that the rows of a table carry."""
    record = catalog.tables[id]
    for axis, choices in record.rows.items() if record.claims else ():
        file = quantities.AXES.get(axis)
        if file in ("figures", "strategies"):
            records = getattr(catalog, file)
            for choice in records if choices == "all" else choices:
                if records[choice].claim:
                    yield records[choice].claim


def _call(catalog, call):
    file = NAMES[call.name]
    if file and not isinstance(call.first, str):
        yield "%s() names no id" % call.name, "give it one in quotes"
    elif file and call.first not in getattr(catalog, file):
        yield "unknown %s id %r" % (call.name, call.first), suggestion(call.first, getattr(catalog, file))
    if call.name == "value":
        selection = {key: value for key, value in call.kwargs.items() if key != "unit"}
        try:
            quantities.evaluate(catalog, call.first, selection)
        except (ArgumentError, UnknownId) as error:
            yield "%s: %s" % (call, error), "correct the call"


def _together(pages):
    first, second = (pages[language] for language in LANGUAGES)
    for language, name in sorted({("en", n) for n in first if n not in second} | {("zh", n) for n in second if n not in first}):
        yield _fault(language, name, 1, "the page is missing in this language", "write it")
    for name in sorted(set(first) & set(second)):
        zh, en = first[name], second[name]
        if not (zh.readable and en.readable):
            continue
        yield from _compare(name, [(level, id) for level, id, _ in zh.headings], [(level, id) for level, id, _ in en.headings], "headings")
        for macro in ("claim", "table", "formula"):
            yield from _compare(
                name, [c.first for c in zh.calls if c.name == macro], [c.first for c in en.calls if c.name == macro], macro + "s"
            )
        rest = ("value", "cite")
        yield from _compare(
            name, sorted(str(c) for c in zh.calls if c.name in rest), sorted(str(c) for c in en.calls if c.name in rest), "macro calls"
        )
        yield from _compare(name, sorted(zh.math), sorted(en.math), "formulas in the text")


def _compare(name, zh, en, what):
    if zh == en:
        return
    only_zh, only_en = Counter(zh) - Counter(en), Counter(en) - Counter(zh)
    if only_zh or only_en:
        finding = "%s differ between the languages: only zh has %s; only en has %s" % (what, _some(only_zh), _some(only_en))
    else:
        place = next(i for i, (a, b) in enumerate(zip(zh, en)) if a != b)
        finding = "%s stand in another order: zh has %s where en has %s" % (what, zh[place], en[place])
    yield _fault("en", name, 1, finding, "make them agree")


def _some(counter):
    shown = [str(item[1] if isinstance(item, tuple) else item) for item in counter]
    return ", ".join(shown[:6]) + (" …" if len(shown) > 6 else "") if shown else "nothing more"
