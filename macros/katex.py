"""TeX to HTML at build time, with KaTeX in QuickJS: the page needs no JavaScript and no font from elsewhere.

KaTeX comes from the Python package djangocms-katex, of which only the static files are used; the engine from quickjs-ng.
Tried and dropped: math-core and latex2mathml (MathML; brackets and braces do not stretch without a math font),
markdown-katex (a 100 MB Node binary), pykatex (no style sheet or fonts).
"""

import importlib.util
import json
import re
import shutil
from functools import lru_cache
from html import unescape
from pathlib import Path

import quickjs
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor


class TexError(ValueError):
    """TeX that KaTeX refuses."""


def assets():
    """The folder of KaTeX's published files."""
    # find_spec does not run the package, which would ask for Django.
    return Path(importlib.util.find_spec("djangocms_katex").origin).parent / "static/djangocms_katex/vendor/katex"


@lru_cache
def _engine():
    context = quickjs.Context()
    context.eval((assets() / "katex.min.js").read_text(encoding="utf-8"))
    context.eval(
        "function tex(s, d) { try { return JSON.stringify({html: katex.renderToString(s,"
        " {displayMode: d, throwOnError: true, strict: 'error', output: 'htmlAndMathml'})}) }"
        " catch (e) { return JSON.stringify({error: String(e.message)}) } }"
    )
    return context


@lru_cache(maxsize=None)
def render(tex, display=False):
    """HTML (with MathML for screen readers) of one formula. Raises TexError with KaTeX's own words."""
    answer = json.loads(_engine().eval("tex(%s, %s)" % (json.dumps(tex), "true" if display else "false")))
    if "error" in answer:
        raise TexError("%s in %r" % (answer["error"], tex))
    # Material's search drops an excluded element at the first closing tag of its name; nothing inside closes this one.
    return "<bl-math data-search-exclude>%s</bl-math>" % answer["html"]


def copy_assets(site):
    """KaTeX's style sheet and woff2 fonts into site/assets/katex; the style sheet loses its older font formats."""
    target = Path(site) / "assets" / "katex"
    (target / "fonts").mkdir(parents=True, exist_ok=True)
    css = (assets() / "katex.min.css").read_text(encoding="utf-8")
    css = re.sub(r',url\(fonts/[^)]+\.(?:woff|ttf)\) format\("[a-z]+"\)', "", css)
    (target / "katex.min.css").write_text(css, encoding="utf-8")
    shutil.copy(assets() / "LICENSE", target / "LICENSE")
    for font in (assets() / "fonts").glob("*.woff2"):
        shutil.copy(font, target / "fonts" / font.name)


class _Inline(Postprocessor):
    pattern = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)

    def run(self, text):
        return self.pattern.sub(lambda m: render(unescape(m[2]).strip(), m[1] == "div"), text)


class KatexExtension(Extension):
    """Turns what pymdownx.arithmatex (generic) marks into HTML."""

    def extendMarkdown(self, md):
        md.postprocessors.register(_Inline(md), "byteledger-katex", -100)


def makeExtension(**options):
    """Python-Markdown's entry."""
    return KatexExtension(**options)
