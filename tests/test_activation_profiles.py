"""What autograd keeps, held to what PyTorch kept and to what the papers print.

tests/measurements/*.json: torch 2.13.0, transformers 5.24.0, saved_tensors_hooks and the CPU allocator; each file names its
environment and how it was measured. Coefficients there are the integer solutions of shapes measured one by one.
"""

import json
import random
from pathlib import Path

import pytest

from byteledger import activation_profiles as profiles
from byteledger import activations, loss
from byteledger import parameters as p
from byteledger.architecture import Architecture, Layer, Mixer, Mlp
from byteledger.arguments import ArgumentError
from byteledger.units import GB, GiB

HERE = Path(__file__).resolve().parent / "measurements"
PROFILE = {"korth": "megatron", "gpt2": "gpt2", "llama": "llama", "qwen3": "qwen3"}
PRECISION = {"bf16": "bf16", "amp": "autocast", "fp32": "fp32"}


def cases(name):
    return json.loads((HERE / name).read_text(encoding="utf-8"))["cases"]


LAYERS, MODELS, EXPERTS = cases("layer_activations.json"), cases("model_activations.json"), cases("moe_activations.json")


def label(case):
    return "-".join(str(case[key]) for key in ("kind", "attn", "mode", "device", "dropout", "checkpoint", "source") if key in case)


def layer(kind, h, a, k, d, f, window=None, experts=None):
    """A Layer as byteledger.families builds it for that kind of block."""
    mixer = Mixer("grouped_query", num_attention_heads=a, num_key_value_heads=k, head_dim=d, v_head_dim=d, window=window)
    plain = kind in ("korth", "gpt2")
    tensors = p.grouped_query_attention(h, a, k, d, plain, plain)
    if kind == "qwen3":
        tensors += p.query_key_norm(d, d)
    if experts:
        E, K, shared = experts
        mlp = Mlp("experts", intermediate_size=f, num_experts=E, num_experts_per_tok=K, shared_intermediate_size=shared)
        tensors += p.router(E, h) + p.experts(E, h, f)
    else:
        mlp = Mlp("plain" if plain else "gated", intermediate_size=f)
        tensors += p.plain_mlp(h, f) if plain else p.gated_mlp(h, f)
    tensors += (p.layer_norm if plain else p.rms_norm)("norm_0", h) + (p.layer_norm if plain else p.rms_norm)("norm_1", h)
    return Layer(mixer, mlp, tensors)


def model(block, h, V, L):
    return Architecture("llama", h, V, False, p.embedding(V, h) + p.rms_norm("norm", h) + p.output_head(V, h), [(block, L)])


def terms(h, a, k, d, f, s, b, V=0, L=1, E=0, K=0):
    """The monomials that the measured coefficients multiply."""
    n = s * b
    layer = {
        "sbh": n * h, "sbad": n * a * d, "sbkd": n * k * d, "sbf": n * f, "as2b": a * s * s * b, "sb": n, "sba": n * a, "sbk": n * k, "const": 1,
        "sbkh": n * K * h, "sbkf": n * K * f, "sbE": n * E, "E": E,
    }  # fmt: skip
    whole = {"L*" + key: L * value for key, value in layer.items()}
    return {**layer, **whole, "sbV": n * V, "sd": s * d, "s": s, "L": L}


def evaluated(case, **shape):
    known = terms(**shape)
    return sum(coefficient * known[term] for term, coefficient in case["coef"].items())


def shapes(kind):
    """Shapes of which none was measured: where a coefficient is wrong, or a term is missing, they differ."""
    random.seed(5)
    for _ in range(12):
        k, d = random.randrange(2, 6), 8 * random.randrange(1, 9)
        a = k * random.randrange(1, 5)
        h, f = 16 * random.randrange(4, 40), 8 * random.randrange(5, 60)
        if kind in ("korth", "gpt2"):
            k, h = a, a * d
        if kind == "korth":
            f = 4 * h
        yield {"h": h, "a": a, "k": k, "d": d, "f": f, "s": 8 * random.randrange(1, 50), "b": random.randrange(1, 6)}


def kept(block, h, kind, attention, precision, s, b, dropout=0.0, **more):
    """(bytes without the copies of weights, those copies)."""
    parts = profiles.saved(block, h, PROFILE[kind], attention, precision, b, s, dropout, **more)
    copies = parts.pop("weight_copies", 0)
    return sum(parts.values()), copies


@pytest.mark.parametrize("case", LAYERS, ids=label)
def test_layers_to_the_byte(case):
    kind, arguments = case["kind"], (case["kind"], case["attn"], PRECISION[case["mode"]])
    assert case["holdout_exact"] == case["holdout"]  # else the coefficients would not be a measurement
    example = dict(case["example"]["shape"])
    example["k"] = example.pop("kv")
    for shape in [example, *shapes(kind)]:
        block = layer(kind, *(shape[key] for key in "hakdf"))
        got, copies = kept(block, shape["h"], *arguments, shape["s"], shape["b"], case["dropout"])
        assert got == evaluated(case, **shape)
        assert copies == case["weight_copy"] * sum(t.size for t in block.tensors if t.name.endswith("proj.weight"))
    shape = example
    assert kept(layer(kind, *(shape[key] for key in "hakdf")), shape["h"], *arguments, shape["s"], shape["b"], case["dropout"])[0] == case["example"]["bytes"]


@pytest.mark.parametrize("case", MODELS, ids=label)
def test_whole_models_to_the_byte(case):
    """L layers, what is outside them, the loss; alloc also holds the logits, the loss itself, and on a CPU the random states."""
    kind, precision = case["kind"], PRECISION[case["mode"]]
    on_cpu, gpt2 = case["device"] == "real-cpu", case["kind"] == "gpt2"
    for L, shape in enumerate(shapes(kind), 1):
        V, s, b, h = 8 * L + 104, shape["s"], shape["b"], shape["h"]
        block = layer(kind, *(shape[key] for key in "hakdf"))
        if case["checkpoint"]:
            per_layer = profiles.checkpointed(b, s, h, precision) + profiles.CPU_RNG_STATE
        else:
            per_layer, _ = kept(block, h, kind, case["attn"], precision, s, b)
            if on_cpu and precision == "bf16" and case["attn"] == "sdpa":
                per_layer -= 24  # the CPU's kernel has no seeds
        outside = profiles.outside(model(block, h, V, L), PROFILE[kind], precision, b, s)
        assert outside.pop("head_weight_copy", 0) == case["weight_copy"] * V * h
        if on_cpu and gpt2 and precision == "bf16":
            outside["statistics"] -= 4 * s * b  # a CPU's LayerNorm keeps BF16 statistics in BF16
        total = L * per_layer + sum(outside.values()) + loss.saved(b, s, V, "fp32", 2) + loss.TOTAL_WEIGHT
        if case["source"] == "alloc":
            total += loss.logits(b, s, V, "fp32", 4 if precision == "fp32" else 2) + 4
            total += 24 * L if gpt2 else 0  # a CPU's copies of GPT-2's scalars
            total += 8 * s if case["checkpoint"] and not gpt2 else 0  # position ids, an input of every checkpoint
        assert total == evaluated(case, **shape, V=V, L=L)


@pytest.mark.parametrize("case", EXPERTS, ids=lambda case: case["kind"] + "-" + case["impl"])
def test_experts_to_the_byte(case):
    """The coefficients of a block alone: what the two norms and attention keep is the same with a gated MLP."""
    kind = {"mixtral": "llama", "qwen3moe": "qwen3"}[case["kind"]]
    for E, shape in enumerate(shapes(kind), 5):
        K, sizes = 1 + E % 4, [shape[key] for key in "hakdf"]
        got = kept(layer(kind, *sizes, experts=(E, K, 0)), shape["h"], kind, "sdpa", "bf16", shape["s"], shape["b"], experts=case["impl"])[0]
        attention = kept(layer(kind, *sizes), shape["h"], kind, "sdpa", "bf16", shape["s"], shape["b"])[0] - 8 * shape["s"] * shape["b"] * shape["f"]
        known = {**terms(**shape, E=E, K=K), "sbk": shape["s"] * shape["b"] * K}
        assert got - attention == sum(coefficient * known[term] for term, coefficient in case["coef"].items())


# Counted one by one with the hooks for this project (fake CUDA; experts on real CPU tensors), transformers 5.24.0:
# h 96, a 6, d 32, f 160, s 64, b 2 unless said.
@pytest.mark.parametrize(
    "what, bytes_kept, shape, options",
    [
        ("padding mask, K and V repeated, a bias of 2 b s^2", 577552, {}, {"attention": "sdpa", "mask": True}),
        ("the same by a window as long as the sequence", 577552, {"window": 64}, {"attention": "sdpa"}),
        ("a longer window needs no mask", 495640, {"window": 65}, {"attention": "sdpa"}),
        ("one KV head, one sequence: K and V stay one head", 385536, {"k": 1}, {"attention": "eager", "b": 1}),
        ("one KV head, two sequences: they are repeated", 852992, {"k": 1}, {"attention": "eager"}),
        ("the same under autocast: only V stays", 467456, {"k": 1}, {"attention": "eager", "b": 1, "precision": "autocast"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_odd_cases(what, bytes_kept, shape, options):
    sizes = {"h": 96, "a": 6, "k": 2, "d": 32, "f": 160, **shape}
    options = {"precision": "bf16", "b": 2, **options}
    attention, precision, b = (options.pop(key) for key in ("attention", "precision", "b"))
    assert kept(layer("llama", **sizes), 96, "llama", attention, precision, 64, b, **options)[0] == bytes_kept


@pytest.mark.parametrize(
    "kind, implementation, precision, bytes_kept, options",
    [
        ("llama", "eager", "bf16", 817664, {}),
        ("llama", "eager", "fp32", 1522176, {}),
        ("llama", "grouped_mm", "bf16", 770576, {}),
        ("llama", "grouped_mm", "fp32", 1425936, {}),
        ("qwen3", "eager", "bf16", 852480, {"f": 80}),
        ("qwen3", "grouped_mm", "fp32", 1362960, {"f": 80}),
        ("qwen3", "eager", "bf16", 854016, {"f": 80, "norm_topk_prob": True}),
        ("qwen3", "grouped_mm", "bf16", 806928, {"f": 80, "norm_topk_prob": True}),
        ("qwen3", "grouped_mm", "fp32", 1364496, {"f": 80, "norm_topk_prob": True}),
    ],
)
def test_layers_with_experts(kind, implementation, precision, bytes_kept, options):
    """Whole layers of mixtral and qwen3_moe, 4 experts, 2 per token; a CPU's kernel keeps no seeds."""
    block = layer(kind, 96, 6, 2, 32, options.pop("f", 160), experts=(4, 2, 0))
    parts = profiles.saved(block, 96, kind, "sdpa", precision, 2, 64, experts=implementation, **options)
    assert sum(parts.values()) - parts.get("seeds", 0) == bytes_kept


def test_one_layer_of_llama_and_qwen():
    """Bytes over s b h, rotary tables included, real CPU tensors (no seeds): shapes of Llama 3 8B, Llama 2 7B, Qwen3 8B over 8."""
    for kind, k, f, sdpa, eager in (
        ("llama", 2, 1792, 49.328125, 76.265625),
        ("llama", 8, 1376, 45.828125, 69.765625),
        ("qwen3", 2, 1536, 52.90625, 79.84375),
    ):
        block = layer(kind, 512, 8, k, 64, f)
        rotary = profiles.outside(model(block, 512, 1000, 1), kind, "bf16", 2, 256)["rotary"]
        assert (kept(block, 512, kind, "sdpa", "bf16", 256, 2)[0] - 24 + rotary) / (256 * 2 * 512) == sdpa
        assert (kept(block, 512, kind, "eager", "bf16", 256, 2)[0] + rotary) / (256 * 2 * 512) == eager


# --- Megatron's block: Korthikanti et al. 2022, arXiv 2205.05198


def megatron(h, a, s, b, kind="korth", k=None, f=None, **options):
    """The parts that the paper counts: without statistics of the norms and without a fused kernel's log-sum-exps."""
    block = layer(kind, h, a, k or a, h // a, f or 4 * h)
    parts = profiles.saved(block, h, "megatron", options.pop("attention", "eager"), "bf16", b, s, **{"dropout": 0.1, **options})
    return {part: size for part, size in parts.items() if part not in ("statistics", "log_sum_exp", "seeds")}


# Table 3: hidden size, heads of the models of the paper; all with s = 2048 and t = 8.
CONFIGURATIONS = [(6144, 64), (12288, 96), (20480, 128), (25600, 160)]


@pytest.mark.parametrize("h, a", CONFIGURATIONS)
def test_korthikanti_table_2(h, a):
    s, b, t = 2048, 2, 8
    sbh, scores = s * b * h, 5 * a * s * s * b
    assert sum(megatron(h, a, s, b).values()) == 34 * sbh + scores
    assert sum(megatron(h, a, s, b, tp=t).values()) == 10 * sbh + (24 * sbh + scores) // t
    assert sum(megatron(h, a, s, b, tp=t, sequence_parallel=True).values()) == (34 * sbh + scores) // t
    selective = {part: size for part, size in megatron(h, a, s, b, tp=t).items() if part != "scores"}
    assert sum(selective.values()) == 10 * sbh + 24 * sbh // t
    selective = {part: size for part, size in megatron(h, a, s, b, tp=t, sequence_parallel=True).items() if part != "scores"}
    assert sum(selective.values()) == 34 * sbh // t
    assert profiles.checkpointed(b, s, h, "bf16") == 2 * sbh


@pytest.mark.parametrize("h, a, over_sbh, percent", [(12288, 96, 80, 70), (20480, 128, 64, 65)])
def test_korthikanti_section_5(h, a, over_sbh, percent):
    """GPT-3 and MT-NLG: 5 a s / h, and what selective recomputation saves."""
    parts = megatron(h, a, 2048, 1)
    assert parts["scores"] / (2048 * h) == over_sbh
    assert int(100 * parts["scores"] / sum(parts.values())) == percent


def test_korthikanti_section_4_3():
    """Outside the layers: embedding dropout s b h / t for each micro-batch in flight, norm and head input 2 s b h / t, logits 4 s b V / t."""
    h, s, b, t, V = 12288, 2048, 1, 8, 51200
    parts = profiles.outside(model(layer("korth", h, 96, 96, 128, 4 * h), h, V, 96), "megatron", "bf16", b, s, 0.1, t, True)
    assert (parts["embedding_dropout"], parts["final_norm"], parts["head_input"]) == (s * b * h // t, 2 * s * b * h // t, 2 * s * b * h // t)
    assert loss.saved(b, s, V, "vocabulary_parallel", 2, tp=t) == 4 * s * b * V // t


def test_starcoder_with_one_kv_head():
    """Hugging Face's personal-copilot: s b h (30 + 4/a + 5 a s / h), 206 GB (GiB in fact) for 40 layers of StarCoder."""
    s, b, h, a = 2048, 4, 6144, 48
    parts = megatron(h, a, s, b, k=1)
    assert sum(parts.values()) == s * b * (30 * h + 4 * h // a + 5 * a * s)
    assert round(40 * sum(parts.values()) / GiB) == 206


def test_without_dropout_the_masks_go():
    """The same block measured without dropout: 32 s b h + 2 a s^2 b."""
    assert sum(megatron(1024, 8, 512, 2, dropout=0.0).values()) == 32 * 1024 * 1024 + 2 * 8 * 512 * 512 * 2


def test_newer_blocks_in_megatron():
    """Engineering estimates: GQA scales K and V, a fused SwiGLU keeps 6 f, RMSNorm half the statistics, tp beyond k repeats KV heads."""
    h, a, k, f, n = 4096, 32, 8, 14336, 1024
    block = layer("llama", h, a, k, 128, f)
    parts = profiles.saved(block, h, "megatron", "sdpa", "bf16", 1, n)
    assert parts["mlp"] == 6 * n * f
    assert parts["query_key_value"] == 2 * n * (h + 2 * k * 128)
    assert parts["statistics"] == 8 * n
    sixteen = profiles.saved(block, h, "megatron", "sdpa", "bf16", 1, n, tp=16, sequence_parallel=True)
    assert sixteen["query_key_value"] == 2 * n * 128 * (2 + 2)
    moe = layer("llama", h, a, k, 128, f, experts=(8, 2, 0))
    local, gathered = (profiles.saved(moe, h, "megatron", "sdpa", "bf16", 1, n, tp=4, sequence_parallel=True, etp=etp) for etp in (1, 4))
    assert local["experts"] == (2 * n * (4 * h + 6 * f)) // 4
    assert gathered["experts"] - local["experts"] == 3 * 2 * n * 4 * h // 4


# --- published figures


def test_zero_paper_counts_elements():
    """Rajbhandari et al. 2019, section 3.2: 12 x hidden x batch x seq x layers, GPT-2 1.5B at 1K and batch 32, "about 60 GB": elements of 2 bytes."""
    rule = 12 * 48 * activations.hidden_states(32, 1024, 1600, 2)
    assert round(rule / GB, 1) == 60.4
    gpt2_xl = layer("gpt2", 1600, 25, 25, 64, 6400)
    assert 48 * kept(gpt2_xl, 1600, "gpt2", "sdpa", "bf16", 1024, 32)[0] > 2 * rule  # the rule is of no block that we know


def test_ml_engineering_at_32k():
    """Bekman, Llama 3.1 8B at 32,768 tokens: hidden state 0.25 GiB, checkpoints of 32 layers 8 GiB, FP32 logits 15.7 GiB."""
    assert activations.hidden_states(1, 32768, 4096, 2) == 0.25 * GiB
    assert 32 * profiles.checkpointed(1, 32768, 4096, "bf16") == 8 * GiB
    assert round(loss.saved(1, 32768, 128256, "fp32", 2) / GiB, 1) == 15.7


LLAMA_3_8B = dict(h=4096, a=32, k=8, d=128, f=14336)


@pytest.mark.parametrize(
    "sizes, sdpa, eager",
    [
        (dict(h=2048, a=32, k=8, d=64, f=8192), 424.5, 3520.0),
        (LLAMA_3_8B, 784.5, 3904.0),
        (dict(h=8192, a=64, k=8, d=128, f=28672), 1553.0, 7808.0),
    ],
)
def test_not_34_for_llama(sizes, sdpa, eager):
    """MiB of one layer at s = 4096, b = 1, shapes of Llama 1B, 8B, 70B; Ultra-Scale Playbook's figures use 34 s b h, a third less."""
    got = [kept(layer("llama", **sizes), sizes["h"], "llama", attention, "bf16", 4096, 1)[0] for attention in ("sdpa", "eager")]
    assert [int(size / 2**20 * 10 + 0.5) / 10 for size in got] == [sdpa, eager]
    assert got[0] > 1.4 * 34 * 4096 * sizes["h"]


def test_full_checkpointing_is_not_34():
    """EleutherAI's cookbook counts 34 s b h per layer with full checkpointing; what is kept is the input, 17 times less."""
    assert profiles.checkpointed(2, 1024, 4096, "bf16") * 17 == 34 * 2 * 1024 * 4096


def test_swiglu_is_not_xtuners():
    """xtuner llm_calc: 4 h + 2 f elements for a dense MLP. Kept, with the norm's output that gate and up read: h + 4 f."""
    parts = profiles.saved(layer("llama", **LLAMA_3_8B), 4096, "llama", "sdpa", "bf16", 1, 1)
    assert parts["mlp"] == 2 * 4 * 14336
    assert parts["mlp"] != 2 * (4 * 4096 + 2 * 14336)


# --- properties


def test_flash_attention_has_no_square():
    """Twice the tokens, twice the bytes, but for the seeds; with eager attention more."""
    for kind in ("llama", "qwen3", "gpt2", "korth"):
        for shape in shapes(kind):
            block = layer(kind, *(shape[key] for key in "hakdf"))
            for precision in ("bf16", "autocast"):
                once, twice = (kept(block, shape["h"], kind, "sdpa", precision, s, shape["b"])[0] for s in (shape["s"], 2 * shape["s"]))
                assert twice - 24 == 2 * (once - 24)
                once, twice = (kept(block, shape["h"], kind, "eager", precision, s, shape["b"])[0] for s in (shape["s"], 2 * shape["s"]))
                assert twice > 2 * once


def test_more_recomputation_never_keeps_more():
    for kind in ("llama", "qwen3", "gpt2", "korth"):
        for shape in shapes(kind):
            for precision in profiles.PRECISIONS:
                parts = profiles.saved(layer(kind, *(shape[key] for key in "hakdf")), shape["h"], PROFILE[kind], "eager", precision, shape["b"], shape["s"])
                everything, selective = sum(parts.values()), sum(parts.values()) - parts["scores"]
                assert profiles.checkpointed(shape["b"], shape["s"], shape["h"], precision) < selective < everything


def test_more_of_anything_keeps_more():
    base = dict(h=512, a=8, k=4, d=64, f=1024, s=128, b=2)
    for kind in ("llama", "qwen3", "gpt2", "korth"):
        for attention in profiles.ATTENTION:
            for precision in profiles.PRECISIONS:

                def total(**changed):
                    x = {**base, **changed}
                    if kind in ("gpt2", "korth"):
                        x["k"] = x["a"]
                    return kept(layer(kind, *(x[key] for key in "hakdf")), x["h"], kind, attention, precision, x["s"], x["b"])[0]

                least = total()
                assert all(total(**{name: 2 * base[name]}) > least for name in ("h", "a", "d", "f", "s", "b"))
                assert total(k=8) >= least


def test_tensor_parallelism_keeps_less():
    for attention in profiles.ATTENTION:
        for sequence_parallel in (False, True):
            sizes = [sum(megatron(4096, 32, 1024, 1, attention=attention, tp=t, sequence_parallel=sequence_parallel).values()) for t in (1, 2, 4, 8)]
            assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 4
    parts = megatron(4096, 32, 1024, 1, tp=8, sequence_parallel=True)
    assert 8 * sum(parts.values()) == sum(megatron(4096, 32, 1024, 1).values())


# --- what has no model is refused


@pytest.mark.parametrize("model_type", ["gemma", "phi3", "olmo2", "deepseek_v3", "gpt_bigcode", "hunyuan_v1_dense", "seed_oss", "arcee", "llama5"])
def test_other_blocks_have_no_profile(model_type):
    with pytest.raises(ArgumentError, match="model_type"):
        profiles.of(model_type)


def test_a_block_of_its_code():
    assert [profiles.of(m) for m in ("llama", "mistral", "qwen2", "mixtral", "qwen3", "qwen3_moe", "gpt2")] == ["llama"] * 4 + ["qwen3"] * 2 + ["gpt2"]


LLAMA = layer("llama", 512, 8, 2, 64, 1024)
LATENT = Layer(Mixer("latent", num_attention_heads=8), Mlp("gated", intermediate_size=1024), [])
SHARED = layer("llama", 512, 8, 2, 64, 1024, experts=(8, 2, 256))
ROUTED = layer("llama", 512, 8, 2, 64, 1024, experts=(8, 2, 0))


@pytest.mark.parametrize(
    "argument, block, changed",
    [
        ("profile", LLAMA, {"profile": "vllm"}),
        ("attention", LLAMA, {"attention": "flex"}),
        ("precision", LLAMA, {"precision": "fp8"}),
        ("experts", ROUTED, {"experts": "batched_mm"}),
        ("mixer", LATENT, {}),
        ("mlp", LLAMA, {"profile": "gpt2"}),
        ("mlp", layer("gpt2", 512, 8, 8, 64, 2048), {}),
        ("dropout", LLAMA, {"dropout": 0.1}),
        ("dropout", LLAMA, {"dropout": 1}),
        ("tp", LLAMA, {"tp": 2}),
        ("tp", LLAMA, {"profile": "megatron", "tp": 3}),
        ("tp", LLAMA, {"profile": "megatron", "tp": 8, "sequence_parallel": True, "S": 12}),
        ("sequence_parallel", ROUTED, {"profile": "megatron", "tp": 2}),
        ("etp", ROUTED, {"profile": "megatron", "tp": 4, "sequence_parallel": True, "etp": 2}),
        ("shared_intermediate_size", SHARED, {}),
        ("precision", ROUTED, {"precision": "autocast"}),
        ("S", LLAMA, {"S": 0}),
        ("B", LLAMA, {"B": 1.5}),
    ],
)
def test_refusals(argument, block, changed):
    arguments = {"profile": "llama", "attention": "sdpa", "precision": "bf16", "B": 1, "S": 64, **changed}
    with pytest.raises(ArgumentError) as refused:
        profiles.saved(block, 512, **arguments)
    assert refused.value.name == argument
