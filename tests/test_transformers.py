"""Every rule against transformers: the same config dict, its text model built on the meta device, the same integer.

Run where torch and transformers 5.24.0 are importable: python -m pytest -m transformers tests/test_transformers.py.
"""

import copy
import os
from collections import Counter
from pathlib import Path

import pytest
import yaml

from byteledger import hf_config, kv_cache, parameters
from byteledger.hf_config import Refusal

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from transformers.cache_utils import get_layer_types_and_kwargs  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

pytestmark = pytest.mark.transformers

HERE = Path(__file__).resolve().parent
SMALL = yaml.safe_load((HERE / "small_configs.yaml").read_text(encoding="utf-8"))
BASE = SMALL.pop("base")
PUBLISHED = sorted((HERE / "configs").glob("*.json"))

# transformers writes these parts as fewer or more tensors than we do; the integers agree all the same.
OTHERWISE_CUT = ("cohere", "granitemoehybrid", "granitemoeshared", "minimax_m3_vl_text", "olmo_hybrid", "qwen3_5_moe_text", "qwen3_5_text", "stablelm")
# 5.24.0 gives LongCat's zero experts a gate and up matrix, 2 f D each, which no checkpoint has.
ZERO_EXPERTS = ("longcat_flash",)

DELETED = object()
CHANGES = [
    {},
    {"tie_word_embeddings": True},
    {"tie_word_embeddings": False},
    {"tie_word_embeddings": DELETED},
    {"num_key_value_heads": 1},
    {"num_key_value_heads": None},
    {"num_key_value_heads": DELETED},
    {"head_dim": 24},
    {"head_dim": None},
    {"head_dim": DELETED},
    {"attention_bias": True},
    {"mlp_bias": True},
    {"use_bias": True},
    {"sliding_window": 100},
    {"sliding_window": 100, "use_sliding_window": True, "max_window_layers": 3},
    {"layer_types": ["full_attention", "sliding_attention"] * 4, "sliding_window": 64},
    {"num_hidden_layers": 7},
    {"first_k_dense_replace": 3},
    {"moe_layer_freq": 2},
    {"mlp_only_layers": [1, 2]},
    {"decoder_sparse_step": 2},
    {"n_shared_experts": None},
    {"num_shared_experts": DELETED},
    {"q_lora_rank": None},
    {"qk_layernorm": True},
    {"use_qk_norm": True},
    {"use_parallel_residual": True},
    {"vocab_size": 1003, "intermediate_size": 390},
]


def small(family):
    config = {**BASE, **SMALL[family], "model_type": family}
    for key in config.pop("drop", ()):
        del config[key]
    return config


def changed(config, change):
    config = {**config, **change}
    return {key: value for key, value in config.items() if value is not DELETED}


def built(config):
    """(the text model on the meta device, its configuration)."""
    config = copy.deepcopy(config)
    whole = CONFIG_MAPPING[config["model_type"]].from_dict(config)
    text = whole.get_text_config(decoder=True)
    if isinstance(config.get("tie_word_embeddings"), bool):
        text.tie_word_embeddings = config["tie_word_embeddings"]
    kind = {"MllamaTextConfig": "MllamaForCausalLM", "Mistral4Config": "Mistral4ForCausalLM"}.get(type(text).__name__)
    with torch.device("meta"):
        if kind:
            model = getattr(transformers, kind)._from_config(text)
        elif config["model_type"] == "bert":
            model = transformers.AutoModel.from_config(text)
        else:
            model = transformers.AutoModelForCausalLM.from_config(text)
    model.tie_weights()
    return model, text


def shapes_of(model):
    """{name: shape} of the unique parameters."""
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters(remove_duplicate=True)}


def elements(shape):
    return torch.Size(shape).numel()


def cut(shapes):
    """A multiset of shapes, without the order of their sides: Conv1D and experts are stored transposed."""
    return Counter(tuple(sorted(n for n in shape if n != 1)) for shape in shapes)


def ours(architecture):
    yield from (tensor.shape for tensor in architecture.outside)
    for layer, times in architecture.layers:
        for tensor in layer.tensors:
            yield from [tensor.shape] * times


def kept(architecture):
    """[(what a layer keeps, its window)], in the words of transformers' cache."""
    for layer, times in architecture.layers:
        mixer = layer.mixer
        window = getattr(mixer, "window", None)
        if mixer.kind == "none" or getattr(mixer, "shares_cache", False):
            one = ("dummy", None)
        elif mixer.kind == "recurrent":
            one = ("linear_attention", None)
        elif mixer.kind == "compressed" and mixer.rate:
            one = ({4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}[mixer.rate], None)
        else:
            one = ("hybrid" if mixer.kind == "hybrid" else "sliding_attention" if window else "full_attention", window)
        yield from [one] * times


SAME = {"chunked_attention": "sliding_attention", "indexed_attention": "full_attention", "minimax_m3_sparse": "full_attention", "conv": "linear_attention"}


def compare(config, family):
    """Total, routed experts, buffers, tensors and cached layers."""
    read = hf_config.from_dict(config, "config.json")
    model, text = built(config)
    theirs, architecture = shapes_of(model), read.architecture
    zero = 2 * text.zero_expert_num * text.expert_ffn_hidden_size * text.hidden_size * text.num_layers if family in ZERO_EXPERTS else 0
    assert parameters.total(architecture) == sum(map(elements, theirs.values())) - zero
    routed = sum(elements(shape) for name, shape in theirs.items() if ".experts." in name and "shared" not in name)
    assert parameters.by_part(architecture).get("experts", 0) == routed - zero
    buffers = sum(buffer.numel() for name, buffer in model.named_buffers() if name.endswith(("correction_bias", "expert_bias")))
    assert sum(one.values["value"] for one in read.assumptions if one.id == "buffers") == buffers
    if family not in OTHERWISE_CUT + ZERO_EXPERTS:
        assert cut(ours(architecture)) == cut(theirs.values())
    if family not in ("bert", "mllama"):  # an encoder; layers that cache an image
        kinds, more = get_layer_types_and_kwargs(text)
        expected = [(SAME.get(kind, kind), one.get("sliding_window")) for kind, one in zip(kinds, more, strict=True)]
        stray = not any(window for _, window in kept(architecture)) and "sliding_window" in config
        assert list(kept(architecture)) == expected or stray


@pytest.mark.parametrize("family", SMALL)
def test_the_same_integer(family):
    """The base must be built by both; of its changes, those that transformers builds and that we do not refuse."""
    compare(small(family), family)
    compared = 0
    for change in CHANGES:
        config = changed(small(family), change)
        try:
            hf_config.from_dict(config, "config.json")
            built(config)
        except Refusal:
            continue
        except Exception:  # transformers refuses in many ways
            continue
        if family == "helium" and change == {"head_dim": DELETED}:
            continue  # it would build a model whose matrices do not fit each other
        compare(config, family)
        compared += 1
    assert compared >= 6


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_published_files(path):
    config = hf_config.load(path)
    if config["model_type"] not in CONFIG_MAPPING or config["model_type"] == "dbrx":  # whose class fails in 5.24.0
        pytest.skip("transformers has no class for " + config["model_type"])
    config.pop("quantization_config", None), config.pop("auto_map", None)
    compare(config, config["model_type"])


def test_class_defaults_are_what_the_script_writes(tmp_path, monkeypatch):
    import runpy

    from byteledger.class_defaults import CLASS_DEFAULTS

    script = runpy.run_path(str(HERE.parent / "scripts" / "class_defaults.py"))
    for family in SMALL:
        kind = CONFIG_MAPPING[family]
        kind = getattr(kind, "sub_configs", {}).get("text_config", kind)
        assert CLASS_DEFAULTS[family] == script["defaults"](kind, script["asked"]()), family


# --- the KV cache: a prompt and a decoding step of a small real model, what DynamicCache then holds

SIZES = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 500, "intermediate_size": 128, "num_hidden_layers": 4}
DELTA = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16}
LATENT = {"q_lora_rank": 32, "kv_lora_rank": 48, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "moe_intermediate_size": 64, "first_k_dense_replace": 1}
CACHES = {
    "llama": {},
    "qwen3": {"head_dim": 32},
    "gpt2": {"num_key_value_heads": DELETED, "intermediate_size": DELETED, "max_position_embeddings": 128},
    "falcon": {"intermediate_size": DELETED, "num_key_value_heads": DELETED, "multi_query": True, "new_decoder_architecture": False, "alibi": False},
    "mistral": {"sliding_window": 16},
    "gemma2": {"head_dim": 16, "sliding_window": 16},
    "gemma3_text": {"head_dim": 16, "sliding_window": 16, "num_hidden_layers": 6},
    "gpt_oss": {"head_dim": 16, "sliding_window": 16, "num_local_experts": 4, "num_experts_per_tok": 2},
    "llama4_text": {"head_dim": 16, "intermediate_size_mlp": 128, "num_local_experts": 2, "num_experts_per_tok": 1, "attention_chunk_size": 16},
    "deepseek_v2": {**LATENT, "num_key_value_heads": 4, "topk_method": "greedy"},
    "deepseek_v3": {**LATENT, "num_key_value_heads": 4},
    "qwen3_next": {**DELTA, "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32},
    "jamba": {"num_hidden_layers": 8, "num_experts": 2, "num_experts_per_tok": 2, "mamba_d_state": 8, "attn_layer_period": 4, "attn_layer_offset": 2, "expert_layer_period": 2, "expert_layer_offset": 1},
    "nemotron_h": {"num_hidden_layers": DELETED, "layers_block_type": ["mamba", "mlp", "attention", "mamba"], "mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 16, "n_groups": 2, "head_dim": 16},
    "mamba": {"num_attention_heads": DELETED, "num_key_value_heads": DELETED, "intermediate_size": DELETED, "state_size": 8},
    "mamba2": {"num_attention_heads": DELETED, "num_key_value_heads": DELETED, "intermediate_size": DELETED, "state_size": 8, "num_heads": 8, "head_dim": 16, "n_groups": 2},
}  # fmt: skip


def held(cache):
    """Bytes of every tensor that a cache holds, by the elements that it shows: a slice may hold the storage of more."""
    total = 0
    for layer in cache.layers:
        for name in ("keys", "values", "conv_states", "recurrent_states"):
            found = getattr(layer, name, None)
            for tensor in found.values() if isinstance(found, dict) else (found,):
                if isinstance(tensor, torch.Tensor):
                    total += tensor.numel() * tensor.element_size()
    return total


@pytest.mark.parametrize("model_type", CACHES)
@pytest.mark.parametrize("prompt, batch", [(40, 2), (9, 1)])
def test_kv_bytes(model_type, prompt, batch):
    """kv_cache.total after prompt + 1 tokens is what DynamicCache holds, in BF16, windows and recurrent state included."""
    fields = {key: value for key, value in {**SIZES, **CACHES[model_type]}.items() if value is not DELETED}
    config = CONFIG_MAPPING[model_type](**fields)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    with torch.no_grad():
        cache = model(torch.randint(0, 400, (batch, prompt)), use_cache=True).past_key_values if "mamba" not in model_type else None
        if cache is None:
            first = model(torch.randint(0, 400, (batch, prompt)), use_cache=True)
            cache = getattr(first, "past_key_values", None) or first.cache_params
        else:
            model(torch.randint(0, 400, (batch, 1)), past_key_values=cache, use_cache=True)
    architecture = hf_config.from_dict({"model_type": model_type, **fields}).architecture
    assert held(cache) == kv_cache.total(architecture, prompt + 1, batch, 2)
