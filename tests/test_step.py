"""The peak of a step against PyTorch's own tracker, rank by rank and moment by moment.

Source of the bytes: FSDPMemTracker over FakeTensors with the fake process group, torch 2.13.0, transformers 5.24.0, a
second step after a warm-up one. fsdp2_peaks.json are the shapes at hand while the formulas were written; the observations of
data/ are in test_observed.py.
"""

import json
from pathlib import Path

import pytest

from byteledger import estimate, hf_config, training

MEASUREMENTS = Path(__file__).resolve().parent / "measurements"
PEAKS = json.loads((MEASUREMENTS / "fsdp2_peaks.json").read_text(encoding="utf-8"))["rows"]
PRESETS = {
    "1b": {"hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "head_dim": 64, "intermediate_size": 8192},
    "8b": {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128, "intermediate_size": 14336},
    "70b": {"hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "head_dim": 128, "intermediate_size": 28672},
}
def estimated(config, settings):
    """The rank of an estimate under FSDP2: FP32 shards with BF16 compute, pure BF16, or FP32 throughout."""
    architecture = hf_config.from_dict(config, "test").architecture
    given = {key: value for key, value in settings.items() if key != "precision"}
    precision = settings.get("precision")
    if precision == "fp32":
        given["precision"] = "fp32"
    ledger = "bf16-pure-adamw" if precision == "bf16" else "fp32-adamw"
    return training.estimate(architecture, estimate.scenario(ledger, "fsdp2", **given))


@pytest.mark.parametrize("row", PEAKS, ids=lambda row: "%(preset)s-%(world)d-%(attn)s-%(s)d" % row["config"])
def test_measured_peaks(row):
    c = row["config"]
    config = {"model_type": "llama", "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False, **PRESETS[c["preset"]]}
    settings = {
        "dp": c["world"], "sequence": c["s"], "micro_batch": c["b"], "attention": c["attn"], "reshard_after_forward": c["reshard_after_forward"],
        "checkpointing": "full" if c["checkpoint"] else "none", "precision": None if c["mixed"] else "bf16",
    }  # fmt: skip
    rank = estimated(config, settings).worst
    assert rank.phase == row["phase"]
    assert rank.peak == pytest.approx(row["peak"], rel=1e-4)  # the bound; the largest difference is 5e-7


def test_a_block_without_heights_is_said_to_be_a_floor():
    """Experts computed one by one: the temporaries of their backward have no model, so the peak is a floor and says so."""
    config = {
        "model_type": "mixtral", "hidden_size": 1024, "num_hidden_layers": 3, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64,
        "intermediate_size": 3584, "vocab_size": 8192, "tie_word_embeddings": False, "num_local_experts": 8, "num_experts_per_tok": 2,
    }  # fmt: skip
    for experts, floor in (("eager", True), ("grouped_mm", False)):
        assert ("backward" in {id for id, _ in estimated(config, {"dp": 2, "experts": experts}).unknown}) is floor


def test_megatron_seven_billion():
    """NVIDIA/Megatron-LM golden values, gpt3_7b_tp4_pp1 on H100: allocated 20,663,519,232 B after a step, 57,143,791,616 B at most.

    32 layers, hidden 4096, 32 heads, 8 KV heads, LayerNorm with biases, vocabulary 131,073 padded to 131,584, BF16,
    distributed optimizer with d = 2, tp 4, micro-batch 2 of 8,192 tokens. Read as StarCoder2, whose block has these
    tensors; the run's learned positions, 33.6 M parameters on each rank, are not among them.
    """
    config = {
        "model_type": "starcoder2", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 16384, "vocab_size": 131584, "tie_word_embeddings": False, "use_bias": True,
    }  # fmt: skip
    architecture = hf_config.from_dict(config, "test").architecture
    settings = estimate.scenario("bf16-fp32-gradients", "megatron-distributed-optimizer", dp=2, tp=4, micro_batch=2, sequence=8192, dropout=0.1, micro_batches=2)
    rank = training.estimate(architecture, settings).worst
    assert rank.share.elements == pytest.approx(1_713_299_456 - 8192 * 4096, rel=1e-3)
    states = sum(rank.moments["optimizer"][term] for term in ("weights", "gradients", "master", "optimizer"))
    assert states + 12 * 8192 * 4096 == pytest.approx(20_663_519_232, rel=0.01)
    assert rank.peak + 12 * 8192 * 4096 == pytest.approx(57_143_791_616, rel=0.03)
