"""Maps of long texts: pooled, and windows of them, against the map with a point for each pair; and as tiles of a page."""

import contextlib
import io
import json
import pathlib
import tempfile
from unittest import mock

import atlastest
import numpy
from atlastest import AtlasTest
from attentionatlas import Recording, web
from attentionatlas._internal import tiles
from paraview import simple
from randomrecording import write_recording, write_text
from webpages import Page

LENGTH = 1500


def values_of(source):
    """A map as a matrix, a row per query from the first, its origin and its spacing."""
    image = atlastest.fetch(source)
    width, height, _ = image.GetDimensions()
    values = atlastest.arrays_of(image)["Weights"]
    return values.reshape(height, width)[::-1], image.GetOrigin(), image.GetSpacing()


def pooled(whole, queries, keys, cell, function):
    """The cells of a part of a map."""
    rows, columns = range(queries[0], queries[1], cell[1]), range(keys[0], keys[1], cell[0])
    return numpy.array([[function(whole[i : i + cell[1], j : j + cell[0]]) for j in columns] for i in rows])


class LongTexts(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.config = pathlib.Path(cls.folder.name) / "config.json"
        for file in (atlastest.TRANSFORMERS / "llama").iterdir():
            (cls.config.parent / file.name).write_bytes(file.read_bytes())
        config = json.loads(cls.config.read_text())
        cls.config.write_text(json.dumps({**config, "max_position_embeddings": LENGTH}))

    def setUp(self):
        super().setUp()
        model = simple.TransformerReader(FileName=str(self.config))
        prompts = simple.RandomPrompts(Kind="RepeatedBlock", Length=LENGTH, Block=700, Count=1, IdRange=[0, 90])
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


class Tiles(AtlasTest):
    """Values of pixels are those of numpy, from the queries and keys of the file."""

    def write(self, length, mask="causal"):
        self.file = atlastest.OUTPUT / f"{length}-{mask}.safetensors"
        self.words = [f" {number}th" for number in range(length)]
        return write_text(self.file, self.words, mask)

    def page(self, *arguments, **options):
        page = Page(web.page(web.attention_map(*arguments, **options)).html())
        (part,) = page.parts("tiles")
        return page, part

    def check(self, weights, page, part, cells, pooling="Maximum"):
        """Each pixel of each level is on the step of the scale that the weights of its pairs give."""
        low, high = part["range"]
        self.assertEqual([level["cell"] for level in part["levels"].values()], cells)
        self.assertEqual(part["sides"], list(weights.shape[::-1]))
        ends = numpy.concatenate([[0, 0], low * (high / low) ** (numpy.arange(255) / 254)])  # of step s: s to s + 1
        for level in part["levels"].values():
            starts = [numpy.arange(0, side, level["cell"]) for side in weights.shape]
            if pooling == "Maximum":
                pooled = numpy.maximum.reduceat(numpy.maximum.reduceat(weights, starts[0], 0), starts[1], 1)
            else:
                counts = numpy.outer(*(numpy.diff([*s, side]) for s, side in zip(starts, weights.shape)))
                pooled = numpy.add.reduceat(numpy.add.reduceat(weights, starts[0], 0), starts[1], 1) / counts
            self.assertEqual(level["dimensions"], list(pooled.shape[::-1]))
            across = -(-pooled.shape[1] // 256)
            numbers = page.values(level["numbers"])[:, 0].tolist()
            for number in range(across * -(-pooled.shape[0] // 256)):
                rows, columns = (slice(256 * at, 256 * at + 256) for at in divmod(number, across))
                expected = pooled[rows, columns]
                self.assertEqual(number in numbers, bool((expected > 0).any()))
                if number in numbers:
                    steps = page.values(level["steps"])[numbers.index(number)].reshape(256, 256)
                    found = steps[: expected.shape[0], : expected.shape[1]].astype(int)
                    self.assertFalse(steps[expected.shape[0] :].any() or steps[:, expected.shape[1] :].any())
                    numpy.testing.assert_array_equal(found == 0, expected == 0)
                    self.assertTrue((expected <= ends[found + 1] * (1 + 1e-4)).all())
                    self.assertTrue((expected >= ends[found] * (1 - 1e-4)).all())

    def test_maximum_and_mean_of_a_causal_head(self):
        weights = self.write(1500)
        for pooling in ("Maximum", "Mean"):
            page, part = self.page(self.file, pooling=pooling)
            self.check(weights, page, part, [1, 2, 4, 8], pooling)
            self.assertEqual(page.values(part["tokens"]), self.words)
            self.assertNotIn("queryTokens", part)
            low, high = part["range"]
            self.assertAlmostEqual(high, weights.max(), delta=1e-5)
            self.assertAlmostEqual((weights[weights > 0] < low).mean(), 0.01, delta=1e-3)
            # 6 x 6 tiles of single pairs, of which the lower half is kept.
            self.assertEqual([level["numbers"]["count"] for level in part["levels"].values()], [21, 6, 3, 1])

    def test_arrays_have_each_query_and_key_of_any_length(self):
        path = atlastest.OUTPUT / "long.safetensors"
        length = 4100  # more than a map has cells
        weights = write_text(path, [f"w{position}" for position in range(length)])
        with Recording(path) as recording:
            found = recording.attention(0, 0)
            self.assertEqual(found.shape, (length, length))
            numpy.testing.assert_allclose(found[::100], weights[::100], atol=1e-5)
            strongest = recording.strongest_keys(0, 0)
            numpy.testing.assert_array_equal(strongest["Key"], weights.argmax(axis=1))

    def test_windows_of_the_filter(self):
        """Levels that the filter gives window by window, of which the last is finer than the others."""
        for mask in ("causal", "bidirectional"):
            weights = self.write(1200, mask)
            with mock.patch.object(tiles, "_RESOLUTION", 256):
                for pooling in ("Maximum", "Mean"):
                    page, part = self.page(self.file, pooling=pooling, cell=2)
                    self.check(weights, page, part, [2, 4, 8], pooling)

    def test_cross_attention(self):
        """Of a source and a target of different lengths."""
        values, _ = atlastest.read_safetensors(atlastest.MODELS / "t5" / "expected.safetensors")
        lines = [
            atlastest.token_lines(row[mask != 0][first:] for row, mask in zip(values[ids], values[masks]))
            for ids, masks, first in (("input_ids", "attention_mask", 0), ("decoder_input_ids", "decoder_attention_mask", 1))
        ]
        model = atlastest.read_transformer("t5")
        with Recording(simple.TransformerRecorder(Input=model, TokenIds=lines[0], Targets=lines[1])) as recording:
            cross = recording.part("Cross")
            queries, keys = recording.lengths[0], recording.part("Encoder").lengths[0]
            self.assertNotEqual(queries, keys)
            expected = values["cross.layer.1.attention"][0, 1, :queries, :keys]
            page, part = self.page(cross, 1, 1, cell=1)
            self.check(expected, page, part, [1])
            # Without a tokenizer tokens are their ids.
            self.assertEqual(page.values(part["tokens"]), lines[0].split("\n")[0].split())
            self.assertEqual(page.values(part["queryTokens"])[1:], lines[1].split("\n")[0].split())

    def test_table(self):
        """The strongest pixels, with their tokens."""
        weights = self.write(1500)
        page, _ = self.page(self.file, cell=1)
        (table,) = page.scenes[0]["tables"]
        self.assertEqual(table["name"], "Strongest pixels of one pair")
        columns = {name: page.values(array) for name, array in table["arrays"].items()}
        order = numpy.argsort(-weights.ravel())[:100]
        numpy.testing.assert_allclose(columns["Largest weight"][:, 0], weights.ravel()[order], rtol=1e-5)
        places = zip(columns["Query Position"][:, 0], columns["Key Position"][:, 0])
        for place, weight in zip(places, columns["Largest weight"][:, 0]):
            self.assertAlmostEqual(weights[place], weight, delta=1e-5)
        for name in ("Query", "Key"):
            expected = [self.words[number] for number in columns[f"{name} Position"][:, 0]]
            self.assertEqual(columns[f"{name} Token"], expected)

    def test_size(self):
        """What is said beforehand is not exceeded, and decides how fine the map is."""
        self.write(1500)
        script = len(web.page(web.torus(atlastest.TRAINED, 2)).html())
        for megabytes, cell, count in ((20, 1, 31), (2.5, 2, 10), (1, 2, 10)):
            size = web.map_size(self.file, megabytes=megabytes)
            self.assertEqual((size.cell, size.tiles), (cell, count))
            self.assertLess(size.megabytes, megabytes)
            made = web.page(web.attention_map(self.file, megabytes=megabytes)).html()
            self.assertLess(len(made) - script, 1e6 * size.megabytes)
        self.assertEqual(
            str(web.map_size(self.file)),
            "31 tiles of 256 x 256 pixels in 4 levels, down to single pairs: at most 2.7 MB",
        )
        self.assertIn("2 x 2 pairs a pixel", str(web.map_size(self.file, cell=2)))
        # A text of at most 1,024 tokens has a point for each pair, unless it is asked for.
        self.write(1024)
        self.assertIsNone(web.map_size(self.file))
        self.assertEqual([part["kind"] for part in web.attention_map(self.file).parts], ["image"])
        self.assertEqual(web.map_size(self.file, cell=8).levels, 1)

    def test_command(self):
        self.write(1500)
        output = atlastest.OUTPUT / "map.html"
        program = ["--only", "map", "--pooling", "Mean", "--cell", "4", "-o", str(output)]
        with contextlib.redirect_stderr(io.StringIO()) as said:
            web.main([str(self.file), *program])
        self.assertIn("map: 4 tiles of 256 x 256 pixels in 2 levels, down to 4 x 4 pairs a pixel: at most", said.getvalue())
        (part,) = Page(output.read_text(encoding="utf-8")).parts("tiles")
        self.assertEqual((part["measure"], list(part["levels"])), ("Mean weight", ["4", "8"]))

    def test_bad_input(self):
        self.write(1500)
        empty = atlastest.OUTPUT / "empty.safetensors"
        tensors, metadata = atlastest.read_safetensors(write_recording(empty))
        positions = numpy.concatenate([numpy.arange(10, dtype=numpy.int32), numpy.arange(20, dtype=numpy.int32)])
        offsets = numpy.array([0, 0, 10, 30], dtype=numpy.int64)
        atlastest.write_safetensors(empty, {**tensors, "sequence_offsets": offsets, "tokens.position": positions}, metadata)

        def draw(file=self.file, **options):
            return lambda: web.attention_map(file, **options)

        self.assert_raise(
            (draw(layer=1), "layer: expected one of 0, found 1"),
            (draw(head=7), "head: expected 0 to 0, found 7"),
            (draw(sequence=1), "sequence: expected 0 to 0, found 1"),
            (draw(cell=3), "cell: expected a power of 2 from 1 to 1048576, found 3"),
            (draw(cell=0), "cell: expected a power of 2 from 1 to 1048576, found 0"),
            (draw(megabytes=0.5), "megabytes: expected 1 to 256, found 0.5"),
            (draw(cell=1, megabytes=2), "megabytes: expected room for 31 tiles .*: at most 2.7 MB; found 2"),
            (draw(pooling="Median"), "pooling: expected one of Maximum, Mean; found 'Median'"),
            (draw(empty), "sequence: expected one with tokens, found that 0 has none"),
        )
        self.assertEqual(self.take_errors(), [])
