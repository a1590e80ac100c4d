"""Trains the sparse dictionary of Data/dictionaries: features of what the heads of layer 1 of language-2 mix.

    python3 train-dictionary.py TEXT DIR     the text of "public-domain-text.sh TEXT king-james"; writes DIR/language-2

Needs NumPy and this package (PYTHONPATH, or the wheel). The same versions on the same processor give the same bytes
(here NumPy 1.24); one thread, two minutes.

The vectors x are those of attn.hook_z, all heads one after another, at each token of stretches of four verses that are
drawn from the text. A top-k autoencoder (Gao et al. 2024) is fitted to them by Adam: x^ = f W_dec + b_dec, where f are
the k largest of (x - b_dec) W_enc + b_enc, if they are above 0. Rows of W_dec have length 1. Features that were not
active for a while also learn what the others leave out, as there. Stretches that are held out give what is printed.
"""

import json
import os
import pathlib
import struct
import sys
import tempfile

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # sums in one order

import numpy
from vtkmodules.vtkCommonCore import vtkLogger

import attentionatlas as atlas

MODEL = pathlib.Path(__file__).parents[2] / "Data" / "models" / "language-2"
LAYER, VERSES, CONTEXT = 1, 4, 128
TRAINED, HELD_OUT, AT_A_TIME = 2400, 300, 300
FEATURES, ACTIVE, AUXILIARY = 512, 8, 32
SEED, STEPS, BATCH, RATE, UNUSED = 0, 4000, 1024, 2e-3, 50


def read(path):
    """The arrays of a safetensors file, by name."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    found = {}
    for name, tensor in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in tensor["data_offsets"])
            kind = {"F32": "<f4", "I64": "<i8", "I32": "<i4"}.get(tensor["dtype"], "u1")
            found[name] = numpy.frombuffer(data[begin:end], kind).reshape(tensor["shape"])
    return found


def mixed(model, texts, file):
    """z of all heads at the tokens of texts [tokens, heads d_head]; the file is for their recording."""
    with model.record(texts, record=["QueriesAndKeys", "Values"], layers=[LAYER], maximum_length=CONTEXT) as recording:
        heads, offsets = recording.head_count, numpy.cumsum([0, *recording.lengths])
        recording.save(file)
    arrays = read(file)
    queries, keys, values = (
        numpy.stack([arrays[f"layers.{LAYER}.heads.{head}.{name}"] for head in range(heads)])
        for name in ("query", "key", "value")
    )
    rows = []
    for part in map(slice, offsets[:-1], offsets[1:]):
        scores = queries[:, part] @ keys[:, part].transpose(0, 2, 1) / queries.shape[2] ** 0.5
        weights = numpy.tril(numpy.exp(scores - scores.max(2, keepdims=True)))
        z = weights / weights.sum(2, keepdims=True) @ values[:, part]
        rows.append(z.transpose(1, 0, 2).reshape(z.shape[1], -1))
    return numpy.concatenate(rows).astype("f4")


def largest(values, count):
    """The `count` largest of each row, if above 0; 0 elsewhere."""
    places = numpy.argpartition(-values, count - 1, 1)[:, :count]
    kept = numpy.zeros_like(values)
    numpy.put_along_axis(kept, places, numpy.maximum(numpy.take_along_axis(values, places, 1), 0), 1)
    return kept


def encode(weights, vectors):
    """The features of vectors and what they leave out."""
    features = largest((vectors - weights["b_dec"]) @ weights["W_enc"] + weights["b_enc"], ACTIVE)
    return features, vectors - features @ weights["W_dec"] - weights["b_dec"]


def gradients(weights, vectors, unused):
    """Of the mean squared length of what is left out, with a 16th of that of the unused features; and which are active."""
    encoder, decoder = weights["W_enc"], weights["W_dec"]
    centered = vectors - weights["b_dec"]
    values = centered @ encoder + weights["b_enc"]
    features = largest(values, ACTIVE)
    active = features > 0
    left = features @ decoder + weights["b_dec"] - vectors
    outer = 2 / len(vectors) * left
    inner = outer @ decoder.T * active
    of_decoder = features.T @ outer
    of_bias = outer.sum(0) - (inner @ encoder.T).sum(0)
    if len(unused) > 0:
        more = largest(values[:, unused], min(AUXILIARY, len(unused)))
        outer = (more @ decoder[unused] + left) / (8 * len(vectors))
        of_decoder[unused] += more.T @ outer
        inner[:, unused] += outer @ decoder[unused].T * (more > 0)
    of_decoder -= (of_decoder * decoder).sum(1, keepdims=True) * decoder
    return {"W_enc": centered.T @ inner, "b_enc": inner.sum(0), "W_dec": of_decoder, "b_dec": of_bias}, active.any(0)


def train(vectors):
    """The weights, of float32."""
    random = numpy.random.default_rng(SEED)
    mean = vectors.mean(0)
    scale = numpy.sqrt((vectors - mean).var())
    vectors = (vectors - mean) / scale
    rows = vectors[random.choice(len(vectors), FEATURES, replace=False)]
    rows += 0.01 * random.standard_normal(rows.shape, "f4")
    rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
    weights = {
        "W_enc": rows.T.copy(), "b_enc": numpy.zeros(FEATURES, "f4"), "W_dec": rows, "b_dec": numpy.zeros(len(mean), "f4")
    }
    moments = {name: (numpy.zeros_like(values), numpy.zeros_like(values)) for name, values in weights.items()}
    used = numpy.zeros(FEATURES)
    for step in range(1, STEPS + 1):
        batch = vectors[random.integers(0, len(vectors), BATCH)]
        found, active = gradients(weights, batch, numpy.flatnonzero(step - used > UNUSED))
        used[active] = step
        rate = RATE * min(1, step / 100, (STEPS - step) / (0.2 * STEPS))
        for name, gradient in found.items():
            first, second = moments[name]
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient**2 - second)
            weights[name] -= numpy.float32(rate / (1 - 0.9**step)) * first / (
                numpy.sqrt(second / numpy.float32(1 - 0.999**step)) + numpy.float32(1e-8)
            )
        weights["W_dec"] /= numpy.linalg.norm(weights["W_dec"], axis=1, keepdims=True)
    weights["b_enc"] *= scale
    weights["b_dec"] = weights["b_dec"] * scale + mean
    return weights


def save(folder, weights):
    """The two files of SAELens 6."""
    folder.mkdir(parents=True, exist_ok=True)
    header, data = {}, b""
    for name, values in sorted(weights.items()):
        raw = values.astype("<f2").tobytes()
        header[name] = {"dtype": "F16", "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "sae_weights.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    metadata = {"model_name": "language-2", "hook_name": f"blocks.{LAYER}.attn.hook_z", "context_size": CONTEXT}
    settings = {
        "architecture": "topk", "d_in": weights["W_dec"].shape[1], "d_sae": FEATURES, "k": ACTIVE, "dtype": "float16",
        "apply_b_dec_to_input": True, "normalize_activations": "none", "metadata": metadata,
    }
    (folder / "cfg.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def main(text, folder):
    """Trains, saves and prints how good it is."""
    lines = pathlib.Path(text).read_text(encoding="utf-8").splitlines()
    stretches = ["\n".join(lines[begin : begin + VERSES]) for begin in range(0, len(lines), VERSES)]
    drawn = numpy.random.default_rng(SEED).permutation(len(stretches))[: TRAINED + HELD_OUT]
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_ERROR)  # not that stretches are cut
    model = atlas.open(MODEL)
    with tempfile.TemporaryDirectory() as temporary:
        file = pathlib.Path(temporary, "recording.safetensors")
        parts = [
            mixed(model, [stretches[i] for i in drawn[begin : begin + AT_A_TIME]], file)
            for begin in range(0, len(drawn), AT_A_TIME)
        ]
    weights = train(numpy.concatenate(parts[: TRAINED // AT_A_TIME]))
    save(pathlib.Path(folder) / "language-2", weights)
    rounded = {name: values.astype("f2").astype("f4") for name, values in weights.items()}
    held_out = numpy.concatenate(parts[TRAINED // AT_A_TIME :])
    features, left = encode(rounded, held_out)
    explained = 1 - (left**2).sum() / ((held_out - held_out.mean(0)) ** 2).sum()
    share = (features > 0).mean(0)
    print(f"{len(held_out)} tokens held out: explained variance {explained:.3f}, {share.sum():.2f} features per token,")
    print(f"{(share == 0).sum()} features never active, the others on {share[share > 0].min():.2%} to {share.max():.1%} of the tokens")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
