"""What several tests share: a built site, a server of it, a browser."""

import functools
import os
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from filelock import FileLock

import browser

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def once(tmp_path_factory, worker_id):
    """A function that makes a folder of a name, once for all of xdist's workers: the others wait for the first. Read only."""
    base = tmp_path_factory.getbasetemp()
    root = (base if worker_id == "master" else base.parent) / "once"
    root.mkdir(exist_ok=True)

    def made(name, make):
        folder, whole = root / name, root / (name + ".whole")
        with FileLock(str(root / (name + ".lock"))):
            if not whole.exists():
                make(folder)
                whole.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def site(once):
    """The folder of a site built from this tree, both languages."""
    return once("site", build)


def build(folder):
    """Builds into folder."""
    # PYTHONPATH, since in a second worktree the environment's editable install points to the first.
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, ROOT / "scripts" / "build.py", "--site", folder]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8")
    if done.returncode:
        pytest.fail("the site was not built:\n" + done.stdout, pytrace=False)


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept; half the time of a page

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def server(site):
    """The address of the site on a free port of this machine, with a slash at its end."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield "http://127.0.0.1:%d/" % server.server_port
        server.shutdown()


@pytest.fixture(scope="session")
def chromium():
    """A running Chromium; its tests are skipped on a machine without one."""
    if not browser.find():
        (pytest.fail if os.environ.get("REQUIRE_BROWSER") else pytest.skip)(browser.MISSING)
    with browser.Chromium() as running:
        yield running
