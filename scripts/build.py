"""Builds both languages and puts them in place at once.

    python scripts/build.py [--site site]

Data and pages are checked first, so that every fault is told at once. Each language is built into a folder of its own;
they are merged and checked there, and only a good site takes the place of site/. A build that fails or is killed leaves
the last good site/ as it was, and two builds at once do not mix.
"""

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import check_site

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, wherever else the package may be installed
CONFIGS = {"zh": "mkdocs.yml", "en": "mkdocs.en.yml"}


def main():
    """Builds; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--site", type=Path, default=ROOT / "site", help="the folder to put in place (default: site)")
    site = parser.parse_args().site.resolve()
    began = time.monotonic()
    faults = check_sources()
    if faults:
        print("\n".join(faults), file=sys.stderr)
        return fail(site, len(faults))
    (ROOT / "build").mkdir(exist_ok=True)
    recover(site)
    sweep()
    # Beside the target, so that the exchange at the end is a rename and not a copy.
    site.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="site-%d-" % os.getpid(), dir=ROOT / "build" if site.parent == ROOT else site.parent))
    try:
        if not build_languages(work):
            return fail(site)
        merge(work)
        faults = check_site.faults(work / "zh")
        if faults:
            print("\n".join(faults), file=sys.stderr)
            return fail(site, len(faults))
        put_in_place(work / "zh", site)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print("built %s in %.1f s" % (shown(site), time.monotonic() - began))
    return 0


def shown(path):
    """A path as a person would type it."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def fail(site, count=None):
    """Says what became of site/; returns the exit status."""
    state = "%s is as it was" % shown(site) if site.exists() else "there is no %s yet" % shown(site)
    print("not built%s; %s" % (": %d faults" % count if count and count > 1 else "", state), file=sys.stderr)
    return 1


def check_sources():
    """Every fault of data/ and of the pages, as lines."""
    from byteledger import catalog
    from macros import pages

    try:
        records = catalog.load()
    except catalog.DataError as error:
        return str(error).split("\n")
    return [str(fault) for fault in pages.faults(records)]


def build_languages(work):
    """Runs MkDocs for both languages side by side; True if both are good."""
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT), "BYTELEDGER_PAGES_CHECKED": "1"}
    running = {}
    for language, config in CONFIGS.items():
        print("%s: building …" % language, flush=True)
        # Never -q: it lifts the log level above the warnings that --strict counts.
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(ROOT / config), "-d", str(work / language)]
        log = (work / (language + ".log")).open("w+", encoding="utf-8")
        running[language] = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT), log, time.monotonic()
    good = True
    try:
        while running:
            for language, (process, log, began) in list(running.items()):
                if process.poll() is None:
                    continue
                del running[language]
                log.seek(0)
                if process.returncode:
                    good = False
                    print("%s: failed\n%s" % (language, log.read()), file=sys.stderr)
                else:
                    print("%s: built in %.1f s" % (language, time.monotonic() - began), flush=True)
                log.close()
            time.sleep(0.05)
    finally:
        for process, log, _ in running.values():
            process.kill()
            process.wait()
            log.close()
    return good


def merge(work):
    """The English site into the Chinese one's en/; what no page loads goes."""
    (work / "en").rename(work / "zh" / "en")
    for path in [*work.glob("zh/**/*.map"), *work.glob("zh/**/sitemap.xml.gz")]:
        path.unlink()
    for path in work.glob("zh/**/assets/javascripts/lunr"):
        shutil.rmtree(path)
    if not os.environ.get("SITE_URL"):  # without an address a sitemap would be empty
        for path in work.glob("zh/**/sitemap.xml"):
            path.unlink()


def put_in_place(new, site):
    """Exchanges two folders in one step where the system can; else by two renames that recover() can finish."""
    if not site.exists():
        new.rename(site)
    elif not exchange(new, site):
        old = site.with_name("." + site.name + ".last-good")
        shutil.rmtree(old, ignore_errors=True)
        site.rename(old)
        new.rename(site)
        shutil.rmtree(old, ignore_errors=True)


def recover(site):
    """Brings back the last good site if a build was killed between the two renames."""
    old = site.with_name("." + site.name + ".last-good")
    if old.exists() and not site.exists():
        old.rename(site)


def exchange(first, second):
    """True if the two paths were exchanged atomically: renameat2 on Linux, renamex_np on macOS."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "linux":
            at_cwd, flag = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
            return libc.renameat2(at_cwd, os.fsencode(first), at_cwd, os.fsencode(second), flag) == 0
        if sys.platform == "darwin":
            return libc.renamex_np(os.fsencode(first), os.fsencode(second), 2) == 0  # RENAME_SWAP
    except (AttributeError, OSError):
        pass
    return False


def sweep():
    """Removes the work folders of builds that were killed."""
    for path in (ROOT / "build").glob("site-*-*"):
        process = path.name.split("-")[1]
        if process.isdigit() and not alive(int(process)):
            shutil.rmtree(path, ignore_errors=True)


def alive(process):
    """Whether a process of this number runs."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


if __name__ == "__main__":
    sys.exit(main())
