"""What the estimator says of a training run, for people and for programs: the door to training.estimate.

Reads the records that are named, puts the result into words, and says what it took for granted and what it does not know.
"""

import json
import math
import re
from decimal import Decimal

from . import distributed, hf_config, one_record, optimizers, report, training, units, weight_formats
from .arguments import ArgumentError
from .one_record import Named
from .printed import amount, number
from .scenario import SETTINGS, Scenario
from .step import TERMS
from .training_wording import ASSUMPTIONS, BEARS_ON, UNKNOWN

# What each term of a moment is computed by, and the page that derives it.
FORMULAS = {
    "weights": "ledger.weights",
    "master": "ledger.persistent",
    "optimizer": "optimizers.state",
    "gradients": "distributed.gradients",
    "weight_copies": "activation_profiles.saved",
    "gathered": "step.backward",
    "in_flight": "step.backward",
    "buffers": "step.loss",
    "activations": "activation_profiles.saved",
    "loss": "loss.peak",
    "temporaries": "step.backward",
}
STATES = ("weights", "gradients", "master", "optimizer")
SAVED = ("activations", "loss", "weight_copies")
# What observations hold to PyTorch's own accounting: states, unless a model is cut into pieces; what the blocks of Hugging Face
# keep; and all moments of a step under FSDP2 with these ledgers. All else is an engineering estimate.
MEASURED_STATES = (training.DDP, training.FSDP2, training.DEEPSPEED)
MEASURED_PROFILES = ("llama", "qwen3", "gpt2")
MEASURED_LEDGERS = ("fp32-adamw", "bf16-pure-adamw")
SAFE_SHARE = 0.8  # Fujii et al. 2024: no run whose estimate stayed under 80 % of the device ran out of memory


class Assumption(hf_config.Assumption):
    """What an estimate takes for granted."""

    WORDS = ASSUMPTIONS


class Unknown(hf_config.Assumption):
    """A term that has no model."""

    WORDS = UNKNOWN


def find(file, id):
    """The Named record of an id. Raises hf_config.Refusal that names the file."""
    try:
        return Named(id, one_record.record(file, id))
    except one_record.NoRecord as error:
        raise hf_config.Refusal("data/%s.yaml" % file, "", "argument", detail=str(error)) from error


def scenario(ledger, strategy, base_format=None, **given):
    """A Scenario from ids and settings."""
    if base_format in (None, "bf16", "fp16"):
        format = None
    else:
        format = find("weight_formats", base_format)
        format.scales = [weight_formats.Scale(scale["bits"], scale["per"], scale.get("flat", False)) for scale in format.scales or ()]
        format.keeps, format.kept_bytes = format.keeps or [], format.kept_bytes or 2
    found = find("strategies", strategy)
    found.divides_over = found.divides_over or "world"
    return Scenario(find("ledgers", ledger), found, format, **given)


def estimate(model, ledger="bf16-adamw", strategy="ddp", accelerator=None, base_format=None, **given):
    """Everything that `byteledger estimate` says, as a dict that JSON can hold; texts are Assumptions still.

    model: an id of data/models.yaml, a config.json or its folder, or a bare count such as 70B. Raises hf_config.Refusal and
    ArgumentError.
    """
    settings = scenario(ledger, strategy, base_format, **given)
    device = find("accelerators", accelerator) if accelerator else None
    parameters = _count(model)
    if parameters:
        result = _of_count(model, parameters, settings)
    else:
        found = report.find(model)
        result = _of_model(found, settings)
    result["scenario"] = {
        "ledger": ledger, "strategy": strategy, "base_format": base_format or "bf16", "ranks": settings.world,
        **{name: getattr(settings, name) for name in SETTINGS},
    }  # fmt: skip
    result["runtime"] = [{**term, "id": id} for id, term in one_record.records("runtime_terms").items()]
    result["accelerator"] = _fits(device, result) if device else None
    result["unknown"].append(Unknown("fragmentation"))
    return result


def _count(model):
    """The number of a bare count, 70B or 7_000_000_000 or 1.5T, else None. K, M, B, T are powers of 1,000 here."""
    match = re.fullmatch(r"([0-9][0-9_,]*(?:\.[0-9]+)?)([KMBT]?)", model)
    if not match:
        return None
    n = Decimal(re.sub("[_,]", "", match[1])) * {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}[match[2]]
    return int(n) if n == int(n) and n >= 1 else None


def _of_model(found, settings):
    architecture = found.config.architecture
    if not architecture.causal:
        raise hf_config.Refusal(found.place, "model_type", "argument", detail="%s is an encoder; only causal models have a training step here" % architecture.model_type)
    run = training.estimate(architecture, settings)
    worst = run.worst
    notes = list(found.config.assumptions) + [Assumption(id, **values) for id, values in run.assumptions]
    if run.profile:
        notes.append(Assumption("profile", value=run.profile, attention=settings.attention, precision=run.precision))
    if len(run.ranks) > 1:
        notes.append(Assumption("worst_rank", value=worst.stage))
    notes.append(Assumption("allocated"))
    missing = [Unknown(id, **values) for id, values in run.unknown]
    known = {id for id, _ in run.unknown}
    return {
        "model": found.name,
        "read_from": found.place,
        "parameters": {"computed_by_rank": worst.share.elements, "tensors": worst.share.tensors},
        "per_rank": _per_rank(worst, known),
        "moments": {moment: {**terms, "total": sum(terms.values())} for moment, terms in worst.moments.items()},
        "peak": {"phase": worst.phase, "bytes": worst.peak, "at_least": bool(known & {"activations", "loss", "backward"}), "stage": worst.stage, "layer": worst.step.layer if worst.phase == "backward" else None},
        "ranks": _ranks(run, known) or _uneven(run, architecture, settings, known),
        "host_bytes": run.host_bytes,
        "moved_per_step": run.moved,
        "terms": _terms(settings, run, worst, notes),
        "assumptions": notes,
        "unknown": missing,
    }


def _per_rank(rank, known):
    """{term: the most bytes that it takes in a step}, None where it has no model."""
    most = rank.most()
    most["gradients"] = max(most.get("gradients", 0), math.ceil(rank.step.gradients()))
    if "activations" in known:
        most["activations"] = most["loss"] = None
    return {term: most.get(term, 0) for term in TERMS}


def _ranks(run, known):
    """A pipeline stage each, where they differ."""
    return [_rank("stage", rank.stage, rank, known) for rank in run.ranks] if len(run.ranks) > 1 else []


def _uneven(run, architecture, settings, known):
    """The first and the last rank that share a state, where FSDP2's rows do not divide: the last may have no rows to keep moments for."""
    d = run.degree
    if settings.strategy.framework != training.FSDP2 or all(tensor.shape[0] % d == 0 for tensor, _ in optimizers.in_order(architecture)):
        return []
    last = training.estimate(architecture, settings, d - 1).worst
    return [_rank("rank", 0, run.worst, known), _rank("rank", d - 1, last, known)] if last.most() != run.worst.most() else []


def _rank(name, number, rank, known):
    return {name: number, "parameters": rank.share.elements, "per_rank": _per_rank(rank, known), "peak": {"phase": rank.phase, "bytes": rank.peak}}


def _terms(settings, run, worst, notes):
    """Each term with its formula, its evidence tag, and the numbers of the notes that bear on it, counted from 1."""
    return [
        {
            "term": term, "formula": FORMULAS[term], "evidence": "measured" if _is_measured(term, settings, run) else "estimate",
            "assumptions": [number for number, note in enumerate(notes, 1) if term in BEARS_ON.get(note.id, ())],
        }
        for term, n in worst.most().items() if n
    ]  # fmt: skip


def _is_measured(term, settings, run):
    """Whether observations of this kind of run, on unseen shapes too, gave the term to the byte or nearly so."""
    if settings.lora_rank or settings.tp > 1 or settings.pp > 1 or settings.ep > 1 or settings.offload != "none":
        return False
    if term in STATES:
        return settings.strategy.framework in MEASURED_STATES and not settings.paged
    if term in SAVED:
        return run.profile in MEASURED_PROFILES and settings.loss == "fp32" and not settings.fp8_copies
    return run.profile in MEASURED_PROFILES and settings.strategy.framework == training.FSDP2 and settings.ledger.id in MEASURED_LEDGERS


def _of_count(model, N, settings):
    """Only what follows from a count: states, divided evenly over the ranks that share them."""
    ledger, strategy = settings.ledger, settings.strategy
    for name in ("tp", "pp", "ep", "lora_rank", "offload"):
        if getattr(settings, name) not in (1, None, "none"):
            raise ArgumentError(name, getattr(settings, name), "a bare count does not tell which tensors there are; give a model or a config.json")
    if strategy.shards is None:
        raise ArgumentError("strategy", strategy.id, "has no model of its own")
    d = settings.dp * settings.cp // (settings.replicas or 1)
    shards = tuple(strategy.shards)
    per_rank = dict.fromkeys(TERMS)
    per_rank["weights"] = math.ceil(distributed.weights(N, ledger.weights, shards, d))
    per_rank["gradients"] = math.ceil(distributed.gradients(N, ledger.gradients, shards, d))
    per_rank["master"] = math.ceil(distributed.optimizer(N, ledger.master_weights, 0, 0, shards, d))
    per_rank["optimizer"] = math.ceil(distributed.optimizer(N, 0, ledger.first_moment, ledger.second_moment, shards, d))
    states = {term: per_rank[term] for term in ("weights", "gradients", "master", "optimizer")}
    return {
        "model": model,
        "read_from": "",
        "parameters": {"computed_by_rank": N, "tensors": None},
        "per_rank": per_rank,
        "moments": {"optimizer": {**states, "total": sum(states.values())}},
        "peak": {"phase": "optimizer", "bytes": sum(states.values()), "at_least": True, "stage": 0, "layer": None},
        "ranks": [],
        "host_bytes": 0,
        "moved_per_step": {},
        "terms": [{"term": term, "formula": "distributed.persistent", "evidence": "estimate", "assumptions": [1]} for term in states],
        "assumptions": [Assumption("no_model")],
        "unknown": [Unknown("activations", detail=model), Unknown("loss"), Unknown("gathered"), Unknown("temporaries")],
    }



def _fits(device, result):
    """The device's memory and what the estimate says about it, by the rule of Fujii et al."""
    reported = device.reported_mib
    capacity = int(reported * units.MiB) if reported else units.from_gb(device.memory_gb)
    peak, at_least = result["peak"]["bytes"], result["peak"]["at_least"]
    if peak > capacity:
        verdict = "too_large"
    elif at_least:
        verdict = "unknown"
    else:
        verdict = "fits" if peak <= SAFE_SHARE * capacity else "tight"
    return {
        "id": device.id, "name": device.name, "bytes": int(capacity), "reported_by_driver": bool(reported), "share": peak / capacity,
        "safe_share": SAFE_SHARE, "verdict": verdict,
    }  # fmt: skip


# --- how it is said


def _stands_on(term, words):
    """What a term stands on: its evidence tag, its formula, and the notes below that bear on it."""
    if term is None:
        return ""
    notes = "".join("[%d]" % number for number in term["assumptions"])
    return "%s · %s%s" % (words["estimate.tag." + term["evidence"]], term["formula"], " " + notes if notes else "")


def as_json(result, language, revision):
    """The result as JSON, its notes in words."""
    said = {
        **result,
        "assumptions": [note.said(language) for note in result["assumptions"]],
        "unknown": [note.said(language) for note in result["unknown"]],
        "revision": str(revision),
    }
    return json.dumps(said, ensure_ascii=False, indent=2)


def text(result, language, revision):
    """The result as aligned lines: states, moments with the peak marked, runtime terms, device, assumptions, unknowns."""
    words = one_record.Words(language)

    def row(name, n, aside=""):
        return (name, "?", aside) if n is None else (name, amount(n, "GB") + " GB", amount(n, "GiB") + " GiB" + aside)

    scenario = result["scenario"]
    lines = ["%s%s" % (result["model"], " (%s)" % result["read_from"] if result["read_from"] else "")]
    lines.append("%s · %s · %s %s · %s %s × %s" % (scenario["ledger"], scenario["strategy"], number(scenario["ranks"], 0), words["estimate.ranks" if scenario["ranks"] > 1 else "estimate.rank"], words["estimate.micro_batch"], number(scenario["micro_batch"], 0), number(scenario["sequence"], 0)))
    rows = [(words["estimate.most"], "", "")]
    of = {term["term"]: term for term in result["terms"]}
    rows += [row("  " + words["estimate." + term], n, "  " + _stands_on(of.get(term), words)) for term, n in result["per_rank"].items() if n or n is None]
    rows.append(("", "", ""))
    rows.append((words["estimate.moments"], "", ""))
    peak = result["peak"]
    for moment, terms in result["moments"].items():
        mark = "  ← " + words["estimate.at_least" if peak["at_least"] else "estimate.peak"] if moment == peak["phase"] else ""
        rows.append(row("  " + words["estimate.moment." + moment], terms["total"], mark))
    for rank in result["ranks"]:
        name = "%s %d" % (words["estimate.stage"], rank["stage"]) if "stage" in rank else "rank %d" % rank["rank"]
        rows.append(row("  " + name, rank["peak"]["bytes"], "  " + words["estimate.moment." + rank["peak"]["phase"]]))
    if result["host_bytes"]:
        rows.append(row(words["estimate.host"], result["host_bytes"]))
    for what, n in result["moved_per_step"].items():
        rows.append(row(words["estimate.moved." + what], n))
    rows.append(("", "", ""))
    rows.append((words["estimate.runtime"], "", ""))
    for term in result["runtime"]:
        rows.append(("  " + term["name"][language], "%s–%s %s" % (number(term["low"], 2), number(term["high"], 2), words["estimate.percent_of_device"] if "%" in term["unit"] else term["unit"]), ""))
    device = result["accelerator"]
    if device:
        rows.append(("", "", ""))
        rows.append(row(device["name"], device["bytes"], "  " + words["estimate.reported" if device["reported_by_driver"] else "estimate.marketed"]))
        rows.append(("  " + words["estimate.share"], number(100 * device["share"], 1) + " %", words["estimate.verdict." + device["verdict"]]))
    first, second = (max(report.width(cells[i]) for cells in rows) for i in range(2))
    lines.append("")
    for name, value, other in rows:
        lines.append((report.left_and_right(name, value, first, second) + ("    " + other if other else "")).rstrip())
    sections = [("report.assumptions", result["assumptions"]), ("estimate.unknown", result["unknown"])]
    return "\n".join(lines + report.closing(sections, words, language, revision, numbered=True))

