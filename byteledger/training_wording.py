"""What an estimate of a training run says in both languages: what it takes for granted, what it does not know, and why."""

ASSUMPTIONS = {
    "mixed_shards": (
        "FSDP 混合精度：分片以 FP32 保存，它本身就是主权重；聚合与计算用 BF16，梯度以 FP32 归约。",
        "FSDP mixed precision: shards stay in FP32 and are the master weights; gathering and computing are in BF16, gradients are reduced in FP32.",
    ),
    "as_fsdp2": (
        "FSDP1 的扁平参数按 FSDP2 的逐张量分片计，各个时刻也按 FSDP2 的实测；两者的补齐不同。",
        "FSDP1's flat parameters are taken as FSDP2's shards of tensors, and the moments as measured under FSDP2; their padding differs.",
    ),
    "gradients_temporary": (
        "账本不计梯度；反向时梯度仍会出现，按每个元素 {value} B 计。",
        "The ledger counts no gradients; they still exist in backward, and are taken at {value} B an element.",
    ),
    "megatron_profile": (
        "激活值按 Megatron 的融合层计（论文公式），不是 Hugging Face 的实现。",
        "Activations are those of Megatron's fused block, by the paper's formula, not of a Hugging Face block.",
    ),
    "vocabulary_parallel": (
        "损失按 Megatron 的词表并行交叉熵计。",
        "The loss is Megatron's vocabulary-parallel cross entropy.",
    ),
    "optimizer_by_tensor": (
        "优化器状态按 {value} 逐张量计算，不用账本里的两个矩。",
        "The optimizer's state is counted tensor by tensor for {value}; the ledger's two moments are not used.",
    ),
    "even_split": (
        "张量并行之后的分片按均分计，不含 FSDP2 的按行补齐。",
        "What tensor parallelism leaves is taken to shard evenly, without FSDP2's padding of rows.",
    ),
    "tied_on_both_ends": (
        "共享的词嵌入在流水线首尾两个阶段各有一份。",
        "The tied table is on the first and on the last pipeline stage.",
    ),
    "deepspeed_buckets": (
        "DeepSpeed 第 3 阶段：归约 bucket 常驻，有 {value} 个元素；聚合出的权重（含预取的）最多留 {live} 个元素（stage3_max_live_parameters）。",
        "DeepSpeed stage 3: a reduce bucket of {value} elements is permanent, and up to {live} elements stay gathered, prefetched ones among them (stage3_max_live_parameters).",
    ),
    "deepspeed_bucket": (
        "DeepSpeed：反向时另有 {value} 个元素的归约 bucket。",
        "DeepSpeed: in backward there is a reduce bucket of {value} elements besides.",
    ),
    "ddp_buckets": (
        "DDP 默认在 bucket 里把全部梯度再留一份；设 gradient_as_bucket_view=True 可以免去。",
        "By default DDP keeps a copy of the gradients in its buckets; gradient_as_bucket_view=True does without.",
    ),
    "fp32_gradient_copy": (
        "更新时把梯度另转成一份 FP32，以便更新主权重。",
        "The update casts the gradients to FP32, to match the master weights.",
    ),
    "gradient_release": (
        "梯度在反向中一算完就用掉并释放：同一时刻只有一层的梯度。",
        "Gradients are applied and freed during backward: those of one layer exist at a time.",
    ),
    "fsdp_offload": (
        "FSDP2 的 CPUOffloadPolicy：权重分片、梯度与优化器状态都在主机内存里，更新在 CPU 上做。",
        "FSDP2's CPUOffloadPolicy: sharded weights, gradients and optimizer states are in host memory, and the CPU does the update.",
    ),
    "deepspeed_offload": (
        "主机内存按 DeepSpeed 自己的估算函数计（余量系数 1.5）。",
        "Host memory is what DeepSpeed's own estimator prints, with its buffer factor of 1.5.",
    ),
    "paged": (
        "分页优化器：不少于 100,000 个元素的矩平时在主机内存，更新时才在设备上；显存够用时它们其实会留在设备上。",
        "A paged optimizer: moments of 100,000 elements and more are in host memory, and on the device for the update alone; where the device has room they stay there.",
    ),
    "fp8_copies": (
        "FP8：线性层权重在 16 位之外另加 {value} 份 1 B 的副本；激活值仍按 16 位计，FP8 实际保存得少些。",
        "FP8: {value} copies of 1 B an element are added to the 16-bit weights of the linear layers; activations are still taken at 16 bit, of which FP8 keeps fewer.",
    ),
    "spread_root": (
        "reshard_after_forward 是 rank 数：嵌入、输出头所在的根单元也按此设置，反向之前重新聚合。",
        "reshard_after_forward is a number of ranks: the root unit, embedding and head, is given the same, and is gathered again for backward.",
    ),
    "lora_activations": (
        "基座冻结时，激活值仍按全参数训练计：适配器要用各层的输入，梯度也要穿过每一层。这是工程估算。",
        "Activations over a frozen base are taken as in full training: adapters need the inputs, and gradients pass through every layer. An engineering estimate.",
    ),
    "accumulated": (
        "每步 {value} 个微批：梯度在微批之间一直保留。",
        "{value} micro-batches a step: gradients exist between them, all the time.",
    ),
    "worst_rank": (
        "流水线各阶段的峰值不同：这里取最高的，即阶段 {value}（从 0 数起）。",
        "Pipeline stages differ: the peak is that of stage {value}, counted from 0, the highest.",
    ),
    "profile": (
        "激活值按 {value} 的实现计（{attention}，{precision}）。",
        "Activations are those of the {value} implementation ({attention}, {precision}).",
    ),
    "no_model": (
        "只给了参数量：权重、梯度与优化器状态按均分计算，其余各项没有建模。",
        "Only a count is given: weights, gradients and optimizer states are divided evenly; nothing else has a model.",
    ),
    "allocated": (
        "峰值是张量占用的字节（allocated）；运行时各项另列，不在其中。",
        "The peak is what tensors take (allocated); the runtime terms stand apart and are not in it.",
    ),
}

# The terms of a moment that an assumption bears on; what is in no list bears on all of them.
BEARS_ON = {
    "mixed_shards": ("weights", "gradients", "master", "gathered", "in_flight"),
    "gradients_temporary": ("gradients", "in_flight"),
    "megatron_profile": ("activations",),
    "vocabulary_parallel": ("loss",),
    "optimizer_by_tensor": ("optimizer",),
    "even_split": ("weights", "gradients", "master", "optimizer"),
    "tied_on_both_ends": ("weights", "gradients", "master", "optimizer"),
    "deepspeed_buckets": ("gathered", "buffers"),
    "deepspeed_bucket": ("in_flight",),
    "ddp_buckets": ("buffers",),
    "fp32_gradient_copy": ("temporaries",),
    "gradient_release": ("gradients", "temporaries"),
    "fsdp_offload": ("weights", "gradients", "master", "optimizer"),
    "deepspeed_offload": (),
    "paged": ("optimizer", "temporaries"),
    "fp8_copies": ("weight_copies", "activations"),
    "lora_activations": ("activations",),
    "accumulated": ("gradients",),
    "profile": ("activations",),
    "spread_root": ("gathered",),
}

UNKNOWN = {
    "activations": ("激活值：这种结构没有建模（{detail}）", "activations: no model of this block ({detail})"),
    "loss": ("损失与 logits：激活值没有建模时不计", "loss and logits: not counted where activations have no model"),
    "backward": ("反向中某一层的临时量：{value} 的实现没有建模，因此峰值只是下限", "temporaries within a layer's backward: no model for the {value} implementation, so the peak is a floor"),
    "optimizer_temporaries": ("优化器更新时的临时量：{value} 没有建模", "temporaries of the optimizer's update: no model for {value}"),
    "fragmentation": ("分配器的碎片（reserved 减 allocated）：取决于分配历史，须实测", "fragmentation, reserved less allocated: depends on the history of allocations; measure it"),
    "gathered": ("聚合出的权重与通信缓冲区：只凭参数量不知道一层有多大", "gathered weights and communication buffers: a count alone does not tell the size of a layer"),
    "temporaries": ("反向与更新的临时量", "temporaries of backward and of the update"),
}
