"""Asking a filter for its ranges and sizes runs no model, training or corpus before Apply; what it says then is what it says
after the run."""

import atlastest
from atlastest import AtlasTest
from paraview import servermanager, simple
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline

MODEL = str(atlastest.DATA / "models" / "language-2" / "config.json")
PROMPTS = "In the beginning God created the heaven and the earth.\nLet there be light."
#: Filters that show what others computed from the input, or change data, whose sizes follow from numbers.
BY_NUMBERS = {"SharedTokens"}
#: Takes any dataset or table; one without tokens is an error.
OF_ANY_DATA = {"TokenSearch"}
#: What filters need beside their inputs: texts in words of every model here.
PROMPT_PAIR = {"Prompt": "1 2 3", "PatchFrom": "1 4 3"}
OPTIONS = {"ActivationPatching": PROMPT_PAIR, "AttributionPatching": PROMPT_PAIR}


def filters():
    """The input properties of all our filters, by name."""
    found = {}
    for (group, name), proxy in atlastest.read_proxies().items():
        prototype = servermanager.ProxyManager().GetPrototypeProxy(group, name) if group == "filters" else None
        if prototype and proxy.find("Hints/ShowInMenu") is not None:
            iterator = prototype.NewPropertyIterator()
            found[name] = []
            while not iterator.IsAtEnd():
                if iterator.GetProperty().IsA("vtkSMInputProperty"):
                    found[name].append(iterator.GetKey())
                iterator.Next()
    return found


def sizes(source):
    """What a filter says of its ranges, and of the extents and times of its outputs."""
    source.UpdatePipelineInformation()
    source.SMProxy.UpdatePropertyInformation()
    said = {}
    for name in source.ListProperties():
        found = source.GetProperty(name)
        if found.SMProperty.GetInformationOnly() and "Error" not in name:
            said[name] = str(source.GetPropertyValue(name))
    algorithm = source.GetClientSideObject()
    for port in range(algorithm.GetNumberOfOutputPorts()):
        key = vtkStreamingDemandDrivenPipeline.WHOLE_EXTENT()
        about = algorithm.GetOutputInformation(port)
        if about.Has(key):
            said[port] = tuple(about.Get(key))
    return said


def has_run(source):
    data = source.GetClientSideObject().GetOutputDataObject(0)
    blocks = getattr(data, "GetNumberOfBlocks", None)
    return data is not None and (blocks() if blocks else data.GetNumberOfColumns()) > 0


class Information(AtlasTest):
    def expect(self, make, model, least):
        """`make` gives a source that has not run. Of the filters that take what it computes, at least so many."""
        known = make()
        known.UpdatePipeline()
        model.UpdatePipeline()
        tried = []
        for name, inputs in filters().items():
            if name in BY_NUMBERS | OF_ANY_DATA or not atlastest.takes("filters", name, known, 0, inputs[0]):
                continue
            others = {other: model for other in inputs[1:] if atlastest.takes("filters", name, model, 0, other)}
            others.update(OPTIONS.get(name, {}))
            with self.subTest(name):
                fresh = make()
                self.assertFalse(has_run(fresh))
                made = getattr(simple, name)(**{inputs[0]: fresh, **others})
                before = sizes(made)
                self.assertFalse(has_run(fresh), "its information has run the source")
                made.UpdatePipeline()
                self.assertTrue(has_run(fresh))
                self.assertEqual(sizes(made), before)
                tried.append(name)
                simple.Delete(made)
                simple.Delete(fresh)
        self.assertGreaterEqual(len(tried), least, tried)

    def test_recordings(self):
        model = simple.TransformerReader(FileName=MODEL)

        def record():
            return simple.TransformerRecorder(
                Input=model, Prompts=PROMPTS, Record=["QueriesAndKeys", "Values", "HeadOutputs", "Residual"]
            )

        self.expect(record, model, 14)

    def test_trainings(self):
        def train():
            return simple.TransformerTraining(Task="RepeatedTokens", Steps=3)

        self.expect(train, simple.TransformerReader(FileName=MODEL), 6)

    def test_recordings_of_trainings(self):
        """Neither of both runs."""
        training = simple.TransformerTraining(Task="RepeatedTokens", Steps=3)
        recorder = simple.TransformerRecorder(Input=training, TokenIds="1 2 3 1 2\n4 5 6")
        shown = simple.AttentionMap(Input=recorder, Sequence=1)
        before = sizes(shown)
        self.assertFalse(has_run(training) or has_run(recorder))
        self.assertEqual(before[0], (0, 2, 0, 2, 0, 0))
        shown.UpdatePipeline()
        self.assertEqual(sizes(shown), before)

    def test_corpora(self):
        model = simple.TransformerReader(FileName=MODEL)
        text = atlastest.OUTPUT / "text.txt"
        text.write_text("And God said, Let there be light: and there was light.\n" * 20, encoding="utf-8")

        def count():
            return simple.CorpusStatistics(Input=model, Files=[str(text)])

        self.expect(count, model, 4)

    def test_a_text_that_is_generated(self):
        """A model may end it early, so that its length is known after a run alone."""
        model = simple.TransformerReader(FileName=MODEL)
        recorder = simple.TransformerRecorder(Input=model, Prompts="In the", GenerateTokens=2)
        shown = simple.AttentionMap(Input=recorder)
        before = sizes(shown)
        shown.UpdatePipeline()
        self.assertEqual(sizes(shown), before)
