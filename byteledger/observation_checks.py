"""What must hold of a record of observations.yaml beyond the types of its fields."""

from . import hf_config, parameters

# What a record must have, by how it was measured, besides its configuration and settings.
NEEDS = {
    "fsdp2": ("parameters", "bytes", "phases", "at", "at_rest"),
    "states": ("parameters", "bytes", "temporaries"),
    "saved": ("bytes",),
    "shards": ("parameters", "ranks"),
    "cuda": ("parameters", "bytes", "phases", "reserved", "requested", "snapshot", "device"),
}
# The settings that its estimate takes, but for those of the loss alone.
SETTINGS = {
    "fsdp2": ("dp", "rank", "precision", "attention", "checkpointing", "micro_batch", "sequence"),
    "states": ("precision", "optimizer", "optimizer_implementation"),
    "saved": ("of", "precision", "attention", "experts", "micro_batch", "sequence"),
    "shards": ("strategy", "dp"),
    "cuda": ("precision", "attention", "checkpointing", "micro_batch", "sequence"),
}
VERSIONS = ("python", "torch", "transformers")


def faults(record, models):
    """Yields (key, finding, cure) for each thing that is wrong with an Observation. models: the records of models.yaml."""
    if (record.model is None) == (record.config is None):
        yield None, "needs exactly one of 'model' and 'config'", "name a model of models.yaml, or give the fields of a config.json"
        return
    for key in NEEDS[record.measured]:
        if getattr(record, key) in (None, {}, []):
            yield None, "what is measured as %r needs %r" % (record.measured, key), "measure it again: %s" % record.command
    for name in SETTINGS[record.measured]:
        if name not in record.settings:
            yield "settings", "what is measured as %r has the setting %r" % (record.measured, name), "measure it again: %s" % record.command
    for name in VERSIONS:
        if name not in record.versions:
            yield "versions", "versions do not name %r" % name, "a measurement holds for its versions only: add it"
    if record.parameters is not None:
        yield from _counted(record, models)
    if record.measured == "fsdp2" and record.phases and sum(record.bytes.values()) != max(record.phases.values()):
        finding = "bytes add up to %d, the highest of the phases is %d" % (sum(record.bytes.values()), max(record.phases.values()))
        yield "bytes", finding, "measure it again: %s" % record.command
    if record.measured == "shards" and len(record.ranks) != record.settings.get("dp"):
        yield "ranks", "%d ranks for dp = %r" % (len(record.ranks), record.settings.get("dp")), "measure it again: %s" % record.command
    if record.measured == "cuda" and record.requested and record.snapshot.get("requested") != max(record.requested.values()):
        finding = "the statistics' peak is %d, that of the recorded events %s" % (max(record.requested.values()), record.snapshot.get("requested"))
        yield "snapshot", finding, "find out which of the two missed something, and measure it again"
    for phase, most in record.phases.items() if record.measured == "cuda" else ():
        if not record.requested.get(phase, 0) <= most <= record.reserved.get(phase, 0):
            yield "phases", "in %s: requested <= allocated <= reserved does not hold" % phase, "measure it again: %s" % record.command


def _counted(record, models):
    """The parameters that were counted on the real model are those that the estimator counts from its configuration."""
    try:
        counted = parameters.total(hf_config.from_dict(record.fields(models), "data/observations.yaml").architecture)
    except hf_config.Refusal as refusal:
        yield "config", str(refusal), "correct it, or leave the observation out"
        return
    if counted != record.parameters:
        yield "parameters", "parameters is %d, but the fields give %d" % (record.parameters, counted), "measure it again: %s" % record.command
