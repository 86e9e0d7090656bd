"""How training state falls on ranks that really run: gloo, one process for each rank, forked so that imports cost once."""

import gc
import json
import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

from . import models
from .settings import complete
from .storages import Curve, elements, held

STRATEGIES = ("ddp", "ddp-bucket-view", "zero-redundancy", "fsdp2", *("deepspeed-%d" % stage for stage in range(4)))


def measure(config, **settings):
    """{"parameters": N, "ranks": [{kind: bytes}, …]}: what each rank keeps after two AdamW steps, gradients among it.

    DeepSpeed frees its gradients in the step and keeps states in flat tensors of its own: a rank has parameters, buffers, the
    optimizer's step, and other, every other tensor that is alive.

    elements_* are the bytes of the elements without padding. other is what the allocator holds above all of that: DDP's buckets,
    give or take some hundred bytes of gloo's. FSDP2 has no such line: gloo's threads release its buffers, which the profiler does
    not see, so that the number would change from run to run.
    """
    settings = complete("shards", settings)
    if settings["strategy"] not in STRATEGIES:
        raise ValueError("strategy must be one of %s" % ", ".join(STRATEGIES))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.start_processes(_rank, (config, settings, folder), nprocs=settings["dp"], start_method="fork")
        ranks = [json.loads((Path(folder) / ("%d.json" % rank)).read_text()) for rank in range(settings["dp"])]
    return {"parameters": ranks[0].pop("count"), "ranks": [{kind: size for kind, size in rank.items() if kind != "count"} for rank in ranks]}


def _rank(rank, config, settings, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://%s/store" % folder, rank=rank, world_size=settings["dp"])
    torch.manual_seed(0)
    ids = torch.randint(0, config["vocab_size"], (settings["micro_batch"], settings["sequence"]))
    count, sizes = (_deepspeed if settings["strategy"].startswith("deepspeed") else _wrapped)(rank, config, settings, ids)
    (Path(folder) / ("%d.json" % rank)).write_text(json.dumps({"count": count, **sizes}))
    dist.barrier()
    dist.destroy_process_group()


def _wrapped(rank, config, settings, ids):
    """(parameters of the model, {kind: bytes}) under one of PyTorch's own strategies."""
    with Curve() as curve:  # from the first parameter on: the profiler does not see the release of what was there before it
        built, count = _built(config, settings)
        wrapped, optim = _wrap(built, settings)
        for _ in range(2):
            optim.zero_grad()
            wrapped(input_ids=ids, labels=ids).loss.backward()
            optim.step()
    own = list(wrapped.parameters())
    inner = getattr(optim, "optim", optim)  # ZeroRedundancyOptimizer keeps the rank's own optimizer there
    state = {}
    for values in inner.state.values():
        for name, tensor in values.items():
            state.setdefault(name, []).append(tensor)
    kinds = {"parameters": own, "buffers": list(wrapped.buffers()), "gradients": [parameter.grad for parameter in own]}
    kinds |= {"optimizer." + name: tensors for name, tensors in state.items()}
    sizes = {kind: held(tensors) for kind, tensors in kinds.items()}
    sizes |= {"elements_parameters": elements(own), "elements_gradients": elements(kinds["gradients"])}
    known = sum(size for kind, size in sizes.items() if not kind.startswith("elements_"))
    if settings["strategy"] != "fsdp2":
        sizes["other"] = curve.kept() - known
    return count, sizes


def _built(config, settings):
    built = models.model(config, settings["precision"])
    return built, sum(parameter.numel() for parameter in built.parameters())


def _wrap(built, settings):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    strategy = settings["strategy"]
    if strategy == "fsdp2":
        mesh = init_device_mesh("cpu", (settings["dp"],))
        for layer in models.layers(built):
            fully_shard(layer, mesh=mesh)
        wrapped = fully_shard(built, mesh=mesh)
        return wrapped, torch.optim.AdamW(wrapped.parameters(), lr=1e-3)
    wrapped = DistributedDataParallel(built, gradient_as_bucket_view=strategy == "ddp-bucket-view")
    if strategy == "zero-redundancy":
        return wrapped, ZeroRedundancyOptimizer(wrapped.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-3)
    return wrapped, torch.optim.AdamW(wrapped.parameters(), lr=1e-3)


def _deepspeed(rank, config, settings, ids):
    """The same under one of ZeRO's stages: torch's AdamW, which DeepSpeed is told to take, as it has no fused one on a CPU."""
    os.environ |= {"DS_ACCELERATOR": "cpu", "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(settings["dp"]), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    import deepspeed

    deepspeed.utils.logger.setLevel("ERROR")
    given = {
        "train_micro_batch_size_per_gpu": settings["micro_batch"], "bf16": {"enabled": settings["precision"] == "bf16"}, "zero_force_ds_cpu_optimizer": False,
        "zero_optimization": {"stage": int(settings["strategy"][-1]), "reduce_bucket_size": settings["reduce_bucket_size"], "overlap_comm": False},
    }  # fmt: skip
    built, count = _built(config, settings)
    engine, *_ = deepspeed.initialize(model=built, optimizer=torch.optim.AdamW(built.parameters(), lr=1e-3), config=given)
    for _ in range(2):
        engine.backward(engine(input_ids=ids, labels=ids).loss)
        engine.step()
    gc.collect()
    # What is alive, not what was allocated and not released: gloo's threads release, too, which the profiler does not see.
    # DeepSpeed also keeps shapes on the meta device, which are no bytes.
    alive = [found for found in gc.get_objects() if isinstance(found, torch.Tensor) and found is not ids and found.device.type == "cpu"]
    inner = getattr(engine.optimizer, "optimizer", engine.optimizer)
    steps = [values["step"] for values in inner.state.values()]
    sizes = {"parameters": held(list(engine.module.parameters())), "buffers": held(list(engine.module.buffers())), "optimizer.step": held(steps)}
    return count, {**sizes, "other": held(alive) - sum(sizes.values())}
