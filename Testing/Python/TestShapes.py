"""The torus in space and vectors as colors, driven as users script them."""

import atlastest
import numpy
from atlastest import AtlasTest, point_arrays, torus
from paraview import simple
from vtkmodules.util.numpy_support import vtk_to_numpy


def positions(source):
    """The points of a source, in the order of its arrays."""
    return vtk_to_numpy(atlastest.fetch(source).GetPoints().GetData()).astype(float)


class Shapes(AtlasTest):
    def setUp(self):
        super().setUp()
        self.model = atlastest.read_model()
        self.chart = torus(self.model, Quantities=["ClassColor", "Score", "Output", "Head Output"])
        self.pairs = simple.TokenPairs(Input=self.model)

    def show(self, source):
        view = atlastest.chart_view()
        display = simple.Show(source, view)
        simple.Render(view)
        return display

    def test_defaults(self):
        deformation = simple.TorusDeformation(Input=self.chart)
        self.assertEqual(deformation.Shape, "Donut")
        self.assertEqual(deformation.Normalization, "None")
        self.assertEqual(deformation.Vectors[1], "Output")
        self.assertEqual((deformation.MajorRadius, deformation.MinorRadius), (2, 1))
        self.chart.UpdatePipeline()
        colors = simple.SummableColors(Input=self.chart)
        self.assertEqual(colors.Scale, "Additive")
        heads = [f"Head Output {h}" for h in range(3)]
        self.assertEqual(sorted(colors.Vectors), [*heads, "Output"])

    def test_normalizations(self):
        deformation = simple.TorusDeformation(Input=self.chart, Shape="Vectors")
        raw = positions(deformation)
        u, _, v = numpy.linalg.svd(raw, full_matrices=False)
        expected = {
            "PerAxis": raw / numpy.sqrt((raw**2).mean(axis=0)),
            "Whitened": u @ v,
            "UnitSphere": raw / numpy.linalg.norm(raw, axis=1, keepdims=True),
        }
        for name, values in expected.items():
            deformation.Normalization = name
            self.assert_close(positions(deformation), values, 1e-5)

    def test_frontier_lies_on_the_deformed_torus(self):
        frontier = simple.Contour(Input=self.chart, ContourBy=["POINTS", "Score 0"], Isosurfaces=[0])
        exact = simple.AttentionTorus(Input=self.model, Points=frontier, Quantities=["Output"])
        moved = simple.TorusDeformation(Input=frontier, Shape="Vectors", Reference=self.chart)
        self.assertGreater(len(positions(moved)), 50)
        lines = atlastest.fetch(moved)
        self.assertEqual(lines.GetNumberOfLines(), lines.GetNumberOfCells())
        # The chart has 64 x 48 points, between which it is interpolated.
        self.assert_close(positions(moved), point_arrays(exact)["Output"], 0.1)

    def test_first_looks(self):
        donut = self.show(simple.TorusDeformation(Input=self.chart))
        self.assertEqual(list(donut.ColorArrayName), ["POINTS", "ClassColor"])
        self.assertEqual((donut.Representation, donut.MapScalars), ("Surface", 0))
        moved = self.show(simple.TorusDeformation(Input=self.pairs))
        self.assertEqual(list(moved.ColorArrayName), ["POINTS", "TargetColor"])
        self.assertEqual((moved.Representation, moved.MapScalars), ("Point Gaussian", 0))
        colors = self.show(simple.SummableColors(Input=self.chart, Vectors=["Output"]))
        self.assertEqual(list(colors.ColorArrayName), ["POINTS", "Output Color"])
        self.assertEqual(colors.MapScalars, 0)

    def test_selected_pairs_are_seen(self):
        view = atlastest.chart_view()
        simple.Show(self.pairs, view)

        def magenta(name):
            pixels = atlastest.picture(view, name)
            return (pixels == [255, 0, 255]).all(axis=-1).sum()

        self.assertEqual(magenta("unselected"), 0)
        simple.SelectIDs(IDs=[0, 12], FieldType="POINT", Source=self.pairs)
        self.assertGreater(magenta("selected"), 150)
        simple.ClearSelection(self.pairs)

    def test_angles_have_scales_of_their_own(self):
        display = self.show(simple.TorusDeformation(Input=self.chart))
        for name, (red, blue) in (("Theta1", (0.4, 0.05)), ("Theta2", (0.03, 0.42))):
            display.ColorArrayName = ["POINTS", name]
            self.assertEqual(display.MapScalars, 1)
            table = simple.GetColorTransferFunction(name)
            points = numpy.array(table.RGBPoints).reshape(-1, 4)
            self.assertAlmostEqual(points[0, 0], -numpy.pi)
            self.assertAlmostEqual(points[-1, 0], numpy.pi)
            self.assertEqual((points[-1, 1], points[-1, 3]), (red, blue))

    def test_scales_of_colors(self):
        colors = simple.SummableColors(Input=self.chart, Vectors=["Output", "Head Output 0"])
        outputs = point_arrays(colors)
        both = numpy.concatenate([outputs["Output"], outputs["Head Output 0"]]).astype(float)
        for scale, low, high in (("Additive", 0, both.max()), ("SharedRange", both.min(), both.max())):
            colors.Scale = scale
            arrays = point_arrays(colors)
            for name in ("Output", "Head Output 0"):
                exact = 255 * (arrays[name].astype(float) - low) / (high - low)
                difference = arrays[f"{name} Color"] - exact.clip(0, 255)
                self.assertLessEqual(numpy.abs(difference).max(), 0.501)

    def test_states_bring_them_back(self):
        simple.TorusDeformation(
            registrationName="Bent", Input=self.chart, Shape="Vectors", Vectors="Head Output 2",
            Normalization="PerAxis", Reference=self.chart, MajorRadius=5, MinorRadius=2,
        )  # fmt: skip
        simple.SummableColors(
            registrationName="Colored", Input=self.chart, Vectors=["Head Output 2"],
            Scale="SharedRange", Gain=3,
        )  # fmt: skip
        expected = {name: point_arrays(simple.FindSource(name)) for name in ("Bent", "Colored")}
        self.reload()
        bent, colored = simple.FindSource("Bent"), simple.FindSource("Colored")
        self.assertEqual((bent.Shape, bent.Vectors[1]), ("Vectors", "Head Output 2"))
        self.assertEqual((bent.Normalization, bent.MajorRadius, bent.MinorRadius), ("PerAxis", 5, 2))
        self.assertIsNotNone(bent.Reference)
        self.assertEqual((colored.Scale, colored.Gain), ("SharedRange", 3))
        self.assertEqual(list(colored.Vectors), ["Head Output 2"])
        for name, arrays in expected.items():
            self.assert_same_arrays(point_arrays(simple.FindSource(name)), arrays)
