"""What users do wrong gets a message, and ParaView goes on."""

import math
import struct

import atlastest
import numpy
from atlastest import AtlasTest, fetch, point_arrays, torus
from paraview import simple


def _bytes(data):
    return lambda path: path.write_bytes(data)


def _changed(name, values):
    """The trained model with one tensor replaced, or removed."""

    def write(path):
        tensors, metadata = atlastest.read_safetensors(atlastest.TRAINED)
        tensors = {key: value for key, value in tensors.items() if key != name}
        if values is not None:
            tensors[name] = values
        atlastest.write_safetensors(path, tensors, metadata)

    return write


_NAN_QUERY = numpy.array([[1, 2, 3], [4, math.nan, 6], [7, 8, 9]], "f4")

#: How to write a bad file, and what the reader says about it.
FILES = {
    "missing": (lambda path: path.unlink(missing_ok=True), "cannot open file: No such file"),
    "empty": (_bytes(b""), "8-byte header length, found 0 bytes"),
    "header-beyond-file": (_bytes(struct.pack("<Q", 99) + b"{}"), "is 99 bytes long, but only 2"),
    "header-of-4-gb": (_bytes(struct.pack("<Q", 2**32) + b"{}"), "a length of 4294967296"),
    "no-json": (_bytes(struct.pack("<Q", 8) + b"Hi there"), "header is not JSON"),
    "missing-tensor": (_changed("heads.1.key", None), "tensor 'heads.1.key' is missing"),
    "wrong-shape": (
        _changed("unembedding", numpy.zeros((4, 3), "f4")),
        "tensor 'unembedding': expected shape [5, 3] (the vocabulary), found [4, 3]",
    ),
    "nan": (_changed("heads.0.query", _NAN_QUERY), "holds nan at row 1, column 1"),
    "target": (
        _changed("next_token", numpy.full((5, 5), 5, "i8")),
        "tensor 'next_token' holds 5 at row 0, column 0; expected a token from 0 to 4",
    ),
}

#: Values of AttentionTorus that are wrong, and what it says about them.
PROPERTIES = {
    "Resolution: expected at least 2 points along each angle, found 0 x 7.": {
        "Resolution": [0, 7]
    },
    "found 1 x 1.": {"Resolution": [1, 1]},
    "would take 10245 GiB of memory, but only": {"Resolution": [1000000, 1000000]},
    "HeadWeights: expected one weight for each of the 3 heads": {"HeadWeights": [1, 1]},
    "HeadWeights: expected finite numbers, found nan for head 2": {
        "HeadWeights": [1, 1, math.nan]
    },
    "Quantities: 'Attention 3' is unknown": {"Quantities": ["Attention 3"]},
}


class BadInput(AtlasTest):
    def show(self, source):
        view = atlastest.chart_view()
        simple.Show(source, view)
        return view

    def expect_works(self, source):
        self.assertGreater(len(point_arrays(source)["Class"]), 0)
        self.assertEqual(self.take_errors(), [])

    def test_files(self):
        for name, (write, message) in FILES.items():
            with self.subTest(name):
                path = atlastest.OUTPUT / f"{name}.safetensors"
                write(path)
                model = atlastest.read_model(path)
                model.UpdatePipeline()
                self.assert_one_error(str(path), message)
        self.expect_works(torus(atlastest.read_model()))

    def test_pipeline_behind_a_bad_file(self):
        source = torus(atlastest.read_model(atlastest.OUTPUT / "none.safetensors"))
        source.UpdatePipeline()
        simple.Render(self.show(source))
        self.assertTrue(all("none.safetensors" in error for error in self.take_errors()))
        source.Input = atlastest.read_model()
        self.expect_works(source)

    def test_properties(self):
        for message, properties in PROPERTIES.items():
            with self.subTest(message):
                source = torus(atlastest.read_model(), **properties)
                source.UpdatePipeline()
                self.assert_one_error(message)
                simple.Render(self.show(source))
                self.assertTrue(all(message in error for error in self.take_errors()))
                source.Resolution = [8, 8]
                source.HeadWeights = []
                source.Quantities = ["Class"]
                self.expect_works(source)

    def test_points(self):
        for theta, message in (
            (numpy.zeros((0, 2)), "Points: expected a dataset with points, found none."),
            ([[0, 1], [2, math.nan]], "Points: expected finite angles x and y, found (2.0"),
        ):
            source = torus(atlastest.read_model(), Points=atlastest.points_source(theta))
            source.UpdatePipeline()
            self.assert_one_error(message)
            source.Points = None
            self.expect_works(source)

    def test_raw_embedding_of_a_chart(self):
        with self.assertRaises(ValueError):
            torus(atlastest.read_model(), Residual="RawEmbedding")

    def test_sub_heads(self):
        self.oracle()
        model = atlastest.read_model(atlastest.ORACLE / "trained-n5-h3.state_dict.safetensors")
        model.SubHeads = 2
        model.UpdatePipeline()
        self.assert_one_error("sub-heads must divide the embedding dimension 3, found 2")
        model.SubHeads = 3
        self.assertEqual(fetch(model).GetNumberOfBlocks(), 4 * 9 + 4)


if __name__ == "__main__":
    atlastest.main()
