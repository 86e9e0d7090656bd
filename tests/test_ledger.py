import pytest

from byteledger import catalog, ledger, quantities, units
from byteledger.arguments import ArgumentError

BASELINE = dict(b_w=2, b_g=2, b_master=4, b_m=4, b_v=4)
DATA = catalog.load()


def states(id):
    record = DATA.ledgers[id]
    return dict(
        b_w=record.weights, b_g=record.gradients, b_master=record.master_weights, b_m=record.first_moment, b_v=record.second_moment
    )


def test_baseline_states():
    """Whitepaper 2.3: 2 + 2 + 4 + 4 + 4 = 16 B/parameter; 2 B/parameter of weights."""
    assert states("bf16-adamw") == BASELINE
    assert ledger.bytes_per_parameter(**states("bf16-adamw")) == 16
    assert states("bf16-inference") == dict(b_w=2, b_g=0, b_master=0, b_m=0, b_v=0)


@pytest.mark.parametrize("scale, weights_gb, persistent_gb", [("7B", 14, 112), ("13B", 26, 208), ("70B", 140, 1120), ("175B", 350, 2800)])
def test_whitepaper_scales(scale, weights_gb, persistent_gb):
    """Whitepaper 7.2: the table of representative parameter scales, decimal GB."""
    selection = {"parameters": scale, "ledger": "bf16-adamw"}
    assert quantities.evaluate(DATA, "ledger.weights", selection).value == units.from_gb(weights_gb)
    assert quantities.evaluate(DATA, "ledger.persistent", selection).value == units.from_gb(persistent_gb)


def test_six_times_heuristic():
    """Whitepaper 2.4: 6 x 140 GB is about 840 GB."""
    assert ledger.six_times_heuristic(ledger.weights(70e9, 2)) == units.from_gb(840)


def test_ratio_is_eight():
    """Whitepaper 2.4: 16 / 2 = 8, not 6."""
    assert ledger.persistent_to_weights(**states("bf16-adamw")) == 8


@pytest.mark.parametrize(
    "id, published",
    [
        ("bf16-adamw", 16),  # Rajbhandari et al. 2019, section 3.1: 2 + 2 + K, K = 12
        ("bf16-pure-adamw", 8),  # LLaMA-Factory, hardware requirement: pure_bf16
        ("fp32-adamw", 16),  # Megatron-LM, docs on the distributed optimizer: fp32 parameters, fp32 gradients
        ("bf16-fp32-gradients", 18),  # Megatron-LM: bf16 parameters, fp32 gradients; DeepSpeed estimate_zero3
        ("fp16-both-gradients", 20),  # Megatron-LM: fp16 parameters, fp16 gradients; DeepSpeed estimate_zero2
        ("jax-scaling-book", 10),  # How to Scale Your Model: bf16 parameters, fp32 moments
        ("bf16-adam-8bit", 6.03125),  # bitsandbytes: 2 x (1 + 4/256) for the moments
        ("bf16-adam-4bit", 5.0625),  # torchao: 2 x (0.5 + 4/128)
        ("muon-fp32-gradients", 14),  # DeepSpeed, blog on Muon: one FP32 momentum
        ("deepseek-v3-moments", 14),  # DeepSeek-V3's recipe: BF16 moments, FP32 master and gradients, before its FP8 copies
        ("bf16-sgd", 4),  # torchtune#389: BF16 weights and gradients, nothing else
    ],
)
def test_conventions_in_public_use(id, published):
    assert ledger.bytes_per_parameter(**states(id)) == published


# What fourteen public sources add up to, and as which of our ledgers: weights, master, gradients, m, v.
PROFILES = {
    "ZeRO paper": ("bf16-adamw", (2, 4, 2, 4, 4), 16),
    "DeepSpeed estimate_zero2": ("deepspeed-zero-2", (2, 4, 6, 4, 4), 20),
    "DeepSpeed estimate_zero3": ("deepspeed-zero-3", (2, 4, 4, 4, 4), 18),
    "Hugging Face, EleutherAI, ml-engineering": ("bf16-fp32-gradients", (2, 4, 4, 4, 4), 18),
    "Megatron-LM, BF16": ("bf16-fp32-gradients", (2, 4, 4, 4, 4), 18),
    "Megatron-LM, FP16": ("fp16-both-gradients", (2, 4, 6, 4, 4), 20),
    "FP32, FSDP2 with FP32 shards": ("fp32-adamw", (4, 0, 4, 4, 4), 16),
    "LLaMA-Factory pure_bf16": ("bf16-pure-adamw", (2, 0, 2, 2, 2), 8),
    "Ultra-Scale Playbook, FP32 accumulation": ("fp32-accumulation", (2, 4, 6, 4, 4), 20),
    "How to Scale Your Model": ("jax-scaling-book", (2, 0, 0, 4, 4), 10),
    "bitsandbytes, 8 bit": ("bf16-adam-8bit", (2, 0, 2, 1.015625, 1.015625), 6.03125),
    "torchao, 4 bit": ("bf16-adam-4bit", (2, 0, 2, 0.53125, 0.53125), 5.0625),
    "Muon, hidden matrices": ("muon-fp32-gradients", (2, 4, 4, 4, 0), 14),
    "torchtune#389, SGD": ("bf16-sgd", (2, 0, 2, 0, 0), 4),
}


@pytest.mark.parametrize("source", PROFILES)
def test_every_published_profile_has_a_ledger(source):
    id, parts, total = PROFILES[source]
    of = states(id)
    assert (of["b_w"], of["b_master"], of["b_g"], of["b_m"], of["b_v"]) == parts
    assert ledger.bytes_per_parameter(**of) == total


def test_six_times_has_a_range():
    """The rule against real configurations: 16 / 2 = 8 (ZeRO), 20 / 2 = 10 (Playbook), and a fraction of the weights with QLoRA."""
    ratio = {id: quantities.evaluate(DATA, "lora.over_weights", {"recipe": id}).value for id in DATA.recipes}
    assert len(ratio) >= 20
    assert ratio["llama-3.1-70b.bf16-adamw"] == 8 and ratio["llama-3.1-70b.fp32-accumulation"] == 10
    assert min(ratio, key=ratio.get) == "mixtral-8x7b.attention-16.nf4-double"  # the pages name it as the least
    assert max(ratio.values()) == ratio["llama-2-7b.deepspeed-zero-2"] == 10  # and this as the most
    assert not any(5.5 < value < 6.5 for value in ratio.values())  # none is near six, as the pages say


def test_adam_states_of_gpt2():
    """DeepSpeed's ZeRO tutorial: the Adam states of a 1.5B model take 18 GB. https://www.deepspeed.ai/tutorials/zero/"""
    assert ledger.optimizer(1.5e9, 4, 4, 4) == units.from_gb(18)


def test_peak_is_the_sum():
    """Whitepaper 2.3: four terms, each of which counts once."""
    assert ledger.peak(1, 10, 100, 1000) == 1111
    assert ledger.peak(M_persistent=0, M_activation=0, M_temp=0, M_comm=0) == 0


@pytest.mark.parametrize("argument", ["b_w", "b_g", "b_master", "b_m", "b_v"])
@pytest.mark.parametrize("bad", [-1, -0.5, float("nan"), float("inf"), True, False, "2", None])
def test_bad_bytes_are_refused_by_name(argument, bad):
    with pytest.raises(ArgumentError) as error:
        ledger.persistent(70e9, **{**BASELINE, argument: bad})
    assert error.value.name == argument and repr(bad) in str(error.value)


@pytest.mark.parametrize("bad", [0, -7, 0.5, 1.5, float("nan"), float("inf"), True, "7e9", None])
def test_bad_parameter_counts_are_refused(bad):
    with pytest.raises(ArgumentError) as error:
        ledger.weights(bad, 2)
    assert error.value.name == "N" and repr(bad) in str(error.value)


def test_a_ratio_needs_weights():
    with pytest.raises(ArgumentError, match="b_w = 0"):
        ledger.persistent_to_weights(0, 2, 4, 4, 4)


@pytest.mark.parametrize("N", [10**400, 1e308])
def test_an_overflow_is_refused(N):
    with pytest.raises(ArgumentError, match="M_persistent = .*overflows"):
        ledger.persistent(N, **BASELINE)


def test_six_times_is_used_nowhere_else():
    """The heuristic stands by itself: no other function of the package calls it."""
    from pathlib import Path

    package = Path(ledger.__file__).parent
    uses = [path.name for path in sorted(package.glob("*.py")) if "six_times" in path.read_text(encoding="utf-8")]
    assert uses == ["ledger.py", "quantities.py"]  # defined; named for the pages
    assert (package / "ledger.py").read_text(encoding="utf-8").count("six_times_heuristic") == 1
