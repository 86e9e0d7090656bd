import re
import shutil
from pathlib import Path

import pytest
import yaml

from byteledger import catalog
from byteledger.records import FILES

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def edited(tmp_path):
    """A copy of data/, and a function that edits one file and returns the faults as text."""
    shutil.copytree(catalog.DATA, tmp_path / "data")

    def edit(file, old, new, count=1):
        path = tmp_path / "data" / (file + ".yaml")
        text = path.read_text(encoding="utf-8")
        assert old in text, old
        path.write_text(text.replace(old, new, count), encoding="utf-8")
        return [str(fault) for fault in catalog.examine(tmp_path / "data")[1]]

    return edit


def test_the_data_are_sound():
    assert catalog.examine()[1] == []


@pytest.mark.parametrize(
    "file, old, new, expected",
    [
        ("ledgers", "  weights: 2\n", "  wieghts: 2\n", r"data/ledgers.yaml:\d+ bf16-adamw: unknown key 'wieghts'; did you mean 'weights'\?"),
        ("ledgers", "  weights: 2\n", "", r"data/ledgers.yaml:\d+ bf16-adamw: missing key 'weights'; add it"),
        ("ledgers", "  weights: 2\n", "  weights: 2\n  weights: 3\n", r"data/ledgers.yaml:\d+ bf16-adamw: duplicate key 'weights', first on line \d+"),
        ("ledgers", "  weights: 2\n", "  weights: '2'\n", r"bf16-adamw: weights is '2'"),
        ("ledgers", "  weights: 2\n", "  weights: -2\n", r"bf16-adamw: weights is -2"),
        ("ledgers", "  weights: 2\n", "  weights: .nan\n", r"is not a finite number"),
        ("ledgers", "  weights: 2\n", "  weights: 1e1\n", r"write all the digits"),
        ("ledgers", "  weights: 2\n", "  weights: 02\n", r"octal"),
        ("ledgers", "  weights: 2\n", "  weights: ２\n", r"full-width or other non-ASCII digits"),
        ("ledgers", "  weights: 2\n", "  weights:\n", r"empty value"),
        ("ledgers", "  weights: 2\n", "  weights： 2\n", r"full-width colon"),
        ("ledgers", "  weights: 2\n", "\tweights: 2\n", r"a tab"),
        ("ledgers", "bf16-adamw:\n", "bf16-adamw:\u200b\n", r"invisible character U\+200B"),
        ("tables", "  rows: {state: all}\n  fixed: {ledger: bf16-adamw}\n", "  rows: {state: all}\n", r"baseline-ledger: ledger = None: state:in_ledger needs it"),
        ("parameters", "count: 7_000_000_000", "count: 7e9", r"7B: YAML may read '7e9' as text; write all the digits"),
        ("parameters", "count: 7_000_000_000", "count: 0", r"7B: count is 0"),
        ("references", "accessed: '2026-07-31'", "accessed: 2026-07-31", r"YAML reads '2026-07-31' as a date; quote it"),
        ("references", "  whitepaper: true", "  whitepaper: yes", r"YAML reads 'yes' as a boolean"),
        ("references", "url: https://arxiv.org/abs/1706.03762", "url: arxiv.org/abs/1706.03762", r"attention-2017: url is 'arxiv"),
        ("claims", "references: [adam-2014, adamw-2017]", "references: [adam-2015, adamw-2017]", r"no 'adam-2015' in data/references.yaml; did you mean 'adam-2014'\?"),
        ("claims", "  rests_on: [ledger.weights]\n", "", r"an estimate needs 'rests_on' or 'basis'"),
        ("claims", "  settled_by: configuration\n", "", r"tag limit needs 'settled_by'"),
        ("claims", "  chapter_of_source: source-abstract\n", "", r"tag docx needs 'chapter_of_source'"),
        ("claims", "  tag: docx\n", "  tag: dox\n", r"tag is 'dox'; must be 'docx'"),
        ("terms", "  symbol: b_w\n", "  symbol: b_g\n", r"symbol 'b_g' is taken by 'symbol\.b_"),
        ("terms", "  en: FP16\n", "", r"fp16: missing key 'en'"),
        ("strategies", "shards: [optimizer]", "shards: [optimiser]", r"zero-1: shards\.0 is 'optimiser'; must be"),
        ("strategies", "  shards: [optimizer]\n", "", r"zero-1: needs exactly one of 'shards' and 'not_modelled'"),
        ("tables", "columns: [parameters, ledger.weights", "columns: [parameters, ledger.wieghts", r"sharding-70b: columns = 'ledger.wieghts'"),
        ("tables", "rows: {parameters: [70B]}", "rows: {parameters: [71B]}", r"sharding-70b: no '71B' in data/parameters.yaml; did you mean '7.?B'\?"),
        ("figures", "quantity: ledger.persistent\n", "quantity: ledger.persitent\n", r"did you mean 'ledger.persistent'\?"),
        ("formulas", "computes: ledger.weights", "computes: ledger.wights", r"no function 'ledger.wights' in byteledger; did you mean 'ledger.weights'\?"),
        ("accelerators", "memory_gb: 40\n", "memory_gb: 80000\n", r"a100-40gb: memory_gb is 80000; input should be less than or equal to 2000"),
        ("accelerators", "reported_mib: 40960", "reported_mib: 40", r"a100-40gb: reported_mib is 40; input should be greater than or equal to 4000"),
        ("accelerators", "memory_gb: 40\n", "memory_gb: .inf\n", r"'.inf' is not a finite number"),
        ("accelerators", "memory_gb: 40\n", "memory_gb: 1:30\n", r"in base sixty; quote it"),
        ("models", "tie_word_embeddings: false", "tie_word_embeddings: off", r"YAML reads 'off' as a boolean; write true or false"),
        ("models", "num_hidden_layers: 32\n", "num_hidden_layers: 0\n", r"llama-2-7b: num_hidden_layers is 0"),
        ("models", "vocab_size: 32000", "vocab_size: 32001", r"llama-2-7b: published_parameters is 6738415616, but the fields give 6738423808"),
        ("models", "num_key_value_heads: 32", "num_key_value_heads: 33", r"num_key_value_heads = 33: must divide num_attention_heads = 32"),
        ("models", "source: [transformers, hf-hub]", "source: [transformers, hf-hup]", r"no 'hf-hup' in data/references.yaml; did you mean 'hf-hub'\?"),
        ("dtypes", "source: [ocp-fp8]", "source: [pytorch-amp]", r"data/references.yaml:\d+ ocp-fp8: no record and no claim uses it; cite it, or remove it"),
        ("tables", "fixed: {ledger: bf16-adamw}", "fixed: {ledger: bf16-adam}", r"no 'bf16-adam' in data/ledgers.yaml; did you mean 'bf16-adamw'\?"),
        ("tables", "rows: {strategy: [ddp, zero-1", "rows: {strategy: [ddp, zero-11", r"no 'zero-11' in data/strategies.yaml; did you mean 'zero-1'\?"),
        ("claims", "  basis: scope\n", "  basis: scopes\n", r"no 'scopes' in data/terms.yaml of kind basis; did you mean 'scope'\?"),
        ("terms", "  zh: FP16\n", '  zh: "FP16\\u200b"\n', r"fp16: the invisible character U\+200B; delete it"),
        ("terms", "\nfp16:\n", "\nno:\n", r"YAML reads 'no' as a boolean; quote it"),
        ("dtypes", "fp32: {name: FP32, bits: 32,", "fp 32: {name: FP32, bits: 32,", r"fp 32: an id may hold only"),
    ],
)
def test_each_fault_names_its_place_and_its_cure(edited, file, old, new, expected):
    faults = edited(file, old, new)
    assert any(re.search(expected, fault) for fault in faults), faults
    assert all(re.match(r"data/\w+\.yaml:\d+( \S.*)?: .+; .+", fault) for fault in faults), faults


def test_one_fault_is_blamed_once(edited):
    """A record that cannot be read is not also blamed on everything that names it."""
    assert len(edited("ledgers", "  weights: 2\n", "  weights: x\n")) <= 2
    assert len(edited("parameters", "count: 70_000_000_000", "count: none")) <= 3


def test_all_faults_come_at_once(edited):
    edited("ledgers", "  weights: 2\n", "  wieghts: 2\n")
    edited("parameters", "count: 7_000_000_000", "count: 7e9")
    faults = edited("terms", "  en: FP16\n", "")
    assert {fault.split(":")[0] for fault in faults} >= {"data/ledgers.yaml", "data/parameters.yaml", "data/terms.yaml"}


def test_broken_yaml_is_a_fault_not_a_traceback(edited):
    assert any("not YAML" in fault for fault in edited("ledgers", "bf16-adamw:\n", "bf16-adamw: [\n"))


def test_a_missing_and_a_stray_file_are_faults(tmp_path):
    shutil.copytree(catalog.DATA, tmp_path / "data")
    (tmp_path / "data" / "ledgers.yaml").rename(tmp_path / "data" / "ledgres.yaml")
    faults = [str(fault) for fault in catalog.examine(tmp_path / "data")[1]]
    assert "data/ledgres.yaml:1: unknown file; did you mean 'ledgers'?" in faults
    assert any(fault.startswith("data/ledgers.yaml:1: the file is missing") for fault in faults)


def test_a_byte_order_mark_is_fine(tmp_path):
    shutil.copytree(catalog.DATA, tmp_path / "data")
    path = tmp_path / "data" / "dtypes.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert catalog.examine(tmp_path / "data")[1] == []


def test_the_claims_are_the_whitepapers():
    """Every claim of the whitepaper's checklist, with its tag."""
    checklist = yaml.safe_load((ROOT / "tests" / "whitepaper_claims.yaml").read_text(encoding="utf-8"))
    claims = catalog.load().claims
    assert {id: claims[id].tag for id in checklist if id in claims} == checklist


def test_the_tests_that_claims_name_exist():
    """verified_by may not rot."""
    for id, claim in catalog.load().claims.items():
        for test in claim.verified_by:
            path, name = test.split("::")
            assert re.search(r"^def %s\(" % name, (ROOT / path).read_text(encoding="utf-8"), re.M), (id, test)


def test_the_ten_sources_and_nineteen_terms():
    """Whitepaper 9 and 10.2."""
    data = catalog.load()
    assert [id for id, record in data.references.items() if record.whitepaper] == [
        "attention-2017", "zero-2019", "deepspeed-zero", "flashattention-2022", "pytorch-fsdp",
        "pytorch-amp", "mixed-precision-2018", "adam-2014", "adamw-2017", "hf-single-gpu",
    ]  # fmt: skip
    assert all(record.accessed == "2026-07-31" for record in data.references.values() if record.whitepaper)
    nineteen = (
        "bf16 fp16 mixed-precision adamw master-weights activation activation-checkpointing hbm sram io-aware flashattention zero fsdp "
        "rank all-gather reduce-scatter micro-batch kv-cache flops"
    ).split()
    assert len(nineteen) == 19 and all(data.terms[term].kind == "glossary" for term in nineteen)


def test_an_unknown_id_is_refused_in_words():
    with pytest.raises(catalog.UnknownId, match="no 'bf16-adam' in data/ledgers.yaml; did you mean 'bf16-adamw'"):
        catalog.load().ledgers["bf16-adam"]


def test_no_record_stores_what_follows():
    """Nothing derived is stored: no total and no GB in data/ (a note may explain a figure in words)."""
    for file, record in FILES.items():
        assert not {"total_bytes", "gb", "gib", "sum"} & set(record.model_fields), file


def test_what_one_does_to_a_catalog_no_other_sees():
    """Sound data is checked once and loaded often; tests and pages may put a record in the place of another."""
    one = catalog.load()
    one.tables["sharding-70b"] = one.tables["ledgers"]
    assert catalog.load().tables["sharding-70b"] is not one.tables["sharding-70b"]
