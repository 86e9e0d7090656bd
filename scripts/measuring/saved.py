"""Bytes that autograd keeps for backward: of a decoder layer, of a whole model, of the loss. Each storage counts once."""

import contextlib

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from . import fake_cuda, models
from .settings import SAVED
from .storages import Curve, Saved, held


def measure(config, **settings):
    """{"bytes": {part: bytes}, …} that the forward pass keeps; parameters, buffers and inputs do not count.

    of layer: by child module of the second decoder layer, tensors that all layers share left out; weight_copies are the BF16
    weights that autocast caches. of model: by child of the model, all layers together. of loss: see loss().
    """
    settings = {**SAVED, **settings}
    if settings["of"] == "loss":
        return loss(config["vocab_size"], settings)
    fake = settings["device"] == "fake-cuda"
    if fake and not fake_cuda.available():
        raise RuntimeError("fake CUDA tensors do not work with torch %s" % torch.__version__)
    models.without_masks_from_values()
    with contextlib.ExitStack() as stack:
        if fake:
            stack.enter_context(FakeTensorMode())
            stack.enter_context(torch.device("cuda"))
            stack.enter_context(fake_cuda.flash_attention())
        built = models.model(config, "bf16" if settings["precision"] == "bf16" else "fp32", settings["attention"], settings["experts"])
        ids = torch.zeros((settings["micro_batch"], settings["sequence"]), dtype=torch.long)
        if settings["precision"] == "autocast":
            stack.enter_context(fake_cuda.autocast() if fake else torch.autocast("cpu", torch.bfloat16))
        return {"bytes": (_layer if settings["of"] == "layer" else _model)(built, ids)}


def _children(module, stack):
    """Hooks that keep the name of the child that is running on the stack."""
    for name, child in module.named_children():
        child.register_forward_pre_hook(lambda *_, name=name: stack.append(name))
        child.register_forward_hook(lambda *_: stack.pop() and None)


def _by_part(kept):
    parts = {}
    for size, where in kept.values():
        parts[where] = parts.get(where, 0) + size
    return parts


def _layer(built, ids):
    """Of the second layer, whose input some layer made: called twice, so that what both calls keep is known to be cached."""
    layer, calls = models.layers(built)[1], []
    handle = layer.register_forward_pre_hook(lambda module, args, kwargs: calls.append((args, kwargs)), with_kwargs=True)
    built(input_ids=ids)
    handle.remove()
    (hidden, *args), kwargs = calls[0]
    running = ["residual"]
    _children(layer, running)
    shared = [value for value in [*args, *kwargs.values()] if value is not None]
    kept = []
    for _ in range(2):
        given = hidden.detach().clone().requires_grad_()
        with Saved([*layer.parameters(), *layer.buffers(), *shared], lambda: running[-1]) as saved:
            out = layer(given, *args, **kwargs)
        kept.append((saved, out))
    (first, _), (second, _) = kept
    both = set(first.kept) & set(second.kept)
    parts = _by_part({key: value for key, value in first.kept.items() if key not in both})
    copies = sum(first.kept[key][0] for key in both)
    return parts | ({"weight_copies": copies} if copies else {})


def _model(built, ids):
    """Of the whole model with its loss, without the logits that only the output object holds."""
    running = ["loss"]
    _children(built.base_model, running)
    built.get_output_embeddings().register_forward_pre_hook(lambda *_: running.append("head"))
    built.get_output_embeddings().register_forward_hook(lambda *_: running.pop() and None)
    for layer in models.layers(built):
        layer.register_forward_pre_hook(lambda *_: running.append("layers"))
        layer.register_forward_hook(lambda *_: running.pop() and None)
    with Saved([*built.parameters(), *built.buffers(), ids], lambda: running[-1]) as saved:
        out = built(input_ids=ids, labels=ids)
    parts = _by_part(saved.kept)
    logits = held(out.logits) if out.logits.untyped_storage()._cdata not in saved.kept else 0
    return parts | {"logits_of_output": logits}


def loss(vocab_size, settings):
    """Of transformers' causal loss on logits of one precision, on real memory: kept by autograd, and the heights above the logits.

    {"saved": …} storages that autograd keeps, logits left out; "forward" and "backward": {…: bytes} the most that was allocated
    above the logits in each; "after_forward": what was left of it.
    """
    from transformers.loss.loss_utils import ForCausalLMLoss

    dtype = torch.bfloat16 if settings["precision"] == "bf16" else torch.float32
    logits = torch.randn(settings["micro_batch"], settings["sequence"], vocab_size).to(dtype).requires_grad_()
    labels = torch.zeros((settings["micro_batch"], settings["sequence"]), dtype=torch.long)
    with Saved([logits, labels]) as saved:
        value = ForCausalLMLoss(logits, labels, vocab_size)
    kept = sum(size for size, _ in saved.kept.values())
    del value, saved
    with Curve() as forward:
        value = ForCausalLMLoss(logits, labels, vocab_size)
    with Curve() as backward:
        value.backward()
    return {
        "bytes": {"saved": kept, "forward": forward.peak(), "after_forward": forward.kept(), "backward": forward.kept() + backward.peak()}
    }
