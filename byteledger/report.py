"""What the estimator says of one model, for people and for programs: parameters, weights, KV cache."""

import json
import os
import textwrap
import unicodedata

from . import hf_config, kv_cache, one_record, parameters, quantization_config, weight_formats
from .arguments import ArgumentError
from .nearest import nearest
from .printed import amount, number

CACHE_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
STATE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class Model:
    """A model that was asked for: its name, where it was read, its configuration."""

    def __init__(self, name, place, config, record=None):
        self.name, self.place, self.config, self.record = name, place, config, record


def find(given):
    """The Model of a catalogue id, of a config.json or of the folder that holds one. Raises hf_config.Refusal.

    A path is what ends in .json, holds a slash, or exists; anything else is an id of data/models.yaml.
    """
    if given.endswith(".json") or os.sep in given or os.path.exists(given):
        return Model(os.path.basename(os.path.normpath(given)), given, hf_config.read(given))
    try:
        record = one_record.record("models", given)
    except one_record.NoRecord as error:
        known = one_record.ids("models")
        if given in known:
            raise hf_config.Refusal("", "", "argument", detail=str(error)) from error
        raise hf_config.Refusal("", "", "no_model", value=given, near=nearest(given, known)) from error
    place = "data/models.yaml " + given
    config = hf_config.from_dict(one_record.config(record), place)
    counted = parameters.total(config.architecture)
    for key, expected in (("published_parameters", counted + record.get("checkpoint_buffers", 0)), ("counted_parameters", counted)):
        if record.get(key, expected) != expected:
            raise hf_config.Refusal(place, key, "contradiction", value=record[key], other=config.architecture.model_type, k=expected)
    return Model(record["name"], place, config, record)


# --- parameters


def params(given):
    """Everything that `byteledger params` says, as a dict that JSON can hold; texts are Assumptions still."""
    model = find(given)
    architecture = model.config.architecture
    return {
        "model": model.name,
        "read_from": model.place,
        "model_type": architecture.model_type,
        "parameters": {
            "total": parameters.total(architecture),
            "active": parameters.active(architecture),
            "embedding": parameters.by_part(architecture).get("embedding", 0),
            "non_embedding": parameters.non_embedding(architecture),
            "by_part": parameters.by_part(architecture),
            "tied_embeddings": architecture.tied,
        },
        "layers": [
            {
                "count": times,
                "mixer": {"kind": layer.mixer.kind, **layer.mixer.sizes},
                "mlp": {"kind": layer.mlp.kind, **layer.mlp.sizes},
                "parameters": parameters.size(layer.tensors),
                "by_part": _layer_parts(layer),
            }
            for layer, times in architecture.layers
        ],
        "published_parameters": (model.record or {}).get("published_parameters"),
        **_weights(model),
    }


def _weights(model):
    """How the weights are stored, or why that is not known, and all assumptions. The count stands either way."""
    try:
        stored = quantization_config.from_config(model.config)
    except hf_config.Refusal as refusal:
        return {"weights": None, "weights_refused": refusal, "assumptions": list(model.config.assumptions)}
    format = one_record.record("weight_formats", stored.format)
    scales = [weight_formats.Scale(scale["bits"], scale["per"], scale.get("flat", False)) for scale in format.get("scales", ())]
    return {
        "weights": {
            "format": stored.format,
            "bytes": weight_formats.weights(model.config.architecture, format["bits"], scales, stored.keeps, stored.kept_bytes),
            "converted": weight_formats.converted(model.config.architecture, stored.keeps),
            "kept": weight_formats.kept(model.config.architecture, stored.keeps),
        },
        "weights_refused": None,
        "assumptions": list(model.config.assumptions) + stored.assumptions,
    }


def _layer_parts(layer):
    parts = {}
    for tensor in layer.tensors:
        parts[tensor.part] = parts.get(tensor.part, 0) + tensor.size
    return parts


# --- KV cache


def kv(given, context, batch, dtype, budget=None, block=1):
    """Everything that `byteledger kv` says, as params does."""
    model = find(given)
    architecture, assumptions = model.config.architecture, list(model.config.assumptions)
    b, b_state, state = CACHE_BYTES[dtype], kv_cache.B_STATE, "float32"
    if model.config.state_dtype in STATE_BYTES:
        state, b_state = model.config.state_dtype, STATE_BYTES[model.config.state_dtype]
    try:
        result = {
            "model": model.name,
            "read_from": model.place,
            "dtype": dtype,
            "context": context,
            "batch": batch,
            "bytes_per_token": kv_cache.bytes_per_token(architecture, b),
            "steady_bytes_per_token": kv_cache.steady_bytes_per_token(architecture, b),
            "fixed_bytes_per_sequence": kv_cache.fixed_bytes_per_sequence(architecture, b, b_state),
            "total_bytes": kv_cache.total(architecture, context, batch, b, b_state),
            "reserved_bytes": kv_cache.reserved(architecture, context, batch, b, b_state, block),
        }
        if budget is not None:
            result["budget_bytes"] = budget
            result["largest_batch"] = kv_cache.largest_batch(architecture, budget, context, b, b_state)
            result["largest_context"] = kv_cache.largest_context(architecture, budget, batch, b, b_state)
    except ArgumentError as error:
        if not architecture.causal:
            raise hf_config.Refusal(model.place, "model_type", "no_cache") from error
        raise hf_config.Refusal(model.place, error.name, "argument", detail=str(error)) from error
    say = hf_config.Assumption
    assumptions.append(say("cache_dtype", value=dtype.upper(), k=b))
    if dtype in ("fp8", "int8"):
        assumptions.append(say("cache_scales"))
    windows = {}
    for layer, times in architecture.layers:
        if getattr(layer.mixer, "window", None):
            windows[layer.mixer.window] = windows.get(layer.mixer.window, 0) + times
    assumptions += [say("window", value=number(window, 0), k=times) for window, times in windows.items()]
    if any(layer.mixer.kind == "latent" for layer, _ in architecture.layers):
        assumptions.append(say("latent"))
    if result["fixed_bytes_per_sequence"]:
        assumptions.append(say("state_dtype", value=state, k=b_state))
    if model.config.max_positions and context > model.config.max_positions:
        assumptions.append(say("positions", value=number(context, 0), k=number(model.config.max_positions, 0)))
    assumptions.append(say("no_engine"))
    result["assumptions"] = assumptions
    return result


# --- how it is said


def as_json(result, language, revision):
    """The result as JSON, its assumptions in words."""
    said = {**result, "assumptions": [assumption.said(language) for assumption in result["assumptions"]], "revision": str(revision)}
    if said.get("weights_refused"):
        said["weights_refused"] = said["weights_refused"].said(language)
    return json.dumps(said, ensure_ascii=False, indent=2)


def params_text(result, language, revision):
    """The result of params() as aligned lines: parts and their shares, the sum, the bytes of the weights."""
    words = one_record.Words(language)
    found, stored = result["parameters"], result["weights"]

    def share(n):
        percent = 100 * n / found["total"]
        return "<0.1%" if 0 < percent < 0.05 else number(percent, 1) + "%"

    def count(label, n, beside=""):
        return (words[label], number(n, 0), "", beside)

    rows = [count("parameters." + part, n, share(n)) for part, n in found["by_part"].items()] + [RULE]
    rows.append(count("parameters.total", found["total"]))
    if found["active"] != found["total"]:
        rows.append(count("parameters.active", found["active"], share(found["active"])))
    rows.append(count("parameters.non_embedding", found["non_embedding"], share(found["non_embedding"])))
    if result["published_parameters"]:
        more = result["published_parameters"] - found["total"]
        rows.append(count("report.published", result["published_parameters"], ("+" if more > 0 else "") + number(more, 0) if more else "="))
    rows.append(SPACE)
    if stored:
        name = one_record.record("weight_formats", stored["format"])["name"][language]
        rows.append(_bytes(bracketed(words["report.weights"], name, language), stored["bytes"]))
        if stored["format"] not in ("bf16", "fp16", "fp32"):
            rows.append(count("weight_formats.kept", stored["kept"], share(stored["kept"])))
    else:
        rows.append((words["report.weights"], "?", "", ""))
    notes = list(result["assumptions"])
    if result["weights_refused"]:
        notes.insert(0, result["weights_refused"])
    return _text(result, rows, notes, words, language, revision)


def kv_text(result, language, revision):
    """The result of kv() as aligned lines: what a token takes, what was asked, what it comes to."""
    words = one_record.Words(language)

    def small(label, n):
        return (words[label], number(n, 0), "B", _binary(n))

    rows = [small("kv_cache.bytes_per_token", result["bytes_per_token"])]
    if result["steady_bytes_per_token"] != result["bytes_per_token"]:
        rows.append(small("kv_cache.steady_bytes_per_token", result["steady_bytes_per_token"]))
    if result["fixed_bytes_per_sequence"]:
        rows.append(small("kv_cache.fixed_bytes_per_sequence", result["fixed_bytes_per_sequence"]))
    rows.append((words["report.context"], number(result["context"], 0), words["report.tokens"], ""))
    rows.append((words["report.batch"], number(result["batch"], 0), "", ""))
    rows.append(RULE)
    rows.append(_bytes(words["kv_cache.total"], result["total_bytes"]))
    if result["reserved_bytes"] != result["total_bytes"]:
        rows.append(_bytes(words["kv_cache.reserved"], result["reserved_bytes"]))
    if "budget_bytes" in result:
        rows += [SPACE, _bytes(words["report.budget"], result["budget_bytes"])]
        each, all = (words["report." + label].format(n=number(result[asked], 0)) for label, asked in (("each_of", "context"), ("batch_of", "batch")))
        rows.append((bracketed(words["kv_cache.largest_batch"], each, language), number(result["largest_batch"], 0), "", ""))
        name, longest = bracketed(words["kv_cache.largest_context"], all, language), result["largest_context"]
        rows.append((name, "—", words["report.unbounded"], "") if longest is None else (name, number(longest, 0), words["report.tokens"], ""))
    return _text(result, rows, result["assumptions"], words, language, revision)


# Rows of a text: (what, number, unit, the same in another unit or what goes with it).
RULE, SPACE = ("─", "", "", ""), ("", "", "", "")


def _bytes(name, n):
    return name, amount(n, "GB"), "GB", amount(n, "GiB") + " GiB"


def _binary(n):
    """A few bytes in KiB or MiB."""
    return number(n / 2**20, 2) + " MiB" if n >= 2**20 else number(n / 1024, 2) + " KiB"


def bracketed(name, aside, language):
    """A name with an aside, in the brackets of a language."""
    return ("%s（%s）" if language == "zh" else "%s (%s)") % (name, aside)


def _text(result, rows, notes, words, language, revision):
    first, second, third, fourth = (max(width(row[i]) for row in rows) for i in range(4))
    lines = ["%s  ·  %s" % (result["model"], result["read_from"]), ""]
    for row in rows:
        if row == RULE:
            lines.append("  " + "─" * (first + 2 + second))
            continue
        name, value, unit, beside = row
        line = left_and_right(name, value, first, second)
        line += " " + unit + " " * (third - width(unit)) + "  " + (" " * (fourth - width(beside)) + beside)
        lines.append(line.rstrip())
    return "\n".join(lines + closing([("report.assumptions", notes)], words, language, revision))


def left_and_right(name, value, first, second):
    """A line with a name on the left of a column `first` wide, and a value on the right of one `second` wide."""
    return "  " + name + " " * (first - width(name) + 2 + second - width(value)) + value


def closing(sections, words, language, revision, numbered=False):
    """The last lines of a text: what is said beside the numbers, under its headings, and the revision.

    numbered: the lines above refer to the notes of the first section by number.
    """
    lines = []
    for heading, notes in sections:
        if notes:
            marks = ["[%d]" % i for i in range(1, len(notes) + 1)] if numbered and heading == sections[0][0] else ["-"] * len(notes)
            lines += ["", words[heading]] + ["  %s %s" % (mark, note.said(language)) for mark, note in zip(marks, notes)]
    return lines + ["", "%s %s" % (words["report.revision"], revision)]


def width(text):
    """Columns that a text takes in a terminal: two for a wide character."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


# --- what there is


def listed():
    """({id: name} of the catalogue, every model_type that has a rule)."""
    return {id: record["name"] for id, record in one_record.records("models").items()}, hf_config.known_types()


def listed_json(revision):
    """listed(), for programs."""
    models, types = listed()
    return json.dumps({"models": models, "model_types": types, "revision": str(revision)}, ensure_ascii=False, indent=2)


def listed_text(language):
    """The catalogue, a model a line, and below it the families, for params --list."""
    words = one_record.Words(language)
    models, types = listed()
    wide = max(map(len, models))
    lines = [bracketed(words["report.catalogue"], len(models), language), ""] + ["  %-*s  %s" % (wide, id, name) for id, name in models.items()]
    lines += ["", bracketed(words["report.types"], len(types), language), ""]
    return "\n".join(lines + textwrap.wrap(", ".join(types), 100, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))
