"""Estimates beside what PyTorch was measured to hold: every record of data/observations.yaml, and what others published.

Source of the bytes: scripts/measure.py with torch 2.13.0 and transformers 5.24.0; each record names its versions and its command.
The held-out groups were measured after the formulas were final: scripts/measuring/cases.py tells the history.
"""

import pytest

from byteledger import catalog, observed, units

DATA = catalog.load()
ALL = DATA.comparisons


def group(id):
    return [one for one in ALL.values() if one.group == id]


@pytest.mark.parametrize("id", DATA.comparison_groups)
def test_no_difference_is_larger_than_promised(id):
    """0.01 % for dense models, 2 % for others, nought for states at rest and shards: the bounds of comparison_groups.yaml."""
    bound = DATA.comparison_groups[id].within_percent
    assert [(one.id, one.percent) for one in group(id) if one.percent is not None and abs(one.percent) > bound] == []
    assert len(group(id)) > 3 or id == "device-peak"  # nobody has measured a GPU yet


def test_every_comparison_has_a_group():
    assert [one.id for one in ALL.values() if one.group is None] == [] and len(ALL) > 500


def test_the_bounds_are_those_that_were_promised():
    bounds = {id: record.within_percent for id, record in DATA.comparison_groups.items()}
    assert bounds["peak-dense"] == bounds["peak-dense-held-out"] == 0.01 and bounds["peak-other"] == 2
    assert {bounds[id] for id in ("between-steps", "between-steps-held-out", "shards")} == {0}


@pytest.mark.parametrize("id", ["peak-dense", "peak-dense-held-out", "peak-other"])
def test_the_moment_is_right(id):
    """The measured moment of the peak is the estimated one, in every run but that whose cause says otherwise."""
    assert [one.id for one in group(id) if one.moments[0] != one.moments[1] and one.cause != "experts-forward"] == []


def test_every_difference_has_a_cause():
    """A new observation may differ without one; those that are recorded may not."""
    assert [one.id for one in ALL.values() if one.difference != 0 and one.cause is None] == []


def test_what_has_no_model_is_said():
    """Temporaries of quantized optimizers: 8-bit and 4-bit, two models each, and nothing else."""
    missing = [one.id for one in ALL.values() if one.estimated is None]
    assert len(missing) == 6 and all("bit" in id and id.endswith(".temporaries") for id in missing)


def test_seeds_are_all_that_differs():
    """Where a peak is put down to attention's random state, the difference is 24 B for each of some of the layers."""
    found = [one for one in ALL.values() if one.cause == "attention-seeds" and one.kind == "peak"]
    assert len(found) > 30
    for one in found:
        layers = DATA.observations[one.observation].fields(DATA.models)["num_hidden_layers"]
        assert one.difference % 24 == 0 and 0 < one.difference <= 24 * (layers + 1), one.id


def test_the_held_out_fifth_is_there():
    """One case of five of the grid, and 20 that a generator drew: scripts/measuring/cases.py says which."""
    held_out = {id for id, record in DATA.observations.items() if record.held_out}
    assert len(held_out) == 34 and sum(id.startswith("drawn-") for id in held_out) == 20
    assert {one.observation for one in group("peak-dense-held-out")} == held_out


def test_measured_multiples_of_the_weights():
    """Pure BF16 AdamW holds 4 times its weights, a BF16 model with FP32 master and gradients 9 times; a peak 50 times a rank's share."""
    def multiple(id):
        one = ALL[id]
        return one.measured / (2 * one.parameters / one.ranks)

    assert multiple("states-llama-adamw-bf16.states") == pytest.approx(4, rel=1e-4)
    assert multiple("states-llama-adamw-bf16-master.states") == pytest.approx(9, rel=1e-4)
    assert multiple("8b-w64-full-sdpa.peak") > 6 * 8


def test_the_same_parameters_keep_other_bytes():
    """One Llama layer, 512 tokens: what autograd keeps differs more than threefold by precision and attention."""
    kept = [ALL["layer-llama-%s.activations" % name].measured for name in ("sdpa-bf16", "sdpa-autocast", "eager-bf16", "eager-fp32")]
    assert kept == sorted(kept) and kept[-1] > 3 * kept[0]


def test_eager_attention_is_a_higher_peak():
    sdpa, eager = ALL["8b-w64-full-sdpa.peak"], ALL["8b-w64-full-eager.peak"]
    assert eager.measured > 1.2 * sdpa.measured and (sdpa.moments[0], eager.moments[0]) == ("loss", "backward")


def test_what_is_gathered_is_measured():
    """70B without a reshard after forward: the peak is above the whole BF16 weights, whatever the share at rest."""
    for model in ("1b", "70b"):
        keep, usual = ALL["%s-w64-keep-full-%s.peak" % (model, "sdpa")], ALL["%s-w64-full-%s.peak" % (model, "sdpa" if model == "1b" else "eager")]
        assert keep.measured > usual.measured and keep.measured > 2 * keep.parameters
    assert ALL["70b-w64-keep-full-sdpa.between_steps"].measured < 14e9


# Per cent by which an estimate may be off a figure that somebody else measured, where the source tells its settings in full.
TOLD = {
    **dict.fromkeys(("megatron-7b-tp4-h100", "megatron-7b-tp4-a100", "megatron-7b-tp4-gb200", "megatron-7b-pp4-gb200", "megatron-7b-pp4-a100"), 3),
    **dict.fromkeys(("megatron-7b-tp4-h100-states", "megatron-7b-tp4-a100-states", "megatron-7b-tp4-gb200-states"), 3),
    **dict.fromkeys(("torchao-7b-adamw-8bit", "torchao-7b-adamw-8bit-torchao", "torchao-7b-adamw-4bit"), 2),
    **dict.fromkeys(("simumax-70b-tp4-dp2", "simumax-70b-tp8", "simumax-70b-tp2-cp4"), 2),
    "litgpt-double-quantization": 5, "lomo-7b-states": 0.1, "torchtune-3b-checkpointing": 1,
}  # fmt: skip


@pytest.mark.parametrize("id", TOLD)
def test_published_measurements(id):
    record = DATA.published_measurements[id]
    off = 100 * (DATA.published_estimate(id) / units.in_bytes(record.measured, record.unit) - 1)
    assert abs(off) <= TOLD[id]


def test_every_published_measurement_says_what_is_left_unsaid():
    for id, record in DATA.published_measurements.items():
        assert len(record.unsaid.zh) > 8 and len(record.unsaid.en) > 20, id
        assert DATA.published_estimate(id) > 0


def test_a_cuda_record_stands_beside_an_estimate():
    """A made-up record of scripts/measure_gpu.py, with the device of nobody: it joins the table as a peak on one GPU."""
    phases = {"forward": 10, "loss": 30, "backward": 20, "optimizer": 25}
    settings = {"precision": "bf16", "attention": "sdpa", "experts": "grouped_mm", "checkpointing": "none", "keeps_logits": True, "optimizer": "adamw", "optimizer_implementation": "foreach", "micro_batch": 1, "sequence": 128}
    record = catalog.FILES["observations"].model_validate(
        {
            "measured": "cuda", "model": "llama-3.2-1b", "settings": settings, "parameters": 1_235_814_400, "phases": phases, "requested": phases,
            "reserved": phases, "snapshot": {"requested": 30}, "bytes": {"outside": 1}, "device": "some GPU", "versions": {"python": "3.11.7", "torch": "2.13.0", "transformers": "5.24.0"},
            "date": "2026-12-03", "command": "python scripts/measure_gpu.py",
        }
    )  # fmt: skip
    (one,) = observed.comparisons("cuda-x", record, DATA.models, DATA.ledgers, DATA.strategies)
    observed.together([one], DATA.comparison_groups, DATA.differences)
    assert (one.group, one.measured, one.moments[0]) == ("device-peak", 30, "loss")
    assert one.estimated > 8 * 1_235_814_400 and one.cause is None  # pure BF16 AdamW: 8 B a parameter before anything else
