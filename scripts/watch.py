"""Live reload of both languages, side by side: python scripts/watch.py [--port 8000]

One `mkdocs serve` for each language, each language switch leading to the other's address. Follows docs, data,
byteledger, macros and the theme; a change of a Markdown extension (macros/katex.py, macros/flow.py) needs a restart.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main():
    """Runs until interrupted, or until one of the two ends."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=8000)
    port = parser.parse_args().port
    address = {"zh": "127.0.0.1:%d" % port, "en": "127.0.0.1:%d" % (port + 1)}
    running = []
    for language, config, other in (("zh", "mkdocs.yml", "en"), ("en", "mkdocs.en.yml", "zh")):
        environment = {
            **os.environ,
            "NO_MKDOCS_2_WARNING": "1",
            "BYTELEDGER_OTHER_ROOT": "http://%s/" % address[other],
            "PYTHONPATH": str(ROOT),
        }
        environment.pop("SITE_URL", None)
        command = [sys.executable, "-m", "mkdocs", "serve", "-f", config, "-a", address[language]]
        running.append(subprocess.Popen(command, cwd=ROOT, env=environment))
    print("中文:    http://%s/\nEnglish: http://%s/\nCtrl-C stops." % (address["zh"], address["en"]), flush=True)
    try:
        while all(process.poll() is None for process in running):
            time.sleep(0.2)
    except KeyboardInterrupt:
        pass
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
    return max(process.returncode or 0 for process in running if process.returncode != -15) if any(
        process.returncode not in (0, -15, None) for process in running
    ) else 0


if __name__ == "__main__":
    sys.exit(main())
