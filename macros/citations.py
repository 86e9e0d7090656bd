"""Citations as text: BibTeX of the sources and of the book itself."""

import re

from byteledger.revision import revision

# Signs that BibTeX or TeX would take for markup.
_TEX = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def tex(text):
    """Text from data, safe in a BibTeX field."""
    return "".join(_TEX.get(sign, sign) for sign in " ".join(str(text).split()))


def key(id):
    """An id as a BibTeX key."""
    return re.sub(r"[^A-Za-z0-9:-]", "-", id)


def entry(kind, id, fields):
    """One BibTeX entry; a value that is a tuple is written as it stands."""
    lines = ["@%s{%s," % (kind, key(id))]
    for name, value in fields:
        if value:
            lines.append("  %s = {%s}," % (name, value[0] if isinstance(value, tuple) else tex(value)))
    return "\n".join(lines) + "\n}"


def reference(id, record):
    """The BibTeX entry of a source."""
    # Organizations stand in braces of their own, so that BibTeX does not split them into first and last names.
    people = record.type == "paper"
    authors = " and ".join(tex(author) if people else "{%s}" % tex(author) for author in record.authors)
    fields = [("title", ("{%s}" % tex(record.title),)), ("author", (authors,)), ("year", record.year)]
    if record.arxiv:
        fields += [("eprint", record.arxiv), ("archivePrefix", "arXiv")]
    fields += [("url", (record.url,) if record.url else None), ("note", "Accessed %s" % record.accessed)]
    return entry("article" if record.arxiv else "misc", id, fields)


def bibliography(catalog):
    """references.bib: every source, and this book."""
    current = revision()
    head = "%% Byte Ledger, sources; data revision %s of %s\n" % (current, current.date)
    own = entry(
        "misc",
        "byte-ledger",
        [
            ("title", ("{%s}" % tex(current.title),)),
            ("author", (" and ".join("{%s}" % tex(author) for author in current.authors),)),
            ("year", current.date[:4]),
            ("version", str(current)),
            ("note", "Data revision %s of %s" % (current, current.date)),
        ],
    )
    return head + "\n\n".join([own, *(reference(id, record) for id, record in catalog.references.items())]) + "\n"


def sentence(record, language):
    """The citation of a source in a sentence: authors, year, title, address."""
    authors = record.authors if len(record.authors) < 4 else [record.authors[0], "et al."]
    year = " (%d)" % record.year if record.year else ""
    return "%s%s. %s.%s" % (", ".join(authors), year, record.title, " " + record.url if record.url else "")


def page_data(catalog, language):
    """What the templates and cite.js need on each page: the revision, and the words of the cite control."""
    current = revision()
    names = current.title.split(" · ")
    words = {id.removeprefix("cite."): getattr(term, language) for id, term in catalog.terms.items() if id.startswith("cite.")}
    return {
        "revision": str(current),
        "byteledger": {
            "title": names[0] if language == "zh" else names[-1],
            "authors": current.authors,
            "revision": str(current),
            "date": current.date,
            "words": words,
        },
    }
