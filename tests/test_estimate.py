"""The estimate command, for people and for programs."""

import json

import pytest

from byteledger import cli, estimate, hf_config


def said(capsys, *arguments):
    status = cli.main(["estimate", *arguments])
    out = capsys.readouterr()
    return status, out.out, out.err


def test_json_has_what_programs_rely_on(capsys):
    status, out, _ = said(capsys, "llama-3.1-8b", "--strategy", "fsdp2", "--ledger", "fp32-adamw", "--dp", "8", "--checkpointing", "full", "--json")
    result = json.loads(out)
    assert status == 0
    for key in ("weights", "gradients", "master", "optimizer", "activations", "loss", "gathered"):
        assert isinstance(result["per_rank"][key], int)
    assert result["peak"] == {**result["peak"], "phase": "loss"} and isinstance(result["peak"]["bytes"], int)
    # 8,030,261,248 parameters, FP32 shards over 8 ranks: 4 bytes of weights, 4 of gradients, 8 of moments and 291 steps.
    assert result["per_rank"]["weights"] == result["per_rank"]["gradients"] == 8_030_261_248 // 2
    assert result["per_rank"]["optimizer"] == 8_030_261_248 + 4 * 291
    assert isinstance(result["host_bytes"], int) and result["ranks"] == []
    assert result["assumptions"] and result["unknown"] and result["revision"]
    # FSDPMemTracker, torch 2.13.0: 23,147,822,740 B for this very run (groundtruth row 8b, W = 8, checkpointing).
    assert result["peak"]["bytes"] == pytest.approx(23_147_822_740, rel=1e-4)


def test_pipeline_ranks_differ(capsys):
    _, out, _ = said(capsys, "llama-3.1-70b", "--strategy", "megatron-distributed-optimizer", "--ledger", "bf16-fp32-gradients", "--tp", "8", "--pp", "4", "--dp", "2", "--micro-batches", "8", "--json")
    result = json.loads(out)
    assert [rank["stage"] for rank in result["ranks"]] == [0, 1, 2, 3]
    activations = [rank["per_rank"]["activations"] for rank in result["ranks"]]
    assert activations[0] > activations[1] > activations[2] > activations[3]  # 1F1B: p - s micro-batches in flight
    assert result["ranks"][0]["parameters"] > result["ranks"][1]["parameters"] == result["ranks"][2]["parameters"]
    assert result["scenario"]["ranks"] == 64


def test_a_bare_count_leaves_terms_unknown(capsys):
    _, out, _ = said(capsys, "70B", "--strategy", "zero-3", "--dp", "64", "--json")
    result = json.loads(out)
    assert result["per_rank"]["activations"] is None and result["per_rank"]["gathered"] is None
    assert result["peak"] == {"phase": "optimizer", "bytes": 17_500_000_000, "at_least": True, "stage": 0, "layer": None}  # the whitepaper's 17.5 GB


def test_a_block_without_a_profile_says_so(capsys):
    _, out, _ = said(capsys, "gemma-2-9b", "--json")
    result = json.loads(out)
    assert result["per_rank"]["activations"] is None and result["peak"]["at_least"]
    assert any("activations" in line for line in result["unknown"])


@pytest.mark.parametrize("language, word", [("zh", "峰值"), ("en", "← peak")])
def test_for_people(capsys, language, word):
    status, out, _ = said(capsys, "llama-3.1-8b", "--strategy", "fsdp2", "--ledger", "fp32-adamw", "--dp", "8", "--accelerator", "h100-sxm-80gb", "--lang", language)
    assert status == 0 and word in out and "GiB" in out
    assert out.count("\n") > 25 and not [line for line in out.splitlines() if line != line.rstrip()]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("llama-3.1-8b", "--strategy", "zero3"), "data/strategies.yaml"),
        (("llama-3.1-8b", "--ledger", "none"), "data/ledgers.yaml"),
        (("llama-3.1-8b", "--accelerator", "h1000"), "data/accelerators.yaml"),
        (("llama-3.1-8b", "--tp", "7"), "tp = 7"),
        (("no-such-model",), "no-such-model"),
        (("70B", "--tp", "8"), "bare count"),
    ],
)
def test_refusals(capsys, arguments, words):
    """Exit 2 and one message on standard error."""
    status, out, err = said(capsys, *arguments)
    assert status == 2 and not out and words in err and err.count("\n") == 1


def test_an_encoder_has_no_training_step_here(tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2}))
    status, _, err = said(capsys, str(tmp_path / "config.json"))
    assert status == 2 and "encoder" in err


def test_verdicts_follow_the_device():
    """An estimate above the device's memory does not fit; one below 80 % is within the rule of Fujii et al. 2024 (arXiv 2411.06465)."""
    small = estimate.estimate("llama-3.1-8b", "fp32-adamw", "fsdp2", "h100-sxm-80gb", dp=8, checkpointing="full")
    large = estimate.estimate("llama-3.1-8b", "fp32-adamw", "ddp", "h100-sxm-80gb", precision="fp32")
    assert (small["accelerator"]["verdict"], large["accelerator"]["verdict"]) == ("fits", "too_large")
    assert small["accelerator"]["bytes"] == 81559 * 2**20


def test_every_note_has_both_languages():
    from byteledger.training_wording import ASSUMPTIONS, UNKNOWN

    for zh, en in [*ASSUMPTIONS.values(), *UNKNOWN.values()]:
        assert any("\u4e00" <= c <= "\u9fff" for c in zh) and not any("\u4e00" <= c <= "\u9fff" for c in en)


def test_a_refusal_is_a_refusal():
    with pytest.raises(hf_config.Refusal):
        estimate.find("ledgers", "no-such-ledger")
