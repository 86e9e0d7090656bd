"""A training run as it was asked for: every setting by name, checked, with its default. Pure: no file, no words."""

from .arguments import ArgumentError, count, quantity

# name: (default, what it must be)
SETTINGS = {
    "dp": (1, "count"),  # data-parallel ranks that see different samples; GPUs are tp cp pp dp
    "tp": (1, "count"),
    "sequence_parallel": (False, "flag"),
    "pp": (1, "count"),
    "virtual_pp": (1, "count"),  # chunks of layers to a pipeline rank (Megatron's interleaving)
    "cp": (1, "count"),
    "ep": (1, "count"),
    "etp": (None, "count"),  # tensor parallelism of the experts; None: tp
    "replicas": (None, "count"),  # replica groups of HYBRID_SHARD
    "reshard_after_forward": (True, "reshard"),
    "micro_batch": (1, "count"),
    "sequence": (4096, "count"),
    "micro_batches": (None, "count"),  # per step and rank; None: 1, or pp with a pipeline
    "checkpointing": ("none", ("none", "selective", "full")),
    "profile": (None, ("llama", "qwen3", "gpt2", "megatron")),  # None: that of the model's family
    "attention": ("sdpa", ("sdpa", "eager")),
    "experts": ("grouped_mm", ("grouped_mm", "eager")),
    "precision": (None, ("bf16", "autocast", "fp32")),  # of computing; None: as the ledger and the strategy imply
    "dropout": (0.0, "share"),
    "loss": ("fp32", ("fp32", "chunked", "fused", "vocabulary_parallel")),
    "loss_chunks": (8, "count"),
    "keeps_logits": (True, "flag"),  # the output object, and with it the logits, lives through backward
    "optimizer": (None, ("adamw", "adamw_amsgrad", "adamw_8bit", "adamw_8bit_embedding_32bit", "adamw_8bit_torchao", "adamw_4bit", "adafactor", "sgd", "sgd_momentum", "lion", "muon")),
    "optimizer_implementation": ("foreach", ("foreach", "for_loop", "fused")),
    "gradient_release": (False, "flag"),  # each gradient is applied and freed during backward
    "gradient_as_bucket_view": (False, "flag"),
    "paged": (False, "flag"),  # bitsandbytes' paged optimizers: large moments leave the device between two updates
    "fp8_copies": (0, (0, 1, 2)),  # of the linear weights, beside those in 16 bit; 2 where transposed ones are kept, too
    "offload": ("none", ("none", "optimizer", "parameters")),
    "lora_rank": (None, "count"),
    "lora_targets": (("q_proj", "v_proj"), "names"),  # or all-linear
    "gpus_per_node": (8, "count"),
    "reduce_bucket_size": (500_000_000, "count"),  # elements; DeepSpeed's defaults, see data/references.yaml deepspeed-config
    "stage3_max_live_parameters": (1_000_000_000, "count"),
    "overlap_comm": (None, "flag"),  # stages 1 and 2: a second bucket; stage 3 has one in any case
    "initialization": ("meta", ("meta", "device")),  # device: each rank builds the whole model before it is sharded
}  # fmt: skip


class Scenario:
    """The settings of a run as attributes. ledger, strategy and base_format (of a frozen base, under LoRA; None: 16 bit) are records."""

    def __init__(self, ledger, strategy, base_format=None, **given):
        self.ledger, self.strategy, self.base_format = ledger, strategy, base_format
        self.stated = frozenset(name for name, value in given.items() if value is not None)
        for name in given:
            if name not in SETTINGS:
                raise ArgumentError(name, given[name], "is no setting; known are %s" % ", ".join(SETTINGS))
        for name, (default, kind) in SETTINGS.items():
            setattr(self, name, _checked(name, given[name], kind) if given.get(name) is not None else default)
        if self.etp is None:
            self.etp = self.tp
        if self.micro_batches is None:
            self.micro_batches = self.pp
        self._check()

    @property
    def world(self):
        """n = tp cp pp dp: ranks of the job."""
        return self.tp * self.cp * self.pp * self.dp

    def _check(self):
        """Settings that exclude each other."""
        if not 0 <= self.dropout < 1:
            raise ArgumentError("dropout", self.dropout, "must be from 0 to less than 1")
        if self.sequence % self.cp:
            raise ArgumentError("cp", self.cp, "must divide sequence = %d; %d tokens would be left over" % (self.sequence, self.sequence % self.cp))
        if self.sequence_parallel and (self.sequence // self.cp) % self.tp:
            raise ArgumentError("tp", self.tp, "sequence parallelism divides the tokens: it must divide sequence / cp = %d" % (self.sequence // self.cp))
        model_parallel = self.tp * self.cp * self.dp
        if model_parallel % (self.ep * self.etp):
            raise ArgumentError("ep", self.ep, "ep x etp = %d must divide tp x cp x dp = %d" % (self.ep * self.etp, model_parallel))
        if self.virtual_pp > 1 and self.pp == 1:
            raise ArgumentError("virtual_pp", self.virtual_pp, "interleaving needs a pipeline: pp is 1")
        hybrid = getattr(self.strategy, "divides_over", "world") == "shard_group"
        if hybrid and self.replicas is None:
            raise ArgumentError("replicas", None, "HYBRID_SHARD divides over a shard group: give the number of replica groups")
        if not hybrid and self.replicas not in (None, 1):
            raise ArgumentError("replicas", self.replicas, "only HYBRID_SHARD has replica groups")
        if hybrid and (self.dp * self.cp) % self.replicas:
            raise ArgumentError("replicas", self.replicas, "must divide dp x cp = %d" % (self.dp * self.cp))
        if self.base_format is not None and self.lora_rank is None:
            raise ArgumentError("base_format", getattr(self.base_format, "id", self.base_format), "only a base that LoRA leaves frozen has a format of its own: give lora_rank")
        if self.gradient_release and self.micro_batches > 1:
            raise ArgumentError("gradient_release", True, "a gradient that is applied at once cannot be accumulated over %d micro-batches" % self.micro_batches)


def _checked(name, value, kind):
    if kind == "count":
        return count(name, value)
    if kind == "share":
        return quantity(name, value)
    if kind == "flag":
        if not isinstance(value, bool):
            raise ArgumentError(name, value, "must be true or false")
        return value
    if kind == "reshard":
        return value if isinstance(value, bool) else count(name, value)
    if kind == "names":
        return value if value == "all-linear" else tuple([value] if isinstance(value, str) else value)
    if value not in kind:
        raise ArgumentError(name, value, "must be one of %s" % ", ".join(kind))
    return value
