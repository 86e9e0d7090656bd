"""Mutated data: each case ends in records whose tables are right, or in a report of faults. Never a traceback or a hang.

The seed is fixed, so that CI sees the same cases. `make slow` tries many more others, and
`FUZZ_CASES=20000 FUZZ_SEED=7 make test ARGS=tests/test_fuzz.py` as many as one likes.
"""

import os
import random
import math
import re
import time

import pytest

from byteledger import catalog, tables

# `make test` has time for the first two parts; `make slow` brings them to 2,000.
CASES = int(os.environ.get("FUZZ_CASES", "160"))
MORE = CASES if "FUZZ_CASES" in os.environ else 620
SEED = int(os.environ.get("FUZZ_SEED", "20261201"))
NASTY = [
    "", "~", "null", "yes", "off", "NaN", ".inf", "-.inf", "1e9", "070", "0x10", "1:30", "2026-07-31", "-1", "0", "1.5", "true", "[]", "{}", "''", "'",
    '"', "&a", "*a", "<<: *a", "!!python/object:os.system", "!!binary aGk=", "|", ">", "- ", ": ", "#", "：", "２", "\u200b", "\ufeff", "\u00a0", "\t", "\x00",
    "\U0001f600", "汉字", "99999999999999999999999999999999999999999999", "9" * 5000, "[" * 400, "{a: " * 200, "=cmd()", "<script>", "a|b", "`x`", "<%= x %>", "\r\n", "%",
]  # fmt: skip


def mutate(text, source):
    """One to three edits of a text: of bytes, of lines, of values, of indents."""
    for _ in range(source.choice((1, 1, 2, 3))):
        lines = text.split("\n")
        kind = source.randrange(9)
        at = source.randrange(len(lines))
        if kind == 0:
            position = source.randrange(len(text) + 1)
            text = text[:position] + source.choice(NASTY) + text[position + source.randrange(3) :]
            continue
        if kind == 1:
            del lines[at]
        elif kind == 2:
            lines.insert(at, source.choice(lines))
        elif kind == 3:
            lines[at] = " " * source.randrange(5) + lines[at].lstrip()
        elif kind == 4:
            lines[at] = re.sub(r": .*", lambda _: ": " + source.choice(NASTY), lines[at])
        elif kind == 5:
            lines[at] = re.sub(r"\d+", lambda m: source.choice((m[0] + "0", "-" + m[0], m[0] + ".5", "0", m[0][::-1])), lines[at])
        elif kind == 6:
            other = source.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 7:
            lines[at] = re.sub(r"[A-Za-z_]+", lambda m: m[0][:-1] if source.random() < 0.3 else m[0], lines[at])
        else:
            lines[at] = lines[at].replace(source.choice("abcdefg:{[,"), source.choice(NASTY[:20]), 1)
        text = "\n".join(lines)
    return text


@pytest.mark.parametrize("part", range(2))
def test_mutations(tmp_path, part):
    try_mutations(tmp_path, part)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2, 8))
def test_more_mutations(tmp_path, part):
    try_mutations(tmp_path, part, MORE)


def try_mutations(tmp_path, part, cases=CASES):
    source = random.Random(SEED + part)
    originals = {path.name: path.read_text(encoding="utf-8") for path in catalog.DATA.glob("*.yaml")}
    for name, text in originals.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    names = sorted(originals)
    sound = 0
    for case in range(cases // 2):
        name = source.choice(names)
        text = mutate(originals[name], source)
        raw = text.encode("utf-8", "surrogatepass")
        if source.random() < 0.05:
            position = source.randrange(len(raw) + 1)
            raw = raw[:position] + bytes([source.randrange(256)]) + raw[position:]
        (tmp_path / name).write_bytes(raw)
        began = time.monotonic()
        data, faults = catalog.examine(tmp_path)
        # Not a timing of the code, but a guard against a hang: a case takes some milliseconds.
        assert time.monotonic() - began < 20, (case, name)
        assert (data is None) == bool(faults), (case, name)
        for fault in faults:
            assert re.match(r"data/[\w.]+:\d+( .*)?: .+; .+", str(fault), re.S), (case, name, str(fault))
        if data:
            sound += 1
            check_tables(data, (case, name))
        (tmp_path / name).write_text(originals[name], encoding="utf-8")
    assert 0.01 * cases < sound < 0.45 * cases, "the mutations are too tame or too wild to say anything"


def check_tables(data, case):
    """What every table must satisfy whatever the numbers are, computed here anew."""
    for id in data.tables:
        if not {"ledger.persistent", "distributed.rank_lower"} & {getattr(column, "column", column) for column in data.tables[id].columns}:
            continue  # examine() has evaluated it; nothing is computed anew here
        table = tables.evaluate(data, id)
        for row in table.rows:
            assert len(row.cells) == len(table.headings), case
            for heading, cell in zip(table.headings, row.cells):
                if heading.id == "ledger.persistent" and hasattr(cell, "value"):
                    ledger = data.ledgers[row.selection["ledger"]]
                    total = ledger.weights + ledger.gradients + ledger.master_weights + ledger.first_moment + ledger.second_moment
                    assert cell.value == cell.arguments["N"] * total, case
                if heading.id == "distributed.rank_lower" and hasattr(cell, "value"):
                    world_size = {**row.selection, **(heading.across or {})}["world_size"]
                    assert math.isclose(cell.value * world_size, cell.arguments["M_persistent"], rel_tol=1e-12), case
