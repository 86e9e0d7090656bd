"""One training step on one CUDA device, as its caching allocator counts it: allocated, reserved, and the peak of each phase."""

import contextlib

import torch

from . import fsdp2, models
from .settings import CUDA

PHASES = ("forward", "loss", "backward", "optimizer")


class Allocator:
    """The edge to the device: everything that is asked of torch.cuda. Bytes of one device."""

    device = "cuda"

    def name(self):
        """The device as its driver names it."""
        return torch.cuda.get_device_name()

    def settle(self):
        """Waits for the device, so that what is asked next is true."""
        torch.cuda.synchronize()

    def begin(self):
        """From here on peak() counts anew."""
        torch.cuda.reset_peak_memory_stats()

    def now(self):
        """{"allocated": …, "reserved": …, "requested": …}: in blocks, in segments, and before blocks are rounded up."""
        stats = torch.cuda.memory_stats()
        return self._three(stats, "current")

    def peak(self):
        """The same, the most of each since begin()."""
        return self._three(torch.cuda.memory_stats(), "peak")

    @staticmethod
    def _three(stats, when):
        return {kind: stats["%s_bytes.all.%s" % (kind, when)] for kind in ("allocated", "reserved", "requested")}

    def outside(self):
        """Bytes that are used on the device and not reserved by the allocator: the context, libraries, other processes."""
        free, total = torch.cuda.mem_get_info()
        return total - free - torch.cuda.memory_reserved()

    def watch(self):
        """Begins to write down every allocation and release."""
        torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python", max_entries=1_000_000)

    def snapshot(self):
        """PyTorch's memory snapshot since watch(), which it ends: {"segments": […], "device_traces": [[…]]}."""
        found = torch.cuda.memory._snapshot()
        torch.cuda.memory._record_memory_history(enabled=None)
        return found


def replay(snapshot, requested, reserved):
    """{"requested": …, "reserved": …}: the peaks of the recorded events, from what there was when they began.

    The events of blocks carry the bytes that were asked for, not those of the block (torch/csrc and c10/cuda, 2.13.0).
    """
    most = {"requested": requested, "reserved": reserved}
    now = dict(most)
    for event in snapshot["device_traces"][0]:
        kind, sign = {
            "alloc": ("requested", 1), "free_completed": ("requested", -1), "segment_alloc": ("reserved", 1), "segment_free": ("reserved", -1),
            "segment_map": ("reserved", 1), "segment_unmap": ("reserved", -1),
        }.get(event["action"], (None, 0))  # fmt: skip
        if kind:
            now[kind] += sign * event["size"]
            most[kind] = max(most[kind], now[kind])
    return most


def measure(config, allocator=None, **settings):
    """{"parameters": N, "bytes": {kind: bytes}, "phases": {phase: bytes}, "reserved": {phase: bytes}, …} of a step in steady state.

    bytes: what is allocated when the step begins, by kind, and `outside`, which the allocator does not hold. phases: the most that
    was allocated in each; reserved: likewise of segments; requested: before blocks are rounded up to 512 bytes; snapshot: the
    peaks of requested and reserved that the allocator's own list of events gives, which must be those of its statistics.
    """
    allocator, settings = allocator or Allocator(), {**CUDA, **settings}
    dtype = "bf16" if settings["precision"] == "bf16" else "fp32"
    start = allocator.now()["allocated"]
    with torch.device(allocator.device):
        built = models.model(config, dtype, settings["attention"], settings["experts"], settings["checkpointing"])
        ids = torch.zeros((settings["micro_batch"], settings["sequence"]), dtype=torch.long)
    allocator.settle()
    weights = allocator.now()["allocated"] - start
    optim = fsdp2.optimizer(built.parameters(), settings)
    for _ in range(2):  # the first step makes the optimizer's state and the libraries' workspaces
        _step(built, optim, ids, settings, allocator.device)
        optim.zero_grad()
    allocator.settle()
    rest, phases = allocator.now(), {}
    allocator.watch()

    def leave(phase):
        allocator.settle()
        phases[phase] = allocator.peak()
        allocator.begin()

    allocator.begin()
    _step(built, optim, ids, settings, allocator.device, leave)
    traced = replay(allocator.snapshot(), rest["requested"], rest["reserved"])
    return {
        "device": allocator.name(),
        "parameters": sum(parameter.numel() for parameter in built.parameters()),
        "bytes": {"weights_and_inputs": weights, "optimizer_and_workspaces": rest["allocated"] - start - weights, "outside": allocator.outside()},
        **{key: {phase: found[kind] for phase, found in phases.items()} for key, kind in (("phases", "allocated"), ("reserved", "reserved"), ("requested", "requested"))},
        "snapshot": traced,
    }


def _step(built, optim, ids, settings, device, leave=lambda phase: None):
    """One step; leave(phase) is called at the end of each phase."""
    cast = torch.autocast(device, torch.bfloat16) if settings["precision"] == "autocast" else contextlib.nullcontext()
    models.step(built, optim, ids, settings["keeps_logits"], lambda ended, begun: leave(ended), cast)
