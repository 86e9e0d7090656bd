"""One record of data/, or the words of one language, without reading and checking the rest.

For the command line, which answers at once: `catalog.load()` checks all of data/ and takes some ten times as long.
"""

import re
from pathlib import Path

import yaml

from . import strict_yaml
from .nearest import suggestion

DATA = Path(__file__).resolve().parent.parent / "data"
# The keys of a model's record that say something about it; all others are its configuration.
ABOUT = ("name", "checkpoint_buffers", "published_parameters", "published_seen", "counted_parameters", "repository", "note", "source")


class NoRecord(KeyError):
    """No record has the id, or it cannot be read. str() says so in words, in English; the ids nearest to it are named."""

    def __str__(self):
        return self.args[0]


def record(file, id):
    """The fields of one record as a dict. Raises NoRecord."""
    text = (DATA / (file + ".yaml")).read_text(encoding="utf-8")
    start = re.search(r"^%s:" % re.escape(id), text, re.M)
    if not start:
        known = re.findall(r"^([A-Za-z0-9][\w.-]*):", text, re.M)
        raise NoRecord("no %r in data/%s.yaml; %s" % (id, file, suggestion(id, known)))
    end = re.compile(r"^[A-Za-z0-9]", re.M).search(text, start.end())
    value, _, faults = strict_yaml.load(text[start.start() : end.start() if end else len(text)])
    if faults or not isinstance(value, dict) or not isinstance(value.get(id), dict):
        raise NoRecord("data/%s.yaml %s: cannot be read; `python -m byteledger check` says why" % (file, id))
    return value[id]


def words(language):
    """{term: its word in a language} of data/terms.yaml."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with open(DATA / "terms.yaml", encoding="utf-8") as file:
        return {id: term[language] for id, term in yaml.load(file, loader).items()}
