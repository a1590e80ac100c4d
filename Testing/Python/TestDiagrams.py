"""The view of flat pictures: it frames what is shown by itself, beside bars and below a title, until one zooms."""

import shutil

import atlastest
import numpy
from atlastest import AtlasTest
from paraview import servermanager, simple

#: The sizes of a large window, of a small one, and of a part of one.
SIZES = ((1600, 1000), (1000, 700), (460, 340))
TITLE = 26  # pixels that the title takes
MARGIN = 3  # pixels at the border of a view, where nothing is
READABLE = 9  # points of the smallest letters of words


def controller():
    return servermanager.vtkSMParaViewPipelineControllerWithRendering()


class Diagrams(AtlasTest):
    def setUp(self):
        super().setUp()
        self.reader = atlastest.read_recording()
        self.reader.UpdatePipeline()

    def show(self, filter_):
        """Shows the outputs of a filter as Apply does, in a view that ParaView makes for the first."""
        filter_.UpdatePipeline()
        made = None
        for port in range(filter_.SMProxy.GetNumberOfOutputPorts()):
            shown = controller().ShowInPreferredView(filter_.SMProxy, port, made)
            made = made or shown
        view = servermanager._getPyProxy(made)
        for display in view.Representations:
            if getattr(display, "ColorArrayName", [None, ""])[1]:
                display.SetScalarBarVisibility(view, True)
        return view

    def pixels(self, view, size):
        view.ViewSize = size
        simple.Render(view)
        return atlastest.picture(view, "diagram")[..., :3]

    def assert_inside(self, view, size):
        """Expects nothing at the border, and as much of the view used as its room for bars allows."""
        pixels = self.pixels(view, size)
        self.assertEqual(pixels.shape[:2], size[::-1])
        drawn = (pixels < 250).any(axis=-1)
        for border in (drawn[:MARGIN], drawn[-MARGIN:], drawn[:, :MARGIN], drawn[:, -MARGIN:]):
            self.assertFalse(border.any(), size)
        rows, columns = numpy.nonzero(drawn)
        used = max(numpy.ptp(rows) / size[1], numpy.ptp(columns) / size[0])
        self.assertGreater(used, 0.75, size)

    def test_each_kind_is_inside_at_any_size(self):
        for name in ("AttentionMap", "AttentionMatrix", "AttentionSentence", "HeadScores"):
            view = self.show(getattr(simple, name)(Input=self.reader))
            self.assertEqual(view.SMProxy.GetXMLName(), "AttentionDiagram", name)
            for size in SIZES:
                with self.subTest(filter=name, size=size):
                    self.assert_inside(view, size)
            simple.Delete(view)

    def test_the_first_picture_has_its_title(self):
        view = simple.CreateView("AttentionDiagram", ViewSize=[400, 400])
        simple.Show(simple.AttentionMap(Input=self.reader), view)
        pixels = atlastest.picture(view, "first")[..., :3]  # without a rendering before
        self.assertTrue((pixels[-TITLE:, :200] < 128).any())

    def test_texts_have_one_size(self):
        """The title of the keys, which is the lowest text, in views of each size."""
        view = self.show(simple.AttentionMap(Input=self.reader))
        for size in SIZES:
            rows = (self.pixels(view, size)[:, : 3 * size[0] // 4] < 200).any(axis=(1, 2))
            begin = rows.argmax()
            height = (~rows[begin:]).argmax()
            self.assertTrue(9 <= height <= 13, (size, height))  # of 12 points, with what hangs below a line

    def test_tokens_are_thinned(self):
        """Of 60 tokens in a view of 340 pixels, those that have room, evenly: with white between two labels."""
        model = atlastest.read_transformer("gpt2")
        run = simple.TransformerRecorder(Input=model, TokenIds=" ".join(str(100 + i) for i in range(60)))
        view = self.show(simple.AttentionMap(Input=run))
        pixels = self.pixels(view, (460, 340))
        frame = (pixels < 100).all(axis=-1)
        left = numpy.nonzero(frame.sum(axis=0) > 200)[0][0]
        labels = (pixels[:-TITLE, left - 20 : left - 4] < 160).any(axis=(1, 2)).astype(int)
        begins = numpy.nonzero(numpy.diff(labels) > 0)[0]
        self.assertGreater(len(begins), 8)
        self.assertLess(len(begins), 30)
        steps = numpy.diff(begins)
        self.assertLessEqual(numpy.ptp(steps), 3)  # digits begin at other rows by a pixel or two

    def test_bars_lie_beside_cells_in_small_views(self):
        """What the bar of a Logit Attribution draws is at the right of all cells."""
        recording = simple.RecordingReader(FileName=str(atlastest.DATA / "recordings" / "language-2.safetensors"))
        model = simple.TransformerReader(FileName=str(atlastest.DATA / "models" / "language-2" / "checkpoint-3000" / "config.json"))
        parts = simple.LogitAttribution(Input=recording, Model=model, Sequence=2)
        parts.UpdatePipeline()
        right = parts.SMProxy.GetDataInformation(1).GetBounds()[1] + 0.5  # half a cell
        for size in ((300, 240), (260, 300), (240, 220)):
            view = self.show(parts)
            self.pixels(view, size)
            renderer = view.GetClientSideObject().GetRenderer()
            renderer.SetWorldPoint(right, 0, 0, 1)
            renderer.WorldToDisplay()
            edge = renderer.GetDisplayPoint()[0]
            view.FitToData = 0
            with_bar = self.pixels(view, size).astype(int)
            for display in view.Representations:
                if getattr(display, "ColorArrayName", [None, ""])[1]:
                    display.SetScalarBarVisibility(view, False)
            drawn = (abs(self.pixels(view, size) - with_bar) > 40).any(axis=(0, 2)).nonzero()[0]
            self.assertGreater(len(drawn), 20, size)
            self.assertGreaterEqual(drawn[0], edge, size)
            simple.Delete(view)

    def test_types_are_those_of_render_views(self):
        for name in ("AttentionMap", "AttentionMatrix", "HeadScores"):
            shown = getattr(simple, name)(Input=self.reader)
            port = simple.OutputPort(shown, 1 if name == "HeadScores" else 0)
            types = [simple.Show(port, simple.CreateView(kind)).Representation for kind in ("RenderView", "AttentionDiagram")]
            self.assertEqual(types, ["Squares", "Squares"], name)

    def test_follows_the_data(self):
        model = atlastest.read_transformer("gpt2")
        run = simple.TransformerRecorder(Input=model, TokenIds="1 2 3 4\n" + " ".join(str(i) for i in range(40)))
        shown = simple.AttentionMap(Input=run)
        view = self.show(shown)
        for sequence in (0, 1, 0):
            shown.Sequence = sequence
            with self.subTest(sequence=sequence):
                self.assert_inside(view, SIZES[1])

    def test_keeps_what_one_has_zoomed_to(self):
        view = self.show(simple.AttentionMap(Input=self.reader))
        simple.Render(view)
        self.assertEqual(view.FitToData, 1)
        scale = view.CameraParallelScale / 3
        view.CameraParallelScale = scale
        for size in SIZES:
            view.ViewSize = size
            simple.Render(view)
            self.assertEqual(view.FitToData, 0)
            self.assertEqual(view.GetActiveCamera().GetParallelScale(), scale)
        self.reload()
        (view,) = simple.GetRenderViews()
        simple.Render(view)
        self.assertEqual(view.FitToData, 0)
        self.assertEqual(view.GetActiveCamera().GetParallelScale(), scale)
        simple.ResetCamera(view)
        self.assertEqual(view.FitToData, 1)
        self.assert_inside(view, SIZES[1])

    def drawn(self, view, scale):
        """A picture of so many times the size of a view."""
        path = str(atlastest.OUTPUT / "larger.png")
        simple.SaveScreenshot(path, view, ImageResolution=[scale * side for side in view.ViewSize])
        return atlastest.read_picture(path)

    def test_points_and_lines_grow_with_letters(self):
        """In a picture of twice the size, or of twice the pixels per inch, they have four times the area, and the view
        frames its data as before."""
        corners = simple.PolyLineSource(Points=[0, 0, 0, 2, 0, 0, 0, 1, 0])
        for kind, look in (("Points", {"PointSize": 10}), ("Wireframe", {"LineWidth": 4})):
            view = simple.CreateView("AttentionDiagram", ViewSize=[400, 300], ShowTitle=0)
            look = {**look, "AmbientColor": [0, 0, 0], "DiffuseColor": [0, 0, 0]}
            simple.Show(corners, view, Representation=kind, **look)
            simple.Render(view)
            areas = [(self.drawn(view, scale) < 128).all(axis=-1).sum() for scale in (1, 2)]
            view.PPI, view.ViewSize = 144, [800, 600]
            areas.append((self.drawn(view, 1) < 128).all(axis=-1).sum())
            self.assertGreater(areas[0], 250, kind)
            for area in areas[1:]:
                self.assertAlmostEqual(area / areas[0], 4, delta=0.4, msg=kind)
            self.assertEqual(view.FitToData, 1)
            actors = view.GetClientSideObject().GetRenderer().GetActors()
            times = []
            for _ in range(2):  # or VTK would build its buffers with each rendering
                simple.Render(view)
                times.append([actor.GetProperty().GetMTime() for actor in actors if actor.GetVisibility()])
            self.assertTrue(times[0])
            self.assertEqual(times[1], times[0])

    def test_points_of_other_data_keep_their_size(self):
        """Also in a view that has shown ours before."""
        view = simple.CreateRenderView(ViewSize=[400, 300], UseColorPaletteForBackground=0, Background=[1, 1, 1])
        ours = simple.AttentionMap(Input=self.reader)
        simple.Show(ours, view)
        simple.Render(view)
        simple.Hide(ours, view)
        corners = simple.PolyLineSource(Points=[0, 0, 0, 2, 0, 0, 0, 1, 0])
        simple.Show(corners, view, Representation="Points", PointSize=10, AmbientColor=[0, 0, 0], DiffuseColor=[0, 0, 0])
        view.OrientationAxesVisibility = 0
        simple.ResetCamera(view)
        areas = []
        for view.PPI in (72, 144):
            areas.append((self.drawn(view, 1) < 128).all(axis=-1).sum())
        self.assertGreater(areas[0], 250)
        self.assertEqual(areas[1], areas[0])

    def test_texts_of_axes_grow_with_letters(self):
        view = simple.CreateRenderView(ViewSize=[600, 400])
        shown = simple.Show(atlastest.torus(atlastest.read_model()), view)
        shown.DataAxesGrid.GridAxesVisibility = 1
        simple.ResetCamera(view)
        heights = []
        for scale, view.PPI in ((1, 72), (2, 72), (1, 144)):
            pictures = []
            for title in ("HH", ""):
                shown.DataAxesGrid.XTitle = title
                pictures.append(self.drawn(view, scale))
            heights.append((numpy.abs(pictures[0] - pictures[1]).max(axis=-1) > 20).any(axis=1).sum())
        self.assertTrue(7 <= heights[0] <= 12, heights)  # of 12 points
        for height in heights[1:]:
            self.assertAlmostEqual(height, 2 * heights[0], delta=2)

    def test_title(self):
        shown = simple.AttentionMap(registrationName="Map", Input=self.reader, Layer=4, Head=11)
        view = self.show(shown)

        def title():
            simple.Render(view)
            return view.SMProxy.GetProperty("ShownTitle").GetElement(0)

        self.assertEqual(
            title(),
            "Map  ·  Layer 4  ·  Head 11  ·  Weights  ·  Sequence 0  ·  gpt2-data-visualization  ·  “Data visualization empowers users to”",
        )
        shown.Head = -1
        shown.Quantity = "Scores"
        self.assertIn("Layer 4  ·  Mean of heads", title())
        self.assertIn("Scores", title())
        view.Title = "Figure 1"
        self.assertEqual(title(), "Figure 1")
        sentence = self.show(simple.AttentionSentence(Input=self.reader, Layer=4, Head=7, Heads=[3, 11]))
        simple.Render(sentence)
        self.assertIn("Layer 4  ·  Heads 3, 11  ·  Weights", sentence.SMProxy.GetProperty("ShownTitle").GetElement(0))
        model = atlastest.data_model("language-2")
        run = simple.TransformerRecorder(Input=model, Prompts="The king", Record=["QueriesAndKeys", "Values", "HeadOutputs", "Residual"])
        one_head = simple.ScoreAttribution(Input=run, Model=model, Layer=1, Head=5)
        one = self.show(one_head)
        simple.Render(one)
        key = int(atlastest.fetch(one_head, 0).GetFieldData().GetArray("Key").GetTuple1(0))
        self.assertEqual(
            one.SMProxy.GetProperty("ShownTitle").GetElement(0),
            "Score Attribution  ·  Layer 1  ·  Head 5  ·  Query 1 “ king”  ·  "
            f"Key {key} “{('The', ' king')[key]}”  ·  Sequence 0  ·  Contribution to score  ·  language-2/checkpoint-0  ·  “The king”",
        )
        parts = simple.LogitAttribution(Input=run, Model=model)
        two = self.show(parts)
        for properties, words in (
            ({"Target": "NextToken"}, "Logit of the next token  ·  All positions"),
            ({"Target": "Token", "TargetToken": " man", "Against": " king"}, "Logit  ·  Target Token “ man”  ·  Against “ king”"),
        ):
            for name, value in properties.items():
                setattr(parts, name, value)
            simple.Render(two)
            self.assertIn(words, two.SMProxy.GetProperty("ShownTitle").GetElement(0))
        view.ShowTitle = 0
        self.assertEqual(title(), "")
        view.Title, view.ShowTitle = "ä" * 20_000, 1
        self.assert_inside(view, SIZES[2])  # cut

    def test_a_title_names_each_thing_once(self):
        """The model by its folder, cut in its middle where it is long; an array that is called as its source; and how much
        is left out."""
        folder = atlastest.OUTPUT / "a-model-with-a-name-that-is-long-beyond-measure"
        shutil.copytree(atlastest.DATA / "models" / "language-1", folder, dirs_exist_ok=True)
        model = simple.TransformerReader(FileName=str(folder / "config.json"))
        name = "a-model-with-a…eyond-measure"
        weights = simple.VirtualWeights(Input=atlastest.read_transformer("gpt2"), FromHead=1)
        composed = simple.HeadComposition(Input=atlastest.data_model("language-2"), Top=5)
        pairs = 5 + int(atlastest.fetch(composed, 0).GetFieldData().GetArray("Lines Left Out").GetTuple1(0))
        for shown, title in (
            (simple.HeadSpectra(Input=model), f"Head Spectra  ·  All layers  ·  All heads  ·  OV  ·  Copying Score  ·  {name}"),
            (weights, "Virtual Weights  ·  K-composition  ·  Heads 0.1 to 1.0  ·  gpt2"),
            (composed, f"Head Composition  ·  K-composition  ·  5 of {pairs} pairs  ·  language-2/checkpoint-0"),
        ):
            view = self.show(shown)
            simple.Render(view)
            self.assertEqual(view.SMProxy.GetProperty("ShownTitle").GetElement(0), title)

    def test_explanations_are_below_the_title(self):
        """Below the title, in as many lines as the view needs, which lie above the data; not with a title of the user."""
        view = self.show(simple.HeadSpectra(Input=atlastest.read_transformer("gpt2")))
        line = 16  # pixels
        counts = []
        for size in SIZES:
            self.assert_inside(view, size)
            rows = (self.pixels(view, size)[::-1, : size[0] // 4] < 200).any(axis=(1, 2))[TITLE:]
            counts.append(next(i for i in range(9) if not rows[i * line : (i + 1) * line].any()))
        explanation = view.SMProxy.GetProperty("ShownExplanation")
        self.assertIn("eigenvalues", explanation.GetElement(0))
        self.assertEqual((counts[0], counts == sorted(counts), counts[2] > 1), (1, True, True), counts)
        view.Title = "mine"
        simple.Render(view)
        self.assertEqual(explanation.GetElement(0), "")

    def test_white_squares_have_lines(self):
        """Scores of 0 are as white as the ground."""
        view = self.show(simple.HeadScores(Input=self.reader))
        squares = next(shown for shown in view.Representations if getattr(shown, "Representation", "") == "Squares")
        pictures = []
        for squares.TokenLabels in (1, 0):
            pictures.append(self.pixels(view, SIZES[1]))
        changed = (pictures[0] != pictures[1]).any(axis=-1).sum(axis=0)
        lines = (changed > 0.5 * changed.max()).astype(int)
        self.assertEqual((numpy.diff(lines) > 0).sum(), 13)  # around 12 heads

    def actors(self, view):
        """Those of the texts over the scene of a view, as it was last rendered."""
        shown = view.GetClientSideObject()
        actors = shown.GetRenderer(shown.NON_COMPOSITED_RENDERER).GetActors2D()
        actors = [actors.GetItemAsObject(i) for i in range(actors.GetNumberOfItems())]
        ours = [actor for actor in actors if actor.IsA("vtkTextActor") and not actor.GetPickable()]  # not ParaView's own
        return [actor for actor in ours if actor.GetVisibility()]

    def texts(self, view):
        return [actor.GetInput() for actor in self.actors(view)]

    def sizes(self, view):
        """The sizes of letters of all texts, in points."""
        return {actor.GetTextProperty().GetFontSize() for actor in self.actors(view)}

    def test_contexts_are_legible_in_any_view(self):
        """Each text in a row of its own with its query and key whole, whatever else is cut; without gaps; and how many there
        is room for."""
        corpus = simple.CorpusReader(FileName=str(atlastest.DATA / "corpus" / "language-2.safetensors"))
        contexts = simple.TopContexts(Input=corpus, Layer=1, Head=5)
        view = self.show(contexts)
        table = atlastest.columns(contexts)
        legend = next(shown for shown in view.Representations if "ScalarBarThickness" in shown.ListProperties())
        self.assertEqual(list(legend.LookupTable.Annotations)[1::2], ["query", "key"])
        for size in (*SIZES, (400, 340), (400, 180)):
            with self.subTest(size=size):
                self.assert_inside(view, size)
                self.assertGreaterEqual(min(self.sizes(view)), READABLE)
                renderer = view.GetClientSideObject().GetRenderer(view.GetClientSideObject().NON_COMPOSITED_RENDERER)
                rows = {}
                for actor in self.actors(view):
                    if actor.GetTextProperty().GetVerticalJustificationAsString() == "Centered":
                        x, y = actor.GetPosition()
                        box = [0.0] * 4
                        actor.GetBoundingBox(renderer, box)
                        rows.setdefault(y, []).append((x, x + box[1] - box[0], actor))
                found = [sorted(row) for _, row in sorted(rows.items(), reverse=True)]
                for rank, row in enumerate(found):
                    self.assertTrue(row[0][2].GetInput().startswith(f"{rank + 1}.  "))
                    for (_, end, _), (begin, _, _) in zip(row[1:], row[2:]):
                        self.assertLess(abs(begin - end), 4)
                    marked = [a.GetInput().replace("\u00b7", " ") for _, _, a in row if a.GetTextProperty().GetBackgroundOpacity()]
                    self.assertEqual(sorted(marked), sorted([table["Query Token"][rank], table["Key Token"][rank]]))
                notes = [text for text in self.texts(view) if text.startswith("Room for")]
                self.assertEqual(notes, [] if len(found) == 10 else [f"Room for {len(found)} of 10 texts"])
                self.assertEqual(len(found) == 10, size[1] > 200, len(found))
                self.assertEqual(any("\u2026" in a.GetInput() for row in found for _, _, a in row[1:]), True)

    def test_sentences_are_legible_in_any_view(self):
        """Of a long text every so many words, the same on both sides, and it says so; a few words all."""
        for words in (8, 70):
            run = simple.TransformerRecorder(
                Input=atlastest.data_model("language-2"), Prompts=" ".join(["And the king"] * (words // 3 + 1))
            )
            sentence = simple.AttentionSentence(Input=run)
            view = self.show(sentence)
            count = atlastest.fetch(sentence, port=1).GetNumberOfPoints() // 2
            for size in (*SIZES, (400, 340)):
                with self.subTest(words=words, size=size):
                    self.assert_inside(view, size)
                    self.assertGreaterEqual(min(self.sizes(view)), READABLE)
                    named = sum(actor.GetTextProperty().GetVerticalJustificationAsString() == "Centered" for actor in self.actors(view))
                    notes = [text for text in self.texts(view) if text.startswith("Room for")]
                    every = int(notes[0].split()[-1]) if notes else 1
                    self.assertEqual(named, 2 * -(-count // every))
                    self.assertEqual(bool(notes), words == 70 and size[1] < 800, (named, every))

    def test_signs_are_explained_below_the_title(self):
        """In as many lines as it takes, above the data; not without a title."""
        view = self.show(simple.AttentionSentence(Input=self.reader, Layer=4, Head=11))
        for size, most in ((SIZES[0], 1), (SIZES[2], 4)):
            with self.subTest(size=size):
                self.assert_inside(view, size)
                signs = view.SMProxy.GetProperty("ShownExplanation").GetElement(0)
                lines = sorted((text for text in self.texts(view) if " " in text and text in signs), key=signs.find)
                self.assertEqual(" ".join(lines), signs)
                count = len(lines)
                self.assertLessEqual(count, most)
                self.assertIn("attention weight, full at 1.", signs)
                self.assertIn("Bars: the sum that each key receives", signs)
                # White between the lines and what is below them.
                pixels = self.pixels(view, size)
                title = view.SMProxy.GetProperty("ShownTitle").GetElement(0)
                more = sum(text.rstrip("\u2026") in title for text in self.texts(view) if "  \u00b7  " in text) - 1
                begin = TITLE + 18 * more + 16 * count
                below = pixels[-begin - 4 : -begin]
                self.assertTrue((below[:, : size[0] * 3 // 4] > 200).all())
        view.ShowTitle = 0
        simple.Render(view)
        self.assertNotIn(signs, self.texts(view))

    def test_panels_name_tokens_at_any_size(self):
        """Those that have room, with letters that can be read; else a note says so."""
        tokens = "And Moses spake unto the king of Egypt, and Aaron spake unto the king of Egypt."
        run = simple.TransformerRecorder(Input=atlastest.data_model("language-2"), Prompts=tokens)
        view = self.show(simple.AttentionMatrix(Input=run))
        for size in (*SIZES, (800, 500)):
            with self.subTest(size=size):
                self.assert_inside(view, size)
                shown = self.texts(view)
                self.assertGreaterEqual(min(self.sizes(view)), READABLE, shown)
                # Of the rows of each layer and the columns of each head, the same.
                has_room = size[0] >= 800
                self.assertEqual("No room for words" in shown, not has_room, shown)
                for word in ("And", "\u00b7unto"):
                    self.assertEqual(shown.count(word) >= 2 + 8, has_room, shown)
                    self.assertEqual(shown.count(word) % (2 + 8), 0, shown)
                # All heads have their number, behind one word where there is little room.
                is_short = size[0] < 500
                heads = [str(head) if is_short and head else f"Head {head}" for head in range(8)]
                self.assertEqual(sorted(text for text in shown if text in heads), sorted(heads), shown)

    def test_scatters_are_legible_in_any_view(self):
        corpus = simple.CorpusReader(FileName=str(atlastest.DATA / "corpus" / "language-2.safetensors"))
        view = self.show(simple.HeadScatter(Input=corpus))
        for size in SIZES:
            self.pixels(view, size)
            self.assertGreaterEqual(min(self.sizes(view)), READABLE, size)
            self.assertLessEqual({"Previous Token (weight)", "Prefix Matching (weight)"}, set(self.texts(view)), size)

    def test_labels_of_panels_have_no_specks(self):
        view = simple.CreateView("AttentionDiagram")
        shown = simple.Show(simple.OutputPort(simple.HeadScores(Input=self.reader), 2), view)
        shown.MaximumLabels, view.ShowTitle = 0, 0
        self.assertTrue((self.pixels(view, SIZES[1]) == 255).all())

    def test_begins_white_and_flat(self):
        view = simple.CreateView("AttentionDiagram")
        simple.Render(view)
        shown = view.GetClientSideObject()
        self.assertEqual(list(shown.GetRenderer().GetBackground()), [1, 1, 1])
        self.assertEqual(shown.GetInteractionMode(), shown.INTERACTION_MODE_2D)
        self.assertEqual(view.GetActiveCamera().GetParallelProjection(), 1)
        self.assertEqual(view.OrientationAxesVisibility, 0)
