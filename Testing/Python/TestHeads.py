"""Figures of a recording: their colors are those of its attention, and bad input is named."""

import atlastest
import numpy
from atlastest import AtlasTest
from attentionatlas import heads

LAYER, HEAD = 4, 11


class Heads(AtlasTest):
    def test_colors(self):
        values = numpy.array([[0, 1, 0.5], [numpy.nan, 2, -numpy.inf]])
        colors = heads.colors_of(values, [[1, 1, 1], [0, 0, 0.2]], 0, 1)
        white, dark, grey = [255, 255, 255], [0, 0, 51], [230, 230, 230]
        expected = [[white, dark, [128, 128, 153]], [grey, dark, grey]]
        numpy.testing.assert_array_equal(colors, expected)

    def test_figures(self):
        folder = atlastest.OUTPUT / "figures"
        paths = heads.render(atlastest.RECORDING, folder, layer=LAYER, head=HEAD, width=400)
        names = [path.stem.removeprefix(atlastest.RECORDING.stem + "-") for path in paths]
        self.assertEqual(names, ["scores", "weights", "layer", "all-heads"])
        pictures = {name: atlastest.read_picture(path) for name, path in zip(names, paths)}
        for picture in pictures.values():
            self.assertEqual(picture.shape[1], 400)
        # The map of the head: of its 36 cells those with a weight near 1 are dark.
        tensors, _ = atlastest.read_safetensors(atlastest.RECORDING)
        dark = numpy.array([int(255 * c) for c in heads.WEIGHTS[-1]])
        cells = (tensors["attention"][LAYER, HEAD] > 0.97).sum()
        self.assertGreater(cells, 4)
        near = numpy.abs(pictures["weights"] - dark).max(axis=-1) < 20
        columns = numpy.flatnonzero(near[:, :320].any(axis=0))  # without the colour bar
        cell = (columns[-1] - columns[0] + 1) / 5  # the map's last column has none
        self.assertAlmostEqual(near[:, :320].sum() / cell**2, cells, delta=0.35)

    def test_attention_alone(self):
        """What record.py keeps of a Hugging Face model, here even without its tokens."""
        path = atlastest.OUTPUT / "alone.npy"
        numpy.save(path, numpy.tile(numpy.eye(3, dtype="f4"), (1, 2, 1, 1)))
        paths = heads.render_named(path, atlastest.OUTPUT, width=400)
        self.assertEqual(list(paths), ["weights", "layer", "all-heads"])
        pixels = atlastest.read_picture(paths["weights"])[:, :320]
        dark = numpy.array([int(255 * c) for c in heads.WEIGHTS[-1]])
        near = numpy.abs(pixels - dark).max(axis=-1) < 20
        side = numpy.ptp(numpy.flatnonzero(near.any(axis=0))) + 1
        self.assertAlmostEqual(near.sum() / side**2, 1 / 3, delta=0.03)

    def test_bad_input(self):
        with self.assertRaisesRegex(FileNotFoundError, "none.npy: no such file"):
            heads.render("none.npy", atlastest.OUTPUT)
        with self.assertRaisesRegex(ValueError, "unknown format 'gif'"):
            heads.render(atlastest.RECORDING, atlastest.OUTPUT, format="gif")
        with self.assertRaisesRegex(ValueError, "no .* of layer 0, head 12"):
            heads.render(atlastest.RECORDING, atlastest.OUTPUT, head=12, width=400)
        self.assert_one_error("expected a head from 0 to 11, found 12")
        with self.assertRaisesRegex(ValueError, "cannot be read"):
            heads.render(atlastest.SOURCE / "LICENSE", atlastest.OUTPUT)
        self.assertEqual(len(self.take_errors()), 1)


if __name__ == "__main__":
    atlastest.main()
