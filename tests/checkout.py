"""A copy of this checkout's sources, for tests that edit and build."""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("data", "docs", "byteledger", "macros", "scripts", "tests", "third_party", "CITATION.cff", "mkdocs.yml", "mkdocs.en.yml", "pyproject.toml")


def copy_sources(folder):
    """Copies the sources into folder; returns it."""
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder
