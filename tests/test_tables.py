import html
import re

import pytest

from byteledger import catalog, tables
from macros import tables as printed_tables

DATA = catalog.load()


class Bare:
    """Marks without marks: what a table looks like apart from its links."""

    up = root = ""

    def __init__(self, language):
        self.language = language

    def claim_mark(self, id, anchor):
        return ""

    def number(self, result, shown):
        return shown


def printed(id, language="zh"):
    """The printed table: a list of rows of cells, without markup."""
    source = printed_tables.render(DATA, id, Bare(language))
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", source, re.S)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in rows]
    return [[html.unescape(re.sub(r"<[^>]+>", " ", cell)).strip() for cell in row] for row in cells]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_parameter_scales(language):
    """Whitepaper 7.2: 14/112, 26/208, 140/1,120, 350/2,800 GB."""
    rows = printed("parameter-scales", language)[1:]
    assert [(row[0], row[1], row[3]) for row in rows] == [("7B", "14", "112"), ("13B", "26", "208"), ("70B", "140", "1,120"), ("175B", "350", "2,800")]
    assert rows[2][2] == "130.4" and rows[2][4] == "1,043"


@pytest.mark.parametrize("language", ["zh", "en"])
def test_sharding_70b(language):
    """Whitepaper 7.3: 1,120, 140, 70 and 17.5 GB per rank."""
    first, second, row = printed("sharding-70b", language)
    assert second == ["W = 1", "W = 8", "W = 16", "W = 64"]
    assert [cell.split()[0] for cell in row] == ["70B", "140", "1,120", "1,120", "140", "70", "17.5"]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_baseline_table(language):
    """Whitepaper 2.3: 2, 2-4, 4, 4, 4; sum 16."""
    rows = printed("baseline-ledger", language)[1:]
    assert [row[2] for row in rows] == ["2", "2–4", "4", "4", "4", ""]
    assert [row[3] for row in rows] == ["2", "2", "4", "4", "4", "16"]
    assert [row[1] for row in rows][:2] == ["BF16 / FP16", "BF16 / FP16 / FP32"]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_zero_stages(language):
    """Whitepaper 6.2: what each stage shards. Rajbhandari et al. 2019, section 1: 8x and Nd-fold for Pos+g and all."""
    rows = {row[0]: row for row in printed("zero-stages", language)[1:]}
    words = {"zh": ("优化器状态", "梯度、优化器状态", "参数、梯度、优化器状态"), "en": ("optimizer states", "gradients, optimizer states", "parameters, gradients, optimizer states")}
    assert tuple(rows[stage][1] for stage in ("ZeRO-1", "ZeRO-2", "ZeRO-3")) == words[language]
    assert rows["DDP"][-1].split()[0] == "1,120"
    assert rows["ZeRO-3"][-1].split()[0] == "17.5"
    assert rows["Offload"][-1] == {"zh": "取决于配置", "en": "depends on the configuration"}[language]


def test_every_ledger_is_in_the_ledger_table():
    rows = tables.evaluate(DATA, "ledgers").rows
    assert [row.selection["ledger"] for row in rows] == list(DATA.ledgers)
    for row in rows:
        *states, total, multiple, _ = row.cells[1:]
        assert sum(states) == total.value and total.value / states[0] == multiple.value


@pytest.mark.parametrize("id", DATA.tables)
@pytest.mark.parametrize("language", ["zh", "en"])
def test_tables_are_real_tables(id, language):
    """A caption, a scope on each heading, as many cells in each row as columns, right alignment for every figure."""
    source = printed_tables.render(DATA, id, Bare(language))
    table = tables.evaluate(DATA, id)
    assert source.count("<caption") == 1 and 'id="table.%s"' % id in source
    assert all("scope=" in heading for heading in re.findall(r"<th[ >][^>]*>", source))
    body = source.split("<tbody>")[1]
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", body):
        cells = re.findall(r"<t[hd][ >]", row)
        assert len(cells) == len(table.headings)
    for cell in re.findall(r"<td([^>]*)>([^<]*)", body):
        if re.fullmatch(r"[\d,.]+", cell[1]):
            assert "number" in cell[0], cell


def test_an_unusable_table_says_why():
    record = DATA.tables["sharding-70b"]
    broken = record.model_copy(update={"columns": ["parameters", "ledger.wieghts"]})
    data = catalog.load()
    data.tables["sharding-70b"] = broken
    with pytest.raises(tables.ArgumentError, match="ledger.wieghts"):
        tables.evaluate(data, "sharding-70b")
