"""Figures, tables, shapes and colors of the small model on several MPI ranks are as on one, and there once."""

import atlastest
import numpy
from atlastest import RANKS, numbers
from attentionatlas import tour
from paraview import simple
from ranktest import RankTest


class SmallModelRanks(RankTest):
    def setUp(self):
        super().setUp()
        self.model = atlastest.read_model()
        self.chart = atlastest.torus(self.model, Quantities=["Output", "Mix"])

    def test_figures(self):
        names = ["class-map", "attention", "simplex", "harmonics"]
        for path in tour.render(atlastest.TRAINED, atlastest.OUTPUT / "figures", names, width=300):
            pixels = atlastest.read_picture(path)
            reference = atlastest.read_picture(atlastest.REFERENCE / "figures" / path.name)
            self.assertLess(atlastest.different_pixels(pixels, reference), 1e-3, path.name)
            if path.stem.endswith("class-map"):  # an empty page would be the same, too
                for color in atlastest.PALETTE:
                    near = numpy.abs(pixels - color).max(axis=2) < 10
                    self.assertGreater(near.mean(), 0.02, f"a class of {path.name}")

    def test_what_one_rank_has(self):
        """All that there is, once."""
        pairs = simple.TokenPairs(Input=self.model)
        for name, source, ports in (
            ("sphere", simple.UnembeddingSphere(Input=self.model), (0, 1, 2)),
            ("circle", simple.WordCircle(Input=self.model), (0, 1)),
            ("simplex", simple.HeadAccuracySimplex(Input=self.model, Resolution=20), (0,)),
            ("harmonics", simple.ScoreHarmonics(Input=self.model), (0,)),
            ("accuracy", simple.HeadAccuracy(Input=self.model), (0,)),
            ("moved", simple.TorusDeformation(Input=pairs, Shape="Vectors", Reference=self.chart), (0,)),
        ):
            self.assert_first(name, source, *ports)

    def test_attention_of_harmonics(self):
        source = simple.HarmonicHead(Resolution=[131, 97])
        for part in self.parts(source):
            self.assertLess(part.GetNumberOfPoints(), 131 * 97 / RANKS * 1.1)
        arrays = self.image_arrays(source)
        self.assertTrue((arrays["Attention"] >= 0).all())
        self.assert_as_on_one_rank("attention", arrays)
        view = atlastest.chart_view()
        simple.Show(simple.HarmonicHead(Resolution=[400, 400]), view)
        self.assert_picture(view, "attention")

    def test_picture_of_the_sphere(self):
        view = atlastest.chart_view()
        sphere = simple.UnembeddingSphere(Input=self.model)
        for port in range(3):
            simple.Show(simple.OutputPort(sphere, port), view)
        view.CameraParallelScale = 1.2
        pixels = self.assert_picture(view, "sphere", 1e-3)
        self.assertGreater(atlastest.different_pixels(pixels, numpy.full_like(pixels, 255)), 0.4)

    def test_surface(self):
        parts = self.parts(simple.TorusDeformation(Input=self.chart, Shape="Vectors", Normalization="Whitened"))
        self.assertEqual(sum(part.GetNumberOfPolys() for part in parts), 63 * 47)
        for part in parts:
            self.assertGreater(part.GetNumberOfPolys(), 0)
        points = numpy.unique(numpy.concatenate([numbers(part)["Points"] for part in parts]), axis=0)
        self.assert_as_on_one_rank("surface", {"Points": points})

    def test_scale_of_colors_is_that_of_all(self):
        colors = simple.SummableColors(Input=self.chart, Vectors=["Output", "Mix 0"])
        for scale in ("Additive", "SharedRange"):
            colors.Scale = scale
            found = [
                [part.GetFieldData().GetArray(name).GetValue(0) for name in ("Color Gain", "Color Offset")]
                for part in self.parts(colors)
            ]
            self.assertEqual(found, found[:1] * RANKS)
            self.assert_as_on_one_rank(f"scale-{scale}", {"scale": numpy.array(found[0])})
