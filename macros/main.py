"""mkdocs-macros' entry: registers the macros, nothing else.

A file, not a package: mkdocs-macros executes it anew for each build, and the lines below make it read changed modules,
so that `mkdocs serve` follows an edit of data/, byteledger/ or macros/.
"""

import os
import shutil
import sys
from pathlib import Path

_KEPT = ("macros.katex", "macros.captions", "macros.flow")  # Markdown holds these; a change of them needs a restart
for _name in [name for name in sys.modules if name.split(".")[0] in ("byteledger", "macros") and name not in ("macros", *_KEPT)]:
    del sys.modules[_name]
    # `from macros import x` would find the old module as an attribute of the package.
    _package, _, _module = _name.rpartition(".")
    if _package in sys.modules:
        vars(sys.modules[_package]).pop(_module, None)

from mkdocs.exceptions import PluginError  # noqa: E402

from byteledger import catalog as catalogs  # noqa: E402
from macros import citations, downloads, katex, pages  # noqa: E402
from macros.marks import Marks  # noqa: E402


ROOT = Path(catalogs.__file__).resolve().parent.parent


def define_env(env):
    """Reads and checks data/ and the pages, then offers the macros."""
    language = env.conf["extra"]["language"]
    if os.environ.get("SITE_URL"):
        root = os.environ["SITE_URL"].rstrip("/") + "/"
        env.conf["site_url"] = root if language == "zh" else root + language + "/"
    try:
        catalog = catalogs.load()
    except catalogs.DataError as error:
        raise PluginError("data/ is not sound:\n%s" % error) from error
    # scripts/build.py has checked the pages just before, both languages at once.
    faults = [] if os.environ.get("BYTELEDGER_PAGES_CHECKED") else pages.faults(catalog)
    if faults:
        raise PluginError("the pages are not sound:\n%s" % "\n".join(map(str, faults)))

    env.conf["extra"].update(citations.page_data(catalog, language))
    marks = Marks(catalog, language, env)
    for name in pages.NAMES:
        env.macro(getattr(marks, name), name)


def on_post_build(env):
    """Lays in the downloads, and what other projects publish: KaTeX's files, and the shim for search from file://."""
    site = Path(env.conf["site_dir"])
    catalog, language = catalogs.load(), env.conf["extra"]["language"]
    downloads.write_twins(catalog, language, site)
    downloads.write_sources(catalog, language, site)
    if language == "zh":  # once, at the root of the merged site
        downloads.write_data(catalog, site, os.environ.get("SITE_URL", ""))
    katex.copy_assets(site)
    for name in ("iframe-worker.js", "LICENSE"):
        target = site / "assets" / "iframe-worker" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "third_party" / "iframe-worker" / name, target)
