"""Small recordings of random queries and keys."""

import json
import math

import atlastest
import numpy

TOKENS = [" the", " cat", " sat", ".", "The", " dog"] * 5
LAYERS, HEADS, SIZE = 2, 3, 8
METADATA = {
    "format": "attention-atlas.recording",
    "version": "1",
    "architecture": "random",
    "mask": "causal",
    "rotated": "false",
    "processing": "unprocessed",
}


def attention_of(path, layer, head, rows=slice(None), causal=True):
    """The attention of a head by NumPy, from the queries and keys of a file, those of some rows: [queries, keys]."""
    tensors, _ = atlastest.read_safetensors(path)
    query, key = (tensors[f"layers.{layer}.heads.{head}.{name}"][rows].astype(float) for name in ("query", "key"))
    scores = query @ key.T / math.sqrt(query.shape[1])
    if causal:
        scores[~numpy.tri(len(scores), dtype=bool)] = -numpy.inf
    weights = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def write_text(path, tokens, mask="causal"):
    """Queries and keys of one head, from random numbers, of one text; returns the weights [queries, keys] as well."""
    generator = numpy.random.default_rng(1)
    query, key = (generator.normal(size=(len(tokens), SIZE)).astype(numpy.float32) for _ in range(2))
    tensors = {
        "sequence_offsets": numpy.array([0, len(tokens)], dtype=numpy.int64),
        "tokens.position": numpy.arange(len(tokens), dtype=numpy.int32),
        "layers.0.heads.0.query": query,
        "layers.0.heads.0.key": key,
    }
    metadata = {**METADATA, "mask": mask, "layer_count": "1", "head_count": "1", "tokens": json.dumps(tokens)}
    atlastest.write_safetensors(path, tensors, {**metadata, "score_scales": json.dumps({"0": 1 / math.sqrt(SIZE)})})
    return attention_of(path, 0, 0, causal=mask == "causal")


def write_recording(path, tokens=TOKENS):
    """Queries and keys from random numbers, of three sequences of ten tokens."""
    generator = numpy.random.default_rng(0)
    tensors = {
        "sequence_offsets": numpy.array([0, 10, 20, 30], dtype=numpy.int64),
        "tokens.position": numpy.tile(numpy.arange(10, dtype=numpy.int32), 3),
    }
    for layer in range(LAYERS):
        for head in range(HEADS):
            for name in ("query", "key"):
                values = generator.normal(size=(len(tokens), SIZE)).astype(numpy.float32)
                tensors[f"layers.{layer}.heads.{head}.{name}"] = values
    metadata = {
        **METADATA,
        "layer_count": str(LAYERS),
        "head_count": str(HEADS),
        "score_scales": json.dumps({str(layer): 1 / math.sqrt(SIZE) for layer in range(LAYERS)}),
        "tokens": json.dumps(tokens),
    }
    atlastest.write_safetensors(path, tensors, metadata)
    return path
