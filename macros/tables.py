"""Tables as HTML: a caption, scopes, right-aligned figures, the unit in the heading.

A blank stands between cells: search reads the text of a page without its tags.
"""

from byteledger import quantities, tables

from . import katex
from .text import amount, bare, derivation, escape, phrase, unit_of, words


def render(catalog, id, language, claim_mark, up=""):
    """The table as one block of HTML.

    claim_mark(id) gives the mark that stands in the first cell of a claim's row; up leads to the root of the language.
    """
    table = tables.evaluate(catalog, id)
    view = _View(catalog, table, language, claim_mark, up)
    return "".join(
        [
            '<figure class="table" id="table.%s">' % escape(id),
            '<div class="table-scroll" role="region" tabindex="0" aria-labelledby="caption.%s">' % escape(id),
            '<table class="data"><caption id="caption.%s">%s</caption>' % (escape(id), view.caption()),
            "<thead>%s</thead> <tbody>" % view.head(),
            " ".join(view.row(row) for row in table.rows),
            "</tbody></table></div>",
            view.foot(),
            "</figure>",
        ]
    )


def row_words(catalog, id, language):
    """{claim: its row in words} for the rows of a table that carry a claim."""
    table = tables.evaluate(catalog, id)
    view = _View(catalog, table, language, lambda claim: "")
    separator = "；" if language == "zh" else "; "
    return {row.claim: separator.join(view.cells_in_words(row)) for row in table.rows if row.claim}


class _View:
    def __init__(self, catalog, table, language, claim_mark, up=""):
        self.catalog, self.table, self.language = catalog, table, language
        self.claim_mark, self.up = claim_mark, up

    def label(self, id):
        return words_of(self.catalog.terms[id], self.language)

    def caption(self):
        record = self.table.record
        note = ' <span class="note">%s</span>' % escape(words(record.note, self.language)) if record.note else ""
        return '<a class="permalink" href="#table.%s" title="%s">%s</a> <span class="title">%s</span>%s' % (
            escape(self.table.id),
            escape(self.label("label.permalink")),
            escape(self.label("label.table")),
            escape(words(record.title, self.language)),
            note,
        )

    def foot(self):
        links = (self.language == "zh" and "、" or "; ").join(
            '<a href="%sreferences.html#ref.%s">%s</a>' % (self.up, escape(id), escape(self.catalog.references[id].short))
            for id in self.table.record.source
        )
        return '<figcaption class="table-foot">%s%s%s</figcaption>' % (
            escape(self.label("label.source")),
            "：" if self.language == "zh" else ": ",
            links,
        )

    # --- headings

    def heading(self, heading):
        axis, _, field = heading.id.partition(":")
        if not field:
            name = self.label(heading.id)
        elif field in self.catalog.states:
            name = words(self.catalog.states[field].name, self.language)
        else:
            name = self.label("column." + field)
        unit = unit_of(heading.kind, heading.unit) if heading.kind else ""
        return escape(name), ' <span class="unit">%s</span>' % escape(unit).replace("/", "/<wbr>") if unit else ""

    def head(self):
        grouped = any(heading.across for heading in self.table.headings)
        first, second, previous = [], [], None
        for heading in self.table.headings:
            name, unit = self.heading(heading)
            numeric = ' class="number"' if self.numeric(heading) else ""
            if not heading.across:
                span = ' rowspan="2"' if grouped else ""
                first.append('<th scope="col"%s%s>%s%s</th>' % (span, numeric, name, unit))
                continue
            if heading.id != previous:
                count = sum(1 for other in self.table.headings if other.id == heading.id)
                first.append('<th scope="colgroup" colspan="%d" class="group">%s%s</th>' % (count, name, unit))
                previous = heading.id
            second.append('<th scope="col" class="number">%s</th>' % escape(self.across(heading)))
        rows = "<tr>%s</tr>" % " ".join(first)
        return rows + (" <tr>%s</tr>" % " ".join(second) if grouped else "")

    def across(self, heading):
        symbols = {"world_size": "W"}
        return ", ".join("%s = %s" % (symbols.get(axis, axis), value) for axis, value in heading.across.items())

    def numeric(self, heading):
        return bool(heading.kind) or heading.id in quantities.QUANTITIES

    # --- cells

    def row(self, row):
        cells = []
        for position, (heading, cell) in enumerate(zip(self.table.headings, row.cells)):
            shown, title = self.cell(heading, cell, row)
            if position == 0:
                mark = self.claim_mark(row.claim) + " " if row.claim else ""
                numeric = ' class="number"' if heading.id == "figure:figure" else ""
                cells.append('<th scope="row"%s>%s%s</th>' % (numeric, mark, shown))
            else:
                kind = ' class="number"' if self.numeric(heading) else ""
                tip = ' title="%s"' % escape(title) if title else ""
                cells.append("<td%s%s>%s</td>" % (kind, tip, shown))
        return "<tr%s>%s</tr>" % (' class="total"' if row.total else "", " ".join(cells))

    def cell(self, heading, cell, row):
        """(HTML, title) of one cell."""
        if row.total and heading is self.table.headings[0]:
            return escape(self.label("total")), ""
        if isinstance(cell, quantities.Result):
            return self.result(heading, cell), derivation(cell)
        axis, _, field = heading.id.partition(":")
        if cell is None:
            strategy = self.catalog.strategies.get(row.selection.get("strategy"))
            if strategy and strategy.shards is None and (self.numeric(heading) or field == "per_rank"):
                return escape(words(strategy.not_modelled, self.language)), ""
            return ("" if row.total else "—"), ""
        return self.field(axis, field, cell), ""

    def result(self, heading, cell):
        if heading.id == "figure:figure":
            return escape(phrase(cell.value, cell.kind))
        shown = escape(bare(cell.value, cell.kind, heading.unit))
        has_gib = any(other.id == heading.id and other.unit == "GiB" for other in self.table.headings)
        if cell.kind == "bytes" and heading.unit == "GB" and not has_gib:
            shown += ' <span class="gib">%s GiB</span>' % escape(amount(cell.value, "GiB"))
        return shown

    def field(self, axis, field, cell):
        if not field:
            return self.name(axis, cell)
        if hasattr(cell, "zh"):
            return escape(words(cell, self.language))
        if field == "symbol" or (field == "figure" and isinstance(cell, str)):
            return katex.render(cell)
        if field == "formats":
            return escape(" / ".join(self.catalog.dtypes[id].name for id in cell))
        if field == "bytes":
            low, high = (bare(size, "bytes per parameter") for size in cell)
            return escape(low if low == high else "%s–%s" % (low, high))
        if field in ("scope", "replicates"):
            joined = ("、" if self.language == "zh" else ", ").join(self.label("group." + group) for group in cell)
            return escape(joined or self.label("none"))
        if field == "per_rank":
            return katex.render(per_rank(cell))
        if field == "gathers":
            return escape(self.label("gathers." + cell))
        return escape(bare(cell, "bytes per parameter") if isinstance(cell, (int, float)) else cell)

    def name(self, axis, choice):
        record = quantities.selected(self.catalog, axis, choice)
        name = getattr(record, "name", None)
        if name is None:
            return escape(choice)
        return escape(name if isinstance(name, str) else words(name, self.language))

    def cells_in_words(self, row):
        for heading, cell in zip(self.table.headings, row.cells):
            if isinstance(cell, quantities.Result):
                yield phrase(cell.value, cell.kind, heading.unit)
            elif hasattr(cell, "zh"):
                yield words(cell, self.language)
            elif heading.id.endswith((":scope", ":replicates")) and cell is not None:
                yield self.heading(heading)[0] + ("：" if self.language == "zh" else ": ") + self.field(*heading.id.split(":"), cell)
            elif ":" not in heading.id and cell is not None:
                yield self.name(heading.id, cell)


def per_rank(shards):
    """The bytes per rank of a strategy in TeX, from what it shards."""
    divided = {group: r"/ d" if group in shards else "" for group in ("weights", "gradients", "optimizer")}
    return r"b_w N%s + b_g N%s + K N%s" % (divided["weights"], divided["gradients"], divided["optimizer"])


def words_of(term, language):
    """A term's own name."""
    return getattr(term, language)
