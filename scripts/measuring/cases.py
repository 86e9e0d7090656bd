"""Which cases are measured: {name: (kind, config, settings)}. config holds the fields of a config.json."""


def llama(hidden_size, layers, heads, kv, intermediate_size, vocab_size, tie=False, head_dim=None, model_type="llama", **more):
    """A configuration of Llama's shape."""
    return {
        "model_type": model_type, "hidden_size": hidden_size, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": kv, "head_dim": head_dim or hidden_size // heads, "intermediate_size": intermediate_size,
        "vocab_size": vocab_size, "tie_word_embeddings": tie, **more,
    }  # fmt: skip


def qwen2(*shape, tie=False):
    """Qwen2's: biases on query, key and value; it has no head_dim of its own."""
    fields = llama(*shape, tie=tie, model_type="qwen2")
    del fields["head_dim"]
    return fields


def gpt2(hidden_size, layers, heads, vocab_size, positions=1024):
    """GPT-2's: its own names, tied embeddings."""
    return {"model_type": "gpt2", "n_embd": hidden_size, "n_layer": layers, "n_head": heads, "vocab_size": vocab_size, "n_positions": positions}


def mixtral(*shape, experts, active=2):
    """Mixtral's: every layer a mixture."""
    return llama(*shape, model_type="mixtral", num_local_experts=experts, num_experts_per_tok=active)


def qwen3_moe(*shape, experts, active, moe, head_dim=None):
    """Qwen3-MoE's: every layer a mixture of narrow experts."""
    return llama(
        *shape, model_type="qwen3_moe", head_dim=head_dim, num_experts=experts, num_experts_per_tok=active, moe_intermediate_size=moe,
        decoder_sparse_step=1, mlp_only_layers=[],
    )  # fmt: skip


def _fsdp2(config, dp, sequence, **settings):
    return "fsdp2", config, {"dp": dp, "sequence": sequence, **settings}


FULL, BF16, EAGER, FUSED = {"checkpointing": "full"}, {"precision": "bf16"}, {"attention": "eager"}, {"optimizer_implementation": "fused"}
KEEP = {"reshard_after_forward": False}
LOOSE = {"keeps_logits": False}

# Small shapes beside those of the first run: what it left out is here.
SMALL = {
    # tied and untied, over world sizes
    "llama-tied-w2": _fsdp2(llama(1024, 4, 16, 4, 2816, 32000, tie=True), 2, 1024),
    "llama-tied-w8-full": _fsdp2(llama(2048, 4, 32, 8, 8192, 128256, tie=True), 8, 2048, **FULL),
    "llama-tied-w8-short": _fsdp2(llama(2048, 4, 32, 8, 8192, 128256, tie=True), 8, 128, **FULL),
    "llama-tied-w64-bf16": _fsdp2(llama(1536, 6, 12, 4, 4096, 49152, tie=True), 64, 512, **BF16),
    "llama-tied-keep-bf16-full": _fsdp2(llama(1024, 6, 16, 16, 4096, 32000, tie=True), 8, 512, **KEEP, **BF16, **FULL),
    "llama-tied-tiny-vocabulary": _fsdp2(llama(2048, 6, 16, 8, 5632, 512, tie=True), 8, 1024, **FULL),
    "llama-tied-fused-short": _fsdp2(llama(2048, 3, 16, 4, 5632, 64000, tie=True), 2, 64, **FUSED),
    # one key-value head, as many as query heads, other head widths
    "llama-kv1": _fsdp2(llama(1024, 4, 16, 1, 4096, 8192), 8, 1024),
    "llama-kv1-batch": _fsdp2(llama(1024, 4, 16, 1, 4096, 8192), 8, 1024, micro_batch=3),
    "llama-kv1-eager": _fsdp2(llama(1024, 4, 16, 1, 4096, 8192), 8, 512, micro_batch=2, **EAGER, **FULL),
    "llama-kv1-eager-one": _fsdp2(llama(1024, 4, 16, 1, 4096, 8192), 8, 1024, **EAGER, **FULL),
    "llama-mha": _fsdp2(llama(1024, 4, 8, 8, 2816, 8192), 2, 2048, **FULL),
    "llama-mha-eager": _fsdp2(llama(512, 5, 8, 8, 2048, 4096), 8, 1024, micro_batch=2, **EAGER, **FULL),
    "llama-head-dim-wide": _fsdp2(llama(1024, 4, 8, 4, 2816, 8192, head_dim=256), 8, 1024, **FULL),
    "llama-head-dim-narrow": _fsdp2(llama(2048, 4, 16, 4, 4096, 16384, head_dim=64), 8, 1024),
    "llama-head-dim-wide-eager": _fsdp2(llama(512, 3, 8, 2, 1536, 2048, head_dim=128), 2, 1024, **EAGER),
    # dimensions that the world size does not divide
    "llama-odd-w2": _fsdp2(llama(513, 3, 9, 3, 1111, 1003, head_dim=58), 2, 300),
    "llama-odd-w8": _fsdp2(llama(1000, 4, 10, 2, 2731, 10007, head_dim=100), 8, 512, **FULL),
    "llama-odd-w64": _fsdp2(llama(1000, 4, 10, 2, 2731, 10007, head_dim=100), 64, 512, **FULL),
    "llama-odd-w64-short": _fsdp2(llama(1000, 4, 10, 2, 2731, 50021, head_dim=100), 64, 32, **BF16),
    "llama-odd-w64-last": _fsdp2(llama(1000, 4, 10, 2, 2731, 10007, head_dim=100), 64, 512, rank=63, **FULL),
    "llama-odd-w48-keep": _fsdp2(llama(896, 5, 14, 2, 4864, 15193), 48, 256, **KEEP),
    # each moment of the step as the peak
    "llama-short-reduce": _fsdp2(llama(2048, 4, 16, 8, 5632, 128256), 8, 64),
    "llama-short-optimizer": _fsdp2(llama(4096, 6, 32, 8, 14336, 4096), 2, 64, **FULL),
    "llama-short-optimizer-fused": _fsdp2(llama(4096, 6, 32, 8, 14336, 4096), 2, 64, **FULL, **FUSED),
    "llama-short-backward": _fsdp2(llama(4096, 6, 32, 8, 14336, 1024), 64, 16),
    "llama-wide-backward": _fsdp2(llama(4096, 4, 32, 8, 14336, 2048), 64, 2048, **FULL),
    "llama-long-loss": _fsdp2(llama(512, 2, 8, 4, 1408, 262144), 8, 4096, **FULL),
    "llama-long-loss-loose": _fsdp2(llama(512, 2, 8, 4, 1408, 262144), 8, 4096, **FULL, **LOOSE),
    "llama-wide-loose": _fsdp2(llama(2048, 4, 16, 8, 5632, 32000), 8, 1024, **LOOSE),
    # layers kept gathered, or sharded over fewer ranks
    "llama-keep": _fsdp2(llama(2048, 6, 16, 8, 5632, 32000), 8, 512, **KEEP),
    "llama-keep-w64-full": _fsdp2(llama(2048, 6, 16, 8, 5632, 8192), 64, 256, **KEEP, **FULL),
    "llama-keep-fused-bf16": _fsdp2(llama(2048, 6, 16, 8, 5632, 2048), 2, 128, **KEEP, **FUSED, **BF16),
    "llama-reshard-2-of-8": _fsdp2(llama(2048, 6, 16, 8, 5632, 32000), 8, 512, reshard_after_forward=2),
    "llama-reshard-4-of-8-full": _fsdp2(llama(2048, 6, 16, 8, 5632, 4096), 8, 512, reshard_after_forward=4, **FULL),
    "llama-reshard-8-of-64-full": _fsdp2(llama(2048, 6, 16, 8, 5632, 4096), 64, 512, reshard_after_forward=8, **FULL),
    "llama-root-default": _fsdp2(llama(2048, 4, 16, 8, 5632, 128256), 8, 512, root_reshard="default"),
    "llama-root-default-full": _fsdp2(llama(2048, 6, 16, 8, 5632, 4096), 8, 2048, root_reshard="default", **FULL),
    # FP32 throughout, eager, fused
    "llama-fp32": _fsdp2(llama(1024, 4, 16, 4, 2816, 16384), 8, 512, precision="fp32"),
    "llama-fp32-full": _fsdp2(llama(1024, 6, 16, 4, 2816, 2048), 8, 1024, precision="fp32", **FULL),
    "llama-eager": _fsdp2(llama(1024, 4, 16, 8, 2816, 8192), 8, 1024, **EAGER),
    "llama-eager-bf16-full": _fsdp2(llama(1024, 4, 16, 8, 2816, 8192), 64, 2048, **EAGER, **BF16, **FULL),
    "llama-one-layer-pair": _fsdp2(llama(4096, 2, 32, 32, 11008, 32000), 8, 1024, **FULL),
    "mistral-w8": _fsdp2(llama(2048, 4, 16, 4, 7168, 32768, model_type="mistral", sliding_window=None), 8, 1024, **FULL),
    "mistral-w64-bf16": _fsdp2(llama(4096, 3, 32, 8, 14336, 32000, model_type="mistral", sliding_window=None), 64, 512, **BF16),
    # other families
    "qwen2-tied-w8": _fsdp2(qwen2(896, 6, 14, 2, 4864, 151936, tie=True), 8, 1024, **FULL),
    "qwen2-tied-w64-keep": _fsdp2(qwen2(896, 6, 14, 2, 4864, 4096, tie=True), 64, 512, **KEEP),
    "qwen2-w8": _fsdp2(qwen2(1536, 4, 12, 2, 8960, 8192), 8, 1024, **FULL),
    "qwen2-w8-plain": _fsdp2(qwen2(1536, 4, 12, 2, 8960, 8192), 8, 1024),
    "qwen2-eager": _fsdp2(qwen2(896, 4, 14, 2, 4864, 2048, tie=True), 2, 1024, **EAGER, **FULL),
    "qwen3-tied-w8": _fsdp2(llama(1024, 6, 16, 8, 3072, 151936, tie=True, head_dim=128, model_type="qwen3"), 8, 1024, **FULL),
    "qwen3-w8-plain": _fsdp2(llama(2048, 4, 16, 8, 6144, 8192, head_dim=128, model_type="qwen3"), 8, 1024),
    "qwen3-w64-full": _fsdp2(llama(2048, 4, 16, 8, 6144, 8192, head_dim=128, model_type="qwen3"), 64, 2048, **FULL),
    "qwen3-eager-full": _fsdp2(llama(1024, 4, 16, 8, 3072, 4096, head_dim=128, model_type="qwen3"), 8, 1024, **EAGER, **FULL),
    "qwen3-bf16-short": _fsdp2(llama(2560, 4, 32, 8, 9728, 4096, head_dim=128, model_type="qwen3"), 64, 32, **BF16),
    "gpt2-w2": _fsdp2(gpt2(768, 4, 12, 50257), 2, 512),
    "gpt2-w8-full": _fsdp2(gpt2(1024, 6, 16, 4096), 8, 1024, **FULL),
    "gpt2-w64-eager": _fsdp2(gpt2(1024, 4, 16, 4096), 64, 1024, **EAGER),
    "gpt2-keep-bf16": _fsdp2(gpt2(1600, 4, 25, 50257), 8, 256, **KEEP, **BF16),
    "mixtral-w2": _fsdp2(mixtral(1024, 3, 16, 4, 3584, 8192, experts=8), 2, 512),
    "mixtral-w8-full": _fsdp2(mixtral(1024, 4, 16, 4, 3584, 32000, experts=8), 8, 1024, **FULL),
    "mixtral-w64-full": _fsdp2(mixtral(1024, 3, 16, 4, 3584, 8192, experts=8), 64, 512, **FULL),
    "qwen3-moe-w8": _fsdp2(qwen3_moe(1024, 4, 16, 4, 3072, 8192, experts=32, active=4, moe=384, head_dim=128), 8, 512),
    "qwen3-moe-w64-full": _fsdp2(qwen3_moe(2048, 3, 16, 4, 6144, 8192, experts=128, active=8, moe=768, head_dim=128), 64, 512, **FULL),
}  # fmt: skip
