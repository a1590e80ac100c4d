"""Bad inputs, and what is said of each: the rows of TestHostileInput, and the page that they are on."""

import html
import io
import json
import math
import re
import struct

import atlastest
import numpy
from atlastest import MODELS

TENSOR = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def framed(header, data=b""):
    """The bytes of a safetensors file with this header: text, or what JSON is made of."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return struct.pack("<Q", len(text)) + text + data


def npy(array, **options):
    file = io.BytesIO()
    numpy.save(file, array, **options)
    return file.getvalue()


def patched(path, name, at, value):
    """The bytes of a file of statistics with another number in a tensor."""
    tensors, metadata = atlastest.read_safetensors(path)
    tensors[name] = tensors[name].copy()
    tensors[name].flat[at] = value
    changed = atlastest.OUTPUT / "patched.safetensors"
    atlastest.write_safetensors(changed, tensors, metadata)
    return changed.read_bytes()


def trained(**changes):
    """The bytes of the trained model with tensors replaced, or removed by None; `__` is a dot."""
    tensors, metadata = atlastest.read_safetensors(atlastest.TRAINED)
    for name, values in changes.items():
        tensors.pop(name.replace("__", "."), None)
        if values is not None:
            tensors[name.replace("__", ".")] = values
    path = atlastest.OUTPUT / "changed.safetensors"
    atlastest.write_safetensors(path, tensors, metadata)
    return path.read_bytes()


def head(number):
    return [f"heads__{number}__{name}" for name in ("query", "key", "value", "output")]


def hostile_torch(name):
    """The bytes of a file that PyTorch would read, with another purpose than to hold tensors."""
    return (MODELS.parent / "files" / "hostile" / name).read_bytes()


def filled(shape, value=0.5):
    return numpy.full(shape, value, "f4")


WHOLE = atlastest.TRAINED.read_bytes()
NAN_QUERY = numpy.array([[1, 2, 3], [4, math.nan, 6], [7, 8, 9]], "f4")

#: Files that are no model, and what the reader says.
FILES_OF_MODELS = {
    "7 bytes": (WHOLE[:7], "8-byte header length, found 7 bytes"),
    "only a header": (WHOLE[:400], "but only"),
    "cut off in a tensor": (WHOLE[:-1], "data_offsets"),
    "a byte too many": (WHOLE + b"0", "no tensor holds the last 1 bytes"),
    "a header of 2^63 bytes": (struct.pack("<Q", 2**63) + b"{}", "header"),
    "a header that is a list": (framed([1, 2]), "header"),
    "a header cut off": (framed('{"a": {"dtype"'), "header is not JSON"),
    "a header of brackets": (framed("[" * 100000), "header"),
    "no tensors": (framed({}), "missing"),
    "metadata that are a number": (framed({"__metadata__": 3}), "__metadata__"),
    "an unknown type": (framed({"a": {**TENSOR, "dtype": "F7"}}, b"1234"), "F7"),
    "a negative size": (framed({"a": {**TENSOR, "shape": [-1]}}, b"1234"), "shape"),
    "a shape of 2^64": (framed({"a": {**TENSOR, "shape": [2**32, 2**32]}}, b"1234"), "shape"),
    "a shape that is text": (framed({"a": {**TENSOR, "shape": "1"}}, b"1234"), "shape"),
    "offsets backwards": (framed({"a": {**TENSOR, "data_offsets": [4, 0]}}, b"1234"), "data_offsets"),
    "offsets beyond the file": (framed({"a": {**TENSOR, "data_offsets": [0, 2**40]}}, b"1234"), "data_offsets"),
    "one offset": (framed({"a": {**TENSOR, "data_offsets": [0]}}, b"1234"), "data_offsets"),
    "tensors that overlap": (framed({"a": TENSOR, "b": TENSOR}, b"1234"), "tensors 'a' and 'b' overlap"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), "expected a safetensors file, found a PNG picture"),
    "a text": (b"Attention is all you need, they say, and so do we.", "expected a safetensors file, found a text"),
    "no head": (trained(**{name: None for h in range(3) for name in head(h)}), "heads.0.query"),
    "a gap between heads": (trained(**dict.fromkeys(head(1))), "without a gap, but head 1"),
    "no words": (trained(word_embedding=filled((0, 3)), next_token=None), "word_embedding"),
    "embeddings of dimension 4": (trained(word_embedding=filled((5, 4))), "word_embedding"),
    "one position": (trained(position_embedding=filled((1, 3))), "position_embedding"),
    "no key": (trained(heads__1__key=None), "heads.1.key"),
    "a query like no other": (trained(heads__0__query=filled((2, 3))), "heads.0"),
    "an infinite weight": (trained(unembedding=filled((5, 3), math.inf)), "inf"),
    "a weight that is no number": (trained(heads__0__query=NAN_QUERY), "nan at row 1, column 1"),
    "targets beyond the vocabulary": (trained(next_token=numpy.full((5, 5), 5, "i8")), "from 0 to 4"),
    "targets below 0": (trained(next_token=numpy.full((5, 5), -1, "i8")), "next_token"),
    "targets of another shape": (trained(next_token=numpy.zeros((5, 4), "i8")), "next_token"),
}

INDEX = ".safetensors.index.json"
#: Files that are no recording.
RECORDINGS = {
    "an empty file": (".safetensors", b"", "0 bytes"),
    "nothing that is known": (".safetensors", framed({"a": TENSOR}, b"1234"), "expected"),
    "a text as npy": (".npy", b"no array", "npy"),
    "a pickled npy": (".npy", npy(numpy.array([{}], object), allow_pickle=True), "pickle"),
    "an npy cut off": (".npy", npy(filled((1, 2, 3, 3)))[:-5], "bytes"),
    "an npy of texts": (".npy", npy(numpy.array(["a"])), "type"),
    "attention of two axes": (".npy", npy(filled((3, 3))), "found only 'array' [3, 3]"),
    "attention that is not square": (".npy", npy(filled((1, 2, 3, 4))), "shape"),
    "a zip cut off": (".npz", b"PK\x03\x04" + bytes(30), "zip"),
    "a pt file that calls os.system": (".pt", hostile_torch("os-system.pt"), "os.system"),
    "a pt file that contains itself": (".pt", hostile_torch("self-reference.pt"), "in circles"),
    "an index of no shards": (INDEX, b'{"weight_map": []}', "an object 'weight_map'"),
    "an index of a file elsewhere": (INDEX, b'{"weight_map": {"a": "/etc/passwd"}}', "the name of a file in the folder"),
    "an index of a missing shard": (INDEX, b'{"weight_map": {"a": "none.safetensors"}}', "which holds tensor 'a'"),
}


def changed(**settings):
    """Changes the text of a config.json."""
    return lambda text: json.dumps({**json.loads(text), **settings})


def polydata(angles):
    """A source of points with these x and y."""
    return atlastest.points_source(numpy.array(angles, "f4"))


#: Filters on a good model that are told something bad: name, properties, message.
ON_MODELS = [
    ("AttentionTorus", {"Resolution": [0, 7]}, "at least 2 points"),
    ("AttentionTorus", {"Resolution": [-5, 5]}, "at least 2 points"),
    ("AttentionTorus", {"Resolution": [10**6, 10**6]}, "GiB of memory"),
    ("AttentionTorus", {"HeadWeights": [1]}, "expected one weight for each"),
    ("AttentionTorus", {"HeadWeights": [1, math.inf, 1]}, "finite"),
    ("AttentionTorus", {"Quantities": ["Attention 3"]}, "unknown"),
    ("AttentionTorus", {"Quantities": ["Love"]}, "unknown"),
    ("ClassAreas", {"Resolution": [0, 0]}, "Resolution"),
    ("UnembeddingSphere", {"Resolution": 7}, "at least 8 segments"),
    ("UnembeddingSphere", {"Resolution": 2 * 10**9}, "lower Resolution"),
    ("TokenPairs", {"HeadWeights": [1, 2, 3, 4]}, "expected one weight for each"),
    ("HeadAccuracySimplex", {"HeadIndices": [0, 1, 3]}, "3"),
    ("HeadAccuracySimplex", {"HeadIndices": [0, 1, 1]}, "1"),
    ("HeadAccuracySimplex", {"HeadIndices": [-1, 0, 1]}, "-1"),
    ("HeadAccuracySimplex", {"Pair": [5, 0]}, "5"),
    ("HeadAccuracySimplex", {"Pair": [-1, 2]}, "found -1 and 2"),
    ("HeadAccuracySimplex", {"Resolution": 0}, "at least 1 segment"),
    ("HeadAccuracySimplex", {"Resolution": 10**6}, "memory"),
]

#: Filters on a chart of a good model.
ON_CHARTS = [
    ("TorusDeformation", {"MinorRadius": 2}, "0 < MinorRadius < MajorRadius"),
    ("TorusDeformation", {"Shape": "Vectors", "Vectors": ["POINTS", "Outputs"]}, "found none named 'Outputs'"),
    ("TorusDeformation", {"Shape": "Vectors", "Vectors": ["POINTS", "Class"]}, "3 components"),
    ("SummableColors", {"Vectors": ["Class"]}, "expected 3 components"),
    ("SummableColors", {"Vectors": ["C"]}, "found none named 'C'"),
]

#: Recorders of the oracle's llama that are told something bad.
RECORDERS = [
    ({"TokenIds": "1 229"}, "229"),
    ({"TokenIds": "1 -1"}, "-1"),
    ({"TokenIds": "1 two"}, "two"),
    ({"TokenIds": "1\n\n2"}, "sequence 1"),
    ({"TokenIds": "1 99999999999999999999"}, "99999999999999999999"),
    ({"TokenIds": "1 2", "Prompts": "Hello"}, "found 2"),
    ({"Prompts": "Hello"}, "tokenizer"),
    ({"PromptFile": "/no/such/file.txt"}, "tokenizer"),
    ({"TokenIds": "1 2", "Layers": [99]}, "99"),
    ({"TokenIds": "1 2", "Segments": "0 1"}, "no segments"),
    ({"TokenIds": " ".join(["1"] * 5000)}, "5000"),
    ({"Images": [str(atlastest.RECORDING)]}, "pixel_values"),
    ({"Images": ["/no/such/picture.png"]}, "No such file"),
    ({"TokenIds": "1 2", "Ablate": "2,5"}, "Ablate: expected heads"),
    ({"TokenIds": "1 2", "Ablate": "2.0"}, "layer from 0 to 1"),
    ({"TokenIds": "1 2", "Ablate": "1.4"}, "head from 0 to 3"),
    ({"TokenIds": "1 2", "Ablate": "r1"}, "Ablate: expected heads"),
    ({"TokenIds": "1 2", "PatchFrom": "3 4"}, "PatchSites: expected"),
    ({"TokenIds": "1 2", "PatchFrom": "1 2\n3", "PatchSites": "r1"}, "PatchFrom: expected one prompt, found 2 lines"),
    ({"TokenIds": "1 2", "PatchFrom": "a b", "PatchSites": "r1"}, "PatchFrom"),
    ({"TokenIds": "1 2", "PatchSites": "r1"}, "PatchFrom: expected"),
    ({"TokenIds": "1 2", "PatchFrom": "3 4", "PatchSites": "x1"}, "found 'x1'"),
    ({"TokenIds": "1 2", "PatchFrom": "3 4", "PatchSites": "r1@2"}, "position of sequence 0 from 0 to 1"),
    ({"TokenIds": "1 2", "PatchFrom": "3 4 5", "PatchSites": "r1"}, "as many tokens"),
    ({"TokenIds": "1 2", "PatchFrom": "3 229", "PatchSites": "r1"}, "229"),
]

#: A picture.
SEEN = str(MODELS / "llava" / "picture-0.png")

#: Recorders of models of pictures among words that are told something bad. They have no tokenizer.
RECORDERS_OF_PICTURES = [
    ("llava", {"Images": [SEEN]}, "expected Prompts, PromptFile, TokenIds or a table of token ids beside Images"),
    ("llava", {"Prompts": "What? <image>", "Images": [SEEN]}, "tokenizer"),
    ("llava", {"TokenIds": "1 60 60", "Images": [SEEN]}, "1, or for each of their tokens, 9, found it 2 times"),
    ("llava", {"TokenIds": "1 60"}, "60"),
    ("llava", {"TokenIds": "1 2", "Images": [SEEN]}, "found it 0 times"),
    ("llava", {"TokenIds": "1 60", "Images": [str(atlastest.RECORDING)]}, "expected PNG or JPEG images"),
    ("llava", {"TokenIds": "1 60", "Images": ["/no/such/picture.png"]}, "No such file"),
    ("llava", {"TokenIds": "1 60", "Images": [SEEN], "FramesPerFilm": 1}, "reads no videos, found 1"),
    ("llava", {"TokenIds": "1 60", "Images": [SEEN], "MaximumLength": 5}, "would cut off a picture"),
    ("llava", {"TokenIds": "1 2", "Prompts": "a", "Images": [SEEN]}, "found 2: Prompts, TokenIds"),
    ("internvl", {"TokenIds": "1 60", "Images": [SEEN]}, "tokenizer"),
    ("internvl", {"TokenIds": "60 60", "Images": [SEEN], "FramesPerFilm": 1}, "60 once for each video of Images, 1"),
    ("smolvlm", {"TokenIds": "60", "Images": [SEEN], "FramesPerFilm": 2}, "whole videos of the 1 files"),
    ("qwen2_vl", {"TokenIds": "59", "Images": [SEEN], "FramesPerFilm": 2}, "whole videos of the 1 files"),
    ("qwen2_vl", {"TokenIds": "60", "Images": [SEEN], "FramesPerFilm": 1}, "the token 59 once for each video"),
    ("qwen2_vl", {"TokenIds": "59", "Images": [SEEN], "FramesPerFilm": 1, "FramesPerSecond": 0}, "FramesPerSecond"),
    ("qwen2_moe", {"TokenIds": "1", "FramesPerFilm": 3}, "FramesPerFilm: expected 0"),
]

#: Maps of effects of a model with 229 tokens.
PATCHING = [
    ({}, "no tokenizer"),
    ({"Prompt": "1 2", "PatchFrom": "3 4 5"}, "as many tokens"),
    ({"Prompt": "1 2", "PatchFrom": "3 229"}, "229"),
    ({"Prompt": "1 2\n3 4", "PatchFrom": "3 4"}, "expected one prompt, found 2 lines"),
    ({"Prompt": "1 2", "PatchFrom": "1 2"}, "other logits"),
    ({"Prompt": "1 2", "PatchFrom": "3 4", "Target": "#229"}, "229"),
    ({"Prompt": "1 2", "PatchFrom": "3 4", "Target": "#7", "Against": "#7"}, "another token"),
    ({"Prompt": "1 2", "PatchFrom": "3 4", "Position": 2}, "0 to 1, found 2"),
]

#: Maps of the shipped recording.
MAPS = [
    ({"Layer": 12}, "12"),
    ({"Layer": -1}, "-1"),
    ({"Head": 12}, "found 12"),
    ({"Head": -2}, "found -2"),
    ({"Sequence": 1}, "found 1"),
    ({"Sequence": -2}, "found -2"),
    ({"Quantity": "NormWeighted"}, "value norms"),
    ({"Quantity": "Content"}, "quer"),
    ({"Quantity": "Bias"}, "quer"),
]

#: Lines between the words of the shipped recording.
SENTENCES = [
    ({"Threshold": -1}, "Threshold: expected a weight of at least 0"),
    ({"Quantity": "NormWeighted"}, "value norms"),
    ({"Sequence": 1}, "expected a sequence"),
    ({"Layer": 12}, "layer 12"),
    ({"Head": 12}, "found 12"),
    ({"Heads": [0, 13]}, "found 13"),
    ({"SelectedTokens": [99]}, "SelectedTokens: expected tokens"),
    ({"HiddenTokens": [-1]}, "HiddenTokens: expected tokens"),
    ({"FirstToken": 99}, "FirstToken: expected a position"),
    ({"RowsPerPage": -1}, "RowsPerPage: expected at least 0"),
]

#: Of all heads.
MATRICES = [
    ({"Layer": 12}, "12"),
    ({"Sequence": 1}, "found 1"),
    ({"Sequence": -2}, "found -2"),
    ({"Quantity": "Content"}, "quer"),
    ({"Quantity": "NormWeighted"}, "value norms"),
]

#: Of a run of two layers of four heads on two sequences of six tokens.
PATCHES = [
    ({"Patch": [14, 0]}, "found 14 0"),
    ({"Patch": [-1, 3]}, "found -1 3"),
    ({"Sequence": 2}, "from 0 to 1, found 2"),
    ({"Layer": 2}, "layer 2 is not in the recording"),
    ({"Head": -2}, "found -2"),
    ({"ArrowThreshold": -1}, "at least 0"),
    ({"ArrowThreshold": math.nan}, "found nan"),
    ({"SelectedTokens": [34]}, "found 34"),
]

#: Of two pictures among words, a text of 39 tokens.
WORDS_ON_PICTURES = [
    ({"Token": 39}, "Token: expected a position from 0 to 38, or -1 for the last one, found 39"),
    ({"Token": -2}, "found -2"),
    ({"Picture": 2}, "Picture: expected one from 0 to 1, or -1 for all of the sequence, found 2"),
    ({"Patch": [0, 4]}, "Patch: expected a row from 0 to 3"),
    ({"Patch": [0, 0], "PatchPicture": 2}, "PatchPicture: expected a picture of the sequence from 0 to 1, found 2"),
    ({"Sequence": -1}, "expected one sequence of pictures among words"),
    ({"MeanOfLayers": 1, "Quantity": "Rollout"}, "Layer: expected one for Rollout"),
    ({"AttentionKind": "Encoder"}, "for the attention 'encoder'"),
    ({"AttentionKind": "Cross"}, "AttentionKind: expected Decoder or Encoder"),
]

EMBEDDINGS = [
    ({"Method": "TSNE", "Perplexity": 49}, "the largest that works for 24 points"),
    ({"Method": "TSNE", "Perplexity": 0}, "found 0"),
    ({"Method": "TSNE", "Perplexity": math.nan}, "found nan"),
    ({"Method": "UMAP", "Neighbors": 25}, "25"),
    ({"Method": "UMAP", "MinimumDistance": -1}, "-1"),
    ({"Method": "PCA", "Layer": 2}, "layer 2"),
    ({"Method": "PCA", "Head": 4}, "found 4"),
    ({"Method": "PCA", "Sequence": 2}, "found 2"),
    ({"Method": "PCA", "Sample": 1}, "found 1"),
    ({"Method": "PCA", "KeyScaling": "Fixed", "KeyScale": 0}, "found 0"),
]

#: Folders of a transformer: what is changed in a copy of the oracle's llama, and the message.
CONFIGS = {
    "no JSON": (lambda text: "{", "JSON"),
    "a list": (lambda text: "[]", "object"),
    "an unknown architecture": (lambda text: text.replace('"llama"', '"mamba"'), "mamba"),
    "an unknown activation": (lambda text: text.replace('"silu"', '"sin"'), "sin"),
    "no heads": (changed(num_attention_heads=0), "num_attention_heads"),
    "more layers than weights": (changed(num_hidden_layers=7), "is missing"),
    "another width than the weights": (changed(intermediate_size=7), "expected shape"),
    "a width that is text": (changed(hidden_size="wide"), "hidden_size"),
    "an unknown quantization": (changed(quantization_config={"quant_method": "aqlm"}), "quantized by aqlm, which is not run"),
    "another packing of AWQ": (changed(quantization_config={"quant_method": "awq", "bits": 4, "version": "gemv"}), "'version'"),
    "an unknown setting of GPTQ": (
        changed(quantization_config={"quant_method": "gptq", "bits": 4, "rotation": "hadamard"}), "with 'rotation' \"hadamard\""),
    "two scalings of rotations": (
        changed(rope_scaling={"type": "linear", "factor": 2}, rope_parameters={"type": "linear", "factor": 3}), "to be the same"),
    "two lengths of the training": (
        changed(original_max_position_embeddings=8,
                rope_scaling={"type": "yarn", "factor": 2, "original_max_position_embeddings": 16}), "found 16 and 8"),
}

#: Sources that are told something bad.
SOURCES = [
    ("AttentionOnlyTraining", {"ModelFile": "/no/such/model.safetensors"}, "cannot open file"),
    ("AttentionOnlyTraining", {"ModelFile": str(atlastest.SOURCE / "LICENSE")}, "expected a safetensors file, found a text"),
    ("AttentionOnlyTraining", {"ContinueModel": 1}, "file of a model to continue, found none"),
    ("AttentionOnlyTraining", {"LearningRate": math.nan}, "LearningRate"),
    ("AttentionOnlyTraining", {"LearningRate": 0.0}, "LearningRate"),
    ("AttentionOnlyTraining", {"CheckpointEvery": 0}, "at least 1 step"),
    ("AttentionOnlyTraining", {"Heads": 0}, "Heads: expected at least 1"),
    ("AttentionOnlyTraining", {"VocabularySize": 10**7}, "a task of 100000000000000 pairs would take"),
    ("AttentionOnlyTraining", {"Specialization": -1.0}, "Specialization"),
    ("AttentionOnlyTraining", {"Steps": 10**9, "CheckpointEvery": 1}, "100000 checkpoints"),
    ("TransformerTraining", {"Task": "Text"}, "text"),
    ("TransformerTraining", {"Task": "Text", "TextFile": "/no/such/text.txt"}, "/no/such/text.txt"),
    ("TransformerTraining", {"Task": "Text", "TextFile": str(atlastest.SOURCE / "LICENSE"), "Vocabulary": 10**5,
                             "Heads": 2, "ModelDimension": 8, "BatchSize": 1}, "ocabulary"),
    ("TransformerTraining", {"Context": 1}, "ontext"),
    ("TransformerTraining", {"Layers": -1}, "Layers"),
    ("TransformerTraining", {"Layers": 10**9}, "memory"),
    ("TransformerTraining", {"Heads": 65}, "HeadDimension"),
    ("TransformerTraining", {"LearningRate": math.nan}, "LearningRate"),
    ("TransformerTraining", {"LearningRate": 1e30, "Warmup": 0, "Steps": 20}, "diverged in step"),
    ("TransformerTraining", {"WeightDecay": -2}, "WeightDecay"),
    ("TransformerTraining", {"Seed": -1}, "Seed"),
    ("TransformerTraining", {"Steps": 10**9, "CheckpointEvery": 1}, "100000 checkpoints"),
    ("TransformerTraining", {"Positions": "Rotary", "HeadDimension": 15, "Steps": 1}, "even"),
    ("TransformerTraining", {"ContinueFrom": "/no/such/folder"}, "/no/such/folder"),
    ("HarmonicHead", {"Coefficients": [math.nan] * 11}, "Coefficients"),
    ("HarmonicHead", {"Parametrization": "Product", "Gamma": math.inf}, "Product: expected finite"),
    ("HarmonicHead", {"SweptParameter": 6}, "follow from cos(t1+t2)"),
    ("HarmonicHead", {"SweptParameter": 7}, "follow from sin(t1+t2)"),
    ("HarmonicHead", {"SweptParameter": 12}, "Coefficients, found one of the Product"),
    ("HarmonicHead", {"SweptParameter": 1, "Parametrization": "Product"}, "Product, found a coefficient"),
    ("HarmonicHead", {"Resolution": [0, 0]}, "at least 2 points"),
    ("HarmonicHead", {"Resolution": [10**6, 10**6]}, "memory"),
    ("RandomPrompts", {"Length": 0}, "Length: expected at least 1"),
    ("RandomPrompts", {"IdRange": [9, 3]}, "IdRange: the last id: expected at least 9"),
    ("RandomPrompts", {"Length": 10**9, "Count": 10**6}, "memory"),
]

#: Where the table is left.
PAGE = atlastest.OUTPUT / "bad-input.md"


def page(rows):
    """What the documentation has."""
    lines = [
        "# Bad inputs and their messages",
        "",
        "Each of these inputs was tried. Each gets one message, and ParaView continues.",
        "",
        "| kind | input | message |",
        "|---|---|---|",
    ]
    for row in rows:
        # An input may have a word such as <image>, which is text here, not a tag.
        cells = [html.escape(cell, quote=False).replace("|", "\\|") for cell in row]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def of_any_machine(text):
    """The lines of a page, whatever memory was free when it was written."""
    return re.sub(r"only \d+ GiB are free( within the limit of this container)?", "only ... GiB are free", text).splitlines()
