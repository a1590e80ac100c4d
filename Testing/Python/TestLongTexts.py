"""Maps of long texts: pooled, and windows of them, against the map with a point for each pair."""

import json
import pathlib
import tempfile
import time

import atlastest
import numpy
from atlastest import AtlasTest
from paraview import simple

LLAMA = atlastest.ORACLE.parent / "transformers" / "llama"
LENGTH = 1500


def values_of(source):
    """A map as a matrix, a row per query from the first, its origin and its spacing."""
    image = atlastest.fetch(source)
    width, height, _ = image.GetDimensions()
    values = atlastest.arrays_of(image)["Weights"]
    return values.reshape(height, width)[::-1], image.GetOrigin(), image.GetSpacing()


def pooled(whole, queries, keys, cell, function):
    """The cells of a part of a map."""
    return numpy.array(
        [
            [
                function(whole[i : min(i + cell[1], LENGTH), j : min(j + cell[0], LENGTH)])
                for j in range(keys[0], keys[1], cell[0])
            ]
            for i in range(queries[0], queries[1], cell[1])
        ]
    )


class LongTexts(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.config = pathlib.Path(cls.folder.name) / "config.json"
        for file in LLAMA.iterdir():
            (cls.config.parent / file.name).write_bytes(file.read_bytes())
        config = json.loads(cls.config.read_text())
        cls.config.write_text(json.dumps({**config, "max_position_embeddings": LENGTH}))

    def setUp(self):
        super().setUp()
        model = simple.TransformerReader(FileName=str(self.config))
        prompts = simple.RandomPrompts(
            Kind="RepeatedBlock", Length=LENGTH, Block=700, Count=1, IdRange=[0, 90]
        )
        recording = simple.TransformerRecorder(Input=model, Tokens=prompts)
        self.map = simple.AttentionMap(Input=recording, Layer=1, Head=1)
        self.whole, _, _ = values_of(self.map)
        self.map.MaximumSize = LENGTH - 1
        self.matrix = simple.AttentionMatrix(Input=recording, MaximumSize=16)

    def test_the_map_is_pooled_and_so_are_its_windows(self):
        self.assertEqual(self.whole.shape, (LENGTH, LENGTH))
        self.map.Resolution = 128
        for pooling, function in (("Maximum", numpy.max), ("Mean", numpy.mean)):
            self.map.Pooling = pooling
            for queries, keys, shown, cell in (
                ((0, 0), (0, 0), ((0, LENGTH), (0, LENGTH)), (16, 16)),
                ((701, 903), (10, 130), ((700, 904), (10, 130)), (1, 2)),
                ((1490, 9999), (0, 0), ((1490, LENGTH), (0, LENGTH)), (16, 1)),
            ):
                self.map.QueryWindow, self.map.KeyWindow = queries, keys
                found, origin, spacing = values_of(self.map)
                self.assert_close(found, pooled(self.whole, *shown, cell, function), 1e-5)
                self.assertEqual(spacing[:2], cell)
                self.assertEqual(origin[0], shown[1][0] + (cell[0] - 1) / 2)
                top = origin[1] + (found.shape[0] - 1) * cell[1]
                self.assertEqual(top, -shown[0][0] - (cell[1] - 1) / 2)

    def test_a_window_of_all_heads(self):
        self.matrix.QueryWindow, self.matrix.KeyWindow = (1400, 1420), (704, 720)
        arrays = atlastest.point_arrays(self.matrix)
        mine = (arrays["Layer"] == 1) & (arrays["Head"] == 1)
        expected = pooled(self.whole, (1400, 1420), (704, 720), (1, 2), numpy.max)
        self.assertEqual(mine.sum(), expected.size)
        for value, query, key in zip(*(arrays[name][mine] for name in ("Weights", "Query", "Key"))):
            self.assertAlmostEqual(value, expected[(query - 1400) // 2, key - 704], delta=1e-5)

    def test_a_further_window_takes_no_second(self):
        simple.UpdatePipeline(proxy=self.map)
        begin = time.process_time()
        self.map.QueryWindow = (300, 500)
        simple.UpdatePipeline(proxy=self.map)
        self.assertLess(time.process_time() - begin, 1)


if __name__ == "__main__":
    atlastest.main()
