"""Weights by format: the published bytes per element, checkpoints to the byte, and what a quantization_config says."""

import pytest

from byteledger import catalog, hf_config, parameters, quantities, quantization_config, units, weight_formats
from byteledger.arguments import ArgumentError
from byteledger.hf_config import Refusal
from byteledger.parameters import Tensor
from byteledger.weight_formats import Scale

DATA = catalog.load()
FORMATS = DATA.weight_formats

LLAMA_2_13B = dict(
    model_type="llama", num_hidden_layers=40, hidden_size=5120, intermediate_size=13824, num_attention_heads=40, num_key_value_heads=40,
    vocab_size=32000, tie_word_embeddings=False,
)  # fmt: skip
LLAMA_3_8B = dict(
    model_type="llama", num_hidden_layers=32, hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8,
    vocab_size=128256, tie_word_embeddings=False,
)  # fmt: skip
LLAMA_3_70B = {**LLAMA_3_8B, "num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64}
GPT_OSS_20B = dict(
    model_type="gpt_oss", num_hidden_layers=24, hidden_size=2880, intermediate_size=2880, num_attention_heads=64, num_key_value_heads=8,
    head_dim=64, vocab_size=201088, num_local_experts=32, num_experts_per_tok=4, attention_bias=True, tie_word_embeddings=False, sliding_window=128,
)  # fmt: skip
GPT_OSS_120B = {**GPT_OSS_20B, "num_hidden_layers": 36, "num_local_experts": 128}
DEEPSEEK_V3 = dict(
    model_type="deepseek_v3", num_hidden_layers=61, hidden_size=7168, intermediate_size=18432, moe_intermediate_size=2048, num_attention_heads=128,
    num_key_value_heads=128, n_shared_experts=1, n_routed_experts=256, num_experts_per_tok=8, first_k_dense_replace=3, moe_layer_freq=1, q_lora_rank=1536,
    kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, vocab_size=129280, tie_word_embeddings=False, num_nextn_predict_layers=1,
)  # fmt: skip
MIXTRAL = dict(
    model_type="mixtral", num_hidden_layers=32, hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8,
    vocab_size=32000, num_local_experts=8, num_experts_per_tok=2, tie_word_embeddings=False,
)  # fmt: skip


def architecture(config):
    return hf_config.from_dict(config).architecture


def weights(config, format, extra=()):
    """Bytes of a model in a format of data/, with further scales where a tool writes some."""
    record = FORMATS[format]
    return weight_formats.weights(architecture(config), record.bits, [*record.scales, *extra], record.keeps, record.kept_bytes)


# --- bytes per element


@pytest.mark.parametrize(
    "format, published",
    [
        ("mxfp8", 1.03125),  # OCP MX 1.0, as ml-engineering prints it: block 32, one E8M0 scale
        ("mxfp6", 0.78125),
        ("mxfp4", 0.53125),
        ("nvfp4", 0.5625),  # NVIDIA cuTile, tutorial 11: 16 values take 9 bytes
        ("nf4", 0.5625),  # QLoRA: 0.5 bit of constants per parameter with block 64
        ("nf4-double", 0.515869140625),  # QLoRA: 0.127 bit
        ("fp8-tile", 1 + 4 / 16384),
    ],
)
def test_published_bytes_per_element(format, published):
    assert quantities.evaluate(DATA, "weight_formats.bytes_per_element", {"weight_format": format}).value == published


# llama.cpp, ggml-common.h: bytes of a block, asserted there by sizeof, and the elements in it.
@pytest.mark.parametrize(
    "format, block, elements",
    [("q8_0", 34, 32), ("q6_k", 210, 256), ("q5_k", 176, 256), ("q4_k", 144, 256), ("q4_0", 18, 32), ("q3_k", 110, 256), ("q2_k", 84, 256)],
)
def test_blocks_of_gguf(format, block, elements):
    record = FORMATS[format]
    assert weight_formats.bytes_per_element(record.bits, record.scales) == block / elements
    assert weight_formats.tensor_bytes(Tensor("x.weight", (1, elements), "mlp"), record.bits, record.scales) == block


def test_double_quantization_saves_what_qlora_says():
    """Dettmers et al. 2023, section 3: from 0.5 to 0.127 bits per parameter, 0.373 less, about 3 GB for a 65B model."""
    once, twice = (8 * weight_formats.bytes_per_element(FORMATS[id].bits, FORMATS[id].scales) for id in ("nf4", "nf4-double"))
    assert (once - 4, round(twice - 4, 3), round(once - twice, 3)) == (0.5, 0.127, 0.373)
    assert units.gb(65e9 * (once - twice) / 8) == pytest.approx(3, abs=0.05)


def test_bitsandbytes_formats_differ_in_code_points_only():
    assert FORMATS["fp4"].scales == FORMATS["nf4"].scales and FORMATS["fp4-double"].scales == FORMATS["nf4-double"].scales


def test_marlin_prints_the_share_of_its_scales():
    """Marlin, README: 0.125 bit of storage for the scales of groups of 128."""
    record = FORMATS["int4-symmetric-g128"]
    assert 8 * weight_formats.bytes_per_element(record.bits, record.scales) == 4.125


# --- checkpoints, to the byte


@pytest.mark.parametrize(
    "config, total_size, parameters_published",
    [
        (GPT_OSS_20B, 13_761_264_768, 20_914_757_184),  # openai/gpt-oss-20b, model.safetensors.index.json: total_size
        (GPT_OSS_120B, 65_248_815_744, 116_829_156_672),  # openai/gpt-oss-120b: bytes of all tensors in its safetensors headers
    ],
)
def test_gpt_oss(config, total_size, parameters_published):
    assert parameters.total(architecture(config)) == parameters_published
    assert weights(config, "mxfp4-experts") == total_size


def test_gpt_oss_as_its_model_card_says():
    """OpenAI 2025 (arXiv 2508.10925), table 1: checkpoints of 12.8 and 60.8 GiB."""
    assert round(units.gib(weights(GPT_OSS_20B, "mxfp4-experts")), 1) == 12.8
    assert round(units.gib(weights(GPT_OSS_120B, "mxfp4-experts")), 1) == 60.8


def test_deepseek_v3_by_dtype():
    """deepseek-ai/DeepSeek-V3, the Hub's safetensors metadata: elements of F8_E4M3, BF16 and F32.

    The file holds the main model and one MTP module, whose layer 61 is a layer like those with experts, with eh_proj
    [D, 2 D], three norms of D, and its own copy of embedding and head (README_WEIGHTS.md: shared, yet written twice).
    F32 are the scales of the tiles and, for 58 + 1 routers, the correction bias of 256 experts.
    """
    model, record = architecture(DEEPSEEK_V3), FORMATS["fp8-tile"]
    mtp = model.layers[-1][0].tensors
    D, V, E = 7168, 129280, 256
    inside = [tensor for tensor in mtp if weight_formats.is_converted(tensor, record.keeps)]
    stays = parameters.size(mtp) - parameters.size(inside)

    assert weight_formats.converted(model, record.keeps) + parameters.size(inside) == 680_571_043_840
    assert weight_formats.kept(model, record.keeps) + stays + 2 * D * D + 3 * D + 2 * V * D == 3_918_786_560

    def scales(tensor):
        return (weight_formats.tensor_bytes(tensor, 8, record.scales) - tensor.size) // 4

    tiles = sum(times * scales(t) for layer, times in model.layers for t in layer.tensors if weight_formats.is_converted(t, record.keeps))
    assert tiles + sum(map(scales, inside)) + 59 * E == 41_555_600


def test_checkpoints_of_llama_8b():
    """Bytes of all tensors of published checkpoints of Llama 3.1 8B, summed from the headers of their safetensors."""
    assert weights(LLAMA_3_8B, "bf16") == 16_060_522_496  # unsloth/Meta-Llama-3.1-8B-Instruct
    assert weights(LLAMA_3_8B, "fp8-row") == 9_083_953_152  # RedHatAI, FP8-dynamic
    # RedHatAI, quantized.w4a16, a GPTQ file: besides, g_idx (4 B an input channel) and an FP16 bias of zeros for every layer.
    assert weights(LLAMA_3_8B, "int4-g128", [Scale(32, "column"), Scale(16, "row")]) == 5_735_587_840


def test_checkpoints_of_llama_70b():
    """The same of Llama 3.3 70B."""
    # nvidia/Llama-3.3-70B-Instruct-FP4: besides, an FP32 scale of the activations for every matrix.
    assert weights(LLAMA_3_70B, "nvfp4", [Scale(32, "tensor")]) == 42_709_045_632
    # RedHatAI, quantized.w4a16, compressed-tensors: besides, weight_g_idx and weight_shape, two INT64 a matrix.
    assert weights(LLAMA_3_70B, "int4-symmetric-g128", [Scale(32, "column"), Scale(64, "tensor"), Scale(64, "tensor")]) == 39_525_311_232


def test_q8_0_of_llama_8b():
    """llama.cpp prints 7.95 GiB and 8.50 bits per weight for Llama 3 8B in Q8_0."""
    total = weights(LLAMA_3_8B, "q8_0")
    assert (round(units.gib(total), 2), round(8 * total / 8_030_261_248, 2)) == (7.95, 8.5)


@pytest.mark.parametrize("config, measured, tolerance", [(LLAMA_2_13B, 0.59, 0.03), ({**LLAMA_2_13B, "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32, "num_key_value_heads": 32}, 0.30, 0.05)])
def test_litgpt_measured_double_quantization(config, measured, tolerance):
    """LitGPT, resource tables, LoRA on one A100: what nf4-dq saves over nf4, Llama 2 13B and 7B."""
    assert units.gb(weights(config, "nf4") - weights(config, "nf4-double")) == pytest.approx(measured, rel=tolerance)


def test_int4_of_70b_is_not_45_gb():
    """JAX scaling book, snapshot of 2025-02: 45 GB for Llama 70B in int4. The elements alone are 35 GB, and scales and 16-bit parts do not add 10."""
    assert units.gb(70e9 * weight_formats.bytes_per_element(4, [])) == 35
    assert 35 < units.gb(weights(LLAMA_3_70B, "int4-symmetric-g128")) < 40


def test_hugging_face_prints_nominal_int4():
    """Hugging Face, blog on Llama 3.1: 8B in INT4 4 GB, 70B 35 GB: parameters x 0.5, which no checkpoint reaches."""
    for config, printed in ((LLAMA_3_8B, 4), (LLAMA_3_70B, 35)):
        n = parameters.total(architecture(config))
        assert round(units.gb(n * 0.5)) == printed
        assert all(units.gb(weights(config, id)) > printed * 1.09 for id in FORMATS if FORMATS[id].bits == 4)


# --- what holds for any tensor


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (127, 129), (128, 128), (129, 257), (4, 64, 96), (7, 1)])
@pytest.mark.parametrize("format", list(FORMATS))
def test_tensor_bytes_are_whole_and_never_less_than_the_share(format, shape):
    record, tensor = FORMATS[format], Tensor("x.weight", shape, "mlp")
    size = weight_formats.tensor_bytes(tensor, record.bits, record.scales)
    assert isinstance(size, int)
    assert size >= tensor.size * weight_formats.bytes_per_element(record.bits, record.scales)
    larger = Tensor("x.weight", (*shape[:-1], shape[-1] + 1), "mlp")
    assert weight_formats.tensor_bytes(larger, record.bits, record.scales) >= size


def test_ends_of_rows_tiles_and_blocks():
    tensor = Tensor("x.weight", (130, 100), "mlp")
    counts = {"row": 130, "column": 100, "tensor": 1, "tile": 2, 32: 130 * 4, 64: 130 * 2}
    for per, n in counts.items():
        assert weight_formats.tensor_bytes(tensor, 8, [Scale(8, per)]) == 13000 + n, per
    assert weight_formats.tensor_bytes(tensor, 8, [Scale(8, 64, flat=True)]) == 13000 + 204  # 13,000 / 64 = 203.1
    stacked = Tensor("experts.down_proj", (3, 130, 100), "experts")
    for per, n in counts.items():
        assert weight_formats.tensor_bytes(stacked, 8, [Scale(8, per)]) == 3 * (13000 + n), per


@pytest.mark.parametrize("config", [LLAMA_3_8B, GPT_OSS_20B, DEEPSEEK_V3], ids=lambda config: config["model_type"])
def test_kept_and_converted_are_the_model(config):
    model = architecture(config)
    for record in FORMATS.values():
        assert weight_formats.kept(model, record.keeps) + weight_formats.converted(model, record.keeps) == parameters.total(model)


@pytest.mark.parametrize("id, size", [("bf16", 2), ("fp16", 2), ("fp32", 4)])
def test_without_quantization_it_is_the_count(id, size):
    for config in (LLAMA_3_8B, GPT_OSS_20B, DEEPSEEK_V3):
        assert weights(config, id) == size * parameters.total(architecture(config))


def test_more_kept_is_larger():
    model = architecture(GPT_OSS_20B)
    previous = 0
    for count in range(len(parameters.PARTS) + 1):
        total = weight_formats.weights(model, 4, [Scale(8, 32)], parameters.PARTS[:count])
        assert total >= previous
        previous = total
    assert previous == 2 * parameters.total(model)


def test_what_is_no_linear_layer_stays():
    """Convolutions, A_log and D of a state-space layer are as they were, whatever is kept."""
    tensors = parameters.mamba(D=64, d_inner=128, N=16, R=4, K=4)
    converted = [tensor.name for tensor in tensors if weight_formats.is_converted(tensor, ())]
    assert converted == ["in_proj.weight", "x_proj.weight", "dt_proj.weight", "out_proj.weight"]
    biases = [tensor for tensor in parameters.experts(4, 64, 32, bias=True) if tensor.name.endswith("bias")]
    assert biases and not any(weight_formats.is_converted(tensor, ()) for tensor in biases)


def test_senseless_arguments():
    tensor, model = Tensor("x.weight", (8, 8), "mlp"), architecture(LLAMA_3_8B)
    with pytest.raises(ArgumentError, match="per"):
        weight_formats.tensor_bytes(tensor, 4, [Scale(8, "head")])
    with pytest.raises(ArgumentError, match="per"):
        weight_formats.bytes_per_element(4, [Scale(8, 0)])
    with pytest.raises(ArgumentError, match="bits"):
        weight_formats.tensor_bytes(tensor, 0, [])
    with pytest.raises(ArgumentError, match="bits"):
        weight_formats.bytes_per_element(True, [])
    with pytest.raises(ArgumentError, match="keeps"):
        weight_formats.weights(model, 4, [], ["lm_head"])
    with pytest.raises(ArgumentError, match="b_kept"):
        weight_formats.weights(model, 4, [], [], -1)


# --- what a configuration says


def stored(quantization, config=LLAMA_3_8B, dtype="bfloat16"):
    said = {"quantization_config": quantization} if quantization is not None else {}
    return quantization_config.from_config(hf_config.from_dict({**config, **({"dtype": dtype} if dtype else {}), **said}, "config.json"))


CT = {"quant_method": "compressed-tensors", "ignore": ["lm_head"]}


def group(**weights):
    return {**CT, "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}


READ = [
    ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "nf4"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}, "nf4-double"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "fp4"),  # the default of bnb_4bit_quant_type
    ({"load_in_4bit": True, "bnb_4bit_use_double_quant": True, "bnb_4bit_quant_type": "fp4"}, "fp4-double"),
    ({"load_in_8bit": True}, "int8-bitsandbytes"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True}, "int4-g128"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "int4-g32"),
    ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "int8-g128"),
    ({"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True, "version": "gemm"}, "int4-g64"),
    ({"quant_method": "awq", "w_bit": 4, "q_group_size": 128}, "int4-g128"),
    ({"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}, "fp8-tile"),
    ({"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["lm_head"]}, "fp8-tensor"),
    (group(num_bits=4, type="int", strategy="group", group_size=128, symmetric=True), "int4-symmetric-g128"),
    (group(num_bits=4, type="int", strategy="group", group_size=32, symmetric=False), "int4-g32"),
    (group(num_bits=8, type="float", strategy="channel", symmetric=True), "fp8-row"),
    (group(num_bits=8, type="float", strategy="tensor", symmetric=True), "fp8-tensor"),
    (group(num_bits=8, type="int", strategy="channel", symmetric=True), "int8-row"),
    (group(num_bits=4, type="float", strategy="tensor_group", group_size=16, symmetric=True), "nvfp4"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}, "nvfp4"),
    ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "ignore": ["lm_head"]}, "fp8-tensor"),
]


@pytest.mark.parametrize("quantization, format", READ)
def test_formats_that_files_name(quantization, format):
    found = stored(quantization)
    assert found.format == format
    assert set(found.keeps) == set(FORMATS[format].keeps) and found.kept_bytes == FORMATS[format].kept_bytes


def test_gpt_oss_says_mxfp4():
    """openai/gpt-oss-20b, config.json, which names no dtype."""
    found = stored(
        {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]},
        GPT_OSS_20B, dtype=None,
    )  # fmt: skip
    record = FORMATS[found.format]
    assert weight_formats.weights(architecture(GPT_OSS_20B), record.bits, record.scales, found.keeps, found.kept_bytes) == 13_761_264_768
    assert set(found.keeps) == set(record.keeps) and [a.id for a in found.assumptions] == ["rest_is_bf16"]


@pytest.mark.parametrize("dtype, format, size", [("bfloat16", "bf16", 2), ("float16", "fp16", 2), ("float32", "fp32", 4)])
def test_nothing_said_is_the_dtype_of_the_file(dtype, format, size):
    found = stored(None, dtype=dtype)
    assert (found.format, found.kept_bytes, found.keeps, found.assumptions) == (format, size, (), [])


def test_nothing_said_at_all_is_bf16_and_said():
    found = stored(None, dtype=None)
    assert found.format == "bf16" and [a.id for a in found.assumptions] == ["no_dtype"]
    assert "BF16" in found.assumptions[0].said("zh") and "BF16" in found.assumptions[0].said("en")


def test_the_head_is_converted_where_the_list_leaves_it_out():
    assert "output_head" not in stored({**group(num_bits=8, type="float", strategy="channel"), "ignore": []}).keeps
    assert "output_head" not in stored({"quant_method": "gptq", "bits": 4, "group_size": 128, "lm_head": True}).keeps
    assert "output_head" not in stored({"load_in_4bit": True, "llm_int8_skip_modules": ["multi_modal_projector"]}).keeps
    assert "output_head" in stored({"load_in_4bit": True, "llm_int8_skip_modules": ["lm_head"]}).keeps


def test_names_that_mean_whole_parts():
    """moonshotai/Kimi-K2-Thinking, config.json: only the routed experts are INT4, in groups of 32."""
    ignore = ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", r"re:.*mlp\.(gate|up|gate_up|down)_proj.*"]
    found = stored({**group(num_bits=4, type="int", strategy="group", group_size=32, symmetric=True), "ignore": ignore}, DEEPSEEK_V3)
    assert found.format == "int4-symmetric-g32"
    assert set(found.keeps) == {"embedding", "attention", "mlp", "shared_experts", "router", "output_head"}
    every = ["model.layers.%d.block_sparse_moe.gate" % i for i in range(32)] + ["lm_head"]
    found = stored({**group(num_bits=8, type="float", strategy="tensor"), "ignore": every}, MIXTRAL)
    assert found.assumptions == [] and "router" in found.keeps and "experts" not in found.keeps
    assert "attention" in stored({"quant_method": "awq", "bits": 4, "group_size": 128, "modules_to_not_convert": ["self_attn"]}).keeps


def test_names_that_mean_a_piece_are_told():
    found = stored({"quant_method": "awq", "bits": 4, "group_size": 128, "modules_to_not_convert": ["model.layers.0.self_attn", "lm_head", "model.layers.99.mlp"]})
    assert "attention" not in found.keeps
    assert {a.id: a.values for a in found.assumptions} == {
        "partly_kept": {"key": "quantization_config.modules_to_not_convert", "part": "attention", "k": 41_943_040},
        "names_unread": {"key": "quantization_config.modules_to_not_convert", "k": 1, "value": "model.layers.99.mlp"},
    }


def test_norms_and_towers_in_a_list_are_nothing_to_tell():
    names = ["lm_head", "model.layers.0.input_layernorm", "model.embed_tokens", "visual.blocks.0.attn.qkv"]
    assert [a.id for a in stored({**group(num_bits=8, type="float", strategy="channel"), "ignore": names}).assumptions] == []


@pytest.mark.parametrize(
    "quantization, key",
    [
        ({"quant_method": "aqlm"}, "quantization_config.quant_method"),
        ({"bits": 4}, "quantization_config.quant_method"),
        ({"quant_method": ["gptq"]}, "quantization_config.quant_method"),
        ("int4", "quantization_config"),
        ({"quant_method": "mxfp4"}, "quantization_config.quant_method"),  # a model without experts
        ({"quant_method": "bitsandbytes"}, "quantization_config.load_in_4bit"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": True}, "quantization_config.load_in_4bit"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf5"}, "quantization_config.bnb_4bit_quant_type"),
        ({"quant_method": "gptq", "bits": 3}, "quantization_config.bits"),
        ({"quant_method": "gptq", "bits": 4, "lm_head": 1}, "quantization_config.lm_head"),
        ({"quant_method": "gptq", "bits": 4.5}, "quantization_config.bits"),
        ({"quant_method": "modelopt"}, "quantization_config.quant_algo"),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, "quantization_config.group_size"),
        ({"quant_method": "awq", "bits": 4, "modules_to_not_convert": "lm_head"}, "quantization_config.modules_to_not_convert"),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, "quantization_config.weight_block_size"),
        ({**CT, "config_groups": {}}, "quantization_config.config_groups"),
        (group(num_bits=3, type="int", strategy="group", group_size=128), "quantization_config.config_groups.group_0.weights"),
        (group(num_bits=[4], type="int", strategy="group", group_size=128), "quantization_config.config_groups.group_0.weights"),
        ({**group(num_bits=8, type="float"), "sparsity_config": {"format": "sparse-24-bitmask"}}, "quantization_config.sparsity_config.format"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "quantization_config.quant_algo"),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "quantized_layers": {"x": {}}}, "quantization_config.quantized_layers"),
    ],
)
def test_refusals_name_the_key(quantization, key):
    with pytest.raises(Refusal) as refused:
        stored(quantization)
    assert refused.value.key == key and refused.value.file == "config.json"
    assert refused.value.said("zh") and str(refused.value).startswith("config.json: " + key)


def test_a_dtype_that_is_no_format_is_refused():
    with pytest.raises(Refusal, match="dtype"):
        stored(None, dtype="float64")


def test_groups_with_formats_of_their_own_are_refused():
    two = {**CT, "config_groups": {"a": {"weights": {"num_bits": 8, "type": "float"}}, "b": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}}
    with pytest.raises(Refusal, match="config_groups"):
        stored(two)


def test_weights_that_are_not_quantized_are_read_as_the_dtype():
    """compressed-tensors may quantize the KV cache alone."""
    assert stored({**CT, "config_groups": {"g": {"targets": ["Linear"], "weights": None}}}).format == "bf16"


def test_expressions_of_a_file_are_not_run_as_they_are():
    """One that would take for ever is told as not read."""
    found = stored({**group(num_bits=8, type="float", strategy="channel"), "ignore": ["lm_head", "re:(a+)+$", "re:" + ".*a" * 30, "re:(("]})
    assert [(a.id, a.values["k"]) for a in found.assumptions] == [("names_unread", 3)]


def test_every_assumption_is_said_in_both_languages():
    values = dict(method="gptq", key="k", part="attention", k=1, value="v")
    for id in quantization_config.ASSUMPTIONS:
        zh, en = (quantization_config.Assumption(id, **values).said(language) for language in ("zh", "en"))
        assert zh != en and "{" not in zh + en


def test_every_format_that_is_read_has_a_record():
    read = {format for _, format in READ} | set(quantization_config._GROUPS.values()) | set(quantization_config.DTYPES.values()) | {"mxfp4-experts"}
    assert read <= set(FORMATS)


def test_records_and_formulas_know_the_same_granularities():
    for record in FORMATS.values():
        for scale in record.scales:
            assert isinstance(scale.per, int) or scale.per in weight_formats.NAMED
