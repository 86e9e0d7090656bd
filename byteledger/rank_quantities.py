"""The quantities of one rank of a real model, as quantities.py takes them: id -> (function, its arguments, kind)."""

from . import collectives, offload, parallel, per_rank

# Axes that are whole numbers, named as Megatron-LM and DeepSpeed name them.
DEGREES = ("tp", "pp", "ep", "virtual", "micro_batches", "gpus_per_node", "nodes")

# Where a formula takes them from: a model's Architecture, and the bytes per parameter of a ledger.
MODEL = {"architecture": "model:architecture"}
_P = {"P": "parameters:count"}
STATES = {
    "b_w": "ledger:weights",
    "b_g": "ledger:gradients",
    "b_master": "ledger:master_weights",
    "b_m": "ledger:first_moment",
    "b_v": "ledger:second_moment",
}
_D, _W, _G = {"d": "world_size"}, {"W": "world_size"}, {"gpus": "world_size"}
_ZERO = {**MODEL, "zero_stage": "strategy:zero_stage"}
_TP_PP = {"tp": "tp", "pp": "pp"}
_TP_EP = {**MODEL, "tp": "tp", "ep": "ep"}
_NODES = {"gpus_per_node": "gpus_per_node", "nodes": "nodes"}
_IN_FLIGHT = {**MODEL, "pp": "pp", "micro_batches": "micro_batches", "virtual": "virtual"}
_SHARDED = {"shards": "strategy:shards", "d": "distributed.shard_group"}


QUANTITIES = {
    "sharding.fsdp2_stored": (per_rank.fsdp2_stored, {**MODEL, **_D}, "count"),
    "sharding.fsdp2_to_ideal": (per_rank.fsdp2_to_ideal, {**MODEL, **_D}, "multiple"),
    "sharding.fsdp2_persistent": (per_rank.fsdp2_persistent, {**MODEL, **STATES, **_D}, "bytes"),
    "sharding.fsdp2_last_rank": (per_rank.fsdp2_last_rank, {**MODEL, **STATES, **_D}, "bytes"),
    "sharding.deepspeed_at_rest": (per_rank.deepspeed_at_rest, {**_ZERO, **_D}, "bytes"),
    "sharding.deepspeed_after_backward": (per_rank.deepspeed_after_backward, {**_ZERO, **_D}, "bytes"),
    "sharding.deepspeed_estimate": (per_rank.deepspeed_estimate, {**_ZERO, **_G}, "bytes"),
    "sharding.distributed_optimizer": (per_rank.distributed_optimizer, {"N": "parameters:count", **STATES, **_D}, "bytes"),
    "parallel.data_parallel": (parallel.data_parallel, {**_W, **_TP_PP}, "count"),
    "parallel.first_stage_parameters": (per_rank.first_stage_parameters, {**MODEL, **_TP_PP}, "count"),
    "parallel.last_stage_parameters": (per_rank.last_stage_parameters, {**MODEL, **_TP_PP}, "count"),
    "parallel.first_stage_states": (per_rank.first_stage_states, {**MODEL, **STATES, **_W, **_TP_PP}, "bytes"),
    "parallel.last_stage_states": (per_rank.last_stage_states, {**MODEL, **STATES, **_W, **_TP_PP}, "bytes"),
    "parallel.expert_data_parallel": (parallel.expert_data_parallel, {**_W, "ep": "ep"}, "count"),
    "parallel.dense_parameters": (per_rank.dense_parameters, _TP_EP, "count"),
    "parallel.expert_parameters": (per_rank.expert_parameters, _TP_EP, "count"),
    "parallel.expert_states": (per_rank.expert_states, {**_TP_EP, **STATES, **_W}, "bytes"),
    "parallel.first_stage_layers_in_flight": (per_rank.first_stage_layers_in_flight, _IN_FLIGHT, "count"),
    "parallel.last_stage_layers_in_flight": (per_rank.last_stage_layers_in_flight, _IN_FLIGHT, "count"),
    "offload.zero2_device": (per_rank.zero2_device, MODEL, "bytes"),
    "offload.zero3_device": (per_rank.zero3_device, {**MODEL, **_G}, "bytes"),
    "offload.zero3_parameters_device": (per_rank.zero3_parameters_device, MODEL, "bytes"),
    "offload.zero2_host": (offload.zero2_host, {**_P, **_NODES}, "bytes"),
    "offload.zero3_host": (per_rank.zero3_host, {**MODEL, **_NODES}, "bytes"),
    "offload.zero3_parameters_host": (per_rank.zero3_parameters_host, {**MODEL, **_NODES}, "bytes"),
    "offload.pinned": (per_rank.pinned_parameters, _P, "bytes"),
    "offload.pinned_rounded": (offload.pinned_rounded, {"M": "budget_bytes"}, "bytes"),
    "collectives.paper_volume": (collectives.paper_volume, {"M": "ledger.weights", "shards": "strategy:shards", "zero_stage": "strategy:zero_stage"}, "bytes"),
    "collectives.inside": (collectives.inside, {"M": "ledger.weights", **_SHARDED, "gathers": "strategy:gathers"}, "bytes"),
    "collectives.between": (collectives.between, {"M": "ledger.weights", "d": "distributed.shard_group", "replicas": "replicas?"}, "bytes"),
}
