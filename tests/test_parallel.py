"""Parallel degrees: what one rank has, held against Megatron-LM's own logs and the papers' formulas."""

import json
import random
from pathlib import Path

import pytest

from byteledger import catalog, parallel, parameters, per_rank, sharding
from byteledger.architecture import Architecture, Layer, Mixer, Mlp
from byteledger.arguments import ArgumentError
from byteledger.parameters import Tensor

DATA = catalog.load()
LOGS = json.loads((Path(__file__).resolve().parent / "measurements" / "megatron_logs.json").read_text(encoding="utf-8"))
LLAMA = DATA.architecture("llama-3.1-70b")


def megatron_gpt(config):
    """Megatron's GPT: LayerNorm with bias, fused QKV, an ungated MLP, learned positions, biases in all linears."""
    D, a, k, d = config["hidden"], config["heads"], config["kv_heads"], config["hidden"] // config["heads"]
    tensors = parameters.layer_norm("input_layernorm", D) + parameters.layer_norm("pre_mlp_layernorm", D)
    tensors += parameters.grouped_query_attention(D, a, k, d, qkv_bias=True, o_bias=True, fused=True) + parameters.plain_mlp(D, config["ffn"])
    mixer = Mixer("grouped_query", num_attention_heads=a, num_key_value_heads=k, head_dim=d, v_head_dim=d, window=None)
    layer = Layer(mixer, Mlp("plain", intermediate_size=config["ffn"]), tensors)
    outside = parameters.embedding(config["vocab"], D) + parameters.position_embedding(config["positions"], D)
    outside += parameters.layer_norm("norm", D) + parameters.output_head(config["vocab"], D)
    return Architecture("megatron_gpt", D, config["vocab"], False, outside, [(layer, config["layers"])])


@pytest.mark.parametrize("log", LOGS["rows"], ids=lambda log: log["id"])
def test_megatron_logs(log):
    """Megatron-LM's golden values, mem-allocated-bytes after an iteration: 7B, BF16 with FP32 gradients, 6 + 12/d, d = 2.

    What torch has allocated is the states and little else, and never less: communication buffers, token ids, rotary
    tables, the loss; on a last pipeline stage also what was received. Tolerances are those of the logs' record.
    """
    degrees = parallel.Degrees(8, tp=log["tp"], pp=log["pp"])
    assert degrees.dp == degrees.optimizer == 2
    stage = log["pp"] - 1  # the rank that logs
    virtual = LOGS["config"]["layers"] // log["pp"] if log["pp"] > 1 else 1  # one layer per chunk
    dense, experts = parallel.rank_parameters(megatron_gpt(LOGS["config"]), log["pp"], stage, virtual, log["tp"], make_vocab_size_divisible_by=128)
    assert (dense, experts) == (log["parameters"], 0)
    states = sharding.distributed_optimizer(dense, 6, 12, degrees.optimizer)
    assert states == log["states"] <= log["allocated"]
    assert log["allocated"] == pytest.approx(states, rel=log["tolerance"])
    # The same through the functions that the tables use.
    assert per_rank.last_stage_parameters(megatron_gpt(LOGS["config"]), log["tp"], log["pp"]) == log["parameters"]
    assert per_rank.last_stage_states(megatron_gpt(LOGS["config"]), 2, 4, 4, 4, 4, 8, log["tp"], log["pp"]) == states


def test_zero_is_divided_by_the_data_parallel_degree_not_by_all_gpus():
    """Negative control, EleutherAI cookbook: TP 8 with ZeRO-3 on 8 GPUs divides twice, 0.20 GiB instead of 1.57.

    W = 8 and tp = 8 leave dp = 1: nothing is left to shard. The weights of a model of 6.74e9 (Llama-2-7B) show both.
    """
    assert parallel.data_parallel(8, tp=8) == 1
    dense, _ = parallel.rank_parameters(DATA.architecture("llama-2-7b"), tp=8)
    right = 2 * dense / parallel.data_parallel(8, tp=8) / 2**30
    assert round(right, 2) == 1.57 and round(right / 8, 2) == 0.20


def test_padded_vocabulary():
    """Megatron-LM pads to 128 tp: GPT-2's 50,257 to 50,304 (its README's own number at tp = 1), 131,073 to 131,584 at tp = 4."""
    assert parallel.padded_vocabulary(50257, 1, 128) == 50304
    assert parallel.padded_vocabulary(131073, 4, 128) == 131584
    assert parallel.padded_vocabulary(131073, 1) == 131073


def test_tensor_parallel_by_part():
    """Shoeybi et al. 2019, section 3: column- and row-parallel linears, replicated norms and row-parallel biases."""
    cut = lambda name, shape, part, **degrees: parallel.tensor_parallel(Tensor(name, shape, part), **degrees)
    assert cut("q_proj.weight", (512, 256), "attention", tp=4) == 128 * 256
    assert cut("q_proj.bias", (512,), "biases", tp=4) == 128
    assert cut("o_proj.weight", (256, 512), "attention", tp=4) == 256 * 128
    assert cut("o_proj.bias", (256,), "biases", tp=4) == 256
    assert cut("gate_up_proj.weight", (2048, 256), "mlp", tp=8) == 256 * 256
    assert cut("down_proj.weight", (256, 1024), "mlp", tp=8) == 256 * 128
    assert cut("norm.weight", (256,), "norms", tp=8) == 256
    assert cut("router.weight", (8, 256), "router", tp=8, ep=8) == 8 * 256
    assert cut("embed_tokens.weight", (1000, 256), "embedding", tp=3) == 334 * 256
    assert cut("lm_head.bias", (1000,), "output_head", tp=3) == 334
    assert cut("shared_expert.up_proj.weight", (1024, 256), "shared_experts", tp=4, ep=8) == 256 * 256
    assert cut("experts.gate_up_proj", (8, 2048, 256), "experts", tp=4, ep=2, etp=2) == 4 * 1024 * 256
    assert cut("experts.down_proj", (8, 256, 1024), "experts", ep=8, etp=4) == 256 * 256
    assert cut("experts.gate_up_proj_bias", (8, 2048), "experts", ep=2, etp=2) == 4 * 1024
    assert cut("experts.down_proj_bias", (8, 256), "experts", ep=2, etp=2) == 4 * 256
    assert cut("kv_a_proj_with_mqa.weight", (576, 2048), "attention", tp=4) == 576 * 2048
    assert cut("kv_b_proj.weight", (4096, 512), "attention", tp=4) == 1024 * 512


@pytest.mark.parametrize("model", [id for id in DATA.models if id not in ("bert-base-cased",)])
def test_ranks_sum_to_the_model(model):
    """tp ranks hold the model once, and tp times what is whole on each; pp stages hold it once, and a tied table twice."""
    architecture = DATA.architecture(model)
    assert sum(parallel.rank_parameters(architecture)) == parameters.total(architecture)
    L = architecture.num_hidden_layers
    for pp in (p for p in (2, 3, 4, 5, 8) if L % p == 0):
        held = sum(sum(parallel.rank_parameters(architecture, pp, stage)) for stage in range(pp))
        table = next(tensor.size for tensor in architecture.outside if tensor.part == "embedding")
        assert held == parameters.total(architecture) + (table if architecture.tied else 0)
    for tp in (2, 4):
        try:
            dense, experts = parallel.rank_parameters(architecture, tp=tp)
        except ArgumentError:
            continue
        whole = sum(times * tensor.size for tensor, times in parallel.stage_tensors(architecture) if parallel.tensor_parallel(tensor, tp) == tensor.size and tensor.part != "experts")
        padding = sum(tp * parallel.tensor_parallel(tensor, tp) - tensor.size for tensor in architecture.outside if tensor.part in ("embedding", "output_head"))
        assert tp * dense + experts == parameters.total(architecture) + (tp - 1) * whole + padding


def test_experts_by_their_own_degrees():
    """Qwen3-30B-A3B, 128 experts, 16 ranks: tp = 4 cuts the dense part, ep = 8 the experts, whose copies then number 2."""
    architecture = DATA.architecture("qwen3-30b-a3b")
    degrees = parallel.Degrees(16, tp=4, ep=8)
    assert (degrees.dp, degrees.optimizer, degrees.experts) == (4, 4, 2)
    _, experts = parallel.rank_parameters(architecture, tp=4, ep=8)
    assert experts * 8 == parameters.by_part(architecture)["experts"]
    assert parallel.Degrees(64, tp=2, cp=4, pp=2).optimizer == 16  # dp 4 times cp 4


def test_states_of_a_moe():
    """Megatron-LM, dist_optimizer: weights and gradients whole on the rank, the rest over dp cp, and over edp for experts."""
    architecture, states = DATA.architecture("qwen3-30b-a3b"), (2, 4, 4, 4, 4)
    dense, experts = parallel.rank_parameters(architecture, tp=4, ep=8, make_vocab_size_divisible_by=128)
    assert (per_rank.dense_parameters(architecture, 4, 8), per_rank.expert_parameters(architecture, 4, 8)) == (dense, experts)
    assert per_rank.expert_states(architecture, *states, 16, 4, 8) == dense * (6 + 12 / 4) + experts * (6 + 12 / 2)
    # One rank holds all: 18 bytes of every parameter.
    assert per_rank.expert_states(architecture, *states, 1, 1, 1) == 18 * parameters.total(architecture)
    with pytest.raises(ArgumentError, match="has no routed experts"):
        per_rank.expert_states(LLAMA, *states, 8, 1, 1)


@pytest.mark.parametrize("kwargs, message", [
    (dict(world_size=12, tp=8), "world_size = 12: must be a multiple of tp cp pp = 8 x 1 x 1 = 8; 12 mod 8 = 4"),
    (dict(world_size=16, ep=3), "world_size = 16: must be a multiple of ep etp pp = 3 x 1 x 1 = 3; 16 mod 3 = 1"),
    (dict(world_size=16, tp=0), "tp = 0"),
    (dict(world_size=16, virtual=1.5), "virtual = 1.5"),
])  # fmt: skip
def test_degrees_that_do_not_divide(kwargs, message):
    with pytest.raises(ArgumentError) as error:
        parallel.Degrees(**kwargs)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("call, message", [
    (lambda: parallel.rank_parameters(LLAMA, tp=16), "tp = 16: must divide num_key_value_heads = 8; 8 mod 16 = 8 are left over"),
    (lambda: parallel.rank_parameters(LLAMA, tp=3), "tp = 3: must divide num_attention_heads = 64; 64 mod 3 = 1"),
    (lambda: parallel.rank_parameters(LLAMA, pp=3), "pp = 3: pp virtual = 3 x 1 = 3 must divide num_hidden_layers = 80; 80 mod 3 = 2"),
    (lambda: parallel.rank_parameters(LLAMA, pp=4, virtual=3), "virtual = 3: pp virtual = 4 x 3 = 12 must divide num_hidden_layers = 80"),
    (lambda: parallel.rank_parameters(LLAMA, ep=2), "ep = 2: the model has no routed experts"),
    (lambda: parallel.rank_parameters(DATA.architecture("mixtral-8x7b"), ep=16), "ep = 16: must divide num_experts = 8"),
    (lambda: parallel.rank_parameters(DATA.architecture("mamba-130m"), tp=2), "tp = 2: no model of how a mixer of kind recurrent is cut"),
    (lambda: parallel.stage_layers(80, 4, 4), "stage = 4: must be a whole number from 0 to 3, as pp = 4"),
    (lambda: parallel.stage_layers(80, 1, 0, 2), "virtual = 2: interleaving needs pp of 2 or more"),
    (lambda: parallel.chunks_in_flight(4, 0, 6, 2), "pp = 4: must divide micro_batches = 6; 6 mod 4 = 2"),
    (lambda: parallel.sequence(8190, 4), "cp = 4: 2 cp must divide S = 8190"),
])  # fmt: skip
def test_refusals_show_the_arithmetic(call, message):
    with pytest.raises(ArgumentError) as error:
        call()
    assert str(error.value).startswith(message)


def test_stages():
    """Interleaving deals chunks out in turn (Narayanan et al. 2021, figure 4: 16 layers, 4 stages, 2 chunks each of 2 layers)."""
    assert parallel.stage_layers(16, 4, 0, 2) == [0, 1, 8, 9]
    assert parallel.stage_layers(16, 4, 3, 2) == [6, 7, 14, 15]
    assert sorted(i for stage in range(4) for i in parallel.stage_layers(16, 4, stage, 2)) == list(range(16))
    names = lambda stage: {tensor.name for tensor, _ in parallel.stage_tensors(LLAMA, 4, stage)}
    assert "embed_tokens.weight" in names(0) and not {"norm.weight", "lm_head.weight"} & names(0)
    assert not {"embed_tokens.weight", "lm_head.weight"} & (names(1) | names(2))
    assert {"norm.weight", "lm_head.weight"} <= names(3) and "embed_tokens.weight" not in names(3)
    tied = DATA.architecture("llama-3.2-1b")
    assert all("embed_tokens.weight" in {tensor.name for tensor, _ in parallel.stage_tensors(tied, 2, stage)} for stage in (0, 1))


@pytest.mark.parametrize("p, v", [(2, 2), (4, 2), (4, 5), (8, 2), (8, 10)])
def test_interleaving_holds_more(p, v):
    """Korthikanti et al. 2022, section 4.2.3: the first stage keeps p micro-batches of L / p layers, times 1 + (p - 1) / (p v)."""
    m = 8 * p
    assert parallel.in_flight(p, 0, m) == p
    assert parallel.in_flight(p, 0, m, v) == pytest.approx(p * (1 + (p - 1) / (p * v)), rel=1e-15)
    assert parallel.layers_in_flight(80, p, 0, m) == 80
    assert parallel.layers_in_flight(80, p, 0, m, v) == round(80 * (1 + (p - 1) / (p * v)))


def _steps(p, stage, m, v):
    """Megatron-LM's schedule of one rank, played: +1 per forward of a chunk, -1 per backward. The most that it holds."""
    total = m * v
    warmup = min(total, (p - stage - 1) * 2 + (v - 1) * p if v > 1 else p - stage - 1)
    order = ["forward"] * warmup
    for _ in range(total - warmup):
        order += ["forward", "backward"]
    order += ["backward"] * warmup
    held = most = 0
    for step in order:
        held += 1 if step == "forward" else -1
        most = max(most, held)
    assert held == 0
    return most


def test_in_flight_plays_the_schedule():
    chance = random.Random(1)
    for _ in range(500):
        p, v = chance.randint(2, 12), chance.randint(1, 5)
        m, stage = p * chance.randint(1, 6), chance.randint(0, p - 1)
        assert parallel.chunks_in_flight(p, stage, m, v) == _steps(p, stage, m, v)


def test_a_later_stage_holds_no_more():
    for p in (2, 4, 8):
        for v in (1, 2, 5):
            held = [parallel.in_flight(p, stage, 4 * p, v) for stage in range(p)]
            assert held == sorted(held, reverse=True)
    assert parallel.in_flight() == 1


def test_context_parallelism_cuts_the_sequence_and_widens_the_optimizer():
    assert parallel.sequence(131072, 8) == 16384
    degrees = parallel.Degrees(64, tp=8, cp=8)
    assert degrees.dp == 1 and degrees.optimizer == 8
