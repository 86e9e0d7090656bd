"""Tables as HTML: a caption, scopes, right-aligned figures, the unit in the heading.

A blank stands between cells: search reads the text of a page without its tags.
"""

import html
import re

from byteledger import published, quantities, tables
from byteledger.printed import number as places

from . import katex
from .text import amount, bare, escape, escape_cell, phrase, unit_of, words


def render(catalog, id, marks):
    """The table as one block of HTML. marks: the Marks of the page, for the marks of claims, numbers and links."""
    view = _View(catalog, tables.evaluate(catalog, id), marks.language, marks)
    return "".join(
        [
            '<figure class="table" id="table.%s">' % escape(id),
            '<div class="table-scroll" role="region" tabindex="0" aria-labelledby="caption.%s">' % escape(id),
            '<table class="data"%s><caption id="caption.%s">%s</caption>' % (view.interactive(), escape(id), view.caption()),
            "<thead>%s</thead> <tbody>" % view.head(),
            " ".join(view.row(row) for row in view.table.rows) or view.empty(),
            "</tbody></table></div>",
            view.foot(),
            "</figure>",
        ]
    )


def markdown(catalog, id, language):
    """The table as Markdown, with the figures as they are printed: title, table, note, sources."""
    view = _View(catalog, tables.evaluate(catalog, id), language)
    record = view.table.record
    lines = ["**%s**" % escape_cell(words(record.title, language)), ""]
    headings = []
    for heading in view.table.headings:
        parts = [view.name_of(heading), view.across(heading) if heading.across else "", unit_of(heading.kind, heading.unit) if heading.kind else ""]
        headings.append(", ".join(part for part in parts[:2] if part) + (" (%s)" % parts[2] if parts[2] else ""))
    lines.append("| %s |" % " | ".join(map(escape_cell, headings)))
    lines.append("|%s|" % "|".join("---:" if view.numeric(heading) else "---" for heading in view.table.headings))
    for row in view.table.rows:
        cells = [view.cell_in_markdown(heading, cell, row) for heading, cell in zip(view.table.headings, row.cells)]
        lines.append("| %s |" % " | ".join(cells))
    if record.note:
        lines += ["", escape_cell(words(record.note, language))]
    sources = ", ".join("%s%s" % (catalog.references[r].short, " <%s>" % catalog.references[r].url if catalog.references[r].url else "") for r in record.source)
    lines += ["", escape_cell(view.label("label.source")) + ": " + sources.replace("|", "\\|")]
    return "\n".join(lines)


def row_words(catalog, id, language):
    """{claim: its row in words} for the rows of a table that carry a claim."""
    table = tables.evaluate(catalog, id)
    view = _View(catalog, table, language)
    separator = "；" if language == "zh" else "; "
    return {row.claim: separator.join(view.cells_in_words(row)) for row in table.rows if row.claim}


class _View:
    def __init__(self, catalog, table, language, marks=None):
        self.catalog, self.table, self.language, self.marks = catalog, table, language, marks
        # Kinds of comparisons that need a word, as the group has another one, too.
        kinds = {catalog.comparisons[row.selection["comparison"]].kind for row in table.rows if "comparison" in row.selection}
        self.several = kinds if len(kinds) > 1 else ()

    def label(self, id):
        return words_of(self.catalog.terms[id], self.language)

    def interactive(self):
        """The words that table.js needs to make a long table searchable and sortable; without it all rows stand there."""
        if not self.table.record.interactive:
            return ""
        words = (("filter", "label.filter_rows"), ("shown", "label.shown_rows"), ("sort", "label.sort_by"))
        return "".join(' data-%s="%s"' % (name, escape(self.label(term))) for name, term in words)

    def column(self, index):
        """The position of a heading's cells, for table.js."""
        return ' data-column="%d"' % index if self.table.record.interactive else ""

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
        """Below the table: its sources, its downloads, its text for copying, and the record it comes from."""
        colon = "：" if self.language == "zh" else ": "
        id = escape(self.table.id)
        sources = ("、" if self.language == "zh" else "; ").join(
            '<a href="%sreferences.html#ref.%s">%s</a>' % (self.marks.up, escape(source), escape(self.catalog.references[source].short))
            for source in self.table.record.source
        )
        offers = [
            '<a href="%sdata/tables/%s.%s" download>%s</a>' % (self.marks.root, id, ending, ending.upper()) for ending in ("csv", "json")
        ]
        offers.append('<button type="button" data-copy="markdown.%s" hidden>%s</button>' % (id, escape(self.label("label.copy_markdown"))))
        offers.append('<a href="%srecords.html#record.tables.%s">%s</a>' % (self.marks.up, id, escape(self.label("label.record"))))
        text = escape(markdown(self.catalog, self.table.id, self.language)).replace("\n", "&#10;")
        return (
            '<figcaption class="table-foot" data-search-exclude><span class="sources">%s%s%s</span> <span class="offers">%s</span>'
            '<textarea id="markdown.%s" hidden readonly>%s</textarea></figcaption>'
        ) % (escape(self.label("label.source")), colon, sources, " ".join(offers), id, text)

    def empty(self):
        """The one row of a table without any."""
        rest = " ".join("<td>—</td>" for _ in self.table.headings[1:])
        return '<tr><th scope="row">%s</th> %s</tr>' % (escape(self.label("label.no_rows")), rest)

    # --- headings

    def name_of(self, heading):
        _, _, field = heading.id.partition(":")
        if not field:
            return self.label(heading.id)
        if field in self.catalog.states:
            return words(self.catalog.states[field].name, self.language)
        return self.label("column." + field)

    def heading(self, heading):
        name = self.name_of(heading)
        unit = unit_of(heading.kind, heading.unit) if heading.kind else ""
        return escape(name), ' <span class="unit">%s</span>' % escape(unit).replace("/", "/<wbr>") if unit else ""

    def head(self):
        grouped = any(heading.across for heading in self.table.headings)
        first, second, previous = [], [], None
        for index, heading in enumerate(self.table.headings):
            name, unit = self.heading(heading)
            # The first column heads its rows, also where it is a number, such as a world size.
            numeric = ' class="number"' if index and self.numeric(heading) else ""
            if not heading.across:
                span = ' rowspan="2"' if grouped else ""
                first.append('<th scope="col"%s%s%s>%s%s</th>' % (span, numeric, self.column(index), name, unit))
                continue
            if heading.id != previous:
                count = sum(1 for other in self.table.headings if other.id == heading.id)
                first.append('<th scope="colgroup" colspan="%d" class="group">%s%s</th>' % (count, name, unit))
                previous = heading.id
            second.append('<th scope="col" class="number"%s>%s</th>' % (self.column(index), escape(self.across(heading))))
        rows = "<tr>%s</tr>" % " ".join(first)
        return rows + (" <tr>%s</tr>" % " ".join(second) if grouped else "")

    def across(self, heading):
        symbols = {"world_size": "W", "context": "S", "batch": "B", "sequence_length": "S", "micro_batch": "B", "virtual": "v"}
        return ", ".join(
            self.plain_name(axis, value) if quantities.AXES[axis] else "%s = %s" % (symbols.get(axis, axis), bare(value, "count"))
            for axis, value in heading.across.items()
        )

    def plain_name(self, axis, choice):
        """The name of a record, as text."""
        name = quantities.selected(self.catalog, axis, choice).name
        return name if isinstance(name, str) else words(name, self.language)

    def numeric(self, heading):
        return bool(heading.kind) or heading.id in quantities.QUANTITIES

    # --- cells

    def row(self, row):
        cells = []
        for position, (heading, cell) in enumerate(zip(self.table.headings, row.cells)):
            shown = self.cell(heading, cell, row)
            if position == 0:
                mark = self.marks.claim_mark(row.claim, row.claim) + " " if row.claim else ""
                numeric = ' class="number"' if heading.id == "figure:figure" else ""
                cells.append('<th scope="row"%s>%s%s</th>' % (numeric, mark, shown))
            else:
                kind = ' class="number"' if self.numeric(heading) else ' class="short"' if heading.id.endswith("_cell:unit") else ""
                cells.append("<td%s%s>%s</td>" % (kind, self.exact(cell), shown))
        return "<tr%s>%s</tr>" % (' class="total"' if row.total else "", " ".join(cells))

    def exact(self, cell):
        """The full value of a number, by which table.js sorts."""
        value = cell.value if isinstance(cell, (quantities.Result, published.InUnit)) else cell
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return ' data-value="%s"' % value if number and self.table.record.interactive else ""

    def cell(self, heading, cell, row):
        """The HTML of one cell."""
        if row.total and heading is self.table.headings[0]:
            return escape(self.label("total"))
        if isinstance(cell, quantities.Result):
            return self.result(heading, cell)
        if isinstance(cell, published.InUnit):
            return self.number(cell.result, escape(cell.text)) if cell.result else escape(cell.text)
        axis, _, field = heading.id.partition(":")
        if cell is None:
            strategy = self.catalog.strategies.get(row.selection.get("strategy"))
            if strategy and strategy.shards is None and (self.numeric(heading) or field == "per_rank"):
                return escape(words(strategy.not_modelled, self.language))
            if heading.id == "comparison:cause":
                one = self.catalog.comparisons[row.selection["comparison"]]
                return escape(self.label("label.unexplained")) if one.difference else "—"
            if "accelerator" in row.selection:  # a fact that somebody may have published: an empty cell would read as zero
                return escape(self.label("no-source"))
            return "" if row.total else "—"
        if heading.id == "recipe:weight_format" and self.catalog.adapters[self.catalog.recipes[row.selection["recipe"]].adapters].r == 0:
            return "—"  # no base is frozen
        if (axis, field) in tables.COMPARED:
            return escape(bare(cell, heading.kind))
        return self.field(axis, field, cell)

    def result(self, heading, cell):
        if heading.id == "figure:figure":
            return self.number(cell, escape(phrase(cell.value, cell.kind)))
        shown = self.number(cell, escape(bare(cell.value, cell.kind, heading.unit)))
        has_gib = any(other.id == heading.id and other.unit == "GiB" for other in self.table.headings)
        if cell.kind == "bytes" and heading.unit == "GB" and cell.value and not has_gib:
            shown += ' <span class="gib">%s GiB</span>' % escape(amount(cell.value, "GiB"))
        return shown

    def number(self, result, shown):
        return self.marks.number(result, shown) if self.marks else shown

    def field(self, axis, field, cell):
        if not field:
            return self.name(axis, cell)
        if isinstance(cell, published.Where) and self.marks:
            return '<a href="%sreferences.html#ref.%s">%s</a>' % (self.marks.up, escape(cell.source), escape(words(cell, self.language)))
        if hasattr(cell, "zh"):
            return escape(words(cell, self.language))
        if isinstance(cell, bool):
            return escape(self.label("label.true" if cell else "label.false"))
        if axis == "recipe" or axis == "run" and field in ("model", "ledger", "strategy"):
            return self.name(field, cell)
        if axis == "comparison" and field == "cause":
            return self.record("differences", cell, escape(words(self.catalog.differences[cell].name, self.language)))
        if axis == "comparison" and field == "moment":
            return escape(" ≠ ".join(self.label(moment) for moment in cell))
        if axis == "run" and field == "phase":
            return escape(self.label(cell))
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
            return katex.render(cell)
        if field == "keeps":
            names = dict.fromkeys(self.label("part." + part) for part in cell)
            return escape(("、" if self.language == "zh" else ", ").join(names) or self.label("none"))
        if field == "gathers":
            return escape(self.label("gathers." + cell))
        if field.endswith("_gib"):
            return escape(places(cell, 2))
        return escape(bare(cell, "bytes per parameter") if isinstance(cell, (int, float)) else cell)

    def record(self, file, id, shown):
        """A link to a record."""
        return '<a href="%srecords.html#record.%s.%s">%s</a>' % (self.marks.up, file, escape(id), shown) if self.marks else shown

    def name(self, axis, choice):
        record = quantities.selected(self.catalog, axis, choice)
        if axis == "comparison":
            kind = "" if record.kind not in self.several else " " + escape(self.label("observed." + record.kind))
            return self.record("observations", record.observation, "<code>%s</code>" % escape(record.observation)) + kind
        name = getattr(record, "name", None)
        if name is None:
            return escape(bare(choice, "count") if quantities.AXES[axis] is None else choice)
        return escape(name if isinstance(name, str) else words(name, self.language))

    def cell_in_markdown(self, heading, cell, row):
        axis, _, field = heading.id.partition(":")
        if field in ("symbol", "per_rank") and cell is not None or (field == "figure" and isinstance(cell, str)):
            return "$%s$" % cell.replace("|", r"\vert ")
        if isinstance(cell, quantities.Result) and heading.id != "figure:figure":
            return bare(cell.value, cell.kind, heading.unit)
        shown = self.cell(heading, cell, row)
        return escape_cell(html.unescape(re.sub(r"<[^>]+>", "", shown)))

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


def words_of(term, language):
    """A term's own name."""
    return getattr(term, language)


def formula_numbers(catalog):
    """{formula: '2.1'}: the chapter's number, and the formula's place in it; a page without a number has a letter, 'A.1'."""
    numbers, counts, letters = {}, {}, {}
    for id, record in catalog.formulas.items():
        counts[record.chapter] = counts.get(record.chapter, 0) + 1
        number = catalog.chapters[record.chapter].number or letters.setdefault(record.chapter, chr(ord("A") + len(letters)))
        numbers[id] = "%s.%d" % (number, counts[record.chapter])
    return numbers
