"""A small recording of random queries and keys."""

import json
import math

import atlastest
import numpy

TOKENS = [" the", " cat", " sat", ".", "The", " dog"] * 5
LAYERS, HEADS, SIZE = 2, 3, 8


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
        "format": "attention-atlas.recording",
        "version": "1",
        "architecture": "random",
        "mask": "causal",
        "rotated": "false",
        "processing": "unprocessed",
        "layer_count": str(LAYERS),
        "head_count": str(HEADS),
        "score_scales": json.dumps({str(layer): 1 / math.sqrt(SIZE) for layer in range(LAYERS)}),
        "tokens": json.dumps(tokens),
    }
    atlastest.write_safetensors(path, tensors, metadata)
    return path
