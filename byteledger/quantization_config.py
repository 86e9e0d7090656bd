"""In which format a configuration says that its weights are: the id of a record of weight_formats.yaml, and what stays.

Source of the keys and their defaults: transformers, utils/quantization_config.py; compressed-tensors, config_groups;
vLLM and Model Optimizer for modelopt. Three outcomes, as in hf_config: a format, a format with assumptions, a refusal.
"""

import re

from . import hf_config, parameters, weight_formats
from .hf_config import Refusal
from .weight_formats_wording import ASSUMPTIONS

METHODS = ("awq", "bitsandbytes", "compressed-tensors", "fp8", "gptq", "modelopt", "mxfp4")
DTYPES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
# What stays by default, as in the records, besides what no format converts.
STAYS = ("embedding", "output_head", "router")
ONLY_EXPERTS = tuple(part for part in parameters.PARTS if part != "experts" and part not in weight_formats.ALWAYS_KEPT)


class Assumption(hf_config.Assumption):
    """What was taken for granted in reading a quantization_config."""

    WORDS = ASSUMPTIONS


class Stored:
    """How weights are stored. format: id in weight_formats.yaml; keeps: parts that stay, at kept_bytes; assumptions."""

    def __init__(self, format, keeps, kept_bytes, assumptions):
        self.format, self.keeps, self.kept_bytes, self.assumptions = format, keeps, kept_bytes, assumptions


def from_config(config):
    """The Stored of a hf_config.Config. Raises Refusal for a method or a setting that no record describes."""
    said = config.quantization
    if said is None:
        return _plain(config)
    if not isinstance(said, dict):
        raise Refusal(config.file, "quantization_config", "not_a_choice", value=_short(said), known="{...}")
    read = _Settings(said, config)
    method = read.method()
    format, keeps = _READERS[method](read)
    if format is None:
        return _plain(config)
    keeps = read.keeps(keeps)
    return Stored(format, keeps, read.kept_bytes(), read.assumptions)


def _plain(config):
    """The weights as the file's dtype says, or BF16."""
    assumptions = []
    if config.dtype is None:
        assumptions.append(Assumption("no_dtype"))
    dtype = config.dtype or "bfloat16"
    if dtype not in DTYPES:
        raise Refusal(config.file, "dtype", "not_a_choice", value=_short(dtype), known=", ".join(DTYPES))
    format = DTYPES[dtype]
    return Stored(format, (), 4 if format == "fp32" else 2, assumptions)


def _short(value):
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


class _Settings:
    """The settings of one quantization_config, and what is noted while they are read."""

    def __init__(self, said, config):
        self.said, self.config, self.assumptions = said, config, []
        self.skipped = None  # (key, names) of the list that says what is not converted

    def note(self, id, **values):
        self.assumptions.append(Assumption(id, **values))

    def refuse(self, key, id, **values):
        raise Refusal(self.config.file, "quantization_config." + key, id, **values)

    def method(self):
        method = self.said.get("quant_method")
        if method is None and (self.said.get("load_in_4bit") or self.said.get("load_in_8bit")):
            method = "bitsandbytes"  # files from before the key was there
        if not isinstance(method, str) or method not in METHODS:
            self.refuse("quant_method", "not_a_choice", value=_short(method), known=", ".join(METHODS))
        return method

    def choice(self, key, known, absent):
        """One of `known`, where `absent` holds if the key is not there or null."""
        given = self.said.get(key)
        value = absent if given is None else given
        # True equals 1, but says something else.
        if isinstance(value, bool) != isinstance(known[0], bool) or value not in known:
            self.refuse(key, "not_a_choice", value=_short(given), known=", ".join(map(str, known)))
        return value

    def list_of(self, *keys):
        """Takes the first of the keys that holds a list of names as what is not converted."""
        for key in keys:
            names = self.said.get(key)
            if names is None:
                continue
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                self.refuse(key, "not_a_choice", value=_short(names), known="[...]")
            self.skipped = (key, names)
            return names
        return None

    def has(self, part):
        return part in parameters.by_part(self.config.architecture)

    def kept_bytes(self):
        """Bytes of an element that stays."""
        if self.config.dtype is None:
            self.note("rest_is_bf16")
        return 4 if DTYPES.get(self.config.dtype) == "fp32" else 2

    def keeps(self, parts):
        """The parts that stay: `parts`, and those that the list of names covers whole."""
        if self.skipped is None:
            return _ordered(parts)
        key, names = self.skipped
        total, matched, unread = _match(self.config.architecture, names)
        key = "quantization_config." + key
        whole = {part for part, n in matched.items() if n == total[part]}
        for part, n in matched.items():
            if part not in whole and part not in parts:
                self.note("partly_kept", key=key, part=part, k=n)
        if self.has("router") and "router" not in whole and self.said.get("quant_method") != "mxfp4":
            self.note("router_stays", key=key)
        if unread:
            self.note("names_unread", key=key, k=len(unread), value=_short(unread[0]))
        return _ordered(set(parts) | whole)


def _ordered(parts):
    return tuple(part for part in parameters.PARTS if part in parts)


# --- the methods: (format, parts that stay), the format None where weights are not quantized


def _bitsandbytes(read):
    names = read.list_of("llm_int8_skip_modules", "modules_to_not_convert")
    four, eight = read.choice("load_in_4bit", (True, False), False), read.choice("load_in_8bit", (True, False), False)
    if four == eight:
        read.refuse("load_in_4bit", "contradiction", value=_short(four), other="load_in_8bit", k=_short(eight))
    if read.has("experts"):
        read.note("fused_experts")
    if four:
        kind = read.choice("bnb_4bit_quant_type", ("fp4", "nf4"), "fp4")
        format = kind + ("-double" if read.choice("bnb_4bit_use_double_quant", (True, False), False) else "")
    else:
        format = "int8-bitsandbytes"
    return format, _but_head(read, names)


def _but_head(read, names):
    """What stays where a list of names replaces the default: the head only if it is in the list."""
    if names is None:
        read.note("default_keeps", method=read.said.get("quant_method", "bitsandbytes"))
        return STAYS
    return tuple(part for part in STAYS if part != "output_head")


def _grouped(read, bits_keys, group_keys):
    """GPTQ and AWQ: bits and group size, under either of their names."""
    bits_key = next((key for key in bits_keys if key in read.said), bits_keys[0])
    group_key = next((key for key in group_keys if key in read.said), group_keys[0])
    bits = read.choice(bits_key, (4, 8) if "gptq" in read.said.get("quant_method", "") else (4,), 4)
    group = read.choice(group_key, (128, 64, 32) if bits == 4 else (128,), 128)
    return "int%d-g%d" % (bits, group)


def _gptq(read):
    read.list_of("modules_to_not_convert")
    format = _grouped(read, ("bits",), ("group_size",))
    if read.said.get("dynamic") or read.said.get("modules_in_block_to_quantize"):
        read.note("own_settings", key="quantization_config." + ("dynamic" if read.said.get("dynamic") else "modules_in_block_to_quantize"))
    read.note("g_idx")
    head = read.choice("lm_head", (True, False), False)
    return format, tuple(part for part in STAYS if part != "output_head" or not head)


def _awq(read):
    read.list_of("modules_to_not_convert")
    return _grouped(read, ("bits", "w_bit"), ("group_size", "q_group_size")), STAYS


def _fp8(read):
    if read.list_of("modules_to_not_convert", "ignored_layers") is None:
        read.note("default_keeps", method="fp8")
    block = read.said.get("weight_block_size")
    if block is None:
        return "fp8-tensor", STAYS
    if block != [128, 128]:
        read.refuse("weight_block_size", "not_a_choice", value=_short(block), known="[128, 128]")
    return "fp8-tile", STAYS


def _mxfp4(read):
    """transformers and vLLM convert the experts of gpt-oss and nothing else."""
    if not read.has("experts"):
        read.refuse("quant_method", "not_modelled", value="mxfp4")
    read.list_of("modules_to_not_convert")
    return "mxfp4-experts", ONLY_EXPERTS


def _compressed_tensors(read):
    names = read.list_of("ignore")
    groups = read.said.get("config_groups")
    if not isinstance(groups, dict) or not groups or not all(isinstance(group, dict) for group in groups.values()):
        read.refuse("config_groups", "not_a_choice", value=_short(groups), known="{group_0: {weights: {...}}}")
    sparsity = read.said.get("sparsity_config")
    if isinstance(sparsity, dict) and sparsity.get("format", "dense") != "dense":
        read.refuse("sparsity_config.format", "not_modelled", value=_short(sparsity.get("format")))
    formats = {_group(read, name, group.get("weights")) for name, group in groups.items()}
    if len(formats) > 1:
        read.refuse("config_groups", "not_modelled", value=_short(", ".join(sorted(map(str, formats)))))
    for name, group in groups.items():
        if group.get("targets") not in (None, ["Linear"]):
            read.note("own_settings", key="quantization_config.config_groups.%s.targets" % name)
    return formats.pop(), _but_head(read, names)


# (type, num_bits, strategy, group_size, symmetric) of compressed-tensors -> format; None: any.
_GROUPS = {
    ("float", 8, "tensor", None, True): "fp8-tensor",
    ("float", 8, "channel", None, True): "fp8-row",
    ("float", 8, "block", None, True): "fp8-tile",
    ("float", 4, "tensor_group", 16, True): "nvfp4",
    ("float", 4, "group", 32, True): "mxfp4",
    ("int", 8, "channel", None, True): "int8-row",
    ("int", 8, "group", 128, False): "int8-g128",
    **{("int", 4, "group", size, True): "int4-symmetric-g%d" % size for size in (128, 64, 32)},
    **{("int", 4, "group", size, False): "int4-g%d" % size for size in (128, 64, 32)},
}


def _group(read, name, weights):
    """The format of one entry of config_groups, None where its weights are not quantized."""
    if weights is None:
        return None
    path = "config_groups.%s.weights" % name
    if not isinstance(weights, dict):
        read.refuse(path, "not_a_choice", value=_short(weights), known="{...}")
    group = weights.get("group_size")
    strategy = weights.get("strategy") or ("group" if group else "tensor")
    if strategy == "block" and weights.get("block_structure") not in ([128, 128], "128x128"):
        read.refuse(path + ".block_structure", "not_a_choice", value=_short(weights.get("block_structure")), known="[128, 128]")
    symmetric = weights.get("symmetric", True)
    found = (weights.get("type", "int"), weights.get("num_bits"), strategy, group if "group" in str(strategy) else None, symmetric)
    try:
        return _GROUPS[found]
    except (KeyError, TypeError):
        text = "%s %s, %s %s, %s" % (found[0], found[1], found[2], found[3] or "", "symmetric" if symmetric else "asymmetric")
        read.refuse(path, "not_modelled", value=_short(text))


def _modelopt(read):
    names = read.list_of("ignore", "exclude_modules")
    if read.said.get("quantized_layers"):
        read.refuse("quantized_layers", "not_modelled", value="{...}")
    algorithm = read.choice("quant_algo", ("FP8", "NVFP4", "W4A16_NVFP4"), None)
    return "fp8-tensor" if algorithm == "FP8" else "nvfp4", _but_head(read, names)


_READERS = {
    "awq": _awq,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed_tensors,
    "fp8": _fp8,
    "gptq": _gptq,
    "modelopt": _modelopt,
    "mxfp4": _mxfp4,
}

# --- names of modules: which matrices a list of names means

LAYER = ("model.layers.%d.", "model.language_model.layers.%d.", "language_model.model.layers.%d.", "transformer.h.%d.")
PLACES = {
    "attention": ("self_attn.", "attention.", "attn."),
    "state_space": ("linear_attn.", "mamba.", "mixer."),
    "mlp": ("mlp.", "feed_forward."),
    "experts": ("mlp.experts.0.", "mlp.experts.", "block_sparse_moe.experts.0.", "feed_forward.experts."),
    "shared_experts": ("mlp.shared_experts.", "mlp.shared_expert.", "feed_forward.shared_expert."),
}
ROUTER = ("mlp.gate", "mlp.router", "block_sparse_moe.gate", "feed_forward.router")
OUTSIDE = {
    "embedding": ("model.embed_tokens", "model.language_model.embed_tokens", "transformer.wte"),
    "output_head": ("lm_head", "model.lm_head", "language_model.lm_head"),
}
# A matrix that is one here and several in a file: any of its pieces stands for it.
PIECES = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj", "query_key_value", "c_attn"),
    "gate_up_proj": ("gate_proj", "up_proj", "w1", "w3"),
    "down_proj": ("w2",),
}
# Names that mean no matrix of the text model: what stays anyway, and what is not counted.
NO_MATRIX = ("norm", "embed", "vision", "visual", "audio", "tower", "projector", "rotary", "mtp", "e_score", "sinks", "bias")
MOST_PATTERNS, LONGEST_PATTERN, MOST_WILDCARDS = 64, 200, 3


def _match(architecture, names):
    """({part: elements of its matrices}, {part: those that the names mean}, [names that mean none])."""
    literal = {name for name in names if "*" not in name and not name.startswith("re:")}
    patterns = {name: _pattern(name) for name in names if name not in literal}
    patterns = dict(list(patterns.items())[:MOST_PATTERNS])
    met, total, matched = set(), {}, {}
    for tensor, candidates in _modules(architecture):
        total[tensor.part] = total.get(tensor.part, 0) + tensor.size
        hits = set()
        for candidate in candidates:
            hits |= literal & _pieces_of(candidate)
            hits |= {name for name, pattern in patterns.items() if pattern and pattern.fullmatch(candidate)}
        if hits:
            matched[tensor.part] = matched.get(tensor.part, 0) + tensor.size
            met |= hits
    unread = [name for name in dict.fromkeys(names) if name not in met and not any(word in name.lower() for word in NO_MATRIX)]
    return total, matched, unread


def _modules(architecture):
    """(tensor, the names that its module goes by) of every matrix, layer by layer."""
    for tensor in architecture.outside:
        if tensor.part in OUTSIDE and weight_formats.is_converted(tensor, ()):
            yield tensor, OUTSIDE[tensor.part]
    number = 0
    for layer, times in architecture.layers:
        inside = [(tensor, _inside(tensor)) for tensor in layer.tensors if weight_formats.is_converted(tensor, ())]
        for i in range(number, number + times):
            for tensor, places in inside:
                yield tensor, [form % i + place for form in LAYER for place in places]
        number += times


def _inside(tensor):
    """The names of a matrix's module inside its layer."""
    if tensor.part == "router":
        return ROUTER
    leaf = tensor.name.removesuffix(".weight").split(".")[-1]
    if leaf == "shared_expert_gate":
        return ("mlp.shared_expert_gate",)
    return [place + name for place in PLACES.get(tensor.part, ("",)) for name in (leaf, *PIECES.get(leaf, ()))]


def _pieces_of(name):
    """Every run of the dotted name: a.b.c gives a, a.b, a.b.c, b, b.c and c."""
    parts = name.split(".")
    return {".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)}


def _pattern(name):
    """A name with wildcards as an expression, or None for one that is not read: only literals, alternatives and .* are.

    A glob means a module and what is inside it; re: means what begins so. A file's own expression is never run as it is:
    it could be made to take for ever.
    """
    if name.startswith("re:"):
        body = name[3:]
        if not re.fullmatch(r"\^?(?:[\w-]|\\\.|\.\*|\.|[(|)])*\$?", body):
            return None
        end = "" if body.endswith("$") else ".*"
    else:
        body, end = re.escape(name).replace(r"\*", ".*"), r"(?:\..*)?"
    if len(name) > LONGEST_PATTERN or body.count(".*") > MOST_WILDCARDS:
        return None
    try:
        return re.compile(body + end)
    except re.error:
        return None
