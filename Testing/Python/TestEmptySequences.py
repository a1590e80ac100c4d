"""Sequences without tokens, as padding alone gives them: they are left out or refused, and nothing crashes."""

import atlastest
import numpy
from atlastest import AtlasTest, point_arrays, simple
from randomrecording import LAYERS, write_recording

#: Filters on a recording, and whether they show one sequence at a time.
FILTERS = {
    "AttentionMap": True,
    "AttentionMatrix": True,
    "AttentionSentence": True,
    "HeadEmbedding": False,
    "AttentionFocus": False,
    "HeadScores": False,
}


class EmptySequences(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = write_recording(atlastest.OUTPUT / "whole.safetensors")
        tensors, metadata = atlastest.read_safetensors(path)
        cls.files = {}
        for place, offsets in {"first": [0, 0, 10, 30], "last": [0, 10, 30, 30]}.items():
            tensors["sequence_offsets"] = numpy.array(offsets, dtype=numpy.int64)
            lengths = numpy.diff(offsets)
            positions = numpy.concatenate([numpy.arange(length, dtype=numpy.int32) for length in lengths])
            cls.files[place] = atlastest.OUTPUT / f"{place}.safetensors"
            atlastest.write_safetensors(cls.files[place], {**tensors, "tokens.position": positions}, metadata)

    def rows(self, shown):
        """Points of the first output, or rows if it is a table."""
        shown.UpdatePipeline()
        data = shown.GetDataInformation()
        return max(data.GetNumberOfPoints(), data.DataInformation.GetNumberOfRows())

    def test_an_empty_one_is_refused_or_shows_nothing_and_others_are_shown(self):
        for place, file in self.files.items():
            reader = atlastest.read_recording(file)
            for name, is_of_one in FILTERS.items():
                with self.subTest(filter=name, place=place):
                    shown = getattr(simple, name)(Input=reader, **({"Sequence": 1} if is_of_one else {}))
                    self.assertGreater(self.rows(shown), 0)
                    self.assertEqual(self.take_errors(), [])
                    if is_of_one:
                        shown.Sequence = 0 if place == "first" else 2
                        self.assertEqual(self.rows(shown), 0)
                        for error in self.take_errors():
                            self.assertIn("expected at least 1 token, found 0", error)

    def test_the_mean_leaves_them_out(self):
        without = atlastest.OUTPUT / "without.safetensors"
        tensors, metadata = atlastest.read_safetensors(self.files["last"])
        tensors["sequence_offsets"] = numpy.array([0, 10, 30], dtype=numpy.int64)
        atlastest.write_safetensors(without, tensors, metadata)
        images = []
        for path in (without, self.files["last"]):
            reader = atlastest.read_recording(path)
            images.append(point_arrays(simple.AttentionMap(Input=reader, Layer=LAYERS - 1, Sequence=-1))["Weights"])
        numpy.testing.assert_array_equal(*images)
