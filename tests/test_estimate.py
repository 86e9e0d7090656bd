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


def test_fp8_copies_are_added(capsys):
    """Transformer Engine: one FP8 copy of each linear weight, two on Hopper; the 16-bit weights stay. 8B: 6,979,321,856 linear elements."""
    linear = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    found = []
    for copies in ("0", "1", "2"):
        _, out, _ = said(capsys, "llama-3.1-8b", "--strategy", "fsdp2", "--dp", "8", "--fp8-copies", copies, "--json")
        result = json.loads(out)
        assert result["per_rank"]["weights"] == 2 * 8_030_261_248 // 8
        found.append(result["moments"]["loss"].get("weight_copies", 0))
    assert found == [0, linear, 2 * linear]
    status, _, err = said(capsys, "llama-3.1-8b", "--ledger", "fp32-adamw", "--precision", "fp32", "--fp8-copies", "1")
    assert status == 2 and "fp8_copies" in err


def test_paged_moments_leave_the_device(capsys):
    """bitsandbytes pages states of 100,000 elements and more: 8 B a parameter of Llama 2 7B less its 65 norms of 4,096."""
    paged = 8 * (6_738_415_616 - 65 * 4096)
    plain, moved = (json.loads(said(capsys, "llama-2-7b", "--checkpointing", "full", "--json", *more)[1]) for more in ((), ("--paged",)))
    assert moved["host_bytes"] == paged and plain["host_bytes"] == 0
    assert plain["moments"]["loss"]["optimizer"] - moved["moments"]["loss"]["optimizer"] == paged
    assert moved["moments"]["optimizer"]["total"] == plain["moments"]["optimizer"]["total"]  # back for the update
    for more in (("--strategy", "fsdp2"), ("--optimizer", "lion"), ("--ledger", "bf16-pure-adamw")):
        assert said(capsys, "llama-2-7b", "--paged", *more)[0] == 2


def test_offload_takes_the_reduced_gradients_along(capsys):
    """FSDP2's CPUOffloadPolicy: between backward and update a rank has no share of weights, gradients or states on the device."""
    _, out, _ = said(capsys, "llama-3.1-8b", "--strategy", "fsdp2", "--ledger", "fp32-adamw", "--dp", "8", "--offload", "parameters", "--json")
    result = json.loads(out)
    assert {term: n for term, n in result["moments"]["optimizer"].items() if n and term != "buffers" and term != "total"} == {}
    # FP32 weights and gradients pinned tensor by tensor, each an eighth and rounded up to a power of two (CachingHostAllocator.h):
    # of 29,360,128 B (MLP) and 262,668,288 B (both tables); all others are powers of two. Two moments, 8 B a parameter, are not.
    layer = 2 * 2**23 + 2 * 2**21 + 3 * 2**25 + 2 * 2048
    assert result["host_bytes"] == 8 * 2 * (32 * layer + 2 * 2**28 + 2048) + 8 * 8_030_261_248


@pytest.mark.parametrize(
    "more, whose",
    [
        (("--strategy", "ddp", "--reshard-after-forward", "false"), "FSDP2 reads it"),
        (("--strategy", "fsdp2", "--reduce-bucket-size", "1000"), "DeepSpeed's stages 1 to 3"),
        (("--strategy", "zero-3", "--overlap-comm"), "stages 1 and 2"),
        (("--strategy", "fsdp2", "--gradient-as-bucket-view"), "DistributedDataParallel"),
        (("--loss-chunks", "4"), "the chunked loss"),
        (("--lora-targets", "all-linear"), "lora_rank"),
    ],
)
def test_a_setting_that_changes_nothing_is_refused(capsys, more, whose):
    status, out, err = said(capsys, "llama-3.2-1b", *more)
    assert status == 2 and out == "" and "changes nothing here" in err and whose in err


def test_each_term_says_what_it_stands_on(capsys):
    """FSDP2 with a ledger that was measured: all terms measured; under tensor parallelism all are estimates. Notes are numbered."""
    def terms(*more):
        return {term["term"]: term for term in json.loads(said(capsys, "llama-3.1-8b", "--json", *more)[1])["terms"]}

    measured = terms("--strategy", "fsdp2", "--ledger", "fp32-adamw", "--dp", "8")
    assert {term["evidence"] for term in measured.values()} == {"measured"}
    assert {term["evidence"] for term in terms("--strategy", "megatron-distributed-optimizer", "--ledger", "bf16-fp32-gradients", "--tp", "8", "--dp", "2").values()} == {"estimate"}
    mixed = terms("--strategy", "fsdp2", "--dp", "8")  # a master copy beside FSDP2's shards: its states are measured, its moments not
    assert (mixed["master"]["evidence"], mixed["gathered"]["evidence"]) == ("measured", "estimate")
    _, out, _ = said(capsys, "llama-3.1-8b", "--strategy", "fsdp2", "--ledger", "fp32-adamw", "--dp", "8")
    line = next(line for line in out.splitlines() if line.strip().startswith("gathered weights"))
    assert "measured · step.backward [1]" in line and "  [1] FSDP mixed precision" in out


def test_a_stage_without_a_loss_has_no_such_moment(capsys):
    _, out, _ = said(capsys, "llama-3.1-70b", "--strategy", "megatron-distributed-optimizer", "--ledger", "bf16-fp32-gradients", "--tp", "8", "--pp", "4", "--dp", "2", "--micro-batches", "8", "--json")
    assert [rank["peak"]["phase"] for rank in json.loads(out)["ranks"]] == ["forward", "forward", "forward", "loss"]


def test_the_last_rank_holds_less_where_rows_do_not_divide(capsys):
    """Mixtral 8x7B on 64 ranks: 8 experts cannot be cut into 64, so ranks 8 to 63 have rows of none and keep no moments of them."""
    _, out, _ = said(capsys, "mixtral-8x7b", "--strategy", "fsdp2", "--ledger", "fp32-adamw", "--dp", "64", "--json")
    first, last = json.loads(out)["ranks"]
    assert (first["rank"], last["rank"]) == (0, 63)
    assert first["per_rank"]["weights"] == last["per_rank"]["weights"]
    routed = 32 * 8 * 3 * 4096 * 14336
    assert first["per_rank"]["optimizer"] - last["per_rank"]["optimizer"] >= 8 * routed // 8  # an expert of every layer, two FP32 moments
    assert json.loads(said(capsys, "llama-3.1-8b", "--strategy", "fsdp2", "--dp", "64", "--json")[1])["ranks"] == []
