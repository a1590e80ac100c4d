"""Turns a run of Hugging Face's transformers or of TransformerLens into a recording.

    python3 record.py MODEL "a text" -o run.safetensors [--transformer-lens]

Runs where those libraries are, without ParaView; safetensors writes the file. RecordingReader reads it
with the token strings, which are left beside it in run.tokens.json. Of a Hugging Face model the attention
is kept; of TransformerLens the queries, keys and values, from which long texts stay small.
"""

import argparse
import json
import os
import pathlib
import sys

#: What is kept of a cache of TransformerLens.
HOOKS = ("hook_q", "hook_k", "hook_v", "hook_rot_q", "hook_rot_k")


def record_hugging_face(model, tokenizer, text):
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


def record_transformer_lens(model, text):
    """Runs a HookedTransformer on a text; returns the like, with queries, keys and values."""
    ids = model.to_tokens(text)
    _, cache = model.run_with_cache(ids)
    tensors = {name: _array(cache[name]) for name in cache.keys() if name.endswith(HOOKS)}
    tensors["tokens"] = _array(ids)
    metadata = {"architecture": model.cfg.model_name, "score_scale": str(1 / model.cfg.attn_scale)}
    return tensors, model.to_str_tokens(text), metadata


def save(path, tensors, tokens, metadata):
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


def _array(tensor):
    """A tensor as an array of its own; half precisions become float32."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.is_floating_point() else tensor).contiguous().numpy()


def _stack(tensors):
    import numpy

    return numpy.stack([_array(tensor) for tensor in tensors])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a name or folder that the library knows")
    parser.add_argument("text")
    parser.add_argument("-o", "--output", default="run.safetensors", help="(default: run.safetensors)")
    parser.add_argument("--transformer-lens", action="store_true", help="instead of transformers")
    options = parser.parse_args(arguments)
    if options.transformer_lens:
        from transformer_lens import HookedTransformer

        model = HookedTransformer.from_pretrained(options.model)
        recording = record_transformer_lens(model, options.text)
    else:
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(options.model)
        model = AutoModel.from_pretrained(options.model, attn_implementation="eager").eval()
        recording = record_hugging_face(model, tokenizer, options.text)
    save(options.output, *recording)


if __name__ == "__main__":
    sys.exit(main())
