"""Devices, held to what drivers and frameworks have printed in public. Each figure is typed here with its source."""

import re

import pytest

from byteledger import catalog, quantities
from macros import tables as printed_tables
from test_tables import Bare, printed

DATA = catalog.load()
MIB, GIB = 2**20, 2**30


def reported(id):
    return quantities.evaluate(DATA, "accelerators.reported", {"accelerator": id}).value


@pytest.mark.parametrize(
    "id, sold_gb, total_mib",
    [
        ("a100-40gb", 40, 40960),  # modal-labs/modal-client#2797
        ("a100-80gb", 80, 81920),  # modal-labs/modal-client#2797
        ("h100-sxm-80gb", 80, 81559),  # modal-labs/modal-client#2797
        ("h200", 141, 143771),  # nvidia-smi in public issues
        ("gh200-96gb", 96, 97871),  # nvidia-smi in public issues
        ("h20-96gb", 96, 97871),  # nvidia-smi in public issues
        ("b200", 180, 183359),  # NVIDIA/TensorRT-LLM#10278; martin-marek/batch-size
        ("l40s", 48, 46068),  # modal-labs/modal-client#2797
        ("a40", 48, 46068),  # nvidia-smi in public issues
        ("l20", 48, 46068),  # nvidia-smi in public issues
        ("a10", 24, 23028),  # modal-labs/modal-client#2797
        ("l4", 24, 23034),  # modal-labs/modal-client#2797
        ("t4", 16, 15360),  # modal-labs/modal-client#2797
        ("rtx-4090", 24, 24564),  # vllm-project/vllm#7553
        ("rtx-5090", 32, 32607),  # ai-dynamo/aiconfigurator systems/rtx_5090.yaml
        ("ascend-910b-64gb", 64, 65536),  # npu-smi in vllm-project/vllm-ascend#4505
        ("ascend-910b4-32gb", 32, 32768),  # npu-smi in public issues
        ("gb200", 186, 189471),  # ai-dynamo/aiconfigurator systems/gb200.yaml
        ("b300", 288, 275040),  # ai-dynamo/aiconfigurator systems/b300_sxm.yaml
        ("rtx-pro-6000", 96, 97887),  # ai-dynamo/aiconfigurator systems/rtx_pro_6000_server.yaml
    ],
)
def test_what_the_driver_reports(id, sold_gb, total_mib):
    assert (DATA.accelerators[id].memory_gb, reported(id)) == (sold_gb, total_mib * MIB)


@pytest.mark.parametrize("id, sold_gb", [("mi325x", 256), ("mi350x", 288), ("mi355x", 288)])
def test_sold_without_a_published_total(id, sold_gb):
    """stas00/ml-engineering, compute/accelerator: the vendor's figure only."""
    assert (DATA.accelerators[id].memory_gb, reported(id)) == (sold_gb, None)


@pytest.mark.parametrize("id, total_bytes", [("h100-sxm-80gb", 85_520_809_984), ("mi300x", 206_141_652_992)])
def test_exact_bytes(id, total_bytes):
    """modal-labs/modal-client#2797 and ROCm/legacy-rocm-build#4750 print the bytes themselves."""
    assert reported(id) == total_bytes


def test_binary_gigabytes():
    """modal-labs/modal-client#2797: 40960 and 81920 MiB are 40 and 80 GiB."""
    for id, sold in (("a100-40gb", 40), ("a100-80gb", 80)):
        assert reported(id) == sold * GIB
        assert quantities.evaluate(DATA, "accelerators.shortfall", {"accelerator": id}).value == 0


def test_decimal_gigabytes():
    """ai-dynamo/aiconfigurator systems/b300_sxm.yaml: 288400343040 bytes, sold as 288 GB: decimal to a seventh of a percent."""
    assert reported("b300") == 288_400_343_040
    assert reported("b300") == pytest.approx(288e9, rel=0.0015)
    assert reported("b300") < 0.94 * 288 * GIB


def test_ecc_takes_a_sixteenth():
    """CUDA best practices guide, quoted in NVIDIA's forum (topic 173099): 6.25 % of GDDR memory. RTX A6000: ECC off."""
    assert reported("t4") == 16 * GIB * 15 / 16
    for id in ("a10", "l4", "l40s", "a40"):
        assert reported(id) / (DATA.accelerators[id].memory_gb * GIB) == pytest.approx(15 / 16, rel=0.001)
    assert reported("rtx-a6000") > 0.999 * 48 * GIB


@pytest.mark.parametrize(
    "id, total_gib",
    [
        ("a100-80gb", 79.15),  # stas00/ml-engineering, training/performance: 79.15 and 79.21
        ("h100-sxm-80gb", 79.11),  # vllm-project/vllm#27508
        ("h100-96gb", 95.0396),  # pytorch/torchtitan#135
        ("b200", 178.35),  # pytorch/ao#4002
        ("t4", 14.75),  # hpcaitech/Open-Sora#697
        ("rtx-4090", 23.68),  # zai-org/CogVideo#36
        ("ascend-910b-64gb", 60.96),  # torch_npu in public issues: 60.96 to 61.28
    ],
)
def test_a_framework_sees_less(id, total_gib):
    record = DATA.accelerators[id]
    assert record.framework_gib == total_gib
    if record.reported_mib:
        assert 0.95 < total_gib * GIB / reported(id) < 1


def test_published_errors_are_not_ours():
    """fitcheck-llm 0.3.1: nominal x 1024. cli99/llm-analysis: a10-pcie-28gb. PyTorch device_info.py: L4 at 3350 GB/s."""
    wrong = {"h100-sxm-80gb": 81920, "h200": 144384, "l40s": 49152, "b200": 196608}
    for id, mib in wrong.items():
        assert reported(id) < mib * MIB
    assert DATA.accelerators["a10"].memory_gb == 24
    assert DATA.accelerators["l4"].bandwidth_gb_s == 300
    assert all(record.memory_gb != 28 for record in DATA.accelerators.values())


def test_every_total_lies_between_the_two_readings():
    """The vendor's figure read as decimal is safe, read as GiB never: what the page advises where no total is known."""
    for id, record in DATA.accelerators.items():
        if record.reported_mib:
            assert record.memory_gb * 10**9 <= reported(id) <= record.memory_gb * GIB, id
    seen = {id: record.framework_gib * GIB for id, record in DATA.accelerators.items() if record.framework_gib}
    # hpcaitech/Open-Sora#697 on a T4, 14.75 GiB: the exception that the page names.
    assert len(seen) > 5 and {id for id, total in seen.items() if total < DATA.accelerators[id].memory_gb * 10**9} == {"t4"}


@pytest.mark.parametrize("language, words", [("zh", "未收录"), ("en", "no source")])
def test_an_absent_fact_says_so(language, words):
    """No cell of the table is empty, and none that no source fills looks like a number."""
    rows = {row[0]: row for row in printed("accelerators", language)[1:]}
    assert len(rows) == len(DATA.accelerators) >= 20
    assert all(cell for row in rows.values() for cell in row)
    assert rows["AMD Instinct MI325X"][3:7] == [words] * 4
    assert rows["NVIDIA H100 SXM 80GB"][3:] == ["81,559", "79.6", "0.353", "79.11", "3,350"]
    assert words in printed_tables.markdown(DATA, "accelerators", language)


def test_units_stand_in_the_headings():
    head = printed_tables.render(DATA, "accelerators", Bare("en")).split("<tbody>")[0]
    assert re.findall(r'class="unit">([^<]+)', head.replace("<wbr>", "")) == ["GB", "MiB", "GiB", "GiB", "GiB", "GB/s"]
