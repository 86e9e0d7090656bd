"""A permalink in the caption of each figure that has an id: tables of words (pymdownx caption blocks) and text flows."""

import re

from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor

from .text import escape


class _Permalinks(Postprocessor):
    pattern = re.compile(r'(<figure(?: class="flow")? id="((table|flow)\.[^"]+)">\s*<figcaption>\s*)(?:<p>(.*?)</p>|(.*?))(\s*</figcaption>)', re.S)

    def __init__(self, md, config):
        super().__init__(md)
        self.config = config

    def run(self, text):
        return self.pattern.sub(self.linked, text)

    def linked(self, match):
        head, id, kind, paragraph, words, tail = match.groups()
        return '%s<a class="permalink" href="#%s" title="%s">%s</a> <span class="title">%s</span>%s' % (
            head,
            id,
            escape(self.config["permalink_title"]),
            escape(self.config[kind]),
            paragraph or words,
            tail,
        )


class CaptionExtension(Extension):
    """Options: the words for a table, a flow and a permalink in the language of the site."""

    def __init__(self, **options):
        self.config = {"table": ["Table", ""], "flow": ["Flow", ""], "permalink_title": ["Permalink", ""]}
        super().__init__(**options)

    def extendMarkdown(self, md):
        md.postprocessors.register(_Permalinks(md, self.getConfigs()), "byteledger-captions", -90)


def makeExtension(**options):
    """Python-Markdown's entry."""
    return CaptionExtension(**options)
