"""The scene of linked views: as a state it brings back its views, its links and its pairs."""

import atlastest
from atlastest import AtlasTest, fetch
from attentionatlas import scene
from paraview import servermanager, simple
from randomrecording import HEADS, LAYERS, TOKENS, write_recording


class SceneTest(AtlasTest):
    """Scenes are saved once; each test loads them in a session of its own."""

    _saved = {}

    def setUp(self):
        super().setUp()
        self.state = atlastest.OUTPUT / "unwritten.pvsm"  # of what cannot be shown
        self.state.unlink(missing_ok=True)
        self.addCleanup(scene.clear)

    def load(self, path):
        """Shows the scene of a file as for a user who opens its state."""
        if path not in self._saved:
            state = atlastest.OUTPUT / f"scene-{len(self._saved)}.pvsm"
            state.unlink(missing_ok=True)
            scene.save(path, state)
            scene.clear()
            self._saved[path] = state
        simple.LoadState(str(self._saved[path]))


class Scene(SceneTest):
    def views(self):
        """The views in space, by what they show."""
        views = {}
        for name in ("Torus", "Sphere", "Deformed torus"):
            source = simple.FindSource(name)
            views[name] = next(
                view
                for view in simple.GetRenderViews()
                if any(r.Input == source for r in view.Representations if hasattr(r, "Input"))
            )
        return views

    def test_state_has_the_views(self):
        self.load(atlastest.TRAINED)
        self.assertEqual(len(simple.GetRenderViews()), 3)
        tables = [v for v in simple.GetViews() if v.GetXMLName() == "SpreadSheetView"]
        self.assertEqual(len(tables), 1)
        self.assertEqual(fetch(simple.FindSource("Pairs")).GetNumberOfPoints(), 25)
        self.assertEqual(len(simple.GetLayouts()), 1)
        layout = next(iter(simple.GetLayouts().values()))
        for view in simple.GetViews():
            self.assertGreaterEqual(layout.GetViewLocation(view), 0)
        simple.RenderAllViews()

    def test_cameras_turn_together(self):
        self.load(atlastest.TRAINED)
        link = servermanager.ProxyManager().GetRegisteredLink("Views in space")
        self.assertEqual(link.GetClassName(), "vtkSMCameraLink")
        linked = {link.GetLinkedProxy(i) for i in range(link.GetNumberOfLinkedObjects())}
        spatial = {self.views()[name].SMProxy for name in ("Sphere", "Deformed torus")}
        self.assertEqual(linked, spatial)

    def test_selected_pairs_are_selected_everywhere(self):
        self.load(atlastest.TRAINED)
        simple.RenderAllViews()
        pairs = simple.FindSource("Pairs")
        simple.SetActiveView(simple.GetRenderViews()[0])
        simple.QuerySelect(
            QueryString="(id == 7) | (id == 12)", FieldType="POINT", Source=pairs
        )
        for name in ("Pairs on the sphere", "Pairs on the surface"):
            moved = simple.FindSource(name)
            found = moved.SMProxy.GetSelectionInput(0)
            self.assertIsNotNone(found, name)
            ids = servermanager._getPyProxy(found)
            extract = simple.ExtractSelection(Input=moved, Selection=ids)
            data = fetch(extract)
            first = data.GetPointData().GetArray("First")
            second = data.GetPointData().GetArray("Second")
            tokens = [(first.GetValue(i), second.GetValue(i)) for i in range(first.GetNumberOfTuples())]
            values = fetch(pairs).GetPointData()
            self.assertEqual(
                sorted(tokens),
                sorted(
                    (values.GetArray("First").GetValue(i), values.GetArray("Second").GetValue(i))
                    for i in (7, 12)
                ),
            )

    def test_says_what_is_wrong(self):
        with self.assertRaisesRegex(ValueError, "scene.txt: expected a name that ends with .pvsm"):
            scene.save(atlastest.TRAINED, atlastest.OUTPUT / "scene.txt")
        with self.assertRaisesRegex(FileNotFoundError, "absent.safetensors: no such file"):
            scene.save(atlastest.OUTPUT / "absent.safetensors", self.state)
        self.assertFalse(self.state.exists())


class RecordingScene(SceneTest):
    def test_of_attention_alone_has_the_views_of_heads(self):
        self.load(atlastest.RECORDING)
        self.assertEqual(len(simple.GetRenderViews()), 3)
        self.assertEqual(len([v for v in simple.GetViews() if v.GetXMLName() == "SpreadSheetView"]), 1)
        layouts = list(simple.GetLayouts().values())
        self.assertEqual(len(layouts), 1)
        for view in simple.GetViews():
            self.assertGreaterEqual(layouts[0].GetViewLocation(view), 0)
        simple.RenderAllViews()
        for name in ("All heads", "Head", "Words"):
            self.assertGreater(simple.FindSource(name).GetDataInformation().GetNumberOfPoints(), 0, name)

    def test_with_queries_and_keys_has_their_embedding(self):
        self.load(write_recording(atlastest.OUTPUT / "random.safetensors"))
        self.assertEqual(len(simple.GetLayouts()), 2)
        self.assertEqual(len(simple.GetRenderViews()), 5)
        simple.RenderAllViews()
        points = simple.FindSource("Embedding").GetDataInformation().GetNumberOfPoints()
        self.assertEqual(points, 2 * len(TOKENS) * LAYERS * HEADS)
        self.assertEqual(
            simple.FindSource("Embedding of the head").GetDataInformation().GetNumberOfPoints(), 2 * len(TOKENS)
        )

    def test_views_of_one_head_show_the_same(self):
        self.load(write_recording(atlastest.OUTPUT / "random.safetensors"))
        heads, head, words, one = map(simple.FindSource, ("All heads", "Head", "Words", "Embedding of the head"))
        head.Layer, head.Head, head.Sequence = 1, 2, 2
        self.assertEqual((words.Layer, words.Head, words.Sequence), (1, 2, 2))
        self.assertEqual((one.Layer, one.Head, one.Sequence), (1, 2, -1))
        self.assertEqual((heads.Layer, heads.Sequence), (-1, 2))
        words.Head = 0
        self.assertEqual((head.Head, one.Head), (0, 0))
        self.assertEqual(simple.FindSource("Embedding").Head, -1)


class CircuitScene(SceneTest):
    def test_has_the_views_and_shows_one_head(self):
        self.load(atlastest.ORACLE.parent / "transformers" / "gpt2" / "config.json")
        self.assertEqual(len(simple.GetRenderViews()), 4)
        (layout,) = simple.GetLayouts().values()
        for view in simple.GetViews():
            self.assertGreaterEqual(layout.GetViewLocation(view), 0)
        simple.RenderAllViews()
        for name in ("Composition", "Spectra", "QK circuit", "OV circuit"):
            port = 0 if name == "Composition" else 1
            self.assertGreater(simple.FindSource(name).GetDataInformation(port).GetNumberOfPoints(), 0, name)
        queries, values = (simple.FindSource(f"{circuit} circuit") for circuit in ("QK", "OV"))
        queries.Layer, queries.Head = 1, 2
        self.assertEqual((values.Layer, values.Head), (1, 2))
        self.assertEqual((str(queries.Circuit), str(values.Circuit)), ("'QK'", "'OV'"))

    def test_shows_the_trained_model_of_checkpoints(self):
        path = atlastest.DATA / "models" / "induction" / "config.json"
        steps = [int(folder.name.split("-")[1]) for folder in path.parent.glob("checkpoint-*")]
        self.load(path)
        self.assertEqual(simple.GetAnimationScene().AnimationTime, max(steps))
        self.assertEqual([view.ViewTime for view in simple.GetRenderViews()], 4 * [max(steps)])

    def test_says_what_is_wrong(self):
        path = atlastest.OUTPUT / "config.json"
        path.write_text("{}")
        with self.assertRaisesRegex(ValueError, "config.json: .*model_type"):
            scene.save(path, self.state)
        self.assertFalse(self.state.exists())


if __name__ == "__main__":
    atlastest.main()
