"""Takes screenshots of built pages, to look at: python scripts/look.py [--out build/look] [--full] [PAGE…]

A page is its name without .html, with an anchor if wanted: `ledger`, `ledger#ledger.persistent`, `research/…`. Each is
taken in both languages, on a desktop and on a phone, light and dark, from site/ through file://.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import browser  # noqa: E402

PAGES = ("index", "ledger", "attention", "claims", "distributed")
LANGUAGES = {"zh": "", "en": "en/"}
WINDOWS = ({"width": 1440, "height": 900}, {"width": 390, "height": 844, "mobile": True})


def main():
    """Takes them all; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pages", nargs="*", default=PAGES, metavar="PAGE", help="default: %s" % " ".join(PAGES))
    parser.add_argument("--site", type=Path, default=ROOT / "site", help="the built site (default: site)")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "look", help="the folder for the pictures (default: build/look)")
    parser.add_argument("--full", action="store_true", help="the whole page instead of one window of it")
    options = parser.parse_args()
    names = [(name.removesuffix(".html"), anchor) for name, _, anchor in (page.partition("#") for page in options.pages)]
    for name, _ in names:
        if not (options.site / (name + ".html")).exists():
            sys.exit("%s.html is not in %s; build it with: python scripts/build.py" % (name, options.site))
    options.out.mkdir(parents=True, exist_ok=True)
    with browser.Chromium() as chromium:
        for scheme in ("light", "dark"):
            with chromium.page() as page:  # a tab for each: the theme remembers the first palette
                for name, anchor in names:
                    for language, folder in LANGUAGES.items():
                        address = (options.site.resolve() / (folder + name + ".html")).as_uri() + ("#" + anchor if anchor else "")
                        for window in WINDOWS:
                            page.open(address, scheme=scheme, **window)
                            file = re.sub(r"[^\w.-]+", "-", "-".join(filter(None, (name, anchor)))) + "-%s-%d-%s.png" % (language, window["width"], scheme)
                            print(page.screenshot(options.out / file, full=options.full), *page.errors, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
