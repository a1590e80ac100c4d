"""A recording by hand of two pictures among words, in which each word attends to what it names.

Run as a script it writes Data/recordings/words-and-pictures.safetensors.
"""

import json
import pathlib
import struct

import numpy

#: Words around the pictures, of which the disc is red and the square blue.
WORDS = ("<s>", "a", " red", " disc", " and", " a", " blue", " square")
#: Rows and columns of tokens of the pictures, and the pixels of a token on a side.
SIZES, TOKEN = ((4, 4), (3, 5)), 14
#: The weight of a word's attention on its region; the rest is on the first token.
SHARE = 0.8
LAYERS, HEADS = 2, 2
#: Positions: the pictures follow the first word.
FIRST = [1 + sum(rows * columns for rows, columns in SIZES[:n]) for n in range(3)]
LENGTH = FIRST[2] + len(WORDS) - 1
DISC, SQUARE = FIRST[2] + 2, LENGTH - 1


def regions():
    """The tokens of the disc in the first picture and of the square in the second, as masks [rows, columns]."""
    disc, square = (numpy.zeros(size, dtype=bool) for size in SIZES)
    disc[:3, :3], square[1:, 3:] = True, True
    return disc, square


def pictures():
    """A red disc and a blue square on light ground, in the squares of their regions."""
    drawn = [numpy.full((rows * TOKEN, columns * TOKEN, 3), (235, 235, 225), dtype="u1") for rows, columns in SIZES]
    y, x = numpy.mgrid[: drawn[0].shape[0], : drawn[0].shape[1]]
    drawn[0][(y - 20.5) ** 2 + (x - 20.5) ** 2 < 20**2] = (200, 40, 40)
    drawn[1][TOKEN + 3 : -3, 3 * TOKEN + 3 : -3] = (40, 60, 190)
    return drawn


def weights(layer, head):
    """The attention of a head: layer 0, head 0 to what words name; others to the token before, or itself."""
    matrix = numpy.zeros((LENGTH, LENGTH), dtype="f4")
    for query in range(LENGTH):
        matrix[query, query if layer else max(query - 1, 0)] = 1
    if (layer, head) == (0, 0):
        for words, first, region in zip(((DISC - 1, DISC), (SQUARE - 1, SQUARE)), FIRST, regions()):
            named = first + numpy.flatnonzero(region)
            for word in words:
                matrix[word] = 0
                matrix[word, named] = SHARE / len(named)
                matrix[word, 0] = 1 - SHARE
            for patch in named[1:]:
                matrix[patch] = 0
                matrix[patch, named[0]] = 1
    return matrix


def write_recording(path):
    """Writes the recording; returns its path."""
    places = [(-1, -1, -1)]
    for number, (rows, columns) in enumerate(SIZES):
        places += [(number, row, column) for row in range(rows) for column in range(columns)]
    places += [(-1, -1, -1)] * (len(WORDS) - 1)
    named = [f"{number}: {row}, {column}" for number, row, column in places[1 : FIRST[2]]]
    columns = numpy.array(places, dtype="i4").T
    tensors = {
        "sequence_offsets": numpy.array([0, LENGTH], dtype="i8"),
        "tokens.position": numpy.arange(LENGTH, dtype="i4"),
        **{f"tokens.{name}": columns[i].copy() for i, name in enumerate(("picture", "row", "column"))},
        "pictures": numpy.concatenate([picture.reshape(-1, 3) for picture in pictures()]),
    }
    for layer in range(LAYERS):
        for head in range(HEADS):
            tensors[f"layers.{layer}.heads.{head}.weights.0"] = weights(layer, head)
    contents = [[n, 0, 1, 0, rows * TOKEN, columns * TOKEN] for n, (rows, columns) in enumerate(SIZES)]
    metadata = {
        "format": "attention-atlas.recording", "version": "4", "architecture": "words and pictures by hand",
        "mask": "causal", "rotated": "false", "processing": "unprocessed", "layer_count": str(LAYERS),
        "head_count": str(HEADS), "score_scales": json.dumps({str(layer): 1 for layer in range(LAYERS)}),
        "tokens": json.dumps([WORDS[0], *named, *WORDS[1:]]), "picture_contents": json.dumps(contents),
    }
    header, offset = {"__metadata__": metadata}, 0
    names = {"int32": "I32", "int64": "I64", "uint8": "U8", "float32": "F32"}
    for name, tensor in sorted(tensors.items()):
        end = offset + tensor.nbytes
        header[name] = {"dtype": names[tensor.dtype.name], "shape": tensor.shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(tensors[name].tobytes() for name in sorted(tensors))
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


if __name__ == "__main__":
    write_recording(pathlib.Path(__file__).parents[2] / "Data" / "recordings" / "words-and-pictures.safetensors")
