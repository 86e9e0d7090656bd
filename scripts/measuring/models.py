"""Models to measure: built from the fields of a config.json, with random weights, nothing downloaded."""

import contextlib
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
# A dropout layer keeps a mask; it is measured only where a case asks for it.
NO_DROPOUT = {"gpt2": {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}}


def configuration(fields):
    """A transformers configuration from {"model_type": …, field: value}, without a KV cache and without dropout."""
    fields = {**NO_DROPOUT.get(fields["model_type"], {}), "use_cache": False, **fields}
    return CONFIG_MAPPING[fields.pop("model_type")](**fields)


def model(fields, dtype, attention="sdpa", experts="grouped_mm", checkpointing="none"):
    """A causal language model in train(); experts matters only for a mixture of experts."""
    chosen = {"experts_implementation": experts} if "num_experts" in fields or "num_local_experts" in fields else {}
    built = transformers.AutoModelForCausalLM.from_config(configuration(fields), attn_implementation=attention, dtype=DTYPES[dtype], **chosen)
    built.train()
    if checkpointing == "full":
        built.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return built


def layers(built):
    """The decoder layers: model.layers, or GPT-2's transformer.h."""
    base = built.base_model
    return base.layers if hasattr(base, "layers") else base.h


def head(built):
    """The layer that gives the logits."""
    return built.get_output_embeddings()


def step(built, optim, ids, keeps_logits, between=lambda ended, begun: None, context=contextlib.nullcontext()):
    """One training step, forward in the context. between(ended, begun) is called where one phase goes over into the next.

    Phases: forward, loss, backward, optimizer; None after the last. The loss ends where the gradient of the logits is there.
    """

    def after_head(module, inputs, logits):
        between("forward", "loss")
        logits.register_hook(lambda gradient: between("loss", "backward"))

    watch = head(built).register_forward_hook(after_head)
    with context:
        out = built(input_ids=ids, labels=ids)
    loss = out.loss
    if not keeps_logits:
        del out
    loss.backward()
    watch.remove()
    out = loss = None
    between("backward", "optimizer")
    optim.step()
    between("optimizer", None)


def without_masks_from_values():
    """transformers reads position ids to find packed sequences; a fake tensor has no values, and a run like ours has none packed."""
    transformers.masking_utils.find_packed_sequence_indices = lambda position_ids: None


def preload(model_types):
    """Imports the code of these models, and of what building and running one takes."""
    import torch._dynamo  # noqa: F401, since from_config looks at it

    for model_type in model_types:
        transformers.AutoModelForCausalLM._model_mapping[CONFIG_MAPPING[model_type]]
