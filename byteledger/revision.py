"""What exactly was cited: the version, and a hash of the data and the formulas behind every number.

The hash depends on content alone: not on the machine, the clock, line endings or the order in which files are listed.
"""

import hashlib
from functools import lru_cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
# The modules whose text decides a number. A change of any of them is a change of revision.
FORMULAS = (
    "units", "parameters", "architecture", "class_defaults", "hf_config", "kv_cache", "weight_formats", "ledger", "activations", "attention", "distributed",
    "estimation", "quantities", "tables",
)  # fmt: skip


class Revision:
    """A version, its date and the hash of what it holds."""

    def __init__(self, title, authors, version, date, hash):
        self.title, self.authors, self.version, self.date, self.hash = title, authors, version, date, hash

    def __str__(self):
        return "%s+%s" % (self.version, self.hash)


@lru_cache(maxsize=8)
def revision(root=ROOT):
    """The Revision of a checkout. CITATION.cff is the only place of title, authors and version."""
    citation = yaml.safe_load((Path(root) / "CITATION.cff").read_text(encoding="utf-8"))
    return Revision(
        citation["title"],
        [author["name"] for author in citation["authors"]],
        str(citation["version"]),
        str(citation["date-released"]),
        content_hash(root),
    )


def content_hash(root=ROOT):
    """The first twelve hexadecimal digits of the SHA-256 over names and text of data/*.yaml and the formula modules."""
    root = Path(root)
    files = sorted((root / "data").glob("*.yaml")) + [root / "byteledger" / (name + ".py") for name in sorted(FORMULAS)]
    files += sorted((root / "byteledger" / "families").glob("*.py"))
    digest = hashlib.sha256()
    for path in files:
        text = path.read_text(encoding="utf-8-sig").replace("\r\n", "\n")
        digest.update(("%s\n%d\n" % (path.name, len(text))).encode())
        digest.update(text.encode())
    return digest.hexdigest()[:12]


# The version alone, for the package's metadata.
VERSION = revision().version
