"""The reader of config.json: a number, a number with its assumptions, or a refusal that names the file and the key."""

import json
import random
from pathlib import Path

import pytest

from byteledger import hf_config, parameters, wording
from byteledger.families import FAMILIES
from byteledger.hf_config import Config, Refusal

CONFIGS = sorted((Path(__file__).resolve().parent / "configs").glob("*.json"))
LLAMA = {
    "model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "tie_word_embeddings": False,
}  # fmt: skip
LLAMA_3_8B = 8_030_261_248


def total(config):
    return parameters.total(hf_config.from_dict(config, "config.json").architecture)


def refused(config):
    with pytest.raises(Refusal) as caught:
        hf_config.from_dict(config, "config.json")
    return caught.value


def noted(config):
    return [one.id for one in hf_config.from_dict(config, "config.json").assumptions]


def test_a_complete_file_needs_no_assumption():
    assert total(LLAMA) == LLAMA_3_8B
    assert noted(LLAMA) == []


@pytest.mark.parametrize(
    "change",
    [
        {"num_hidden_layers": 32.0},
        {"hidden_size": None, "d_model": 4096},
        {"num_hidden_layers": None, "n_layers": 32},
        {"num_key_value_heads": None, "num_kv_heads": 8},
        {"head_dim": None},
        {"head_dim": 128},
        {"attention_bias": None, "mlp_bias": None},
        {"num_experts": 0, "n_shared_experts": None},
        {"sliding_window": 4096},
    ],
)
def test_other_spellings_of_the_same_model(change):
    as_null = ("head_dim", "attention_bias", "mlp_bias", "n_shared_experts")
    config = {key: value for key, value in {**LLAMA, **change}.items() if value is not None or key in as_null}
    assert total(config) == LLAMA_3_8B


@pytest.mark.parametrize(
    "change, id",
    [
        ({"tie_word_embeddings": None}, "absent"),
        ({"num_key_value_heads": None}, "absent"),
        ({"model_type": "some_llama"}, "by_fields"),
        ({"model_type": None, "architectures": ["LlamaForCausalLM"]}, "by_architecture"),
        ({"model_type": "my_llama", "architectures": ["LlamaForCausalLM"], "extra": 1}, "other_type"),
        ({"num_nextn_predict_layers": 1}, "mtp"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "with_head"),
        ({"model_type": "qwen2_vl", "vision_config": {"depth": 32}}, "text_part_flat"),
    ],
)
def test_assumptions_are_said(change, id):
    config = {**LLAMA, "rms_norm_eps": 1e-5, **change}
    read = hf_config.from_dict({key: value for key, value in config.items() if value is not None}, "config.json")
    assert id in [one.id for one in read.assumptions]
    for one in read.assumptions:
        assert one.said("zh") and one.said("en") and "{" not in one.said("zh") + one.said("en")


@pytest.mark.parametrize(
    "change, key, id",
    [
        ({"hidden_size": None}, "hidden_size", "missing"),
        ({"hidden_size": "4096"}, "hidden_size", "not_a_size"),
        ({"hidden_size": -4096}, "hidden_size", "not_a_size"),
        ({"hidden_size": 4096.5}, "hidden_size", "not_a_size"),
        ({"hidden_size": True}, "hidden_size", "not_a_size"),
        ({"hidden_size": 10**30}, "hidden_size", "not_a_size"),
        ({"hidden_size": float("inf")}, "hidden_size", "not_a_size"),
        ({"hidden_size": [4096]}, "hidden_size", "not_a_size"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers", "not_a_size"),
        ({"num_key_value_heads": [8] * 32}, "num_key_value_heads", "not_a_size"),
        ({"num_key_value_heads": 5}, "num_key_value_heads", "argument"),
        ({"num_attention_heads": 30, "num_key_value_heads": 30}, "hidden_size", "not_divisible"),
        ({"tie_word_embeddings": "false"}, "tie_word_embeddings", "not_a_flag"),
        ({"attention_bias": 1}, "attention_bias", "not_a_flag"),
        ({"n_embd": 2048}, "hidden_size", "contradiction"),
        ({"layer_types": ["full_attention"] * 31}, "layer_types", "not_a_list"),
        ({"layer_types": ["linear_attention"] * 32}, "layer_types", "not_a_choice"),
        ({"num_experts": 8}, "num_experts", "not_modelled"),
        ({"moe_intermediate_size": 1024}, "moe_intermediate_size", "not_modelled"),
        ({"use_qk_norm": True}, "use_qk_norm", "not_modelled"),
        ({"block_configs": [{}] * 32}, "block_configs", "not_modelled"),
        ({"per_layer_config": {"0": {"head_dim": 64}}}, "per_layer_config", "not_modelled"),
        ({"model_type": 7}, "model_type", "not_a_choice"),
        ({"model_type": "lama"}, "model_type", "unknown_family"),
        ({"model_type": "zamba2"}, "model_type", "known_unmodelled"),
        ({"model_type": "t5"}, "model_type", "encoder_decoder"),
        ({"is_encoder_decoder": True}, "model_type", "encoder_decoder"),
        ({"model_type": None}, "model_type", "no_model_type"),
        ({"text_config": "llama"}, "text_config", "not_a_choice"),
        ({"text_config": {**LLAMA, "vocab_size": 0}}, "text_config.vocab_size", "not_a_size"),
        ({"model_type": "mpt", "attn_config": {"qk_ln": True}}, "attn_config.qk_ln", "not_modelled"),
        ({"model_type": "mpt", "attn_config": []}, "attn_config", "not_a_choice"),
        ({"model_type": "chatglm", "position_encoding_2d": True}, "position_encoding_2d", "chatglm_first"),
        ({"model_type": "gpt_neo", "num_key_value_heads": 32, "attention_types": [[["global"], "x"]], "n_inner": 14336}, "attention_types", "not_a_list"),
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "MX"}, "hybrid_override_pattern", "not_a_choice"),
        ({"model_type": "bert", "is_decoder": True, "max_position_embeddings": 8, "num_key_value_heads": 32}, "is_decoder", "not_modelled"),
        ({"model_type": "phi3", "attention_bias": True}, "attention_bias", "not_modelled"),
        ({"model_type": "mixtral"}, "num_local_experts", "missing"),
        ({"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 9}, "num_experts_per_tok", "not_a_size"),
    ],
)
def test_refusals_name_file_and_key(change, key, id):
    said = refused({name: value for name, value in {**LLAMA, **change}.items() if value is not None})
    assert (said.file, said.key, said.id) == ("config.json", key, id)
    for language in ("zh", "en"):
        assert said.said(language).startswith("config.json") and key in said.said(language)


@pytest.mark.parametrize(
    "stated, near", [("lama", "llama"), ("Qwen3_Moe2", "qwen3_moe"), ("gpt-oss", "gpt_oss"), ("kimi_k22", "kimi_k2"), ("zzzz", None)]
)
def test_an_unknown_family_is_told_the_nearest_few(stated, near):
    """The names most like it, the nearest first, and where all of them are; not all of them on one line."""
    said = refused({**LLAMA, "model_type": stated})
    assert said.id == "unknown_family"
    for language in ("zh", "en"):
        text = said.said(language)
        assert stated in text and text.endswith("python -m byteledger params --list") and len(text) < 250
    assert ("Did you mean %s" % near in said.said("en")) if near else ("Did you mean" not in said.said("en") and "相近" not in said.said("zh"))


def test_an_unknown_family_with_a_field_of_its_own_is_no_llama():
    assert refused({**LLAMA, "model_type": "new", "rms_norm_eps": 1e-5, "ssm_groups": 4}).id == "unknown_family"


@pytest.mark.parametrize(
    "text, id, key",
    [
        ('{"model_type": "llama", "model_type": "mistral"}', "twice", "model_type"),
        ("{", "not_json", ""),
        ("[1]", "not_object", ""),
        ("\ufeff" + json.dumps(LLAMA), None, None),
        (json.dumps({**LLAMA, "time_step_limit": [0.0, float("inf")]}), None, None),  # bare Infinity
        ('{"a": ' * 5000 + "1" + "}" * 5000, "not_json", ""),
    ],
)
def test_files(tmp_path, text, id, key):
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    if id is None:
        assert parameters.total(hf_config.read(tmp_path).architecture) == LLAMA_3_8B
        return
    with pytest.raises(Refusal) as caught:
        hf_config.read(tmp_path)
    assert (caught.value.id, caught.value.key) == (id, key)


def test_no_file_and_no_text(tmp_path):
    (tmp_path / "config.json").write_bytes(b"\xff\xfe\x00")
    for path, id in ((tmp_path / "absent.json", "no_file"), (tmp_path, "not_utf8")):
        with pytest.raises(Refusal) as caught:
            hf_config.read(path)
        assert caught.value.id == id


def test_the_outer_tie_decides():
    inner = {key: value for key, value in LLAMA.items() if key != "model_type"}
    config = {"model_type": "llava", "tie_word_embeddings": True, "text_config": {**inner, "model_type": "llama"}}
    assert total(config) == LLAMA_3_8B - 128256 * 4096
    assert "outer_tie" in noted(config)


def test_nested_files_lack_what_their_class_has():
    """gemma-3-4b-it writes neither its heads nor its vocabulary; 3,880,263,168 is its text part (4,300,079,472 less vision)."""
    read = hf_config.read(next(path for path in CONFIGS if "gemma-3-4b" in path.name))
    assert parameters.total(read.architecture) == 3_880_263_168
    assert {one.values["key"] for one in read.assumptions if one.id == "class_default"} >= {"text_config.vocab_size", "text_config.num_attention_heads"}


def test_every_wording_is_in_both_languages():
    for table in (wording.ASSUMPTIONS, wording.REFUSALS, wording.NOT_MODELLED):
        for id, pair in table.items():
            assert len(pair) == 2 and all(pair), id
            assert any("\u4e00" <= letter <= "\u9fff" for letter in pair[0]) or pair[0] == pair[1], id
    assert not set(wording.NOT_MODELLED) & (set(FAMILIES) | set(hf_config.TEXT_FAMILY))


# --- mutations

STRANGE = (
    None, True, False, 0, 1, 2, 3, -1, 7, 64, 128, 4096.0, 0.5, 1e300, 10**30, float("inf"), float("-inf"), float("nan"), "", "4096",
    "llama", "auto", [], {}, [1], [None], ["full_attention"], [[1]], {"a": 1}, [0] * 60, [1.5] * 48, ["sliding_attention"] * 24, "MEM*",
)  # fmt: skip
INSERTED = sorted(
    set(hf_config.SWITCHES) | set(hf_config.ALIASES) | {name for names in hf_config.ALIASES.values() for name in names}
    | {"text_config", "llm_config", "thinker_config", "layer_types", "sliding_window", "attention_types", "architectures", "dtype",
       "quantization_config", "moe_layer_freq", "mlp_layer_types", "first_k_dense_replace", "is_encoder_decoder", "attn_config", "ffn_config",
       "vocab_size", "tie_word_embeddings", "compress_ratios", "indexer_types"}
)  # fmt: skip


def mutated(config, chance):
    """A copy with one to three things deleted, replaced, retyped or put in."""
    config = json.loads(json.dumps(config))
    for _ in range(chance.randint(1, 3)):
        target = config
        while isinstance(target, dict) and chance.random() < 0.4:
            inner = [value for value in target.values() if isinstance(value, dict) and value]
            if not inner:
                break
            target = chance.choice(inner)
        key = chance.choice(sorted(target)) if target and chance.random() < 0.75 else chance.choice(INSERTED)
        value = target.get(key)
        way = chance.randrange(5)
        if way == 0:
            target.pop(key, None)
        elif way == 1 and isinstance(value, int) and not isinstance(value, bool):
            others = (value + 1, value * 2, value // 2, -value, float(value), str(value), [value], {"value": value}, 10**9 * (value + 1))
            target[key] = chance.choice(others)
        elif way == 2 and isinstance(value, list):
            target[key] = chance.choice((value[:-1], value + value[:1], value[::-1], [value], [chance.choice(STRANGE) for _ in value]))
        else:
            target[key] = chance.choice(STRANGE)
    if chance.random() < 0.2:
        config["model_type"] = chance.choice(sorted(FAMILIES))
    return config


@pytest.mark.parametrize("seed", range(20))
def test_two_thousand_mutations_end_in_a_number_or_a_refusal(seed):
    chance, numbers = random.Random(seed), 0
    originals = [hf_config.load(path) for path in CONFIGS]
    for _ in range(100):
        config = mutated(chance.choice(originals), chance)
        try:
            read = hf_config.from_dict(config, "config.json")
        except Refusal as refusal:
            assert refusal.said("zh") and refusal.said("en"), config
            continue
        assert isinstance(read, Config)
        model = read.architecture
        whole = parameters.total(model)
        assert type(whole) is int and whole > 0, config
        assert 0 < parameters.active(model) <= whole, config
        assert sum(parameters.by_part(model).values()) == whole, config
        assert all(one.said("zh") and one.said("en") for one in read.assumptions), config
        numbers += 1
    assert numbers > 10  # not everything is refused
