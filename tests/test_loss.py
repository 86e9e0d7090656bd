"""The loss, held to what PyTorch kept (tests/test_activation_profiles.py sums whole models) and to published figures."""

import pytest

from byteledger import loss
from byteledger.arguments import ArgumentError
from byteledger.units import GiB


def test_fp32_logits_of_qwen():
    """ISEEKYAN/Megatron-LM#132 prints 4.638 GiB; xtuner's header 4.6 for each of two FP32 copies: 8,192 tokens, V = 151,936."""
    assert loss.saved(1, 8192, 151936, "fp32", 2) == loss.saved(1, 8192, 151936, "vocabulary_parallel", 2) == 4.63671875 * GiB


def test_fourteen_bytes_per_logit():
    """torch 2.13.0, MemTracker and a real CPU allocator, Hugging Face Llama in BF16: 2 logits, 4 log-probabilities, 8 gradients live at once."""
    sizes = [f(1, 4096, 128256, "fp32", 2) for f in (loss.logits, loss.saved, loss.backward)]
    assert [size // (4096 * 128256) for size in sizes] == [2, 4, 8]
    assert loss.peak(*sizes) == 14 * 4096 * 128256


def test_published_rules_are_not_ours():
    """ml-engineering's 6 bytes per logit leave out backward; unsloth-zoo's fit of 10.03 was made with its own chunks."""
    peak = loss.peak(*(f(1, 4096, 128256, "fp32", 2) for f in (loss.logits, loss.saved, loss.backward))) / (4096 * 128256)
    assert peak > 10.03 > 6


def test_chunks_are_of_the_vocabulary():
    """xtuner's calculator takes 2 x tokens x chunk x 2 bytes: the chunk stands where the vocabulary belongs."""
    tokens, V, chunk = 8192, 151936, 1024
    ours = loss.backward(1, tokens, V, "chunked", 2, chunks=tokens // chunk)
    assert ours == 14 * chunk * V
    assert ours != 2 * tokens * chunk * 2


@pytest.mark.parametrize("V", [32000, 50257, 128256, 262144])
def test_each_policy_needs_less(V):
    def peak(policy, **more):
        return loss.peak(*(f(2, 2048, V, policy, 2, **more) for f in (loss.saved, loss.logits, loss.backward)))

    assert peak("fused") < peak("chunked", chunks=64) < peak("chunked", chunks=8) < peak("fp32")
    assert peak("vocabulary_parallel", tp=8) < peak("vocabulary_parallel", tp=2) < peak("vocabulary_parallel") < peak("fp32")
    assert peak("chunked", chunks=1) == peak("fp32")  # one chunk is the plain loss


@pytest.mark.parametrize("argument, changed", [("policy", {"policy": "bf16"}), ("V", {"V": 0}), ("chunks", {"chunks": 0}), ("tp", {"tp": 1.5}), ("b", {"b": -1})])
def test_refusals(argument, changed):
    for function in (loss.saved, loss.logits, loss.backward):
        with pytest.raises(ArgumentError) as refused:
            function(**{"B": 1, "S": 8, "V": 100, "policy": "fp32", "b": 2, **changed})
        assert refused.value.name == argument
