"""Data say what they are, and filters take what is theirs."""

import atlastest
from atlastest import AtlasTest, read_transformer
from paraview import servermanager, simple

PREFIX = "attention-atlas."
LANGUAGE = atlastest.DATA / "models" / "language-2" / "config.json"


def format_of(source, port=0):
    """The format of an output, as the client knows it of any server."""
    source.UpdatePipeline()
    output = servermanager.OutputPort(source, port)
    array = output.GetDataInformation().DataInformation.GetArrayInformation("Format", 2)
    return array.GetStringValue(0) if array else None


class Formats(AtlasTest):
    def sources(self):
        """A source of each type of data that filters tell apart."""
        return {
            "attention-only": atlastest.read_model(),
            "recording": atlastest.read_recording(),
            "transformer": read_transformer("llama"),
        }

    def read_protein(self):
        return atlastest.read_recording(atlastest.DATA / "geometry" / "protein.safetensors")

    def corpus(self):
        model = simple.TransformerReader(FileName=str(LANGUAGE), Checkpoints=0)
        return simple.CorpusStatistics(Input=model, Files=[atlastest.write_prose()], TokenLimit=100)

    def assert_formats(self, *rows):
        """Expects the formats of the outputs of sources: rows of (source, name, name of each port's part or "")."""
        for source, name, *parts in rows:
            for port, part in enumerate(parts or [""]):
                expected = f"{PREFIX}{name}.{part}" if part else PREFIX + name
                self.assertEqual(format_of(source, port), expected, f"port {port}")

    def test_outputs_of_the_small_model(self):
        model = atlastest.read_model()
        training = simple.AttentionOnlyTraining(Steps=10, Runs=1)
        training.UpdatePipeline()
        torus = atlastest.torus(model)
        self.assert_formats(
            (model, "attention-only"),
            (torus, "attention-torus"),
            (simple.HarmonicHead(Resolution=[8, 8]), "harmonic-head"),
            (simple.TokenPairs(Input=model), "token-pairs"),
            (simple.ClassAreas(Input=model, Resolution=[8, 8]), "class-areas"),
            (simple.TorusDeformation(Input=torus), "torus-deformation"),
            (simple.ScoreHarmonics(Input=model), "score-harmonics"),
            (simple.HeadAccuracy(Input=model), "head-accuracy"),
            (simple.HeadAccuracySimplex(Input=model, Resolution=8), "head-accuracy-simplex", "", "corners"),
            (simple.UnembeddingSphere(Input=model, Resolution=16), "unembedding-sphere", "cells", "centres", "arcs"),
            (simple.WordCircle(Input=model), "word-circle", "tokens", "circle"),
            (training, "attention-only"),
        )
        for port, part in ((1, "training"), (2, "runs")):
            self.assertEqual(format_of(training, port), f"{PREFIX}attention-only-training.{part}")

    def test_outputs_of_transformers(self):
        model = read_transformer("gpt2")
        learning = simple.TransformerTraining(Steps=1)
        patching = {"Prompt": "1 2 3", "PatchFrom": "4 5 6", "Target": "#1", "Against": "#2"}
        self.assert_formats(
            (model, "transformer"),
            (learning, "transformer"),
            (simple.RandomPrompts(), "random-prompts"),
            (simple.ActivationPatching(Input=model, **patching), "activation-patching", "effects", "image"),
            (simple.AttributionPatching(Input=model, **patching), "attribution-patching", "graph", "nodes", "edges",
             "labels", "circuit"),
            (self.circuit(model, patching), "circuit", "graph", "nodes", "edges", "labels"),
            (simple.BigramTable(Input=model), "bigram-table"),
            (simple.HeadCircuit(Input=model), "head-circuit", "largest", "entries"),
            (simple.SkipTrigrams(Input=model), "skip-trigrams"),
            (simple.HeadComposition(Input=model), "head-composition", "graph", "pairs", "heads"),
            (simple.HeadSpectra(Input=model), "head-spectra", "spectra", "heads", "eigenvalues", "titles"),
            (simple.VirtualWeights(Input=model), "virtual-weights", "weights", "spectrum", "titles"),
        )
        self.assertEqual(format_of(learning, 1), PREFIX + "transformer-training.curves")
        protein = simple.TransformerReader(FileName=str(atlastest.DATA / "models" / "protein" / "config.json"))
        scan = simple.MutationScan(Input=protein, Protein="GFGP")
        self.assert_formats((scan, "mutation-scan", "effects", "image", "residues"))

    def circuit(self, model, patching):
        path = str(atlastest.OUTPUT / "formats.circuit")
        simple.SaveData(path, proxy=simple.AttributionPatching(Input=model, **patching))
        return simple.CircuitReader(FileName=path)

    def test_outputs_of_recordings(self):
        model = read_transformer("gpt2")
        run = simple.TransformerRecorder(Input=model, TokenIds="1 2 1 3", Record=atlastest.RECORD)
        routed = simple.TransformerRecorder(Input=read_transformer("mixtral"), TokenIds="1 2 3 4", Record=["Routing", "1"])
        embedding = simple.HeadEmbedding(Input=run, Method="PCA")
        tokens = simple.AttentionTokens(Input=run, Model=model)
        spatial = simple.SpatialAttention(
            Input=simple.BindTokens(Input=simple.Plane(), Recording=run, Method="Grid"), Recording=run
        )
        both = {"Input": run, "Model": model}
        self.assert_formats(
            (run, "recording"),
            (atlastest.read_recording(), "recording"),
            (simple.AttentionMap(Input=run), "attention-map"),
            (simple.AttentionMatrix(Input=run), "attention-matrix", "heads", "titles"),
            (simple.AttentionSentence(Input=run), "attention-sentence", "lines", "words", "bars"),
            (simple.HeadScores(Input=run), "head-scores", "heads", "image", "titles"),
            (simple.AttentionFocus(Input=run), "attention-focus", "focus", "sorted"),
            (simple.ScoreBreakdown(**both), "score-breakdown", "scores", "keys"),
            (simple.HeadUpdates(**both), "head-updates", "updates", "histograms", "positions", "layers"),
            (simple.LogitAttribution(**both), "logit-attribution", "terms", "image"),
            (
                simple.DictionaryFeatures(**both, DictionaryFile=atlastest.write_dictionary("blocks.1.attn.hook_z", 32)), "dictionary-features",
                "activations", "image", "heads", "logits", "contexts",
            ),
            (simple.LogitLens(**both), "logit-lens", "image", "tokens", "labels"),
            (simple.ScoreAttribution(**both), "score-attribution", "image", "pairs"),
            (simple.ExpertRouting(Input=routed), "expert-routing", "image", "loads", "tokens", "labels"),
            (simple.QueryKeyContrast(Input=run), "query-key-contrast", "points", "spectrum", "titles"),
            (simple.ContactMap(Input=self.read_protein()), "contact-map", "map", "pairs", "heads"),
            (tokens, "attention-tokens", "tokens", "cells", "frequencies", "unique", "labels"),
            (simple.SharedTokens(Input=tokens), "shared-tokens", "heads", "pairs", "labels"),
            (simple.AttentionTokenLayout(Input=tokens, Model=model), "attention-token-layout"),
            (embedding, "head-embedding", "points", "heads"),
            (simple.AttentionLines(Input=embedding, Recording=run), "attention-lines"),
            (
                simple.PatchAttention(Input=self.record_images()), "patch-attention",
                "patches", "arrows", "marks", "picture", "frames", "titles", "patches",
            ),
        )
        colors, search = simple.TokenColors(Input=embedding), simple.TokenSearch(Input=embedding, Text="1")
        for source, port, name in (
            (simple.AttentionMap(Input=run), 1, "strongest-keys"),
            (simple.AttentionMap(Input=run), 2, "attention-map.pictures"),
            (colors, 0, "head-embedding.points"),
            (colors, 1, "token-colors.legend"),
            (search, 0, "head-embedding.points"),
            (search, 1, "head-embedding.points"),
            (search, 2, "token-search.heads"),
            (spatial, 1, "spatial-attention.lines"),
            (spatial, 2, "spatial-attention.marks"),
            (spatial, 3, "spatial-attention.tokens"),
        ):
            self.assertEqual(format_of(source, port), PREFIX + name)

    def test_outputs_of_a_corpus(self):
        corpus = self.corpus()
        path = str(atlastest.OUTPUT / "corpus.safetensors")
        simple.SaveData(path, proxy=corpus)
        self.assert_formats(
            (corpus, "corpus"),
            (simple.CorpusReader(FileName=path), "corpus"),
            (simple.HeadTokenTable(Input=corpus), "head-token-table"),
            (simple.HeadScatter(Input=corpus), "head-scatter", "heads", "labels", "axes"),
            (simple.HeadHistogram(Input=corpus), "head-histogram", "counts", "quantiles"),
            (simple.TopContexts(Input=corpus), "top-contexts", "contexts", "words", "marks", "prompts", "marks"),
            (simple.ScoreParts(Input=corpus), "score-parts", "parts", "ends", "points"),
        )

    def test_filters_that_add_pass_it_on(self):
        torus = atlastest.torus(atlastest.read_model(), Quantities=["Output"])
        self.assertEqual(format_of(simple.SummableColors(Input=torus)), PREFIX + "attention-torus")
        contour = simple.Threshold(Input=torus, Scalars=["POINTS", "Output"])
        self.assertEqual(format_of(contour), PREFIX + "attention-torus")

    def test_filters_take_theirs(self):
        wanted = {
            "attention-only": "AttentionTorus HeadAccuracy AttentionOnlyModelWriter",
            "recording": "AttentionMap AttentionMatrix HeadScores HeadEmbedding AttentionFocus AttentionTokens ScoreBreakdown "
            "HeadUpdates LogitAttribution DictionaryFeatures LogitLens ScoreAttribution QueryKeyContrast ContactMap RecordingWriter",
            "transformer": "TransformerRecorder BigramTable HeadCircuit SkipTrigrams HeadComposition HeadSpectra "
            "VirtualWeights ActivationPatching AttributionPatching MutationScan CorpusStatistics",
            "corpus": "HeadScatter TopContexts HeadHistogram HeadTokenTable ScoreParts CorpusWriter",
        }
        for name, source in {**self.sources(), "corpus": self.corpus()}.items():
            source.UpdatePipeline()
            self.assertEqual(format_of(source), PREFIX + name)
            for mine, proxies in wanted.items():
                for proxy in proxies.split():
                    group = "writers" if proxy.endswith("Writer") else "filters"
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
        proxies = [proxy for proxy in atlastest.read_proxies().values() if proxy.tag == "SourceProxy"]
        found = [(proxy.get("name"), domain.get("name")) for proxy in proxies for domain in proxy.iter("InputArrayDomain")]
        expected = [("SummableColors", "input_vectors"), ("TorusDeformation", "input_vectors")]
        self.assertEqual(sorted(found), expected)
