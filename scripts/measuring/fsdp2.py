"""The peak of one rank under FSDP2, without the ranks and without the memory.

FakeTensorMode gives every tensor its shape and no storage, the fake process group answers every collective at once, and
torch.distributed._tools.fsdp2_mem_tracker counts each storage where it is made and freed. One unit for each decoder layer
and one for the rest, as torchtitan and Accelerate wrap a model.

One step runs before the tracked one: on the first step the tracker counts the global shapes that DTensor works out.
"""

import torch
import torch.distributed as dist
import torch.distributed.fsdp._fully_shard._fully_shard as implementation
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

from . import models
from .settings import FSDP2

PHASES = ("forward", "loss", "backward", "reduce", "optimizer")


class PhaseTracker(FSDPMemTracker):
    """FSDPMemTracker that also keeps the peak of each phase of the step, with the operation and the module it fell on."""

    def __init__(self, *given):
        super().__init__(*given)
        self.phase, self.operation, self.peaks = "forward", "", {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operation = str(func)
        return super().__torch_dispatch__(func, types, args, kwargs)

    def _update_peak_stats(self, state):
        super()._update_peak_stats(state)
        now = self._curr_mem_snap.get(torch.device("cpu"))
        if now is not None and now["Total"] > self.peaks.get(self.phase, {"bytes": -1})["bytes"]:
            module = max(self._mod_tracker.parents, key=len, default="")
            self.peaks[self.phase] = {"bytes": now["Total"], "operation": self.operation, "module": module, "by_kind": by_kind(now)}

    def now(self):
        """{kind: bytes} at this moment."""
        return by_kind(self._curr_mem_snap[torch.device("cpu")])


def by_kind(snapshot):
    """A snapshot as {kind: bytes} with plain names, without zeros."""
    plain = {getattr(kind, "value", kind).lower().replace(" ", "_"): size for kind, size in snapshot.items()}
    return {kind: size for kind, size in plain.items() if size and kind != "total"}


def sharded(config, mesh, settings):
    """The model of a case with fully_shard on every decoder layer and on the rest."""
    mixed = settings["precision"] == "mixed"
    built = models.model(
        config, "fp32" if mixed else settings["precision"], settings["attention"], settings["experts"], settings["checkpointing"]
    )
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if mixed else MixedPrecisionPolicy()
    reshard = settings["reshard_after_forward"]
    for layer in models.layers(built):
        fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=reshard)
    root = reshard if settings["root_reshard"] == "same" else None
    fully_shard(built, mesh=mesh, mp_policy=policy, reshard_after_forward=root)
    return built


def _mesh_after_forward(*given):
    """reshard_after_forward as a number makes a mesh of its own, whose ranks must be read: they cannot be fake."""
    with unset_fake_temporarily():
        return _MESH_AFTER_FORWARD(*given)


_MESH_AFTER_FORWARD = implementation._get_post_forward_mesh_info
implementation._get_post_forward_mesh_info = _mesh_after_forward


def optimizer(parameters, settings):
    """The case's optimizer."""
    implementation = {"foreach": {"foreach": True}, "fused": {"fused": True}, "for_loop": {"foreach": False}}[settings["optimizer_implementation"]]
    kind = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD, "sgd_momentum": torch.optim.SGD}[settings["optimizer"]]
    return kind(parameters, lr=1e-3, **({"momentum": 0.9} if settings["optimizer"] == "sgd_momentum" else {}), **implementation)


def step(built, optim, ids, settings, tracker=None):
    """One step; with a tracker it says which phase it is in. Gradients are freed at the end, as before the next step."""
    if tracker is None:
        models.step(built, optim, ids, settings["keeps_logits"])
        return

    def enter(phase):
        tracker.phase = phase

    group = built._get_fsdp_state()._fsdp_param_group
    reduce = group.post_backward

    def post_backward(*given):
        enter("reduce")
        return reduce(*given)

    group.post_backward = post_backward  # the tracker puts PyTorch's own back when it ends
    enter("forward")
    models.step(built, optim, ids, settings["keeps_logits"], lambda ended, begun: enter(begun or ended))


def measure(config, **settings):
    """{"parameters": N, "peak": bytes, "phase": …, "by_kind": {kind: bytes}, "phases": {phase: …}, "at_rest": …} of one rank.

    config: fields of config.json with model_type. settings: see settings.py. Bytes are those of one rank in steady state; at_rest
    is what it holds between two steps, gradients freed.
    """
    settings = {**FSDP2, **settings}
    models.without_masks_from_values()
    dist.init_process_group("fake", rank=settings["rank"], world_size=settings["dp"], store=FakeStore())
    mesh = init_device_mesh("cpu", (settings["dp"],))
    with FakeTensorMode():
        built = sharded(config, mesh, settings)
        count = sum(parameter.numel() for parameter in built.parameters())
        optim = optimizer(built.parameters(), settings)
        ids = torch.zeros((settings["micro_batch"], settings["sequence"]), dtype=torch.long)
        step(built, optim, ids, settings)
        optim.zero_grad()
        tracker = PhaseTracker(built, optim)
        tracker.track_inputs((ids,))
        with tracker:
            at_rest = tracker.now()
            step(built, optim, ids, settings, tracker)
        peak = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]
    dist.destroy_process_group()
    phases = {phase: tracker.peaks[phase] for phase in PHASES if phase in tracker.peaks}
    phase = max(phases, key=lambda name: phases[name]["bytes"])
    if phases[phase]["bytes"] != peak["Total"]:
        raise RuntimeError("the phases' largest peak is %d, the tracker's %d" % (phases[phase]["bytes"], peak["Total"]))
    return {"parameters": count, "peak": peak["Total"], "phase": phase, "by_kind": by_kind(peak), "phases": phases, "at_rest": at_rest}
