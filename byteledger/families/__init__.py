"""How each family of models turns the fields of its config.json into layers: the family's own rules, in one place.

A rule takes a reader (hf_config.Fields) and gives an Architecture. Source of each rule: the configuration and modeling
files of the family in transformers 5.24.0, unless a comment or docstring names another.
"""

from .. import parameters as p
from .decoder import (
    Experts, after_dense, all_attend, alternating_lower, decoder, every_layer, every_layer_if_used, first_dense, interleaved, last_layers, rule,
    shared_experts, shared_width, sparse_step, upper_layers, without_rope,
)  # fmt: skip
from .dense import chatglm, decilm, gemma3n, gemma4, mllama, openelm, qwen
from .experts import dbrx, ernie_layers, llama4, mimo_v2_flash, minimax_m3
from .gpt import bert, biogpt, bloom, ctrl, falcon, gpt2, gpt_neo, gpt_neox, gptj, learned_positions, mpt, opt, phi
from .latent import all_indexed, deepseek, deepseek_v4, longcat_flash, minicpm3, some_indexed
from .state_space import (
    falcon_h1, granite_hybrid, jamba, kimi_linear, lfm2, mamba, mamba2, minimax, nemotron_h, olmo_hybrid, qwen3_next, recurrent_gemma,
)  # fmt: skip


def _per_head(read):
    """StableLM 2 12B: qk_layernorm is a LayerNorm without shift for each head."""
    return "all" if read.flag("qk_layernorm", absent=False) else None


def _if_use_qk_norm(of):
    return lambda read: of if read.flag("use_qk_norm", absent=False) else None


def _activation(read, D, a, d, f):
    """Apertus' xIELU has two learned numbers a layer."""
    return [p.Tensor("act_fn.alpha_p", (1,), "other"), p.Tensor("act_fn.alpha_n", (1,), "other")]


def _lambdas(read, D, a, d, f):
    return [p.Tensor("lambda_" + name, (d,), "other") for name in ("q1", "k1", "q2", "k2")]


def _inner_norms(read, D, a, d, f):
    return p.rms_norm("attn_sub_norm", D) + p.rms_norm("ffn_sub_norm", f)


def _one_norm(read):
    return read.flag("use_parallel_residual", absent=False)


_MIXTRAL = Experts("num_local_experts", "intermediate_size")
_GLM = Experts("n_routed_experts", shared=shared_experts("n_shared_experts"), where=after_dense(1), buffer=True)

FAMILIES = {
    # Llama and its relatives
    "llama": rule(decoder, mlp_bias="mlp_bias"),
    "mistral": rule(decoder, qkv_bias=False, layer_windows=every_layer),
    "ministral": rule(decoder, qkv_bias=False, layer_windows=every_layer),
    "ministral3": rule(decoder, qkv_bias=False, layer_windows=every_layer),
    "qwen2": rule(decoder, qkv_bias=True, o_bias=False, layer_windows=upper_layers),
    "qwen3": rule(decoder, layer_windows=upper_layers, qk_norm="head"),
    "gemma": rule(decoder),
    "gemma2": rule(decoder, norms=4, layer_windows=interleaved(2, key=None)),
    "gemma3_text": rule(decoder, norms=4, layer_windows=interleaved(6), qk_norm="head"),
    "vaultgemma": rule(decoder, layer_windows=interleaved(2, key=None)),
    "phi3": rule(decoder, qkv_bias=False, fused=True, fused_mlp=True, layer_windows=every_layer),
    "glm": rule(decoder, o_bias=False, fused_mlp=True),
    "glm4": rule(decoder, o_bias=False, fused_mlp=True, norms=4),
    "granite": rule(decoder, mlp_bias="mlp_bias"),
    "hyperclovax": rule(decoder, mlp_bias="mlp_bias", norms=lambda read: 4 if read.flag("use_post_norm", absent=True) else 2),
    "olmo": rule(decoder, kind="none"),
    "olmo2": rule(decoder, qk_norm="all"),
    "olmo3": rule(decoder, qk_norm="all", layer_windows=interleaved(4, key=None)),
    "smollm3": rule(decoder, mlp_bias="mlp_bias", layer_windows=without_rope),
    "seed_oss": rule(decoder, o_bias="attention_out_bias", mlp_bias="mlp_bias"),
    "starcoder2": rule(decoder, kind="layer", mlp="plain", qkv_bias="use_bias", mlp_bias="use_bias", layer_windows=every_layer),
    "cohere": rule(decoder, kind="scale", parallel=True, qk_norm=_if_use_qk_norm("all")),
    "cohere2": rule(decoder, kind="scale", parallel=True, layer_windows=interleaved(4)),
    "stablelm": rule(decoder, kind="layer", qkv_bias="use_qkv_bias", o_bias=False, parallel=_one_norm, qk_norm=_per_head, even=True),
    "exaone": rule(decoder, mlp_bias="mlp_bias"),
    "exaone4": rule(decoder, qkv_bias=False, qk_norm="head", layer_windows=interleaved(4)),
    "nemotron": rule(decoder, kind="layer", mlp="plain", mlp_bias="mlp_bias"),
    "arcee": rule(decoder, mlp="plain", mlp_bias="mlp_bias"),
    "apertus": rule(decoder, mlp="plain", qk_norm="head", more=_activation),
    "ernie4_5": rule(decoder, qkv_bias="use_bias", mlp_bias="use_bias"),
    "hunyuan_v1_dense": rule(decoder, qk_norm="head"),
    "helium": rule(decoder, o_bias=False, even=True),
    "cwm": rule(decoder, qkv_bias=False, layer_windows=interleaved(4, key=None, first=True)),
    "nanochat": rule(decoder, kind="none", mlp="plain"),
    "bitnet": rule(decoder, more=_inner_norms),
    "diffllama": rule(decoder, more=_lambdas),
    "internlm3": rule(decoder, qkv_bias="qkv_bias", o_bias="bias", mlp_bias="bias"),
    # Families whose code came with the checkpoint. InternLM: modeling_internlm.py, modeling_internlm2.py of internlm/internlm-7b,
    # internlm2-7b; Baichuan: modeling_baichuan.py of baichuan-inc/Baichuan2-7B-Base; MiniCPM: modeling_minicpm.py of
    # openbmb/MiniCPM-2B-sft-bf16; Orion: modeling_orion.py of OrionStarAI/Orion-14B-Base; MiMo: modeling_mimo.py of
    # XiaomiMiMo/MiMo-7B-Base; XVERSE: modeling_xverse.py of xverse/XVERSE-7B; DeepSeekMoE: modeling_deepseek.py of its checkpoint.
    "internlm": rule(decoder, qkv_bias=("bias", True)),
    "internlm2": rule(decoder, qkv_bias=("bias", False), fused=True),
    "baichuan": rule(decoder, qkv_bias=False, fused=True),
    "minicpm": rule(decoder, tied=True),
    "orion": rule(decoder, kind="layer", qkv_bias=False),
    "mimo": rule(decoder, qkv_bias=("attention_bias", True), o_bias=False, layer_windows=upper_layers),
    "xverse": rule(decoder, qkv_bias=False),
    "qwen": qwen,
    "chatglm": chatglm,
    "openelm": openelm,
    "decilm": decilm,
    # GPT and its relatives
    "openai-gpt": rule(gpt2, final="none"),
    "gpt2": gpt2,
    "gpt-sw3": gpt2,
    "gpt_bigcode": gpt2,
    "gpt_neo": gpt_neo,
    "gptj": gptj,
    "codegen": gptj,
    "gpt_neox": gpt_neox,
    "opt": opt,
    "biogpt": rule(biogpt, positions=learned_positions(2)),
    "xglm": biogpt,
    "ctrl": ctrl,
    "bloom": bloom,
    "falcon": falcon,
    "RefinedWeb": falcon,  # the model_type of Falcon before transformers took it in
    "RefinedWebModel": falcon,
    "mpt": mpt,
    "phi": phi,
    "phi-msft": phi,
    "persimmon": rule(phi, parallel=False),
    "mllama_text_model": mllama,
    "gemma3n_text": gemma3n,
    "gemma4_text": gemma4,
    "bert": bert,
    # Experts
    "mixtral": rule(decoder, qkv_bias=False, layer_windows=every_layer, moe=_MIXTRAL),
    "phimoe": rule(decoder, kind="layer", layer_windows=every_layer, head_bias="lm_head_bias", moe=_MIXTRAL),
    "qwen2_moe": rule(
        decoder, qkv_bias="qkv_bias", o_bias=False, layer_windows=alternating_lower,
        moe=Experts(shared=shared_width("shared_expert_intermediate_size"), shared_gate=True, where=sparse_step),
    ),
    "qwen3_moe": rule(decoder, layer_windows=every_layer_if_used, qk_norm="head", moe=Experts(where=sparse_step)),
    "olmoe": rule(decoder, qk_norm="all", even=True, moe=Experts("num_experts", "intermediate_size")),
    "flex_olmo": rule(decoder, qk_norm="all", moe=Experts("num_experts", "intermediate_size")),
    "gpt_oss": rule(
        decoder, layer_windows=interleaved(2, key=None), sinks=True,
        moe=Experts("num_local_experts", "intermediate_size", bias=True, router_bias=True),
    ),
    "glm4_moe": rule(decoder, o_bias=False, moe=_GLM, qk_norm=_if_use_qk_norm("head")),
    "minimax_m2": rule(
        decoder, qkv_bias=False, qk_norm="all", layer_windows=all_attend, moe=Experts("num_local_experts", "intermediate_size", buffer=True)
    ),
    "granitemoe": rule(decoder, moe=_MIXTRAL),
    "granitemoeshared": rule(decoder, moe=Experts("num_local_experts", "intermediate_size", shared=shared_width("shared_intermediate_size"))),
    "ernie4_5_moe": rule(
        decoder, qkv_bias=False,
        moe=Experts("moe_num_experts", per_token="moe_k", router_bias=True, shared=shared_experts("moe_num_shared_experts"), where=ernie_layers),
    ),
    "hunyuan_v1_moe": rule(decoder, qk_norm="head", moe=Experts("num_experts", "intermediate_size", "moe_topk", shared=lambda read, f: f)),
    "dots1": rule(decoder, qk_norm="head", layer_windows=last_layers, moe=_GLM),
    "solar_open": rule(decoder, o_bias=False, moe=Experts("n_routed_experts", shared=shared_experts("n_shared_experts"), buffer=True)),
    "exaone_moe": rule(
        decoder, qkv_bias=False, qk_norm="head", layer_windows=interleaved(4),
        moe=Experts(shared=shared_experts("num_shared_experts"), where=after_dense(1), buffer=True),
    ),
    "hy_v3": rule(
        decoder, qk_norm="head", moe=Experts(shared=shared_experts("num_shared_experts", least=1), where=first_dense, buffer=True)
    ),
    "afmoe": rule(
        decoder, qk_norm="head", norms=4, gate=True, layer_windows=interleaved(4, key="global_attn_every_n_layers"),
        moe=Experts(router_bias=True, shared=shared_experts("num_shared_experts"), where=after_dense(1, "num_dense_layers")),
    ),
    "sarvam_moe": rule(decoder, o_bias=False, qk_norm=_if_use_qk_norm("head"), moe=_GLM),
    "deepseek": rule(decoder, moe=Experts("n_routed_experts", shared=shared_experts("n_shared_experts"), where=after_dense(0))),
    "dbrx": dbrx,
    "llama4_text": llama4,
    "mimo_v2_flash": mimo_v2_flash,
    "minimax_m3_vl_text": minimax_m3,
    # Latent attention
    "deepseek_v2": rule(deepseek, buffer=False),
    "deepseek_v3": deepseek,
    "deepseek_v32": rule(deepseek, indexer=all_indexed, where=after_dense(3)),
    "deepseek_v4": deepseek_v4,
    "glm4_moe_lite": rule(deepseek, where=first_dense, rope_head=True),
    "glm_moe_dsa": rule(deepseek, indexer=some_indexed, where=after_dense(3)),
    "mistral4": rule(deepseek, buffer=False),
    "sarvam_mla": deepseek,
    "minicpm3": minicpm3,
    "longcat_flash": longcat_flash,
    "kimi_linear": kimi_linear,
    # State-space and hybrid
    "mamba": mamba,
    "falcon_mamba": mamba,
    "mamba2": mamba2,
    "jamba": jamba,
    "nemotron_h": nemotron_h,
    "qwen3_next": rule(qwen3_next, moe="step"),
    "qwen3_5_text": qwen3_next,
    "qwen3_5_moe_text": rule(qwen3_next, moe="all"),
    "olmo_hybrid": olmo_hybrid,
    "granitemoehybrid": granite_hybrid,
    "bamba": granite_hybrid,
    "falcon_h1": falcon_h1,
    "recurrent_gemma": recurrent_gemma,
    "lfm2": lfm2,
    "lfm2_moe": rule(lfm2, moe=True),
    "minimax": minimax,
}
