"""Reads a Hugging Face config.json as people have them. Three outcomes: a number, a number with its assumptions, a refusal.

Nothing here computes bytes or counts; families/ holds the rules. Source of the aliases: the attribute_map of the
configuration classes in transformers 5.24.0, and the published files of families that ran on code of their own.
"""

import json
import os

from .arguments import ArgumentError
from .class_defaults import CLASS_DEFAULTS
from .families import FAMILIES
from .nearest import nearest
from .printed import number
from .wording import ASSUMPTIONS, NEAREST, NOT_MODELLED, REFUSALS, say

REQUIRED = object()
STATE_DTYPES = ("mamba_ssm_cache_dtype", "mamba_ssm_dtype")  # the format of a recurrent state
LARGEST = 10**8  # no field of any published architecture comes near

# canonical key -> other names of the same field.
ALIASES = {
    "hidden_size": ("n_embd", "d_model", "n_embed"),
    "num_hidden_layers": ("n_layer", "num_layers", "n_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "attention_heads"),
    "num_key_value_heads": ("num_kv_heads", "n_head_kv", "n_kv_heads", "kv_n_heads", "multi_query_group_num", "num_query_groups"),
    "intermediate_size": ("ffn_hidden_size", "n_inner", "ffn_dim", "d_ff", "dff"),
    "moe_intermediate_size": ("expert_ffn_hidden_size",),
    "max_position_embeddings": ("n_positions", "max_seq_len", "seq_length", "model_max_length"),
    "head_dim": ("kv_channels",),
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_local_experts": ("num_experts", "n_routed_experts"),
    "n_routed_experts": ("num_local_experts", "num_experts"),
    "num_experts_per_tok": ("num_experts_per_token", "experts_per_token", "num_selected_experts", "moe_topk", "moe_top_k"),
    "moe_topk": ("num_experts_per_tok",),
    "moe_k": ("num_experts_per_tok",),
    "moe_num_experts": ("num_experts",),
    "state_size": ("d_state",),
    "conv_kernel": ("d_conv",),
    "attention_bias": ("use_attention_bias",),
}

TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config")

# model_type of a whole, or of a nested text part, whose text is another family's.
TEXT_FAMILY = {
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "llama4": "llama4_text",
    "qwen2_vl": "qwen2",
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen2_5_omni_text": "qwen2",
    "qwen3_vl": "qwen3",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe": "qwen3_moe",
    "qwen3_vl_moe_text": "qwen3_moe",
    "qwen3_omni_moe_text": "qwen3_moe",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "mistral3": "mistral",
    "mllama": "mllama_text_model",
    "glm4v_moe_text": "glm4_moe",
    "minimax_m3": "minimax_m3_vl_text",
    "minimax_m3_vl": "minimax_m3_vl_text",
    "minimax_text_01": "minimax",
    "minimax_m1": "minimax",
    "MiniMaxText01": "minimax",
    "MiniMaxM1": "minimax",
    "kimi_k2": "deepseek_v3",
    "exaone3_5": "exaone",
    "nemotron-nas": "decilm",
    "deci": "decilm",
    "code_llama": "llama",
    "aquila": "llama",
    "aquila3": "llama",
    "yi": "llama",
    "Yi": "llama",
    "phi3_v": "phi3",
    "glm4v": "glm4",
    "glm4v_text": "glm4",
    "qwen3_asr_text": "qwen3",
}

# Fields that change what is built. Where no rule looks at one and it is set, there is no count, rather than a wrong one.
SWITCHES = (
    "attention_bias", "use_attention_bias", "mlp_bias", "use_bias", "bias", "qkv_bias", "use_qkv_bias", "add_bias_linear", "add_qkv_bias",
    "attention_out_bias", "lm_head_bias", "qk_layernorm", "use_qk_norm", "qk_norm", "use_mla", "use_cla", "add_cross_attention",
    "block_configs", "per_layer_config", "mlp_only_layers", "kv_lora_rank", "q_lora_rank", "moe_latent_size", "latent_moe_use_norm",
    "attn_res_block_size", "mla_use_output_gate", "attention_output_gate", "attn_output_gate", "n_shared_experts", "num_shared_experts",
    "shared_expert_intermediate_size", "moe_intermediate_size", "linear_num_value_heads", "linear_attn_config", "mamba_num_heads",
    "mamba_d_state", "mamba_n_heads", "ssm_state_size", "layers_block_type", "hybrid_override_pattern", "attn_layer_indices",
    "hidden_size_per_layer_input", "cross_attention_layers", "num_kv_shared_layers", "altup_num_inputs", "laurel_rank",
    "num_key_value_heads_per_layer", "sparse_attention_config", "swa_num_key_value_heads", "use_bidirectional_attention",
    "use_per_head_gate", "use_double_wide_mlp", "enable_moe_block", "index_n_heads", "attention_other_setting", "attn_type_list",
)  # fmt: skip
_EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_MTP = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "num_mtp_layers", "mtp_num_layers")

ENCODER_DECODERS = (
    "t5", "mt5", "umt5", "longt5", "switch_transformers", "bart", "mbart", "pegasus", "marian", "blenderbot", "m2m_100", "nllb-moe",
    "whisper", "t5gemma", "led", "prophetnet", "encoder-decoder", "fsmt", "speech_to_text", "seamless_m4t",
)  # fmt: skip


class Refusal(ValueError):
    """No number: the file, the key, and what is not modelled or not given. str() is English; said(language) either."""

    def __init__(self, file, key, id, **values):
        self.file, self.key, self.id, self.values = file, key, id, values
        ValueError.__init__(self, self.said("en"))

    def said(self, language):
        colon = "：" if language == "zh" else ": "
        place = self.file + colon if self.file else ""
        values = {**self.values, "near": near_words(self.values["near"], language)} if "near" in self.values else self.values
        if not self.key:
            return place + say(REFUSALS[self.id], language, **values)
        return place + self.key + " " + say(REFUSALS[self.id], language, key=self.key, **values)


def near_words(names, language):
    """What may have been meant, as the end of a sentence; nothing where nothing is like it."""
    if not names:
        return ""
    between = "、" if language == "zh" else " or " if len(names) == 2 else ", "
    return say(NEAREST, language, names=between.join(names))


class Assumption:
    """What was taken for granted, said beside the number. WORDS: the sentences of its kind, by id."""

    WORDS = ASSUMPTIONS

    def __init__(self, id, **values):
        self.id, self.values = id, values

    def said(self, language):
        counts = {key: number(value, 0) for key, value in self.values.items() if type(value) is int}
        return say(self.WORDS[self.id], language, **{**self.values, **counts})

    def __repr__(self):
        return self.said("en")


class Config:
    """A configuration that was read: its Architecture, what was assumed, and the fields that formulas need besides."""

    def __init__(self, file, architecture, assumptions, dtype, quantization, max_positions, state_dtype, unused):
        self.file, self.architecture, self.assumptions = file, architecture, assumptions
        self.dtype, self.quantization, self.max_positions, self.state_dtype = dtype, quantization, max_positions, state_dtype
        self.unused = unused  # keys that no rule looked at


def read(path):
    """The Config of a config.json, or of the folder that holds one. Raises Refusal."""
    path = str(path)
    if os.path.isdir(path):
        path = os.path.join(path, "config.json")
    return from_dict(load(path), path)


def load(path):
    """The outermost object of a JSON file; bare Infinity and NaN are let through, as Python writes them."""
    try:
        with open(path, "rb") as file:
            text = file.read().decode("utf-8-sig")
    except OSError as error:
        raise Refusal(path, "", "no_file") from error
    except UnicodeDecodeError as error:
        raise Refusal(path, "", "not_utf8") from error

    def once(pairs):
        found = {}
        for key, value in pairs:
            if key in found and found[key] != value:
                raise Refusal(path, key, "twice")
            found[key] = value
        return found

    try:
        value = json.loads(text, object_pairs_hook=once)
    except Refusal:
        raise
    except (ValueError, RecursionError) as error:
        raise Refusal(path, "", "not_json", detail=str(error)[:200]) from error
    if not isinstance(value, dict):
        raise Refusal(path, "", "not_object")
    return value


def from_dict(config, file=""):
    """The Config of a configuration as a dict. Raises Refusal."""
    if not isinstance(config, dict):
        raise Refusal(file, "", "not_object")
    assumptions = []
    outer, config, prefix = config, *_text_part(config, file, assumptions)
    family = _family(config, outer, file, prefix, assumptions)
    stated = config.get("model_type") or outer.get("model_type")
    fields = Fields(config, file, family, assumptions, prefix, outer, stated if isinstance(stated, str) else None)
    try:
        architecture = FAMILIES[family](fields)
    except ArgumentError as error:
        raise Refusal(file, prefix + error.name, "argument", detail=str(error)[len(error.name) :].strip()) from error
    fields.leftovers(architecture)
    state = next((config[key] for key in STATE_DTYPES if config.get(key)), None)
    return Config(
        file, architecture, assumptions, _text(config, "dtype", "torch_dtype") or _text(outer, "dtype", "torch_dtype"),
        config.get("quantization_config") or outer.get("quantization_config"), fields.positions(), state if isinstance(state, str) else None,
        [key for key in config if key not in fields.used and key not in STATE_DTYPES],
    )  # fmt: skip


def _text(config, *keys):
    for key in keys:
        if isinstance(config.get(key), str):
            return config[key].replace("torch.", "")
    return None


def _text_part(config, file, assumptions):
    """(the text configuration, the prefix of its keys): the innermost of text_config, llm_config and the like."""
    prefix = ""
    while True:
        key = next((key for key in TEXT_PARTS if config.get(key) is not None), None)
        if key is None:
            break
        if not isinstance(config[key], dict):
            raise Refusal(file, prefix + key, "not_a_choice", value=_short(config[key]), known="{...}")
        config, prefix = config[key], prefix + key + "."
    if prefix:
        assumptions.append(Assumption("text_part", key=prefix[:-1]))
    return config, prefix


_TOWERS = ("vision_config", "audio_config", "vision_tower", "mm_vision_tower", "visual", "img_processor", "speech_config", "embd_layer")


def _family(config, outer, file, prefix, assumptions):
    """The name in FAMILIES. Raises Refusal for what no rule covers."""
    stated = config.get("model_type")
    if stated is None and prefix:
        stated = outer.get("model_type")
    if stated is not None and not isinstance(stated, str):
        raise Refusal(file, prefix + "model_type", "not_a_choice", value=_short(stated), known='"llama", "qwen3" …')
    if outer.get("is_encoder_decoder") is True or config.get("is_encoder_decoder") is True or stated in ENCODER_DECODERS:
        raise Refusal(file, "model_type", "encoder_decoder", value=_short(stated))
    if stated in NOT_MODELLED:
        raise Refusal(file, prefix + "model_type", "known_unmodelled", value=stated, reason=NOT_MODELLED[stated])
    name = TEXT_FAMILY.get(stated, stated)
    if name in FAMILIES:
        towers = [key for key in _TOWERS if outer.get(key)] if not prefix else []
        if towers:
            assumptions.append(Assumption("text_part_flat", key=", ".join(towers), value=stated))
        return name
    named = config.get("architectures") or outer.get("architectures")
    for one in named if isinstance(named, list) else ():
        name = _by_architecture(one)
        if name:
            assumptions.append(Assumption("by_architecture" if stated is None else "other_type", value=one, family=name, stated=stated))
            return name
    if stated is None:
        raise Refusal(file, prefix + "model_type", "no_model_type")
    if _unlike_llama(config) is None:
        assumptions.append(Assumption("by_fields", value=stated))
        return "llama"
    raise Refusal(file, prefix + "model_type", "unknown_family", value=_short(stated), near=nearest(stated, known_types()))


def known_types():
    """Every model_type that has a rule."""
    return sorted({*FAMILIES, *TEXT_FAMILY}, key=lambda name: (name.lower(), name))


def _by_architecture(name):
    """llama for LlamaForCausalLM: the family whose name, without underscores, begins the class name."""
    if not isinstance(name, str):
        return None
    plain = name.lower()
    for family in FAMILIES:
        begins = family.replace("_", "").replace("-", "").lower()
        if plain in (begins + "forcausallm", begins + "lmheadmodel"):
            return family
    return None


# Fields of Llama's that decide the count, and those that no count and no cache depends on.
_LLAMA = (
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size", "head_dim",
    "attention_bias", "mlp_bias", "tie_word_embeddings", "rms_norm_eps", "max_position_embeddings",
)  # fmt: skip
_HARMLESS = (
    "_name_or_path", "architectures", "attention_dropout", "auto_map", "bos_token_id", "dtype", "eos_token_id", "hidden_act",
    "hidden_dropout", "initializer_range", "model_type", "pad_token_id", "pretraining_tp", "rope_parameters", "rope_scaling",
    "rope_theta", "torch_dtype", "transformers_version", "unk_token_id", "use_cache", "quantization_config", "rope_interleaved",
    "hidden_dropout_prob", "attention_probs_dropout_prob", "id2label", "label2id",
)  # fmt: skip


def _unlike_llama(config):
    """The first thing that keeps a configuration from being Llama's, or None."""
    for key in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "rms_norm_eps"):
        if config.get(key) is None:
            return key
    if config.get("hidden_act", "silu") not in ("silu", "swish"):
        return "hidden_act"
    return next((key for key in config if key not in _LLAMA and key not in _HARMLESS), None)


def _without_head(name):
    """Whether a class of an architectures list has no language-model head: a bare model, a classifier, a reward model."""
    if name.endswith(("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForRewardModel", "RewardModel")):
        return True
    return name.endswith("Model") and any(name.lower() == family.replace("_", "") + "model" for family in CLASS_DEFAULTS)


def _short(value):
    text = json.dumps(value, ensure_ascii=False, default=str) if not isinstance(value, str) else value
    return text if len(text) <= 60 else text[:57] + "..."


class Fields:
    """The fields of one configuration, as a family's rule asks for them. Everything that is assumed is noted."""

    def __init__(self, config, file, family, assumptions, prefix="", outer=None, stated=None):
        self.config, self.file, self.model_type, self.assumptions, self.prefix = config, file, family, assumptions, prefix
        self.outer = config if outer is None else outer
        self.used = {"model_type"}
        self._noted = set()
        self._defaults = CLASS_DEFAULTS.get(stated, CLASS_DEFAULTS.get(family, {}))

    # --- saying things

    def refuse(self, key, id, **values):
        values.setdefault("value", _short(self.config.get(key)))
        raise Refusal(self.file, self.prefix + key, id, **values)

    def note(self, id, **values):
        if (id, values.get("key")) not in self._noted:
            self._noted.add((id, values.get("key")))
            self.assumptions.append(Assumption(id, **values))

    def ignored(self, *keys):
        """Fields that have no say here, whatever they hold."""
        self.used.update(keys)

    def leftovers(self, architecture):
        """What no rule looked at: a switch that is on is refused, modules that come on top are noted."""
        for key in SWITCHES:
            if key not in self.used and self.config.get(key):
                self.refuse(key, "not_modelled")
        for key in _EXPERT_COUNTS:
            if key not in self.used and self.config.get(key) not in (None, 0, 1):
                self.refuse(key, "not_modelled")
        for key in _MTP:
            value = self.config.get(key)
            if isinstance(value, int) and value and key not in self.used:
                self.note("mtp", key=self.prefix + key, value=value)
                break
        named = self.outer.get("architectures")
        for one in named if isinstance(named, list) else ():
            if isinstance(one, str) and architecture.causal and not architecture.tied and _without_head(one):
                self.note("with_head", key="architectures", value=one, k=architecture.vocab_size * architecture.hidden_size)

    # --- looking things up

    def has(self, key):
        return self.config.get(key) is not None

    def _names(self, key):
        return (key,) + ALIASES.get(key, ())

    def _lookup(self, key):
        """(name, value) of a field by any of its names, (key, None) if it is nowhere or null."""
        found = None
        for name in self._names(key):
            if name in self.config:
                self.used.add(name)
            value = self.config.get(name)
            if value is None:
                continue
            if found and found[1] != value:
                raise Refusal(self.file, self.prefix + found[0], "contradiction", value=_short(found[1]), other=name, k=_short(value))
            found = found or (name, value)
        self.used.add(key)
        return found or (key, None)

    def _default(self, key):
        """What the family's configuration class takes where the file does not name the field at all; null is not that."""
        return None if any(name in self.config for name in self._names(key)) else self._defaults.get(key)

    def _whole(self, name, value, least, most):
        if isinstance(value, float) and value == value and abs(value) < 2**53 and value == int(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise Refusal(self.file, self.prefix + name, "not_a_size", value=_short(value), least=least, most=most)
        return value

    def size(self, key, absent=REQUIRED, least=1, most=LARGEST, quiet=False, words=()):
        """A whole number. absent: what holds where the configuration has none and its class has no default of its own.

        A field without absent must be there, but for a nested configuration, which is written as its difference from the
        class. quiet: what is taken is not worth saying.
        """
        name, value = self._lookup(key)
        if value is not None and not (isinstance(value, str) and value in words):
            return self._whole(name, value, least, most)
        default = self._default(key) if absent is not REQUIRED or self.prefix else None
        if default is not None and not isinstance(default, bool):
            self._whole(key, default, least, most)
            if not quiet:
                self.note("class_default" if self.prefix else "absent", key=self.prefix + key, value=default, family=self.model_type)
            return default
        if absent is REQUIRED:
            raise Refusal(self.file, self.prefix + key, "missing")
        if not quiet:
            self.note("absent", key=self.prefix + key, value=absent, family=self.model_type)
        return absent

    def optional_size(self, key, absent=REQUIRED, quiet=False):
        """A whole number, or None where the configuration says null or 0. absent None: no class's default counts either."""
        name, value = self._lookup(key)
        if value is None:
            default = self._default(key) if absent is REQUIRED else absent
            if default and not isinstance(default, bool):
                if not quiet:
                    self.note("absent", key=self.prefix + key, value=default, family=self.model_type)
                return default
            return None
        return self._whole(name, value, 0, LARGEST) or None

    def ratio(self, key, absent=REQUIRED):
        """A positive number that need not be whole."""
        self.used.add(key)
        value = self.config.get(key)
        if value is None and absent is not REQUIRED:
            return absent
        if value is None:
            raise Refusal(self.file, self.prefix + key, "missing")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1000:
            self.refuse(key, "not_a_size", least=0, most=1000)
        return value

    def flag(self, key, absent):
        """true or false; absent: what holds if its class has no default; silently, as published files leave flags out."""
        name, value = self._lookup(key)
        if value is None:
            default = self._default(key)
            return default if isinstance(default, bool) else absent
        if not isinstance(value, bool):
            raise Refusal(self.file, self.prefix + name, "not_a_flag", value=_short(value))
        return value

    def bias(self, key):
        """A bias that is always there (True), never (False, None), or where a key says so: "key", or ("key", the default)."""
        if isinstance(key, tuple):
            return self.flag(*key)
        return self.flag(key, False) if isinstance(key, str) else bool(key)

    def choice(self, key, known, absent):
        self.used.add(key)
        value = self.config.get(key, absent)
        value = absent if value is None else value
        if value not in known:
            raise Refusal(self.file, self.prefix + key, "not_a_choice", value=_short(value), known=", ".join(known))
        return value

    def tied(self, absent):
        """tie_word_embeddings: of the whole where it is multimodal, else of the text; absent: the class's default."""
        self.used.add("tie_word_embeddings")
        own, outer = self.config.get("tie_word_embeddings"), self.outer.get("tie_word_embeddings")
        for value in (own, outer):
            if value is not None and not isinstance(value, bool):
                raise Refusal(self.file, "tie_word_embeddings", "not_a_flag", value=_short(value))
        if own is None and outer is None:
            default = self._defaults.get("tie_word_embeddings", absent)
            self.note("absent", key=self.prefix + "tie_word_embeddings", value="true" if default else "false", family=self.model_type)
            return default
        if self.prefix and outer is not None:
            if own is not None and own != outer:
                self.note("outer_tie", key=self.prefix[:-1], value="true" if outer else "false")
            return outer
        return own

    def head_dim(self, D, a):
        """head_dim; where it is absent, the class's default; where that is none or the field is null, D / a, which must be whole."""
        value = self.size("head_dim", absent=0, quiet=not self._default("head_dim"))
        return value or self.divided("hidden_size", D, "num_attention_heads", a)

    def divided(self, key, n, other, by):
        if n % by:
            raise Refusal(self.file, self.prefix + key, "not_divisible", value=n, other=other, k=by)
        return n // by

    def fixed(self, key, value):
        """A field that the family's rule decides: it may be there, but only with the rule's value."""
        name, given = self._lookup(key)
        if given is not None and (given != value or isinstance(given, bool)):
            raise Refusal(self.file, self.prefix + name, "contradiction", value=_short(given), other="%s" % self.model_type, k=value)

    def equal(self, what, value, other, wanted):
        if value != wanted:
            raise Refusal(self.file, self.prefix + what, "contradiction", value=value, other=other, k=wanted)

    def overruled(self, key, k, id):
        """A field that is there and does not count: the family's rule gives k, and the output says so."""
        name, value = self._lookup(key)
        if value is not None and value != k:
            self.note(id, key=self.prefix + name, value=_short(value), k=k)

    def must(self, key, value):
        """A flag that the family's rule decides: it may be there, but only with the rule's value."""
        if self.flag(key, value) is not value:
            self.refuse(key, "not_modelled")

    def absent_or_false(self, key):
        self.used.add(key)
        if self.config.get(key):
            self.refuse(key, "not_modelled")

    def positions(self):
        """max_position_embeddings, where it is a number."""
        try:
            return self.optional_size("max_position_embeddings", absent=None)
        except Refusal:
            return None

    def inside(self, key):
        """The fields of a nested object, empty where there is none."""
        self.used.add(key)
        value = self.config.get(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise Refusal(self.file, self.prefix + key, "not_a_choice", value=_short(value), known="{...}")
        return self._nested(value, key)

    def _nested(self, value, key):
        nested = Fields(value, self.file, None, self.assumptions, self.prefix + key + ".", self.outer)
        nested.model_type = self.model_type
        return nested

    # --- one entry for each layer

    def _list(self, key, L, fits):
        """A list of L entries that fit, of any number where L is None; None where there is none."""
        self.used.add(key)
        value = self.config.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) > 10_000 or (L is not None and len(value) != L) or not all(fits(one) for one in value):
            raise Refusal(self.file, self.prefix + key, "not_a_list", value=_short(value), k="L" if L is None else L)
        return value

    def words(self, key, L):
        return self._list(key, L, lambda one: isinstance(one, str))

    def numbers(self, key, L):
        """A list of finite numbers or flags, one a layer; an empty list is none."""
        length = None if self.config.get(key) == [] else L
        return self._list(key, length, lambda one: isinstance(one, (int, float)) and abs(one) < LARGEST) or None

    def sizes(self, key, L):
        """A list of whole numbers, one a layer, where the field is a list; else None."""
        if not isinstance(self.config.get(key), list):
            return None
        return [self._whole(key, one, 1, LARGEST) for one in self._list(key, L, lambda one: True)]

    def objects(self, key, L):
        """A list of objects, one a layer, each as fields."""
        listed = self._list(key, L, lambda one: isinstance(one, dict))
        return None if listed is None else [self._nested(one, "%s[%d]" % (key, i)) for i, one in enumerate(listed)]

    def pattern(self, key, L):
        """[bool] where a key that is usually a number is a list, else None."""
        numbers = self.numbers(key, L) if isinstance(self.config.get(key), list) else None
        return None if numbers is None else [bool(one) for one in numbers]

    def letters(self, key, alphabet):
        """A text of these letters, where the field is text; else None."""
        value = self.config.get(key) if key else None
        if not isinstance(value, str):
            return None
        self.used.add(key)
        if not value or len(value) > 10_000 or any(letter not in alphabet for letter in value):
            self.refuse(key, "not_a_choice", known=" ".join(alphabet))
        return value

    def layer_types(self, L, known=("full_attention", "sliding_attention"), key=None):
        """The kind of each layer, where layer_types, or the family's own key, has them; older names are read as the newer ones."""
        name = "layer_types" if key is None or self.has("layer_types") else key
        types = self.words(name, L)
        types = None if types is None else [_OLDER_KINDS.get(kind, kind) for kind in types]
        for kind in types or ():
            if kind not in known:
                raise Refusal(self.file, self.prefix + name, "not_a_choice", value=_short(kind), known=", ".join(known))
        return types

    def indices(self, key, L):
        """A list of layer numbers, empty where there is none."""
        return self._list(key, None, lambda one: isinstance(one, int) and not isinstance(one, bool) and 0 <= one <= L) or []

    def blocks(self, key, other, letters):
        """The kind of each layer from a string such as "M-M*", or from a list of words."""
        self.used.update((key, other, "layer_types"))
        value, listed = self.config.get(key), self.config.get(other) or self.config.get("layer_types")
        if isinstance(value, str) and 0 < len(value) <= 10_000 and all(letter in letters for letter in value):
            return [letters[letter] for letter in value]
        names = {"linear_attention": "mamba", "full_attention": "attention", **{kind: kind for kind in letters.values()}}
        fits = isinstance(listed, list) and 0 < len(listed) <= 10_000 and all(isinstance(one, str) and one in names for one in listed)
        if value is None and fits:
            return [names[one] for one in listed]
        if value is None and listed is None:
            raise Refusal(self.file, self.prefix + key, "missing")
        raise Refusal(self.file, self.prefix + key, "not_a_choice", value=_short(value if value is not None else listed), known=" ".join(letters))

    def attention_kinds(self, L):
        """GPT-Neo's attention_types, [[["global", "local"], 12]], as one word a layer."""
        value = self.config.get("attention_types")
        self.used.update(("attention_types", "attention_layers"))
        if value is None:
            self.refuse("attention_types", "missing")
        kinds = []
        try:
            for pattern, times in value:
                kinds += [str(kind) for kind in pattern] * min(int(times), 10_000)
        except (TypeError, ValueError, OverflowError):
            kinds = []
        if len(kinds) != L or any(kind not in ("global", "local") for kind in kinds):
            self.refuse("attention_types", "not_a_list", k=L)
        return kinds


# Names of before transformers 5, and the newer ones.
_OLDER_KINDS = {"mamba": "linear_attention", "attention": "full_attention", "deepseek_sparse_attention": "indexed_attention"}
