"""What a view shows with our data at first, without a click: color bars, legends, axes and words."""

import atlastest
import numpy
from atlastest import AtlasTest
from paraview import simple
from paraview.modules.vtkRemotingSettings import vtkPVGeneralSettings

SETTINGS = vtkPVGeneralSettings.GetInstance()


def bars(view):
    """The visible color bars of a view."""
    found = [shown for shown in view.Representations if "ScalarBarThickness" in shown.ListProperties()]
    return [bar for bar in found if bar.Visibility]


def titles(view):
    return sorted(bar.Title for bar in bars(view))


class FirstShow(AtlasTest):
    def setUp(self):
        super().setUp()
        SETTINGS.SetScalarBarMode(SETTINGS.AUTOMATICALLY_HIDE_SCALAR_BARS)
        self.recording = atlastest.read_recording()
        self.model = atlastest.read_model()

    def view(self, **properties):
        return simple.CreateRenderView(ViewSize=[600, 400], **properties)


class Bars(FirstShow):
    def test_a_quantity_has_a_bar_with_title_and_short_numbers(self):
        view = self.view()
        simple.Show(simple.AttentionMap(Input=self.recording), view)
        (bar,) = bars(view)
        self.assertEqual((bar.Title, bar.ComponentTitle), ("Attention weight", ""))
        self.assertEqual(bar.RangeLabelFormat, bar.LabelFormat)

    def test_whole_numbers_have_no_point(self):
        model = atlastest.read_transformer("gpt2")
        run = simple.TransformerRecorder(Input=model, TokenIds=" ".join("5" * 60))
        points = simple.HeadEmbedding(Input=run, Method="PCA")
        view = self.view()
        shown = simple.Show(points, view)
        simple.ColorBy(shown, ("POINTS", "Position"))
        shown.SetScalarBarVisibility(view, True)
        bar = simple.GetScalarBar(shown.LookupTable, view)
        ends = [(bar.RangeLabelFormat % end).rstrip() for end in (0, 59, 119, 1234)]  # spaces hold the title off
        self.assertEqual(ends, ["0", "59", "119", "1234"])

    def test_a_bar_of_heat_says_which_quantity(self):
        """In the words of other filters, whichever was shown first; a title of the user stays."""
        mesh = simple.Calculator(
            Input=simple.Wavelet(WholeExtent=[0, 3, 0, 2, 0, 1]), Function="floor(coordsX)", ResultArrayName="Number"
        )
        run = simple.TransformerRecorder(Input=atlastest.read_transformer("gpt2"), TokenIds="5 6 7 8")
        image = atlastest.read_recording(atlastest.RECORDING.parent / "words-and-pictures.safetensors")
        bound = simple.BindTokens(Input=mesh, Recording=run, TokenArray="Number")
        norm, rollout = ("NormWeighted", "Norm of weight x value"), ("Rollout", "Rollout")
        for source, weights in (
            (simple.SpatialAttention(Input=bound, Recording=run), ("Weights", "Attention of the query")),
            (simple.PatchAttention(Input=image), ("Weights", "Attention weight")),
        ):
            view = self.view()
            for quantity, title in (rollout, weights, *([norm, rollout] if weights[1].endswith("query") else [])):
                source.Quantity = quantity
                simple.Show(source, view)
                simple.Render(view)
                self.assertEqual(titles(view), [title])
            (bar,) = bars(view)
            bar.Title = "mine"
            source.Quantity = "Rollout" if title != "Rollout" else "Weights"
            simple.Render(view)
            self.assertEqual(titles(view), ["mine"])

    def test_categories_have_a_legend_in_words(self):
        view = self.view()
        words = simple.AttentionSentence(Input=self.recording, Layer=4, Heads=[3, 11])
        simple.Show(words, view)
        (bar,) = bars(view)
        self.assertEqual(list(bar.LookupTable.Annotations)[1::2], ["head 3", "head 11"])

    def test_colors_that_nothing_explains_have_none(self):
        view = self.view()
        recording = atlastest.read_recording(atlastest.RECORDING.parent / "words-and-pictures.safetensors")
        shown = simple.Show(simple.OutputPort(simple.PatchAttention(Input=recording), 3), view)
        self.assertEqual(shown.ColorArrayName[1], "PictureColor")
        self.assertEqual(bars(view), [])

    def test_colors_that_add_up_say_what_their_channels_are(self):
        view = self.view()
        torus = atlastest.torus(self.model, Quantities=["Output"])
        simple.Show(simple.SummableColors(Input=torus), view)
        (bar,) = bars(view)
        self.assertEqual(bar.Title, "Output: a channel per component")
        output = atlastest.point_arrays(torus)["Output"]
        texts = list(bar.LookupTable.Annotations)[1::2]
        self.assertEqual([text.split()[0] for text in texts], ["all", "first", "second", "third", "all"])
        for text in texts[:4]:
            self.assertAlmostEqual(float(text.split()[1]), output.max(), delta=0.005 * output.max())

    def test_tokens_of_places_and_residues_have_a_bar(self):
        view = self.view()
        mesh = simple.Wavelet(WholeExtent=[0, 3, 0, 2, 0, 1])
        numbers = simple.Calculator(Input=mesh, Function="floor(coordsX)", ResultArrayName="Number")
        bound = simple.BindTokens(Input=numbers, Recording=self.recording, TokenArray="Number")
        shown = simple.Show(bound, view)
        self.assertEqual(shown.ColorArrayName[1], "Bound Token")
        self.assertEqual(titles(view), ["Bound token (its position)"])
        simple.Render(view)
        points = list(shown.LookupTable.RGBPoints)
        self.assertEqual((points[0], points[-4]), (0, 3))
        view = self.view()
        atoms = simple.MmcifReader(FileName=str(atlastest.DATA / "models" / "protein" / "chain.pdb"))
        simple.Show(atoms, view)
        self.assertEqual(titles(view), ["Residue (place in its chain)"])

    def test_a_legend_goes_and_comes_with_its_colors(self):
        """The marks of patches are there for one head, and not for all of them. A word is no patch that was chosen: the
        gray arrows of other patches alone need no legend."""
        recording = atlastest.read_recording(atlastest.RECORDING.parent / "words-and-pictures.safetensors")
        patches = simple.PatchAttention(Input=recording)

        def shown(view, all_heads, token=2):
            patches.AllHeads, patches.Token = all_heads, token
            simple.Render(view)
            return [list(bar.LookupTable.Annotations)[1::2] for bar in bars(view)]

        view = self.view()
        legend = ["strongest key", "chosen patch", "strongest keys of other patches"]
        displays = [simple.Show(simple.OutputPort(patches, port), view) for port in (1, 2, 4)]
        for all_heads in (0, 1, 0, 1, 0):
            self.assertEqual(shown(view, all_heads), [] if all_heads else [legend])
        self.assertEqual([shown(view, 0, token) for token in (-1, 2)], [[], [legend]])
        displays[0].SetScalarBarVisibility(view, False)
        for all_heads in (1, 0):
            self.assertEqual(shown(view, all_heads), [], "hidden by the user")

    def test_the_title_of_a_legend_follows_the_data(self):
        """Of heads of another layer; also of a state. A title of the user stays."""
        words = simple.AttentionSentence(registrationName="Words", Input=self.recording, Layer=4, Heads=[3, 11])
        view = self.view()
        simple.Show(words, view)
        for is_state in (False, True):
            if is_state:
                self.reload()
                (view,) = simple.GetViews()
                words = simple.FindSource("Words")
            for words.Layer in (5, 4):
                simple.Render(view)
                self.assertEqual(titles(view), [f"Layer {words.Layer}"])
        (bar,) = bars(view)
        bar.Title = "mine"
        words.Layer = 5
        simple.Render(view)
        self.assertEqual(titles(view), ["mine"])

    def test_what_the_user_changes_in_a_legend_stays(self):
        """When entries go and come, also of a state; other entries have the colors of the data, and a line each."""
        words = simple.AttentionSentence(registrationName="Words", Input=self.recording, Layer=4, Heads=[3, 11])
        view = self.view()
        simple.Show(words, view)
        simple.Render(view)
        (bar,) = bars(view)
        bar.Title = "mine"
        table = bar.LookupTable
        table.Annotations = [*table.Annotations[:1], "induction", *table.Annotations[2:]]
        table.IndexedColors = [1, 0, 1, *table.IndexedColors[3:]]
        for is_state in (False, True):
            if is_state:
                self.reload()
                (view,) = simple.GetViews()
                words = simple.FindSource("Words")
                simple.Render(view)
            for heads in ([3, 7], [7, 11], [7, 11, 3], [3, 11]):
                words.Heads = heads
                simple.Render(view)
                (bar,) = bars(view)
                self.assertEqual(bar.Title, "mine")
                texts = ["induction" if head == 3 else f"head {head}" for head in heads]
                self.assertEqual(list(bar.LookupTable.Annotations)[1::2], texts)
                colors = numpy.reshape(bar.LookupTable.IndexedColors, (-1, 3))
                cells = atlastest.arrays_of(atlastest.fetch(words), "CellData")
                drawn = {tuple(color[:3]) for color in cells["HeadColor"]}
                for head, color in zip(heads, colors):
                    if head == 3:
                        self.assertEqual(tuple(color), (1, 0, 1))
                    else:
                        self.assertIn(tuple(numpy.rint(255 * color)), drawn)
                self.assertAlmostEqual(bar.ScalarBarLength, max(0.055 * len(heads), 0.11))
            bar.ScalarBarLength = 0.5
            words.Heads = [3, 7, 11]
            simple.Render(view)
            self.assertEqual(bar.ScalarBarLength, 0.5)
            words.Heads = [3, 11]
            simple.Render(view)
            bar.ScalarBarLength = 0.11

    def test_a_legend_with_a_color_like_the_background_lies_on_gray(self):
        """Of the view or of the palette."""
        words = simple.AttentionSentence(Input=self.recording, Layer=4, Heads=[3, 11])
        color = [channel / 255 for channel in atlastest.arrays_of(atlastest.fetch(words), "CellData")["HeadColor"][0][:3]]
        for back, isOn in ((color, 1), ([0, 0, 0], 0)):
            view = self.view(UseColorPaletteForBackground=0, Background=back)
            simple.Show(words, view)
            simple.Render(view)
            (bar,) = bars(view)
            self.assertEqual(bar.DrawBackground, isOn)
            self.assertEqual(bar.BackgroundColor[3] == 1, bool(isOn))
            simple.Delete(view)
        palette = simple.GetSettingsProxy("ColorPalette")
        before = list(palette.Background)
        self.addCleanup(setattr, palette, "Background", before)
        for palette.Background, isOn in ((color, 1), ([0, 0, 0], 0)):
            view = self.view(UseColorPaletteForBackground=1)
            simple.Show(words, view)
            simple.Render(view)
            self.assertEqual([bar.DrawBackground for bar in bars(view)], [isOn])
            simple.Delete(view)

    def test_the_ground_of_a_legend_is_the_users(self):
        """The gray that was switched off, or its other color, when entries go and come, also of a state."""
        words = simple.AttentionSentence(registrationName="Words", Input=self.recording, Layer=4, Heads=[3, 11])
        color = [channel / 255 for channel in atlastest.arrays_of(atlastest.fetch(words), "CellData")["HeadColor"][0][:3]]
        view = self.view(UseColorPaletteForBackground=0, Background=color)
        simple.Show(words, view)
        simple.Render(view)
        (bar,) = bars(view)
        blue = [0.2, 0.4, 0.6, 1]
        for ground in ((0, list(bar.BackgroundColor)), (1, blue)):
            bar.DrawBackground, bar.BackgroundColor = ground
            for is_state in (False, True):
                if is_state:
                    self.reload()
                    (view,) = simple.GetViews()
                    words = simple.FindSource("Words")
                    simple.Render(view)
                for words.Heads in ([3, 7, 11], [7, 11], [3, 11]):
                    simple.Render(view)
                    (bar,) = bars(view)
                    self.assertEqual((bar.DrawBackground, list(bar.BackgroundColor)), ground)

    def test_two_views_have_two_legends_of_one_array(self):
        """Of the colors of tokens by their norm and by their position; also after a change of one, and of a state."""
        recording = simple.TransformerRecorder(
            Input=atlastest.data_model("language-2"), Prompts="And the king of Egypt", Record=["QueriesAndKeys", "1"]
        )
        heads = simple.HeadEmbedding(Input=recording, Method="PCA")
        views = [self.view(), self.view()]
        for view, by in zip(views, ("Norm", "Position")):
            colors = simple.TokenColors(registrationName=by, Input=heads, By=by)
            simple.Show(colors, view)

        def legends():
            for view in views:
                simple.Render(view)
            return [(titles(view), list(bars(view)[0].LookupTable.Annotations)[1]) for view in views]

        norm = (["Norm"], "query, 0 % of its head's range")
        position = (["Position (tokens)"], "query, 0")
        self.assertEqual(legends(), [norm, position])
        colors.By = "Norm"
        self.assertEqual(legends(), [norm, norm])
        colors.By = "Position"
        self.reload()
        views = sorted(simple.GetViews(), key=lambda view: titles(view))
        self.assertEqual(legends(), [norm, position])

    def test_other_data_are_left_alone(self):
        view = self.view()
        sphere = simple.Elevation(Input=simple.Sphere(), LowPoint=[0, 0, -1], HighPoint=[0, 0, 1])
        simple.ColorBy(simple.Show(sphere, view), ("POINTS", "Elevation"))
        simple.ResetCamera(view)
        self.assertEqual(bars(view), [])
        self.assertEqual(list(view.CameraFocalPoint), [0, 0, 0])

    def test_a_hidden_bar_stays_hidden(self):
        view = self.view()
        map_ = simple.AttentionMap(Input=self.recording)
        shown = simple.Show(map_, view)
        shown.SetScalarBarVisibility(view, False)
        simple.Hide(map_, view)
        simple.Show(map_, view)
        self.assertEqual(bars(view), [], "shown again")
        simple.Show(simple.AttentionMap(Input=self.recording, Layer=4), view)
        self.assertEqual(bars(view), [], "another map in the same colors")
        other = self.view()
        simple.Show(map_, other)
        self.assertEqual(titles(other), ["Attention weight"], "in another view")

    def test_none_by_the_users_setting(self):
        SETTINGS.SetScalarBarMode(SETTINGS.MANUAL_SCALAR_BARS)
        view = self.view()
        shown = simple.Show(atlastest.torus(self.model), view)
        self.assertEqual((bars(view), shown.DataAxesGrid.GridAxesVisibility), ([], 0))

    def test_states_keep_what_the_user_chose(self):
        view = self.view()
        map_ = simple.AttentionMap(Input=self.recording)
        simple.Show(map_, view).SetScalarBarVisibility(view, False)
        simple.Show(atlastest.torus(self.model), self.view())
        state = str(atlastest.OUTPUT / "bars.pvsm")
        simple.SaveState(state)
        self.start_session()
        SETTINGS.SetScalarBarMode(SETTINGS.AUTOMATICALLY_HIDE_SCALAR_BARS)
        simple.LoadState(state)
        self.assertEqual([titles(view) for view in simple.GetViews()], [[], ["Class"]])

    def test_texts_are_legible_on_a_background_of_the_views_own(self):
        for background, ink in (([1, 1, 1], 0), ([0, 0, 0.2], 1)):
            view = self.view(UseColorPaletteForBackground=0, Background=background)
            shown = simple.Show(atlastest.torus(self.model), view)
            (bar,) = bars(view)
            for color in (bar.TitleColor, bar.LabelColor, shown.DataAxesGrid.XTitleColor):
                self.assertEqual(list(color), [ink] * 3)


class Room(FirstShow):
    """The camera leaves room for bars and axes."""

    def assert_data_beside_bars(self, view, source):
        """No pixel of data, with its texts and axes, is one of a bar; returns the least and largest row and column
        of these data."""
        shown = simple.Show(source, view)
        simple.ResetCamera(view)
        shown.Visibility = 0
        with_bars = atlastest.picture(view, "bars")
        for bar in bars(view):
            bar.Visibility = 0
        empty = atlastest.picture(view, "empty")
        shown.Visibility = 1
        simple.Render(view)  # which places the labels of axes
        of_bars, of_data = ((found != empty).any(axis=2) for found in (with_bars, atlastest.picture(view, "data")))
        self.assertGreater(of_bars.sum(), 500)
        self.assertEqual((of_bars & of_data).sum(), 0)
        places = numpy.argwhere(of_data)
        self.assertGreater(len(places), 0.05 * of_data.size)
        return places.min(axis=0), places.max(axis=0)

    def test_wide_square_and_high_views(self):
        for size in ((900, 400), (400, 400), (300, 500)):
            for parallel in (0, 1):
                with self.subTest(size=size, parallel=parallel):
                    view = self.view(CameraParallelProjection=parallel)
                    view.ViewSize = size
                    low, high = self.assert_data_beside_bars(view, simple.AttentionMap(Input=self.recording))
                    self.assertTrue((low > 0).all() and (high + 1 < view.ViewSize[::-1]).all(), "in one piece")

    def test_flat_data_fill_what_is_left(self):
        view = self.view()
        low, high = self.assert_data_beside_bars(view, atlastest.torus(self.model))
        self.assertGreater(high[0] - low[0], 0.8 * 400)
        self.assertTrue((low > 0).all(), "with the labels of its axes")

    def test_a_zoom_to_a_part_stays(self):
        view = self.view()
        simple.Show(simple.AttentionMap(Input=self.recording), view)
        view.SMProxy.ResetCamera(1, 2, -3, -1, 0, 0)
        simple.Render(view)
        self.assertEqual(list(view.CameraFocalPoint), [1.5, -2, 0])

    def test_dots_are_inside(self):
        """Of the panels of all heads, whose titles are at their left and above, at the size of a window and of a small one."""
        run = simple.TransformerRecorder(
            Input=atlastest.data_model("language-2"), Prompts="And God said, Let there be light: and there was light."
        )
        points = simple.HeadEmbedding(Input=run, Method="PCA")
        for ports in ([simple.OutputPort(points, 0)], list(self.found(points))):
            for size in ((1600, 1000), (1000, 700), (600, 400)):
                with self.subTest(size=size, ports=len(ports)):
                    view = self.view(OrientationAxesVisibility=0, UseColorPaletteForBackground=0, Background=[1, 1, 1])
                    view.ViewSize = size
                    for port in (*ports, simple.OutputPort(points, 2)):
                        simple.Show(port, view)
                    simple.ResetCamera(view)
                    drawn = (atlastest.picture(view, "dots") < 250).any(axis=2)
                    self.assertEqual(drawn.shape, size[::-1])
                    for border in (drawn[:3], drawn[-3:], drawn[:, :3], drawn[:, -3:]):
                        self.assertFalse(border.any())

    def found(self, points):
        """What a search finds, as larger dots."""
        search = simple.TokenSearch(Input=points, Text="light")
        return (simple.OutputPort(search, port) for port in (0, 1))

    def test_surfaces_in_space(self):
        view = self.view()
        self.assert_data_beside_bars(view, simple.TorusDeformation(Input=atlastest.torus(self.model)))


class Charts(FirstShow):
    def chart(self, kind, source):
        view = simple.CreateView(kind)
        shown = simple.Show(source, view)
        simple.Render(view)
        return view, shown

    def test_rows_have_words(self):
        view, shown = self.chart("XYBarChartView", simple.HeadAccuracy(Input=self.model))
        self.assertEqual(list(shown.SeriesVisibility), ["Accuracy"])
        self.assertEqual(view.LeftAxisTitle, "Accuracy (share)")
        self.assertEqual(view.BottomAxisUseCustomLabels, 1)
        names = ["Head 0", "Head 1", "Head 2", "All Heads", "Union"]
        self.assertEqual(list(view.BottomAxisLabels)[1::2], names)
        self.assertEqual([float(place) for place in list(view.BottomAxisLabels)[::2]], [0, 1, 2, 3, 4])

    def test_words_follow_the_data_unless_they_are_the_users(self):
        areas = simple.ClassAreas(Input=self.model)
        view, _ = self.chart("XYBarChartView", areas)
        self.assertEqual(list(view.BottomAxisLabels)[1::2], [str(number) for number in range(5)])
        areas.Input = atlastest.read_model(atlastest.ORACLE / "random-n12-h6-d2.safetensors")
        simple.Render(view)
        self.assertEqual(list(view.BottomAxisLabels)[1::2], [str(number) for number in range(12)])
        view.BottomAxisLabels = ["0", "mine"]
        areas.Input = self.model
        simple.Render(view)
        self.assertEqual(list(view.BottomAxisLabels), ["0", "mine"])

    def test_titles_of_the_user_are_kept(self):
        view = simple.CreateView("XYBarChartView", LeftAxisTitle="mine")
        simple.Show(simple.ClassAreas(Input=self.model), view)
        self.assertEqual((view.LeftAxisTitle, view.BottomAxisTitle), ("mine", "Predicted class"))

    def test_titles_name_the_quantity(self):
        """With its unit, and that of another quantity once this is chosen; a title of the user stays."""
        corpus = simple.CorpusReader(FileName=str(atlastest.DATA / "corpus" / "language-2.safetensors"))
        histogram = simple.HeadHistogram(Input=corpus)
        view, _ = self.chart("XYBarChartView", histogram)
        for quantity, titles in (
            ("Entropy", ("Entropy (share of its maximum)", "Share of queries")),
            ("Distance", ("Distance (tokens)", "Share of attention")),
            ("StrongestWeight", ("Strongest weight (share of attention)", "Share of queries")),
        ):
            histogram.Quantity = quantity
            simple.Render(view)
            self.assertEqual((view.BottomAxisTitle, view.LeftAxisTitle), titles)
        for own in ("mine", ""):
            view.BottomAxisTitle = own
            for quantity, left in (("Distance", "Share of attention"), ("Entropy", "Share of queries")):
                histogram.Quantity = quantity
                simple.Render(view)
                self.assertEqual((view.BottomAxisTitle, view.LeftAxisTitle), (own, left))

    def bottom(self, view):
        """Words by place, and the range."""
        labels = list(view.BottomAxisLabels)
        words = dict(zip(map(float, labels[::2]), labels[1::2]))
        return words, (view.BottomAxisUseCustomRange, view.BottomAxisRangeMinimum, view.BottomAxisRangeMaximum)

    def test_heads_have_names(self):
        """All or the first of each layer, as they fit. No point lies on the border or behind the legend."""
        view, shown = self.chart("XYPointChartView", simple.AttentionFocus(Input=self.recording))
        for width, heads in ((600, range(0, 144, 12)), (7000, range(144))):
            view.ViewSize = [width, 400]
            names = {head: f"{head // 12}.{head % 12}" for head in heads}
            self.assertEqual(self.bottom(view), (names, (1, -0.5, 179.5)))
        view.SMProxy.ResetDisplay()
        self.assertEqual(self.bottom(view), (names, (1, -0.5, 179.5)))
        shown.UseIndexForXAxis = 0
        simple.Render(view)
        self.assertEqual((view.BottomAxisUseCustomLabels, view.BottomAxisUseCustomRange), (0, 0))

    def test_queries_have_tokens(self):
        """One for each query, however many scores it has; a range of the user is kept."""
        model = atlastest.read_transformer("gpt2")
        recording = simple.TransformerRecorder(Input=model, TokenIds="5 5 7")
        scores = simple.ScoreBreakdown(Input=recording, Model=model)
        view, shown = self.chart("XYPointChartView", scores)
        self.assertEqual(sorted(shown.SeriesVisibility), ["Attention", "Bias"])
        words, places = self.bottom(view)
        self.assertEqual((list(words), places), ([0, 1, 2], (1, -0.5, 3.25)))
        self.assertEqual(words[0], words[1])
        view.BottomAxisRangeMaximum = 9
        recording.TokenIds = "5 5 7 8"
        simple.Render(view)
        words, places = self.bottom(view)
        self.assertEqual((list(words), places), ([0, 1, 2, 3], (1, -0.5, 9)))

    def test_a_title_says_what_is_shown(self):
        """It follows layer and head, and is cut to the width of the view; a title of the user stays, also none."""
        model = atlastest.read_transformer("gpt2")
        recording = simple.TransformerRecorder(Input=model, TokenIds="5 5 7")
        scores = simple.ScoreBreakdown(Input=recording, Model=model)
        view, _ = self.chart("XYPointChartView", scores)
        view.ViewSize = [1200, 400]
        for layer, head in ((0, 0), (1, 3), (0, 2)):
            scores.Layer, scores.Head = layer, head
            simple.Render(view)
            self.assertTrue(
                view.ChartTitle.startswith(f"Score Breakdown  ·  Layer {layer}  ·  Head {head}  ·  "),
                view.ChartTitle,
            )
        view.ViewSize = [400, 400]
        simple.Render(view)
        self.assertRegex(view.ChartTitle, "^Score Breakdown  ·  Layer 0  ·  Head 2  ·.*…$")
        drawn = (atlastest.picture(view, "cut")[..., :3] < 128).any(axis=-1)
        self.assertTrue(drawn[-25:].any())
        self.assertFalse(drawn[-25:, :3].any() or drawn[-25:, -3:].any(), "inside the view")
        for own in ("mine", ""):
            view.ChartTitle = own
            scores.Head = 1
            simple.Render(view)
            self.assertEqual(view.ChartTitle, own)
            scores.Head = 0
            simple.Render(view)
            self.assertEqual(view.ChartTitle, own)

    def test_a_title_of_a_state_follows(self):
        view, _ = self.chart("XYBarChartView", simple.ClassAreas(registrationName="Areas", Input=self.model))
        own, _ = self.chart("XYBarChartView", simple.HeadAccuracy(registrationName="Accuracy", Input=self.model))
        own.ChartTitle = "mine"
        self.assertEqual(view.ChartTitle, "Areas  ·  trained-n5-h3")
        self.reload()
        SETTINGS.SetScalarBarMode(SETTINGS.AUTOMATICALLY_HIDE_SCALAR_BARS)
        titles = [shown.ChartTitle for shown in simple.GetViews()]
        self.assertEqual(sorted(titles), ["Areas  ·  trained-n5-h3", "mine"])
        view = simple.GetViews()[titles.index("Areas  ·  trained-n5-h3")]
        simple.FindSource("Areas").Input = atlastest.read_model(atlastest.SLOW)
        simple.Render(view)
        self.assertEqual(view.ChartTitle, "Areas  ·  trained-n5-h3-slow")

    def test_braces_in_a_title_are_letters(self):
        """ParaView would replace what is in them."""
        areas = simple.ClassAreas(registrationName="{time} areas", Input=self.model)
        view, _ = self.chart("XYBarChartView", areas)
        view.ViewSize = [600, 400]
        simple.Render(view)
        self.assertEqual(view.GetClientSideObject().GetContextItem().GetTitle(), "{time} areas  ·  trained-n5-h3")

    def test_heads_have_names_in_charts_of_scripts(self):
        """Also of tables without a chart of their own: as words, each head that there is, at whole numbers."""
        corpus = simple.CorpusReader(FileName=str(atlastest.DATA / "corpus" / "language-2.safetensors"))
        view, shown = self.chart("XYBarChartView", corpus)
        view.ViewSize = [1600, 400]
        simple.Render(view)
        names = {head: f"{head // 8}.{head % 8}" for head in range(16)}
        self.assertEqual(self.bottom(view)[0], names)
        self.assertEqual(view.BottomAxisTitle, "Head (layer.head)")
        self.assertEqual(sorted(shown.SeriesVisibility), ["Prefix Matching", "Previous Token", "Sink Rate"])
        self.assertEqual(view.ChartTitle, "Corpus Reader  ·  language-2")
        for along, words in (("Layer", [0, 1]), ("Head", list(range(8)))):
            shown.UseIndexForXAxis, shown.XArrayName = 0, along
            simple.Render(view)
            self.assertEqual(self.bottom(view)[0], {number: str(number) for number in words})
            self.assertEqual(view.BottomAxisTitle, along)
        shown.XArrayName = "Entropy"
        simple.Render(view)
        self.assertEqual((view.BottomAxisUseCustomLabels, view.BottomAxisTitle), (0, "Entropy"))
        shown.UseIndexForXAxis = 1
        simple.Render(view)
        self.assertEqual((self.bottom(view)[0], view.BottomAxisTitle), (names, "Head (layer.head)"))
        scores, _ = self.chart("XYPointChartView", simple.OutputPort(simple.HeadScores(Input=self.recording), 0))
        self.assertEqual((self.bottom(scores)[0][0], scores.BottomAxisTitle), ("0.0", "Head (layer.head)"))

    def test_lines_that_coincide_are_told_apart(self):
        training = simple.AttentionOnlyTraining(Steps=4, CheckpointEvery=1)
        _, shown = self.chart("XYChartView", simple.OutputPort(training, 1))
        styles = dict(zip(shown.SeriesLineStyle[::2], shown.SeriesLineStyle[1::2]))
        chosen = {styles[series] for series in shown.SeriesVisibility}
        self.assertEqual(len(chosen), 4)
        self.assertNotIn("3", chosen, "dots, which are hardly seen")

    def test_queries_and_keys_have_a_title(self):
        """A view of points says what is searched; the user may hide or replace it."""
        model = atlastest.read_transformer("gpt2")
        recording = simple.TransformerRecorder(Input=model, TokenIds="5 5 7")
        heads = simple.HeadEmbedding(Input=recording)
        view = self.view()
        simple.Show(heads, view)
        search = simple.TokenSearch(Input=heads, Match="TokenId", Text="7")
        simple.Render(view)
        self.assertEqual(view.ShownTitle, "Head Embedding  ·  All layers  ·  All heads  ·  PCA  ·  All sequences  ·  gpt2")
        simple.Hide(heads, view)
        simple.Show(search, view)
        simple.Render(view)
        self.assertEqual(view.ShownTitle, "Token Search  ·  All layers  ·  All heads  ·  Text “7”  ·  All sequences  ·  gpt2")
        search.Text = "5"
        with_title = atlastest.picture(view, "titled")
        self.assertEqual(view.ShownTitle, "Token Search  ·  All layers  ·  All heads  ·  Text “5”  ·  All sequences  ·  gpt2")
        view.ShowTitle = 0
        without = atlastest.picture(view, "untitled")
        changed = (with_title != without).any(axis=(1, 2))
        self.assertTrue(changed[-25:].any())
        self.assertFalse(changed[:-25].any())
        view.ShowTitle, view.Title = 1, "mine"
        simple.Render(view)
        self.assertEqual(view.ShownTitle, "mine")
        plain = self.view()
        simple.Show(simple.Sphere(), plain)
        simple.Render(plain)
        self.assertEqual((plain.ShowTitle, plain.ShownTitle), (0, ""))

    def test_views_in_space_have_a_title(self):
        """The small model and what is on meshes; a title that the user types or takes away stays."""
        name = "trained-n5-h3"
        torus = atlastest.torus(self.model)
        mesh = simple.Calculator(
            Input=simple.Wavelet(WholeExtent=[0, 3, 0, 2, 0, 1]), Function="floor(coordsX)", ResultArrayName="Number"
        )
        bound = simple.BindTokens(Input=mesh, Recording=self.recording, TokenArray="Number")
        head = "Layer 0  ·  Head 0  ·  Weights"
        recording = "gpt2-data-visualization"
        protein = simple.MmcifReader(FileName=str(atlastest.DATA / "models" / "protein" / "chain.pdb"))
        for source, title in (
            (torus, f"Attention Torus  ·  {name}"),
            (simple.TokenPairs(Input=self.model), f"Token Pairs  ·  {name}"),
            (simple.TorusDeformation(Input=torus), f"Torus Deformation  ·  {name}"),
            (simple.UnembeddingSphere(Input=self.model), f"Unembedding Sphere  ·  {name}"),
            (simple.WordCircle(Input=self.model), f"Word Circle  ·  {name}"),
            (simple.HarmonicHead(Resolution=[8, 8]), "Harmonic Head  ·  Attention"),
            (bound, f"Bind Tokens  ·  Bound token (its position)  ·  {recording}"),
            (simple.SpatialAttention(Input=bound, Recording=self.recording), f"Spatial Attention  ·  {head}"),
            (protein, "Mmcif Reader  ·  Residue (place in its chain)  ·  chain"),
        ):
            view = self.view()
            simple.Show(source, view)
            simple.Render(view)
            with self.subTest(title):
                self.assertEqual(view.ShowTitle, 1)
                self.assertTrue(view.ShownTitle.startswith(title), view.ShownTitle)
        view = self.view()
        simple.Show(torus, view)
        view.ShowTitle = 0
        simple.Show(simple.TokenPairs(Input=self.model), view)
        simple.Render(view)
        self.assertEqual(view.ShownTitle, "")
        view.ShowTitle, view.Title = 1, "mine"
        torus.Residual = "Embedding"
        simple.Render(view)
        self.assertEqual(view.ShownTitle, "mine")

    def test_heads_have_two_series(self):
        _, shown = self.chart("XYPointChartView", simple.AttentionFocus(Input=self.recording))
        self.assertEqual(sorted(shown.SeriesVisibility), ["First Weight", "Self Weight"])
        colors = dict(zip(shown.SeriesColor[::4], zip(*(map(float, shown.SeriesColor[c::4]) for c in (1, 2, 3)))))
        for series, color in (("First Weight", atlastest.PALETTE[0]), ("Self Weight", atlastest.PALETTE[1])):
            numpy.testing.assert_allclose(colors[series], numpy.array(color) / 255, atol=1e-6)
