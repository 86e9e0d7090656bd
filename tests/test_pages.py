import re
import shutil
from pathlib import Path

import pytest

from byteledger import catalog
from macros import pages

ROOT = Path(__file__).resolve().parent.parent
DATA = catalog.load()
# A figure with a unit of memory, or a multiple, as a table would print a result.
DERIVED = re.compile(r"\d[\d,.]*\s*(?:GB|GiB|MB|MiB|TB|TiB|B/parameter|×)(?![A-Za-z])")


@pytest.fixture
def edited(tmp_path):
    """A copy of docs/, and a function that edits one page and returns the faults as text."""
    shutil.copytree(pages.DOCS, tmp_path / "docs")

    def edit(page, old, new, count=1):
        path = tmp_path / "docs" / page
        text = path.read_text(encoding="utf-8")
        assert old in text, old
        path.write_text(text.replace(old, new, count), encoding="utf-8")
        return [str(fault) for fault in pages.faults(DATA, tmp_path / "docs")]

    return edit


def test_the_pages_are_sound():
    """Headings, claims, tables, formulas and macro calls agree between the languages, and every name is known."""
    assert [str(fault) for fault in pages.faults(DATA)] == []


@pytest.mark.parametrize(
    "page, old, new, expected",
    [
        ("zh/ledger.md", '<%= table("symbols") %>', '<%= table("symbols" %>', r"docs/zh/ledger.md:\d+: a broken macro"),
        ("zh/ledger.md", '<%= table("symbols") %>', '<%= tabel("symbols") %>', r"docs/zh/ledger.md:\d+: unknown macro 'tabel'; did you mean 'table'\?"),
        ("zh/ledger.md", '<%= table("symbols") %>', "<%= symbols %>", r"docs/zh/ledger.md:\d+: undefined name 'symbols'"),
        ("zh/ledger.md", '<%= table("symbols") %>', '<%= table("symbol") %>', r"docs/zh/ledger.md:\d+: unknown table id 'symbol'; did you mean 'symbols'\?"),
        ("en/ledger.md", 'claim("ledger.symbols")', 'claim("ledger.symbls")', r"docs/en/ledger.md:\d+: unknown claim id 'ledger.symbls'; did you mean 'ledger.symbols'\?"),
        ("en/ledger.md", '<%= claim("ledger.symbols") %> ', "", r"docs/en/ledger.md:1: claim 'ledger.symbols' of data/claims.yaml stands nowhere"),
        ("en/ledger.md", '<%= claim("ledger.symbols") %> Symbols', 'Symbols <%= claim("ledger.symbols") %>', r"docs/en/ledger.md:\d+: claim 'ledger.symbols' is not at the start"),
        ("en/ledger.md", "{ #ledger.notation }", "", r"docs/en/ledger.md:\d+: the heading .* has no id"),
        ("en/ledger.md", "{ #ledger.notation }", "{ #ledger.notations }", r"headings differ between the languages: only zh has ledger.notation; only en has ledger.notations"),
        ("en/ledger.md", "{ #ledger.notation }", "{ #ledger.units }", r"heading id 'ledger.units' stands 2 times"),
        ("en/ledger.md", "$b_w = 2$", "$b_w = 3$", r"formulas in the text differ between the languages"),
        ("en/ledger.md", '<%= formula("ledger.weights") %>', "", r"formulas differ between the languages: only zh has ledger.weights"),
        ("en/ledger.md", 'parameters="7B", ledger="bf16-adamw") %>.', 'parameters="7A", ledger="bf16-adamw") %>.', r"docs/en/ledger.md:\d+: value\(.*no '7A' in data/parameters.yaml; known: "),
        ("en/ledger.md", 'ledger="bf16-inference") %>', 'ledger="bf16-inference", world_size=8) %>', r"world_size = 8: ledger.weights does not use it; it takes ledger, parameters"),
        ("zh/ledger.md", "(distributed.md#distributed)", "(distribute.md#distributed)", r"docs/zh/ledger.md:\d+: the link leads to 'distribute.md', which is no page; did you mean 'distributed.md'"),
        ("zh/research/LLM_training_memory_sources.md", "(../limits.md#limits)", "(../limits.md#limit)", r"sources.md:\d+: no such anchor on limits.md: 'limit'; did you mean 'limits'"),
        ("zh/summary.md", '<%= claim("overview.four-questions") %>', '<%= claim("ledger.symbols") %>', r"claim 'ledger.symbols' stands on (ledger|summary).md, too"),
        ("zh/summary.md", '<%= claim("overview.four-questions") %>', '<%= claim("overview.four-questions") %>\n\n<%= claim("overview.four-questions") %>', r"stands here a second time"),
    ],
)
def test_each_fault_names_its_place(edited, page, old, new, expected):
    faults = edited(page, old, new)
    assert any(re.search(expected, fault) for fault in faults), faults
    assert all(re.match(r"docs/(zh|en)/[\w./-]+\.md:\d+: .+; .+", fault) for fault in faults), faults


def test_a_page_that_one_language_lacks(tmp_path):
    shutil.copytree(pages.DOCS, tmp_path / "docs")
    (tmp_path / "docs" / "en" / "limits.md").unlink()
    faults = [str(fault) for fault in pages.faults(DATA, tmp_path / "docs")]
    assert "docs/en/limits.md:1: the page is missing in this language; write it" in faults


def test_a_claim_out_of_order(edited):
    """Same claims in the same order: a reader who compares the languages finds each where she expects it."""
    first, second = '<%= claim("overview.scale-growth") %>', '<%= claim("overview.inference-vs-training") %>'
    edited("en/summary.md", first, "FIRST")
    edited("en/summary.md", second, first)
    assert any("claims stand in another order" in fault for fault in edited("en/summary.md", "FIRST", second))


@pytest.mark.parametrize("language", ["zh", "en"])
def test_no_derived_figure_is_typed_in_a_table(language):
    """Tables written in Markdown hold words; their figures come from macros. Definitions (16 B/parameter) are named."""
    definitions = {"16 B/parameter", "2 B/parameter"}
    for name, page in pages.read(language).items():
        for line, text in enumerate(page.text.split("\n"), 1):
            if text.lstrip().startswith("|"):
                typed = set(DERIVED.findall(re.sub(r"<%=.*?%>", "", text))) - definitions
                assert not typed, "docs/%s/%s:%d: %s" % (language, name, line, typed)


def test_a_typed_figure_would_be_found():
    assert DERIVED.findall("| 70B | 140 GB | 1,120 GB | 8× |") == ["140 GB", "1,120 GB", "8×"]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_chapter_opens_with_its_question_and_ends_with_its_limits(language):
    read = pages.read(language)
    for chapter, record in DATA.chapters.items():
        text = read[chapter + ".md"].text
        if chapter != "index":
            assert 'class="question"' in text.split("\n## ")[0], chapter
        if record.number in range(2, 9):
            assert any(id == chapter + ".not-covered" for _, id, _ in read[chapter + ".md"].headings), chapter


def test_chinese_is_set_as_chinese():
    """Full-width punctuation between 汉字, and a space between 汉字 and Latin letters or digits."""
    han = r"[\u4e00-\u9fff]"
    for name, page in pages.read("zh").items():
        prose = re.sub(r"```.*?```", "", page.text, flags=re.S)
        prose = re.sub(r"<%=.*?%>|`[^`]*`|\$[^$]*\$|<[^>]+>|\{[^}]*\}|\]\([^)]*\)", "", prose)
        for line in prose.split("\n"):
            assert not re.search(han + r"[,;:!?](?!\S*[:/])" + r"\s*" + han, line), (name, line)
            glued = re.search(han + r"[A-Za-z0-9]|[A-Za-z0-9]" + han, line)
            assert not glued, (name, glued and line[max(0, glued.start() - 10) : glued.end() + 10])
