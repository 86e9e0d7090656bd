"""Serves site/ on this machine: python scripts/serve.py [--port 8000]. A new build is served as soon as it is in place."""

import argparse
import functools
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SITE = Path(__file__).resolve().parent.parent / "site"


class Handler(SimpleHTTPRequestHandler):
    """Files of site/, never from the browser's cache; only failures are logged."""

    def end_headers(self):
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_request(self, code="-", size="-"):
        if str(code) >= "400":
            super().log_request(code, size)


def main():
    """Serves until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    port = parser.parse_args().port
    for attempt in range(port, port + 20):
        try:
            server = ThreadingHTTPServer(("127.0.0.1", attempt), functools.partial(Handler, directory=str(SITE)))
            break
        except OSError:
            print("port %d is taken" % attempt)
    else:
        sys.exit("no free port from %d to %d; give another with PORT=" % (port, port + 19))
    address = "http://127.0.0.1:%d/" % server.server_port
    print("中文:    %s\nEnglish: %sen/\nCtrl-C stops." % (address, address), flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    main()
