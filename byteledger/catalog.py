"""data/ as records: the only module that opens its files.

`load()` reads, checks and crosses everything, and raises DataError with all faults at once.
"""

from copy import copy
from functools import lru_cache, partial
from pathlib import Path

from pydantic import ValidationError

from . import hf_config, observation_checks, observed, parameters, published, quantities, scenario, strict_yaml, tables, training
from .arguments import ArgumentError
from .nearest import suggestion
from .one_record import Named
from .records import FILES

DATA = Path(__file__).resolve().parent.parent / "data"


class Fault:
    """One thing that is wrong: where, what was found, and what would be right."""

    def __init__(self, file, line, id, finding, cure):
        self.file, self.line, self.id, self.finding, self.cure = file, line, id, finding, cure

    def __str__(self):
        return "%s:%d%s: %s; %s" % (self.file, self.line, " " + self.id if self.id else "", self.finding, self.cure)


class DataError(ValueError):
    """Every fault of data/ in one message."""

    def __init__(self, faults):
        self.faults = sorted(faults, key=lambda fault: (fault.file, fault.line, str(fault)))
        ValueError.__init__(self, "\n".join(map(str, self.faults)))


class UnknownId(KeyError):
    """An id that no record has. The message names the file and the nearest ids."""

    def __init__(self, file, id, known):
        self.file, self.id = file, id
        self.message = "no %r in data/%s.yaml; %s" % (id, file, suggestion(id, known))
        KeyError.__init__(self, self.message)

    def __str__(self):
        return self.message


class Records(dict):
    """The records of one file by id; a lookup that fails says so in words."""

    def __init__(self, file, records):
        dict.__init__(self, records)
        self.file = file

    def __missing__(self, id):
        raise UnknownId(self.file, id, self)


# What a check of many edits, and the second language of a build, need not do again. A record that is written as before is the
# very same object again, so what was worked out of it holds.
_RECORDS = {}  # (file, id): the fields as they were read, and the record of them
_WORKED_OUT = {}  # (what, id): the records behind it, and what was worked out of them
_FITTING = {}  # a model's record that gives what was published and what was counted
_HOLDING = {}  # an observation that nothing is wrong with, and the record of its model
_LOADED = {}  # the files that were loaded last and are sound, and a Catalog of them


def _worked_out(key, behind, work):
    """work(), or what it gave for the very same records behind it."""
    kept = _WORKED_OUT.get(key)
    if kept is None or any(a is not b for a, b in zip(kept[0], behind)):
        kept = _WORKED_OUT[key] = behind, work()
    return kept[1]


class Catalog:
    """The checked data: one attribute for each file of data/, a dict of records by id.

    source(file, id) gives a record as it is written, with the number of its first line.
    """

    def __init__(self, records, texts, positions):
        for file in FILES:
            setattr(self, file, Records(file, records[file]))
        self._read, self._texts, self._positions = records, texts, positions
        self.cells = {}  # published.Cell of each figure that was asked for
        self._comparisons = None
        self.unsound = set()  # observations that a check has found to be wrong: they are compared with nothing

    def again(self):
        """Another Catalog of the same records."""
        return Catalog(self._read, self._texts, self._positions)

    def read(self, file):
        """The records of a file as they were read: the very same object for a file that did not change."""
        return self._read[file]

    def config(self, id):
        """What a model's record says as a configuration: hf_config.Config. Raises hf_config.Refusal."""
        record = self.models[id]
        return _worked_out(("config", id), (record,), lambda: hf_config.from_dict(record.config(), "data/models.yaml " + id))

    def architecture(self, id):
        """A model's Architecture. Raises ArgumentError, as a formula would."""
        try:
            return self.config(id).architecture
        except hf_config.Refusal as refusal:
            raise ArgumentError("model", id, str(refusal)) from refusal

    def run(self, id):
        """The training.Estimate of a record of runs.yaml, worked out once. Raises ArgumentError, as a formula would."""
        run = self.runs[id]
        return _worked_out(("run", id), self._behind(run), lambda: training.estimate(self.architecture(run.model), self._scenario(run)))

    def _behind(self, run):
        """The records that a run's estimate is worked out of."""
        formats = getattr(run, "base_format", None)
        return run, self.models[run.model], self.ledgers[run.ledger], self.strategies[run.strategy], formats and self.weight_formats[formats]

    def _scenario(self, run):
        formats = getattr(run, "base_format", None)
        return scenario.Scenario(
            Named.of(self.ledgers, run.ledger), Named.of(self.strategies, run.strategy), formats and Named.of(self.weight_formats, formats), **run.settings
        )

    def published_estimate(self, id):
        """Bytes that the estimator gives for a record of published_measurements.yaml. Raises ArgumentError, as a formula would."""
        record = self.published_measurements[id]
        value, _ = self._of_run(id, "run")
        return value - self._of_run(id, "less")[0] if record.less else value

    def published_floor(self, id):
        """Whether that estimate is a floor."""
        return self._of_run(id, "run")[1]

    def _of_run(self, id, part):
        """observed.of_run() of one run of a published measurement."""
        record = self.published_measurements[id]
        run = getattr(record, part)

        def work():
            try:
                architecture = hf_config.from_dict({**self.models[run.model].config(), **run.fields}, "data/models.yaml " + run.model).architecture
            except hf_config.Refusal as refusal:
                raise ArgumentError("fields", run.model, str(refusal)) from refusal
            return observed.of_run(training.estimate(architecture, self._scenario(run)), record.compared, record.stage)

        return _worked_out(("published", part, id), (record, *self._behind(run)), work)

    @property
    def comparisons(self):
        """{OBSERVATION.KIND: observed.Comparison} of all observations, the largest difference first."""
        if self._comparisons is None:
            found = [one for id in self.observations if id not in self.unsound for one in self._compared(id)]
            self._comparisons = Records("observations", observed.together(found, self.comparison_groups, self.differences))
        return self._comparisons

    def _compared(self, id):
        """Its Comparisons, copies of what was worked out, as together() gives each of them a group and a cause."""
        record = self.observations[id]
        behind = record, self.models.get(record.model), *map(self.ledgers.get, observed.LEDGERS), *map(self.strategies.get, observed.STRATEGIES)
        try:
            found = _worked_out(("compared", id), behind, lambda: observed.comparisons(id, record, self.models, self.ledgers, self.strategies))
        except hf_config.Refusal as refusal:
            raise ArgumentError("observations", id, str(refusal)) from refusal
        return map(copy, found)

    def spread(self, group):
        """The observed.Spread of a group's comparisons."""
        return observed.Spread([one for one in self.comparisons.values() if one.group == group])

    def source(self, file, id):
        """(line, YAML) of a record."""
        ids = list(getattr(self, file))
        lines = self._texts[file].split("\n")
        first = self._positions[file].line((id,))
        following = ids[ids.index(id) + 1 :]
        end = self._positions[file].line((following[0],)) - 1 if following else len(lines)
        text = lines[first - 1 : end]
        while text and (not text[-1].strip() or text[-1].startswith("#")):
            text.pop()  # a comment before the next record belongs to that one
        return first, "\n".join(text)

    def chapter_of_claim(self, id):
        """The id of the chapter on whose page a claim stands."""
        prefix = id.split(".")[0]
        for chapter, record in self.chapters.items():
            if prefix in record.claims:
                return chapter
        raise UnknownId("chapters", prefix, [p for record in self.chapters.values() for p in record.claims])


def load(directory=DATA):
    """The Catalog of a data directory. Raises DataError, which lists every fault.

    Sound data that did not change is not checked again: a build asks several times, and so does every test module. Each time
    gives a Catalog of its own, so that what one does to it no other sees.
    """
    written = {path.name: path.read_bytes() for path in Path(directory).glob("*.y*ml")}
    if _LOADED.get("written") != written:
        catalog, faults = examine(directory)
        if faults:
            raise DataError(faults)
        _LOADED.update(written=written, catalog=catalog)
    return _LOADED["catalog"].again()


def examine(directory=DATA):
    """(Catalog or None, faults): None where a file could not be made into records."""
    directory = Path(directory)
    faults, records, texts, positions, left_out = [], {}, {}, {}, set()
    for stray in sorted(directory.glob("*.y*ml")):
        if stray.suffix != ".yaml" or stray.stem not in FILES:
            faults.append(Fault(_shown(stray), 1, "", "unknown file", suggestion(stray.stem, FILES)))
    for file in FILES:
        path = directory / (file + ".yaml")
        if path.is_file():
            content = path.read_bytes()
            records[file], positions[file], found, absent = _read(file, content)
            texts[file] = content.decode("utf-8-sig", "replace")
        else:
            records[file], positions[file], absent = {}, strict_yaml.Position({}), {None}
            found = [Fault(_shown(path), 1, "", "the file is missing", "restore it")]
        faults.extend(found)
        left_out |= {(file, id) for id in absent}
    catalog = Catalog(records, texts, positions)
    faults.extend(_cross(catalog, positions, left_out))
    return (None if faults else catalog), faults


def _shown(path):
    return "data/" + path.name


@lru_cache(maxsize=64)  # both languages of a build, and a check of many edits, read most files unchanged
def _read(file, content):
    """(records by id, Position, faults, left out) of the content of one file.

    A record with a fault is left out, and its id noted, so that nothing else is blamed for its absence; None is noted
    where nothing could be read.
    """
    shown, record, faults, left_out, result = "data/%s.yaml" % file, FILES[file], [], set(), {}
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        return {}, strict_yaml.Position({}), [Fault(shown, 1, "", "not UTF-8 at byte %d" % error.start, "save it as UTF-8")], {None}
    value, position, found = strict_yaml.load(text)
    for line, where, finding, cure in found:
        faults.append(Fault(shown, line, str(where[0]) if where else "", finding, cure))
    told = {where for _, where, _, _ in found}
    if not isinstance(value, dict):
        if value is not None:
            faults.append(Fault(shown, 1, "", "the file holds no records", "begin each with its id and a colon"))
        return {}, position, faults, {None}
    for id, fields in value.items():
        if not _is_id(id):
            faults.append(Fault(shown, position.line((id,)), id, "an id may hold only A-Z a-z 0-9 . _ -", "rename it"))
        if not isinstance(fields, dict):
            left_out.add(id)
            if (id,) not in told:
                faults.append(Fault(shown, position.line((id,)), id, "a record has fields", "give it %s" % ", ".join(record.model_fields)))
            continue
        try:
            result[id] = _record(file, id, fields)
        except ValidationError as error:
            left_out.add(id)
            faults.extend(
                _problem(shown, id, record, problem, position) for problem in error.errors() if (id, *problem["loc"]) not in told
            )
    return result, position, faults, left_out


def _record(file, id, fields):
    """The record of these fields. Raises ValidationError."""
    written = repr(fields)  # not the fields themselves, for which 1 and true are equal
    kept = _RECORDS.get((file, id))
    if kept is None or kept[0] != written:
        kept = _RECORDS[file, id] = written, FILES[file].model_validate(fields)
    return kept[1]


def _is_id(id):
    return isinstance(id, str) and 0 < len(id) <= 64 and all(c.isascii() and (c.isalnum() or c in "._-") for c in id) and id[0].isalnum() and id[-1].isalnum()


def _problem(shown, id, record, problem, position):
    # Pydantic names the branch of a union inside the path; what is no key of the file is left out.
    loc = []
    for part in problem["loc"]:
        if position.has((id, *loc, part)):
            loc.append(part)
    if problem["type"] == "missing":
        loc.append(problem["loc"][-1])
    line = position.line((id, *loc))
    where = ".".join(map(str, loc))
    kind, context, found = problem["type"], problem.get("ctx", {}), problem.get("input")
    if kind == "extra_forbidden":
        fields = _fields(record, loc[:-1])
        return Fault(shown, line, id, "unknown key %r" % where, suggestion(loc[-1], fields))
    if kind == "missing":
        return Fault(shown, position.line((id,)), id, "missing key %r" % where, "add it")
    if kind == "literal_error":
        return Fault(shown, line, id, "%s is %r" % (where, found), "must be %s" % context["expected"])
    if kind == "string_pattern_mismatch":
        return Fault(shown, line, id, "%s is %r" % (where, found), "must match %s" % context["pattern"])
    return Fault(shown, line, id, "%s is %r" % (where, found), problem["msg"][0].lower() + problem["msg"][1:])


def _fields(record, loc):
    model = record
    for part in loc:
        annotation = getattr(model, "model_fields", {}).get(part)
        annotation = annotation and annotation.annotation
        candidates = [annotation, *getattr(annotation, "__args__", ())]
        model = next((c for c in candidates if hasattr(c, "model_fields")), record)
    return list(model.model_fields)


def _cross(catalog, positions, left_out):
    """What no record can know alone: ids that point nowhere, claims without what their tag needs, tables that cannot be."""
    faults = []

    def absent(file, id):
        return (file, id) in left_out or (file, None) in left_out

    def report(file, id, path, finding, cure):
        faults.append(Fault("data/%s.yaml" % file, positions[file].line((id, *path)), id, finding, cure))

    kinds = {}
    for id, term in catalog.terms.items():
        kinds.setdefault(term.kind, []).append(id)

    def refers(file, id, path, target, to, kind=None):
        known = kinds.get(kind, ()) if kind else getattr(catalog, to)
        if target not in known:
            if absent(to, target):
                return
            report(file, id, path, "no %r in data/%s.yaml%s" % (target, to, " of kind " + kind if kind else ""), suggestion(target, known))

    def can_be(file, id, evaluate):
        """Whether it gives a result; reports why not."""
        try:
            evaluate()
            return True
        except UnknownId as error:
            if not absent(error.file, error.id):
                report(file, id, (), str(error), "correct it")
        except ArgumentError as error:
            if not left_out:
                report(file, id, (), str(error), "correct it")
        return False

    used = set()
    for file, model in FILES.items():
        lists = [key for key in ("source", "references") if key in model.model_fields]
        for id, record in getattr(catalog, file).items():
            for key in lists:
                for number, reference in enumerate(getattr(record, key)):
                    refers(file, id, (key, number), reference, "references")
                    used.add(reference)
            if "claim" in model.model_fields and record.claim:
                refers(file, id, ("claim",), record.claim, "claims")
    for id in catalog.references:
        if id not in used and not left_out:
            report("references", id, (), "no record and no claim uses it", "cite it, or remove it")
    _cross_claims(catalog, partial(report, "claims"), partial(refers, "claims"), any(file == "chapters" for file, _ in left_out))
    _cross_terms(catalog, partial(report, "terms"))
    for id, state in catalog.states.items():
        for number, dtype in enumerate(state.formats):
            refers("states", id, ("formats", number), dtype, "dtypes")
    for id, formula in catalog.formulas.items():
        refers("formulas", id, ("chapter",), formula.chapter, "chapters")
        if formula.computes and formula.computes not in quantities.FUNCTIONS:
            report("formulas", id, ("computes",), "no function %r in byteledger" % formula.computes, suggestion(formula.computes, quantities.FUNCTIONS))
    for id, recipe in catalog.recipes.items():
        for key, to in (("model", "models"), ("ledger", "ledgers"), ("adapters", "adapters"), ("weight_format", "weight_formats")):
            refers("recipes", id, (key,), getattr(recipe, key), to)
    for id, run in catalog.runs.items():
        for key, to in (("model", "models"), ("ledger", "ledgers"), ("strategy", "strategies")):
            refers("runs", id, (key,), getattr(run, key), to)
        can_be("runs", id, partial(catalog.run, id))
    for id, strategy in catalog.strategies.items():
        if (strategy.shards is None) == (strategy.not_modelled is None):
            report("strategies", id, (), "needs exactly one of 'shards' and 'not_modelled'", "say what it shards, or why there is no model")
    for id, model in catalog.models.items():
        if _FITTING.get(id) is not model:
            told = len(faults)
            if not _cross_model(catalog, id, model, partial(report, "models")):
                left_out.add(("models", id))
            elif len(faults) == told:
                _FITTING[id] = model
    for id, observation in catalog.observations.items():
        if observation.model is not None:
            refers("observations", id, ("model",), observation.model, "models")
        if observation.model is None or observation.model in catalog.models:
            behind = observation, catalog.models.get(observation.model)
            if any(a is not b for a, b in zip(_HOLDING.get(id, (None, None)), behind)):
                found = list(observation_checks.faults(observation, catalog.models))
                for key, finding, cure in found:
                    report("observations", id, (key,) if key else (), finding, cure)
                if found:
                    catalog.unsound.add(id)
                    left_out.add(("observations", id))
                else:
                    _HOLDING[id] = behind
    for id, measurement in catalog.published_measurements.items():
        for part in ("run", "less"):
            run = getattr(measurement, part)
            for key, to in (("model", "models"), ("ledger", "ledgers"), ("strategy", "strategies"), ("base_format", "weight_formats")):
                if run and getattr(run, key):
                    refers("published_measurements", id, (part, key), getattr(run, key), to)
        can_be("published_measurements", id, partial(catalog.published_estimate, id))
    if not left_out and not faults:
        for id, record in catalog.differences.items():
            explained = [one for one in catalog.comparisons.values() if one.cause == id]
            for number, pattern in enumerate(record.explains):
                if not any(observed.fnmatchcase(one.id, pattern) for one in explained):
                    report("differences", id, ("explains", number), "%r explains no difference of at most %s %%" % (pattern, record.within_percent), "correct it, or remove it: what it explained is gone")
    for file in published.AXES.values():
        for id, record in getattr(catalog, file).items():
            for key, cell in record.cells.items():
                if cell.cause:
                    refers(file, id, ("cells", key, "cause"), cell.cause, "terms", "cause")
            for path, finding, cure in published.faults(catalog, file, id, record) if not left_out else ():
                report(file, id, path, finding, cure)
    for id, figure in catalog.figures.items():
        if (figure.quantity is None) == (figure.tex is None):
            report("figures", id, (), "needs exactly one of 'quantity' and 'tex'", "name the quantity, or print the growth law")
        elif figure.quantity:
            can_be("figures", id, partial(quantities.evaluate, catalog, figure.quantity, figure.selection))
    for id in catalog.tables:
        can_be("tables", id, partial(tables.evaluate, catalog, id))
    return faults


def _cross_model(catalog, id, model, report):
    """A model's fields are its family's, and give what was published and what was counted. False: there is no model to count."""
    try:
        config = catalog.config(id)
    except hf_config.Refusal as refusal:
        key = refusal.key.split(".")[-1]
        report(id, (key,) if key in type(model).model_fields else (), str(refusal), "correct it, or leave the model out")
        return False
    for assumption in config.assumptions:
        if assumption.id in ("absent", "by_fields", "by_architecture"):
            report(id, (), str(assumption), "write the field down: a record leaves nothing to be assumed")
    for key in config.unused:
        report(id, (key,), "%s has no use for %r" % (model.model_type, key), "remove it, or correct its name; a field that nothing reads misleads")
    counted = parameters.total(config.architecture)
    if model.published_parameters is not None and counted + model.checkpoint_buffers != model.published_parameters:
        report(
            id, ("published_parameters",),
            "published_parameters is %d, but the fields give %d" % (model.published_parameters, counted + model.checkpoint_buffers),
            "check the fields against the model's config.json",
        )  # fmt: skip
    if model.counted_parameters is not None and counted != model.counted_parameters:
        report(id, ("counted_parameters",), "counted_parameters is %d, but the fields give %d" % (model.counted_parameters, counted), "count again, or correct the fields")
    if (model.published_parameters is None) != (model.published_seen is None):
        report(id, (), "published_parameters and published_seen belong together", "give both, or neither")
    return True


def _cross_claims(catalog, report, refers, chapters_left_out):
    prefixes = [prefix for chapter in catalog.chapters.values() for prefix in chapter.claims]
    needs = {
        "docx": ("chapter_of_source", "the chapter of the source document"),
        "external": ("references", "one or more references"),
        "limit": ("settled_by", "what would settle it"),
        "measured": ("references", "the source of the measurement"),
    }
    for id, claim in catalog.claims.items():
        if id.split(".")[0] not in prefixes and not chapters_left_out:
            report(id, (), "no chapter takes claims that begin with %r" % id.split(".")[0], suggestion(id.split(".")[0], prefixes))
        if claim.tag == "estimate":
            if not claim.rests_on and not claim.basis:
                report(id, (), "an estimate needs 'rests_on' or 'basis'", "name its formulas, or what it rests on")
        elif not getattr(claim, needs[claim.tag][0]):
            report(id, (), "tag %s needs %r" % (claim.tag, needs[claim.tag][0]), "give %s" % needs[claim.tag][1])
        for key, file in (("observations", "observations"), ("comparisons", "comparison_groups")):
            for number, measured in enumerate(getattr(claim, key)):
                refers(id, (key, number), measured, file)
        for number, formula in enumerate(claim.rests_on):
            refers(id, ("rests_on", number), formula, "formulas")
        for key, kind in (("basis", "basis"), ("settled_by", "settles"), ("chapter_of_source", "chapter-of-source")):
            if getattr(claim, key):
                refers(id, (key,), getattr(claim, key), "terms", kind)


def _cross_terms(catalog, report):
    symbols = {}
    for id, term in catalog.terms.items():
        if term.symbol:
            if term.symbol in symbols:
                report(id, ("symbol",), "symbol %r is taken by %r" % (term.symbol, symbols[term.symbol]), "choose another")
            symbols[term.symbol] = id
        if term.kind in ("glossary", "symbol", "tag") and not term.definition:
            report(id, (), "a term of kind %s needs 'definition'" % term.kind, "add it in both languages")
        if term.kind == "symbol" and not term.symbol:
            report(id, (), "a term of kind symbol needs 'symbol'", "add its TeX")
