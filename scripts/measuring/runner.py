"""Runs cases one after the other, each in a process of its own with a time limit, and goes on where an earlier run stopped."""

import datetime
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path

from . import observations


def chosen(patterns, cases, sets={}, left_out=()):
    """The names that patterns and names of sets mean, each once, without those left out."""
    names = [name for pattern in patterns for name in sets.get(pattern, [name for name in cases if fnmatch(name, pattern)])]
    return [name for name in dict.fromkeys(names) if name not in left_out]


def forked(measure, case, timeout):
    """(result, fault) of measure(*case) in a process forked from this one, which has imported PyTorch once for all cases.

    What the case starts is ended with it. Nothing may have run backward or touched a GPU here: neither survives a fork.
    """
    with tempfile.TemporaryDirectory() as folder:
        result, said = Path(folder) / "result.json", Path(folder) / "said"
        process = multiprocessing.get_context("fork").Process(target=_forked, args=(measure, case, result, said))
        process.start()
        process.join(timeout)
        if process.is_alive():
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
            return None, "took over %d s" % timeout
        if process.exitcode == 0 and result.exists():
            return json.loads(result.read_text(encoding="utf-8")), None
        return None, (said.read_text(encoding="utf-8").strip().splitlines() or ["exit status %s" % process.exitcode])[-1]


def _forked(measure, case, result, said):
    os.setsid()
    file = open(said, "w", buffering=1)
    os.dup2(file.fileno(), 1)
    os.dup2(file.fileno(), 2)
    sys.stdout = sys.stderr = file
    result.write_text(json.dumps(measure(*case)), encoding="utf-8")


def apart(script, case, timeout):
    """(result, fault) of `script child CASE`, a process that imports everything itself; its last line is the result as JSON."""
    command = [sys.executable, str(script), "child", json.dumps(case)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, "took over %d s" % timeout
    if process.returncode:
        return None, (err.strip().splitlines() or ["exit status %d" % process.returncode])[-1]
    return json.loads(out.splitlines()[-1]), None


def run(separate, names, cases, out, timeout, again=False, seconds=float("inf"), settled=True):
    """Measures the named cases into out/NAME.json and says how far it is; returns 1 if one failed or was left no time.

    separate(case, timeout) measures one: forked() or apart(). settled: whether a case that data/observations.yaml has is passed over too. seconds: when no further case is begun.
    """
    out.mkdir(parents=True, exist_ok=True)
    recorded, failed, begun = observations.read() if settled else {}, [], time.monotonic()
    for i, name in enumerate(names, 1):
        case = dict(zip(("kind", "config", "settings"), cases[name]))
        path = out / (name + ".json")
        there = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if not again and (observations.same(there, case) or observations.same(recorded.get(name), case)):
            continue
        start = time.monotonic()
        left = begun + seconds - start
        result, fault = separate(cases[name], min(timeout, left)) if left > 0 else (None, "no time left")
        if fault:
            failed.append(name)
            print("%d/%d  %s  failed: %s" % (i, len(names), name, fault), flush=True)
            continue
        row = {"name": name, **case, "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(), **result}
        part = path.with_suffix(".part")
        part.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
        part.replace(path)
        print("%d/%d  %s  %s  %.0f s" % (i, len(names), name, observations.brief(row), time.monotonic() - start), flush=True)
    print("%d of %d cases are measured%s" % (len(names) - len(failed), len(names), "; failed: " + ", ".join(failed) if failed else ""))
    return 1 if failed else 0
