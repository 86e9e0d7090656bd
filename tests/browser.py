"""A driver of the system's headless Chromium over the DevTools protocol: no Node, no chromedriver.

    with Chromium() as chromium, chromium.page() as page:
        page.open("http://127.0.0.1:8000/ledger.html", width=390, height=844, mobile=True)
        print(page.evaluate("document.title"), page.errors, page.requests)

One web socket carries the browser and all its tabs; nothing runs in a second thread. Events are recorded while a command
or a wait reads the socket.
"""

import base64
import collections
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urldefrag

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
MISSING = "no Chromium: set CHROMIUM, or put one of %s on PATH" % ", ".join(NAMES)
PATIENCE = 60  # seconds; long, since a shared two-core machine stalls, and only a failing test waits them out
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",  # containers give /dev/shm 64 MB
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # a foreign request fails at once, and is recorded
    "--remote-debugging-port=0",
)
# KeyboardEvent.key -> the Windows key code, and the text that the key enters.
KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), "ArrowDown": (40, ""), "ArrowUp": (38, "")}

Message = collections.namedtuple("Message", "level text url")


class BrowserError(AssertionError):
    """The browser refused, broke, or did not do in time what was awaited."""


def find():
    """The path of a Chromium: $CHROMIUM, else the first of NAMES on PATH, else None."""
    if os.environ.get("CHROMIUM"):
        return shutil.which(os.environ["CHROMIUM"])
    return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """A browser with a profile of its own, from `with` to its end."""

    def __init__(self, path=None):
        self.path = path or find()
        if not self.path:
            raise BrowserError(MISSING)
        self._ids, self._pages = 0, {}
        self._process = self._socket = None

    def __enter__(self):
        self._profile = tempfile.TemporaryDirectory(prefix="byteledger-chromium-", ignore_cleanup_errors=True)
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self):
        log = Path(self._profile.name, "log")
        with log.open("wb") as output:
            # A process group of its own, so that the end takes every child with it.
            self._process = subprocess.Popen(
                [self.path, *FLAGS, "--user-data-dir=" + self._profile.name, "about:blank"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )
        port = Path(self._profile.name, "DevToolsActivePort")
        deadline = time.monotonic() + PATIENCE
        while not (port.exists() and len(port.read_text().split()) == 2):
            if self._process.poll() is not None or time.monotonic() > deadline:
                state = "did not start in %d s" % PATIENCE if self._process.poll() is None else "ended with %d" % self._process.returncode
                raise BrowserError("%s %s:\n%s" % (self.path, state, log.read_text(errors="replace")[-2000:]))
            time.sleep(0.02)
        number, path = port.read_text().split()
        self._socket = websocket.create_connection(
            "ws://127.0.0.1:%s%s" % (number, path), timeout=PATIENCE, suppress_origin=True, http_no_proxy=["127.0.0.1"]
        )

    def __exit__(self, *_):
        if self._socket:
            self._socket.close(timeout=0)
        if self._process:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._process.wait()
        self._profile.cleanup()

    def page(self):
        """A new tab with cookies and storage of its own; a context manager."""
        return Page(self)

    def call(self, method, session=None, **parameters):
        """One command and its answer; the events that come first are recorded."""
        number = self._send(method, session, parameters)
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self._receive(deadline - time.monotonic())
            if message is None:
                raise BrowserError("%s: no answer in %d s" % (method, PATIENCE))
            if message.get("id") != number:
                continue
            if "error" in message:
                raise BrowserError("%s: %s" % (method, message["error"]["message"]))
            return message["result"]

    def listen(self, seconds):
        """Records what comes within so many seconds, or returns after the first message."""
        self._receive(seconds)

    def _send(self, method, session, parameters):
        self._ids += 1
        message = {"id": self._ids, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        try:
            self._socket.send(json.dumps(message))
        except (OSError, websocket.WebSocketException) as error:
            raise BrowserError("%s: Chromium is gone: %s" % (method, error)) from error
        return self._ids

    def _receive(self, seconds):
        """The next message, or None; an event goes to its page first."""
        self._socket.settimeout(max(seconds, 0.001))
        try:
            message = json.loads(self._socket.recv())
        except websocket.WebSocketTimeoutException:
            return None
        except (OSError, websocket.WebSocketException) as error:
            raise BrowserError("Chromium is gone: %s" % error) from error
        page = self._pages.get(message.get("sessionId"))
        if page and "method" in message:
            page._record(message["method"], message["params"], message["sessionId"])
        return message


class Page:
    """A tab. `requests`, `failed` and `messages` hold what happened since its document was asked for."""

    def __init__(self, chromium):
        self._chromium = chromium
        self._forget(None)

    def __enter__(self):
        call = self._chromium.call
        self._context = call("Target.createBrowserContext")["browserContextId"]
        self._frame = call("Target.createTarget", url="about:blank", browserContextId=self._context)["targetId"]
        self._session = call("Target.attachToTarget", targetId=self._frame, flatten=True)["sessionId"]
        self._chromium._pages[self._session] = self
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        # A worker's requests and faults are told in a session of its own; it waits until we listen.
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)
        return self

    def __exit__(self, *_):
        for session in [session for session, page in self._chromium._pages.items() if page is self]:
            del self._chromium._pages[session]
        self._chromium.call("Target.disposeBrowserContext", browserContextId=self._context)

    def call(self, method, **parameters):
        """One DevTools command to this tab."""
        return self._chromium.call(method, self._session, **parameters)

    # --- what happened

    def _forget(self, document):
        """Begins the record of a new document, which the protocol names by its loader."""
        self.requests, self.failed, self.messages = [], [], []
        self._running, self._loaded = {}, False
        self._document = document

    @property
    def errors(self):
        """Errors on the console, exceptions, and what the browser itself logs as an error, as lines."""
        lines = ("%s (%s)" % (message.text, message.url) for message in self.messages if message.level in ("error", "assert", "exception"))
        return list(dict.fromkeys(lines))  # what a worker says is told twice

    def _record(self, method, event, session):
        if method == "Network.requestWillBeSent":
            if event.get("frameId") == self._frame and event["loaderId"]:  # a worker's script has none
                if event["requestId"] == event["loaderId"]:
                    self._forget(event["loaderId"])
                elif event["loaderId"] != self._document:
                    return  # of the document before, such as its icon
            self._running[event["requestId"]] = event["request"]["url"]
            self.requests.append(event["request"]["url"])
        elif method == "Network.responseReceived" and event["response"]["status"] >= 400:
            self.failed.append("%s: %d" % (event["response"]["url"], event["response"]["status"]))
        elif method == "Network.loadingFinished":
            self._running.pop(event["requestId"], None)
        elif method == "Network.loadingFailed":
            url = self._running.pop(event["requestId"], None)
            if url:
                self.failed.append("%s: %s" % (url, event["errorText"]))
        elif method == "Page.lifecycleEvent" and event["name"] == "load" and event["loaderId"] == self._document:
            self._loaded = True
        elif method == "Runtime.consoleAPICalled":
            text = " ".join(str(value.get("value", value.get("description", ""))) for value in event["args"])
            frames = event.get("stackTrace", {}).get("callFrames") or [{"url": ""}]
            self.messages.append(Message(event["type"], text, frames[0]["url"]))
        elif method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.messages.append(Message("exception", _exception(details), details.get("url", "")))
        elif method == "Log.entryAdded":
            entry = event["entry"]
            self.messages.append(Message(entry["level"], entry["text"], entry.get("url", "")))
        elif method == "Inspector.targetCrashed" and session == self._session:
            raise BrowserError("the tab crashed")
        elif method == "Target.attachedToTarget":
            worker = event["sessionId"]
            self._chromium._pages[worker] = self
            for command in ("Network.enable", "Runtime.enable", "Runtime.runIfWaitingForDebugger"):
                self._chromium._send(command, worker, {})
        elif method == "Target.detachedFromTarget":
            self._chromium._pages.pop(event["sessionId"], None)

    # --- going somewhere

    def open(self, url, width=1440, height=900, mobile=False, scheme="light", scripts=True):
        """Loads a page afresh, and waits until it is loaded and has settled."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}],
        )
        if urldefrag(self.evaluate("location.href"))[0] == urldefrag(url)[0]:
            self.call("Page.navigate", url="about:blank")  # else a new fragment would not load the page again
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self._forget(None)
        answer = self.call("Page.navigate", url=url)
        if answer.get("errorText"):
            raise BrowserError("%s: %s" % (url, answer["errorText"]))
        self.settle(scripts)

    def settle(self, scripts=True):
        """Waits until the page is loaded, no request runs, and fonts and two frames are drawn."""
        deadline = time.monotonic() + PATIENCE
        while not self._loaded or self._running:
            if time.monotonic() > deadline:
                raise BrowserError("not settled in %d s: %s" % (PATIENCE, "; ".join(self._running.values()) or "no load event"))
            self._chromium.listen(0.1)
        self.wait_for("document.fonts.status == 'loaded'")
        if scripts:
            self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def wait_for(self, condition, timeout=PATIENCE, explain=None):
        """Waits until a JavaScript condition is true; `explain` is evaluated for the message if it never is."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                value = self.evaluate(condition)
            except BrowserError as error:  # the document may be changing
                value, trouble = None, error
            else:
                trouble = None
            if value:
                return value
            if time.monotonic() > deadline:
                found = [str(trouble)] if trouble else []
                found += ["%s = %r" % (explain, self.evaluate(explain))] if explain and not trouble else []
                found += self.errors + self.failed
                raise BrowserError("%s: not true in %g s; %s" % (condition, timeout, "; ".join(found) or "no errors on the page"))
            self._chromium.listen(0.05)

    def evaluate(self, script):
        """The value of a JavaScript expression; a promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in answer:
            raise BrowserError("%s: %s" % (script, _exception(answer["exceptionDetails"])))
        return answer["result"].get("value")

    # --- hands and eyes

    def click(self, selector):
        """Clicks the middle of the first element of a selector, if that is what a reader would hit there."""
        spot = self.evaluate(
            """(() => {
              const element = document.querySelector(%s)
              if (!element) return "is not on the page"
              element.scrollIntoView({block: "nearest", inline: "nearest", behavior: "instant"})
              const box = [...element.getClientRects()].find(box => box.width && box.height)
              if (!box) return "is not shown"
              const x = box.x + box.width / 2, y = box.y + box.height / 2
              const hit = document.elementFromPoint(x, y)
              return element.contains(hit) ? [x, y] : "is covered by " + (hit ? hit.outerHTML.slice(0, 120) : "nothing on the screen")
            })()"""
            % json.dumps(selector)
        )
        if isinstance(spot, str):
            raise BrowserError("cannot click %r: it %s" % (selector, spot))
        for kind, buttons in (("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)):
            button = "none" if kind == "mouseMoved" else "left"
            self.call("Input.dispatchMouseEvent", type=kind, x=spot[0], y=spot[1], button=button, buttons=buttons, clickCount=1)

    def type(self, text):
        """Enters text into the focused element at once, as an input method or a paste does, and lets a key go."""
        self.call("Input.insertText", text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=text[-1])

    def press(self, key):
        """Presses one of KEYS."""
        code, text = KEYS[key]
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", key=key, text=text, windowsVirtualKeyCode=code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def screenshot(self, path, full=False):
        """Writes a PNG of the window, or of the whole page."""
        clip = {}
        if full:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}, "captureBeyondViewport": True}
        data = self.call("Page.captureScreenshot", format="png", **clip)["data"]
        Path(path).write_bytes(base64.b64decode(data))
        return Path(path)


def _exception(details):
    return details.get("exception", {}).get("description") or details["text"]
