#!/usr/bin/env python3
"""How long a page with the map of one head on a long text takes, and how large it is: normal numbers, d_head 64, causal.

    PV_PLUGIN_PATH=... PYTHONPATH=Plugin/python xvfb-run -a pvpython Testing/Benchmark/map_page.py [TOKENS [MEGABYTES]]
"""

import json
import pathlib
import struct
import sys
import tempfile
import time

import numpy
from attentionatlas import Recording, web


def write(path, tokens):
    """A recording of one head."""
    generator = numpy.random.default_rng(0)
    arrays = {
        "sequence_offsets": numpy.array([0, tokens], numpy.int64),
        "tokens.position": numpy.arange(tokens, dtype=numpy.int32),
        **{f"layers.0.heads.0.{name}": generator.normal(size=(tokens, 64)).astype(numpy.float32) for name in ("query", "key")},
    }
    metadata = {
        "format": "attention-atlas.recording", "version": "1", "architecture": "random", "mask": "causal", "rotated": "false",
        "processing": "unprocessed", "layer_count": "1", "head_count": "1", "score_scales": json.dumps({"0": 0.125}),
        "tokens": json.dumps([f" {number % 20000}" for number in range(tokens)]),
    }
    header, at = {"__metadata__": metadata}, 0
    for name, array in arrays.items():
        kind = {"int64": "I64", "int32": "I32", "float32": "F32"}[array.dtype.name]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(b"".join([struct.pack("<Q", len(text)), text, *(array.tobytes() for array in arrays.values())]))


def main():
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    megabytes = float(sys.argv[2]) if len(sys.argv) > 2 else 20
    with tempfile.TemporaryDirectory() as folder:
        file, page = pathlib.Path(folder, "head.safetensors"), pathlib.Path(folder, "page.html")
        write(file, tokens)
        with Recording(file) as recording:
            print(web.map_size(recording, megabytes=megabytes))
            for pooling in ("Maximum", "Mean"):
                begin, cpu = time.monotonic(), time.process_time()
                scene = web.attention_map(recording, pooling=pooling, megabytes=megabytes)
                made = time.monotonic() - begin
                web.page(scene, page)
                end = time.monotonic() - begin
                cpu = time.process_time() - cpu
                size = page.stat().st_size / 1e6
                print(f"{pooling}: {made:.1f} s, written after {end:.1f} s, {cpu:.1f} s of processor time, {size:.1f} MB")


if __name__ == "__main__":
    main()
