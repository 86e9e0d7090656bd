"""One record of data/, or the words of one language, without reading and checking the rest.

For the command line, which answers at once: `catalog.load()` checks all of data/ and takes some ten times as long.
"""

import re
from pathlib import Path

from . import strict_yaml
from .nearest import suggestion

DATA = Path(__file__).resolve().parent.parent / "data"
# The keys of a model's record that say something about it; all others are its configuration.
ABOUT = ("name", "checkpoint_buffers", "published_parameters", "published_seen", "counted_parameters", "repository", "note", "source")


class NoRecord(KeyError):
    """No record has the id, or it cannot be read. str() says so in words, in English; the ids nearest to it are named."""

    def __str__(self):
        return self.args[0]


def ids(file):
    """The ids of a file's records, in its order."""
    return re.findall(r"^([A-Za-z0-9][\w.-]*):", (DATA / (file + ".yaml")).read_text(encoding="utf-8"), re.M)


def record(file, id):
    """The fields of one record as a dict. Raises NoRecord."""
    text = (DATA / (file + ".yaml")).read_text(encoding="utf-8")
    start = re.search(r"^%s:" % re.escape(id), text, re.M)
    if not start:
        raise NoRecord("no %r in data/%s.yaml; %s" % (id, file, suggestion(id, ids(file))))
    end = re.compile(r"^[A-Za-z0-9]", re.M).search(text, start.end())
    value, _, faults = strict_yaml.load(text[start.start() : end.start() if end else len(text)])
    if faults or not isinstance(value, dict) or not isinstance(value.get(id), dict):
        raise NoRecord("data/%s.yaml %s: cannot be read; `python -m byteledger check` says why" % (file, id))
    return value[id]


class Words(dict):
    """{term: its word in one language} of data/terms.yaml, each read when it is asked for."""

    def __init__(self, language):
        dict.__init__(self)
        self._language, self._text = language, (DATA / "terms.yaml").read_text(encoding="utf-8")

    def __missing__(self, id):
        line = re.search(r"^%s: \{.*\}$" % re.escape(id), self._text, re.M)
        if not line:
            raise NoRecord("data/terms.yaml has no label %r on one line" % id)
        self[id] = strict_yaml.load(line[0])[0][id][self._language]
        return self[id]
