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


_ID = r"^([A-Za-z0-9][\w.-]*):"  # the key of a record, at the beginning of its first line


class Named:
    """A record as attributes, with its id, which the record itself does not hold; a key that it leaves out is None."""

    def __init__(self, id, fields):
        self.__dict__.update(fields)
        self.id = id

    @classmethod
    def of(cls, records, id):
        """The record of an id among those that were read already."""
        return cls(id, dict(records[id]))

    def __getattr__(self, name):
        return None


class NoRecord(KeyError):
    """No record has the id, or it cannot be read. str() says so in words, in English; the ids nearest to it are named."""

    def __str__(self):
        return self.args[0]


def ids(file):
    """The ids of a file's records, in its order."""
    return re.findall(_ID, (DATA / (file + ".yaml")).read_text(encoding="utf-8"), re.M)


def config(model):
    """The configuration in the fields of a model's record: all but those that say something about it."""
    return {key: value for key, value in model.items() if key not in ABOUT}


def records(file):
    """{id: fields} of all records of a file, which is read once. Raises NoRecord."""
    text = (DATA / (file + ".yaml")).read_text(encoding="utf-8")
    return {id: _found(text, file, id) for id in re.findall(_ID, text, re.M)}


def record(file, id):
    """The fields of one record as a dict. Raises NoRecord."""
    return _found((DATA / (file + ".yaml")).read_text(encoding="utf-8"), file, id)


def _found(text, file, id):
    start = re.search(r"^%s:" % re.escape(id), text, re.M)
    if not start:
        raise NoRecord("no %r in data/%s.yaml; %s" % (id, file, suggestion(id, re.findall(_ID, text, re.M))))
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
