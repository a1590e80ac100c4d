"""ParaView's Image Chart View: colors, axes and labels of a torus and of an attention map."""

import unittest

import atlastest
import numpy
from atlastest import AtlasTest
from paraview import servermanager, simple

EXISTS = bool(servermanager.ProxyManager().GetProxyDefinitionManager().GetProxyDefinition("views", "ImageChartView", False))


@unittest.skipUnless(EXISTS, "ParaView before 6.1 has no Image Chart View")
class ImageChart(AtlasTest):
    def setUp(self):
        super().setUp()
        self.view = simple.CreateView("ImageChartView", ViewSize=[600, 600])

    def show(self, source):
        source.UpdatePipeline()
        display = simple.Show(source, self.view)
        simple.Render(self.view)
        return display

    def titles(self):
        return self.view.BottomAxisTitle, self.view.LeftAxisTitle

    def labels(self):
        """Those that the chart draws, from the lower left."""
        chart = self.view.GetClientSideObject().GetChart()
        texts = [chart.GetAxis(axis).GetTickLabels() for axis in (1, 0)]
        return [[text.GetValue(i) for i in range(text.GetNumberOfValues())] for text in texts]

    def show_map(self):
        recording = atlastest.read_recording()
        return self.show(simple.AttentionMap(Input=recording, Layer=4, Head=11))

    def test_torus(self):
        display = self.show(simple.AttentionTorus(Input=atlastest.read_model()))
        self.assertEqual(list(display.ColorArrayName), ["POINTS", "Class"])
        self.assertEqual(self.titles(), ("theta_1", "theta_2"))
        self.assertEqual(self.view.ShowLegend, 0)
        pixels = atlastest.picture(self.view, "torus").reshape(-1, 3)
        shares = [(pixels == color).all(axis=1).mean() for color in atlastest.PALETTE]
        self.assertGreater(min(shares), 0.02)
        self.assertGreater(sum(shares), 0.5)

    def test_map(self):
        display = self.show_map()
        self.assertEqual(list(display.ColorArrayName), ["POINTS", "Weights"])
        self.assertEqual(self.titles(), ("Key", "Query"))
        tokens = ["Data", " visualization", " em", "powers", " users", " to"]
        self.assertEqual(self.labels(), [tokens, tokens])
        pixels = atlastest.picture(self.view, "map").reshape(-1, 3)
        self.assertGreater((numpy.abs(pixels - [8, 38, 92]).max(axis=1) < 5).mean(), 0.08)

    def test_another_source(self):
        self.show_map()
        self.show(simple.HarmonicHead())
        self.assertEqual(self.titles(), ("theta_1", "theta_2"))
        self.assertNotIn("Data", self.labels()[0])

    def test_titles_of_the_user_stay(self):
        self.view.LeftAxisTitle = "from"
        self.show_map()
        self.assertEqual(self.titles(), ("Key", "from"))
        bottom, left = self.labels()
        self.assertEqual(bottom[0], "Data")
        self.assertNotIn("Data", left)

    def test_state(self):
        self.show_map()
        before = self.labels()
        self.reload()
        self.view = next(view for view in simple.GetViews() if view.GetXMLName() == "ImageChartView")
        simple.Render(self.view)
        self.assertEqual((self.titles(), self.labels()), (("Key", "Query"), before))
