"""The committed observations hold on this machine: a small set is measured again, with PyTorch and transformers, in under two minutes.

Run where both are importable: python -m pytest --noconftest -m measured tests/test_measured.py (make measured).
"""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
import measure  # noqa: E402
from measuring import cuda, models, observations, runner  # noqa: E402
from measuring.cases import CASES, CUDA, QUICK  # noqa: E402
from torch.distributed._tools.mem_tracker import MemTracker, _UpdateType  # noqa: E402

pytestmark = pytest.mark.measured

RECORDS = observations.read()


@pytest.fixture(scope="module", autouse=True)
def imported():
    measure.prepare(QUICK)


def compared(row):
    """What a measurement must give again: all its bytes, but for what DDP's gloo threads happen to hold.

    Not the place of the peak: where two layers reach the same sum, either may be met first.
    """
    record = observations.as_record(row, ())
    ranks = [{kind: size for kind, size in rank.items() if kind != "other"} for rank in record.get("ranks", [])]
    return {key: record[key] for key in ("parameters", "bytes", "phases", "at_rest", "temporaries") if key in record} | {"ranks": ranks}


@pytest.mark.parametrize("name", QUICK)
def test_measured_again(name):
    """Each in a process forked from this one, as scripts/measure.py does it."""
    kind, config, settings = CASES[name]
    result, fault = runner.forked(measure.measured, CASES[name], 100)
    assert fault is None
    row = {"name": name, "kind": kind, "config": config, "settings": settings, "date": "", **result}
    recorded = {key: RECORDS[name][key] for key in compared(row) if key in RECORDS[name]}
    recorded["ranks"] = [{kind: size for kind, size in rank.items() if kind != "other"} for rank in recorded.get("ranks", [])]
    if {key: value for key, value in result["versions"].items() if key != "python"} != {key: value for key, value in RECORDS[name]["versions"].items() if key != "python"}:
        pytest.skip("recorded with %s, here are %s" % (RECORDS[name]["versions"], result["versions"]))
    assert compared(row) == recorded


class OnCpu(MemTracker, cuda.Allocator):
    """torch.cuda's allocator as far as measuring/cuda.py sees it, over real tensors on the CPU.

    Blocks of 512 bytes in segments of 2 MiB, never given back; the events carry the bytes that were asked for, as
    alloc_found_block and free_block of c10/cuda/CUDACachingAllocator.cpp record them.
    """

    device = "cpu"

    def __init__(self):
        super().__init__()
        self.current = dict.fromkeys(("allocated", "requested", "reserved"), 0)
        self.most, self.events = dict(self.current), []

    def _update_snap(self, kind, info, old_mem_consumed=None, old_reftype=None):
        super()._update_snap(kind, info, old_mem_consumed, old_reftype)
        before = {_UpdateType.ADD: 0, _UpdateType.DEL: info.mem_consumed, _UpdateType.SIZE: old_mem_consumed}.get(kind)
        if before is None:
            return
        after = 0 if kind is _UpdateType.DEL else info.mem_consumed
        for size, sign in ((before, -1), (after, 1)):
            block = -(-size // 512) * 512
            self.current["requested"] += sign * size
            self.current["allocated"] += sign * block
            if block:
                self.events.append({"action": "alloc" if sign > 0 else "free_completed", "size": size})
        if self.current["allocated"] > self.current["reserved"]:
            more = -(-(self.current["allocated"] - self.current["reserved"]) // 2**21) * 2**21
            self.current["reserved"] += more
            self.events.append({"action": "segment_alloc", "size": more})
        self.most = {key: max(self.most[key], size) for key, size in self.current.items()}

    def _pre_fw_hook(self, *given):
        """MemTracker looks at modules here, and allows each to run once; only storages count for us."""

    _post_fw_hook = _pre_bw_hook = _post_bw_hook = _pre_fw_hook

    def name(self):
        return "a CPU"

    def settle(self):
        pass

    def begin(self):
        self.most = dict(self.current)

    def now(self):
        return dict(self.current)

    def peak(self):
        return dict(self.most)

    def outside(self):
        return 0

    def watch(self):
        self.events.clear()

    def snapshot(self):
        return {"segments": [], "device_traces": [list(self.events)]}


CONFIG = CASES["states-llama-adamw-bf16"][1]  # 2 layers, D = 256, V = 1000


def on_cpu(allocator_class=OnCpu, **settings):
    allocator = allocator_class()
    with allocator:
        return cuda.measure(CONFIG, allocator, micro_batch=2, sequence=64, **settings)


def test_a_step_on_a_device_by_phase():
    """One device in pure BF16: C = 8N + 2N (foreach) when the optimizer steps, as PyTorch's CPU allocator has it (ground truth, 5.1)."""
    found = on_cpu()
    N, T = found["parameters"], 21
    assert list(found["phases"]) == ["forward", "loss", "backward", "optimizer"]
    rest = 2 * N + 4 * N + 4 * T
    ids, rotary = 8 * 2 * 64, 128  # int64 tokens, and the two FP32 frequency tables of the rotary embedding
    assert found["requested"]["optimizer"] - (rest + 2 * N + ids + rotary) in range(2 * N, 2 * N + 200)
    # log-softmax 4sbV, logits 2sbV and two FP32 gradients of them 8sbV are alive together in the loss.
    assert found["requested"]["loss"] > rest + 14 * 128 * 1000
    assert found["requested"]["loss"] > found["requested"]["forward"]
    for phase, most in found["phases"].items():
        assert found["requested"][phase] <= most <= found["reserved"][phase] and most % 512 == 0
    assert found["snapshot"]["requested"] == max(found["requested"].values()) < max(found["phases"].values())
    assert found["snapshot"]["reserved"] == max(found["reserved"].values())
    assert found["bytes"]["weights_and_inputs"] % 512 == 0 and found["bytes"]["weights_and_inputs"] - (2 * N + ids + rotary) in range(0, 512 * 25)


def test_the_logits_can_be_dropped_and_layers_recomputed():
    kept, loose, full = on_cpu(), on_cpu(keeps_logits=False), on_cpu(checkpointing="full")
    assert kept["requested"]["loss"] - loose["requested"]["loss"] == 2 * 128 * 1000  # 2sbV
    assert full["requested"]["loss"] < kept["requested"]["loss"]
    fused = on_cpu(optimizer_implementation="fused")
    assert kept["requested"]["optimizer"] - fused["requested"]["optimizer"] > 1.9 * kept["parameters"]  # foreach: one more copy of the parameters


def recorded(found):
    """The measurement as the record that scripts/measure.py would write."""
    row = {"name": "cuda-x", "kind": "cuda", "config": CONFIG, "settings": {}, "date": "2026-12-03", "versions": observations.versions(), "command": "python scripts/measure_gpu.py"}
    return observations.as_record(row | found, ())


def test_what_is_measured_makes_a_sound_record():
    pytest.importorskip("pydantic")
    from byteledger import observation_checks
    from byteledger.records import Observation

    record = recorded(on_cpu())
    assert list(observation_checks.faults(Observation.model_validate(record), {})) == []
    record["snapshot"]["requested"] -= 512
    ((key, finding, _),) = observation_checks.faults(Observation.model_validate(record), {})
    assert key == "snapshot" and "that of the recorded events" in finding


def test_a_case_that_names_a_model_gets_its_fields(monkeypatch, capsys):
    import measure_gpu

    monkeypatch.setattr(cuda, "measure", lambda config, **settings: {"fields": sorted(config), "settings": settings})
    measure_gpu.child(json.dumps(CUDA["cuda-llama-3.2-1b-full"]))
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert "hidden_size" in said["fields"] and said["settings"] == CUDA["cuda-llama-3.2-1b-full"][2]


def test_every_case_for_a_device_can_be_built():
    """A misspelt field would be found on the GPU only, when its time is being paid for."""
    with torch.device("meta"):
        for name, (_, config, settings) in CUDA.items():
            built = models.model(measure.fields(config), "bf16", settings.get("attention", "sdpa"))
            assert sum(parameter.numel() for parameter in built.parameters()) > 10**7, name


def test_no_device_is_said(capsys):
    import measure_gpu

    if torch.cuda.is_available():
        pytest.skip("there is one")
    sys.argv[1:], before = [], sys.argv[1:]
    try:
        assert measure_gpu.main() == 2
    finally:
        sys.argv[1:] = before
    assert "no CUDA device" in capsys.readouterr().err
