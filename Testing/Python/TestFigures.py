"""Figures for print: what they show is right, text is text in an embedded font, and users can change them.

Expected values are computed by NumPy from the model's file, or are the oracles'.
"""

import re
import unittest.mock

import atlastest
import matplotlib
import numpy
from atlastest import AtlasTest
from attentionatlas import SmallModel, figures
from attentionatlas._internal import learning, style
from attentionatlas.output import save
from figuretest import Expected, Pdf, apart_from_dots, grid, overlaps, pixel_colors, poppler, texts_of, without_layout
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

#: Words of each figure, and the number of images that its maps need.
PRINTED = {
    "class_map": (["Predicted next token (accuracy 100 %)", "\u03b8\u2081, token 1", "\u2212\u03c0/2"], 1),
    "attention": (["Attention of token 2 to token 1", "Hardmax", "\u03b8\u2082, token 2", "0.8"], 6),
    "harmonics": (["Harmonics of each head's score", "Coefficient", "sin(\u03b8\u2081\u2212\u03b8\u2082)"], 0),
    "simplex": (["Accuracy of mixed heads", "Head 1", "Pair (0, 0)", "Accuracy"], 0),
    "layer_norm": (["Layer normalization puts words on a circle", "\u2212\u03c0/2", "4"], 0),
    "unembedding_sphere": (["Unembedding on the sphere", "The other side", "Next token"], 2),
}


class Figures(AtlasTest):
    def setUp(self):
        super().setUp()
        patch = unittest.mock.patch.object(learning, "STEPS", 100)
        patch.start()
        self.addCleanup(patch.stop)

    def saved(self, figure, name, **options):
        return save(figure, atlastest.OUTPUT / name, **options)

    def test_colors_of_the_class_map(self):
        figure = figures.class_map(atlastest.TRAINED, dpi=100)
        axes, theta = figure.axes[0], grid()
        path = self.saved(figure, "class-map.png", dpi=100)
        theta = theta[apart_from_dots(axes, theta)]
        classes, probability = Expected(atlastest.TRAINED, theta).classes()
        sure = probability > 0.99
        self.assertGreater(sure.sum(), 100)
        found = pixel_colors(figure, axes, path, theta[sure])
        expected = numpy.array(atlastest.PALETTE)[classes[sure]]
        self.assertLess(numpy.abs(found - expected).max(), 12)
        # The other way round, the angles would give other classes.
        swapped, _ = Expected(atlastest.TRAINED, theta[sure][:, ::-1]).classes()
        self.assertGreater((swapped != classes[sure]).mean(), 0.3)

    def test_expected_classes_are_those_of_the_oracle(self):
        values, path = self.oracle()
        expected = Expected(path, values["theta"])
        classes, probability = expected.classes()
        numpy.testing.assert_array_equal(classes, values["embedding_position.class"])
        numpy.testing.assert_allclose(probability, values["embedding_position.probability"], rtol=1e-6)
        numpy.testing.assert_allclose(expected.attention(1), values["attention"][:, 1], atol=1e-9)

    @without_layout()
    def test_dots_of_the_class_map(self):
        axes = figures.class_map(atlastest.TRAINED, dpi=60).axes[0]
        tensors, _ = atlastest.read_safetensors(atlastest.TRAINED)
        words = tensors["word_embedding"] - tensors["word_embedding"].mean(axis=1, keepdims=True)
        angles = numpy.arctan2(words @ [-1, 2, -1] / 6**0.5, words @ [1, 0, -1] / 2**0.5)
        dots = axes.collections[-1]
        found = {tuple(numpy.round(place, 3)): color for place, color in zip(dots.get_offsets(), dots.get_facecolors())}
        for first, row in enumerate(tensors["next_token"]):
            for second, target in enumerate(row):
                place = tuple(numpy.round([angles[first], angles[second]], 3))
                numpy.testing.assert_allclose(255 * found[place][:3], atlastest.PALETTE[target], atol=0.5)

    def test_legend_has_the_color_of_each_class(self):
        figure = figures.class_map(atlastest.TRAINED, dpi=60)
        path = self.saved(figure, "legend.png", dpi=100)
        found = pixel_colors(figure, figure.axes[1], path, [(0.5, k) for k in range(5)])
        numpy.testing.assert_allclose(found, atlastest.PALETTE, atol=3)

    def test_attention(self):
        figure = figures.attention(atlastest.TRAINED, dpi=150)
        path, theta = self.saved(figure, "attention.png", dpi=150), grid()
        expected = Expected(atlastest.TRAINED, theta)
        for head in range(3):
            score, weight = expected.score(head), expected.attention(head)
            away = numpy.abs(score) > 1.5  # from the decision boundary, which is drawn over the map
            for row, values in enumerate((weight, score > 0)):
                grey = pixel_colors(figure, figure.axes[3 * row + head], path, theta[away]).mean(axis=1)
                difference = numpy.abs(255 * (1 - values[away]) - grey)
                self.assertLess(numpy.median(difference), 4)
                self.assertLess(difference.max(), 70)  # of a pixel beside, where it is steep
            (line,) = figure.axes[head].collections
            vertices = numpy.concatenate([p.vertices for p in line.get_paths()])
            at_boundary = Expected(atlastest.TRAINED, vertices).score(head)
            self.assertLess(numpy.abs(at_boundary).max(), 0.01 * numpy.abs(score).max())

    @without_layout()
    def test_harmonics_are_those_of_the_oracle(self):
        values, _ = self.oracle()
        figure = figures.harmonics(atlastest.TRAINED)
        (axes,) = figure.axes
        for bars, expected in zip(axes.containers, values["harmonics"]):
            found = [bar.get_height() for bar in bars]
            numpy.testing.assert_allclose(found, expected, atol=1e-4)

    def test_simplex_is_that_of_the_oracle(self):
        values, _ = self.oracle()
        figure = figures.simplex(atlastest.TRAINED)
        path = self.saved(figure, "simplex.png", dpi=300)
        corners = numpy.array([[1, 0], [0.5, 3**0.5 / 2], [0, 0]])  # of heads 0, 1, 2
        places = values["simplex.barycentric"] @ corners
        away = numpy.linalg.norm(places - places.mean(axis=0), axis=1) > 0.1  # from the cross
        found = pixel_colors(figure, figure.axes[0], path, places[away])
        expected = 255 * style.ORANGES(values["simplex.accuracy"][away])[:, :3]
        near = numpy.abs(found - expected).max(axis=1) < 6
        self.assertGreater(near.mean(), 0.9)  # others lie at an edge

    @atlastest.draws_surfaces
    def test_pdf(self):
        folder = atlastest.OUTPUT
        for name, (words, images) in PRINTED.items():
            path = save(getattr(figures, name)(atlastest.TRAINED, dpi=150), folder / f"{name}.pdf", dpi=150)
            pdf = Pdf(path)
            self.assertEqual(pdf.fonts, {b"DejaVuSans"}, name)
            self.assertEqual((pdf.embedded, pdf.type3), (1, 0), name)
            self.assertEqual(pdf.images, images, name)
            self.assertAlmostEqual(pdf.size_mm[0], 180, delta=0.1)
            self.assertLess(pdf.size_mm[1], 240)
            self.check_with_poppler(path, words, images)

    def check_with_poppler(self, path, words, images):
        text = poppler("pdftotext", path, "-")
        if text is None:
            return
        for word in words:
            self.assertIn(word, text, path)
        for line in poppler("pdffonts", path).splitlines()[2:]:
            self.assertRegex(line, r"TrueType +\S+ +yes yes yes ", path)
        self.assertEqual(len(poppler("pdfimages", "-list", path).splitlines()) - 2, images, path)

    def test_images_have_the_resolution_of_print(self):
        figure = figures.class_map(atlastest.TRAINED, width_mm=89)
        axes = figure.axes[0]
        (image,) = axes.images
        figure.draw_without_rendering()
        inches = axes.get_window_extent().width / figure.dpi
        self.assertGreaterEqual(image.get_array().shape[1] / inches, 600)

    def test_svg(self):
        path = self.saved(figures.harmonics(atlastest.TRAINED), "harmonics.svg")
        text = path.read_text(encoding="utf-8")
        self.assertRegex(text, r">cos\(\u03b8\u2081\+\u03b8\u2082\)</text>")
        self.assertRegex(text, r"@font-face \{font-family: 'DejaVu Sans'; src: url\(data:font/woff;base64,")
        self.assertIn("'DejaVu Sans', sans-serif", text)
        self.assertNotIn("<image", text)
        width = float(re.search(r'width="([\d.]+)pt"', text)[1])
        self.assertAlmostEqual(width * 25.4 / 72, 180, delta=0.1)
        self.assertIn("<image", self.saved(figures.class_map(atlastest.TRAINED, dpi=60), "map.svg").read_text())

    def test_text_has_its_place(self):
        """No word leaves the page or meets another, in a column and with large letters; on a page: TestTour."""
        _, many = self.oracle("random-n12-h6-d2")
        names = ["class_map", "attention", "mixes", "outputs", "heads_alone", "boundary_motion", "harmonics",
                 "simplex", "simplex_targets", "layer_norm", "training_curves", "training_simplexes"]
        with SmallModel.opened(atlastest.TRAINED) as model:
            for options in ({"width_mm": 89}, {"font_size": 9}):
                for name in names:
                    figure = getattr(figures, name)(model, dpi=60, **options)
                    self.assertEqual(overlaps(figure), [], f"{name} {options}")
        with SmallModel.opened(many) as model:
            for name in ("class_map", "heads_alone", "harmonics", "outputs"):
                self.assertEqual(overlaps(getattr(figures, name)(model, dpi=60)), [], name)

    @atlastest.draws_surfaces
    @without_layout()
    def test_every_function_returns_a_figure(self):
        drawn = [name for name in figures.__all__ if name not in ("FIGURES", "save") and "movie" not in name]
        self.assertGreater(len(drawn), 12)
        with SmallModel.opened(atlastest.TRAINED) as model:
            for name in drawn:
                figure = getattr(figures, name)(model, width_mm=120, dpi=40)
                self.assertIsInstance(figure, Figure, name)
                self.assertAlmostEqual(figure.get_figwidth() * 25.4, 120, msg=name)

    @atlastest.draws_surfaces
    def test_dark(self):
        figure = figures.unembedding_sphere(atlastest.TRAINED, dark=True, dpi=60)
        path = self.saved(figure, "dark.png", dpi=60)
        pixels = atlastest.read_picture(path)
        self.assertLess(pixels[[0, 0, -1, -1], [0, -1, 0, -1]].max(), 60, "a dark page")
        left, bottom = figure.axes[0].transAxes.transform((0.01, 0.01)).astype(int)
        self.assertLess(pixels[bottom, left].max(), 60, "and dark behind what lies in space")
        figure = figures.harmonics(atlastest.TRAINED, dark=True)
        for label in (figure.axes[0].yaxis.label, figure._suptitle):
            self.assertGreater(min(to_rgb(label.get_color())), 0.8)

    @without_layout()
    def test_settings_of_the_user(self):
        own = {"axes.titlesize": 15, "font.size": 5, "axes.facecolor": "#ffffee"}
        with matplotlib.rc_context(own):
            axes = figures.class_map(atlastest.TRAINED, dpi=60).axes[0]
            larger = figures.class_map(atlastest.TRAINED, dpi=60, font_size=9).axes[0]
        self.assertEqual((axes._left_title.get_fontsize(), axes.xaxis.label.get_fontsize()), (15, 5))
        self.assertEqual(axes.get_facecolor()[:3], to_rgb("#ffffee"))
        self.assertEqual(larger.xaxis.label.get_fontsize(), 9)
        plain = figures.class_map(atlastest.TRAINED, dpi=60).axes[0]
        self.assertEqual((plain._left_title.get_fontsize(), plain.xaxis.label.get_fontsize()), (7, 7))

    def test_says_what_is_wrong(self):
        absent = atlastest.OUTPUT / "absent.safetensors"
        self.assert_raise((lambda: figures.class_map(absent), "absent.safetensors: no such file", FileNotFoundError))
        for name, arguments, words in (
            ("mixes", {"head": 3}, "head: expected 0 to 2, found 3"),
            ("attention", {"heads": [0, -4]}, "head: expected 0 to 2, found -4"),
            ("boundary_motion", {"head": 7}, "head: expected 0 to 2, found 7"),
            ("simplex_targets", {"first": 5}, "target: expected 0 to 4, found 5"),
            ("class_map", {"width_mm": 0}, "width-mm: expected 30 to 1000 millimetres, found 0"),
            ("class_map", {"font_size": 1}, "font-size: expected 3 to 72 points, found 1"),
        ):
            self.assert_raise((lambda: getattr(figures, name)(atlastest.TRAINED, **arguments), words))

    def test_panels_of_one_size(self):
        """Panels of a grid are as large as the page's width allows: equal squares on lines, with color bars beside them."""
        figure = figures.heads_alone(atlastest.TRAINED, dpi=100)
        width, height = figure.get_size_inches() * 72
        boxes = numpy.array([axes.get_position().bounds for axes in figure.axes]) * [width, height, width, height]
        panels, (bar,) = boxes[:4], boxes[4:]
        numpy.testing.assert_allclose(panels[:, 2:], panels[0, 2], rtol=1e-6)
        numpy.testing.assert_allclose(panels[:, 1], panels[0, 1], rtol=1e-6)
        numpy.testing.assert_allclose(numpy.diff(panels[:, 0]), panels[1, 0] - panels[0, 0], rtol=1e-6)
        self.assertGreater(bar[0], panels[-1, 0] + panels[-1, 2])
        numpy.testing.assert_allclose(bar[[1, 3]], panels[0, [1, 3]], rtol=1e-6)
        self.assertAlmostEqual(bar[3] / bar[2], 25, places=4)
        # From border to border, but for a millimetre.
        figure.draw_without_rendering()
        texts = [text.get_window_extent() for axes in figure.axes for text in texts_of(axes) if text.get_visible() and text.get_text()]
        scale = 72 / figure.dpi
        self.assertLess(scale * min(box.x0 for box in texts), 4)
        self.assertLess(width - scale * max(box.x1 for box in texts), 4)
        self.assertLess(scale * min(box.y0 for box in texts), 4)

    def test_other_axes_find_their_place(self):
        """What a user adds to a figure is laid out, too."""
        figure = figures.harmonics(atlastest.TRAINED, dpi=60)
        (axes,) = figure.axes
        figure.colorbar(matplotlib.cm.ScalarMappable(), ax=axes, location="bottom", label="Added")
        self.assertEqual(overlaps(figure), [])
        first, added = (each.get_tightbbox() for each in figure.axes)
        self.assertLess(added.y1, first.y0 + 1)

    def test_each_file_is_drawn_once(self):
        """Panels are measured once, drawn once, and give the same bytes again."""
        drawn, measured = [], []
        draw, measure = Figure.draw, Axes.get_tightbbox
        count = {"draw": lambda *a: (drawn.append(1), draw(*a))[1], "get_tightbbox": lambda *a, **o: (measured.append(1), measure(*a, **o))[1]}
        with (unittest.mock.patch.object(Figure, "draw", count["draw"]),
              unittest.mock.patch.object(Axes, "get_tightbbox", count["get_tightbbox"])):
            figure = figures.attention(atlastest.TRAINED, dpi=100)
            for number, format in enumerate(("png", "pdf", "svg"), 1):
                texts = [self.saved(figure, f"{name}.{format}", dpi=100).read_bytes() for name in ("first", "second")]
                self.assertEqual(len(drawn), 2 * number, format)
                self.assertTrue(texts[0] == texts[1], format)
        self.assertEqual(len(measured), len(figure.axes))
        again = self.saved(figures.attention(atlastest.TRAINED, dpi=100), "third.svg", dpi=100).read_bytes()
        self.assertTrue(again == texts[0])

    def test_failed_file(self):
        figure = figures.harmonics(atlastest.TRAINED)
        path = atlastest.OUTPUT / "failed.pdf"
        path.write_text("before")
        with unittest.mock.patch.object(Figure, "draw", side_effect=OSError("disk full")):
            with self.assertRaisesRegex(OSError, "disk full"):
                save(figure, path)
        self.assertEqual(path.read_text(), "before")
        self.assertEqual(list(atlastest.OUTPUT.glob("failed.*part*")), [])
