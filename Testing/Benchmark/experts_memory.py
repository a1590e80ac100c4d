"""Measures the memory that recording takes of a model of 20 billion parameters, 3.6 billion active, in 4 bits.

The file has the layout of gpt-oss 20B as it is published (MXFP4) and holes in place of all but the weights that choose
experts: it takes a few MB on the disk, and as much memory as a full one where it is read.

    python3 experts_memory.py build/release/bin/attention-atlas [TOKENS ...]
"""

import json
import math
import os
import pathlib
import random
import struct
import sys
import tempfile

LAYERS, EXPERTS, WIDTH, HIDDEN, VOCABULARY = 24, 32, 2880, 2880, 201088
GIGABYTE = 1e9


def tensors():
    """Names, types and shapes."""
    yield "model.embed_tokens.weight", "BF16", [VOCABULARY, WIDTH]
    yield "lm_head.weight", "BF16", [VOCABULARY, WIDTH]
    yield "model.norm.weight", "BF16", [WIDTH]
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield f"{prefix}{norm}.weight", "BF16", [WIDTH]
        for name, outputs, inputs in (("q", 4096, WIDTH), ("k", 512, WIDTH), ("v", 512, WIDTH), ("o", WIDTH, 4096)):
            yield f"{prefix}self_attn.{name}_proj.weight", "BF16", [outputs, inputs]
            yield f"{prefix}self_attn.{name}_proj.bias", "BF16", [outputs]
        yield f"{prefix}self_attn.sinks", "BF16", [64]
        yield f"{prefix}mlp.router.weight", "BF16", [EXPERTS, WIDTH]
        yield f"{prefix}mlp.router.bias", "BF16", [EXPERTS]
        for name, outputs, inputs in (("gate_up", 2 * HIDDEN, WIDTH), ("down", WIDTH, HIDDEN)):
            name = f"{prefix}mlp.experts.{name}_proj"
            yield name + "_bias", "BF16", [EXPERTS, outputs]
            yield name + "_blocks", "U8", [EXPERTS, outputs, inputs // 32, 16]
            yield name + "_scales", "U8", [EXPERTS, outputs, inputs // 32]


def size(kind, shape):
    return math.prod(shape) * (2 if kind == "BF16" else 1)


def bf16(count, numbers):
    return b"".join(struct.pack("<f", numbers.gauss(0, 1))[2:] for _ in range(count))


def write(folder, tokens):
    config = dict(
        model_type="gpt_oss", num_hidden_layers=LAYERS, num_local_experts=EXPERTS, num_experts_per_tok=4, hidden_size=WIDTH,
        intermediate_size=HIDDEN, num_attention_heads=64, num_key_value_heads=8, head_dim=64, vocab_size=VOCABULARY,
        max_position_embeddings=131072, sliding_window=128, attention_bias=True, rms_norm_eps=1e-5, tie_word_embeddings=False,
        layer_types=["sliding_attention", "full_attention"] * (LAYERS // 2), swiglu_limit=7.0,
        rope_parameters=dict(
            rope_type="yarn", rope_theta=150000.0, factor=32.0, beta_fast=32.0, beta_slow=1.0,
            original_max_position_embeddings=4096, truncate=False),
        quantization_config=dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn", "lm_head"]))
    (folder / "config.json").write_text(json.dumps(config))
    header, end = {}, 0
    for name, kind, shape in tensors():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [end, end := end + size(kind, shape)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    numbers = random.Random(1)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        first = file.tell()
        file.truncate(first + end)
        for name, entry in header.items():
            begin = first + entry["data_offsets"][0]
            if name == "model.embed_tokens.weight":  # of the prompt
                for token in range(tokens):
                    file.seek(begin + 2 * WIDTH * token)
                    file.write(bf16(WIDTH, numbers))
            elif name.endswith(("router.weight", "norm.weight")):
                file.seek(begin)
                file.write(bf16(math.prod(entry["shape"]), numbers))
    return header, end


def chosen(path, layer):
    """The experts that the tokens of a recording chose."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        entry = header[f"layers.{layer}.experts"]
        begin, end = entry["data_offsets"]
        file.seek(8 + length + begin)
        data = file.read(end - begin)
    kind = {"F32": "f", "I32": "i"}[entry["dtype"]]
    return {int(number) for number in struct.unpack(f"<{len(data) // 4}{kind}", data)}


def main():
    program = sys.argv[1]
    for tokens in [int(count) for count in sys.argv[2:]] or [1, 8]:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            header, whole = write(folder, tokens)
            record = [
                program, "record", str(folder), "--token-ids", " ".join(map(str, range(tokens))), "--record", "all", "-o",
                str(folder / "run.safetensors")]
            child = os.posix_spawn(program, record, os.environ)
            _, status, usage = os.wait4(child, 0)
            if status != 0:
                raise SystemExit(f"{' '.join(record)}: status {status}")
            active = sum(
                size(entry["dtype"], entry["shape"]) for key, entry in header.items()
                if ".experts." not in key and key != "model.embed_tokens.weight")
            for layer in range(LAYERS):
                used = len(chosen(folder / "run.safetensors", layer))
                active += sum(
                    size(entry["dtype"], entry["shape"]) * used // EXPERTS for key, entry in header.items()
                    if key.startswith(f"model.layers.{layer}.mlp.experts."))
            peak = usage.ru_maxrss * 1024
            print(
                f"{tokens} tokens: file {whole / GIGABYTE:.2f} GB, its active part {active / GIGABYTE:.2f} GB, "
                f"peak memory {peak / GIGABYTE:.2f} GB, {(peak - active) / GIGABYTE:.2f} GB more")


main()
