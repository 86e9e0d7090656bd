"""What training keeps between two steps, after real steps on real memory: parameters, gradients, master, optimizer state."""

import contextlib

import torch

from . import models
from .settings import STATES
from .storages import Curve, held


def measure(config, **settings):
    """{"parameters": N, "bytes": {kind: bytes}, "temporaries": bytes}: state after two steps, and what the second step() took on top."""
    settings = {**STATES, **settings}
    torch.manual_seed(0)
    precision = settings["precision"]
    built = models.model(config, "bf16" if precision.startswith("bf16") else "fp32")
    own = list(built.parameters())
    master = [parameter.detach().float().requires_grad_() for parameter in own] if precision == "bf16-master" else None
    optim = optimizer(master or own, settings)
    ids = torch.randint(0, built.config.vocab_size, (settings["micro_batch"], settings["sequence"]))
    for _ in range(2):
        optim.zero_grad()
        with torch.autocast("cpu", torch.bfloat16) if precision == "autocast" else contextlib.nullcontext():
            value = built(input_ids=ids, labels=ids).loss
        value.backward()
        del value
        if master:
            for parameter, copy in zip(own, master):
                copy.grad, parameter.grad = parameter.grad.float(), None
        with Curve() as curve:
            optim.step()
    state = {}
    for values in optim.state.values():
        for name, tensor in values.items():
            if isinstance(tensor, torch.Tensor):
                state.setdefault(name, []).append(tensor)
    kinds = {"parameters": own, "gradients": [parameter.grad for parameter in master or own], "buffers": list(built.buffers())}
    kinds |= {"master": master} if master else {}
    kinds |= {"optimizer." + name: tensors for name, tensors in state.items()}
    sizes = {kind: held(tensors) for kind, tensors in kinds.items()}
    return {
        "parameters": sum(parameter.numel() for parameter in own),
        "bytes": {kind: size for kind, size in sizes.items() if size},
        "temporaries": curve.peak(),
    }


def optimizer(parameters, settings):
    """The optimizer of a case; implementation "default" leaves PyTorch its choice, the loop on a CPU."""
    name = settings["optimizer"]
    if name in ("adamw_8bit_torchao", "adamw_4bit_torchao"):
        # Compiled, it keeps the same states; without a compiler it still does.
        torch.compile = lambda function=None, **_: function if function is not None else (lambda inner: inner)
        import torchao.optim

        return (torchao.optim.AdamW8bit if "8bit" in name else torchao.optim.AdamW4bit)(parameters, lr=1e-3)
    if name == "adamw_8bit_bitsandbytes":
        import bitsandbytes

        return bitsandbytes.optim.AdamW8bit(parameters, lr=1e-3)
    given = {"default": {}, "foreach": {"foreach": True}, "fused": {"fused": True}, "for_loop": {"foreach": False}}[settings["optimizer_implementation"]]
    kind, more = {
        "adamw": (torch.optim.AdamW, {}),
        "adamw_amsgrad": (torch.optim.AdamW, {"amsgrad": True}),
        "adafactor": (torch.optim.Adafactor, {}),
        "sgd": (torch.optim.SGD, {}),
        "sgd_momentum": (torch.optim.SGD, {"momentum": 0.9}),
    }[name]
    return kind(parameters, lr=1e-3, **more, **given)
