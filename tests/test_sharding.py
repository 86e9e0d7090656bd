"""Shards to the byte: rows that PyTorch, DeepSpeed and Megatron-LM measured or print, from tests/measurements/."""

import json
import random
from pathlib import Path

import pytest

from byteledger import catalog, distributed, parameters, per_rank, sharding, units
from byteledger.arguments import ArgumentError
from byteledger.parameters import Tensor

MEASUREMENTS = Path(__file__).resolve().parent / "measurements"
DATA = catalog.load()


def measured(name):
    return json.loads((MEASUREMENTS / name).read_text(encoding="utf-8"))


def tensors_of(architecture):
    return [(tensor, 1) for tensor in architecture.outside] + [(tensor, times) for layer, times in architecture.layers for tensor in layer.tensors]


# --- the toy models, in the order of model.parameters(): the embedding, each layer, the final norm, the head


def units_of(model):
    """The FSDP1 units of a toy model: the root's tensors before the layers, each layer, the root's after them."""
    m = SHARDS["models"][model]
    D, V = m["hidden_size"], m["vocab_size"]
    before, after = [Tensor("embed_tokens.weight", (V, D), "embedding")], parameters.rms_norm("norm", D) + parameters.output_head(V, D)
    if model == "gpt2":
        before, after = before + parameters.position_embedding(m["positions"], D), parameters.layer_norm("norm", D)
        attention = parameters.grouped_query_attention(D, 6, 6, D // 6, qkv_bias=True, o_bias=True, fused=True)
        layer = parameters.layer_norm("ln_1", D) + attention + parameters.layer_norm("ln_2", D) + parameters.plain_mlp(D, 4 * D)
    else:
        attention = parameters.linear("q", D, m["query_width"], "attention") + parameters.linear("k", D, m["key_width"], "attention")
        attention += parameters.linear("v", D, m["key_width"], "attention") + parameters.linear("o", m["query_width"], D, "attention")
        if model == "mixtral":
            mlp = parameters.router(m["num_experts"], D) + parameters.experts(m["num_experts"], D, m["intermediate_size"])
        else:
            mlp = parameters.gated_mlp(D, m["intermediate_size"])
        layer = attention + mlp + parameters.rms_norm("input", D) + parameters.rms_norm("post", D)
    return before, [layer] * m["num_hidden_layers"], after


def in_order(model):
    before, layers, after = units_of(model)
    return before + [tensor for layer in layers for tensor in layer] + after


def sizes_of(model):
    return [tensor.size for tensor in in_order(model)]


SHARDS = measured("distributed_shards.json")
ROWS = [pytest.param(row, id="%s-%s-%d" % (row["kind"], row["model"], row["world"])) for row in SHARDS["rows"]]


def test_every_measured_row_is_here():
    assert len(ROWS) == 66 and {row["kind"] for row in SHARDS["rows"]} == {"ddp", "ddp_view", "zero1", "fsdp1_full", "fsdp1_gradop", "fsdp2"}
    for row in SHARDS["rows"]:
        assert sum(sizes_of(row["model"])) == row["N"]


@pytest.mark.parametrize("row", ROWS)
def test_real_processes(row):
    """66 runs of 2 to 4 gloo processes, torch 2.13.0, FP32: weights, gradients and both moments of each rank."""
    b, d = 4, row["world"]
    for rank, values in enumerate(row["ranks"]):
        found = dict(zip(SHARDS["rank_columns"], values))
        stored, held, states = EXPECTED[row["kind"]](row["model"], d, rank)
        assert found["param_bytes"] == found["grad_bytes"] == b * stored
        assert found["param_numel_bytes"] == found["grad_numel_bytes"] == (b * sum(states) if held is None else b * held)
        assert found["exp_avg"] == found["exp_avg_sq"] == b * sum(states)
        assert found["n_params_with_state"] == len(states) and found["step"] == 4 * len(states)


def _ddp(model, d, rank):
    sizes = sizes_of(model)
    return sum(sizes), sum(sizes), sizes


def _zero1(model, d, rank):
    sizes = sizes_of(model)
    return sum(sizes), sum(sizes), sharding.zero_redundancy(sizes, d)[rank]


def _fsdp1(model, d, rank):
    before, layers, after = units_of(model)
    flats = [[tensor.size for tensor in unit] for unit in (before + after, *layers)]
    pieces = [n for sizes in flats for n in sharding.fsdp1_pieces(sizes, d, rank, 4)]
    return sum(sharding.fsdp1_flat(sizes, d, 4) for sizes in flats), None, pieces


def _fsdp2(model, d, rank):
    tensors = in_order(model)
    held = [sharding.fsdp2_held(tensor.shape, d, rank) for tensor in tensors]
    assert sharding.fsdp2_moments([(tensor, 1) for tensor in tensors], d, rank) == sum(held)
    return sharding.fsdp2_stored([(tensor, 1) for tensor in tensors], d), sum(held), held


EXPECTED = {"ddp": _ddp, "ddp_view": _ddp, "zero1": _zero1, "fsdp1_full": _fsdp1, "fsdp1_gradop": _fsdp1, "fsdp2": _fsdp2}


@pytest.mark.parametrize("row", [row for row in ROWS if row.values[0]["kind"].startswith("ddp")])
def test_ddp_keeps_a_bucket_copy_of_the_gradients(row):
    """Allocator events of the same runs: buckets are allocated when DDP wraps the model, gradients once more in backward
    unless they are views. A few hundred bytes of the loss and of gloo stand beside; one rank's whole copy of the model,
    a transient of the broadcast, stands beside some."""
    N, view = row["N"], row["kind"] == "ddp_view"
    for values in row["ranks"]:
        found = dict(zip(SHARDS["rank_columns"], values))
        assert 0 <= (found["wrap_alloc"] - 4 * N) % (4 * N) < 1500
        assert 0 <= 4 * N + found["second_fb_end_alloc"] - sharding.ddp_gradients(N, 4, view) < 300


# --- FSDP2 on real models

UNEVEN = measured("fsdp2_uneven_shards.json")["rows"]
CATALOGUE = {"llama3-8b": "llama-3-8b", "gpt2-124m": "gpt2"}


@pytest.mark.parametrize("row", UNEVEN, ids=lambda row: "%s-%d" % (row["model"], row["world"]))
def test_fsdp2_pads_rows(row):
    """25 rows that fully_shard itself computed under the fake process group, torch 2.13.0, transformers 5.24.0."""
    tensors = tensors_of(DATA.architecture(CATALOGUE.get(row["model"], row["model"])))
    assert sum(times * tensor.size for tensor, times in tensors) == row["N"]
    for rank, found in row["ranks"].items():
        assert sharding.fsdp2_stored(tensors, row["world"]) == found["padded_storage_numel"]
        assert sharding.fsdp2_moments(tensors, row["world"], int(rank)) == found["local_numel"]
    assert sharding.fsdp2_to_ideal(tensors, row["world"]) == pytest.approx(row["storage_over_ideal"], rel=1e-15)


def test_mixtral_at_64_ranks_holds_almost_eight_times_the_ideal():
    """8 fused experts cannot be cut into 64: every rank stores one whole expert, 8 ranks hold its moments."""
    tensors = tensors_of(DATA.architecture("mixtral-8x7b"))
    assert round(sharding.fsdp2_to_ideal(tensors, 64), 2) == 7.76
    expert = Tensor("experts.down_proj", (8, 4096, 14336), "experts")
    assert sharding.fsdp2_storage(expert.shape, 64) == 4096 * 14336
    assert [sharding.fsdp2_held(expert.shape, 64, rank) > 0 for rank in range(64)] == [True] * 8 + [False] * 56


# --- DeepSpeed

DEEPSPEED = measured("deepspeed_shards.json")
# What the run itself keeps beside the states: token ids, rotary tables (two of head_dim / 2), counters.
BESIDE = {"llama_even": {"ids": 512, "rotary": 32}, "llama_odd": {"ids": 512, "rotary": 26}}


@pytest.mark.parametrize("row", DEEPSPEED["rows"], ids=lambda row: "%d-%s-%s-%d" % (row["stage"], row["dtype"], row["model"], row["world"]))
def test_deepspeed_shards(row):
    """16 runs of DeepSpeed 0.19.8 on gloo: every live byte at rest and after backward, rank by rank.

    What is not a state: 512 B of token ids, the rotary tables, the optimizer's step, and 4 B (stages 1 and 2) or 9 B
    (stage 3: a float64 and a bool) of counters.
    """
    b, d, stage, sizes = {"bf16": 2, "fp32": 4}[row["dtype"]], row["world"], row["stage"], sizes_of(row["model"])
    beside = BESIDE[row["model"]]
    for rank, values in enumerate(row["ranks"]):
        found = dict(zip(DEEPSPEED["rank_columns"], values))
        counters = {0: 0, 1: 4, 2: 4, 3: 9}[stage]
        apart = beside["ids"] + b * beside["rotary"] + found["step"] + counters
        at_rest = sharding.deepspeed_at_rest(sizes, d, stage, b, reduce_bucket_size=500_000)
        assert found["step"] == (4 * len(sizes) if stage == 0 else 4)
        assert found["live_between_steps_total"] == at_rest + apart
        assert found["model_param_bytes"] == sharding.deepspeed_weights(sizes, d, stage, b)
        # At stage 0 in FP32 the weights are their own master.
        own = b == 4 and stage == 0
        assert found["exp_avg"] + found["exp_avg_sq"] + (0 if own else found["master_bytes"]) == sharding.deepspeed_optimizer(sizes, d, stage, b)
        gradients = sharding.deepspeed_gradients(sizes, d, stage, rank, b)
        assert found["live_after_backward_total"] - found["live_between_steps_total"] == gradients
        if stage == 3:
            assert found["averaged_gradients"] == b * sharding.deepspeed_stage3_shard(sizes, d)
        elif stage:
            assert found["averaged_gradients"] == gradients


def test_deepspeed_stage_3_leaves_a_small_model_gathered():
    """The same runs: after forward the whole model is still there under stage 3, as max_live_parameters is 1e9."""
    after = {(row["stage"], row["dtype"], row["model"], row["world"]): row["ranks"][0][DEEPSPEED["rank_columns"].index("fwd_end_delta")] for row in DEEPSPEED["rows"]}
    for dtype, b in (("bf16", 2), ("fp32", 4)):
        live = after[3, dtype, "llama_even", 2] - after[2, dtype, "llama_even", 2]
        assert live == sharding.deepspeed_live_parameters(sum(sizes_of("llama_even")), b)
    assert sharding.deepspeed_live_parameters(70_000_000_000, 2) == 2_000_000_000


def test_deepspeed_straddling_gradients_stay_whole():
    """Stage 2 at W = 4: the rank whose partition lies inside the embedding's edge and three layers has 1.02 of N, not 0.5."""
    sizes = sizes_of("llama_even")
    held = [sharding.deepspeed_gradients(sizes, 4, 2, rank, 2) for rank in range(4)]
    assert round(held[1] / sum(sizes), 2) == 1.02 and sum(held) > 2 * sum(sizes)


def test_small_parameters_persist():
    """DeepSpeed's default: parameters up to 1e5 elements stay whole (zero/config.py); for Llama 3.1 8B its 65 norms."""
    sizes = [tensor.size for tensor, times in tensors_of(DATA.architecture("llama-3.1-8b")) for _ in range(times)]
    assert sharding.deepspeed_persistent_parameters(sizes, 2) == 65 * 4096 * 2
    assert sharding.deepspeed_persistent_parameters(sizes, 2, 0) == 0
    assert sharding.deepspeed_persistent_parameters(sizes, 2, model_persistence_threshold=10_000) == 2 * 4096 * 2


ESTIMATES = measured("deepspeed_estimator.json")["rows"]


def test_deepspeed_estimators_on_the_gpu():
    """108 outputs of DeepSpeed 0.19.8's own estimators, GPU bytes."""
    assert len(ESTIMATES) == 108
    for row in ESTIMATES:
        gpus = row["gpus_per_node"] * row["nodes"]
        if row["stage"] == 2:
            assert sharding.deepspeed_estimate_zero2(row["params"], gpus, row["cpu_offload"]) == row["gpu_bytes"], row
        else:
            estimate = sharding.deepspeed_estimate_zero3(row["params"], row["largest_layer_params"], gpus, row["cpu_offload"], row["cpu_offload_params"])
            assert estimate == row["gpu_bytes"], row


def test_deepspeed_finds_the_largest_module():
    """What DeepSpeed's estimator found in the models themselves, and what its estimates need of them."""
    seen = set()
    for row in ESTIMATES:
        model = {"llama3.2-1b": "llama-3.2-1b", "llama2-7b": "llama-2-7b", "llama3.1-8b": "llama-3.1-8b", "llama3.1-70b": "llama-3.1-70b", "gpt2-1.5b": "gpt2-xl"}.get(row["model"])
        if model and row["stage"] == 3:
            architecture, gpus = DATA.architecture(model), row["gpus_per_node"] * row["nodes"]
            assert per_rank.largest_module(architecture) == row["largest_layer_params"]
            assert per_rank.deepspeed_estimate(architecture, 3, gpus, row["cpu_offload"], row["cpu_offload_params"]) == row["gpu_bytes"]
            seen.add(model)
    assert len(seen) == 5


# DeepSpeed, docs/code-docs/source/memory.rst, t5-3b on 8 GPUs of a node: GiB, printed as GB. The host column is in test_offload.py.
@pytest.mark.parametrize(
    "options, printed", [({"cpu_offload": True, "cpu_offload_params": True}, 0.12), ({"cpu_offload": True}, 0.78), ({}, 6.09)], ids=["both", "optimizer", "none"]
)
def test_deepspeed_t5_3b(options, printed):
    assert round(units.gib(sharding.deepspeed_estimate_zero3(2_851_000_000, 32_000_000, 8, **options)), 2) == printed


def test_deepspeed_t5_3b_zero2():
    """With the optimizer offloaded the page prints 5.31; without, its code of today returns 11.28."""
    assert round(units.gib(sharding.deepspeed_estimate_zero2(2_851_000_000, 8, cpu_offload=True)), 2) == 5.31
    assert round(units.gib(sharding.deepspeed_estimate_zero2(2_851_000_000, 8)), 2) == 11.28


def test_the_page_that_its_code_has_left_is_not_reproduced():
    """Negative control: memory.rst prints 15.93 and 4P + 16P/G for ZeRO-2 without offload; PR #5099 changed the code in 2024."""
    P, G = 2_851_000_000, 8
    assert round(units.gib(4 * P + 16 * P / G), 2) == 15.93
    assert round(units.gib(sharding.deepspeed_estimate_zero2(P, G)), 2) != 15.93


def test_deepspeed_t5_large():
    """memory.rst, discussion example: MiB, printed as MB; 737.67M parameters, 32.9M in the largest layer, 4 GPUs."""
    P, largest, gpus = 737_670_000, 32_900_000, 4
    mib = [M / 2**20 for M in (4 * largest, sharding.deepspeed_estimate_zero3(P, largest, gpus), sharding.deepspeed_estimate_zero3(P, largest, gpus, True, True), sharding.deepspeed_estimate_zero3(P, largest, gpus, True))]
    assert [int(m) for m in mib] == [125, 3291, 125, 477]


# --- Megatron-LM's distributed optimizer


@pytest.mark.parametrize("kept, sharded, printed", [(6, 12, {1: 18, 2: 12, 8: 7.5, 64: 6.1875}), (4, 16, {1: 20, 2: 12, 8: 6, 64: 4.25}), (8, 8, {1: 16, 2: 12, 8: 9, 64: 8.125})], ids=["bf16-fp32", "fp16-fp16", "fp32"])
def test_megatron_bytes_per_parameter(kept, sharded, printed):
    """Megatron-LM, docs, dist_optimizer: 6 + 12/d, 4 + 16/d, 8 + 8/d."""
    for d, total in printed.items():
        assert sharding.distributed_optimizer(1_000_000, kept, sharded, d) == total * 1_000_000


def test_experts_have_their_own_degree():
    M = sharding.distributed_optimizer_experts(10_000, 80_000, 6, 12, 64, 8)
    assert M == 10_000 * (6 + 12 / 64) + 80_000 * (6 + 12 / 8)


# --- properties



def cases(n):
    """n random models: (tensors, their sizes one by one, N, ranks, bytes per element)."""
    chance = random.Random(20261203)
    for _ in range(n):
        tensors = []
        for _ in range(chance.randint(1, 12)):
            shape = [chance.randint(1, 300) for _ in range(chance.choice((1, 2, 2, 3)))]
            tensors.append((Tensor("w", shape, "mlp"), chance.randint(1, 4)))
        sizes = [tensor.size for tensor, times in tensors for _ in range(times)]
        yield tensors, sizes, sum(sizes), chance.randint(1, 70), chance.choice((2, 4))


def test_ranks_sum_to_the_whole():
    """Every strategy's ranks hold the model once, and padding is what is stored beyond it: less than d rows of each tensor."""
    for tensors, sizes, N, d, b in cases(400):
        assert sum(sharding.fsdp2_moments(tensors, d, rank) for rank in range(d)) == N
        assert N <= d * sharding.fsdp2_stored(tensors, d) < N + d * sum(times * tensor.size // tensor.shape[0] for tensor, times in tensors)
        assert sharding.fsdp2_moments(tensors, d, 0) == sharding.fsdp2_stored(tensors, d)
        assert sum(sum(sharding.fsdp1_pieces(sizes, d, rank, b)) for rank in range(d)) == N
        assert N <= d * sharding.fsdp1_flat(sizes, d, b) < N + len(sizes) * 16 // b + d
        assert sorted(n for rank in sharding.zero_redundancy(sizes, d) for n in rank) == sorted(sizes)
        assert N <= sharding.deepspeed_flat(sizes, d) < N + 2 * d
        assert N <= d * sharding.deepspeed_stage3_shard(sizes, d) < N + d * len(sizes)


def test_one_rank_equals_ddp():
    """d = 1 stores the model without padding, whatever the strategy, but for DeepSpeed's alignment to 2 elements."""
    for tensors, sizes, N, _, _ in cases(200):
        assert sharding.fsdp2_persistent(tensors, 2, 2, 12, 1) == distributed.persistent(N, 2, 2, 4, 4, 4, [], 1)
        assert sum(sharding.zero_redundancy(sizes, 1)[0]) == N
        assert sharding.deepspeed_stage3_shard(sizes, 1) == N
        for stage in (1, 2):
            assert sharding.deepspeed_at_rest(sizes, 1, stage, 2) == sharding.deepspeed_at_rest(sizes, 1, 0, 2) + 14 * (N % 2)
        assert sharding.distributed_optimizer(N, 6, 12, 1) == 18 * N


def test_a_higher_stage_never_holds_more_state():
    """Stage k + 1 against stage k at rest: states without stage 3's bucket, and beyond what each is padded to."""
    for _, sizes, N, d, _ in cases(400):
        states = [sharding.deepspeed_weights(sizes, d, stage, 2) + sharding.deepspeed_optimizer(sizes, d, stage, 2) for stage in sharding.STAGES]
        for lower, higher, padding in zip(states, states[1:], (14 * 2 * d, 0, 14 * len(sizes))):
            assert higher <= lower + padding
        ideal = [distributed.persistent(N, 2, 2, 4, 4, 4, DATA.strategies[strategy].shards, d) for strategy in ("ddp", "zero-1", "zero-2", "zero-3")]
        assert ideal == sorted(ideal, reverse=True)


def test_hybrid_shard_is_fsdp2_inside_a_group():
    tensors = tensors_of(DATA.architecture("llama-3.1-8b"))
    assert sharding.hybrid_shard(tensors, 4, 4, 8, 64, 8) == sharding.fsdp2_persistent(tensors, 4, 4, 8, 8)
    with pytest.raises(ArgumentError, match="replicas = 7: must divide W = 64"):
        sharding.hybrid_shard(tensors, 4, 4, 8, 64, 7)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda: sharding.fsdp2_storage((8, 4), 0), "d"),
        (lambda: sharding.fsdp2_storage((), 4), "shape"),
        (lambda: sharding.fsdp2_held((8, 4), 4, 4), "rank"),
        (lambda: sharding.fsdp2_held((8, 4), 4, True), "rank"),
        (lambda: sharding.deepspeed_at_rest([4], 2, 4, 2), "stage"),
        (lambda: sharding.deepspeed_at_rest([4], 2, True, 2), "stage"),
        (lambda: sharding.zero_redundancy([0], 2), "sizes"),
        (lambda: sharding.deepspeed_estimate_zero3(7, 1, 1, False, True), "cpu_offload_params"),
    ],
)
def test_what_has_no_meaning_is_refused(call, name):
    with pytest.raises(ArgumentError) as error:
        call()
    assert error.value.name == name
