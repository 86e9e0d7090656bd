"""Published tables, cell by cell: data/published.yaml holds what is printed, with its source and the inputs, and the estimator gives it.

What is printed is not only there: this file has some of it a second time, from the sources, so that an edit of the data cannot
move an expectation unseen. tests/test_distributed.py, test_sharding.py, test_offload.py and test_kv_cache.py have more.
"""

import csv
import io
import json
import re
import shutil
from fractions import Fraction

import pytest

from byteledger import activation_profiles, catalog, export, published, tables
from byteledger.revision import revision

DATA = catalog.load()
CELLS = [(id, key) for id, record in DATA.published.items() for key in record.cells]


def cell(id, key):
    return published.Cell(DATA, "published", id, key)


def cells(*ids):
    return {key: cell(id, key) for id in ids for key in DATA.published[id].cells}


@pytest.mark.parametrize("id, key", CELLS, ids=lambda part: part)
def test_every_cell_is_the_printed_figure_or_says_why(id, key):
    """Rounded to the printed digits, by Python's own decimal arithmetic; a cause that explains nothing any more is a failure."""
    from decimal import ROUND_HALF_UP, Decimal, localcontext

    found = cell(id, key)
    with localcontext(prec=50):
        exact = Decimal(found.exact.numerator) / found.exact.denominator
        if found.digits is None:
            same = abs(found.exact - found.figure) < Fraction(1, 10**9)
        else:
            same = exact.quantize(Decimal(found.of.printed), rounding=ROUND_HALF_UP) == Decimal(found.of.printed)
    assert same == found.agrees
    assert same != bool(found.of.cause), "%s, estimator %s: %s" % (found.of.printed, exact, found.of.cause or "differs, and says not why")
    if found.of.cause == "cut":
        assert int(exact * 10**found.digits) == Decimal(found.of.printed) * 10**found.digits


def test_nothing_is_lost():
    """54 cells in ZeRO's Table 1, 20 in the theory half of Table 2, six forms and four sizes of Korthikanti et al."""
    assert len(DATA.published["zero-table-1"].cells) == 54
    assert len(cells("zero-table-2", "zero-table-2-trillions")) == 20
    assert len(DATA.published["korthikanti-layer"].cells) == 24
    assert len(DATA.published["megatron-distributed"].cells) == 12
    assert len(CELLS) >= 150
    shown = {choice for id in DATA.tables for choice in DATA.tables[id].rows.get("published_cell", ())}
    assert shown == set(DATA.published), "each published table stands on the page"


# Rajbhandari et al. 2019, Table 1: some cells, from the paper.
TABLE_1 = {"7.5b-4-2": "41.3", "7.5b-64-3": "1.88", "7.5b-1024-3": "0.12", "128b-16-1": "608", "1t-64-2": "2218", "1t-1024-3": "15.6", "1t-256-3": "62.5"}


def test_zero_table_1_follows_from_k_and_d():
    """4N + 12N/d, 2N + 14N/d, 16N/d (Rajbhandari et al. 2019, section 5), by arithmetic of this test's own."""
    for key, found in cells("zero-table-1").items():
        name, d, stage = key.rsplit("-", 2)
        N, d = {"7.5b": 7_500_000_000, "128b": 128_000_000_000, "1t": 10**12}[name], int(d)
        whole = {"1": 4 * N + Fraction(12 * N, d), "2": 2 * N + Fraction(14 * N, d), "3": Fraction(16 * N, d)}[stage]
        assert found.exact * 10**9 == whole
        assert found.within_last_digit
        assert not found.of.cause or (name != "7.5b" and int(found.exact) == found.figure)
    for key, printed in TABLE_1.items():
        assert DATA.published["zero-table-1"].cells[key].printed == printed
    assert [of.printed for of in DATA.published["zero-figure-1"].cells.values()] == ["120", "31.4", "16.6", "1.9"]  # Figure 1


def test_zero_table_2_is_multiplied_from_its_first_row():
    """Rajbhandari et al. 2019, Table 2: 2, 7.6, 14.4 and 128 billion for MP = 1; below, the printed figures are MP times those."""
    first = {key.partition("-")[2]: found for key, found in cells("zero-table-2").items() if key.startswith("1-")}
    assert [found.of.printed for found in first.values()] == ["2", "7.6", "14.4", "128"] and all(found.agrees for found in first.values())
    for key, found in cells("zero-table-2").items():
        mp, _, strategy = key.partition("-")
        assert found.figure == int(mp) * first[strategy].figure
        assert bool(found.of.cause) == (not found.agrees)
    assert [found.of.printed for found in cells("zero-table-2-trillions").values()] == ["0.5", "1", "2"]


def test_korthikanti_differs_by_the_statistics_alone():
    """What the paper leaves out: mean and deviation of two LayerNorms in FP32, 16 B per token, divided under sequence parallelism."""
    for key, found in cells("korthikanti-layer").items():
        inputs = {**DATA.published["korthikanti-layer"].inputs, **found.of.inputs}
        expected = 0 if inputs.get("recompute") == "full" else Fraction(16, inputs["D"]) / (inputs["tp"] if inputs.get("sequence_parallel") else 1)
        assert abs(found.exact - found.figure - expected) < Fraction(1, 10**9), key
    whole = {key.removesuffix("-none"): round(float(found.figure), 2) for key, found in cells("korthikanti-layer").items() if key.endswith("-none")}
    assert whole == {"22b": 140.67, "175b": 114, "530b": 98, "1t": 98}  # 34 + 5as/h, by hand


def test_the_block_of_the_paper_is_that_of_the_profile():
    """gpt_layer() is the profile "megatron" on GPT-3's own layer, whose MLP is 4 D wide."""
    architecture = DATA.architecture("gpt-3-175b")
    parts = activation_profiles.saved(architecture.layers[0][0], 12288, "megatron", "eager", "bf16", 1, 2048, 0.1)
    assert sum(parts.values()) == round(cell("korthikanti-layer", "175b-none").exact * 2048 * 12288)


def test_what_deepspeed_prints_as_gb_are_gib():
    """memory.rst and issue 4527: every figure above a half comes out in GiB or MiB, and none in GB or MB."""
    for id in DATA.published:
        if id.startswith("deepspeed-"):
            larger = {"GiB": Fraction(2**30, 10**9), "MiB": Fraction(2**20, 10**6)}[DATA.published[id].unit]
            for found in cells(id).values():
                if found.figure > Fraction(1, 2) and found.of.cause != "older-code":
                    assert abs(found.exact - found.figure) < Fraction(2, 10**found.digits)
                    assert published.rounded(found.exact * larger, found.digits) != found.figure


def test_megatron_with_one_rank_divides_nothing():
    """Megatron Core, distributed optimizer: 20, 18 and 16 B per parameter; 4 + 16/d, 6 + 12/d and 8 + 8/d at d = 1 are the same."""
    whole = {key: found.exact for key, found in cells("megatron-bytes").items()}
    assert whole == {"fp16": 20, "bf16": 18, "fp32": 16}
    assert {key: cell("megatron-distributed", key + "-1").exact for key in whole} == whole
    assert cell("megatron-distributed", "bf16-8").exact == Fraction(15, 2) and cell("megatron-distributed", "fp32-64").exact == Fraction(65, 8)


# --- what an edit of the data does


@pytest.fixture
def edited(tmp_path):
    """Edits data/published.yaml and returns (Catalog or None, the faults as text)."""
    shutil.copytree(catalog.DATA, tmp_path / "data")
    path = tmp_path / "data" / "published.yaml"

    def edit(old, new):
        text = path.read_text(encoding="utf-8")
        assert old in text, old
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        data, faults = catalog.examine(tmp_path / "data")
        return data, [str(fault) for fault in faults]

    return edit


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ("cause: cut", "cause: cutt", "no 'cutt' in data/terms.yaml of kind cause; did you mean 'cut'"),
        ("ledger: bf16-adamw, world_size: 64}", "ledger: bf16-adam, world_size: 64}", "no 'bf16-adam' in data/ledgers.yaml; did you mean 'bf16-adamw'"),
        ("quantity: distributed.persistent", "quantity: distributed.persist", "no such quantity; did you mean 'distributed.persistent'"),
        ("function: activations.gpt_layer", "function: activations.gpt_layers", "no such function; did you mean 'activations.gpt_layer'"),
        ("  unit: GB", "  unit: Gb", "unit is 'Gb'; must be "),
        ("  unit: GB", "  unit: '%'", "unit = '%': the estimator gives bytes; correct it"),
        ("{P: 2_851_000_000, gpus_per_node: 8}", "{P: 2_851_000_000, gpus: 8}", "gpus = 8: offload.zero2_host does not take it"),
        ("printed: '34 + 5*a*s/h'", "printed: '34 + 5*a*s/x'", "'symbols' does not say what 'x' is"),
        ("printed: '34 + 5*a*s/h'", "printed: '34 + 5*a*s/(h-h)'", "is neither a number nor a formula"),
        ("printed: '34 + 5*a*s/h'", "printed: '34 ** 9'", "is neither a number nor a formula"),
        ("  locator: {zh: 图 1, en: Figure 1}", "  locater: {zh: 图 1, en: Figure 1}", "unknown key 'locater'; did you mean 'locator'"),
        ("printed: '120'", "printed: 120", "printed is 120"),
        ("strategy: zero-2, world_size: 16}", "strategy: zero-9, world_size: 16}", "zero-table-1: 7.5b-16-2: no 'zero-9' in data/strategies.yaml; did you mean"),
    ],
)
def test_a_cell_that_cannot_be_is_refused(edited, old, new, expected):
    """One message with file, line, record, finding and cure, as for every other file."""
    data, faults = edited(old, new)
    assert data is None and any(re.search(expected, fault) for fault in faults), faults
    assert all(re.match(r"data/\w+\.yaml:\d+ \S+: .+; .+", fault) for fault in faults), faults


@pytest.mark.parametrize("old, new, verdict", [("printed: '31.4'", "printed: '31.5'", "differs, no cause given"), ("printed: '31.4'", "printed: '31.4', cause: cut", "same")])
def test_a_wrong_figure_shows_and_fails(edited, old, new, verdict):
    """The page goes on and says so; the test above, run on these data, fails for the cell."""
    data, faults = edited(old, new)
    assert not faults
    found = published.Cell(data, "published", "zero-figure-1", "zero-1")
    assert found.verdict.en == verdict
    assert found.agrees == bool(found.of.cause)  # what test_every_cell_is_the_printed_figure_or_says_why refuses


def test_an_edit_moves_page_and_downloads(edited):
    """Another input, and the figure that goes with it: table, CSV and JSON show both."""
    from macros import tables as printed_tables

    data, faults = edited("printed: '52.5', inputs: {parameters: 7_500_000_000, strategy: zero-1, world_size: 4}", "printed: '75.0', inputs: {parameters: 7_500_000_000, strategy: zero-1, world_size: 2}")
    assert not faults
    row = next(row for row in tables.evaluate(data, "recomputed-zero-table-1").rows if row.selection["published_cell"] == "zero-table-1/7.5b-4-1")
    assert [row.cells[1].text, row.cells[2].text] == ["75.0", "75"]
    assert "| 75.0 | 75 |" in printed_tables.markdown(data, "recomputed-zero-table-1", "en")
    as_csv = {line["published_cell"]: line for line in csv.DictReader(io.StringIO(export.as_csv(data, "recomputed-zero-table-1")))}
    line = as_csv["zero-table-1/7.5b-4-1"]
    assert (line["published_cell:printed [in the unit of the row]"], line["published_cell:computed [in the unit of the row]"]) == ("75.0", "75")
    in_json = json.loads(export.as_json(data, "recomputed-zero-table-1", revision()))["rows"]
    assert any(row["published_cell"] == "zero-table-1/7.5b-4-1" and row["published_cell:computed [in the unit of the row]"] == 75 for row in in_json)
