"""Makes the environment in .venv from the locks: python scripts/environment.py .venv

Standard library only, and readable by any Python 3: it runs before anything is installed, and says what is missing.
"""

from __future__ import print_function

import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    folder = sys.argv[1]
    if sys.version_info < (3, 11):
        sys.exit("Byte Ledger needs Python 3.11 or newer; this is %s. Try: make PYTHON=python3.12" % sys.version.split()[0])
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        sys.exit("This Python has no venv module. On Debian and Ubuntu: apt-get install python3-venv")
    print("environment: making %s with Python %s" % (folder, sys.version.split()[0]), flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.check_call([sys.executable, "-m", "venv", folder])
    python = os.path.join(folder, "bin", "python")
    # --no-deps: the locks name everything. --no-build-isolation: jieba is source only, and is built with the pinned
    # setuptools of the first lock instead of whatever is newest.
    install = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps"]
    subprocess.check_call(install + ["--require-hashes", "-r", os.path.join(ROOT, "requirements-build.lock")])
    subprocess.check_call(install + ["--require-hashes", "--no-build-isolation", "-r", os.path.join(ROOT, "requirements.lock")])
    subprocess.check_call(install + ["--no-build-isolation", "-q", "-e", ROOT])
    with open(os.path.join(folder, "ready"), "w") as stamp:
        stamp.write("made from requirements.lock\n")
    print("environment: ready", flush=True)


if __name__ == "__main__":
    main()
