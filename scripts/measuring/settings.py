"""What a case may set, by its way of measuring, and what holds where it sets nothing."""

FSDP2 = {
    "dp": 8,
    "rank": 0,
    "reshard_after_forward": True,  # true, false, or the ranks over which a layer stays sharded after forward
    "root_reshard": "same",  # the root unit: "same" as the layers, or "default", which PyTorch turns into false
    "precision": "mixed",  # BF16 over FP32 parameters, reduced in FP32; or "bf16" or "fp32" throughout
    "attention": "sdpa",
    "experts": "grouped_mm",
    "checkpointing": "none",
    "keeps_logits": True,  # the output object lives through backward
    "optimizer": "adamw",
    "optimizer_implementation": "foreach",
    "micro_batch": 1,
    "sequence": 1024,
}

SAVED = {
    "of": "layer",  # or "model", or "loss"
    "device": "fake-cuda",  # or "cpu", whose kernels keep other dropout masks and norm statistics
    "precision": "bf16",  # or "autocast" (BF16 over FP32 parameters) or "fp32"
    "attention": "sdpa",
    "experts": "grouped_mm",
    "micro_batch": 1,
    "sequence": 512,
}

STATES = {
    "precision": "fp32",  # or "autocast", "bf16", or "bf16-master": BF16 parameters over an FP32 copy that the optimizer updates
    "optimizer": "adamw",
    "optimizer_implementation": "default",
    "micro_batch": 2,
    "sequence": 32,
}

SHARDS = {"strategy": "fsdp2", "dp": 2, "precision": "fp32", "micro_batch": 1, "sequence": 16}
DEEPSPEED = {**SHARDS, "reduce_bucket_size": 500_000}  # elements; its default would be larger than these models

CUDA = {
    "precision": "bf16",  # or "autocast" (BF16 over FP32 parameters) or "fp32"
    "attention": "sdpa",
    "experts": "grouped_mm",
    "checkpointing": "none",
    "keeps_logits": True,
    "optimizer": "adamw",
    "optimizer_implementation": "foreach",
    "micro_batch": 1,
    "sequence": 1024,
}

DEFAULTS = {"fsdp2": FSDP2, "saved": SAVED, "states": STATES, "shards": SHARDS, "cuda": CUDA}


def complete(kind, settings):
    """All settings of a case."""
    defaults = DEEPSPEED if settings.get("strategy", "").startswith("deepspeed") else DEFAULTS[kind]
    return {**defaults, **settings}
