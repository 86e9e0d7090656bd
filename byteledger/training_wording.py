"""What an estimate of a training run says in both languages: what it takes for granted, what it does not know, and why."""

ASSUMPTIONS = {
    "mixed_shards": (
        "FSDP 混合精度：分片以 FP32 保存，它本身就是主权重；聚合与计算用 BF16，梯度以 FP32 归约。",
        "FSDP mixed precision: shards stay in FP32 and are the master weights; weights are gathered and computed with in BF16, gradients are reduced in FP32.",
    ),
    "as_fsdp2": (
        "FSDP1 的扁平参数按 FSDP2 的逐张量分片计，各个时刻也按 FSDP2 的实测；两者的补齐不同。",
        "FSDP1's flat parameters are counted as FSDP2's per-tensor shards, and the moments of the step as measured under FSDP2; the two pad differently.",
    ),
    "gradients_temporary": (
        "账本不计梯度；反向时梯度仍会出现，按每个元素 {value} B 计。",
        "The ledger counts no gradients; they still exist in backward and are counted at {value} B per element.",
    ),
    "megatron_profile": (
        "激活值按 Megatron 的融合层计（论文公式），不是 Hugging Face 的实现。",
        "Activations are those of Megatron's fused block, by the paper's formula, not those of Hugging Face's block.",
    ),
    "vocabulary_parallel": (
        "损失按 Megatron 的词表并行交叉熵计。",
        "The loss is taken to be Megatron's vocabulary-parallel cross entropy.",
    ),
    "optimizer_by_tensor": (
        "优化器状态按 {value} 逐张量计算，不用账本里的两个矩。",
        "Optimizer states are counted tensor by tensor, for {value}, instead of by the ledger's two moments.",
    ),
    "even_split": (
        "张量并行之后的分片按均分计，不含 FSDP2 的按行补齐。",
        "What tensor parallelism leaves on a rank is taken to shard evenly, without FSDP2's padding of rows.",
    ),
    "tied_on_both_ends": (
        "共享的词嵌入在流水线首尾两个阶段各有一份。",
        "The tied table is held by both the first and the last pipeline stage.",
    ),
    "deepspeed_buckets": (
        "DeepSpeed 第 3 阶段：归约 bucket 常驻，有 {value} 个元素；聚合出的权重（含预取的）最多留 {live} 个元素（stage3_max_live_parameters）。",
        "DeepSpeed stage 3: a reduce bucket of {value} elements is always allocated, and gathered weights of up to {live} elements are kept, prefetched ones included (stage3_max_live_parameters).",
    ),
    "deepspeed_bucket": (
        "DeepSpeed：反向时另有 {value} 个元素的归约 bucket。",
        "DeepSpeed: in backward there is also a reduce bucket of {value} elements.",
    ),
    "ddp_buckets": (
        "DDP 默认在 bucket 里把全部梯度再留一份；设 gradient_as_bucket_view=True 可以免去。",
        "By default DDP keeps a second copy of all gradients in its buckets; gradient_as_bucket_view=True avoids it.",
    ),
    "fp32_gradient_copy": (
        "更新时把梯度另转成一份 FP32，以便更新主权重。",
        "The update casts the gradients to an FP32 copy, to match the master weights.",
    ),
    "gradient_release": (
        "梯度在反向中一算完就用掉并释放：同一时刻只有一层的梯度。",
        "Gradients are applied and freed during backward: only those of one layer exist at a time.",
    ),
    "fsdp_offload": (
        "FSDP2 的 CPUOffloadPolicy：分片权重、梯度与优化器状态都在主机内存，更新在 CPU 上做；权重与梯度逐张量锁页，每块向上取整到 2 的幂。",
        "FSDP2's CPUOffloadPolicy: sharded weights, gradients and optimizer states are in host memory, and the CPU does the update; weights and gradients are pinned tensor by tensor, each rounded up to a power of two.",
    ),
    "unrounded": (
        "主机内存没有按锁页的取整放大；每块最多翻倍。",
        "Host memory is not rounded up as pinned blocks are; each may take up to twice as much.",
    ),
    "deepspeed_offload": (
        "主机内存按 DeepSpeed 自己的估算函数计（余量系数 1.5）。",
        "Host memory is by DeepSpeed's own estimator, with its buffer factor of 1.5.",
    ),
    "paged": (
        "分页优化器：不少于 100,000 个元素的矩平时在主机内存，更新时才在设备上；显存够用时它们其实会留在设备上。",
        "A paged optimizer: moments of 100,000 elements or more are counted in host memory, and on the device only for the update; if the device has room, they really stay on it.",
    ),
    "fp8_copies": (
        "FP8：线性层权重在 16 位之外另加 {value} 份 1 B 的副本；激活值仍按 16 位计，FP8 实际保存得少些。",
        "FP8: {value} copies of 1 B per element are added to the 16-bit weights of the linear layers; activations are still counted in 16 bits, although FP8 keeps fewer bytes of them.",
    ),
    "spread_root": (
        "reshard_after_forward 是 rank 数：嵌入、输出头所在的根单元也按此设置，反向之前重新聚合。",
        "reshard_after_forward is a number of ranks: the root unit (embedding and head) is set to the same number and is gathered again before backward.",
    ),
    "root_resharded": (
        "嵌入、输出头所在的根单元与各层一样在前向后再分片，反向之前重新聚合；若在 fully_shard 里不给它 reshard_after_forward，它会一直聚合着，峰值只会更低。",
        "The root unit, embedding and head, is resharded after forward like the layers and gathered again for backward; where fully_shard is not told so it stays gathered, and the peak is no higher.",
    ),
    "one_rank": (
        "只有一个 rank 的 FSDP2 不聚合也不归约；这里仍按它聚合、归约来计，略偏高。",
        "FSDP2 over one rank gathers and reduces nothing; it is estimated as if it did, which is a little high.",
    ),
    "lora_activations": (
        "基座冻结时，激活值仍按全参数训练计：适配器要用各层的输入，梯度也要穿过每一层。这是工程估算。",
        "With a frozen base, activations are counted as in full training: adapters need the input of every layer, and gradients pass through all of them. An engineering estimate.",
    ),
    "accumulated": (
        "每步 {value} 个微批：梯度在微批之间一直保留。",
        "{value} micro-batches per step: gradients are kept from one micro-batch to the next.",
    ),
    "worst_rank": (
        "流水线各阶段的峰值不同：这里取最高的，即阶段 {value}（从 0 数起）。",
        "The peaks of the pipeline stages differ: the one given is the highest, that of stage {value} (counted from 0).",
    ),
    "profile": (
        "激活值按 {value} 的实现计（{attention}，{precision}）。",
        "Activations are those of the {value} implementation ({attention}, {precision}).",
    ),
    "no_model": (
        "只给了参数量：权重、梯度与优化器状态按均分计算，其余各项没有建模。",
        "Only a parameter count is given: weights, gradients and optimizer states are divided evenly; no other term is modelled.",
    ),
    "allocated": (
        "峰值是张量占用的字节（allocated）；运行时各项另列，不在其中。",
        "The peak is the bytes that tensors take (allocated); the runtime terms are listed separately and are not included.",
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
    "unrounded": (),
    "paged": ("optimizer", "temporaries"),
    "fp8_copies": ("weight_copies", "activations"),
    "lora_activations": ("activations",),
    "accumulated": ("gradients",),
    "profile": ("activations",),
    "spread_root": ("gathered",),
    "root_resharded": ("gathered",),
    "one_rank": ("gathered", "in_flight"),
}

UNKNOWN = {
    "activations": ("激活值：这种结构没有建模（{detail}）", "activations: this block is not modelled ({detail})"),
    "loss": ("损失与 logits：激活值没有建模时不计", "loss and logits: not counted where activations are not modelled"),
    "backward": ("反向中某一层的临时量：{value} 的实现没有建模，因此峰值只是下限", "temporaries within a layer's backward: not modelled for the {value} implementation, so the peak is a floor"),
    "optimizer_temporaries": ("优化器更新时的临时量：{value} 没有建模", "temporaries of the optimizer's update: not modelled for {value}"),
    "fragmentation": ("分配器的碎片（reserved 减 allocated）：取决于分配历史，须实测", "fragmentation, reserved minus allocated: depends on the history of allocations and has to be measured"),
    "gathered": ("聚合出的权重与通信缓冲区：只凭参数量不知道一层有多大", "gathered weights and communication buffers: a parameter count alone does not tell the size of a layer"),
    "temporaries": ("反向与更新的临时量", "temporaries of backward and of the update"),
}
