"""KV cache and recurrent state against published bytes per token and what DynamicCache of transformers 5.24.0 held."""

import random

import pytest

from byteledger import catalog, hf_config, kv_cache
from byteledger.arguments import ArgumentError

DATA = catalog.load()
GiB = 2**30


def model(id):
    return DATA.architecture(id)


# The 2 x layers x KV heads x head size x 2 rows of reference_values.yaml, and those of MLA; BF16, before any window is full.
PER_TOKEN = {
    "llama-2-7b": 524_288, "llama-2-13b": 819_200, "llama-2-70b": 327_680, "llama-3-8b": 131_072, "llama-3-70b": 327_680, "llama-3.1-405b": 516_096,
    "llama-3.2-1b": 32_768, "llama-3.2-3b": 114_688, "mistral-7b-v0.1": 131_072, "mixtral-8x7b": 131_072, "qwen2.5-7b": 57_344, "qwen2.5-72b": 327_680,
    "qwen3-8b": 147_456, "qwen3-32b": 262_144, "qwen3-30b-a3b": 98_304, "qwen3-235b-a22b": 192_512, "gpt-neox-20b": 1_081_344, "falcon-7b": 8_192,
    "gpt-oss-120b": 73_728, "deepseek-v3": 70_272, "deepseek-v2": 69_120,
}  # fmt: skip


@pytest.mark.parametrize("id", PER_TOKEN)
def test_published_bytes_per_token(id):
    assert kv_cache.bytes_per_token(model(id), 2) == PER_TOKEN[id]
    assert kv_cache.bytes_per_token(model(id), 1) * 2 == PER_TOKEN[id]


def test_published_totals():
    """To the digits that are printed, in the units that are meant: the blog's GB are GiB, its 16k and 128k decimal."""
    assert kv_cache.bytes_per_token(model("llama-2-70b"), 1) == 163_840  # scaling book: 160 kB per token in int8
    assert round(kv_cache.total(model("llama-2-13b"), 8192, 1, 2) / 1e9, 1) == 6.7  # scaling book
    for id, printed in (("llama-3-8b", (0.125, 1.95, 15.62)), ("llama-3-70b", (0.313, 4.88, 39.06))):  # huggingface.co/blog/llama31
        for tokens, figure in zip((1024, 16_000, 128_000), printed):
            assert abs(kv_cache.total(model(id), tokens, 1, 2) / GiB - figure) <= 0.0051
    # hf-mem: MiniMax-M2 at 196,608 tokens in FP8.
    assert kv_cache.total(model("minimax-m2.7"), 196_608, 1, 1) == 24_964_497_408
    # hf-mem#60: vLLM reports room for 78,384 tokens in 5.38 GiB: every layer whole.
    assert round(kv_cache.reserved(model("gpt-oss-120b"), 78_384, 1, 2) / GiB, 2) == 5.38
    assert kv_cache.steady_bytes_per_token(model("gpt-oss-120b"), 2) == 36_864


# What DynamicCache held, in logical bytes: measured with torch 2.13.0 and transformers 5.24.0 on 2026-12-01
# (facts/measurements/kv_cache.json). (configuration, tokens, sequences, bytes per element, bytes)
BASE = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 256, "vocab_size": 500, "tie_word_embeddings": False}
GQA = {**BASE, "num_key_value_heads": 2}
LATENT = {"q_lora_rank": 32, "kv_lora_rank": 48, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "first_k_dense_replace": 1}
MEASURED = [
    ({**BASE, "model_type": "llama", "num_key_value_heads": 8}, 17, 2, 2, 69_632),
    ({**BASE, "model_type": "llama", "num_key_value_heads": 8}, 64, 2, 2, 262_144),
    ({**GQA, "model_type": "llama"}, 17, 2, 2, 17_408),
    ({**GQA, "model_type": "llama"}, 64, 2, 2, 65_536),
    ({**GQA, "model_type": "llama"}, 16 + 5, 2, 2, 21_504),
    ({**GQA, "model_type": "llama"}, 64, 2, 4, 131_072),
    ({"model_type": "gpt2", "n_embd": 128, "n_layer": 4, "n_head": 8, "vocab_size": 500, "n_positions": 256}, 64, 2, 2, 262_144),
    ({**GQA, "model_type": "qwen3", "head_dim": 64}, 64, 2, 2, 262_144),
    ({"model_type": "falcon", "hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 500, "multi_query": True, "new_decoder_architecture": False}, 64, 2, 2, 32_768),
    ({**GQA, "model_type": "mistral", "sliding_window": 16}, 8, 2, 2, 8_192),
    ({**GQA, "model_type": "mistral", "sliding_window": 16}, 64, 2, 2, 15_360),
    ({**GQA, "model_type": "mistral", "sliding_window": 16}, 64 + 20, 2, 2, 15_360),
    ({**GQA, "model_type": "gemma2", "head_dim": 16, "sliding_window": 16}, 64, 2, 2, 40_448),
    ({**GQA, "model_type": "gemma3_text", "num_hidden_layers": 6, "head_dim": 16, "sliding_window": 16}, 64, 2, 2, 35_584),
    ({**GQA, "model_type": "gpt_oss", "head_dim": 16, "sliding_window": 16, "num_local_experts": 4, "num_experts_per_tok": 2}, 64, 2, 2, 40_448),
    ({**BASE, **LATENT, "model_type": "deepseek_v3"}, 64, 2, 2, 57_344),
    ({**BASE, **LATENT, "model_type": "deepseek_v2"}, 64, 2, 2, 57_344),
]  # fmt: skip


@pytest.mark.parametrize("config, tokens, sequences, b, held", MEASURED, ids=lambda value: value.get("model_type") if isinstance(value, dict) else str(value))
def test_measured_with_dynamic_cache(config, tokens, sequences, b, held):
    assert kv_cache.total(hf_config.from_dict(config).architecture, tokens, sequences, b) == held


# Convolution and recurrent state that transformers 5.24.0 held on the CPU after a prompt of 40 tokens and one step, two
# sequences, BF16: conv_states [2, channels, kernel] in BF16, recurrent_states in FP32 (2026-12-01).
SMALL = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 500, "intermediate_size": 128, "tie_word_embeddings": False}
RECURRENT = [
    (
        {**SMALL, "model_type": "qwen3_next", "num_hidden_layers": 4, "head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16,
         "linear_value_head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32},
        3 * (2 * 128 * 4 * 2 + 2 * 4 * 16 * 16 * 4), 2 * 2 * 2 * 41 * 16 * 2,
    ),
    (
        {**SMALL, "model_type": "nemotron_h", "layers_block_type": ["mamba", "mlp", "attention", "mamba"], "mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 16,
         "n_groups": 2, "head_dim": 16},
        2 * (2 * 192 * 4 * 2 + 2 * 8 * 16 * 16 * 4), 2 * 2 * 2 * 41 * 16 * 2,
    ),
    ({"model_type": "mamba", "hidden_size": 64, "vocab_size": 500, "num_hidden_layers": 2, "state_size": 8}, 2 * (2 * 128 * 4 * 2 + 2 * 128 * 8 * 4), 0),
    ({"model_type": "mamba2", "hidden_size": 64, "vocab_size": 500, "num_hidden_layers": 2, "state_size": 8, "num_heads": 8, "head_dim": 16, "n_groups": 2}, 2 * (2 * 160 * 4 * 2 + 2 * 8 * 16 * 8 * 4), 0),
]  # fmt: skip


@pytest.mark.parametrize("config, state, grown", RECURRENT, ids=lambda value: value.get("model_type") if isinstance(value, dict) else None)
def test_measured_recurrent_state(config, state, grown):
    architecture = hf_config.from_dict(config).architecture
    assert 2 * kv_cache.fixed_bytes_per_sequence(architecture, 2) == state
    assert kv_cache.total(architecture, 41, 2, 2) == state + grown
    assert kv_cache.fixed_bytes_per_sequence(architecture, 1) == kv_cache.fixed_bytes_per_sequence(architecture, 2)  # an FP8 cache leaves the state alone


def test_wrong_public_figures_are_not_ours():
    """Negative controls of reference_values.yaml: what is printed, and by how much it is off."""
    for printed, tokens in ((0.984, 1024), (15.38, 16_000), (123.05, 128_000)):  # huggingface.co/blog/llama31, the 405B row: twice
        ours = kv_cache.total(model("llama-3.1-405b"), tokens, 1, 2) / GiB
        assert abs(2 * ours - printed) < 0.01 and abs(ours - printed) > 0.4
    assert kv_cache.bytes_per_token(model("deepseek-v3"), 2) != 2 * 61 * 512 * 2  # LMCache#694
    cookbook = 8192 * 80 * 4097 * 2  # b h L (s + o) x bytes: 5.00 GiB
    assert round(cookbook / GiB, 2) == 5.0 and kv_cache.total(model("llama-2-70b"), 4097, 1, 2) * 4 == cookbook


def test_an_encoder_has_none_and_a_compressed_cache_no_model():
    with pytest.raises(ArgumentError, match="no KV cache"):
        kv_cache.total(model("bert-base-cased"), 512, 1, 2)


def attention(k, window=None):
    return hf_config.from_dict({**BASE, "model_type": "mistral", "num_attention_heads": 16, "num_key_value_heads": k, "head_dim": 8, "sliding_window": window}).architecture


def test_properties():
    """MQA <= GQA <= MHA; more tokens or sequences never take less; the ideal never more than what is reserved; blocks round up."""
    source = random.Random(20261201)
    for _ in range(400):
        window = source.choice((None, 2, 17, 4096))
        S, B, b = source.randrange(1, 10_000), source.randrange(1, 64), source.choice((1, 2, 4))
        sizes = [kv_cache.total(attention(k, window), S, B, b) for k in (1, 2, 4, 8, 16)]
        assert sizes == sorted(sizes) and sizes[-1] == 16 * sizes[0]
        architecture = attention(4, window)
        here = kv_cache.total(architecture, S, B, b)
        assert here <= kv_cache.total(architecture, S + 1, B, b) and here < kv_cache.total(architecture, S, B + 1, b)
        assert here <= kv_cache.reserved(architecture, S, B, b) <= kv_cache.reserved(architecture, S, B, b, block=16)
        if window:
            assert kv_cache.steady_bytes_per_token(architecture, b) == 0 and kv_cache.total(architecture, 10**6, B, b) == kv_cache.total(architecture, window, B, b)


def test_the_largest_that_fits():
    """At the answer it fits, at one more it does not; a cache that stops growing has no longest context."""
    source = random.Random(7)
    ids = ["llama-3.1-70b", "deepseek-v3", "gpt-oss-120b", "gemma-3-27b", "qwen3-next-80b-a3b", "mimo-v2-flash", "llama-4-scout"]
    for _ in range(200):
        architecture, budget = model(source.choice(ids)), source.randrange(10**8, 10**11)
        S, B, b = source.randrange(1, 200_000), source.randrange(1, 16), source.choice((1, 2))
        n = kv_cache.largest_batch(architecture, budget, S, b)
        assert kv_cache.total(architecture, S, n + 1, b) > budget and (not n or kv_cache.total(architecture, S, n, b) <= budget)
        longest = kv_cache.largest_context(architecture, budget, B, b)
        assert kv_cache.total(architecture, longest + 1, B, b) > budget and (not longest or kv_cache.total(architecture, longest, B, b) <= budget)
    assert kv_cache.largest_context(model("mistral-7b-v0.1"), 10**10, 1, 2) is None
    assert kv_cache.largest_context(model("mamba-130m"), 10**9, 1, 2) is None and kv_cache.largest_context(model("mamba-130m"), 1000, 1, 2) == 0
    assert kv_cache.largest_context(model("mistral-7b-v0.1"), 131_072 * 100, 1, 2) == 100
