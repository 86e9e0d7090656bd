"""Copies of this checkout's sources and of a built site, for tests that edit and build."""

import os
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


def linked(site, folder):
    """A copy of a built site whose files are the same ones, so that it costs no time; to change one, replace_in() it."""
    shutil.copytree(site, folder, copy_function=os.link)
    return folder


def replace_in(path, old, new):
    """Writes a file anew with one thing replaced, which must be in it."""
    text = path.read_text(encoding="utf-8")
    assert old in text, old
    path.unlink()  # else the file that it was linked from would change with it
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
