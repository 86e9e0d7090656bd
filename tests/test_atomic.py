"""Builds that are killed, and builds at the same time: site/ is whole at every moment, either the old or the new one."""

import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

from checkout import copy_sources

SEED = 20261201
# Stands in for MkDocs, so that 24 kills take seconds: writes a site page by page, each page naming its edition.
FAKE_MKDOCS = '''
import os, pathlib, sys, time
target = pathlib.Path(sys.argv[sys.argv.index("-d") + 1])
edition = os.environ["EDITION"]
for number in range(40):
    path = target / ("page-%02d.html" % number)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('<html lang="zh"><body><h1 id="a">%s</h1><a href="page-%02d.html#a">x</a></body></html>' % (edition, (number + 1) % 40))
    time.sleep(0.004)
'''


@pytest.fixture
def checkout(tmp_path):
    """The sources, with MkDocs replaced by something quick that has as many pages."""
    copy_sources(tmp_path)
    (tmp_path / "mkdocs").mkdir()
    (tmp_path / "mkdocs" / "__init__.py").write_text("")
    (tmp_path / "mkdocs" / "__main__.py").write_text(FAKE_MKDOCS)
    return tmp_path


def start(root, edition):
    """A build in a process group of its own. No checks of data and pages: they come before anything is written."""
    script = "import sys; sys.path[:0] = ['scripts']; import build; build.check_sources = list; sys.exit(build.main())"
    environment = {**os.environ, "EDITION": edition, "PYTHONPATH": str(root)}
    return subprocess.Popen(
        [sys.executable, "-c", script], cwd=root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def edition(root):
    """The edition of site/, which must be one and the same on all pages of both languages."""
    pages = sorted((root / "site").rglob("page-*.html"))
    assert len(pages) == 80, "site/ has %d pages" % len(pages)
    editions = {re.search("<h1[^>]*>(.*?)</h1>", page.read_text())[1] for page in pages}
    assert len(editions) == 1, "site/ mixes %s" % editions
    return editions.pop()


def test_twenty_four_kills(checkout):
    """Killed at random moments, SIGKILL to the whole group: the last good site is served, or the new one, and is whole."""
    source = random.Random(SEED)
    began = time.monotonic()
    assert start(checkout, "edition-0").wait() == 0
    whole = time.monotonic() - began
    good, ended = "edition-0", 0
    for number in range(1, 25):
        name = "edition-%d" % number
        process = start(checkout, name)
        time.sleep(source.uniform(0, 1.1 * whole))
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()
        ended += process.returncode == 0
        found = edition(checkout)
        assert found in (good, name), (number, found)
        assert process.returncode != 0 or found == name
        good = found
    assert ended < 24, "no build was killed before its end"
    # The next build cleans up after them.
    assert start(checkout, "edition-99").wait() == 0 and edition(checkout) == "edition-99"
    assert not list((checkout / "build").glob("site-*"))


def test_builds_at_the_same_time_do_not_mix(checkout):
    """Four at once, again and again looked at while they run: always one edition, whole; the last one in place wins."""
    assert start(checkout, "edition-0").wait() == 0
    running = [start(checkout, "edition-%d" % number) for number in range(1, 5)]
    looks = 0
    while any(process.poll() is None for process in running):
        # At no moment is a reader told that a page is not there.
        assert (checkout / "site" / "page-00.html").exists() and (checkout / "site" / "en" / "page-39.html").exists()
        looks += 1
    assert looks > 20
    assert [process.wait() for process in running] == [0] * 4, [process.stderr.read() for process in running]
    assert edition(checkout) in {"edition-%d" % number for number in range(1, 5)}


def test_two_renames_can_be_finished(checkout):
    """Where the system cannot exchange folders, a kill between the two renames is mended by the next build."""
    assert start(checkout, "edition-0").wait() == 0
    (checkout / "site").rename(checkout / ".site.last-good")
    script = "import sys, pathlib; sys.path[:0] = ['scripts']; import build; build.recover(pathlib.Path('site').resolve())"
    subprocess.run([sys.executable, "-c", script], cwd=checkout, check=True, env={**os.environ, "PYTHONPATH": str(checkout)})
    assert edition(checkout) == "edition-0"
