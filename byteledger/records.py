"""What a record of each file of data/ holds. The key above a record is its id and is never repeated inside it.

Units stand in the key names. Everything is strict: no unknown key, no text where a number belongs.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from .activation_profiles import ATTENTION, PRECISIONS, PROFILES
from .loss import POLICIES
from .observed import KINDS
from .one_record import ABOUT
from .optimizers import OPTIMIZERS
from .parameters import PARTS
from .published import UNITS

Text = Annotated[str, StringConstraints(min_length=1)]
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=64)]
# An axis ("parameters"), a quantity ("ledger.weights"), or a field of the row's record ("ledger:weights").
ColumnId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*([.:][a-z][a-z0-9_]*)?$")]
Date = Annotated[str, StringConstraints(pattern=r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$")]
Url = Annotated[str, StringConstraints(pattern=r"^https://[^\s<>\"]+$")]
# No state of any published recipe takes more than 8 bytes; 16 leaves room for a sum such as 2 + 4.
StateBytes = Annotated[int | float, Field(ge=0, le=16)]
ParameterCount = Annotated[int, Field(ge=1, le=10**15)]
Group = Literal["weights", "gradients", "optimizer"]
Part = Literal[PARTS]


class Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Bilingual(Record):
    """Words that stand on a page, in both languages."""

    zh: Text
    en: Text


class Chapter(Record):
    """A page of the site: id.md in both languages."""

    title: Bilingual
    number: Annotated[int, Field(ge=1, le=99)] | None = None
    claims: list[Id] = []  # the first part of the ids of the claims that stand on it


class Dtype(Record):
    """A number format."""

    name: Text
    bits: Annotated[int, Field(ge=1, le=128)]
    source: list[Id]

    @property
    def bytes(self):
        """Bytes per element."""
        return self.bits // 8 if self.bits % 8 == 0 else self.bits / 8


class Parameters(Record):
    """A nominal parameter count."""

    count: ParameterCount
    reading: Bilingual
    source: list[Id]


Layers = Annotated[int, Field(ge=1, le=1000)]
Width = Annotated[int, Field(ge=8, le=2_000_000)]
Heads = Annotated[int, Field(ge=1, le=4096)]
Some = Annotated[int, Field(ge=1, le=2_000_000)]


class Model(Record):
    """A model, in the names of its config.json. What the fields mean together is its family's rule, which counts them.

    published_parameters is what the publisher gives, checkpoint_buffers the part of it that is no parameter,
    published_seen whether that figure was read in a public file for this record or recalled before it was computed;
    counted_parameters was counted on the model itself, built on the meta device. The formula must give the same as both.

    Fields beyond those named here are the family's: its rule reads them and refuses what it cannot use, and a field that
    the rule never looks at is a fault.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    name: Text
    model_type: Text
    num_hidden_layers: Layers | None = None
    hidden_size: Width
    intermediate_size: Width | None = None
    ffn_dim: Width | None = None
    num_attention_heads: Heads | None = None
    num_key_value_heads: Heads | None = None
    head_dim: Width | None = None
    vocab_size: Annotated[int, Field(ge=256, le=2_000_000)] | None = None
    tie_word_embeddings: bool | None = None
    max_position_embeddings: Some | None = None
    attention_bias: bool | None = None
    checkpoint_buffers: Annotated[int, Field(ge=0, le=10**9)] = 0
    published_parameters: ParameterCount | None = None
    published_seen: Literal["read", "recalled"] | None = None
    counted_parameters: ParameterCount | None = None
    repository: Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")] | None = None
    note: Bilingual | None = None
    source: list[Id]

    def config(self):
        """The record as a config.json would have it; a field that is written as null is there, one that is not written is not."""
        return {key: getattr(self, key) for key in self.model_fields_set if key not in ABOUT}


class Accelerator(Record):
    """A device: what its vendor prints, what its driver reports, what a framework sees. Absent: no source for it."""

    name: Text
    memory_gb: Annotated[int | float, Field(ge=4, le=2000)]
    reported_mib: Annotated[int | float, Field(ge=4000, le=2_000_000)] | None = None
    framework_gib: Annotated[int | float, Field(ge=4, le=2000)] | None = None
    memory_type: Literal["HBM2", "HBM2e", "HBM3", "HBM3e", "HBM4", "GDDR6", "GDDR6X", "GDDR7"] | None = None
    bandwidth_gb_s: Annotated[int | float, Field(ge=50, le=100_000)] | None = None
    source: list[Id]


class Scale(Record):
    """What a format stores besides its elements: bits for every `per` of them; flat: blocks do not stop at the end of a row."""

    bits: Annotated[int, Field(ge=1, le=64)]
    per: Annotated[int, Field(ge=1, le=2**20)] | Literal["row", "column", "tile", "tensor"]
    flat: bool = False

    def __str__(self):
        return "%d bit per %s%s" % (self.bits, self.per, ", flat" if self.flat else "")


class WeightFormat(Record):
    """A format of weights: bits of an element, its scales, and the parts of a model that a tool leaves as they were."""

    name: Bilingual
    bits: Annotated[int, Field(ge=1, le=32)]
    scales: list[Scale] = []
    keeps: list[Part] = []
    kept_bytes: Literal[2, 4] = 2
    note: Bilingual | None = None
    source: list[Id]


class Run(Record):
    """A training run whose moments are shown: a model, a ledger, a strategy, and settings by the names of scenario.SETTINGS."""

    name: Bilingual
    model: Id
    ledger: Id
    strategy: Id
    settings: dict[str, int | float | bool | str] = {}
    source: list[Id]


class RuntimeTerm(Record):
    """What a process takes beside its tensors: a range that somebody measured."""

    name: Bilingual
    low: Annotated[int | float, Field(ge=0)]
    high: Annotated[int | float, Field(ge=0)]
    unit: Literal["GiB", "% of device"]
    note: Bilingual
    source: list[Id]


class State(Record):
    """A state of training that takes bytes for every parameter."""

    name: Bilingual
    symbol: Text
    group: Group
    formats: list[Id]
    role: Bilingual
    source: list[Id]


class Ledger(Record):
    """A recipe: bytes per parameter of each state, and who uses it."""

    name: Bilingual
    weights: StateBytes
    gradients: StateBytes
    master_weights: StateBytes
    first_moment: StateBytes
    second_moment: StateBytes
    used_by: Bilingual
    note: Bilingual | None = None
    source: list[Id]


class Strategy(Record):
    """What a data-parallel strategy divides over its ranks, and what it gathers while it computes."""

    name: Text
    framework: Text
    shards: list[Group] | None = None  # absent: no model for it, and not_modelled says why
    divides_over: Literal["world", "shard_group"] = "world"
    gathers: Literal["none", "layer", "model"] | None = None
    zero_stage: Literal[1, 2, 3] | None = None  # the stage of DeepSpeed's ZeRO that it is
    not_modelled: Bilingual | None = None
    scope: Bilingual | None = None  # in words what shards says, where there is no shards
    replicates: Bilingual | None = None
    intuition: Bilingual
    claim: Id | None = None
    source: list[Id]


class Implementation(Record):
    """Whose code a layer is, and how it runs. profile: absent for the model's own block in transformers."""

    name: Bilingual
    profile: Literal[PROFILES] | None = None
    attention: Literal[ATTENTION]
    precision: Literal[tuple(PRECISIONS)]
    dropout: Annotated[int | float, Field(ge=0, lt=1)] = 0
    source: list[Id]


class LossPolicy(Record):
    """How the loss is computed; chunks and tp for the policies that have them."""

    name: Bilingual
    policy: Literal[POLICIES]
    chunks: Annotated[int, Field(ge=1, le=2**20)] = 8
    tp: Annotated[int, Field(ge=1, le=1024)] = 1
    source: list[Id]


class Optimizer(Record):
    """An optimizer as a tool runs it: the rule for its state, the bytes of the parameters that it updates, GaLore's rank."""

    name: Bilingual
    rule: Literal[OPTIMIZERS]
    element_bytes: Literal[2, 4]
    rank: Annotated[int, Field(ge=1, le=2**20)] | None = None
    note: Bilingual | None = None
    source: list[Id]


class Adapters(Record):
    """Which matrices get adapters, and of what rank; rank 0: no adapters, all parameters are trained."""

    name: Bilingual
    r: Annotated[int, Field(ge=0, le=2**20)]
    target_modules: list[Text] | Literal["all-linear"] = "all-linear"
    source: list[Id]


class Recipe(Record):
    """A configuration of training: a model, the ledger of what is trained, adapters, and the format of a frozen base."""

    model: Id
    ledger: Id
    adapters: Id
    weight_format: Id
    source: list[Id]


class Formula(Record):
    """A formula as it is printed. computes names the function that evaluates it, where there is one."""

    name: Bilingual
    tex: Text
    computes: Id | None = None
    chapter: Id
    source: list[Id]


class Figure(Record):
    """A key figure: a quantity for one selection, or a formula where the figure is a growth law."""

    quantity: Id | None = None
    selection: dict[str, Id | int] = {}
    tex: Text | None = None
    meaning: Bilingual
    boundary: Bilingual
    claim: Id
    source: list[Id]


class Reference(Record):
    """A source. accessed is the day on which the record was checked."""

    title: Text
    authors: list[Text]
    short: Text
    year: Annotated[int, Field(ge=1950, le=2100)] | None = None
    type: Literal["paper", "official", "guide", "code", "book", "source"]
    url: Url | None = None
    arxiv: Annotated[str, StringConstraints(pattern=r"^[0-9]{4}\.[0-9]{4,5}$")] | None = None
    use: Bilingual
    accessed: Date
    whitepaper: bool = False  # one of the ten that the whitepaper lists


class Term(Record):
    """A word, a symbol or a unit: the only place where the words of tables and labels live."""

    zh: Text
    en: Text
    kind: Literal["glossary", "symbol", "label", "tag", "basis", "settles", "cause", "chapter-of-source", "type"]
    symbol: Text | None = None
    definition: Bilingual | None = None
    typical: Bilingual | None = None
    unit: Bilingual | None = None


class Claim(Record):
    """An assertion that stands in the prose of both languages. What it needs besides follows from its tag."""

    tag: Literal["docx", "external", "estimate", "limit", "measured"]
    references: list[Id] = []
    chapter_of_source: Id | None = None  # docx: the chapter of the source document
    rests_on: list[Id] = []  # estimate: formulas
    basis: Id | None = None  # estimate: on what it rests where that is no formula
    settled_by: Id | None = None  # limit: what would settle it
    verified_by: list[Annotated[str, StringConstraints(pattern=r"^tests/test_\w+\.py::test_\w+$")]] = []
    observations: list[Id] = []  # measurements that show it
    comparisons: list[Id] = []  # groups of comparisons that show it


class Column(Record):
    """A column of a table in a unit of its own."""

    column: ColumnId
    unit: Literal["GB", "GiB"] = "GB"


class Table(Record):
    """A table: the product of its axes and a list of columns."""

    title: Bilingual
    note: Bilingual | None = None
    rows: dict[str, list[Id | int] | dict[Literal["group"], Id] | Literal["all"]]  # {group: ID}: the comparisons of a group
    across: dict[str, list[Id | int]] = {}
    fixed: dict[str, Id | int] = {}
    columns: list[ColumnId | Column]
    total: bool = False
    interactive: bool = False  # a long table: rows can be filtered and sorted
    claims: bool = True  # false: what its rows claim is marked in another table
    source: list[Id]


Bytes = Annotated[int, Field(ge=0, le=10**15)]
Kind = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.]*$")]
Phase = Literal["forward", "loss", "backward", "reduce", "optimizer"]
Setting = Annotated[str, StringConstraints(pattern=r"^[a-z_]+$")]


class Observation(Record):
    """What PyTorch was measured to hold, in bytes: of which model, with which settings and versions, and how to measure it again.

    What it says depends on how it was measured, as scripts/measuring/ has it: fsdp2 and cuda tell the peak of each phase of a
    training step (phases), states what is kept between steps, saved what autograd keeps, shards what each rank keeps (ranks).
    """

    measured: Literal["fsdp2", "states", "saved", "shards", "cuda"]
    model: Id | None = None  # of models.yaml; or config, in the names of a config.json
    config: dict[Setting, bool | int | float | str | list | None] | None = None
    settings: dict[Setting, bool | int | float | str]
    parameters: ParameterCount | None = None
    bytes: dict[Kind, Bytes] = {}  # fsdp2: at the peak; cuda: when the step begins; states: between two steps; saved: for backward
    phases: dict[Phase, Bytes] = {}  # the most that was allocated in each
    at: Text | None = None  # the operation that the peak fell on, and its module
    at_rest: dict[Kind, Bytes] = {}  # fsdp2: between two steps
    temporaries: Bytes | None = None  # states: the most that step() took on top
    ranks: list[dict[Kind, Bytes]] = []
    reserved: dict[Phase, Bytes] = {}  # cuda: the most in segments
    requested: dict[Phase, Bytes] = {}  # cuda: the most before blocks are rounded up
    snapshot: dict[Kind, Bytes] = {}  # cuda: the peaks of the allocator's recorded events
    device: Text | None = None
    held_out: bool = False  # measured only after the formulas were final
    versions: dict[Literal["python", "torch", "transformers", "torchao", "bitsandbytes", "deepspeed"], Text]
    date: Date
    command: Annotated[str, StringConstraints(pattern=r"^python scripts/measure(_gpu)?\.py\b")]

    def fields(self, models):
        """The fields of its configuration, given the records of models.yaml."""
        return self.config if self.model is None else models[self.model].config()


class ComparisonGroup(Record):
    """Comparisons of estimates and observations that are summed up together, in the order of the page."""

    name: Bilingual
    kinds: list[Literal[KINDS]]
    dense: bool | None = None  # of Llama-like dense models only, or of all others only
    held_out: bool = False
    within_percent: Annotated[int | float, Field(ge=0)]  # no difference is larger


class Difference(Record):
    """Why estimates differ from observations."""

    name: Bilingual
    what: Bilingual
    explains: list[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._*?-]+$")]]  # OBSERVATION.KIND, with * and ?
    within_percent: Annotated[int | float, Field(gt=0)]  # a larger difference is not explained by it
    multiple_of: Annotated[int, Field(ge=1)] = 1  # bytes: nor is one that is no multiple


class MeasuredRun(Record):
    """A run that somebody measured, as far as it was told: a model, or one with some fields changed, and settings of a scenario."""

    model: Id
    fields: dict[str, int | float | bool | str | None] = {}
    ledger: Id
    strategy: Id
    base_format: Id | None = None
    settings: dict[str, int | float | bool | str] = {}


class PublishedMeasurement(Record):
    """What somebody else measured and published, and the run that the estimator takes for it."""

    name: Bilingual
    measured: Annotated[int | float, Field(gt=0)]
    unit: Literal["B", "GB", "GiB"]
    compared: Literal["peak", "states"] = "peak"  # the highest rank's peak, or what it holds between two steps with its gradients
    stage: Annotated[int, Field(ge=0)] | None = None  # of a pipeline, where its log tells of one; else the highest
    run: MeasuredRun
    less: MeasuredRun | None = None  # the difference of two runs
    locator: Text
    unsaid: Bilingual  # what the source leaves open
    source: list[Id]
Input = Id | int | float | bool | list[Id]


class PublishedCell(Record):
    """One printed figure: what it is of, its digits as they are printed or the printed formula, and its inputs."""

    cell: Bilingual | Text
    printed: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.+\-*/() ]{1,60}$")]
    inputs: dict[Id, Input] = {}
    cause: Id | None = None  # why the estimator gives another figure; absent where it does not


class Published(Record):
    """Figures that a source prints, and the quantity, or the function of byteledger, that gives them from the inputs.

    unit is the one that the source means, which need not be the one that it prints. symbols: the letters of printed formulas.
    """

    name: Bilingual
    locator: Bilingual
    unit: Literal[tuple(UNITS)]
    quantity: Id | None = None
    function: Id | None = None
    inputs: dict[Id, Input] = {}
    symbols: dict[Id, Id | int | float] = {}
    cells: Annotated[dict[Id, PublishedCell], Field(min_length=1)]
    source: Annotated[list[Id], Field(min_length=1)]


class Distrusted(Published):
    """Printed figures that do not hold: why, and for what they do hold. The estimator gives what is right."""

    why: Bilingual
    holds: Bilingual


class Change(Record):
    """A change of the data: what, why, and which published figures moved, as golden.Change words them."""

    date: Date
    what: Bilingual
    why: Bilingual
    moved: list[Text]


FILES = {
    "accelerators": Accelerator,
    "adapters": Adapters,
    "changes": Change,
    "chapters": Chapter,
    "claims": Claim,
    "comparison_groups": ComparisonGroup,
    "differences": Difference,
    "distrusted": Distrusted,
    "dtypes": Dtype,
    "figures": Figure,
    "formulas": Formula,
    "implementations": Implementation,
    "ledgers": Ledger,
    "loss_policies": LossPolicy,
    "models": Model,
    "observations": Observation,
    "optimizers": Optimizer,
    "parameters": Parameters,
    "published_measurements": PublishedMeasurement,
    "published": Published,
    "recipes": Recipe,
    "references": Reference,
    "runs": Run,
    "runtime_terms": RuntimeTerm,
    "states": State,
    "strategies": Strategy,
    "tables": Table,
    "terms": Term,
    "weight_formats": WeightFormat,
}
