"""python -m byteledger: check and tables, as a maintainer meets them; params and kv, as a planner does."""

import json
import os
import re
import subprocess
import sys

import pytest

from byteledger import catalog, golden
from byteledger.revision import revision
from checkout import ROOT, copy_sources


def run(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "byteledger", *arguments], cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(folder)}
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return copy_sources(tmp_path_factory.mktemp("cli"))


def test_the_golden_tables_are_fresh():
    """A change of data shows in the difference of tests/golden/: run `make tables`, look at it, and commit it."""
    assert [str(change) for change in golden.changes(catalog.load())] == []


def test_stale_tables_are_told_cell_by_cell(checkout):
    """Which table, which row, old and new value, by how much; exit code 1; and writing them makes it 0 again."""
    path = checkout / "data" / "ledgers.yaml"
    before = path.read_text(encoding="utf-8")
    assert run(checkout, "tables", "--check").returncode == 0
    path.write_text(before.replace("  first_moment: 4\n", "  first_moment: 3\n", 1), encoding="utf-8")
    stale = run(checkout, "tables", "--check")
    assert stale.returncode == 1 and "tests/golden is stale" in stale.stderr
    assert "ledgers: bf16-adamw: ledger.bytes_per_parameter [bytes/parameter]: 16 -> 15 (-6.25 %, -1)" in stale.stdout
    assert "sharding-70b: 70B: distributed.rank_lower @ world_size=64 [bytes]: 17500000000 -> 16406250000 (-6.25 %, -1.09375e+09)" in stale.stdout
    assert run(checkout, "tables").returncode == 0 and run(checkout, "tables", "--check").returncode == 0
    assert "bf16-adamw,2,2,4,3,4,15," in (checkout / "tests/golden/ledgers.csv").read_text(encoding="utf-8")
    path.write_text(before, encoding="utf-8")
    assert run(checkout, "tables").returncode == 0


def test_check_tells_all_faults_at_once(checkout):
    """One line each, file:line id: finding; cure. Exit code 1."""
    assert run(checkout, "check").returncode == 0
    texts = {}
    for file, old, new in (("ledgers", "  weights: 2\n", "  wieghts: 2\n"), ("models", "vocab_size: 32000", "vocab_size: 32001"), ("terms", "  en: FP16\n", "")):
        path = checkout / "data" / (file + ".yaml")
        texts[path] = path.read_text(encoding="utf-8")
        path.write_text(texts[path].replace(old, new, 1), encoding="utf-8")
    done = run(checkout, "check")
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    lines = done.stdout.strip().split("\n")
    assert done.returncode == 1 and len(lines) >= 4 and all(re.match(r"data/\w+\.yaml:\d+ \S+: .+; .+", line) for line in lines), lines
    assert {line.split(":")[0] for line in lines} == {"data/ledgers.yaml", "data/models.yaml", "data/terms.yaml"}
    assert "did you mean 'weights'?" in done.stdout and "Traceback" not in done.stderr


def test_the_version_names_the_revision():
    assert str(revision()) in run(ROOT, "--version").stdout


# --- params and kv


def asked(*arguments, code=0):
    done = run(ROOT, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_params_as_json():
    """The documented keys; DeepSeek-V3's count from transformers on the meta device, its parts summing to it."""
    found = json.loads(asked("params", "deepseek-v3", "--json").stdout)
    assert found["parameters"]["total"] == 671_026_404_352 and found["parameters"]["active"] == 37_552_282_624
    assert found["parameters"]["embedding"] == 129_280 * 7168
    assert sum(found["parameters"]["by_part"].values()) == found["parameters"]["total"]
    assert sum(layer["count"] * layer["parameters"] for layer in found["layers"]) == 671_026_404_352 - 2 * 926_679_040 - 7168
    assert found["revision"] == str(revision()) and isinstance(found["assumptions"], list)


def test_params_of_a_file_and_its_folder(tmp_path):
    """A config.json, or the folder that holds it, in the file's own names; Llama 3 70B, 70,553,706,496 on the Hub."""
    config = {"model_type": "llama", "n_layers": 80, "d_model": 8192, "n_heads": 64, "num_kv_heads": 8, "ffn_hidden_size": 28672, "vocab_size": 128256, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for given in (tmp_path, tmp_path / "config.json"):
        found = json.loads(asked("params", str(given), "--json").stdout)
        assert found["parameters"]["total"] == 70_553_706_496 and found["assumptions"] == []
        assert found["weights"]["format"] == "bf16" and found["weights"]["bytes"] == 141_107_412_992  # total_size of its safetensors index


def test_params_for_people():
    """Aligned, with units, in either language; what was assumed stands below."""
    en = asked("params", "llama-3.1-70b").stdout
    assert re.search(r"Parameters +70,553,706,496\n", en) and re.search(r"Weights \(BF16\) +141.1 GB +131.4 GiB\n", en) and "neither a dtype" in en
    zh = asked("params", "qwen3-30b-a3b", "--lang", "zh").stdout
    assert re.search(r"参数量 +30,532,122,624\n", zh) and re.search(r"每 token 激活 +3,353,032,704 +11%\n", zh) and "前提" in zh
    assert re.search(r"Publisher's count +671,026,419,200 +\+14,848\n", asked("params", "deepseek-v3").stdout)  # the file's figure, its buffers in it


def test_columns_are_aligned():
    """Digits end in one column in both languages, a Chinese character counting for two."""
    for arguments in (("params", "gpt-oss-120b"), ("kv", "gemma-3-27b", "--batch", "4", "--budget", "40GiB")):
        for language in ("en", "zh"):
            lines = asked(*arguments, "--lang", language).stdout.split("\n\n")
            rows = [line for line in "\n".join(lines[1:3]).split("\n") if not line.strip().startswith("─")]
            found = [re.match(r"(  .*?  +[0-9][0-9,.]*)(?= |$)", line) for line in rows]
            ends = {sum(2 if ord(c) > 0x2E80 else 1 for c in match[1]) for match in found if match}
            assert len(rows) > 6 and all(found) and len(ends) == 1, rows


def test_kv_for_people():
    """What the budget holds is said with what it was asked for: 32,768 tokens of Llama 3.1 70B are 10 GiB."""
    said = asked("kv", "llama-3.1-70b", "--context", "32K", "--batch", "2", "--budget", "40GiB").stdout
    assert re.search(r"KV cache +21.5 GB +20 GiB\n", said) and re.search(r"Most sequences \(of 32,768 tokens\) +4\n", said)
    assert re.search(r"Longest context \(batch of 2\) +65,536 tokens\n", said)
    zh = asked("kv", "falcon-mamba-7b", "--budget", "40GiB", "--lang", "zh").stdout
    assert re.search(r"最长上下文（1 个序列） +— 不随上下文增长\n", zh)


def test_the_list_of_models():
    """Every id of the catalogue with its name, and every model_type; --list needs no model, and without it one is needed."""
    said = asked("params", "--list").stdout
    assert re.search(r"^  llama-3.1-70b +Llama 3.1 70B$", said, re.M) and re.search(r"\bqwen3_next\b", said)
    found = json.loads(asked("params", "--list", "--json").stdout)
    assert list(found["models"]) == list(catalog.load().models) and {"llama", "kimi_k2"} <= set(found["model_types"])
    assert "--list" in asked("params", code=2).stderr


def test_kv_as_json():
    """The documented keys: 70,272 B per token for DeepSeek-V3; gpt-oss 120B with and without its windows (hf-mem#60)."""
    found = json.loads(asked("kv", "deepseek-v3", "--context", "32768", "--batch", "2", "--json").stdout)
    assert found["bytes_per_token"] == 70_272 and found["fixed_bytes_per_sequence"] == 0 and found["total_bytes"] == 70_272 * 32_768 * 2
    found = json.loads(asked("kv", "gpt-oss-120b", "--context", "128K", "--json").stdout)
    assert (found["bytes_per_token"], found["steady_bytes_per_token"]) == (73_728, 36_864)
    assert found["total_bytes"] == 36_864 * (131_072 + 127) and found["reserved_bytes"] == 73_728 * 131_072
    assert json.loads(asked("kv", "llama-2-70b", "--dtype", "int8", "--json").stdout)["bytes_per_token"] == 163_840  # the scaling book's 160 kB
    assert json.loads(asked("kv", "llama-2-70b", "--dtype", "fp32", "--json").stdout)["bytes_per_token"] == 4 * 163_840


def test_kv_within_a_budget():
    """10 GiB hold one sequence of 32,768 tokens of Llama 3.1 70B (320 KiB each) and not one token more."""
    found = json.loads(asked("kv", "llama-3.1-70b", "--context", "32K", "--budget", "10GiB", "--json").stdout)
    assert found["largest_batch"] == 1 and found["largest_context"] == 32_768
    found = json.loads(asked("kv", "llama-3.1-70b", "--context", "32K", "--budget", "10GB", "--json").stdout)
    assert found["largest_batch"] == 0 and found["largest_context"] == 10**10 // 327_680


def test_refusals_go_to_standard_error(tmp_path):
    """Exit code 2, nothing on standard output, the file and the key named, in the language asked for."""
    path = tmp_path / "config.json"
    for text, key in (('{"model_type": "t5", "d_model": 512}', "model_type"), ('{"model_type": "llama", "hidden_size": 64}', "vocab_size"), ("{", "JSON")):
        path.write_text(text, encoding="utf-8")
        done = asked("params", str(path), code=2)
        assert done.stdout == "" and str(path) in done.stderr and key in done.stderr and "Traceback" not in done.stderr
    assert "编码器" in asked("kv", "bert-base-cased", "--lang", "zh", code=2).stderr
    said = asked("params", "llama-3.1-70", code=2).stderr
    assert "Did you mean llama-3.1-70b, " in said and "params --list" in said
    assert "unit" in asked("kv", "llama-3.1-8b", "--budget", "40", code=2).stderr
