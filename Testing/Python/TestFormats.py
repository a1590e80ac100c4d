"""Data say what they are, and filters take what is theirs."""

import xml.etree.ElementTree as ElementTree

import atlastest
from atlastest import AtlasTest
from paraview import servermanager, simple

PREFIX = "attention-atlas."
LANGUAGE = atlastest.DATA / "models" / "language-2" / "config.json"
LLAMA = atlastest.ORACLE.parent / "transformers" / "llama" / "config.json"


def format_of(source, port=0):
    """The format of an output, as the client knows it of any server."""
    source.UpdatePipeline()
    output = servermanager.OutputPort(source, port)
    array = output.GetDataInformation().DataInformation.GetArrayInformation("Format", 2)
    return array.GetStringValue(0) if array else None


class Formats(AtlasTest):
    def sources(self):
        """A source of each type of data that filters tell apart."""
        model = atlastest.read_model()
        recording = simple.RecordingReader(FileName=str(atlastest.RECORDING))
        transformer = simple.TransformerReader(FileName=str(LLAMA))
        return {"attention-only": model, "recording": recording, "transformer": transformer}

    def test_each_output_has_one(self):
        model = atlastest.read_model()
        recording = simple.RecordingReader(FileName=str(atlastest.RECORDING))
        training = simple.AttentionOnlyTraining(Steps=10, Runs=1)
        training.UpdatePipeline()
        learning = simple.TransformerTraining(Steps=1)
        torus = atlastest.torus(model)
        sphere = simple.UnembeddingSphere(Input=model, Resolution=16)
        circle = simple.WordCircle(Input=model)
        gpt2 = atlastest.ORACLE.parent / "transformers" / "gpt2" / "config.json"
        run = simple.TransformerRecorder(
            Input=simple.TransformerReader(FileName=str(gpt2)), TokenIds="1 2 3 4"
        )
        embedding = simple.HeadEmbedding(Input=run, Method="PCA")
        vit = atlastest.ORACLE.parent / "transformers" / "vit"
        tensors, _ = atlastest.read_safetensors(vit / "expected.safetensors")
        images = atlastest.OUTPUT / "images.safetensors"
        atlastest.write_safetensors(images, {"pixel_values": tensors["pixel_values"]}, {})
        vit = simple.TransformerReader(FileName=str(vit / "config.json"))
        patches = simple.PatchAttention(Input=simple.TransformerRecorder(Input=vit, Images=[str(images)]))
        patches.UpdatePipeline()
        self.take_errors()  # of tensors that the model does not use
        colors = simple.TokenColors(Input=embedding)
        search = simple.TokenSearch(Input=embedding, Text="1")
        matrix = simple.AttentionMatrix(Input=recording)
        scores = simple.HeadScores(Input=recording)
        sentence = simple.AttentionSentence(Input=recording)
        record = ["QueriesAndKeys", "1", "HeadOutputs", "1", "Residual", "1"]
        outputs = simple.TransformerRecorder(Input=run.Input, TokenIds="1 2 3 4", Record=record)
        experts = atlastest.ORACLE.parent / "models" / "transformers" / "mixtral" / "config.json"
        experts = simple.TransformerReader(FileName=str(experts))
        routed = simple.TransformerRecorder(Input=experts, TokenIds="1 2 3 4", Record=["Routing", "1"])
        routing = simple.ExpertRouting(Input=routed)
        focus = simple.AttentionFocus(Input=run)
        breakdown = simple.ScoreBreakdown(Input=run, Model=run.Input)
        updates = simple.HeadUpdates(Input=outputs, Model=run.Input)
        reader = simple.TransformerReader(FileName=str(gpt2))
        tokens = simple.AttentionTokens(Input=run, Model=reader)
        shared = simple.SharedTokens(Input=tokens)
        logits = simple.LogitAttribution(Input=outputs, Model=run.Input)
        lens = simple.LogitLens(Input=outputs, Model=run.Input)
        score = simple.ScoreAttribution(Input=outputs, Model=run.Input)
        patching = simple.ActivationPatching(Input=reader, Prompt="1 2 3", PatchFrom="4 5 6", Target="#1", Against="#2")
        bound = simple.BindTokens(Input=simple.Plane(), Recording=run, Method="Grid")
        spatial = simple.SpatialAttention(Input=bound, Recording=run)
        expected = [
            (logits, 0, "logit-attribution.terms"),
            (logits, 1, "logit-attribution.image"),
            (lens, 0, "logit-lens.image"),
            (lens, 1, "logit-lens.tokens"),
            (lens, 2, "logit-lens.labels"),
            (score, 0, "score-attribution.image"),
            (score, 1, "score-attribution.pairs"),
            (routing, 0, "expert-routing.image"),
            (routing, 1, "expert-routing.loads"),
            (routing, 2, "expert-routing.tokens"),
            (routing, 3, "expert-routing.labels"),
            (focus, 0, "attention-focus.focus"),
            (focus, 1, "attention-focus.sorted"),
            (simple.AttentionMap(Input=run), 1, "strongest-keys"),
            (simple.AttentionMap(Input=run), 2, "attention-map.pictures"),
            (breakdown, 0, "score-breakdown.scores"),
            (breakdown, 1, "score-breakdown.keys"),
            (updates, 0, "head-updates.updates"),
            (updates, 1, "head-updates.histograms"),
            (updates, 2, "head-updates.positions"),
            (updates, 3, "head-updates.layers"),
            (tokens, 0, "attention-tokens.tokens"),
            (tokens, 1, "attention-tokens.cells"),
            (tokens, 2, "attention-tokens.frequencies"),
            (tokens, 3, "attention-tokens.unique"),
            (tokens, 4, "attention-tokens.labels"),
            (shared, 0, "shared-tokens.heads"),
            (shared, 1, "shared-tokens.pairs"),
            (shared, 2, "shared-tokens.labels"),
            (simple.AttentionTokenLayout(Input=tokens, Model=reader), 0, "attention-token-layout"),
            (patching, 0, "activation-patching.effects"),
            (patching, 1, "activation-patching.image"),
            (colors, 0, "head-embedding.points"),
            (colors, 1, "token-colors.legend"),
            (search, 0, "head-embedding.points"),
            (search, 1, "head-embedding.points"),
            (search, 2, "token-search.heads"),
            (simple.AttentionLines(Input=embedding, Recording=run), 0, "attention-lines"),
            (spatial, 1, "spatial-attention.lines"),
            (spatial, 2, "spatial-attention.marks"),
            (spatial, 3, "spatial-attention.tokens"),
            (patches, 0, "patch-attention.patches"),
            (patches, 1, "patch-attention.arrows"),
            (patches, 2, "patch-attention.marks"),
            (patches, 3, "patch-attention.picture"),
            (patches, 4, "patch-attention.frames"),
            (patches, 5, "patch-attention.titles"),
            (model, 0, "attention-only"),
            (recording, 0, "recording"),
            (simple.RandomPrompts(), 0, "random-prompts"),
            (simple.AttentionMap(Input=recording), 0, "attention-map"),
            (matrix, 0, "attention-matrix.heads"),
            (matrix, 1, "attention-matrix.titles"),
            (scores, 0, "head-scores.heads"),
            (scores, 1, "head-scores.image"),
            (scores, 2, "head-scores.titles"),
            (sentence, 0, "attention-sentence.lines"),
            (sentence, 1, "attention-sentence.words"),
            (sentence, 2, "attention-sentence.bars"),
            (embedding, 0, "head-embedding.points"),
            (embedding, 1, "head-embedding.heads"),
            (torus, 0, "attention-torus"),
            (simple.HarmonicHead(Resolution=[8, 8]), 0, "harmonic-head"),
            (simple.TokenPairs(Input=model), 0, "token-pairs"),
            (simple.ClassAreas(Input=model, Resolution=[8, 8]), 0, "class-areas"),
            (simple.TorusDeformation(Input=torus), 0, "torus-deformation"),
            (simple.ScoreHarmonics(Input=model), 0, "score-harmonics"),
            (simple.HeadAccuracy(Input=model), 0, "head-accuracy"),
            (simple.HeadAccuracySimplex(Input=model, Resolution=8), 0, "head-accuracy-simplex"),
            (simple.HeadAccuracySimplex(Input=model, Resolution=8), 1, "head-accuracy-simplex.corners"),
            (sphere, 0, "unembedding-sphere.cells"),
            (sphere, 1, "unembedding-sphere.centres"),
            (sphere, 2, "unembedding-sphere.arcs"),
            (circle, 0, "word-circle.tokens"),
            (circle, 1, "word-circle.circle"),
            (training, 0, "attention-only"),
            (training, 1, "attention-only-training.training"),
            (training, 2, "attention-only-training.runs"),
            (learning, 0, "transformer"),
            (learning, 1, "transformer-training.curves"),
        ]
        for source, port, name in expected:
            self.assertEqual(format_of(source, port), PREFIX + name)

    def test_tables_of_circuits_have_one(self):
        gpt2 = atlastest.ORACLE.parent / "transformers" / "gpt2" / "config.json"
        model = simple.TransformerReader(FileName=str(gpt2))
        circuit = simple.HeadCircuit(Input=model)
        for source, port, name in (
            (simple.BigramTable(Input=model), 0, "bigram-table"),
            (circuit, 0, "head-circuit.largest"),
            (circuit, 1, "head-circuit.entries"),
            (simple.SkipTrigrams(Input=model), 0, "skip-trigrams"),
        ):
            self.assertEqual(format_of(source, port), PREFIX + name)

    def test_spectra_of_heads_have_one(self):
        gpt2 = atlastest.ORACLE.parent / "transformers" / "gpt2" / "config.json"
        model = simple.TransformerReader(FileName=str(gpt2))
        recording = simple.TransformerRecorder(Input=model, TokenIds="1 2 1 3")
        outputs = (
            (simple.HeadComposition(Input=model), "head-composition", ("graph", "pairs", "heads")),
            (simple.HeadSpectra(Input=model), "head-spectra", ("spectra", "heads", "eigenvalues", "titles")),
            (simple.VirtualWeights(Input=model), "virtual-weights", ("weights", "spectrum", "titles")),
            (simple.QueryKeyContrast(Input=recording), "query-key-contrast", ("points", "spectrum", "titles")),
        )
        for source, proxy, names in outputs:
            for port, name in enumerate(names):
                self.assertEqual(format_of(source, port), f"{PREFIX}{proxy}.{name}")

    def corpus(self):
        model = simple.TransformerReader(FileName=str(LANGUAGE), Checkpoints=0)
        return simple.CorpusStatistics(Input=model, Files=[str(atlastest.SOURCE / "LICENSE")], TokenLimit=100)

    def test_views_of_a_corpus_have_one(self):
        corpus = self.corpus()
        path = str(atlastest.OUTPUT / "corpus.safetensors")
        simple.SaveData(path, proxy=corpus)
        for source in (corpus, simple.CorpusReader(FileName=path)):
            self.assertEqual(format_of(source), PREFIX + "corpus")
        self.assertEqual(format_of(simple.HeadTokenTable(Input=corpus)), PREFIX + "head-token-table")
        outputs = (
            (simple.HeadScatter(Input=corpus), "head-scatter", ("heads", "labels", "axes")),
            (simple.HeadHistogram(Input=corpus), "head-histogram", ("counts", "quantiles")),
            (simple.TopContexts(Input=corpus), "top-contexts", ("contexts", "words", "marks", "prompts")),
            (simple.ScoreParts(Input=corpus), "score-parts", ("parts", "ends", "points")),
        )
        for source, proxy, names in outputs:
            for port, name in enumerate(names):
                self.assertEqual(format_of(source, port), f"{PREFIX}{proxy}.{name}")

    def test_filters_that_add_pass_it_on(self):
        torus = atlastest.torus(atlastest.read_model(), Quantities=["Output"])
        self.assertEqual(format_of(simple.SummableColors(Input=torus)), PREFIX + "attention-torus")
        contour = simple.Threshold(Input=torus, Scalars=["POINTS", "Output"])
        self.assertEqual(format_of(contour), PREFIX + "attention-torus")

    def test_filters_take_theirs(self):
        wanted = {
            ("filters", "AttentionTorus"): "attention-only",
            ("filters", "HeadAccuracy"): "attention-only",
            ("filters", "AttentionMap"): "recording",
            ("filters", "AttentionMatrix"): "recording",
            ("filters", "HeadScores"): "recording",
            ("filters", "HeadEmbedding"): "recording",
            ("filters", "AttentionFocus"): "recording",
            ("filters", "AttentionTokens"): "recording",
            ("filters", "ScoreBreakdown"): "recording",
            ("filters", "HeadUpdates"): "recording",
            ("filters", "LogitAttribution"): "recording",
            ("filters", "LogitLens"): "recording",
            ("filters", "ScoreAttribution"): "recording",
            ("filters", "TransformerRecorder"): "transformer",
            ("filters", "BigramTable"): "transformer",
            ("filters", "HeadCircuit"): "transformer",
            ("filters", "SkipTrigrams"): "transformer",
            ("filters", "HeadComposition"): "transformer",
            ("filters", "HeadSpectra"): "transformer",
            ("filters", "VirtualWeights"): "transformer",
            ("filters", "QueryKeyContrast"): "recording",
            ("filters", "ActivationPatching"): "transformer",
            ("filters", "CorpusStatistics"): "transformer",
            ("filters", "HeadScatter"): "corpus",
            ("filters", "TopContexts"): "corpus",
            ("filters", "HeadHistogram"): "corpus",
            ("filters", "HeadTokenTable"): "corpus",
            ("filters", "ScoreParts"): "corpus",
            ("writers", "AttentionOnlyModelWriter"): "attention-only",
            ("writers", "RecordingWriter"): "recording",
            ("writers", "CorpusWriter"): "corpus",
        }
        for name, source in {**self.sources(), "corpus": self.corpus()}.items():
            source.UpdatePipeline()
            self.assertEqual(format_of(source), PREFIX + name)
            for (group, proxy), mine in wanted.items():
                self.assertEqual(atlastest.takes(group, proxy, source), mine == name, f"{proxy} of {name}")

    def test_the_shape_of_arrays_does_not_matter(self):
        """Field arrays of 2 and 3 components and columns of 3 once made a recording, a transformer and a model."""
        source = simple.ProgrammableSource(OutputDataSetType="vtkMultiblockDataSet")
        source.Script = """
from vtkmodules.vtkCommonCore import vtkDoubleArray, vtkStringArray
from vtkmodules.vtkCommonDataModel import vtkTable
table = vtkTable()
for name, count in (("A", 2), ("B", 3)):
    array = vtkDoubleArray()
    array.SetName(name)
    array.SetNumberOfComponents(count)
    array.SetNumberOfTuples(2)
    array.Fill(1)
    table.AddColumn(array)
    output.VTKObject.GetFieldData().AddArray(array)
output.VTKObject.SetBlock(0, table)
"""
        source.UpdatePipeline()
        filters = ("AttentionTorus", "AttentionMap", "TransformerRecorder")
        # Models that users make have no format; what they lack is left to the filter.
        self.assertEqual([atlastest.takes("filters", name, source) for name in filters], [True, False, False])
        self.assertTrue(atlastest.takes("writers", "AttentionOnlyModelWriter", source))
        self.assertFalse(atlastest.takes("writers", "RecordingWriter", source))
        simple.AttentionTorus(Input=source).UpdatePipeline()
        self.assert_one_error("input model: ")
        format = """
array = vtkStringArray()
array.SetName("Format")
array.InsertNextValue("attention-atlas.recording")
output.VTKObject.GetFieldData().AddArray(array)
"""
        source.Script = source.Script + format
        source.UpdatePipeline()
        self.assertEqual([atlastest.takes("filters", name, source) for name in filters], [False, True, False])
        self.assertFalse(atlastest.takes("writers", "AttentionOnlyModelWriter", source))

    def test_scripts_are_told_of_wrong_data(self):
        sources = self.sources()
        for source in sources.values():
            source.UpdatePipeline()
        filters = {
            "attention-only": simple.TokenPairs,
            "recording": simple.AttentionMap,
            "transformer": simple.TransformerRecorder,
        }
        for wanted, create in filters.items():
            for found, source in sources.items():
                if found != wanted:
                    create(Input=source).UpdatePipeline()
                    self.assert_one_error(f"'{PREFIX}{wanted}', found '{PREFIX}{found}'; give the")

    def test_no_filter_counts_components_to_tell_data_apart(self):
        """Only filters of any vectors ask for arrays of three components."""
        found = []
        for path in sorted((atlastest.SOURCE / "XML").glob("*.xml")):
            for proxy in ElementTree.parse(path).getroot().iter("SourceProxy"):
                for domain in proxy.iter("InputArrayDomain"):
                    found.append((proxy.get("name"), domain.get("name")))
        expected = [("SummableColors", "input_vectors"), ("TorusDeformation", "input_vectors")]
        self.assertEqual(sorted(found), expected)


if __name__ == "__main__":
    atlastest.main()
