"""Transformers and recordings in pipelines: reader, recorder, maps, files and states."""

import json
import pathlib
import shutil

import atlastest
import attentionatlas as atlas
import numpy
from atlastest import AtlasTest, point_arrays
from PIL import Image
from paraview import simple

RECORDING = atlastest.RECORDING
ORACLE = atlastest.ORACLE.parent


def tokens_of(image):
    """The key labels of a map."""
    labels = image.GetFieldData().GetAbstractArray("Key Token")
    return [labels.GetValue(i) for i in range(labels.GetNumberOfValues())]


def matrix(source, quantity="Weights"):
    """A map as a matrix, a row per query from the first."""
    image = atlastest.fetch(source)
    width, height, _ = image.GetDimensions()
    values = atlastest.arrays_of(image)[quantity]
    return values.reshape(height, width)[::-1]


def softmax(scores):
    """Of each row, over the keys up to its query."""
    allowed = numpy.tril(numpy.ones(scores.shape)) > 0
    powers = numpy.where(allowed, numpy.exp(scores.astype(float)), 0)
    return powers / powers.sum(axis=1, keepdims=True)


class Recorded(AtlasTest):
    def test_map_of_the_shipped_recording(self):
        expected, _ = atlastest.read_safetensors(RECORDING)
        reader = atlastest.read_recording(RECORDING)
        attention = simple.AttentionMap(Input=reader)
        for layer, head in ((0, 0), (3, 7), (11, 11)):
            attention.Layer, attention.Head = layer, head
            attention.Quantity = "Scores"
            scores = matrix(attention, "Scores")
            self.assertEqual(scores.tobytes(), numpy.ascontiguousarray(expected["scores"][layer, head]).tobytes())
            attention.Quantity = "Weights"
            self.assert_close(matrix(attention), softmax(scores), 1e-4)
        image = atlastest.fetch(attention)
        self.assertEqual(image.GetBounds(), (0, 5, -5, 0, 0, 0))
        self.assertEqual(tokens_of(image), ["Data", " visualization", " em", "powers", " users", " to"])


class Transformers(AtlasTest):
    def pipeline(self, name):
        """The expected values of a model, and it with a recorder of the oracle's tokens."""
        folder = ORACLE / "transformers" / name
        expected, _ = atlastest.read_safetensors(folder / "expected.safetensors")
        model = simple.TransformerReader(registrationName="Model", FileName=str(folder / "config.json"))
        mask = expected.get("attention_mask", numpy.ones_like(expected["input_ids"])) > 0
        recorder = simple.TransformerRecorder(registrationName="Recorder", Input=model)
        for prop, key in (("TokenIds", "input_ids"), ("Segments", "token_type_ids")):
            if key in expected:
                setattr(recorder, prop, atlastest.token_lines(ids[kept] for ids, kept in zip(expected[key], mask)))
        return expected, recorder

    def test_attention_is_that_of_the_original_code(self):
        for name in ("bert", "bloom", "llama", "attn-only"):
            expected, recorder = self.pipeline(name)
            attention = simple.AttentionMap(Input=recorder, Sequence=1, Layer=1, Head=2)
            found = matrix(attention)
            length = len(found)
            weights = expected["layer.1.attention"][1, 2, :length, :length]
            self.assert_close(found, weights, 1e-4)
            attention.Quantity = "Scores"
            scores = expected["layer.1.scores"][1, 2, :length, :length]
            self.assert_close(matrix(attention, "Scores"), scores, 1e-4)
            self.take_errors()  # tensors of bert that are not used

    def test_recording_survives_a_file(self):
        _, recorder = self.pipeline("bloom")
        path = atlastest.OUTPUT / "bloom.safetensors"
        simple.SaveData(str(path), proxy=recorder)
        self.assertEqual(atlastest.read_safetensors(path)[1]["format"], "attention-atlas.recording")
        again = atlastest.read_recording(path)
        maps = [simple.AttentionMap(Input=source, Layer=1, Head=3, Quantity="Scores") for source in (recorder, again)]
        self.assert_same_arrays(*map(point_arrays, maps))

    def vision(self):
        """A vision transformer in a folder for pictures of its own."""
        folder = pathlib.Path(atlastest.OUTPUT, "vit")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name in ("config.json", "model.safetensors"):
            (folder / name).symlink_to(ORACLE / "transformers" / "vit" / name)
        model = simple.TransformerReader(FileName=str(folder / "config.json"))
        model.UpdatePipeline()
        self.take_errors()  # tensors that are not used
        return folder, simple.TransformerRecorder(Input=model)

    def scores_of(self, recorder, count, images):
        """The scores of a head of the last layer, of each of so many images."""
        recorder.Images = images
        attention = simple.AttentionMap(Input=recorder, Layer=1, Head=2, Quantity="Scores")
        found = []
        for attention.Sequence in range(count):
            found.append(matrix(attention, "Scores"))
        return numpy.array(found)

    def tensor_scores(self, recorder, path, pictures, mean=0.5, deviation=0.5):
        """The same of images of the model's size, which are normalized here."""
        values = numpy.array([numpy.asarray(picture) for picture in pictures])
        values = (values.transpose(0, 3, 1, 2) / 255.0).astype("f4")
        values = (values - numpy.float32(mean)) / numpy.float32(deviation)
        atlastest.write_safetensors(path, {"pixel_values": values}, {})
        return self.scores_of(recorder, len(pictures), str(path))

    def test_images_are_one_file_or_several(self):
        folder, recorder = self.vision()
        pictures = []
        for i, name in enumerate(("a.png", "b.png")):
            pixels = numpy.random.default_rng(i).integers(0, 256, (32, 32, 3), "u1")
            pictures.append(Image.fromarray(pixels))
            pictures[-1].save(folder / name)
        a, b = (str(folder / name) for name in ("a.png", "b.png"))
        expected = self.tensor_scores(recorder, folder / "values.safetensors", pictures)
        self.assertEqual(self.scores_of(recorder, 2, [a, b]).tobytes(), expected.tobytes())
        self.assertEqual(self.scores_of(recorder, 1, b).tobytes(), expected[1:].tobytes())
        self.assertEqual(list(recorder.Images), [b])

    def test_random_prompts(self):
        _, recorder = self.pipeline("llama")
        recorder.TokenIds = ""
        recorder.Tokens = simple.RandomPrompts(Kind="RepeatedBlock", Length=20, Block=5, Count=3, IdRange=[0, 228])
        attention = simple.AttentionMap(Input=recorder, Sequence=2)
        found = matrix(attention)
        self.assertEqual(found.shape, (20, 20))
        numpy.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
        labels = tokens_of(atlastest.fetch(attention))
        self.assertEqual(labels[:15], labels[5:])

    def adapter(self):
        """A folder with a model and an adapter of it, and what both compute."""
        oracle = ORACLE / "models" / "adapters" / "llama-lora"
        folder = pathlib.Path(atlastest.OUTPUT, "adapted")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for path in (*(oracle / "base").iterdir(), *(oracle / "adapter").iterdir()):
            shutil.copyfile(path, folder / path.name)
        expected, _ = atlastest.read_safetensors(oracle / "expected.safetensors")
        return folder, expected

    def test_adapter_is_applied(self):
        folder, expected = self.adapter()
        ids = " ".join(map(str, expected["0.input_ids"].ravel()))

        def weights(name):
            model = simple.TransformerReader(FileName=str(folder / name))
            recorder = simple.TransformerRecorder(Input=model, TokenIds=ids)
            found = matrix(simple.AttentionMap(Input=recorder, Layer=2, Head=3))
            field = atlastest.fetch(model).GetFieldData().GetAbstractArray("Adapter").GetValue(0)
            return found, field

        for name in ("config.json", "adapter_config.json", "adapter_model.safetensors"):
            found, field = weights(name)
            self.assert_close(found, expected["0.attention.2"][3], 1e-4)
            self.assertEqual(field, str(folder))
            self.assertEqual(self.take_errors(), [])
        found, field = weights("model.safetensors")
        self.assertGreater(numpy.abs(found - expected["0.attention.2"][3]).max(), 1e-3)
        self.assertEqual(field, "")
        self.assertIn("these weights alone were opened, without the adapter", self.take_errors()[0])

    def test_adapter_elsewhere(self):
        folder, expected = self.adapter()
        ids = " ".join(map(str, expected["0.input_ids"].ravel()))
        base = folder / "base"
        base.mkdir()
        for name in ("config.json", "model.safetensors"):
            (folder / name).rename(base / name)
        path = folder / "adapter_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "base_model_name_or_path": "base"}))
        self.assertEqual(simple.OpenDataFile(str(path)).GetXMLName(), "TransformerReader")
        for place in (folder, path, folder / "adapter_model.safetensors"):
            with atlas.open(place) as model:
                self.assertEqual(model.name, "adapted" if place != folder / "adapter_model.safetensors" else place.stem)
                found = matrix(simple.AttentionMap(Input=model.record(token_ids=ids).reader, Layer=2, Head=3))
                self.assert_close(found, expected["0.attention.2"][3], 1e-4)
        with atlas.open(base / "model.safetensors") as model:
            self.assertEqual(model.layers, 3)

    def test_files_are_known_by_their_content(self):
        for path, reader in (
            (RECORDING, "RecordingReader"),
            (atlastest.TRAINED, "AttentionOnlyModelReader"),
            (ORACLE / "transformers" / "llama" / "config.json", "TransformerReader"),
        ):
            self.assertEqual(simple.OpenDataFile(str(path)).GetXMLName(), reader)

    def test_state(self):
        _, recorder = self.pipeline("llama")
        recorder.Layers = [1]
        recorder.Record = ["QueriesAndKeys"]
        recorder.MaximumLength = 9
        properties = {"Sequence": 1, "Layer": 1, "Head": 3, "Quantity": "Scores"}
        attention = simple.AttentionMap(registrationName="Map", Input=recorder, **properties)
        expected = point_arrays(attention)
        ids = recorder.TokenIds
        self.reload()
        again = simple.FindSource("Map")
        self.assertEqual({key: getattr(again, key) for key in properties}, properties)
        found = simple.FindSource("Recorder")
        self.assertEqual(found.TokenIds, ids)
        self.assertEqual(list(found.Layers), [1])
        self.assertEqual(list(found.Record), ["QueriesAndKeys"])
        self.assert_same_arrays(point_arrays(again), expected)
        warnings = self.take_errors()
        self.assertTrue(all("are left out" in warning for warning in warnings), warnings)

    def test_every_analysis_needs_the_products_that_were_recorded(self):
        """Parts of a recording add up to it if the model multiplies the same numbers."""
        path = str(atlastest.DATA / "models" / "language-2" / "config.json")
        quantities = ("QueriesAndKeys", "Values", "HeadOutputs", "Residual", "Logits")
        record = [entry for name in quantities for entry in (name, "1")]
        precisions = {"Single Precision": "single", "BF16": "bf16"}
        models = {name: simple.TransformerReader(FileName=path, Products=name) for name in precisions}
        recordings = {
            name: simple.TransformerRecorder(Input=model, TokenIds="1 2 3 4", Record=record)
            for name, model in models.items()
        }
        analyses = set()
        for (_, name), proxy in atlastest.read_proxies().items():
            ports = {port.get("name"): port.find("AtlasFormatDomain") for port in proxy.iter("InputProperty")}
            inputs = {port: domain.get("formats") for port, domain in ports.items() if domain is not None}
            if inputs == {"Input": "attention-atlas.recording", "Model": "attention-atlas.transformer"}:
                analyses.add(name)
        self.assertLessEqual({"AttentionTokens", "HeadScores", "HeadUpdates", "LogitLens", "ScoreBreakdown"}, analyses)
        # Contact Map takes nothing of a model without a contact head, Dictionary Features nothing without a file.
        for analysis in sorted(analyses - {"ContactMap", "DictionaryFeatures"}):
            for recorded, given in (("BF16", "Single Precision"), ("Single Precision", "BF16")):
                with self.subTest(analysis, recorded=recorded):
                    source = getattr(simple, analysis)(Input=recordings[recorded], Model=models[given])
                    source.UpdatePipeline()
                    self.assert_one_error(
                        "needs the model that was recorded: expected products in "
                        f"{precisions[recorded]} as in the recording, found {precisions[given]}"
                    )
