"""Second inputs are chosen by themselves and offered only where they fit, and filters only where their input fits."""

import atlastest
from atlastest import takes
from paraview import simple

MODELS = atlastest.DATA / "models"


def filters():
    """The elements of all filters, by name."""
    proxies = atlastest.read_proxies()
    return {name: proxy for (_, name), proxy in proxies.items() if proxy.tag == "SourceProxy"}


def second_inputs():
    """The name of the second input that each filter needs."""
    found = {}
    for name, proxy in filters().items():
        helpers = [helper for helper in proxy.iter("InitializationHelper") if "SecondInput" in helper.get("class")]
        if helpers:
            found[name] = helpers[0].get("property")
    return found


def reader(name):
    model = simple.TransformerReader(FileName=str(MODELS / name / "config.json"))
    model.UpdatePipeline()
    return model


def recorder(model):
    recording = simple.TransformerRecorder(Input=model, TokenIds="5 7 9 11")
    recording.UpdatePipeline()
    return recording


class TestSecondInputs(atlastest.AtlasTest):
    def test_every_needed_input_is_chosen(self):
        """A filter with two inputs that are not optional would ask for the second one, which may then be left empty."""
        helped = second_inputs()
        self.assertEqual(len(helped), 10)
        for name, proxy in filters().items():
            needed = [found.get("name") for found in proxy.findall("InputProperty") if found.find("Hints/Optional") is None]
            self.assertLessEqual(len(needed), 1, name)
            if name in helped:
                second = proxy.find(f"InputProperty[@name='{helped[name]}']")
                self.assertIsNotNone(second.find("Hints/AtlasNeeded"), name)
                self.assertEqual(second.get("panel_widget"), "input_selector", name)
                domain = proxy.find("InputProperty[@name='Input']/AtlasSecondInputDomain")
                self.assertEqual(domain.get("property"), helped[name], name)

    def test_second_inputs_are_limited(self):
        """Other than any dataset or table: points, charts and structures are of any user."""
        free = {"TokenPositions", "Reference", "Structure"}
        for name, proxy in filters().items():
            for found in proxy.findall("InputProperty")[1:]:
                if found.find("Hints/SelectionInput") is None and found.get("name") not in free:
                    self.assertIsNotNone(found.find("AtlasFormatDomain"), f"{name}.{found.get('name')}")

    def test_what_is_taken_away_is_gone(self):
        """A filter whose second input is None does not go on with the last one."""
        for name, proxy in filters().items():
            for found in proxy.findall("InputProperty"):
                if found.get("name") != "Input":
                    self.assertEqual(found.get("null_on_empty"), "1", f"{name}.{found.get('name')}")
        lens = simple.LogitLens(Input=recorder(reader("language-2")))
        self.assertEqual(lens.GetClientSideObject().GetNumberOfInputConnections(1), 1)
        lens.Model = None
        lens.UpdatePipeline()
        self.assertEqual(lens.GetClientSideObject().GetNumberOfInputConnections(1), 0)
        self.assertEqual(lens.GetDataInformation(0).GetNumberOfPoints(), 0)
        self.assert_one_error("Model: expected the transformer that was recorded")

    def test_model_of_the_recording(self):
        first = reader("language-2")
        recording = recorder(first)
        other = reader("induction")
        for name in ("ScoreBreakdown", "AttentionTokens", "LogitAttribution", "LogitLens", "ScoreAttribution", "DictionaryFeatures"):
            made = getattr(simple, name)(Input=recording)
            self.assertEqual(made.Model.SMProxy, first.SMProxy, name)
        chosen = simple.LogitLens(Input=recording, Model=other)
        self.assertEqual(chosen.Model.SMProxy, other.SMProxy)
        tokens = simple.AttentionTokens(Input=recording)
        tokens.UpdatePipeline()
        layout = simple.AttentionTokenLayout(Input=tokens)
        self.assertEqual(layout.Model.SMProxy, first.SMProxy)

    def test_latest_that_fits(self):
        recording = atlastest.read_recording()
        recording.UpdatePipeline()
        self.assertIsNone(simple.LogitLens(Input=recording).Model)
        reader("language-2")
        latest = reader("induction")
        self.assertEqual(simple.LogitLens(Input=recording).Model.SMProxy, latest.SMProxy)

    def test_recording_of_the_embedding(self):
        model = reader("language-2")
        recording = recorder(model)
        recorder(model)
        embedding = simple.HeadEmbedding(Input=recording, Method="PCA")
        embedding.UpdatePipeline()
        lines = simple.AttentionLines(Input=embedding)
        self.assertEqual(lines.Recording.SMProxy, recording.SMProxy)
        bound = simple.BindTokens(Input=simple.Sphere(), Recording=recording)
        self.assertEqual(simple.SpatialAttention(Input=bound).Recording.SMProxy, recording.SMProxy)

    def test_offers(self):
        recording = atlastest.read_recording()
        recording.UpdatePipeline()
        sphere = simple.Sphere()
        sphere.UpdatePipeline()
        self.assertFalse(takes("filters", "LogitLens", recording))  # no model is open
        self.assertTrue(takes("filters", "BindTokens", sphere))
        model = reader("language-2")
        self.assertTrue(takes("filters", "LogitLens", recording))
        self.assertTrue(takes("filters", "LogitLens", model, input_name="Model"))
        self.assertFalse(takes("filters", "LogitLens", recording, input_name="Model"))
        self.assertFalse(takes("filters", "LogitLens", sphere, input_name="Model"))
        self.assertFalse(takes("filters", "LogitLens", sphere))
        self.assertFalse(takes("filters", "AttentionLines", sphere))
        scores = simple.HeadScores(Input=recording)
        scores.UpdatePipeline()
        prompts = simple.RandomPrompts()
        prompts.UpdatePipeline()
        self.assertTrue(takes("filters", "AttentionMatrix", scores, input_name="Scores"))
        self.assertFalse(takes("filters", "AttentionMatrix", prompts, input_name="Scores"))
        self.assertTrue(takes("filters", "TransformerRecorder", prompts, input_name="Tokens"))
        self.assertFalse(takes("filters", "TransformerRecorder", scores, input_name="Tokens"))

    def test_recordings_of_pictures_and_experts(self):
        text = atlastest.read_recording()
        picture = atlastest.read_recording(atlastest.SOURCE / "Testing/GUI/picture.safetensors")
        words = atlastest.read_recording(atlastest.DATA / "recordings/words-and-pictures.safetensors")
        for recording, has_patches in ((text, False), (picture, True), (words, True)):
            recording.UpdatePipeline()
            self.assertEqual(takes("filters", "PatchAttention", recording), has_patches, recording.FileName)
            self.assertFalse(takes("filters", "ExpertRouting", recording), recording.FileName)
            self.assertTrue(takes("filters", "AttentionMap", recording), recording.FileName)
