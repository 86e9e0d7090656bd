"""The permanent ids of the site: python scripts/anchors.py [--site site]

Adds the ids that the built site has gained to tests/anchors.txt. None is ever taken out: people cite them.
"""

import argparse
import re
import sys
from pathlib import Path

import check_site

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "tests" / "anchors.txt"
# What the theme and the scripts use among themselves, and the labels of tables: nobody cites them.
INTERNAL = re.compile(r"__|record\.terms\.|caption\.|markdown\.|byteledger$|bl-|fn(ref)?:")


def published(site):
    """The anchors of a built site, as page#id: those that stand in both languages."""
    site = Path(site)
    found = {}
    for language, root in (("zh", site), ("en", site / "en")):
        found[language] = set()
        for path in sorted(root.rglob("*.html")):
            if path.name == "404.html" or (language == "zh" and path.is_relative_to(site / "en")):
                continue
            name = path.relative_to(root).as_posix()
            ids = check_site.parsed(path.read_text(encoding="utf-8")).ids
            found[language] |= {"%s#%s" % (name, id) for id in ids if not INTERNAL.match(id)}
    return found["zh"] & found["en"]


def listed(file=FILE):
    """The anchors of tests/anchors.txt."""
    return [line for line in file.read_text(encoding="utf-8").split("\n") if line and not line.startswith("#")] if file.exists() else []


def main():
    """Appends; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--site", type=Path, default=ROOT / "site")
    known = listed()
    gained = sorted(published(parser.parse_args().site) - set(known))
    head = "# Every published page#id, the same in both languages. Append-only: `make anchors` adds new ones, nothing takes one out.\n"
    FILE.write_text(head + "\n".join(sorted(known + gained)) + "\n", encoding="utf-8")
    print("%d anchors in %s, %d of them new" % (len(known) + len(gained), FILE.relative_to(ROOT), len(gained)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
