"""What several tests share: a built site, a server of it, a browser."""

import functools
import os
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import browser

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of a site built from this tree, both languages; read only."""
    folder = tmp_path_factory.mktemp("built") / "site"
    # PYTHONPATH, since in a second worktree the environment's editable install points to the first.
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, ROOT / "scripts" / "build.py", "--site", folder]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8")
    if done.returncode:
        pytest.fail("the site was not built:\n" + done.stdout, pytrace=False)
    return folder


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
        pytest.skip(browser.MISSING)
    with browser.Chromium() as running:
        yield running
