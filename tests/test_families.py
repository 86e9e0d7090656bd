"""Every rule of byteledger/families against counts that others made: transformers, publishers, papers."""

from pathlib import Path

import pytest
import yaml

from byteledger import hf_config, parameters
from byteledger.families import FAMILIES
from byteledger.hf_config import Refusal

HERE = Path(__file__).resolve().parent
COUNTED = yaml.safe_load((HERE / "param_counts.yaml").read_text(encoding="utf-8"))
REFERENCE = yaml.safe_load((HERE / "reference_models.yaml").read_text(encoding="utf-8"))


def architecture(config):
    return hf_config.from_dict(config, "config.json").architecture


@pytest.mark.parametrize("name", COUNTED)
def test_counts_of_transformers(name):
    config, counts = COUNTED[name]["config"], dict(COUNTED[name]["counts"])
    read = hf_config.from_dict(config, name)
    model = read.architecture
    parts = parameters.by_part(model)
    if "whole" in counts:
        assert any(one.id == "text_part" for one in read.assumptions)
        assert 0.9 * counts["whole"] < parameters.total(model) < counts["whole"]
        return
    assert parameters.total(model) == counts["total"]
    assert parameters.active(model) == counts.get("active", counts["total"])
    assert parts["embedding"] == counts["embedding"]
    assert parts.get("output_head", 0) == counts["head"]
    assert parts.get("position_embedding", 0) == counts["positions"]
    assert parameters.non_embedding(model) == counts["non_embedding"]
    assert parts.get("experts", 0) == counts.get("experts", 0)
    noted = [one.values["value"] for one in read.assumptions if one.id == "buffers"]
    assert noted == ([counts["buffers"]] if "buffers" in counts else [])


# reference_models.yaml speaks of layers and heads; what each is called in config.json.
NAMES = {
    "layers": "num_hidden_layers", "hidden": "hidden_size", "heads": "num_attention_heads", "kv_heads": "num_key_value_heads", "head_dim": "head_dim",
    "ffn": "intermediate_size", "vocab": "vocab_size", "tied_embeddings": "tie_word_embeddings", "experts_per_token": "num_experts_per_tok",
    "moe_ffn": "moe_intermediate_size", "shared_experts": "n_shared_experts", "first_dense_layers": "first_k_dense_replace",
    "learned_positions": "max_position_embeddings", "experts": "num_experts",
}  # fmt: skip
SAID_BY_THE_FAMILY = ("gated_mlp", "qkv_bias", "qk_norm", "bias")


def in_published_names(config):
    renamed = {NAMES.get(key, key): value for key, value in config.items() if key not in SAID_BY_THE_FAMILY}
    if config["model_type"] == "opt":  # its table has two more rows than positions
        renamed["max_position_embeddings"] -= 2
        renamed["ffn_dim"] = renamed.pop("intermediate_size")
    if config["model_type"] == "gpt2":
        renamed["n_inner"] = renamed.pop("intermediate_size")
    if config["model_type"] in ("gpt_neox", "phi", "bert"):
        renamed.setdefault("max_position_embeddings", 512)
    if config["model_type"] == "falcon":
        renamed["multi_query"] = config["kv_heads"] == 1
    if config["model_type"] == "mixtral":
        renamed["num_local_experts"] = renamed.pop("num_experts")
    return renamed


@pytest.mark.parametrize("name", REFERENCE)
def test_counts_of_published_architectures(name):
    model, counts = architecture(in_published_names(REFERENCE[name]["config"])), REFERENCE[name]["counts"]
    parts = parameters.by_part(model)
    assert parameters.total(model) == counts["total"]
    assert parts["embedding"] == counts["embedding"]
    assert parameters.total(model) - parts["embedding"] * (1 if model.tied else 2) == counts["without_embeddings"]  # but for a head's bias
    if "active" in counts:
        assert parameters.active(model) == counts["active"]


@pytest.mark.parametrize(
    "name, published, source",
    [
        # Families without a class in transformers: counts that people printed after loading the checkpoint.
        ("THUDM__chatglm3-6b", 6_243_584_000, "num_parameters() of the loaded model, printed in several public notebooks"),
        ("THUDM__glm-4-9b-chat", 9_399_951_360, "chatllm.cpp: 'You are served by GLM-4, with 9399951360 (9.4B) parameters'"),
        ("internlm__internlm2-7b", 7_737_708_544, "chatllm.cpp: 'You are served by InternLM, with 7737708544 (7.7B) parameters'"),
        ("openbmb__MiniCPM4-8B", 8_185_253_888, "total_parameters in the metadata of its model.safetensors.index.json"),
        ("Qwen__Qwen-7B", 7_721_324_544, "the same tables that print 7000559616 for Baichuan-7B and 6243584000 for ChatGLM2-6B"),
        ("google-bert__bert-base-uncased", 109_482_240, "transformers 5.24.0, AutoModel"),
        ("microsoft__phi-2", 2_779_683_840, "transformers 5.24.0; the file is of before phi's own class, phi-msft"),
        ("tiiuae__falcon-40b", 41_303_293_952, "transformers 5.24.0, head tied"),
        ("tiiuae__falcon-mamba-7b", 7_272_665_088, "transformers 5.24.0; intermediate_size goes before expand"),
        ("deepseek-ai__DeepSeek-V3", 671_026_404_352, "transformers 5.24.0, without MTP"),
    ],
)
def test_published_files(name, published, source):
    assert parameters.total(hf_config.read(HERE / "configs" / (name + ".json")).architecture) == published


def test_families_without_a_class_in_transformers():
    """n_parameters in the README of baichuan-inc/Baichuan-7B; num_params and num_params_active that benchmarks of DeepSeekMoE state."""
    baichuan = dict(
        model_type="baichuan", vocab_size=64000, hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, intermediate_size=11008
    )
    assert parameters.total(architecture(baichuan)) == 7_000_559_616
    moe = dict(
        model_type="deepseek", vocab_size=102400, hidden_size=2048, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=16,
        intermediate_size=10944, moe_intermediate_size=1408, n_routed_experts=64, n_shared_experts=2, num_experts_per_tok=6,
        first_k_dense_replace=1, moe_layer_freq=1,
    )  # fmt: skip
    assert (parameters.total(architecture(moe)), parameters.active(architecture(moe))) == (16_375_728_128, 2_828_650_496)
    longcat = dict(
        model_type="longcat_flash", vocab_size=131072, hidden_size=6144, num_layers=28, num_attention_heads=64, ffn_hidden_size=12288,
        expert_ffn_hidden_size=2048, n_routed_experts=512, zero_expert_num=256, moe_topk=12, q_lora_rank=1536, kv_lora_rank=512,
        qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
    )  # fmt: skip
    # "a 560B parameter Mixture-of-Experts model that activates 18.6B-31.3B parameters" (transformers' documentation), without
    # the input embedding of 0.8B.
    model = architecture(longcat)
    assert parameters.total(model) // 10**9 == 560
    assert round((parameters.active(model) - 131072 * 6144) / 10**9) == 31


def test_deepseek_v4_flash_as_it_is_described():
    """"284B total parameters and 13B activated parameters" (openrouter.ai), the latter without the input embedding."""
    model = hf_config.read(HERE / "configs" / "deepseek-ai__DeepSeek-V4-Flash.json").architecture
    assert parameters.total(model) // 10**9 == 284
    assert (parameters.active(model) - parameters.by_part(model)["embedding"]) // 10**9 == 13


@pytest.mark.parametrize(
    "name, wrong, why",
    [
        ("llama-3-8b", 7_504_924_672, "cli99/llm-analysis never counts the head"),
        ("llama-2-7b", 6_607_343_616, "the same"),
        ("mistral-7b-v0.1", 7_510_000_000, "furiousteabag/vram-calculator, typed by hand"),
        ("gpt2-xl", 1_608_000_000, "the same"),
        ("llama-2-70b", 70_000_000_000, "the same"),
        ("deepseek-v3", 684_531_386_000, "the Hub's total of stored numbers, with MTP and the scales of FP8 blocks"),
        ("qwen3-8b", 7_628_000_000, "xtuner llm_calc divides by 2**30, prints B, and leaves out the norms of query and key"),
    ],
)
def test_wrong_public_counts_are_not_reproduced(name, wrong, why):
    exact = parameters.total(architecture(in_published_names(REFERENCE[name]["config"])))
    assert abs(exact - wrong) > 10**7, why


@pytest.mark.parametrize("name", COUNTED)
def test_parts_sum_to_the_total_and_grow_with_every_size(name):
    config = COUNTED[name]["config"]
    model = architecture(config)
    total = parameters.total(model)
    assert sum(parameters.by_part(model).values()) == total >= parameters.active(model)
    names = {"vocab_size": ("vocab_size",), "num_hidden_layers": ("num_hidden_layers", "n_layer"), "hidden_size": ("hidden_size", "n_embd")}
    for canonical, spellings in names.items():
        key = next((key for key in spellings if key in config), None)
        if key is None or (canonical != "vocab_size" and any(isinstance(value, list) for value in config.values())):
            continue
        # A multiple of the heads, so that it divides; one layer more would contradict a list of layers.
        larger = {**config, key: config[key] + {"vocab_size": 64, "num_hidden_layers": 1, "hidden_size": config[key]}[canonical]}
        if canonical == "hidden_size" and "word_embed_proj_dim" in config:
            larger["word_embed_proj_dim"] = larger[key]
        assert parameters.total(architecture(larger)) > total, key


def test_mtp_and_buffers_are_noted():
    """DeepSeek-V3: 58 MoE layers of 256 experts; Kimi K2: 60 of 384. Their checkpoints hold a correction bias for each."""
    for name, elements in (("deepseek-ai__DeepSeek-V3", 14_848), ("XiaomiMiMo__MiMo-V2-Flash", 47 * 256)):
        read = hf_config.read(HERE / "configs" / (name + ".json"))
        assert [one.values["value"] for one in read.assumptions if one.id == "buffers"] == [elements]
    deepseek = hf_config.load(HERE / "configs/deepseek-ai__DeepSeek-V3.json")
    kimi = hf_config.from_dict({**deepseek, "model_type": "kimi_k2", "n_routed_experts": 384, "first_k_dense_replace": 1})
    assert [one.values["value"] for one in kimi.assumptions if one.id == "buffers"] == [60 * 384]
    noted = [one for one in kimi.assumptions if one.id == "mtp"]
    assert noted and noted[0].values["key"] == "num_nextn_predict_layers"


BLOCK = {"attention": {"n_heads_in_group": 8, "no_op": False}, "ffn": {"ffn_mult": 5.25, "no_op": False}}
NO_ATTENTION = {"attention": {"n_heads_in_group": None, "no_op": True}, "ffn": {"ffn_mult": 1.3125, "no_op": False}}


def test_layers_of_their_own_sizes():
    """Llama-Nemotron: a block with ffn_mult 5.25 of D = 8192 is 28672 wide, as in Llama 3 70B; one without attention keeps no cache."""
    config = {
        "model_type": "nemotron-nas", "vocab_size": 128256, "hidden_size": 8192, "num_hidden_layers": 2, "num_attention_heads": 64,
        "tie_word_embeddings": False, "intermediate_size": None, "num_key_value_heads": None, "block_configs": [BLOCK, NO_ATTENTION],
    }  # fmt: skip
    first, second = (layer for layer, _ in architecture(config).layers)
    assert (first.mixer.num_key_value_heads, first.mlp.intermediate_size) == (8, 28672)
    assert (second.mixer.kind, second.mlp.intermediate_size) == ("none", 7168)
    with pytest.raises(Refusal) as refused:
        architecture({**config, "block_configs": [BLOCK]})
    assert refused.value.key == "block_configs"


def test_every_rule_says_what_it_does():
    assert all(rule.__doc__ for rule in FAMILIES.values())
