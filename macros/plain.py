"""The macros as plain Markdown, for the twin of each page that programs read: tables with pipes, formulas in TeX."""

from functools import cached_property

from jinja2 import Environment, StrictUndefined

from byteledger import quantities
from byteledger.records import FILES
from byteledger.revision import revision

from . import pages, tables
from .text import derivation, phrase, words


class Plain:
    """The macros of one language, each as text that stands by itself."""

    def __init__(self, catalog, language):
        self.catalog, self.language, self._numbers = catalog, language, tables.formula_numbers(catalog)
        self._environment = Environment(undefined=StrictUndefined, **pages.JINJA)

    def page(self, source):
        """A page's Markdown with its macros rendered."""
        if "<%" not in source:
            return source
        return self._environment.from_string(source).render({name: getattr(self, name) for name in pages.NAMES})

    def label(self, id):
        return tables.words_of(self.catalog.terms[id], self.language)

    def claim(self, id):
        return "[%s: %s]" % (self.label("short." + self.catalog.claims[id].tag), id)

    def value(self, quantity, unit=None, **selection):
        result = quantities.evaluate(self.catalog, quantity, selection)
        return phrase(result.value, result.kind, unit)

    def derivation(self, quantity, **selection):
        return derivation(quantities.evaluate(self.catalog, quantity, selection))

    def formula(self, id):
        return "$$\n%s \\tag{%s}\n$$" % (self.catalog.formulas[id].tex.strip(), self._numbers[id])

    def table(self, id):
        return tables.markdown(self.catalog, id, self.language)

    def term(self, id, text=None):
        return text or self.label(id)

    def cite(self, id):
        reference = self.catalog.references[id]
        return "[%s](%s)" % (reference.short, reference.url) if reference.url else reference.short

    def evidence_tags(self):
        return "\n".join(
            "- **%s** (%s): %s" % (self.label(tag), self.label("short." + tag), words(self.catalog.terms[tag].definition, self.language))
            for tag in ("docx", "external", "estimate", "limit", "measured")
        )

    @cached_property
    def statements(self):
        """{claim: its words as plain Markdown}."""
        found = {}
        for page in pages.read(self.language).values():
            for id, (_, text) in page.claims.items():
                found[id] = self.page(text)
            for call in page.calls:
                if call.name == "table":
                    found.update(tables.row_words(self.catalog, call.first, self.language))
        return found

    def claims_index(self):
        statements = self.statements
        return "\n".join(
            "- `%s` [%s] %s" % (id, self.label("short." + claim.tag), statements[id]) for id, claim in self.catalog.claims.items()
        )

    def attributed(self):
        statements = self.statements
        return "\n".join(
            "- %s: `%s` %s" % (self.label(claim.chapter_of_source), id, statements[id])
            for id, claim in self.catalog.claims.items()
            if claim.chapter_of_source
        )

    def tables_index(self):
        return "\n".join("- %s: `%s`" % (words(record.title, self.language), id) for id, record in self.catalog.tables.items())

    def glossary(self):
        return "\n".join(
            "- **%s**: %s" % (self.label(id), words(term.definition, self.language))
            for id, term in self.catalog.terms.items()
            if term.kind == "glossary"
        )

    def reference_list(self, which):
        return "\n".join(
            "- %s. %s. %s%s" % (", ".join(r.authors), r.title, r.year or "", " <%s>" % r.url if r.url else "")
            for r in self.catalog.references.values()
            if which == ("source" if r.type == "source" else "whitepaper" if r.whitepaper else "data")
        )

    def revision(self):
        return "`%s` (%s)" % (revision(), revision().date)

    def anchor(self, id):
        return ""

    def download(self, path, text=None):
        return "[%s](%s)" % (text or path, path)

    def records(self):
        return "\n\n".join(
            "## %s.yaml\n\n```yaml\n%s\n```" % (file, "\n".join(self.catalog.source(file, id)[1] for id in getattr(self.catalog, file))) for file in FILES
        )

    def changes(self):
        return "\n".join(
            "- %s: %s %s %s" % (change.date, words(change.what, self.language), words(change.why, self.language), "; ".join(change.moved))
            for change in self.catalog.changes.values()
        )
