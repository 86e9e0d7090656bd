"""Holds the arrows of the house: data -> catalog -> byteledger -> macros -> docs; formulas import math and each other."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FORMULAS = (
    "arguments", "units", "parameters", "architecture", "kv_cache", "weight_formats", "ledger", "activations", "activation_profiles", "attention",
    "loss", "distributed", "estimation", "sharding", "parallel", "offload", "collectives", "optimizers", "lora", "per_rank", "step", "scenario", "training",
)  # fmt: skip
FAMILIES = sorted((ROOT / "byteledger" / "families").glob("*.py"))


def imports(path):
    """The modules that a file imports, those of its own package with a leading dot."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {"." * node.level + name for name in names}
    return found


@pytest.mark.parametrize("module", FORMULAS)
def test_formulas_import_math_and_each_other(module):
    """So that the very same files can run in a browser: no YAML, no HTML, no dataclass machinery."""
    allowed = {"math", ".parameters"} | {"." + other for other in FORMULAS}
    assert imports(ROOT / "byteledger" / (module + ".py")) <= allowed
    source = (ROOT / "byteledger" / (module + ".py")).read_text(encoding="utf-8")
    called = {node.func.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"print", "open", "round", "input"}


@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.stem)
def test_families_import_formulas_and_each_other(path):
    """Rules turn fields into layers: they read no file and know no language."""
    assert imports(path) <= {"..", "..parameters", "..architecture", "..arguments"} | {"." + other.stem for other in FAMILIES}
    assert "from .. import parameters as p\n" in path.read_text(encoding="utf-8")


def test_the_estimator_knows_no_page():
    for path in (ROOT / "byteledger").rglob("*.py"):
        assert not {name for name in imports(path) if name.split(".")[0] in ("macros", "mkdocs", "jinja2", "markdown")}, path


def test_pytorch_stays_in_scripts_and_marked_tests():
    """The estimator stands without what it is measured with: torch and transformers are imported by scripts/ and by tests that skip without them."""
    heavy = {"torch", "transformers", "torchao", "bitsandbytes"}
    for folder in ("byteledger", "macros"):
        for path in (ROOT / folder).rglob("*.py"):
            assert not {name.split(".")[0] for name in imports(path)} & (heavy | {"measuring", "measure", "scripts"}), path
    for path in (ROOT / "tests").glob("*.py"):
        if {name.split(".")[0] for name in imports(path)} & heavy:
            assert "pytest.importorskip(" in path.read_text(encoding="utf-8"), path


def test_only_the_catalog_opens_data():
    """Everything else gets records; one_record.py reads one for the command line, revision.py only hashes the bytes."""
    opens = []
    for path in [*(ROOT / "byteledger").rglob("*.py"), *(ROOT / "macros").glob("*.py")]:
        source = path.read_text(encoding="utf-8")
        if '/ "data"' in source or "yaml.safe_load" in source or "yaml.load" in source:
            opens.append(path.name)
    assert sorted(opens) == ["catalog.py", "one_record.py", "revision.py"]


def test_macros_do_no_arithmetic_on_bytes():
    """macros/ formats: the only division stands where bytes become the number printed."""
    for path in (ROOT / "macros").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        operations = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Div, ast.FloorDiv, ast.Pow))]
        operations = [n for n in operations if not _is_path(n)]
        powers = [n for n in operations if isinstance(n.op, ast.Pow) and path.name == "text.py"]  # the units, 10**9 and 2**30
        assert operations == powers, (path.name, [n.lineno for n in operations])


def _is_path(node):
    # Path("a") / "b": a division whose right side is text or a name that ends a path.
    return isinstance(node.op, ast.Div) and (isinstance(node.right, (ast.Constant, ast.Name, ast.Attribute, ast.BinOp)) and path_like(node))


def path_like(node):
    """Whether a chain of divisions starts from something that makes a path."""
    while isinstance(node, ast.BinOp):
        node = node.left
    text = ast.unparse(node)
    return any(word in text for word in ("Path", "path", "site", "target", "assets", "ROOT", "root", "docs", "folder"))


def test_no_catch_all_names():
    names = [path.stem for path in ROOT.rglob("*.py") if ".venv" not in path.parts and "build" not in path.parts]
    assert not {"utils", "helpers", "common", "manager", "misc"} & set(names)


def test_every_public_function_of_the_estimator_says_its_equation():
    """Equation first, then units, errors, source."""
    sys.path.insert(0, str(ROOT))
    for module in set(FORMULAS) - {"arguments", "architecture"}:  # which hold no formula
        tree = ast.parse((ROOT / "byteledger" / (module + ".py")).read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                doc = ast.get_docstring(node)
                assert doc and "=" in doc.split(":")[0], (module, node.name)
