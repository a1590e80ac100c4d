"""The scene of linked views: as a state it brings back its views, its links and its pairs."""

import atlastest
import numpy
from atlastest import AtlasTest, fetch
from attentionatlas import scene
from paraview import servermanager, simple
from paraview.vtk.util.numpy_support import vtk_to_numpy
from randomrecording import HEADS, LAYERS, TOKENS, write_recording


class SceneTest(AtlasTest):
    """Scenes are saved once; each test loads them in a session of its own."""

    _saved = {}

    def setUp(self):
        super().setUp()
        self.state = atlastest.OUTPUT / "unwritten.pvsm"  # of what cannot be shown
        self.state.unlink(missing_ok=True)
        self.addCleanup(scene.clear)

    def load(self, path, *prompts):
        """Shows the scene of a file as for a user who opens its state."""
        key = (path, *prompts)
        if key not in self._saved:
            state = atlastest.OUTPUT / f"scene-{len(self._saved)}.pvsm"
            state.unlink(missing_ok=True)
            scene.save(path, state, prompts)
            scene.clear()
            self._saved[key] = state
        simple.LoadState(str(self._saved[key]))

    def check_views(self, upper, lower):
        """Expects views of these names in the two rows of the only layout."""
        (layout,) = simple.GetLayouts().values()
        views = servermanager.ProxyManager().GetProxiesInGroup("views").items()
        found = {layout.GetViewLocation(view): name for (name, _), view in views}
        # Cells are numbered as in a binary tree: those of a row are its left half, and what is to the right of that.
        for cell, names in ((1, upper), (2, lower)):
            for name in names[:-1]:
                self.assertEqual(found.pop(2 * cell + 1), name)
                cell = 2 * cell + 2
            self.assertEqual(found.pop(cell), names[-1])
        self.assertEqual(found, {})


class Scene(SceneTest):
    def views(self):
        """The views in space, by what they show."""
        views = {}
        for name in ("Torus", "Sphere", "Deformed torus"):
            source = simple.FindSource(name)
            (views[name],) = (
                view for view in simple.GetRenderViews()
                if any(getattr(shown, "Input", None) == source for shown in view.Representations)
            )
        return views

    def test_state_has_the_views(self):
        self.load(atlastest.TRAINED)
        self.assertEqual(len(simple.GetRenderViews()), 3)
        self.check_views(["Class map", "Unembedding sphere"], ["Token pairs", "Deformed torus"])
        self.assertEqual(fetch(simple.FindSource("Pairs")).GetNumberOfPoints(), 25)
        simple.RenderAllViews()

    def test_cameras_turn_together(self):
        self.load(atlastest.TRAINED)
        link = servermanager.ProxyManager().GetRegisteredLink("Views in space")
        self.assertEqual(link.GetClassName(), "vtkSMCameraLink")
        linked = {link.GetLinkedProxy(i) for i in range(link.GetNumberOfLinkedObjects())}
        spatial = {self.views()[name].SMProxy for name in ("Sphere", "Deformed torus")}
        self.assertEqual(linked, spatial)

    def test_weights_of_heads_are_the_same_everywhere(self):
        """Without head 1, on the torus and of the pairs, both ways; also of a state."""
        self.load(atlastest.TRAINED)
        torus, pairs = simple.FindSource("Torus"), simple.FindSource("Pairs")
        for changed, other, weights in ((torus, pairs, [1, 0, 1]), (pairs, torus, [0.5, 1, 1])):
            changed.HeadWeights = weights
            self.assertEqual(list(other.HeadWeights), weights)

    def test_selected_pairs_are_selected_everywhere(self):
        self.load(atlastest.TRAINED)
        simple.RenderAllViews()
        pairs = simple.FindSource("Pairs")
        simple.SetActiveView(simple.GetRenderViews()[0])
        simple.QuerySelect(QueryString="(id == 7) | (id == 12)", FieldType="POINT", Source=pairs)
        for name in ("Pairs on the sphere", "Pairs on the surface"):
            moved = simple.FindSource(name)
            found = moved.SMProxy.GetSelectionInput(0)
            self.assertIsNotNone(found, name)
            chosen, values = (
                numpy.stack([atlastest.point_arrays(source)[name] for name in ("First", "Second")], axis=1)
                for source in (simple.ExtractSelection(Input=moved, Selection=servermanager._getPyProxy(found)), pairs)
            )
            self.assertEqual(sorted(chosen.tolist()), sorted(values[[7, 12]].tolist()))

    def test_says_what_is_wrong(self):
        config = atlastest.OUTPUT / "config.json"
        config.write_text("{}")
        text, absent = atlastest.OUTPUT / "scene.txt", atlastest.OUTPUT / "absent.safetensors"
        self.assert_raise(
            (lambda: scene.save(atlastest.TRAINED, text), "scene.txt: expected a name that ends with .pvsm"),
            (lambda: scene.save(absent, self.state), "absent.safetensors: no such file", FileNotFoundError),
            (lambda: scene.save(atlastest.RECORDING, self.state, ["text"]), "expected a language model, .* found a recording"),
            (lambda: scene.save(config, self.state), "config.json: .*model_type"),
        )
        self.assertFalse(self.state.exists())


class RecordingScene(SceneTest):
    def test_of_attention_alone_has_the_views_of_heads(self):
        self.load(atlastest.RECORDING)
        self.assertEqual(len(simple.GetRenderViews()), 3)
        self.check_views(["All heads", "One head"], ["Words", "Tokens"])
        simple.RenderAllViews()
        for name in ("All heads", "Head", "Words"):
            self.assertGreater(simple.FindSource(name).GetDataInformation().GetNumberOfPoints(), 0, name)

    def test_with_queries_and_keys_has_their_embedding(self):
        self.load(write_recording(atlastest.OUTPUT / "random.safetensors"))
        self.check_views(["All heads", "One head", "Words"], ["Queries and keys", "Queries and keys of the head", "Tokens"])
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
        self.load(atlastest.TRANSFORMERS / "gpt2" / "config.json")
        self.check_views(["Composition of heads", "Copying of heads", "QK circuit"], ["OV circuit", "Largest entries"])
        self.assertIsNotNone(simple.FindSource("gpt2"))
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

    def test_of_prompts_has_the_views_of_their_heads_and_of_the_weights(self):
        path = atlastest.DATA / "models" / "language-2"
        self.load(path, "And God said", "Let there be\nlight")
        self.check_views(["All heads", "One head", "Words"], ["Queries and keys", "Composition of heads", "QK circuit"])
        simple.RenderAllViews()
        head, words, circuit = map(simple.FindSource, ("Head", "Words", "QK circuit"))
        self.assertEqual(simple.GetAnimationScene().AnimationTime, 3000)
        self.assertEqual([view.ViewTime for view in simple.GetRenderViews()], 6 * [3000])
        # No token repeats: at first the head that attends most to the token before.
        table = fetch(simple.HeadScores(Input=head.Input))
        layers, heads, scores = (vtk_to_numpy(table.GetColumnByName(n)) for n in ("Layer", "Head", "Previous Token"))
        most = scores.argmax()
        self.assertGreater(scores[most], 0.5)
        self.assertEqual((head.Layer, head.Head), (layers[most], heads[most]))
        circuit.Layer, circuit.Head, head.Sequence = 1, 5, 1
        self.assertEqual((head.Layer, head.Head, words.Layer, words.Head, words.Sequence), (1, 5, 1, 5, 1))
