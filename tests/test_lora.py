"""LoRA and QLoRA against counts and differences that others published."""

import pytest

from byteledger import catalog, hf_config, lora, parameters, weight_formats
from byteledger.arguments import ArgumentError

DATA = catalog.load()
EVERY = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def base(model, format):
    record = DATA.weight_formats[format]
    return lora.base(DATA.architecture(model), record.bits, record.scales, record.keeps, record.kept_bytes)


@pytest.mark.parametrize("model, published", [("llama-2-7b", 4_194_304), ("llama-2-13b", 6_553_600)])
def test_litgpt_trainable_parameters(model, published):
    """LitGPT, tutorials/resource-tables.md: r = 8 on query and value."""
    assert lora.trainable(DATA.architecture(model), 8, ["q_proj", "v_proj"]) == published


def test_all_linear_is_the_seven_matrices_of_llama():
    """32 layers, D = 4096, f = 11008: r (4 x 2 D + 3 (D + f)) each; peft prints 39,976,960 of 6,778,392,576 at r = 16."""
    llama = DATA.architecture("llama-2-7b")
    assert lora.trainable(llama, 16, "all-linear") == lora.trainable(llama, 16, EVERY) == 39_976_960


def test_peft_counts_of_gpt2():
    """peft on GPT-2, r = 8, c_attn: 294,912 trainable parameters of 124,734,720, as print_trainable_parameters says in many public notebooks."""
    gpt2 = hf_config.from_dict({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024}).architecture
    assert lora.trainable(gpt2, 8, "c_attn") == 294_912
    assert parameters.total(gpt2) + 294_912 == 124_734_720
    assert lora.trainable(gpt2, 8, "c_proj") == 12 * 8 * ((768 + 768) + (3072 + 768))  # attention and MLP share the name


def test_shapes_of_a_pair():
    a, b = lora.adapters(DATA.architecture("llama-2-70b"), 16, "k_proj")
    assert (a[0].shape, b[0].shape, a[1], b[1]) == ((16, 8192), (1024, 16), 80, 80)


@pytest.mark.parametrize("model, difference_gb, measured", [("llama-2-7b", 0.302, 0.30), ("llama-2-13b", 0.592, 0.59)])
def test_litgpt_double_quantization(model, difference_gb, measured):
    """LitGPT, resource tables: double quantization saves 0.30 GB on 7B and 0.59 GB on 13B, 0.373 bit a parameter."""
    saved = (base(model, "nf4") - base(model, "nf4-double")) / 1e9
    assert saved == pytest.approx(difference_gb, abs=0.0005)
    assert saved == pytest.approx(measured, abs=0.01)


@pytest.mark.parametrize("format, per_element", [("nf4", 0.5625), ("nf4-double", 0.515869140625)])
def test_nf4_base_keeps_the_rest_in_16_bit(format, per_element):
    """Dettmers et al. 2023, section 3. Embedding and head are 131,072,000 each in Llama 2 7B; 65 norms of 4,096."""
    kept = 2 * 131_072_000 + 65 * 4096
    N = parameters.total(DATA.architecture("llama-2-7b"))
    assert base("llama-2-7b", format) == per_element * (N - kept) + 2 * kept
    assert weight_formats.kept(DATA.architecture("llama-2-7b"), DATA.weight_formats[format].keeps) == kept


@pytest.mark.parametrize(
    "model, format, used_gb",
    [("llama-2-7b", "nf4", 4.57), ("llama-2-7b", "nf4-double", 4.26), ("llama-2-13b", "nf4", 8.32), ("llama-2-13b", "nf4-double", 7.72), ("llama-2-70b", "nf4-double", 37.21)],
)
def test_litgpt_generation_is_above_the_base(model, format, used_gb):
    """LitGPT, memory used in generation: a bound from above, with the KV cache and temporaries in it."""
    assert 0.9 * used_gb * 1e9 < base(model, format) < used_gb * 1e9 * (1 + 1e-9)


def test_torchtune_after_initialization():
    """torchtune, LoRA tutorial, Llama 2 7B: 13.98 GB reserved after init: the BF16 base, 13.48 GB, and little else."""
    N_LoRA = lora.trainable(DATA.architecture("llama-2-7b"), 8, ["q_proj", "v_proj"])
    held = lora.persistent(base("llama-2-7b", "bf16"), N_LoRA, 2, 2, 0, 2, 2)
    assert 13.476e9 < held < 13.98e9
    assert held - base("llama-2-7b", "bf16") == 8 * N_LoRA


def test_qlora_of_65b_fits_48_gb():
    """Dettmers et al. 2023: 65B on one 48 GB GPU. Llama 1 65B in NF4 with double quantization: 34.4 GB of weights."""
    llama = hf_config.from_dict(
        {"model_type": "llama", "vocab_size": 32000, "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "intermediate_size": 22016}
    ).architecture
    record = DATA.weight_formats["nf4-double"]
    assert parameters.total(llama) == 65_285_660_672  # counted with transformers
    weights = lora.base(llama, record.bits, record.scales, record.keeps)
    assert weights == pytest.approx(34.4e9, rel=0.002)


def test_routed_experts_are_left_alone():
    """transformers 5 keeps a layer's experts in two parameters: all-linear reaches attention, and shared experts where there are some."""
    mixtral = DATA.architecture("mixtral-8x7b")
    assert lora.trainable(mixtral, 8, "all-linear") == lora.trainable(mixtral, 8, ["q_proj", "k_proj", "v_proj", "o_proj"])
    with pytest.raises(ArgumentError, match="gate_proj"):
        lora.adapters(mixtral, 8, ["gate_proj"])


def test_several_gpus():
    """FSDP divides base and adapters, DDP divides nothing; one rank alone holds all either way."""
    assert lora.per_rank(8e9, 8e6, 8, True) == (8e9 + 8e6) / 8
    assert lora.per_rank(8e9, 8e6, 8, False) == 8e9 + 8e6
    assert lora.per_rank(8e9, 8e6, 1, True) == lora.per_rank(8e9, 8e6, 1, False)


@pytest.mark.parametrize("r, target, name", [(0, "q_proj", "r"), (8, "q_projj", "target_modules"), (8, [], "target_modules"), (8, "lm_head", "target_modules")])
def test_what_cannot_be_adapted_is_refused_by_name(r, target, name):
    with pytest.raises(ArgumentError) as error:
        lora.adapters(DATA.architecture("llama-2-7b"), r, target)
    assert error.value.name == name
