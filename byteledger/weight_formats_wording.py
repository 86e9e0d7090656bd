"""What reading a quantization_config says in both languages, beside what wording.py says of the rest of a configuration."""

ASSUMPTIONS = {
    "no_dtype": (
        "没有写 dtype，也没有 quantization_config；权重按 BF16 计。",
        "There is neither a dtype nor a quantization_config; the weights are taken in BF16.",
    ),
    "rest_is_bf16": (
        "文件没有写 dtype；未量化的部分按 BF16 计。",
        "The file names no dtype; what is not quantized is taken in BF16.",
    ),
    "default_keeps": (
        "{method} 没有列出不转换的模块；按惯例嵌入、输出头与路由器不转换。",
        "{method} lists no modules that are not converted; embedding, head and router are taken to stay, as is customary.",
    ),
    "router_stays": (
        "{key} 没有提到路由器；仍按不转换计。",
        "{key} does not name the router; it is taken to stay all the same.",
    ),
    "partly_kept": (
        "{key} 保留了 {part} 的一部分（{k} 个参数）；这里整个部分都按已转换计，结果偏小。",
        "{key} keeps a piece of {part} ({k} parameters); here the whole part counts as converted, so the figure is low.",
    ),
    "names_unread": (
        "{key} 里有 {k} 项对不上本模型的任何矩阵，未计入，例如 {value}。",
        "{k} entries of {key} fit no matrix of this model and were left out, such as {value}.",
    ),
    "own_settings": (
        "{key} 给个别模块另设格式；这里全部按同一种格式计。",
        "{key} gives single modules a format of their own; here all are taken in the same one.",
    ),
    "g_idx": (
        "GPTQ 文件里的 g_idx 不计入：每个输入通道 4 B。",
        "The g_idx of a GPTQ file is not counted: 4 B for every input channel.",
    ),
    "fused_experts": (
        "专家的矩阵按已转换计；若库把全部专家存成一个参数、而非逐个线性层，bitsandbytes 不会转换它们。",
        "The experts' matrices count as converted; where a library holds all experts in one parameter instead of linear layers, bitsandbytes does not convert them.",
    ),
}
