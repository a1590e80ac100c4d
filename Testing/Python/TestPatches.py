"""Patches of a recorded vision transformer: their picture in a view, and their figures."""

import subprocess

import atlastest
import numpy
import picturedrecording as by_hand
from atlastest import AtlasTest
from attentionatlas import heads, patches, tour
from attentionatlas._internal import data
from attentionatlas.output import save
from figuretest import pixel_colors, unwritten, without_layout
from paraview import servermanager, simple
from randomrecording import attention_of
from PIL import Image
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonCore import vtkCollection

LAYER, HEAD = 1, 2
#: Pixels of the picture, and of one of its 4 x 4 patches; of a patch in a view.
SIZE, PATCH, ZOOM = 32, 8, 100


def picture():
    """A picture of different colors in each pixel."""
    y, x = numpy.mgrid[:SIZE, :SIZE]
    return numpy.stack([7 * x, 7 * y, 240 - 3 * (x + y)], axis=-1).astype("u1")


class Patches(AtlasTest):
    @classmethod
    def setUpClass(cls):
        cls.file = atlastest.OUTPUT / "scene.png"
        cls.path = atlastest.OUTPUT / "vit.safetensors"
        Image.fromarray(picture()).save(cls.file)

    def setUp(self):
        super().setUp()
        model = atlastest.read_transformer("vit")
        self.recorder = simple.TransformerRecorder(Input=model, Images=[str(self.file)])
        simple.SaveData(str(self.path), self.recorder)
        self.take_errors()  # of tensors that the model does not use
        self.recording = atlastest.read_recording(self.path)
        self.weights = attention_of(self.path, LAYER, HEAD, causal=False)

    def heat(self, query):
        """The weights of the patches for a query, as a share of the largest weight of a token."""
        return self.weights[query, 1:].reshape(4, 4) / self.weights[query].max()

    def view(self, filter):
        """A view of the picture and what is on it, each patch of ZOOM pixels, and the representations."""
        view = atlastest.chart_view(4 * ZOOM)
        view.CameraFocalPoint, view.CameraPosition = [1.5, -1.5, 0], [1.5, -1.5, 10]
        view.CameraParallelScale = 2
        return view, [simple.Show(simple.OutputPort(filter, port), view) for port in range(5)]

    def test_the_picture_is_in_the_file(self):
        tensors, _ = atlastest.read_safetensors(self.path)
        numpy.testing.assert_array_equal(tensors["pictures"], picture()[None])

    def test_first_apply(self):
        view, shown = self.view(simple.PatchAttention(Input=self.recording, Layer=LAYER, Head=HEAD))
        self.assertEqual([r.Representation for r in shown], ["Surface"] * 3 + ["Squares", "Surface"])
        self.assertEqual(list(shown[0].ColorArrayName), ["CELLS", "Heat"])
        self.assertEqual(list(shown[3].ColorArrayName), ["POINTS", "PictureColor"])
        self.assertEqual(shown[0].Opacity, 1)
        simple.Render(view)
        points = list(shown[0].LookupTable.RGBPoints)
        self.assertEqual(points[0], 0)
        self.assertAlmostEqual(points[-4], self.weights[0].max(), delta=1e-6)
        for number, legend in ((0, True), (3, False)):
            shown[number].SetScalarBarVisibility(view, True)
            bar = simple.GetScalarBar(shown[number].LookupTable, view)
            self.assertEqual(bool(bar.Visibility), legend)
        self.assertEqual(simple.GetScalarBar(shown[0].LookupTable, view).Title, "Attention weight")

    def test_pixels_are_exact_and_heat_lies_upon_them(self):
        """In the middle of a patch the color is that of the color bar, around it the picture is seen; mixed if one likes."""
        filter = simple.PatchAttention(Input=self.recording, Layer=LAYER, Head=HEAD)
        view, shown = self.view(filter)
        for port in (0, 1, 2, 4):
            shown[port].Visibility = 0
        pixels = atlastest.picture(view, "shown")[::-1]
        side = 4 * ZOOM / SIZE
        middle = ((numpy.arange(SIZE) + 0.5) * side).astype(int)
        numpy.testing.assert_allclose(pixels[numpy.ix_(middle, middle)], picture(), atol=1)
        nearest = ((numpy.arange(4 * ZOOM) + 0.5) / side).astype(int)  # without lines between the pixels of the picture
        self.assertLess(atlastest.different_pixels(pixels, picture()[numpy.ix_(nearest, nearest)], 1), 0.1)
        shown[0].Visibility = 1
        pixels = atlastest.picture(view, "heat")[::-1][numpy.ix_(middle, middle)]
        share = self.heat(0).repeat(PATCH, axis=0).repeat(PATCH, axis=1)
        colors = patches._HEAT(share)[..., :3] * 255
        inside = numpy.abs(numpy.arange(SIZE) % PATCH + 0.5 - PATCH / 2) < 0.3 * PATCH
        inside = (inside[:, None] & inside)[..., None]
        # ParaView's table of the map has other steps than Matplotlib's.
        numpy.testing.assert_allclose(pixels, numpy.where(inside, colors, picture()), atol=12)
        filter.HeatSide, shown[0].Opacity = 1, 0.5
        pixels = atlastest.picture(view, "mixed")[::-1][numpy.ix_(middle, middle)]
        numpy.testing.assert_allclose(pixels, 0.5 * picture() + 0.5 * colors, atol=8)

    def test_the_scale_follows_the_head_until_the_user_changes_it(self):
        filter = simple.PatchAttention(Input=self.recording, Layer=LAYER, Head=HEAD)
        view, shown = self.view(filter)
        simple.Render(view)
        for head in range(4):
            filter.Head = head
            simple.Render(view)
            cells = data.fetch(filter).GetCellData()
            largest = vtk_to_numpy(cells.GetArray("Weight")).max()
            self.assertAlmostEqual(shown[0].LookupTable.RGBPoints[-4], largest, delta=1e-6)
        shown[0].LookupTable.RescaleTransferFunction(0, 0.75)
        filter.Head = 0
        simple.Render(view)
        self.assertEqual(shown[0].LookupTable.RGBPoints[-4], 0.75)

    def test_a_selection_of_cells(self):
        filter = simple.PatchAttention(Input=self.recording, Layer=LAYER, Head=HEAD)
        filter.Selection = simple.IDSelectionSource(IDs=[0, 6, 0, 7], FieldType="CELL")
        cells = data.fetch(filter).GetCellData()
        expected = self.weights[6:8].mean(axis=0)
        numpy.testing.assert_allclose(vtk_to_numpy(cells.GetArray("Weight")), expected, atol=1e-6)

    def test_a_click_anywhere_in_a_patch_selects_it(self):
        """On its square, beside it, on an arrow, or a rectangle in it; of one head and of all."""
        filter = simple.PatchAttention(Input=self.recording, Layer=LAYER, Head=HEAD, Arrows="Above", ArrowThreshold=0)
        view, _ = self.view(filter)
        cells = simple.Show(simple.OutputPort(filter, 6), view)
        simple.Render(view)  # which resets the camera at first
        view.CameraFocalPoint, view.CameraPosition, view.CameraParallelScale = [1.5, -1.5, 0], [1.5, -1.5, 10], 2
        plain = atlastest.picture(view, "with-cells")
        cells.Visibility = 0
        self.assertTrue((plain == atlastest.picture(view, "without-cells")).all(), "they are not seen")
        cells.Visibility = 1
        simple.Render(view)

        def selected(x, y, half=1):
            pixel = [round((x + 0.5) * ZOOM), round((y + 3.5) * ZOOM)]
            corners = [pixel[0] - half, pixel[1] - half, pixel[0] + half, pixel[1] + half]
            shown, selections = vtkCollection(), vtkCollection()
            view.SMProxy.SelectSurfaceCells(corners, shown, selections, True)
            found = []
            for number in range(shown.GetNumberOfItems()):
                output = servermanager._getPyProxy(shown.GetItemAsObject(number)).Input
                selection = servermanager._getPyProxy(selections.GetItemAsObject(number))
                extracted = simple.ExtractSelection(Input=output, Selection=selection)
                arrays = atlastest.arrays_of(atlastest.fetch(extracted), "CellData")
                found += zip(arrays["Row"], arrays["Column"])
            return found

        for row, column in ((0, 0), (1, 2), (3, 3)):
            for x in (-0.45, -0.2, 0, 0.4):
                for y in (-0.4, 0, 0.45):
                    self.assertEqual(selected(column + x, -row + y), [(row, column)], (x, y))
            self.assertEqual(selected(column + 0.4, -row - 0.4, 5), [(row, column)])
        filter.AllHeads = 1
        view.CameraFocalPoint, view.CameraPosition, view.CameraParallelScale = [1.5, -1.5, 0], [1.5, -1.5, 10], 2
        simple.Render(view)
        self.assertEqual(selected(2.45, -1.45), [(1, 2)])

    def test_figure(self):
        figure = patches.one_head(self.path, LAYER, HEAD, patch=(1, 2), arrows="None", dpi=60)
        axes = figure.axes[0]
        self.assertEqual(
            axes.get_title(loc="left"), f"Layer {LAYER}, head {HEAD}: what the patch in row 1, column 2 attends to"
        )
        path = save(figure, atlastest.OUTPUT / "patches.png", dpi=200)
        # Pixels of the corners of patches, since a frame lies on an edge of one.
        steps = (numpy.arange(4) * PATCH + 2.5) / PATCH - 0.5
        places = [(x, y) for y in steps for x in steps]
        found = pixel_colors(figure, axes, path, places).reshape(4, 4, 3)
        colors = patches._HEAT(self.heat(1 + 4 + 2))[..., :3] * 255
        numpy.testing.assert_allclose(found, 0.5 * picture()[2::PATCH, 2::PATCH] + 0.5 * colors, atol=4)

    def test_arrows(self):
        figure = patches.one_head(self.path, LAYER, HEAD, threshold=0, dpi=60)
        drawn = [len(collection.get_paths()) for collection in figure.axes[0].collections]
        strongest = self.weights.argmax(axis=1)
        marks = int(((strongest == 0) | (strongest == numpy.arange(17))).sum())
        expected = [count for count in (1, 17 - marks, marks) if count]  # with the class token's cell
        self.assertEqual(drawn, expected)
        legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        self.assertIn("to the strongest key, 0 or more", legend)

    def test_all_heads(self):
        figure = patches.all_heads(self.path, patch=(0, 0), dpi=60)
        axes = figure.axes[0]
        self.assertEqual(len(axes.images), 8)
        path = save(figure, atlastest.OUTPUT / "heads.png", dpi=200)
        left, right, bottom, top = axes.images[4 * LAYER + HEAD].get_extent()
        steps = (numpy.arange(4) * PATCH + 2.5) / SIZE
        places = [(left + (right - left) * x, top + (bottom - top) * y) for y in steps for x in steps]
        heat = self.weights[1, 1:] / self.weights[1, 1:].max()
        colors = patches._HEAT(heat)[..., :3] * 255
        expected = 0.5 * picture()[2::PATCH, 2::PATCH].reshape(16, 3) + 0.5 * colors
        numpy.testing.assert_allclose(pixel_colors(figure, axes, path, places), expected, atol=4)

    def test_all_heads_in_a_view(self):
        """The same grid as the figure's, with a gap of a patch, and the colors of each head up to its largest weight."""
        filter = simple.PatchAttention(Input=self.recording, Patch=[0, 0], AllHeads=1)
        zoom = 20
        view = atlastest.chart_view(zoom * 20)
        shown = [simple.Show(simple.OutputPort(filter, port), view) for port in range(5)]
        simple.Render(view)
        view.CameraFocalPoint, view.CameraPosition, view.CameraParallelScale = [9.5, -9.5, 0], [9.5, -9.5, 10], 10
        self.assertEqual(list(shown[0].ColorArrayName), ["CELLS", "RelativeHeat"])
        pixels = atlastest.picture(view, "grid")[::-1]
        left, top = 5 * HEAD, 5 * LAYER
        steps = ((numpy.arange(4) + 0.25) * zoom).astype(int)
        found = pixels[numpy.ix_(top * zoom + steps, left * zoom + steps)]
        heat = (self.weights[1, 1:] / self.weights[1, 1:].max()).reshape(4, 4)
        colors = patches._HEAT(heat)[..., :3] * 255
        numpy.testing.assert_allclose(found, colors, atol=4)
        shown[0].SetScalarBarVisibility(view, True)
        title = simple.GetScalarBar(shown[0].LookupTable, view).Title
        self.assertEqual(title, "Share of the head's largest value")
        filter.AllHeads = 0  # the heat of one head has another name
        simple.Render(view)
        self.assertEqual(list(shown[0].ColorArrayName), ["CELLS", "Heat"])
        filter.AllHeads = 1
        simple.Render(view)
        self.assertEqual(list(shown[0].ColorArrayName), ["CELLS", "RelativeHeat"])
        titles = simple.Show(simple.OutputPort(filter, 5), view)
        self.assertEqual(titles.Representation, "Token Labels")
        names = data.fetch(filter, 5).GetPointData().GetAbstractArray("Token")
        expected = ["Layer 0", "Head 0", "Head 1", "Head 2", "Head 3", "Layer 1"]
        self.assertEqual([names.GetValue(i) for i in range(names.GetNumberOfValues())], expected)

    def test_files(self):
        folder = atlastest.OUTPUT / "figures"
        paths = patches.render(self.path, folder, LAYER, "mean", output=patches.Output(width=400), direction="To")
        self.assertEqual([path.name for path in paths], ["vit-patches.png", "vit-patches-heads.png"])
        drawn = patches.one_head(self.path, layer=LAYER, quantity="Rollout", arrows="Above", threshold=0.05, dpi=100)
        path = save(drawn, folder / "rollout.pdf", 100)
        text = subprocess.run(["pdftotext", path, "-"], capture_output=True, check=True, text=True).stdout
        for line in (f"Layer {LAYER}: what the class token attends to", "Rollout", "to the key, 0.05 or more"):
            self.assertIn(line, text)

    def test_properties_know_the_text(self):
        """Of pictures among words, as TestWordsOnPictures has them."""
        recording = atlastest.read_recording(by_hand.write_recording(atlastest.OUTPUT / "pictured.safetensors"))
        filter = simple.PatchAttention(Input=recording)
        filter.UpdatePipelineInformation()
        for name, expected in (("HasWordsInfo", [1]), ("PictureRangeInfo", [-1, 1]), ("TokenRangeInfo", [-1, 38])):
            found = filter.GetProperty(name)
            self.assertEqual([found.GetElement(i) for i in range(len(expected))], expected)

    def test_tour(self):
        folder = atlastest.OUTPUT / "tour"
        with without_layout():
            written = tour.render_all([], folder, width=400, recordings=[self.path])
        names = {path.name for path in written}
        self.assertLessEqual({"vit-patches.png", "vit-patches-heads.png", "vit-weights.png"}, names)
        with unwritten(heads):
            named = heads.render_named(atlastest.RECORDING, folder)
        self.assertFalse({"patches", "patches-heads"} & set(named))

    def test_bad_input(self):

        def draw(**options):
            return lambda: patches.one_head(self.path, **options)

        self.assert_raise(
            (lambda: patches.one_head(atlastest.RECORDING), "expected a recording of images"),
            (lambda: patches.one_head("none.safetensors"), "none.safetensors: no such file", FileNotFoundError),
            (draw(direction="Up"), "direction: expected one of From, To; found 'Up'"),
            (draw(arrows="All"), "arrows: expected one of Strongest, Above, None; found 'All'"),
            (draw(opacity=2), "opacity: expected 0 to 1, found 2"),
            (draw(patch=(4, 0)), "Patch: expected a row from 0 to 3"),
            (draw(layer=7), "layer: expected one of 0 to 1, found 7"),
        )
