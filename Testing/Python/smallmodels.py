"""Folders of small transformers as a training leaves them, with random weights: for tests of what reads them."""

import json
import shutil

import atlastest
import numpy


def tensors_of(config, seed):
    """Random weights of an attention-only transformer with TransformerLens names."""
    rng = numpy.random.default_rng(seed)
    d, dh, heads = config["d_model"], config["d_head"], config["n_heads"]

    def normal(*shape):
        return (rng.normal(size=shape) / shape[-2] ** 0.5).astype(numpy.float32)

    tensors = {
        "embed.W_E": rng.normal(size=(config["d_vocab"], d)).astype(numpy.float32),
        "pos_embed.W_pos": rng.normal(size=(config["n_ctx"], d)).astype(numpy.float32),
        "unembed.W_U": normal(d, config["d_vocab"]),
        "unembed.b_U": numpy.zeros(config["d_vocab"], numpy.float32),
        "ln_final.w": numpy.ones(d, numpy.float32),
        "ln_final.b": numpy.zeros(d, numpy.float32),
    }
    for layer in range(config["n_layers"]):
        block = f"blocks.{layer}."
        tensors[block + "ln1.w"] = numpy.ones(d, numpy.float32)
        tensors[block + "ln1.b"] = numpy.zeros(d, numpy.float32)
        tensors[block + "attn.b_O"] = numpy.zeros(d, numpy.float32)
        tensors[block + "attn.W_O"] = normal(heads, dh, d)
        for name in "QKV":
            tensors[block + f"attn.W_{name}"] = normal(heads, d, dh)
            tensors[block + f"attn.b_{name}"] = numpy.zeros((heads, dh), numpy.float32)
    return tensors


def write_model(folder, tensors, config):
    """A model's folder: config.json and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    atlastest.write_safetensors(folder / "model.safetensors", tensors, {})


def write_curves(folder, columns):
    """curves.csv of columns by name; NaN is an empty cell."""
    rows = zip(*columns.values())
    lines = [",".join(columns), *(",".join("" if numpy.isnan(v) else repr(float(v)) for v in row) for row in rows)]
    (folder / "curves.csv").write_text("\n".join(lines) + "\n")


def make(folder, name, layers=2, heads=2, width=16, vocabulary=30, positions=32, steps=(0, 10, 100), change=None):
    """A model with checkpoints of other random weights; change: called with the tensors of the last step."""
    config = {
        "model_type": "transformer_lens",
        "n_layers": layers,
        "n_heads": heads,
        "d_model": width,
        "d_head": width // heads,
        "d_vocab": vocabulary,
        "n_ctx": positions,
        "attn_only": True,
        "normalization_type": "LN",
        "positional_embedding_type": "standard",
        "eps": 1e-05,
    }
    for step in steps:
        tensors = tensors_of(config, step)
        if step == steps[-1] and change is not None:
            change(tensors)
        write_model(folder / name / f"checkpoint-{step}", tensors, config)
    write_model(folder / name, tensors, config)
    (folder / name / "recipe.json").write_text(json.dumps({"task": {"kind": "RepeatedTokens"}, "steps": steps[-1]}))
    return folder / name


def copy_oracle(folder, name, oracle):
    """A copy of the model of an oracle."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    for file in ("config.json", "model.safetensors"):
        shutil.copyfile(atlastest.TRANSFORMERS / oracle / file, folder / name / file)
    return folder / name
