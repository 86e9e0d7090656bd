"""What the estimator says about a configuration, in both languages: assumptions beside a number, and refusals in place of one.

{key}, {value} and the like are filled in by whoever says it. Words of tables and labels stand in data/terms.yaml.
"""

ASSUMPTIONS = {
    "absent": (
        "未给出 {key}，取 {value}（{family} 的默认值）。",
        "{key} is absent; {value} is assumed, the default of {family}.",
    ),
    "class_default": (
        "嵌套的文本配置没有 {key}；按 {family} 配置类的默认值取 {value}。",
        "The nested text configuration has no {key}; {value} is assumed, the default of {family}'s configuration class.",
    ),
    "text_part": (
        "多模态配置：只算 {key} 里的文本部分；视觉塔、音频塔与投影层不计入。",
        "A multimodal configuration: only its text part, {key}, is counted; vision and audio towers and projectors are not.",
    ),
    "text_part_flat": (
        "多模态配置（model_type = {value}）：只算文本部分；{key} 描述的部分不计入。",
        "A multimodal configuration (model_type = {value}): only the text part is counted; what {key} describes is not.",
    ),
    "by_architecture": (
        "没有 model_type；按 architectures 里的 {value} 视作 {family}。",
        "There is no model_type; read as {family}, because architectures names {value}.",
    ),
    "other_type": (
        "不认识 model_type = {stated}；按 architectures 里的 {value} 视作 {family}。",
        "model_type = {stated} is unknown; read as {family}, because architectures names {value}.",
    ),
    "by_fields": (
        "不认识 model_type = {value}；其字段与 Llama 的完全一致，按 Llama 的规则计算：RMSNorm、门控 MLP、无未写明的偏置。",
        "model_type = {value} is unknown; its fields are exactly Llama's, so it is counted by Llama's rule: RMSNorm, gated MLP, no biases beyond those stated.",
    ),
    "outer_tie": (
        "tie_word_embeddings 在外层为 {value}、在 {key} 里相反；按外层计算，transformers 也是如此。",
        "tie_word_embeddings is {value} in the outer configuration and the opposite in {key}; the outer one decides, as in transformers.",
    ),
    "falcon_multi_query": (
        "{key} 为 true，但 new_decoder_architecture 下 Falcon 不看它：KV 头数取 {k}。",
        "{key} is true, but with new_decoder_architecture Falcon does not look at it: there are {k} KV heads.",
    ),
    "falcon_kv_heads": (
        "{key} = {value}，但旧架构的 Falcon 只看 multi_query：KV 头数取 {k}。",
        "{key} = {value}, but Falcon's old architecture looks only at multi_query: there are {k} KV heads.",
    ),
    "bert_scope": (
        "只算 AutoModel 建出的编码器与 pooler，不含语言模型头。",
        "Counted as AutoModel builds it: the encoder and its pooler, without a language-model head.",
    ),
    "mtp": (
        "{key} = {value}：多 token 预测（MTP）模块不计入；检查点里若有，文件会更大。",
        "{key} = {value}: the multi-token prediction (MTP) module is not counted; a checkpoint that holds it is larger.",
    ),
    "buffers": (
        "路由器的修正偏置（e_score_correction_bias）是缓冲区，不算参数；检查点里另有 {value} 个元素。",
        "The router's correction bias (e_score_correction_bias) is a buffer, not a parameter; a checkpoint holds {value} more elements.",
    ),
    "with_head": (
        "{key} 写的是 {value}，它没有语言模型头；这里按因果语言模型计算，含 {k} 个元素的输出头。",
        "{key} names {value}, which has no language-model head; counted as a causal language model, with a head of {k} elements.",
    ),
    "cross_attention": (
        "{key} 的 {k} 个交叉注意力层只缓存图像的 K、V，不随文本增长，不计入 KV cache。",
        "The {k} cross-attention layers of {key} cache only the image's K and V; they do not grow with the text and are not in the KV cache.",
    ),
    "zero_experts": (
        "{key} = {value} 个零专家不持有参数；每个 token 选 {k} 个专家，其中可能有零专家，激活参数量按全部选中真实专家计，是上限。",
        "The {value} zero experts of {key} hold no parameters; each token picks {k} experts, some of which may be zero experts. Active parameters are an upper bound, as if all those picked were real.",
    ),
    "cache_dtype": (
        "KV cache 按 {value}（每个元素 {k} B）计；权重的格式与此无关。",
        "The KV cache is counted in {value}, {k} B per element, whatever the format of the weights.",
    ),
    "cache_scales": (
        "不含 FP8/INT8 缓存的缩放因子；按张量缩放时每层只有几个字节。",
        "Scales of an FP8 or INT8 cache are not counted; with per-tensor scales they are a few bytes per layer.",
    ),
    "window": (
        "{k} 层带窗口（{value} 个 token）：两步之间每层每序列留下比窗口少一个的 token，计算时再多一个。有的分页引擎给每层都留着全部 token，见“引擎保留”。",
        "{k} layers have a window of {value} tokens: between steps each keeps one token fewer than that per sequence, during a step all of them. An engine that pages every layer for all tokens needs the amount in the line “Reserved by an engine”.",
    ),
    "latent": (
        "缓存的是 MLA 的潜向量与 RoPE 键，K、V 不分开存；把它们展开成逐头 K、V 的实现会大得多。",
        "What is cached is MLA's latent and its RoPE key, not separate K and V; an implementation that expands them into K and V for every head holds far more.",
    ),
    "state_dtype": (
        "循环状态与上下文长度无关，按 {value} 计（每个元素 {k} B）。",
        "The recurrent state does not grow with the context; it is counted in {value}, {k} B per element.",
    ),
    "no_engine": (
        "不含引擎的块取整、块表与预留；见 kv-cache 一页。",
        "An engine's rounding to blocks, its block tables and reserves are not counted; see the page kv-cache.",
    ),
    "positions": (
        "上下文 {value} 超过配置里的 max_position_embeddings = {k}；字节数仍照算。",
        "The context of {value} exceeds the configuration's max_position_embeddings = {k}; the bytes are computed all the same.",
    ),
}

# model_type -> why it has no rule.
NOT_MODELLED = {
    "zamba": ("各处共用的注意力块按适配器逐层变化", "its shared attention blocks differ from layer to layer by their adapters"),
    "zamba2": ("各处共用的注意力块按 LoRA 适配器逐层变化", "its shared attention blocks differ from layer to layer by their LoRA adapters"),
    "rwkv": ("RWKV 的时间混合没有规则", "there is no rule for RWKV's time mixing"),
    "rwkv5": ("RWKV 的时间混合没有规则", "there is no rule for RWKV's time mixing"),
    "rwkv6": ("RWKV 的时间混合没有规则", "there is no rule for RWKV's time mixing"),
    "rwkv7": ("RWKV 的时间混合没有规则", "there is no rule for RWKV's time mixing"),
    "xlstm": ("xLSTM 的单元没有规则", "there is no rule for xLSTM's cells"),
    "phi3small": ("块稀疏注意力与 GEGLU 没有规则", "there is no rule for its block-sparse attention and GEGLU"),
    "phi4_multimodal": ("文本层里有视觉与语音的 LoRA，没有规则", "its text layers hold LoRA adapters for vision and speech"),
    "phi4mm": ("文本层里有视觉与语音的 LoRA，没有规则", "its text layers hold LoRA adapters for vision and speech"),
    "jetmoe": ("注意力本身由专家组成，没有规则", "its attention is itself a mixture of experts"),
    "step3": ("因式分解注意力没有规则", "there is no rule for its factorized attention"),
    "step3p5": ("带窗口的层头数不同，注意力有门控，没有规则", "its windowed layers have other head counts, and its attention has gates"),
    "step3p7": ("带窗口的层头数不同，注意力有门控，没有规则", "its windowed layers have other head counts, and its attention has gates"),
    "yuan": ("局部滤波注意力（LFA）没有规则", "there is no rule for its localized filtering attention"),
    "openmoe": ("T5 式的专家模型没有规则", "there is no rule for its T5-like experts"),
    "molmo": ("配置以自己的字段描述 OLMo 架构，没有规则", "its configuration describes OLMo's architecture in fields of its own"),
    "kimi_k3": ("残差注意力与潜空间专家没有规则", "there is no rule for its attention residuals and its experts in a latent space"),
    "hunyuan": ("跨层共享的注意力（CLA）没有规则", "there is no rule for its cross-layer attention"),
    "llava_llama": ("请给出其 llm_cfg 里的文本配置", "give the configuration of its text part, llm_cfg"),
    "llava": ("text_config 里的文本配置才有规则", "only the configuration of its text part, text_config, has a rule"),
    "minicpmv": ("文本部分属于哪个家族随版本而变", "which family its text part is depends on its version"),
    "clip_vision_model": ("视觉编码器，不是语言模型", "a vision encoder, not a language model"),
    "clip": ("图文编码器，不是语言模型", "an image and text encoder, not a language model"),
    "siglip": ("图文编码器，不是语言模型", "an image and text encoder, not a language model"),
    "gpt_neox_japanese": ("只有最后一层有偏置，没有规则", "only its last layer has a bias"),
}

# How a name that is not there is helped along; {names} are the nearest.
NEAREST = ("相近的有：{names}。", "Did you mean {names}? ")

REFUSALS = {
    "no_file": ("找不到文件", "there is no such file"),
    "not_utf8": ("不是 UTF-8 文本", "not text in UTF-8"),
    "not_json": ("不是 JSON：{detail}", "not JSON: {detail}"),
    "not_object": ("最外层不是 JSON 对象", "the outermost value is not a JSON object"),
    "twice": ("出现两次，取值不同", "appears twice, with different values"),
    "no_model_type": (
        "没有 model_type，architectures 也认不出；请补上 model_type",
        "there is no model_type, and architectures names no known family; add model_type",
    ),
    "unknown_family": (
        "是 {value}，没有这个家族的规则。{near}全部 model_type：python -m byteledger params --list",
        "is {value}, a family without a rule. {near}All model_types with a rule: python -m byteledger params --list",
    ),
    "no_model": (
        "模型目录里没有 {value}。{near}全部 id：python -m byteledger params --list；也可以给出 config.json 的路径",
        "There is no {value} in the catalogue. {near}All ids: python -m byteledger params --list; the path of a config.json will do as well",
    ),
    "known_unmodelled": ("是 {value}，没有建模：{reason[0]}", "is {value}, which is not modelled: {reason[1]}"),
    "encoder_decoder": (
        "编码器–解码器模型（{value}）没有建模：两个栈的参数与缓存各有规则",
        "an encoder-decoder ({value}) is not modelled: its two stacks have rules of their own for parameters and cache",
    ),
    "missing": ("缺少；没有它算不出确切的参数量", "is missing; without it there is no exact count"),
    "not_a_size": ("是 {value}；须为 {least} 到 {most} 的整数", "is {value}; must be a whole number from {least} to {most}"),
    "not_a_flag": ("是 {value}；须为 true 或 false", "is {value}; must be true or false"),
    "not_a_choice": ("是 {value}；没有建模，已有：{known}", "is {value}, which is not modelled; those that are: {known}"),
    "not_a_list": ("是 {value}；须为 {k} 项的列表，每层一项", "is {value}; must be a list of {k} entries, one per layer"),
    "contradiction": ("是 {value}，但 {other} 给出 {k}", "is {value}, but {other} gives {k}"),
    "not_divisible": ("是 {value}；{other} = {k} 不能整除它，请给出 head_dim", "is {value}; {other} = {k} does not divide it; give head_dim"),
    "not_modelled": ("是 {value}；这一变体没有建模", "is {value}; this variant is not modelled"),
    "chatglm_first": ("ChatGLM-6B 第一代的架构没有建模", "the architecture of the first ChatGLM-6B is not modelled"),
    "argument": ("{detail}", "{detail}"),
    "no_cache": ("编码器不保留 KV cache", "an encoder keeps no KV cache"),
    "unused": ("{family} 没有这个字段；{detail}", "{family} has no such field; {detail}"),
}


def say(words, language, **values):
    """One of the pairs above in a language, filled in."""
    return words[0 if language == "zh" else 1].format(**values)
