"""data/observations.yaml as records, how they are written and passed over, and the runner of the cases. Needs no PyTorch."""

import importlib.metadata
import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from byteledger import catalog, parameters, strict_yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "scripts"))
from measuring import observations, runner  # noqa: E402
from measuring.cases import CASES, CUDA, DRAWN, GRID, HELD_OUT, QUICK, SMALL, UNSEEN  # noqa: E402

RECORDS = catalog.load().observations


@pytest.fixture
def edited(tmp_path):
    """Edits one record of a copy of data/observations.yaml and returns the faults as text."""
    shutil.copytree(catalog.DATA, tmp_path / "data")
    path = tmp_path / "data" / "observations.yaml"

    def edit(id, old, new):
        text = path.read_text(encoding="utf-8")
        start = text.index("\n%s:\n" % id)
        end = text.find("\n\n", start + 2) % len(text)
        assert old in text[start:end], old
        path.write_text(text[:start] + text[start:end].replace(old, new, 1) + text[end:], encoding="utf-8")
        return [str(fault) for fault in catalog.examine(tmp_path / "data")[1]]

    return edit


@pytest.mark.parametrize(
    "id, old, new, expected",
    [
        ("llama-tied-w2", "parameters: 77865984", "parameters: 77865985", "parameters is 77865985, but the fields give 77865984"),
        ("llama-tied-w2", "temp: 262144000", "temp: 262144001", "bytes add up to 1203347873, the highest of the phases is 1203347872"),
        ("llama-tied-w2", "  at_rest:", "  model: llama-2-7b\n  at_rest:", "needs exactly one of 'model' and 'config'"),
        ("llama-tied-w2", ", transformers: 5.24.0", "", "versions do not name 'transformers'"),
        ("llama-tied-w2", "phases: {forward: 810131864,", "phases: {forwards: 810131864,", "phases"),
        ("llama-tied-w2", "  date: ", "  dated: ", "unknown key 'dated'; did you mean 'date'?"),
        ("llama-tied-w2", "scripts/measure.py case", "scripts/guess.py case", "command is"),
        ("llama-tied-w2", "model_type: llama", "model_type: lama", "lama"),
        ("1b-w8-full-sdpa", "model: llama-3.2-1b", "model: llama-3.2-1", "no 'llama-3.2-1' in data/models.yaml"),
        ("layer-llama-sdpa-bf16", "measured: saved", "measured: states", "what is measured as 'states' needs 'parameters'"),
        ("shards-fsdp2-llama-odd-w3", "dp: 3", "dp: 4", "3 ranks for dp = 4"),
    ],
)
def test_a_record_that_cannot_be_is_refused(edited, id, old, new, expected):
    faults = edited(id, old, new)
    assert any(expected in fault and fault.startswith("data/observations.yaml:") for fault in faults), faults


def test_an_earlier_run_on_another_day_gave_the_same_peaks():
    """tests/measurements/fsdp2_peaks.json: other code on another day, with the same versions. Its configurations that the grid has."""
    rows = json.loads((ROOT / "tests" / "measurements" / "fsdp2_peaks.json").read_text(encoding="utf-8"))["rows"]
    compared = 0
    for row in rows:
        case = row["config"]
        given = {"attention": case.get("attn"), "dp": case.get("world"), "reshard_after_forward": case.get("reshard_after_forward")}
        given |= {"checkpointing": "full" if case.get("checkpoint") else "none", "micro_batch": case.get("b"), "sequence": case.get("s")}
        model = {"8b": "llama-3.1-8b", "70b": "llama-3.1-70b"}.get(case.get("preset"))  # the 1b of that run was untied
        for name, record in RECORDS.items():
            if record.measured == "fsdp2" and record.model == model is not None and {**record.settings, **given} == record.settings and case["mixed"] is True:
                assert max(record.phases.values()) == row["peak"], name
                compared += 1
    assert compared >= 4  # as many as the records have; the grid goes on


def test_states_at_rest_are_those_of_the_first_run():
    """AdamW keeps two moments in the parameters' format and 4 bytes of `step` for each of 21 tensors (L = 2: 9 L + 3); ties count once."""
    for name, size, tensors in (("states-llama-adamw-fp32", 4, 21), ("states-llama-adamw-bf16", 2, 21)):
        record = RECORDS[name]
        assert set(map(record.bytes.get, ("parameters", "gradients", "optimizer.exp_avg", "optimizer.exp_avg_sq"))) == {size * record.parameters}
        assert record.bytes["optimizer.step"] == 4 * tensors


def test_what_is_written_reads_back():
    value = {
        "a": [1, 2.5, True, None, "sdpa"], "b": {"version": "2.13.0+cpu", "date": "2026-12-03", "odd": "yes", "more": "1:30", "name": "aten.add.Tensor in x: y"},
        "empty": {}, "zero": "0", "word": "no", "python": "3.11.7", "two": "2.13",
    }  # fmt: skip
    found, _, faults = strict_yaml.load("key: %s\n" % observations.flow(value))
    assert faults == [] and found["key"] == value


def test_the_file_is_what_the_cases_say():
    """Nobody typed a record: each has the configuration of its case, or is no case of ours any more."""
    read = observations.read()
    for name, record in read.items():
        if name in CASES:
            kind, config, settings = CASES[name]
            assert record["measured"] == kind and {**record["settings"], **settings} == record["settings"], name
            assert ({"model": record["model"]} if "model" in record else record["config"]) == config, name
            assert bool(record.get("held_out")) == (name in HELD_OUT), name
    assert set(QUICK) <= set(read)


def test_writing_keeps_the_order_and_what_was_there(tmp_path):
    path = tmp_path / "observations.yaml"
    rows = [
        {"name": name, "kind": "saved", "config": {"model_type": "llama"}, "settings": {}, "date": "2026-12-03", "versions": {"python": "3.11.7"}, "bytes": {"mlp": 1}}
        for name in ("b", "a")
    ]
    assert observations.write(rows[:1], path, ("b", "a"), ()) == (1, 1)
    assert observations.write(rows, path, ("b", "a"), ("a",)) == (2, 1)
    assert list(observations.read(path)) == ["b", "a"] and observations.read(path)["a"]["held_out"] is True


def test_the_last_fifth_is_held_out_and_nobody_chose_it():
    grid = [name for name in HELD_OUT if name in GRID]
    assert len(grid) == len(GRID) // 5 and {name for name in HELD_OUT if name in DRAWN} == set(DRAWN)
    assert 0.18 < len(HELD_OUT) / (len(GRID) + len(UNSEEN) + len(DRAWN) + len(SMALL)) < 0.22
    assert not set(runner.chosen(["grid", "drawn", "*"], CASES, {"grid": GRID, "drawn": DRAWN}, HELD_OUT)) & set(HELD_OUT)


def test_every_case_can_be_counted():
    """What the estimator reads: a misspelt field of a case is found here, not after an hour of measuring."""
    data = catalog.load()
    for name, (_, config, settings) in {**CASES, **CUDA}.items():
        if settings.get("of") == "loss":
            continue
        fields = data.models[config["model"]].config() if "model" in config else config
        assert parameters.total(catalog.hf_config.from_dict(fields, name).architecture) > 10**6, name


CASE = {"one": ("saved", {"model_type": "llama"}, {}), "two": ("saved", {"model_type": "llama"}, {"sequence": 2})}
VERSIONS = {"python": "3.11.7", "torch": "2.13.0", "transformers": "5.24.0"}


@pytest.fixture
def here(monkeypatch, tmp_path):
    """A place without records, whose versions are known."""
    monkeypatch.setattr(observations, "versions", lambda settings={}: VERSIONS)
    monkeypatch.setattr(observations, "read", dict)
    return tmp_path / "out"


def measuring(calls, fault=None):
    def separate(case, timeout):
        calls.append((case, timeout))
        return (None, fault) if fault else ({"versions": VERSIONS, "bytes": {"mlp": 7}}, None)

    return separate


def test_a_run_goes_on_where_it_stopped(here, monkeypatch, capsys):
    calls = []
    assert runner.run(measuring(calls), ["one"], CASE, here, 5) == 0
    assert runner.run(measuring(calls), ["one", "two"], CASE, here, 5) == 0
    assert [case for case, _ in calls] == [CASE["one"], CASE["two"]]
    assert "2/2  two  7  0 s" in capsys.readouterr().out
    monkeypatch.setattr(observations, "versions", lambda settings={}: {**VERSIONS, "torch": "2.14.0"})
    assert runner.run(measuring(calls), ["one"], CASE, here, 5) == 0 and len(calls) == 3  # other versions: measured again
    changed = {"one": ("saved", {"model_type": "llama"}, {"sequence": 3})}
    assert runner.run(measuring(calls), ["one"], changed, here, 5) == 0 and len(calls) == 4


def test_what_is_recorded_is_passed_over(here, monkeypatch):
    row = {"name": "one", "kind": "saved", "config": {"model_type": "llama"}, "settings": {}, "date": "2026-12-03", "versions": VERSIONS, "bytes": {}}
    monkeypatch.setattr(observations, "read", lambda: {"one": observations.as_record(row, ())})
    calls = []
    assert runner.run(measuring(calls), ["one"], CASE, here, 5) == 0 and calls == []
    assert runner.run(measuring(calls), ["one"], CASE, here, 5, again=True) == 0 and len(calls) == 1


def test_a_fault_is_told_and_the_others_go_on(here, capsys):
    assert runner.run(measuring([], "out of memory"), ["one", "two"], CASE, here, 5) == 1
    said = capsys.readouterr().out
    assert "1/2  one  failed: out of memory" in said and "0 of 2 cases are measured; failed: one, two" in said
    assert list(here.iterdir()) == []


def test_no_case_is_begun_after_the_time_is_up(here, monkeypatch, capsys):
    """The set for a GPU: 470 seconds for all, whatever a case is allowed."""
    clock = iter(range(0, 10_000, 200))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    calls = []
    assert runner.run(measuring(calls), ["one", "two"], CASE, here, 90, seconds=470) == 1
    assert [timeout for _, timeout in calls] == [90] and "two  failed: no time left" in capsys.readouterr().out


def slow(*case):
    os.system("sleep 30")


def wrong(*case):
    raise ValueError("so it goes")


def test_each_case_has_a_process_of_its_own_with_a_limit():
    assert runner.forked(lambda *case: {"pid": os.getpid(), "case": case}, (1, 2), 10)[0]["pid"] != os.getpid()
    begun = time.monotonic()
    assert runner.forked(slow, (), 0.5) == (None, "took over 0 s") and time.monotonic() - begun < 10
    assert runner.forked(wrong, (), 10) == (None, "ValueError: so it goes")


def test_a_script_of_its_own_too(tmp_path):
    script = tmp_path / "child.py"
    script.write_text("import json, sys\nprint('noise')\nprint(json.dumps({'case': json.loads(sys.argv[2])}))\n")
    assert runner.apart(script, ["cuda", {}, {}], 20) == ({"case": ["cuda", {}, {}]}, None)
    script.write_text("raise SystemExit('CUDA out of memory')\n")
    assert runner.apart(script, [], 20) == (None, "CUDA out of memory")
    script.write_text("import time\ntime.sleep(30)\n")
    assert runner.apart(script, [], 1)[1] == "took over 1 s"


def test_versions_name_the_package_of_the_optimizer(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1 of " + name)
    assert observations.versions({"optimizer": "adamw_8bit_torchao"})["torchao"] == "1 of torchao"
    assert list(observations.versions()) == ["python", "torch", "transformers"]


def test_a_device_row_becomes_a_record():
    """As scripts/measure_gpu.py writes it; no GPU was at hand, so that no row of one is committed yet."""
    phases = {phase: 1000 for phase in ("forward", "loss", "backward", "optimizer")}
    row = {
        "name": "cuda-llama-bf16", "kind": "cuda", "config": CUDA["cuda-llama-bf16"][1], "settings": {}, "date": "2026-12-03", "versions": VERSIONS, "device": "some GPU",
        "parameters": 1, "bytes": {"outside": 5}, "phases": phases, "reserved": phases, "requested": phases, "snapshot": {"requested": 1000}, "command": "python scripts/measure_gpu.py",
    }  # fmt: skip
    record = catalog.FILES["observations"].model_validate(observations.as_record(row, ()))
    assert record.device == "some GPU" and record.phases == phases and json.dumps(record.reserved) == json.dumps(phases)
