"""What the site offers to programs: tables as CSV and JSON, all data, its schema, the sources, a feed, Markdown twins."""

import json
import re
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from byteledger import export
from byteledger.revision import revision

from . import citations, pages
from .plain import Plain
from .text import words

FOLDER = "data"


def write_data(catalog, site, address=""):
    """The downloads that both languages share, into site/data/."""
    folder = Path(site) / FOLDER
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    current = revision()
    for id in catalog.tables:
        # Excel takes a CSV without a byte-order mark for the system's code page, and garbles 汉字.
        (folder / "tables" / (id + ".csv")).write_text("\ufeff" + export.as_csv(catalog, id, current), encoding="utf-8")
        (folder / "tables" / (id + ".json")).write_text(export.as_json(catalog, id, current), encoding="utf-8")
    (folder / "data.json").write_text(export.everything(catalog, current), encoding="utf-8")
    (folder / "data.schema.json").write_text(json.dumps(export.schema(), indent=1), encoding="utf-8")
    (folder / "references.bib").write_text(citations.bibliography(catalog), encoding="utf-8")
    (folder / "changes.atom").write_text(feed(catalog, address), encoding="utf-8")


def write_sources(catalog, language, site):
    """The citations of the sources for cite.js: a script, since a page opened from file:// may fetch nothing."""
    target = Path(site) / "assets" / "byteledger" / "sources.js"
    target.parent.mkdir(parents=True, exist_ok=True)
    sources = {
        id: {"text": citations.sentence(record, language), "bibtex": citations.reference(id, record), "url": record.url or ""}
        for id, record in catalog.references.items()
    }
    target.write_text("window.byteLedgerSources = %s\n" % json.dumps(sources, ensure_ascii=False), encoding="utf-8")


def feed(catalog, address=""):
    """The changes of the data as an Atom feed, in both languages. Its ids do not depend on where the site stands."""
    current = revision()
    root = address.rstrip("/") + "/" if address else ""
    out = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        "<id>tag:byte-ledger,2026:changes</id>",
        "<title>%s</title>" % escape(current.title),
        "<updated>%sT00:00:00Z</updated>" % max(change.date for change in catalog.changes.values()),
        "<author><name>%s</name></author>" % escape(", ".join(current.authors)),
    ]
    if root:
        out.append('<link rel="self" href=%s/>' % quoteattr(root + FOLDER + "/changes.atom"))
    for id, change in catalog.changes.items():
        moved = "\n".join(change.moved)
        out += [
            "<entry>",
            "<id>tag:byte-ledger,2026:changes/%s</id>" % escape(id),
            "<title>%s / %s</title>" % (escape(words(change.what, "zh")), escape(words(change.what, "en"))),
            "<updated>%sT00:00:00Z</updated>" % change.date,
            "<link href=%s/>" % quoteattr("%schanges.html#change.%s" % (root, id)) if root else "",
            '<content type="text">%s</content>' % escape("%s\n%s\n%s" % (words(change.why, "zh"), words(change.why, "en"), moved)),
            "</entry>",
        ]
    return "\n".join(line for line in out if line) + "\n</feed>\n"


def write_twins(catalog, language, site):
    """A Markdown twin beside each page of a language, and llms.txt, which lists them."""
    site = Path(site)
    plain = Plain(catalog, language)
    for name, page in pages.read(language).items():
        target = site / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(twin(plain, page), encoding="utf-8")
    (site / "llms.txt").write_text(llms(catalog, language), encoding="utf-8")


def twin(plain, page):
    """A page as plain Markdown, with the revision of its numbers at the end."""
    text = plain.page(page.text)
    text = re.sub(r'<p class="question">(.*?)</p>', r"> \1", text)
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    text = re.sub(r'<a [^>]*href="([^"]+)"[^>]*>(.*?)</a>', r"[\2](\1)", text)
    text = re.sub(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", r"- \1: \2\n", text, flags=re.S)
    text = text.replace("</p>", "\n")
    text = re.sub(r"</?(?:div|section|figure|dl|span|p)\b[^>]*>\n?", "", text)
    text = re.sub(r"/// caption[^\n]*\n(.*?)\n///", r"*\1*", text, flags=re.S)
    return "%s\n\n---\n\n%s %s\n" % (text.strip(), plain.label("label.revision"), revision())


def llms(catalog, language):
    """llms.txt: what the site is, and where each page's Markdown stands."""
    current = revision()
    about = {
        "zh": "大语言模型训练与推理所占内存的账本：每个数字都能追到公式、数据与来源。",
        "en": "The ledger of the memory that training and serving large language models takes: every number traced to its formula, data and source.",
    }
    lines = ["# %s" % current.title, "", "> %s" % about[language], "", "%s %s" % (catalog.terms["label.revision"].model_dump()[language], current), ""]
    lines.append("## %s" % {"zh": "页面", "en": "Pages"}[language])
    lines.append("")
    for chapter, record in catalog.chapters.items():
        number = "%d. " % record.number if record.number else ""
        lines.append("- [%s%s](%s.md)" % (number, words(record.title, language), chapter))
    up = "" if language == "zh" else "../"
    lines += ["", "## %s" % {"zh": "数据", "en": "Data"}[language], ""]
    lines += ["- [%s](%s%s/%s)" % (name, up, FOLDER, name) for name in ("data.json", "data.schema.json", "references.bib", "changes.atom")]
    lines += ["- [%s](%s%s/tables/%s.csv)" % (words(record.title, language), up, FOLDER, id) for id, record in catalog.tables.items()]
    return "\n".join(lines) + "\n"
