"""Reads a Hugging Face config.json as people have them. Three outcomes: a number, a number with its assumptions, a refusal.

Nothing here computes bytes or counts; families.py holds the rules. Source of the aliases: the attribute_map of the
configuration classes in transformers 5.24.0, and the published files of families that ran on code of their own.
"""

import json
import os

from .arguments import ArgumentError
from .families import FAMILIES
from .nearest import suggestion
from .wording import ASSUMPTIONS, REFUSALS, say

REQUIRED = object()
LARGEST = 10**8  # no field of any published architecture comes near

# canonical key -> other names of the same field.
ALIASES = {
    "hidden_size": ("n_embd", "d_model", "n_embed"),
    "num_hidden_layers": ("n_layer", "num_layers", "n_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads"),
    "num_key_value_heads": ("num_kv_heads", "n_head_kv", "n_kv_heads", "multi_query_group_num", "num_query_groups"),
    "intermediate_size": ("ffn_hidden_size", "n_inner", "ffn_dim", "d_ff"),
    "max_position_embeddings": ("n_positions", "max_seq_len", "seq_length"),
    "head_dim": ("kv_channels",),
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_local_experts": ("num_experts", "n_routed_experts"),
    "n_routed_experts": ("num_local_experts", "num_experts"),
    "num_experts_per_tok": ("num_experts_per_token", "experts_per_token", "num_selected_experts"),
    "sliding_window": ("sliding_window_size",),
    "state_size": ("d_state",),
    "conv_kernel": ("d_conv",),
    "layer_norm_epsilon": ("layer_norm_eps",),
}

TEXT_PARTS = ("text_config", "llm_config", "language_config")

# model_type of a whole, or of a nested text part, whose text is another family's.
TEXT_FAMILY = {
    "gemma3": "gemma3_text",
    "llama4": "llama4_text",
    "qwen2_vl": "qwen2",
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "mistral3": "mistral",
    "code_llama": "llama",
    "yi": "llama",
    "Yi": "llama",
}

ENCODER_DECODERS = (
    "t5", "mt5", "umt5", "longt5", "switch_transformers", "bart", "mbart", "pegasus", "marian", "blenderbot", "m2m_100", "nllb-moe", "whisper",
    "t5gemma", "led", "prophetnet", "encoder-decoder", "fsmt", "speech_to_text", "seamless_m4t",
)  # fmt: skip


class Refusal(ValueError):
    """No number: the file, the key, and what is not modelled or not given. str() is English; said(language) either."""

    def __init__(self, file, key, id, **values):
        self.file, self.key, self.id, self.values = file, key, id, values
        ValueError.__init__(self, self.said("en"))

    def said(self, language):
        colon = "：" if language == "zh" else ": "
        place = self.file + colon if self.file else ""
        if not self.key:
            return place + say(REFUSALS[self.id], language, **self.values)
        return place + self.key + (" " if language == "en" else " ") + say(REFUSALS[self.id], language, key=self.key, **self.values)


class Assumption:
    """What was taken for granted, said beside the number."""

    def __init__(self, id, **values):
        self.id, self.values = id, values

    def said(self, language):
        return say(ASSUMPTIONS[self.id], language, **self.values)

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
    assumptions = []
    outer, config, prefix = config, *_text_part(config, file, assumptions)
    family = _family(config, outer, file, prefix, assumptions)
    fields = Fields(config, file, family, assumptions, prefix, outer)
    try:
        architecture = FAMILIES[family](fields)
    except ArgumentError as error:
        raise Refusal(file, prefix + error.name, "argument", detail=str(error)) from error
    state = config.get("mamba_ssm_cache_dtype") or config.get("mamba_ssm_dtype")
    return Config(
        file, architecture, assumptions, _text(config, "dtype", "torch_dtype") or _text(outer, "dtype", "torch_dtype"),
        config.get("quantization_config") or outer.get("quantization_config"), fields.positions(), state if isinstance(state, str) else None,
        [key for key in config if key not in fields.used],
    )  # fmt: skip


def _text(config, *keys):
    for key in keys:
        if isinstance(config.get(key), str):
            return config[key].replace("torch.", "")
    return None


def _text_part(config, file, assumptions):
    """(the text configuration, the prefix of its keys)."""
    for key in TEXT_PARTS:
        if key in config and config[key] is not None:
            if not isinstance(config[key], dict):
                raise Refusal(file, key, "not_a_choice", value=_short(config[key]), known="{...}")
            assumptions.append(Assumption("text_part", key=key))
            return config[key], key + "."
    for key in ("thinker_config",):
        if isinstance(config.get(key), dict):
            inner, prefix = _text_part(config[key], file, assumptions)
            return inner, key + "." + prefix
    return config, ""


def _family(config, outer, file, prefix, assumptions):
    """The name in FAMILIES. Raises Refusal for what no rule covers."""
    stated = config.get("model_type")
    if stated is None and prefix:
        stated = outer.get("model_type")
    if outer.get("is_encoder_decoder") is True or stated in ENCODER_DECODERS:
        raise Refusal(file, "model_type", "encoder_decoder", value=_short(stated))
    if isinstance(stated, str):
        name = TEXT_FAMILY.get(stated, stated)
        if stated in TEXT_FAMILY and not prefix:
            towers = [key for key in ("vision_config", "audio_config", "vision_tower", "visual") if outer.get(key)]
            if towers:
                assumptions.append(Assumption("text_part_flat", key=", ".join(towers), value=stated))
        if name in FAMILIES:
            return name
    elif stated is not None:
        raise Refusal(file, prefix + "model_type", "not_a_choice", value=_short(stated), known=", ".join(FAMILIES))
    named = config.get("architectures") or outer.get("architectures")
    for one in named if stated is None and isinstance(named, list) else ():
        name = _by_architecture(one)
        if name:
            assumptions.append(Assumption("by_architecture", value=one, family=name))
            return name
    if stated is None:
        raise Refusal(file, prefix + "model_type", "no_model_type")
    stranger = _unlike_llama(config)
    if stranger is None:
        assumptions.append(Assumption("by_fields", value=stated))
        return "llama"
    raise Refusal(
        file, prefix + "model_type", "unknown_family", value=stated, known=", ".join(sorted(FAMILIES)),
        detail=" (%s)" % suggestion(stated, FAMILIES) if suggestion(stated, FAMILIES).startswith("did") else "",
    )  # fmt: skip


def _by_architecture(name):
    """llama for LlamaForCausalLM: the longest family whose name, without underscores, begins the class name."""
    if not isinstance(name, str):
        return None
    plain = name.lower()
    fitting = [family for family in FAMILIES if plain in (family.replace("_", "").lower() + "forcausallm", family.replace("_", "").lower() + "lmheadmodel")]
    return max(fitting, key=len) if fitting else None


# Fields of Llama's that decide the count, and those that no count and no cache depends on.
_LLAMA = (
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size", "head_dim",
    "attention_bias", "mlp_bias", "tie_word_embeddings", "rms_norm_eps", "max_position_embeddings",
)  # fmt: skip
_HARMLESS = (
    "_name_or_path", "architectures", "attention_dropout", "auto_map", "bos_token_id", "dtype", "eos_token_id", "hidden_act", "hidden_dropout", "initializer_range",
    "model_type", "pad_token_id", "pretraining_tp", "rope_parameters", "rope_scaling", "rope_theta", "torch_dtype", "transformers_version", "unk_token_id",
    "use_cache", "quantization_config", "rope_interleaved", "hidden_dropout_prob", "attention_probs_dropout_prob", "id2label", "label2id",
)  # fmt: skip


def _unlike_llama(config):
    """The first thing that keeps a configuration from being Llama's, or None."""
    for key in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "rms_norm_eps"):
        if config.get(key) is None:
            return key
    if config.get("hidden_act", "silu") not in ("silu", "swish"):
        return "hidden_act"
    return next((key for key in config if key not in _LLAMA and key not in _HARMLESS), None)


def _short(value):
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value
    return text if len(text) <= 60 else text[:57] + "..."


class Fields:
    """The fields of one configuration, as a family's rule asks for them. Everything that is assumed is noted."""

    def __init__(self, config, file, family, assumptions, prefix="", outer=None):
        self.config, self.file, self.model_type, self.assumptions, self.prefix = config, file, family, assumptions, prefix
        self.outer = config if outer is None else outer
        self.used = set(("model_type",))
        self._noted = set()

    @property
    def remote_code(self):
        return bool(self.config.get("auto_map"))

    # --- saying things

    def refuse(self, key, id, **values):
        values.setdefault("value", _short(self.config.get(key)))
        raise Refusal(self.file, self.prefix + key, id, **values)

    def note(self, id, **values):
        if (id, values.get("key")) not in self._noted:
            self._noted.add((id, values.get("key")))
            self.assumptions.append(Assumption(id, **values))

    # --- looking things up

    def has(self, key):
        return self.config.get(key) is not None

    def _lookup(self, key):
        """(name, value) of a field by any of its names, (key, None) if it is nowhere or null."""
        found = None
        for name in (key,) + ALIASES.get(key, ()):
            if name in self.config:
                self.used.add(name)
            value = self.config.get(name)
            if value is None:
                continue
            if found and found[1] != value:
                raise Refusal(self.file, self.prefix + found[0], "contradiction", value=_short(found[1]), other=name, k=_short(value))
            found = found or (name, value)
        return found or (key, None)

    def _whole(self, name, value, least, most):
        if isinstance(value, float) and value == value and abs(value) < 2**53 and value == int(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise Refusal(self.file, self.prefix + name, "not_a_size", value=_short(value), least=least, most=most)
        return value

    def size(self, key, absent=REQUIRED, least=1, most=LARGEST, quiet=False, words=()):
        """A whole number. absent: what the family's configuration class takes where there is none; quiet: not worth saying."""
        name, value = self._lookup(key)
        if value is None or value in words:
            if absent is REQUIRED and self.prefix:
                absent = self._class_default(key)
            if absent is REQUIRED:
                raise Refusal(self.file, self.prefix + key, "missing")
            if not quiet:
                self.note("absent", key=self.prefix + key, value=absent, family=self.model_type)
            return absent
        return self._whole(name, value, least, most)

    def _class_default(self, key):
        from .class_defaults import CLASS_DEFAULTS

        value = CLASS_DEFAULTS.get(self.model_type, {}).get(key, REQUIRED)
        if value is not REQUIRED:
            self.note("class_default", key=self.prefix + key, value=value, family=self.model_type)
        return value

    def optional_size(self, key, absent=None, quiet=False):
        """A whole number, or None where the configuration says null or 0. absent: what holds if the key is not there at all."""
        name, value = self._lookup(key)
        if value is None:
            names = (key,) + ALIASES.get(key, ())
            if absent is not None and not any(n in self.config for n in names):
                self.note("absent", key=self.prefix + key, value=absent, family=self.model_type)
                return absent
            return None
        return self._whole(name, value, 0, LARGEST) or None

    def flag(self, key, absent):
        """true or false; absent: the configuration class's default, taken silently, as published files leave it out."""
        self.used.add(key)
        value = self.config.get(key)
        if value is None:
            return absent
        if not isinstance(value, bool):
            raise Refusal(self.file, self.prefix + key, "not_a_flag", value=_short(value))
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
            self.note("absent", key=self.prefix + "tie_word_embeddings", value="true" if absent else "false", family=self.model_type)
            return absent
        if self.prefix and outer is not None:
            if own is not None and own != outer:
                self.note("outer_tie", key=self.prefix[:-1], value="true" if outer else "false")
            return outer
        return own

    def head_dim(self, D, a):
        """head_dim, or D / a where the configuration has none; then a must divide D."""
        name, value = self._lookup("head_dim")
        if value is not None:
            return self._whole(name, value, 1, LARGEST)
        if self.prefix:
            default = self._class_default("head_dim")
            if default is not REQUIRED and default is not None:
                return default
        return self.divided("hidden_size", D, "num_attention_heads", a)

    def divided(self, key, n, other, by):
        if n % by:
            raise Refusal(self.file, self.prefix + key, "not_divisible", value=n, other=other, k=by)
        return n // by

    def fixed(self, key, value):
        """A field that the family's rule decides: it may be there, but only with the rule's value."""
        name, given = self._lookup(key)
        if given is not None and given != value:
            raise Refusal(self.file, self.prefix + name, "contradiction", value=_short(given), other="%s" % self.model_type, k=value)

    def equal(self, what, value, other, wanted):
        if value != wanted:
            raise Refusal(self.file, self.prefix + what, "contradiction", value=value, other=other, k=wanted)

    def overruled(self, key, k, id):
        """A field that is there and does not count: the family's rule gives k, and the output says so."""
        name, value = self._lookup(key)
        if value is not None and value != k:
            self.note(id, key=self.prefix + name, value=_short(value), k=k)

    def absent_or_false(self, key):
        if self.flag(key, False):
            self.refuse(key, "not_modelled")

    def unmodelled_extra(self, key, id):
        """Layers that come on top and are not counted."""
        value = self.optional_size(key, quiet=True)
        if value:
            self.note(id, key=self.prefix + key, value=value)

    def positions(self):
        """max_position_embeddings, where it is a number."""
        try:
            return self.optional_size("max_position_embeddings")
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
        return Fields(value, self.file, self.model_type, self.assumptions, self.prefix + key + ".", self.outer)

    # --- one entry for each layer

    def _list(self, key, L, kind):
        self.used.add(key)
        value = self.config.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != L or not all(isinstance(one, kind) for one in value):
            raise Refusal(self.file, self.prefix + key, "not_a_list", value=_short(value), k=L)
        return value

    def words(self, key, L):
        return self._list(key, L, str)

    def numbers(self, key, L):
        """A list of numbers or flags, one a layer; an empty list is none."""
        if self.config.get(key) == []:
            self.used.add(key)
            return None
        return self._list(key, L, (int, float))

    def pattern(self, key, L):
        """[bool] where a key that is usually a number is a list, else None."""
        value = self.config.get(key)
        return [bool(one) for one in self.numbers(key, L)] if isinstance(value, list) else None

    KNOWN_LAYERS = ("full_attention", "sliding_attention", "chunked_attention", "linear_attention")

    def layer_types(self, L):
        types = self.words("layer_types", L)
        for kind in types or ():
            if kind not in self.KNOWN_LAYERS:
                raise Refusal(self.file, self.prefix + "layer_types", "not_a_choice", value=kind, known=", ".join(self.KNOWN_LAYERS))
        return types

    def indices(self, key, L):
        """A list of layer numbers, empty where there is none."""
        self.used.add(key)
        value = self.config.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(i, int) and not isinstance(i, bool) for i in value):
            raise Refusal(self.file, self.prefix + key, "not_a_list", value=_short(value), k=L)
        return value

    def blocks(self, key, other, letters):
        """The kind of each layer from a string such as "M-M*", or from a list of words."""
        self.used.update((key, other))
        value, listed = self.config.get(key), self.config.get(other) or self.config.get("layer_types")
        if isinstance(value, str) and value and all(letter in letters for letter in value):
            return [letters[letter] for letter in value]
        names = {"mamba": "mamba", "linear_attention": "mamba", "attention": "attention", "full_attention": "attention", "mlp": "mlp", "moe": "moe"}
        if value is None and isinstance(listed, list) and listed and all(isinstance(one, str) and one in names for one in listed):
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
                kinds += [str(kind) for kind in pattern] * min(int(times), LARGEST // 1000)
        except (TypeError, ValueError):
            kinds = []
        if len(kinds) != L or any(kind not in ("global", "local") for kind in kinds):
            self.refuse("attention_types", "not_a_list", k=L)
        return kinds
