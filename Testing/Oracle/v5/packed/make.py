"""Writes small random llamas whose weights are quantized as published models have them, and their weights in F32.

Each format follows its own definition, in double precision (numpy), and nothing of Attention Atlas: MXFP4 and NVFP4 (OCP
Microscaling Formats 1.0), FP8 (OCP 8-bit Floating Point), GPTQ (AutoGPTQ's QuantLinear), AWQ (AutoAWQ's WQLinear_GEMM),
compressed-tensors (pack_to_int32), bitsandbytes (QuantState), MLX (mlx.core.quantize). Run it in this folder; it writes a
folder of each format.
"""

from __future__ import annotations

import json
import pathlib
import struct

import numpy as np

LAYER = "model.layers.0."
SIZES = {"self_attn.k_proj": (16, 32), "self_attn.o_proj": (32, 32), "mlp.gate_proj": (64, 32), "mlp.down_proj": (32, 64)}
CONFIG = {
    "model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 16, "vocab_size": 24, "max_position_embeddings": 64, "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0, "tie_word_embeddings": False, "hidden_act": "silu", "torch_dtype": "bfloat16",
}
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


class BFloat16:
    """Upper halves of floats, rounded to even."""

    def __init__(self, values: np.ndarray) -> None:
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
        self.bits = ((bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)).astype(np.uint16)

    def numbers(self) -> np.ndarray:
        return (self.bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


class Bytes:
    """Numbers of another type by their bytes."""

    def __init__(self, name: str, codes: np.ndarray) -> None:
        self.name = name
        self.codes = np.ascontiguousarray(codes, np.uint8)


def write(path: pathlib.Path, tensors: dict[str, object]) -> None:
    """A safetensors file."""
    names = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "int8": "I8",
             "uint8": "U8", "uint32": "U32"}
    header: dict[str, object] = {}
    data = b""
    for name, tensor in sorted(tensors.items()):
        if isinstance(tensor, BFloat16):
            dtype, array = "BF16", tensor.bits
        elif isinstance(tensor, Bytes):
            dtype, array = tensor.name, tensor.codes
        else:
            array = np.asarray(tensor)
            dtype = names[str(array.dtype)]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def packed(codes: np.ndarray, bits: int) -> np.ndarray:
    """Integers of each row one after the other in words of 32 bits, the lowest bits first."""
    rows, columns = codes.shape
    words = np.zeros((rows, -(-columns * bits // 32)), np.uint64)
    for column in range(columns):
        for bit in range(bits):
            place = column * bits + bit
            words[:, place // 32] |= (codes[:, column].astype(np.uint64) >> np.uint64(bit) & np.uint64(1)) << np.uint64(place % 32)
    return words.astype(np.uint32)


def float8(exponent_bits: int, byte: int) -> float:
    mantissa_bits = 7 - exponent_bits
    sign = -1.0 if byte & 0x80 else 1.0
    exponent = byte >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = byte & (1 << mantissa_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / 2.0**mantissa_bits) * 2.0 ** (exponent - bias)


E4M3 = np.array([float8(4, byte) for byte in range(256)])


class Model:
    """The tensors of a model, and the weights of those that are quantized."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        normal = lambda *shape: BFloat16(self.random.normal(0, 0.2, shape))
        self.tensors: dict[str, object] = {
            "model.embed_tokens.weight": normal(24, 32), "lm_head.weight": normal(24, 32),
            "model.norm.weight": BFloat16(np.ones(32)), LAYER + "input_layernorm.weight": BFloat16(np.ones(32)),
            LAYER + "post_attention_layernorm.weight": BFloat16(np.ones(32)),
            LAYER + "self_attn.q_proj.weight": normal(32, 32), LAYER + "self_attn.v_proj.weight": normal(16, 32),
            LAYER + "mlp.up_proj.weight": normal(64, 32),
        }
        self.weights: dict[str, object] = {}

    def codes(self, shape: tuple[int, ...], bits: int) -> np.ndarray:
        return self.random.integers(0, 1 << bits, shape)

    def scales(self, shape: tuple[int, ...], scale: float = 0.05) -> np.ndarray:
        return self.random.uniform(0.3, 1, shape) * scale

    def add(self, module: str, parts: dict[str, object], weight: np.ndarray) -> None:
        for name, tensor in parts.items():
            self.tensors[LAYER + module + "." + name] = tensor
        self.weights[LAYER + module + ".weight"] = weight.astype(np.float32)

    def save(self, name: str, quantization: dict[str, object], key: str = "quantization_config", **settings: object) -> None:
        folder = pathlib.Path(name)
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps({**CONFIG, **settings, key: quantization}, indent=1) + "\n")
        write(folder / "model.safetensors", self.tensors)
        write(folder / "expected.safetensors", self.weights)


def blocks(scales: np.ndarray, rows: int, columns: int, shape: tuple[int, int]) -> np.ndarray:
    """The scale of each number: that of its block."""
    return np.repeat(np.repeat(scales, rows, 0), columns, 1)[: shape[0], : shape[1]]


def finite_floats(model: Model, shape: tuple[int, int]) -> np.ndarray:
    """Bytes of E4M3 that are numbers."""
    codes = model.codes(shape, 8)
    codes[(codes & 0x7F) == 0x7F] = 1
    return codes


def fp8_block() -> None:
    model = Model(1)
    for module, (rows, columns) in SIZES.items():
        codes = finite_floats(model, (rows, columns))
        scales = model.scales((-(-rows // 24), -(-columns // 20)), 1e-3).astype(np.float32)
        weight = E4M3[codes] * blocks(scales.astype(float), 24, 20, (rows, columns))
        model.add(module, {"weight": Bytes("F8_E4M3", codes), "weight_scale_inv": scales}, weight)
    model.save("fp8-block", {
        "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [24, 20],
        "modules_to_not_convert": ["lm_head", LAYER + "self_attn.q_proj"]})


def fp8_experts() -> None:
    """All experts of a layer in one tensor."""
    model = Model(60)
    normal = lambda *shape: BFloat16(model.random.normal(0, 0.2, shape))
    del model.tensors[LAYER + "mlp.up_proj.weight"]
    for module in ("self_attn.k_proj", "self_attn.o_proj"):
        model.tensors[LAYER + module + ".weight"] = normal(*SIZES[module])
    model.tensors |= {LAYER + f"self_attn.{name}_norm.weight": BFloat16(np.ones(16)) for name in "qk"}
    model.tensors[LAYER + "mlp.gate.weight"] = normal(8, 32)
    for module, (rows, columns) in {"mlp.experts.gate_up_proj": (32, 32), "mlp.experts.down_proj": (32, 16)}.items():
        codes = finite_floats(model, (8, rows, columns))
        scales = model.scales((8, rows // 8, -(-columns // 12)), 1e-3).astype(np.float32)
        factors = np.stack([blocks(one.astype(float), 8, 12, (rows, columns)) for one in scales])
        model.tensors[LAYER + module] = Bytes("F8_E4M3", codes)
        model.tensors[LAYER + module + "_scale_inv"] = scales
        model.weights[LAYER + module] = (E4M3[codes] * factors).astype(np.float32)
    model.save("fp8-experts", {
        "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [8, 12]},
        model_type="qwen3_moe", num_experts=8, num_experts_per_tok=3, moe_intermediate_size=16, norm_topk_prob=True)


def fp8_rows() -> None:
    model = Model(2)
    for module, shape in SIZES.items():
        codes = finite_floats(model, shape)
        if module.startswith("mlp"):  # one scale
            scale: object = np.float32([1e-3])
            number = float(np.float32(1e-3))
        else:
            scale = BFloat16(model.scales((shape[0], 1), 1e-3))
            number = scale.numbers()
        model.add(module, {"weight": Bytes("F8_E4M3", codes), "weight_scale": scale}, E4M3[codes] * number)
        if module == "mlp.down_proj":
            model.tensors[LAYER + module + ".input_scale"] = np.float32([0.5])
    floats = {"num_bits": 8, "type": "float", "symmetric": True, "dynamic": False, "strategy": "channel"}
    tokens = {"num_bits": 8, "type": "float", "symmetric": True, "dynamic": True, "strategy": "token"}
    model.save("fp8-rows", {
        "quant_method": "compressed-tensors", "format": "float-quantized", "quantization_status": "compressed",
        "ignore": ["lm_head"], "kv_cache_scheme": None, "config_groups": {
            "group_0": {"targets": ["Linear"], "weights": floats, "input_activations": tokens, "output_activations": None}}})


def gptq(name: str, bits: int, group: int, is_second: bool, has_order: bool) -> None:
    model = Model(3 + bits)
    for module, (rows, columns) in SIZES.items():
        size = columns if group < 0 else group
        count = columns // size
        codes = model.codes((rows, columns), bits)
        zeros = model.codes((rows, count), bits)
        scales = model.scales((rows, count), 0.4 / 2**bits).astype(np.float16)
        order = np.arange(columns) // size
        if has_order:
            order = model.random.permutation(order)
        weight = scales.astype(float)[:, order] * (codes - zeros[:, order])
        stored = zeros if is_second else (zeros - 1) & ((1 << bits) - 1)
        parts = {"qweight": np.ascontiguousarray(packed(codes, bits).T).view(np.int32),
                 "qzeros": packed(np.ascontiguousarray(stored.T), bits).view(np.int32),
                 "scales": np.ascontiguousarray(scales.T)}
        if has_order or not is_second:
            parts["g_idx"] = order.astype(np.int32)
        model.add(module, parts, weight)
    model.save(name, {
        "quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": has_order, "sym": False, "damp_percent": 0.01,
        "checkpoint_format": "gptq_v2" if is_second else "gptq", "true_sequential": True, "lm_head": False})


def awq_words(codes: np.ndarray) -> np.ndarray:
    """Eight integers of each row in a word, in the order of AutoAWQ."""
    words = np.zeros((codes.shape[0], codes.shape[1] // 8), np.uint32)
    for place, column in enumerate(AWQ_ORDER):
        words |= codes[:, column::8].astype(np.uint32) << np.uint32(4 * place)
    return words.view(np.int32)


def awq() -> None:
    model = Model(20)
    for module, (rows, columns) in SIZES.items():
        codes = model.codes((columns, rows), 4)  # by inputs
        zeros = model.codes((columns // 16, rows), 4)
        scales = model.scales((columns // 16, rows)).astype(np.float16)
        weight = (codes - np.repeat(zeros, 16, 0)) * np.repeat(scales.astype(float), 16, 0)
        model.add(module, {"qweight": awq_words(codes), "qzeros": awq_words(zeros), "scales": scales}, weight.T)
    model.save("awq", {
        "quant_method": "awq", "bits": 4, "group_size": 16, "version": "gemm", "zero_point": True, "backend": "autoawq",
        "modules_to_not_convert": None})


def compressed(name: str) -> None:
    """Groups of 4 bits with zeros, and rows of 8 bits without."""
    model = Model(30)
    for module, (rows, columns) in SIZES.items():
        is_mlp = module.startswith("mlp")
        bits = 4 if is_mlp else 8
        size = 16 if is_mlp else columns
        codes = model.codes((rows, columns), bits) - (1 << bits - 1)
        scales = BFloat16(model.scales((rows, columns // size), 0.8 / 2**bits))
        parts: dict[str, object] = {
            "weight_packed": packed(codes + (1 << bits - 1), bits).view(np.int32), "weight_scale": scales,
            "weight_shape": np.int64([rows, columns])}
        zeros = np.zeros((rows, columns // size), int)
        if is_mlp:
            zeros = model.codes(zeros.shape, bits) - 8
            parts["weight_zero_point"] = np.ascontiguousarray(packed(np.ascontiguousarray(zeros.T + 8), bits).T).view(np.int32)
        weight = (codes - np.repeat(zeros, size, 1)) * np.repeat(scales.numbers(), size, 1)
        model.add(module, parts, weight)
    group = {"num_bits": 4, "type": "int", "symmetric": False, "strategy": "group", "group_size": 16, "actorder": None}
    rows8 = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel", "group_size": None}
    model.save(name, {
        "quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
        "ignore": ["lm_head"], "config_groups": {
            "group_0": {"targets": ["re:.*mlp.*"], "weights": group, "input_activations": None},
            "group_1": {"targets": ["re:.*self_attn.*"], "weights": rows8, "input_activations": None}}})


def compressed_int8() -> None:
    model = Model(31)
    for module, shape in SIZES.items():
        codes = model.random.integers(-128, 128, shape).astype(np.int8)
        scales = model.scales((shape[0], 1), 3e-3).astype(np.float32)
        zeros = model.random.integers(-9, 9, (shape[0], 1)).astype(np.int8)
        parts: dict[str, object] = {"weight": codes, "weight_scale": scales}
        if module.startswith("mlp"):
            parts["weight_zero_point"] = zeros
        else:
            zeros = np.zeros_like(zeros)
        model.add(module, parts, (codes.astype(float) - zeros) * scales.astype(float))
    weights = {"num_bits": 8, "type": "int", "symmetric": False, "strategy": "channel"}
    tokens = {"num_bits": 8, "type": "int", "symmetric": True, "dynamic": True, "strategy": "token"}
    model.save("int8", {
        "quant_method": "compressed-tensors", "format": "int-quantized", "quantization_status": "compressed", "ignore": [],
        "sparsity_config": {}, "transform_config": {}, "config_groups": {
            "group_0": {"targets": ["Linear"], "weights": weights, "input_activations": tokens}}})


def halves(codes: np.ndarray) -> np.ndarray:
    """Two integers of 4 bits in each byte, the first in the lower half."""
    return (codes[..., ::2] | codes[..., 1::2] << 4).astype(np.uint8)


def nvfp4() -> None:
    model = Model(40)
    for module, (rows, columns) in SIZES.items():
        codes = model.codes((rows, columns), 4)
        if module.startswith("mlp"):
            scales = model.codes((rows, columns // 16), 8) & 0x3F | 0x20
            divisor = np.float32([800])
            weight = FP4[codes] * np.repeat(E4M3[scales] / float(divisor[0]), 16, 1)
            parts = {"weight_scale": Bytes("F8_E4M3", scales), "weight_global_scale": divisor,
                     "input_global_scale": np.float32([3])}
        else:
            scales = model.random.integers(120, 125, (rows, columns // 32))
            weight = FP4[codes] * np.repeat(2.0 ** (scales - 127), 32, 1)
            parts = {"weight_scale": Bytes("U8", scales)}
        model.add(module, {"weight_packed": halves(codes), **parts}, weight)
    weights = {"num_bits": 4, "type": "float", "symmetric": True, "strategy": "tensor_group", "group_size": 16}
    micro = {"num_bits": 4, "type": "float", "symmetric": True, "strategy": "group", "group_size": 32}
    model.save("nvfp4", {
        "quant_method": "compressed-tensors", "format": "mixed-precision", "quantization_status": "compressed",
        "config_groups": {
            "group_0": {"targets": ["re:.*mlp.*"], "weights": weights, "format": "nvfp4-pack-quantized"},
            "group_1": {"targets": ["re:.*attn.*"], "weights": micro, "format": "mxfp4-pack-quantized"}}})


def text(settings: dict[str, object]) -> np.ndarray:
    return np.frombuffer(json.dumps(settings).encode(), np.uint8)


def bitsandbytes() -> None:
    """Blocks that begin within rows; their factors have blocks of their own, or are floats."""
    model = Model(50)
    for module, (rows, columns) in SIZES.items():
        count = rows * columns
        block = 64 if module != "mlp.gate_proj" else 48
        kind = "fp4" if module == "mlp.down_proj" else "nf4"
        table = np.sort(model.random.uniform(-1, 1, 16)).astype(np.float32)
        codes = model.codes((count,), 4)
        blocks_ = -(-count // block)
        state: dict[str, object] = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": [rows, columns]}
        parts: dict[str, object] = {"weight": (codes[::2] << 4 | codes[1::2]).astype(np.uint8)[:, None], "weight.quant_map": table}
        if kind == "fp4":
            scales = model.scales((blocks_,), 0.4).astype(np.float32)
            parts["weight.absmax"] = scales
            factors = scales.astype(float)
        else:
            inner = np.sort(model.random.uniform(-1, 1, 256)).astype(np.float32)
            bytes_ = model.codes((blocks_,), 8).astype(np.uint8)
            outer = model.scales((-(-blocks_ // 5),), 0.1).astype(np.float32)
            state |= {"nested_blocksize": 5, "nested_dtype": "float32", "nested_offset": 0.25}
            parts |= {"weight.absmax": bytes_, "weight.nested_absmax": outer, "weight.nested_quant_map": inner}
            factors = inner.astype(float)[bytes_] * np.repeat(outer.astype(float), 5)[:blocks_] + 0.25
        parts["weight.quant_state.bitsandbytes__" + kind] = text(state)
        weight = table.astype(float)[codes] * np.repeat(factors, block)[:count]
        model.add(module, parts, weight.reshape(rows, columns))
    model.save("nf4", {
        "quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False, "_load_in_4bit": True,
        "_load_in_8bit": False, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True,
        "bnb_4bit_compute_dtype": "bfloat16", "bnb_4bit_quant_storage": "uint8", "llm_int8_threshold": 6.0,
        "llm_int8_skip_modules": ["lm_head"], "llm_int8_has_fp16_weight": False,
        "llm_int8_enable_fp32_cpu_offload": False})


def bitsandbytes_int8() -> None:
    model = Model(51)
    for module, shape in SIZES.items():
        codes = model.random.integers(-127, 128, shape).astype(np.int8)
        scales = model.scales((shape[0],), 0.5).astype(np.float32)
        model.add(module, {"weight": codes, "SCB": scales, "weight_format": np.uint8(0)},
                  codes.astype(float) * scales.astype(float)[:, None] / 127)
    model.save("int8-vectors", {
        "quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False, "llm_int8_threshold": 6.0})


def mlx() -> None:
    """4 bits in groups of 32, but for a matrix of 6 bits in groups of 64, and the embedding likewise of 8 bits in 16."""
    model = Model(60)
    sizes = {module: (shape, 4, 32) for module, shape in SIZES.items()}
    sizes["mlp.down_proj"] = ((32, 64), 6, 64)
    for module, (shape, bits, group) in [*sizes.items(), ("embed_tokens", ((24, 32), 8, 16))]:
        codes = model.codes(shape, bits)
        scales = model.scales((shape[0], shape[1] // group), 0.8 / 2**bits).astype(np.float16)
        biases = (-model.scales(scales.shape, 0.5)).astype(np.float16)
        weight = codes * np.repeat(scales.astype(float), group, 1) + np.repeat(biases.astype(float), group, 1)
        parts = {"weight": packed(codes, bits), "scales": scales, "biases": biases}
        if module == "embed_tokens":
            for name, tensor in parts.items():
                model.tensors["model.embed_tokens." + name] = tensor
            model.weights["model.embed_tokens.weight"] = weight.astype(np.float32)
        else:
            model.add(module, parts, weight)
    model.save("mlx", {
        "group_size": 32, "bits": 4, "mode": "affine", LAYER + "self_attn.q_proj": False,
        LAYER + "mlp.down_proj": {"group_size": 64, "bits": 6},
        "model.embed_tokens": {"group_size": 16, "bits": 8}}, "quantization")


fp8_block()
fp8_experts()
fp8_rows()
gptq("gptq", 4, 16, False, True)
gptq("gptq-3", 3, -1, True, False)
gptq("gptq-8", 8, 32, False, False)
awq()
compressed("int4")
compressed_int8()
nvfp4()
bitsandbytes()
bitsandbytes_int8()
mlx()
