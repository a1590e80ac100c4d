"""Turns a run of Hugging Face's transformers or of TransformerLens into a recording.

    python3 record.py MODEL "a text" -o run.safetensors [--transformer-lens]

Needs those libraries and safetensors, but not ParaView. RecordingReader reads the file together with the
token strings in run.tokens.json beside it. A Hugging Face run keeps the attention. A TransformerLens run
keeps queries, keys and values, so that files of long texts stay small.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

#: Tensors by name, token strings, metadata.
Recorded = tuple[dict[str, Any], list[str], dict[str, str]]
#: What is kept of a cache: the names of HookedTransformer, and those of TransformerBridge.
HOOKS = ("hook_q", "hook_k", "hook_v", "hook_rot_q", "hook_rot_k")
BRIDGE_HOOKS = tuple(
    f".attn.{name}"
    for part in "qkv"
    for name in (f"{part}.hook_out", f"qkv.{part}_hook_out")
)


def record_hugging_face(model: Any, tokenizer: Any, text: str) -> Recorded:
    """Runs a model, loaded with attn_implementation="eager", on a text.

    Returns tensors (attention [layers, 1, heads, tokens, tokens], token_ids), token strings, metadata.
    """
    inputs = tokenizer(text, return_tensors="pt")
    attentions = model(**inputs, output_attentions=True).attentions
    if not attentions or any(layer is None for layer in attentions):
        raise ValueError('expected the attention of each layer; load with attn_implementation="eager".')
    ids = inputs["input_ids"]
    tensors = {"attention": _stack(attentions), "token_ids": _array(ids)}
    tokens = tokenizer.convert_ids_to_tokens(_array(ids)[0].tolist())
    return tensors, tokens, {"architecture": model.config.model_type}


def record_transformer_lens(model: Any, text: str) -> Recorded:
    """Runs a TransformerBridge or a HookedTransformer on a text.

    Returns tensors (queries, keys and values under the names of the cache), token strings, metadata.
    Raises ValueError if the cache holds no queries, or those of a rotary model before their rotation alone.
    """
    ids = model.to_tokens(text)
    _, cache = model.run_with_cache(ids)
    names = [name for name in cache.keys() if name.endswith(HOOKS + BRIDGE_HOOKS)]
    if not names:
        raise ValueError("expected queries and keys in the cache (hook_q or attn.q.hook_out), found none.")
    cfg = model.cfg
    rotary = getattr(cfg, "positional_embedding_type", None) == "rotary"
    if rotary and not any(name.endswith("hook_rot_q") for name in names):
        raise ValueError("expected rotated queries in the cache (hook_rot_q), found those before rotation.")
    tensors = {name: _array(cache[name]) for name in names}
    tensors["tokens"] = _array(ids)
    scale = getattr(cfg, "attn_scale", None) or cfg.d_head**0.5
    metadata = {"architecture": cfg.model_name, "score_scale": str(1 / scale)}
    return tensors, model.to_str_tokens(text), metadata


def load_transformer_lens(name: str) -> Any:
    """A model of TransformerLens: a TransformerBridge with the weights as published, or, with releases
    before 3, a HookedTransformer."""
    try:
        from transformer_lens.model_bridge import TransformerBridge
    except ImportError:
        from transformer_lens import HookedTransformer

        return HookedTransformer.from_pretrained(name)
    return TransformerBridge.boot_transformers(name)


def save(path: str | os.PathLike[str], tensors: dict[str, Any], tokens: Iterable[str], metadata: dict[str, str]) -> None:
    """Writes a recording and, beside it, its token strings; both appear whole or not at all."""
    from safetensors.numpy import save_file

    path = pathlib.Path(path)
    part = path.with_suffix(".part")
    save_file(tensors, str(part), metadata=metadata)
    beside = path.with_suffix(".tokens.json")
    text = beside.with_suffix(".part.json")
    text.write_text(json.dumps(list(tokens), ensure_ascii=False), encoding="utf-8")
    os.replace(text, beside)
    os.replace(part, path)


def _array(tensor: Any) -> Any:
    """A tensor as an array of its own; half precisions become float32."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.is_floating_point() else tensor).contiguous().numpy()


def _stack(tensors: Iterable[Any]) -> Any:
    import numpy

    return numpy.stack([_array(tensor) for tensor in tensors])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a name or folder that the library knows")
    parser.add_argument("text")
    parser.add_argument("-o", "--output", default="run.safetensors", help="(default: run.safetensors)")
    parser.add_argument("--transformer-lens", action="store_true", help="instead of transformers")
    options = parser.parse_args(arguments)
    if options.transformer_lens:
        recording = record_transformer_lens(load_transformer_lens(options.model), options.text)
    else:
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(options.model)
        model = AutoModel.from_pretrained(options.model, attn_implementation="eager").eval()
        recording = record_hugging_face(model, tokenizer, options.text)
    save(options.output, *recording)


if __name__ == "__main__":
    main()
