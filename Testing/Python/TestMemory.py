"""Every kind of reader and filter once, on tiny data and without a picture: for memcheck.py."""

import atlastest
from atlastest import AtlasTest, fetch
from attentionatlas import load_plugin
from paraview import simple


class Pipelines(AtlasTest):
    def start_session(self):
        """Stays in the first session: a new one takes valgrind half a minute."""
        load_plugin()

    def test_torus(self):
        model = atlastest.read_model()
        torus = atlastest.torus(model, Resolution=[16, 12])
        torus.Quantities = torus.GetProperty("Quantities").Available
        self.assertEqual(fetch(torus).GetNumberOfPoints(), 16 * 12)
        for shape in ("Donut", "Vectors"):
            surface = simple.TorusDeformation(Input=torus, Shape=shape)
            colors = atlastest.point_arrays(simple.SummableColors(Input=surface))
            self.assertIn("Output Color", colors)
        torus.HeadWeights = [1, 0, 1]
        self.assertGreater(fetch(simple.TokenPairs(Input=model)).GetNumberOfPoints(), 0)
        self.assertGreater(fetch(simple.ClassAreas(Input=model)).GetNumberOfRows(), 0)

    def test_heads_of_a_model(self):
        model = atlastest.read_model()
        sphere = simple.UnembeddingSphere(Input=model, Resolution=16)
        self.assertGreater(fetch(sphere).GetNumberOfCells(), 0)
        simplex = simple.HeadAccuracySimplex(Input=model, Resolution=16)
        self.assertGreater(fetch(simplex).GetNumberOfPoints(), 0)
        self.assertGreater(fetch(simple.HeadAccuracy(Input=model)).GetNumberOfRows(), 0)
        self.assertGreater(fetch(simple.ScoreHarmonics(Input=model)).GetNumberOfRows(), 0)
        self.assertGreater(fetch(simple.WordCircle(Input=model)).GetNumberOfPoints(), 0)
        attention = simple.HarmonicHead(Resolution=[16, 12])
        self.assertEqual(fetch(attention).GetNumberOfPoints(), 16 * 12)

    def test_training(self):
        training = simple.AttentionOnlyTraining(Steps=20, CheckpointEvery=10)
        times = training.TimestepValues
        self.assertGreater(len(times), 1)
        torus = atlastest.torus(training, Resolution=[16, 12])
        for time in times:
            self.assertEqual(fetch(torus, time).GetNumberOfPoints(), 16 * 12)

    def test_recorder(self):
        model = atlastest.read_transformer("llama")
        prompts = simple.RandomPrompts(Length=5, Count=2, IdRange=[1, 20])
        recorder = simple.TransformerRecorder(Input=model, Tokens=prompts)
        recorder.Record = [name for name in recorder.GetProperty("Record").Available if name != "Routing"]
        attention = simple.AttentionMap(Input=recorder, Sequence=1, Layer=1, Head=2)
        self.assertEqual(fetch(attention).GetNumberOfPoints(), 25)
        self.read_again(recorder)

    def test_recording(self):
        reader = atlastest.read_recording()
        attention = simple.AttentionMap(Input=reader, Layer=5, Head=1)
        self.assertEqual(fetch(attention).GetNumberOfPoints(), 36)
        self.read_again(reader)

    def read_again(self, recording):
        """Saves a recording, and expects the same map of what is read of it."""
        path = atlastest.OUTPUT / f"{self.id()}.safetensors"
        simple.SaveData(str(path), proxy=recording)
        maps = [simple.AttentionMap(Input=source, Layer=1, Head=1) for source in (recording, atlastest.read_recording(path))]
        self.assert_same_arrays(*(atlastest.point_arrays(attention) for attention in maps))

    def test_bad_input(self):
        path = atlastest.OUTPUT / "cut.safetensors"
        path.write_bytes(atlastest.TRAINED.read_bytes()[:500])
        atlastest.read_model(path).UpdatePipeline()
        self.assert_one_error("cut.safetensors")
        reader = atlastest.read_recording()
        simple.AttentionMap(Input=reader, Head=12).UpdatePipeline()
        self.assert_one_error("expected a head from 0 to 11, found 12")
