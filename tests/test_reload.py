"""mkdocs serve executes macros/main.py anew for each build; what it imports must be all new, not half old."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# In a process of its own: it exchanges modules that other tests hold.
SCRIPT = """
import runpy, sys, types
class Env:
    page = types.SimpleNamespace(file=types.SimpleNamespace(src_uri="ledger.md"))
    def __init__(self): self.conf, self.macros, self.variables = {"extra": {"language": "zh"}}, {}, {}
    def macro(self, function, name): self.macros[name] = function
def build():
    env = Env()
    runpy.run_path("macros/main.py")["define_env"](env)
    return env.macros
def modules(): return {name: id(module) for name, module in sys.modules.items() if name.startswith(("byteledger.", "macros."))}
old_macros, old = build(), modules()
new_macros, new = build(), modules()
assert old_macros["table"]("zero-stages") == new_macros["table"]("zero-stages")
assert {name for name in old if old[name] == new[name]} <= {"macros.katex", "macros.captions", "macros.flow"}, "kept across builds"
import macros
assert all(getattr(macros, name.split(".")[1]) is sys.modules[name] for name in new if name.startswith("macros."))
"""


def test_a_second_build_uses_no_old_module():
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
