import pytest

from byteledger import catalog, quantities
from macros import text


@pytest.mark.parametrize(
    "value, unit, printed",
    [
        (1120e9, "GB", "1,120 GB"),  # design: how figures are printed
        (17.5e9, "GB", "17.5 GB"),
        (140e9, "GiB", "130.4 GiB"),
        (1120e9, "GiB", "1,043 GiB"),
        (31.40625e9, "GB", "31.4 GB"),
        (1.875e9, "GB", "1.88 GB"),
        (0.46875e9, "GB", "0.469 GB"),
        (0, "GB", "0 GB"),
        (10**25, "GB", "10,000,000,000,000,000 GB"),
        (67_108_864, "MiB", "64 MiB"),
    ],
)
def test_amounts_are_printed_one_way(value, unit, printed):
    assert text.phrase(value, "bytes", unit) == printed


@pytest.mark.parametrize(
    "value, places, printed",
    [(0.5, 0, "1"), (1.5, 0, "2"), (2.5, 0, "3"), (-0.5, 0, "-1"), (2.675, 2, "2.68"), (-0.004, 2, "0"), (1e16, 0, "10,000,000,000,000,000"), (16, 6, "16"), (6.03125, 6, "6.03125")],
)
def test_half_rounds_away_from_zero(value, places, printed):
    """No negative zero, no 1e+16, no trailing zero."""
    assert text.number(value, places) == printed


def test_the_other_kinds():
    assert text.phrase(16, "bytes per parameter") == "16 B/parameter"
    assert text.phrase(8.0, "multiple") == "8×"
    assert text.phrase(3.015625, "multiple") == "3.02×"


def test_a_number_shows_its_formula_and_inputs():
    data = catalog.load()
    result = quantities.evaluate(data, "distributed.rank_lower", {"parameters": "70B", "ledger": "bf16-adamw", "world_size": 8})
    assert text.derivation(result) == "M_rank,lower = M_persistent / W; M_persistent = 1,120,000,000,000, W = 8"


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", '" onmouseover="x', "a | b", "`code`", "**bold**", "[x](y)", "<%= x %>", "{ #id }", "$x$"])
def test_text_from_data_is_only_text(hostile):
    """In HTML and in Markdown: what stands in data cannot become markup."""
    import html

    import markdown

    assert html.unescape(text.escape(hostile)) == hostile and "<" not in text.escape(hostile) and '"' not in text.escape(hostile)
    rendered = markdown.markdown("| a |\n|---|\n| %s |" % text.escape_inline(hostile), extensions=["tables", "attr_list"])
    assert html.unescape(rendered.split("<td>")[1].split("</td>")[0]) == hostile
