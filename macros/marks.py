"""The macros: what a page writes between <%= and %>."""

import json
import re

from byteledger import quantities
from byteledger.arguments import ArgumentError
from byteledger.records import FILES
from byteledger.revision import revision

from . import katex, pages, tables
from .text import attribute, derivation, escape, escape_inline, phrase, steps, words


class Marks:
    """The macros of one language, over one Catalog. A method per macro."""

    def __init__(self, catalog, language, env):
        self.catalog, self.language, self._env = catalog, language, env
        self._numbers = tables.formula_numbers(catalog)
        self._templates = {}  # the words of a claim stand in the index and among what is attributed

    # --- where things are

    @property
    def up(self):
        """The way from the page to the root of its language."""
        return self._up

    @property
    def root(self):
        """The way from the page to the root of the whole site."""
        return self._up + ("" if self.language == "zh" else "../")

    @property
    def _here(self):
        file = getattr(self._env.page, "file", None)
        return file.src_uri if file else self._env.page.path

    @property
    def _up(self):
        return "../" * self._here.count("/")

    def _href(self, page, anchor=""):
        """A link to a page of this language as the built site names it."""
        return "%s%s.html%s" % (self._up, page, "#" + anchor if anchor else "")

    def _label(self, id):
        return tables.words_of(self.catalog.terms[id], self.language)

    def _colon(self):
        return "：" if self.language == "zh" else ": "

    def _list(self, items):
        return ("、" if self.language == "zh" else ", ").join(items)

    def anchor(self, id):
        """Keeps a published id alive at the place where its content went."""
        return '<span id="%s" class="kept-anchor"></span>' % escape(id)

    # --- claims

    def claim(self, id):
        """The mark of a claim: its evidence tag in a word, and its permalink."""
        return self.claim_mark(id, id)

    def claim_mark(self, id, anchor=None, href=None):
        claim = self.catalog.claims[id]
        title = " · ".join([self._label(claim.tag), id] + [self.catalog.references[r].short for r in claim.references])
        return '<a class="claim claim--%s"%s href="%s" title="%s" data-tag="%s" data-references="%s" data-search-exclude>%s</a>' % (
            claim.tag,
            ' id="%s"' % attribute(anchor) if anchor else "",
            attribute(href or "#" + id),
            attribute(title),
            attribute(self._label(claim.tag)),
            attribute(" ".join(claim.references)),
            attribute(self._label("short." + claim.tag)),
        )

    def evidence_tags(self):
        """The five tags as a table: what each is called, what it means, how many claims carry it."""
        rows = []
        for tag in ("docx", "external", "estimate", "limit", "measured"):
            count = sum(claim.tag == tag for claim in self.catalog.claims.values())
            rows.append(
                '<tr><th scope="row" id="tag.%s"><span class="claim claim--%s">%s</span> %s</th> <td>%s</td> <td class="number">%d</td></tr>'
                % (
                    tag,
                    tag,
                    escape(self._label("short." + tag)),
                    escape(self._label(tag)),
                    escape(words(self.catalog.terms[tag].definition, self.language)),
                    count,
                )
            )
        return (
            '<figure class="table" id="table.evidence-tags"><div class="table-scroll" role="region" tabindex="0" aria-labelledby="caption.evidence-tags">'
            '<table class="data"><caption id="caption.evidence-tags"><a class="permalink" href="#table.evidence-tags" title="%s">%s</a> <span class="title">%s</span></caption>'
            '<thead><tr><th scope="col">%s</th><th scope="col">%s</th><th scope="col" class="number">%s</th></tr></thead><tbody>%s</tbody></table></div></figure>'
            % (
                escape(self._label("label.permalink")),
                escape(self._label("label.table")),
                escape(self._label("label.evidence_tags")),
                escape(self._label("label.tag")),
                escape(self._label("column.meaning")),
                escape(self._label("label.claims_count")),
                "".join(rows),
            )
        )

    def claims_index(self):
        """Every claim by chapter, in its own words, with what it rests on."""
        out = [self._filter()]
        statements = self.statements()
        for chapter, record in self.catalog.chapters.items():
            ids = [id for id in self.catalog.claims if self.catalog.chapter_of_claim(id) == chapter]
            if not ids:
                continue
            out.append("## %s { #claims.%s }" % (self._chapter_title(chapter), chapter))
            out.extend(self._entry(id, statements[id], chapter) for id in ids)
        return "\n\n".join(out)

    def _chapter_title(self, chapter):
        record = self.catalog.chapters[chapter]
        number = "%d. " % record.number if record.number else ""
        return number + escape_inline(words(record.title, self.language))

    def _filter(self):
        def options(pairs):
            everything = '<option value="">%s</option>' % escape(self._label("label.all"))
            return everything + "".join('<option value="%s">%s</option>' % (escape(v), escape(t)) for v, t in pairs)

        tags = [(tag, self._label(tag)) for tag in ("docx", "external", "estimate", "limit", "measured")]
        chapters = [
            (chapter, words(record.title, self.language)) for chapter, record in self.catalog.chapters.items() if record.claims
        ]
        cited = sorted({r for claim in self.catalog.claims.values() for r in claim.references})
        references = [(id, self.catalog.references[id].short) for id in cited]
        controls = "".join(
            '<label>%s <select data-filter="%s">%s</select></label>' % (escape(self._label("label." + name)), name, options(pairs))
            for name, pairs in (("tag", tags), ("chapter", chapters), ("references", references))
        )
        return '<form class="claims-filter" aria-label="%s" hidden data-search-exclude>%s<output>%d</output> %s</form>' % (
            escape(self._label("label.filter")),
            controls,
            len(self.catalog.claims),
            escape(self._label("label.shown")),
        )

    def _entry(self, id, statement, chapter):
        claim = self.catalog.claims[id]
        facts = []

        def fact(label, items):
            if items:
                facts.append("<span>%s%s%s</span>" % (escape(self._label(label)), self._colon(), self._list(items)))

        fact("label.chapter_of_source", [escape(self._label(claim.chapter_of_source))] if claim.chapter_of_source else [])
        fact("label.references", [self._reference_link(r) for r in claim.references])
        fact(
            "label.rests_on",
            [
                '<a href="%s">%s</a>' % (self._href(self.catalog.formulas[f].chapter, "eq." + f), escape(words(self.catalog.formulas[f].name, self.language)))
                for f in claim.rests_on
            ],
        )
        fact("label.basis", [escape(self._label(claim.basis))] if claim.basis else [])
        fact("label.settled_by", [escape(self._label(claim.settled_by))] if claim.settled_by else [])
        fact("label.verified_by", ["<code>%s</code>" % escape(t.split("/", 1)[1]) for t in claim.verified_by])
        measured = ['<a href="%s">%s</a>' % (self._href("records", "record.observations." + o), escape(o)) for o in claim.observations]
        measured += [
            '<a href="%s">%s</a>' % (self._href("measurement", "table.comparisons-" + group), escape(words(self.catalog.comparison_groups[group].name, self.language)))
            for group in claim.comparisons
        ]
        fact("label.measured_in", measured)
        return (
            '<div class="claim-entry" id="claim.%s" data-tag="%s" data-chapter="%s" data-references="%s" markdown="1">\n\n'
            "%s <a class=\"claim-id\" href=\"%s\"><code>%s</code></a>\n\n%s\n\n"
            '<p class="claim-facts">%s</p>\n\n</div>'
        ) % (
            escape(id),
            claim.tag,
            chapter,
            escape(" ".join(claim.references)),
            self.claim_mark(id, href="#claim." + id),
            escape(self._href(chapter, id)),
            escape(id),
            statement,
            " ".join(facts),
        )

    def statements(self):
        """{claim: its words as Markdown, macros rendered, links as from the page that is being rendered}."""
        found = {}
        for name, page in pages.read(self.language).items():
            for id, (_, text) in page.claims.items():
                found[id] = self._moved(self._rendered(text), name)
            for call in page.calls:
                if call.name == "table":
                    for id, text in tables.row_words(self.catalog, call.first, self.language).items():
                        found[id] = escape_inline(text)
        return found

    def _rendered(self, text):
        if "<%" not in text:
            return text
        if text not in self._templates:
            self._templates[text] = self._env.env.from_string(text)
        return self._templates[text].render(self._env.variables)

    def _moved(self, text, origin):
        """Markdown links of a text from another page, as this page must write them."""

        def link(match):
            page, anchor = match[2] or origin, match[3] or ""
            return "%s%s%s%s)" % (match[1], self._up, page, anchor)

        return re.sub(r"(\]\()(?![a-z]+:|\.\./)([\w./-]+\.md)?(#[^)\s]*)?\)", link, text)

    def attributed(self):
        """All that is attributed to the source document, by its chapters."""
        statements = self.statements()
        out = []
        for term, record in self.catalog.terms.items():
            if record.kind != "chapter-of-source":
                continue
            ids = [id for id, claim in self.catalog.claims.items() if claim.chapter_of_source == term]
            if not ids:
                continue
            out.append("## %s { #attributed.%s }" % (escape_inline(self._label(term)), term.removeprefix("source-")))
            out.append(
                "\n".join("- %s [`%s`](%s%s.md#%s)" % (statements[id], id, self._up, self.catalog.chapter_of_claim(id), id) for id in ids)
            )
        return "\n\n".join(out)

    # --- numbers, formulas, tables

    def value(self, quantity, unit=None, **selection):
        """A number with its unit, linked to the section that derives it; the formula with its values in its title."""
        result = quantities.evaluate(self.catalog, quantity, selection)
        if result.value is None:
            raise ArgumentError("value", quantity, "gives no number for %s" % ", ".join("%s = %s" % item for item in selection.items()))
        return self.number(result, escape_inline(phrase(result.value, result.kind, unit)))

    def number(self, result, shown):
        """A number as a link to its formula, with its derivation for book.js."""
        # JSON is full of double quotes: single ones around it keep the page a fifth smaller.
        return '<a class="value" href="%s" title="%s" data-steps=\'%s\' data-source="%s">%s</a>' % (
            attribute(self._href(*self._home(result.id))),
            attribute(derivation(result)),
            attribute(self._steps(result)).replace("&quot;", '"'),
            attribute("; ".join(self.catalog.references[id].short for id in self._sources(result))),
            shown,
        )

    def _sources(self, result):
        """The sources behind a number: of its formula, and of the records that went in."""
        formula = self.catalog.formulas.get(result.id) or self.catalog.formulas.get(HOMES.get(result.id))
        found = list(formula.source) if formula else []
        for origin in result.origins.values():
            if isinstance(origin, quantities.Result):
                found.extend(self._sources(origin))
            elif origin:
                found.extend(getattr(getattr(self.catalog, origin[0])[origin[1]], "source", ()))  # an observation is one itself
        return list(dict.fromkeys(found))

    def _steps(self, result):
        """The derivation for book.js: [name, right side, value, link to the record or nothing] of each step, as JSON."""
        return json.dumps(
            [
                [name, right, value, self._href("records", "record.%s.%s" % origin) if origin else "", origin[1] if origin else ""]
                for name, right, value, origin in steps(result)
            ],
            ensure_ascii=False,
            separators=(",", ":"),
        )

    def _home(self, quantity):
        formula = self.catalog.formulas.get(quantity) or self.catalog.formulas.get(HOMES.get(quantity))
        if formula:
            return formula.chapter, "eq." + (quantity if quantity in self.catalog.formulas else HOMES[quantity])
        return SECTIONS[quantity.split(".")[0]]

    def formula(self, id):
        """A numbered formula with its permalink."""
        record = self.catalog.formulas[id]
        return (
            '<div class="formula" id="eq.%s" role="group" aria-label="%s">%s'
            '<a class="formula-number permalink" href="#eq.%s" title="%s">(%s)</a></div>'
        ) % (
            escape(id),
            escape(self._label("label.formula") + " " + self._numbers[id] + " " + words(record.name, self.language)),
            katex.render(record.tex.strip(), display=True),
            escape(id),
            escape(self._label("label.permalink")),
            self._numbers[id],
        )

    def table(self, id):
        """A table of tables.yaml."""
        return tables.render(self.catalog, id, self)

    def tables_index(self):
        """Every table with a link to where it stands."""
        where = {
            call.first: name.removesuffix(".md")
            for name, page in pages.read(self.language).items()
            for call in page.calls
            if call.name == "table" and name != "index.md"
        }
        return "\n".join(
            "- [%s](%s%s.md#table.%s)%s%s"
            % (
                escape_inline(words(record.title, self.language)),
                self._up,
                where[id],
                id,
                "：" if self.language == "zh" else ": ",
                self._chapter_title(where[id]),
            )
            for id, record in self.catalog.tables.items()
            if id in where
        )

    # --- words and sources

    def term(self, id, text=None):
        """A term linked to its glossary entry, with the definition at hand."""
        record = self.catalog.terms[id]
        return '<a class="term" href="%s" title="%s">%s</a>' % (
            attribute(self._href("glossary", "term." + id)),
            attribute(words(record.definition, self.language)),
            escape_inline(text or re.split("[（(]", self._label(id))[0].strip()),
        )

    def glossary(self):
        """The glossary as a list of definitions."""
        entries = []
        for id, record in self.catalog.terms.items():
            if record.kind == "glossary":
                other = tables.words_of(record, "en" if self.language == "zh" else "zh")
                aside = ' <span class="other-language" lang="%s">%s</span>' % ("en" if self.language == "zh" else "zh-CN", escape(other))
                entries.append(
                    '<dt id="term.%s"><a class="permalink" href="#term.%s" title="%s">%s</a>%s</dt> <dd>%s</dd>'
                    % (
                        escape(id),
                        escape(id),
                        escape(self._label("label.permalink")),
                        escape(self._label(id)),
                        aside if other != self._label(id) else "",
                        escape(words(record.definition, self.language)),
                    )
                )
        return '<dl class="glossary">%s</dl>' % " ".join(entries)

    def cite(self, id):
        """A source by its short name, linked to its entry in the references."""
        return self._reference_link(id, escape_inline(self.catalog.references[id].short))

    def _reference_link(self, id, shown=None):
        reference = self.catalog.references[id]
        return '<a class="cite" href="%s" title="%s">%s</a>' % (
            attribute(self._href("references", "ref." + id)),
            attribute(reference.title),
            shown or escape(reference.short),
        )

    def reference_list(self, which):
        """The sources: `whitepaper` the ten of the whitepaper, `data` the others; each with the claims that rest on it."""
        out = []
        for id, reference in self.catalog.references.items():
            group = "source" if reference.type == "source" else "whitepaper" if reference.whitepaper else "data"
            if group != which:
                continue
            ids = [c for c, claim in self.catalog.claims.items() if id in claim.references]
            title = escape(reference.title)
            if reference.url:
                title = '<a href="%s" rel="noopener">%s</a>' % (escape(reference.url), title)
            year = " (%d)" % reference.year if reference.year else ""
            claims = self._list(
                '<a href="%s"><code>%s</code></a>' % (escape(self._href(self.catalog.chapter_of_claim(c), c)), escape(c)) for c in ids
            )
            out.append(
                '<div class="reference" id="ref.%s"><p class="reference-title"><a class="permalink" href="#ref.%s" title="%s">#</a> '
                '<cite>%s</cite>%s</p><p class="reference-by">%s</p><p>%s · %s%s%s · %s <time datetime="%s">%s</time></p><p class="claim-facts">%s</p></div>'
                % (
                    escape(id),
                    escape(id),
                    escape(self._label("label.permalink")),
                    title,
                    year,
                    escape(", ".join(reference.authors)),
                    escape(self._label("type." + reference.type)),
                    escape(self._label("label.use")),
                    self._colon(),
                    escape(words(reference.use, self.language)),
                    escape(self._label("label.accessed")),
                    reference.accessed,
                    reference.accessed,
                    (escape(self._label("label.claims_resting")) + self._colon() + claims) if ids else escape(self._label("label.no_claims")),
                )
            )
        return "\n\n".join(out)


    # --- data

    def download(self, path, text=None):
        """A link to a file that the build writes: data/… stands once, at the root; llms.txt in each language."""
        up = self.root if path.startswith("data/") else self.up
        return '<a class="download" href="%s%s">%s</a>' % (up, escape(path), escape_inline(text or path.rsplit("/", 1)[-1]))

    def revision(self):
        """The data revision and its date."""
        return "<code>%s</code>" % escape(revision()) + (" (%s)" if self.language == "en" else "（%s）") % revision().date

    def records(self):
        """Every record of data/ as it is written, file by file, each with its permalink."""
        out = []
        for file in FILES:
            records = []
            for id in getattr(self.catalog, file):
                line, text = self.catalog.source(file, id)
                anchor = escape("record.%s.%s" % (file, id))
                # Entities for line breaks: a blank line would end the block of HTML for Markdown.
                records.append(
                    '<div class="record" id="%s"><a class="permalink" href="#%s" title="%s">data/%s.yaml:%d</a><pre><code>%s</code></pre></div>'
                    % (anchor, anchor, escape(self._label("label.permalink")), file, line, escape(text).replace("\n", "&#10;"))
                )
            out.append("## %s.yaml { #records.%s }" % (file, file))
            out.append('<div class="records"><bl-records data-search-exclude>%s</bl-records></div>' % "".join(records))
        return "\n\n".join(out)

    def changes(self):
        """The changelog of numbers."""
        out = []
        for id, change in self.catalog.changes.items():
            out.append("## %s { #change.%s }" % (escape_inline(change.date), id))
            out.append(escape_inline(words(change.what, self.language)))
            out.append("%s%s%s" % (self._label("label.why"), self._colon(), escape_inline(words(change.why, self.language))))
            moved = "\n".join("- `%s`" % line.replace("`", "'") for line in change.moved)
            out.append("%s%s%s" % (self._label("label.moved"), self._colon(), "\n\n" + moved if moved else self._label("none")))
        return "\n\n".join(out)


# Quantities that have no formula of their own: the formula that shows where they come from.
HOMES = {
    "ledger.weights_bytes": "ledger.weights",
    "ledger.bytes_per_parameter": "ledger.persistent",
    "ledger.optimizer": "ledger.persistent",
    "distributed.weights": "distributed.persistent",
    "distributed.gradients": "distributed.persistent",
    "distributed.optimizer": "distributed.persistent",
    "distributed.shard_group": "distributed.persistent",
    "distributed.largest_parameters": "distributed.persistent",
    "distributed.gathered_weights": "ledger.weights",
    "kv_cache.largest_batch": "kv_cache.total",
    "kv_cache.largest_context": "kv_cache.total",
    "kv_cache.fixed_bytes_per_sequence": "kv_cache.total",
    "kv_cache.multi_head": "kv_cache.saving",
    **dict.fromkeys(("activations.norms", "activations.attention", "activations.mlp", "activations.other"), "activations.layer"),
    **dict.fromkeys(("activations.gpt_layer", "activations.gpt_scores", "activations.selective_saving"), "activations.megatron_tensor_parallel"),
    "activations.layers": "activations.layer",
    "activations.checkpoints": "activations.with_checkpointing",
    "activations.freed": "activations.with_checkpointing",
    **dict.fromkeys(("loss.saved", "loss.logits", "loss.backward"), "loss.peak"),
    **dict.fromkeys(("sharding.deepspeed_estimate_zero2", "sharding.deepspeed_estimate_zero3"), "sharding.deepspeed_estimate"),
    "sharding.fsdp2_to_ideal": "sharding.fsdp2_stored",
    "sharding.fsdp2_last_rank": "sharding.fsdp2_persistent",
    "sharding.deepspeed_after_backward": "sharding.deepspeed_at_rest",
    **dict.fromkeys(("parallel.%s_stage_states" % end for end in ("first", "last")), "sharding.distributed_optimizer"),
    **dict.fromkeys(("parallel.dense_parameters", "parallel.expert_parameters"), "parallel.expert_states"),
    "parallel.last_stage_layers_in_flight": "parallel.first_stage_layers_in_flight",
    **dict.fromkeys(("offload.zero3_device", "offload.zero3_parameters_device", "offload.zero3_parameters_host"), "offload.zero3_host"),
    "offload.zero2_device": "offload.zero2_host",
    **dict.fromkeys(("collectives.paper_volume", "collectives.between"), "collectives.inside"),
    **dict.fromkeys(("step.states", "step.peak_to_states", *("step.most." + term for term in ("activations", "loss", "gathered", "in_flight", "temporaries"))), "step.peak"),
    "optimizers.per_parameter": "optimizers.state",
    "lora.trainable_share": "lora.trainable",
    **dict.fromkeys(("lora.base", "lora.adapter_states"), "lora.persistent"),
    **dict.fromkeys(("lora.of_recipe", "lora.recipe_parameters"), "lora.over_weights"),
    "weight_formats.kept": "weight_formats.weights",
    "weight_formats.converted": "weight_formats.weights",
    "weight_formats.bytes_per_parameter": "weight_formats.weights",
}

# Quantities whose formula is told in words: the section that tells it.
SECTIONS = {
    "activations": ("activations", "activations.layer"),
    "loss": ("activations", "activations.logits"),
    "observed": ("measurement", "measurement.peak"),
    "parameters": ("models", "models.count"),
    "kv_cache": ("kv-cache", "kv-cache"),
    "accelerators": ("accelerators", "accelerators"),
    "parallel": ("parallel", "parallel.tensor"),
    "offload": ("offload", "offload.pinned"),
}
