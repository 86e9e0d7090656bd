"""Published figures that are wrong: the estimator gives none of them, and gives what is right instead."""

import re
import shutil
from fractions import Fraction

import pytest

from byteledger import catalog, published

DATA = catalog.load()
CELLS = [(id, key) for id, record in DATA.distrusted.items() for key in record.cells]


def cell(id, key):
    return published.Cell(DATA, "distrusted", id, key)


@pytest.mark.parametrize("id, key", CELLS, ids=lambda part: part)
def test_the_estimator_gives_no_distrusted_figure(id, key):
    """The difference is above the printed precision: at least one in the last printed digit, and 0.3 % of a formula's value."""
    found = cell(id, key)
    off = abs(found.exact - found.figure)
    assert off >= (Fraction(1, 10**found.digits) if found.digits is not None else found.figure * 3 / 1000)


# What is right, from the source that says so or by the test's own arithmetic; in the unit of the record.
RIGHT = {
    ("hf-llama-3.1-405b", "1k"): 0.492, ("hf-llama-3.1-405b", "16k"): 7.69, ("hf-llama-3.1-405b", "128k"): 61.52,  # half, in GiB
    ("lmcache-mla", "token"): 61 * (512 + 64),  # DeepSeek-V2, section 2.1: latent and RoPE key
    ("cookbook-cache", "4097"): 1.25,  # 2 x 80 x 8 x 128 x 4,097 x 2 B
    ("llm-analysis-parameters", "llama-3-8b"): 8_030_261_248,  # bytes of the files on the Hub / 2
    ("llm-analysis-parameters", "llama-2-7b"): 6_738_415_616,
    ("xtuner-parameters", "qwen3-8b"): 8.190735360,  # transformers, meta device
    ("vram-calculator-presets", "mistral-7b"): 7.241732096, ("vram-calculator-presets", "gpt2-xl"): 1.5576112, ("vram-calculator-presets", "llama-2-70b"): 68.976648192,
    ("deepseek-v3-files", "deepseek-v3"): 671_026_404_352,
    ("deepspeed-documentation", "t5-3b"): 11.28,  # DeepSpeed's estimate_zero2_model_states_mem_needs of today: 2P + 18P/8
    ("deepspeed-documentation", "formula"): 11.28,
    ("cookbook-tensor-parallel", "tp8"): 1.57,  # 2 x 6.74e9 / 8, and d = 1
    ("accelerate-training", "fp16"): 16,  # Rajbhandari et al. 2019
    ("llama-factory-18", "7B"): 126, ("llama-factory-18", "14B"): 252, ("llama-factory-18", "30B"): 540, ("llama-factory-18", "70B"): 1260,
    ("llama-factory-8", "7B"): 56, ("llama-factory-8", "14B"): 112, ("llama-factory-8", "30B"): 240, ("llama-factory-8", "70B"): 560,
    ("hf-llama-3.1-training", "8b"): 64.24, ("hf-llama-3.1-training", "70b"): 564.43,  # 8 B x 8.03e9, 70.55e9
    ("deepspeed-muon", "saving"): 1.29,  # 4 B x 2,774,773,760 / 8
    ("playbook-gradients", "fp32-gradients"): 20,  # 2 + 2 + 4 + 4 + 8
    ("aiinfraguide-adam", "optimizer"): 80.4, ("aiinfraguide-total", "total"): 107.2,  # 12 and 16 B x 6.7e9
    ("scaling-book-int4", "70b"): 35,
    ("scaling-book-checkpoints", "three"): 15.73,  # 2 x 8192 x 4e6 x 3 x 80
    ("cookbook-checkpointing", "gpt-3"): (2 * 96 + 114) * 2048 * 12288 / 1e9,  # 2sbh for 96 layers, (34 + 80) sbh for one
    ("xtuner-swiglu", "qwen3-8b"): 8 * 12288,  # four tensors of f in BF16
    ("xtuner-chunked-loss", "qwen3-8b"): 14 * 1024 * 151936 / 2**20,  # 14 B for each logit of a chunk of 1,024 tokens
    ("playbook-34", "8b"): 49.03, ("playbook-34", "70b"): 48.53,  # (16h + 4ad + 4kd + 8f + 4a + 8) / h, as saved_tensors_hooks counted
    ("fitcheck-devices", "h100"): 81_559, ("fitcheck-devices", "h200"): 143_771, ("fitcheck-devices", "l40s"): 46_068, ("fitcheck-devices", "b200"): 183_359,  # nvidia-smi
    ("llm-analysis-a10", "a10"): 24,
}  # fmt: skip


def test_what_is_right_instead():
    assert set(RIGHT) == set(CELLS)
    for (id, key), right in RIGHT.items():
        assert float(cell(id, key).exact) == pytest.approx(right, rel=1e-12 if right > 10**9 else 2e-3), (id, key)
    # The formula of the printed chunk has no vocabulary in it; that of the block no width of the MLP.
    assert cell("xtuner-swiglu", "qwen3-8b").figure == 2 * (4 * 4096 + 2 * 12288)


# The negative controls of this project's list of reference values, and the record of each.
CONTROLS = {
    "ds-doc-z2-none": "deepspeed-documentation", "hf-llama31-405b-kv": "hf-llama-3.1-405b", "lmcache-mla": "lmcache-mla", "cookbook-kv": "cookbook-cache",
    "cookbook-full-ckpt": "cookbook-checkpointing", "cookbook-zero-tp": "cookbook-tensor-parallel", "llm-analysis-head": "llm-analysis-parameters",
    "accelerate-train": "accelerate-training", "xtuner-gi-params": "xtuner-parameters", "xtuner-chunked-loss": "xtuner-chunked-loss", "xtuner-swiglu": "xtuner-swiglu",
    "scalingbook-int4": "scaling-book-int4", "scalingbook-ckpt": "scaling-book-checkpoints", "vramcalc-presets": "vram-calculator-presets", "fitcheck-gpu": "fitcheck-devices",
    "llm-analysis-a10": "llm-analysis-a10", "lmf-table": "llama-factory-18", "muon-3gib": "deepspeed-muon", "playbook-llama-34": "playbook-34", "playbook-104": "playbook-gradients",
    "aiinfra-24": "aiinfraguide-adam",
}  # fmt: skip


def test_every_negative_control_has_its_record_and_its_row():
    assert set(CONTROLS.values()) <= set(DATA.distrusted)
    for axis in ("distrusted_cell", "distrusted"):
        shown = [choice for id in DATA.tables for choice in DATA.tables[id].rows.get(axis, ())]
        assert sorted(shown) == sorted(DATA.distrusted), axis
    for record in DATA.distrusted.values():
        assert DATA.references[record.source[0]].url


def test_a_figure_that_holds_would_be_found(tmp_path):
    """An edit that makes the estimator give the figure leaves nothing to distrust; the test above then fails for the cell."""
    shutil.copytree(catalog.DATA, tmp_path / "data")
    path = tmp_path / "data" / "distrusted.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("printed: '28'", "printed: '24'"), encoding="utf-8")
    found = published.Cell(catalog.load(tmp_path / "data"), "distrusted", "llm-analysis-a10", "a10")
    assert found.agrees and found.within_last_digit and found.exact == found.figure


def test_bad_data_are_told_by_line(tmp_path):
    shutil.copytree(catalog.DATA, tmp_path / "data")
    path = tmp_path / "data" / "distrusted.yaml"
    text = path.read_text(encoding="utf-8")
    for old, new, expected in (
        ("  holds:", "  hold:", "unknown key 'hold'; did you mean 'holds'"),
        ("inputs: {context: 4097}", "inputs: {context: four}", r"cookbook-cache: 4097: context = 'four': must be a whole number; correct it"),
    ):
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        faults = [str(fault) for fault in catalog.examine(tmp_path / "data")[1]]
        assert any(re.search(expected, fault) and fault.startswith("data/distrusted.yaml:") for fault in faults), faults
