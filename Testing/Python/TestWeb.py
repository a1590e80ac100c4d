"""Web pages: one file without a network, whose data are those of the filters, and which no token can change."""

import base64
import contextlib
import hashlib
import io
import json
import pathlib
import re
import textwrap

import atlastest
import numpy
from atlastest import AtlasTest
from attentionatlas import display, scene, web
from attentionatlas._internal import data
from attentionatlas import Missing
from paraview import servermanager, simple
from randomrecording import TOKENS, write_recording
from vtkmodules.util.numpy_support import vtk_to_numpy
from webpages import Page, pair_angles

#: Texts that would end an element or run, if they were not escaped.
HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&lt;", '"onload="', "<!--", "@@title@@"]
SETTINGS = {"Method": "TSNE", "Perplexity": 10, "Iterations": 100}


def read(scenes, **options):
    return Page(web.page(scenes, **options).html())


def elevation_of(source):
    """The heights of a sphere. ParaView 6.1 has no defaults for the ends."""
    return simple.Elevation(Input=source, LowPoint=[0, 0, -0.5], HighPoint=[0, 0, 0.5])


class WebPages(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.recording = write_recording(atlastest.OUTPUT / "random.safetensors")

    def test_torus(self):
        """The map is the chart of the filter, and a dot lies at each pair of tokens."""
        page = read(web.torus(atlastest.TRAINED, size=48))
        (image,), (pairs,) = page.parts("image"), page.parts("discs")
        self.assertEqual(image["dimensions"], [48, 48])
        steps = [image["origin"][i] + image["spacing"][i] * numpy.arange(48) for i in range(2)]
        numpy.testing.assert_allclose(steps, [numpy.linspace(-numpy.pi, numpy.pi, 48)] * 2, atol=1e-6)
        quantities = ["Class", "Probability", "ClassColor"]
        chart = simple.AttentionTorus(Input=atlastest.read_model(), Resolution=[48, 48], Quantities=quantities)
        shown = [page.values(values) for values in (*map(image["pointArrays"].get, quantities[:2]), image["colors"])]
        for found, name in zip(shown, quantities):
            expected = vtk_to_numpy(data.fetch(chart).GetPointData().GetArray(name))
            numpy.testing.assert_array_equal(found.reshape(expected.shape), expected)

        numpy.testing.assert_allclose(page.values(pairs["points"])[:, :2], pair_angles(), atol=1e-6)
        tensors, _ = atlastest.read_safetensors(atlastest.TRAINED)
        expected = numpy.array(atlastest.PALETTE)[tensors["next_token"].ravel()]
        numpy.testing.assert_array_equal(page.values(pairs["pointColors"]), expected)
        self.assertTrue(page.scenes[0]["isFlat"])
        (legend,) = page.scenes[0]["legends"]
        self.assertEqual(legend["entries"], [[str(i), color] for i, color in enumerate(atlastest.PALETTE)])

    def test_deformed_torus(self):
        """Points, faces and colors are those of the filter."""
        page = read(web.deformed_torus(atlastest.TRAINED, size=40))
        (surface,) = page.parts("mesh")
        model = atlastest.read_model()
        chart = simple.AttentionTorus(Input=model, Resolution=[40, 40], Quantities=["ClassColor", "Output"])
        moved = simple.TorusDeformation(Input=chart, Shape="Vectors", Vectors=["POINTS", "Output"], Normalization="PerAxis")
        expected = data.fetch(moved)
        numpy.testing.assert_array_equal(page.values(surface["points"]), data.points(expected).astype(numpy.float32))
        colors = vtk_to_numpy(expected.GetPointData().GetArray("ClassColor"))
        numpy.testing.assert_array_equal(page.values(surface["pointColors"]), colors)
        faces = surface["polys"]
        self.assertEqual((faces["count"], faces["size"]), (expected.GetNumberOfPolys(), 4))
        connectivity = vtk_to_numpy(expected.GetPolys().GetConnectivityArray())
        numpy.testing.assert_array_equal(page.values(faces["points"])[:, 0], connectivity)
        normals = vtk_to_numpy(expected.GetPointData().GetNormals() or expected.GetPointData().GetArray("Normals"))
        numpy.testing.assert_allclose(page.values(surface["normals"]) / 127, normals, atol=0.5 / 127 + 1e-6)
        self.assertEqual(page.parts("discs")[0]["points"]["count"], 25)
        self.assertFalse(page.scenes[0]["isFlat"])
        self.assertEqual([part["name"] for part in page.scenes[0]["parts"]], ["Torus Deformation", "Token Pairs"])

    def test_sphere(self):
        """All points lie on the unit sphere, and each face has the class whose logit is largest there."""
        page = read(web.sphere(atlastest.TRAINED))
        surface = next(part for part in page.parts("mesh") if "polys" in part)
        places = page.values(surface["points"])
        radius = numpy.linalg.norm(places, axis=1)
        numpy.testing.assert_allclose(radius, radius[0], atol=1e-5)
        offsets = page.values(surface["polys"]["offsets"])[:, 0]
        points = page.values(surface["polys"]["points"])[:, 0]
        middle = numpy.array([places[points[a:b]].mean(axis=0) for a, b in zip(offsets[:-1], offsets[1:])])
        tensors, _ = atlastest.read_safetensors(atlastest.TRAINED)
        classes = (middle @ tensors["unembedding"].T).argmax(axis=1)
        found = page.values(surface["cellArrays"]["Class"])[:, 0]
        self.assertGreater((found == classes).mean(), 0.999)
        numpy.testing.assert_array_equal(page.values(surface["cellColors"]), numpy.array(atlastest.PALETTE)[found])

    def test_sentence(self):
        page = read(web.sentence(self.recording, layer=1, head=2))
        lines = next(part for part in page.parts("mesh") if "lines" in part)
        reader = atlastest.read_recording(self.recording)
        expected = data.fetch(simple.AttentionSentence(Input=reader, Layer=1, Head=2)).GetCellData()
        for name in ("Query", "Key", "Weight"):
            found = page.values(lines["cellArrays"][name])[:, 0]
            numpy.testing.assert_array_equal(found, vtk_to_numpy(expected.GetArray(name)))
        widths = page.values(lines["lines"]["widths"])[:, 0]
        self.assertTrue((numpy.diff(widths[numpy.argsort(found)]) >= 0).all())
        words = next(part for part in page.parts("dots") if part.get("labels"))
        self.assertEqual(sorted(page.values(words["labels"]["names"])), sorted(2 * TOKENS[:10]))
        self.assertEqual(words["search"], ["Token"])

    def test_map(self):
        """A pixel names its query, its key and its weight."""
        page = read(web.attention_map(self.recording, layer=0, head=1))
        (image,) = page.parts("image")
        reader = atlastest.read_recording(self.recording)
        expected = data.fetch(simple.AttentionMap(Input=reader, Layer=0, Head=1)).GetPointData().GetArray("Weights")
        numpy.testing.assert_array_equal(page.values(image["pointArrays"]["Weights"])[:, 0], vtk_to_numpy(expected))
        self.assertEqual(page.values(image["pointArrays"]["Query"])[::10], TOKENS[9::-1])
        self.assertEqual(page.values(image["pointArrays"]["Key"])[:10], TOKENS[:10])

    def write_attention(self, name, tokens, attention):
        """A recording of one text and the weights of its heads, [layers, heads, queries, keys]."""
        path = atlastest.OUTPUT / f"{name}.safetensors"
        numbers = numpy.array([tokens.index(token) for token in tokens], numpy.int32)
        tensors = {"attention": numpy.asarray(attention, numpy.float32), "token_ids": numpy.int64(numbers)}
        atlastest.write_safetensors(path, tensors, {"tokens": json.dumps(tokens)})
        return path

    def test_first_head(self):
        """That which attends most to what came after the same token, in a text that repeats one, or else to the token
        before, or else to the first."""
        even = numpy.tri(8) / numpy.tri(8).sum(axis=1, keepdims=True)
        before, first, induction = numpy.eye(8, k=-1), numpy.zeros((8, 8)), numpy.eye(8)
        before[0, 0] = first[:, 0] = 1
        for query in range(4, 8):  # the token was at query - 4
            induction[query, [query, query - 3]] = 0.25, 0.75
        repeated, different = list("abcdabcd"), list("abcdefgh")
        for tokens, heads, place, reason in (
            (repeated, [[even, before], [induction, first]], (1, 0), "what came after earlier copies of the same token (0.75)"),
            (different, [[even, first], [induction, before]], (1, 1), "the token before (1.00)"),
            (different, [[even, first]], (0, 1), "the first token (1.00)"),
        ):
            path = self.write_attention("first", tokens, heads)
            for make in (web.attention_map, web.sentence):
                made = make(path)
                self.assertTrue(made.title.endswith(": layer {}, head {}".format(*place)), made.title)
                says = "Head {}.{} is shown first: of all heads it attends most to ".format(*place)
                self.assertTrue(made.caption.endswith(f"{says}{reason}."), made.caption)
                asked = make(path, head=0)
                self.assertTrue(asked.title.endswith(": layer 0, head 0"))
                self.assertNotIn("shown first", asked.caption)

    def test_all_heads(self):
        """The page of a recording has each head with its own weights and legend. What heads share is there once."""
        output = atlastest.OUTPUT / "heads.html"
        web.main([str(atlastest.RECORDING), "--only", "map,sentence", "-o", str(output)])
        page = Page(output.read_text(encoding="utf-8"))
        tensors, _ = atlastest.read_safetensors(atlastest.RECORDING)
        attention = tensors["attention"]
        before = numpy.trace(attention.astype(float), offset=-1, axis1=2, axis2=3) / 5  # of five queries with a token before
        first = numpy.unravel_index(before.argmax(), before.shape)
        places = []
        for scene in page.scenes:
            self.assertIn(f"the token before ({before.max():.2f})", scene["caption"])
            heads = {(of.pop("layer"), of.pop("head")): of or scene for of in scene["heads"]}
            self.assertEqual(list(heads), list(numpy.ndindex(12, 12)))
            self.assertIs(heads[first], scene)
            for (layer, head), shown in heads.items():
                self.assertTrue(shown["title"].endswith(f": layer {layer}, head {head}"))
                part = shown["parts"][0]
                if part["kind"] == "image":
                    weights = page.values(part["pointArrays"]["Weights"]).reshape(6, 6)[::-1]
                    places.append((part["pointArrays"]["Key"]["at"], part["pointArrays"]["Query"]["at"]))
                else:
                    ends = [page.values(part["cellArrays"][name])[:, 0] for name in ("Query", "Key", "Weight")]
                    weights = numpy.zeros((6, 6))
                    weights[ends[0], ends[1]] = ends[2]
                    self.assertFalse(shown["legends"])  # the title says which head
                    tokens = json.loads(atlastest.read_safetensors(atlastest.RECORDING)[1]["tokens"])
                    for name, numbers in zip(("Query Token", "Key Token"), ends):
                        self.assertEqual(page.values(part["cellArrays"][name]), [tokens[i] for i in numbers])
                numpy.testing.assert_array_equal(weights, attention[layer, head].astype(numpy.float32))
        self.assertEqual(len(set(places)), 1)

    def test_room_of_heads(self):
        """A page has as many heads as have room, those with most to see, and says how many."""
        odds = numpy.random.default_rng(0).random((2, 3, 200, 200)) * numpy.tri(200)
        attention = odds / odds.sum(axis=-1, keepdims=True)
        path = self.write_attention("room", [f" {i}" for i in range(200)], attention)
        made = web.attention_map(path, all_heads=True, megabytes=2)
        count = len(made.heads)
        self.assertTrue(1 < count < 6, count)
        before = numpy.trace(attention, offset=-1, axis1=2, axis2=3) / attention[:, :, 1:].sum(axis=(2, 3))
        sink = attention[:, :, 1:, 0].mean(axis=-1)
        score = before if before.max() > sink.max() else sink
        expected = sorted(zip(*numpy.unravel_index(numpy.argsort(-score, axis=None)[:count], score.shape)))
        self.assertEqual(list(made.heads), expected)
        self.assertTrue(made.caption.endswith(f" The list has {count} of 6 heads; 2 MB has no room for more."))
        text = web.page(made).html()
        self.assertLess(len(text) - len(Page(text).code), 2e6)
        self.assertEqual(web.attention_map(path).heads, {})
        long = self.write_attention("long", [f" {i}" for i in range(1100)], numpy.tile(numpy.eye(1100), (1, 2, 1, 1)))
        made = web.attention_map(long, all_heads=True)
        self.assertEqual(made.heads, {})
        self.assertIn("Of a text this long the page has one head.", made.caption)

    def test_embedding(self):
        """Points and texts are those of the filter, in the plane and in space."""
        for dimensions in (2, 3):
            page = read(web.head_embedding(self.recording, 1, 2, dimensions, **SETTINGS))
            (points,) = page.parts("dots")
            reader = atlastest.read_recording(self.recording)
            expected = data.fetch(simple.HeadEmbedding(Input=reader, Layer=1, Head=2, Dimensions=dimensions, **SETTINGS))
            self.assertEqual(points["points"]["count"], 2 * len(TOKENS))
            numpy.testing.assert_array_equal(page.values(points["points"]), data.points(expected).astype(numpy.float32))
            self.assertEqual(page.values(points["pointArrays"]["Token"]), 2 * TOKENS)
            self.assertEqual(page.scenes[0]["isFlat"], dimensions == 2)
            self.assertEqual(page.scenes[0]["legends"][0]["title"], "Kind and position")

    def test_composition(self):
        folder = atlastest.DATA / "models" / "induction"
        page = read(web.composition(folder / "config.json", "V"))
        heads = next(part for part in page.parts("dots") if part.get("labels"))
        names = [f"{layer}.{head}" for layer in range(2) for head in range(8)]
        self.assertEqual(page.values(heads["pointArrays"]["Head Name"]), names)
        (lines,) = page.parts("mesh")
        reader = simple.TransformerReader(FileName=str(folder / "config.json"))
        graph = simple.HeadComposition(Input=reader, Kind="V")
        graph.UpdatePipeline(max(reader.TimestepValues))  # the trained model
        expected = servermanager.Fetch(graph)
        self.assertEqual(lines["lines"]["count"], expected.GetNumberOfLines())
        scores = vtk_to_numpy(expected.GetCellData().GetArray("Score"))
        numpy.testing.assert_allclose(page.values(lines["cellArrays"]["Score"])[:, 0], scores, rtol=1e-6)

    def test_corpus(self):
        """Heads with all of their statistics and a legend of clusters; words and marks of the texts of one of them."""
        path = atlastest.DATA / "corpus" / "language-2.safetensors"
        corpus = simple.CorpusReader(FileName=str(path))
        page = read(web.scatter(path, x="Entropy", y="Mean Distance", clusters=3))
        discs = next(part for part in page.parts("mesh") if "Cluster" in part.get("cellArrays", {}))
        expected = servermanager.Fetch(simple.HeadScatter(Input=corpus, Clusters=3)).GetCellData()
        for name in ("Cluster", "Copying", "Median Entropy"):
            found = numpy.ravel(page.values(discs["cellArrays"][name]))
            numpy.testing.assert_allclose(found, vtk_to_numpy(expected.GetArray(name)), rtol=1e-6)
        (legend,) = page.scenes[0]["legends"]
        self.assertEqual(legend["title"], "Cluster: heads")
        self.assertEqual(len(legend["entries"]), 3)
        labels = next(part for part in page.parts("dots") if part.get("labels"))
        self.assertIn("Mean Distance (tokens)", page.values(labels["pointArrays"]["Token"]))
        texts = simple.TopContexts(Input=corpus, Layer=1, Head=5, Measure="Score", Top=3)
        texts.UpdatePipeline()
        page = read(web.contexts(path, 1, 5, measure="Score", top=3))
        self.assertEqual(page.scenes[0]["title"], "Top contexts: layer 1, head 5")
        words = next(part for part in page.parts("dots") if part.get("labels"))
        expected = servermanager.Fetch(texts, idx=1).GetPointData().GetAbstractArray("Token")
        self.assertEqual(
            page.values(words["pointArrays"]["Token"]), [expected.GetValue(i) for i in range(expected.GetNumberOfValues())]
        )
        self.assert_raise(
            (lambda: web.scatter(path, x="Love"), "x: expected one of|x_column|XColumn"),
            (lambda: web.contexts(path, head="mean"), "texts are of a single head", Missing),
        )
        self.take_errors()

    def test_corpus_of_all_heads(self):
        """Each head has its own texts and tables, those of the filters; the first one is that which was asked for."""
        path = atlastest.DATA / "corpus" / "language-2.safetensors"
        corpus = simple.CorpusReader(FileName=str(path))
        output = atlastest.OUTPUT / "corpus.html"
        web.main([str(path), "--layer", "1", "--head", "5", "--only", "contexts", "-o", str(output)])
        page = Page(output.read_text(encoding="utf-8"))
        (scene,) = page.scenes
        heads = {(of.pop("layer"), of.pop("head")): of or scene for of in scene["heads"]}
        self.assertEqual(list(heads), [(layer, head) for layer in range(2) for head in range(8)])
        self.assertIs(heads[1, 5], scene)
        for layer, head in ((1, 5), (0, 3), (1, 0)):
            shown, place = heads[layer, head], {"Input": corpus, "Layer": layer, "Head": head}
            self.assertEqual(shown["title"], f"Top contexts: layer {layer}, head {head}")
            texts = simple.TopContexts(**place)
            texts.UpdatePipeline()
            expected = servermanager.Fetch(texts, idx=1)
            words = next(part for part in shown["parts"] if part.get("labels"))
            numpy.testing.assert_array_equal(page.values(words["points"]), data.points(expected).astype(numpy.float32))
            found = page.values(words["pointArrays"]["Token"])
            self.assertEqual(found, data.texts(expected.GetPointData().GetAbstractArray("Token")))
            parts = simple.ScoreParts(**place)
            tables = {
                "Head Token Table": data.table(simple.HeadTokenTable(Top=50, **place)),
                "Score Parts": data.table(parts),
                "Ends of Score Parts": data.table(simple.ScoreParts(Parts=4, Ends=5, **place), 1),
            }
            self.assertEqual([table["name"] for table in shown["tables"]], list(tables))
            for table, columns in zip(shown["tables"], tables.values()):
                self.assertEqual(list(table["arrays"]), list(columns))
                for name, values in columns.items():
                    found = page.values(table["arrays"][name])
                    self.assertEqual(table["count"], len(values))
                    if isinstance(values, list):
                        self.assertEqual(found, values)
                    else:
                        numpy.testing.assert_allclose(found[:, 0], values, rtol=1e-6)
        # One head alone has its tables, too.
        alone = read(web.contexts(path, 0, 3)).scenes[0]
        self.assertNotIn("heads", alone)
        self.assertEqual([table["name"] for table in alone["tables"]], list(tables))

    def test_no_network(self):
        """No element names another file, and the policy allows just the script and the style in the page."""
        text = web.page(web.torus(atlastest.TRAINED, size=8)).html()
        page = Page(text)
        for tag, attributes in page.elements:
            for name in ("src", "href", "action", "data", "poster", "style", "srcset"):
                self.assertNotIn(name, attributes, tag)
            self.assertFalse([name for name in attributes if name.startswith("on")], tag)
        self.assertNotRegex(page.style, r"url\(|@import")
        policy = next(a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a)
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        hashes = {
            name: base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            for name, content in (("script-src", page.code), ("style-src", page.style))
        }
        self.assertEqual(rules["default-src"], "'none'")
        self.assertNotIn("connect-src", rules)
        for name, value in hashes.items():
            self.assertEqual(rules[name], f"'sha256-{value}'")

    def test_hostile_tokens(self):
        """No text of a user becomes an element; all come back as they are."""
        tokens = (HOSTILE * 5)[:30]
        path = write_recording(atlastest.OUTPUT / "hostile.safetensors", tokens)
        plain = read(web.sentence(self.recording, layer=0, head=0))
        made = web.sentence(path, layer=0, head=0)
        made.title = made.caption = HOSTILE[0]
        page = read(made, title=HOSTILE[1])
        self.assertEqual(page.tags(), plain.tags())
        self.assertEqual(len(page.scripts), 3)
        words = next(part for part in page.parts("dots") if part.get("labels"))
        self.assertEqual(set(page.values(words["pointArrays"]["Token"])), set(HOSTILE))
        self.assertEqual(page.scenes[0]["title"], HOSTILE[0])
        frame = web.page(made, title=HOSTILE[1])._repr_html_()
        self.assertEqual(frame.count("<"), 2)  # that of the frame, and of its end

    def test_any_view(self):
        """What a view shows of a source that is not ours: its colors as ParaView maps them, its place and its faces."""
        view = simple.CreateRenderView()
        sphere = simple.Sphere(ThetaResolution=12, PhiResolution=8, registrationName="Ball")
        elevation = elevation_of(sphere)
        shown = simple.Show(elevation, view)
        setattr(shown, "Translation" if shown.GetProperty("Translation") else "Position", [2, 0, 0])  # since 6.0
        simple.ColorBy(shown, ("POINTS", "Elevation"))
        table = simple.GetColorTransferFunction("Elevation")
        table.RGBPoints = [0, 0, 0, 1, 1, 1, 0, 0]
        table.ColorSpace = "RGB"
        edges = simple.Show(simple.Wavelet(WholeExtent=[0, 1, 0, 1, 0, 1], registrationName="Box"), view)
        edges.Representation = "Outline"
        page = read(web.from_view(view, "View", "Text"))
        ball, box = page.parts("mesh")
        expected = data.fetch(elevation)
        places = data.points(expected)
        numpy.testing.assert_allclose(page.values(ball["points"]), places + [2, 0, 0], atol=1e-6)
        share = places[:, 2] + 0.5
        colors = 255 * numpy.column_stack([share, 0 * share, 1 - share])
        self.assertLessEqual(numpy.abs(page.values(ball["pointColors"]) - colors).max(), 1.5)
        self.assertEqual(ball["polys"]["count"], expected.GetNumberOfPolys())
        self.assertEqual((box["points"]["count"], box["lines"]["count"], box["name"]), (8, 12, "Box"))
        self.assertEqual((page.scenes[0]["title"], page.scenes[0]["caption"]), ("View", "Text"))
        (legend,) = page.scenes[0]["legends"]
        self.assertEqual(legend["title"], "Elevation")
        self.assertEqual([legend["ramp"][0], legend["ramp"][-1]], [[0, 0, 255], [255, 0, 0]])

    def test_active_objects_stay(self):
        view, source = simple.CreateRenderView(), simple.Sphere()
        web.sphere(atlastest.TRAINED)
        self.assertEqual(simple.GetActiveView(), view)
        self.assertEqual(simple.GetActiveSource(), source)
        self.assertEqual(len(simple.GetSources()), 1)

    def session(self):
        """The color maps with all their values, the time, and the active objects."""
        manager = servermanager.ProxyManager()
        found = {"time": simple.GetAnimationScene().AnimationTime}
        found["active"] = (simple.GetActiveView(), simple.GetActiveSource())
        for group in ("lookup_tables", "piecewise_functions", "transfer_2d_functions"):
            for key, proxy in manager.GetProxiesInGroup(group).items():
                properties = {name: proxy.GetProperty(name) for name in proxy.ListProperties()}
                vectors = {n: p for n, p in properties.items() if p.SMProperty.IsA("vtkSMVectorProperty")}
                found[(group, *key)] = {name: str(p.GetData()) for name, p in vectors.items()}
        return found

    def test_session_stays(self):
        """Color maps that a user has set, the time and the active objects are the same after scenes and pictures."""
        ball = elevation_of(simple.Sphere())
        view = simple.CreateRenderView()
        shown = simple.Show(ball, view)
        simple.ColorBy(shown, ("POINTS", "Elevation"))
        for name in ("Elevation", "HeadColor", "CompositionColor", "Weight", "Score"):
            table = simple.GetColorTransferFunction(name)
            table.RGBPoints = [0.4, 0, 0, 1, 0.45, 1, 0, 0]
            table.ScalarRangeInitialized = 1
            simple.GetOpacityTransferFunction(name).Points = [0.4, 0.2, 0.5, 0, 0.45, 1, 0.5, 0]
        reader = atlastest.read_recording(self.recording)
        words = simple.AttentionSentence(Input=reader)
        config = str(atlastest.DATA / "models" / "induction" / "config.json")
        graph = simple.HeadComposition(Input=simple.TransformerReader(FileName=config))
        simple.GetAnimationScene().AnimationTime = 0.5
        simple.SetActiveSource(ball)
        before = self.session()
        for make in (
            lambda: web.sentence(self.recording),
            lambda: web.sentence(reader),
            lambda: web.composition(config),
            lambda: web.torus(atlastest.TRAINED, size=8),
            lambda: display(ball, 64, 64),
            lambda: display(words, 64, 64),
            lambda: display(graph, 64, 64),
        ):
            make()
            self.assertEqual(self.session(), before)

    def test_command_line(self):
        page = atlastest.OUTPUT / "page.html"
        page.unlink(missing_ok=True)
        files = [atlastest.TRAINED, atlastest.RECORDING, atlastest.DATA / "models" / "induction"]
        only = "torus,sentence,embedding,composition"
        web.main([*map(str, files), "-o", str(page), "--only", only, "--size", "16", "--title", "A title", "--theme", "dark"])
        found = Page(page.read_text(encoding="utf-8"))
        titles = [made["title"] for made in found.scenes]
        expected = [
            "trained-n5-h3: Torus", "gpt2-data-visualization: Sentence: layer 4, head 11",
            "induction: K-composition of heads",
        ]
        self.assertEqual(titles, expected)  # the recording has no queries, so no embedding
        self.assertEqual(dict(found.elements)["html"]["data-theme"], "dark")
        self.assertIn("<title>A title</title>", page.read_text(encoding="utf-8"))

    def test_state(self):
        """The views of a ParaView state."""
        state, page = atlastest.OUTPUT / "web.pvsm", atlastest.OUTPUT / "state.html"
        self.addCleanup(scene.clear)
        scene.save(atlastest.TRAINED, state)
        web.main([str(state), "-o", str(page)])
        found = Page(page.read_text(encoding="utf-8"))
        self.assertEqual([made["isFlat"] for made in found.scenes], [True, False, False])
        for number in range(3):
            self.assertIn(25, [part["points"]["count"] for part in found.parts("discs", number)])

    def test_written_whole_or_not_at_all(self):
        folder = atlastest.OUTPUT / "whole"
        folder.mkdir(exist_ok=True)
        path = folder / "page.html"
        path.write_text("before")
        broken = web.torus(atlastest.TRAINED, size=8)
        broken.camera["parallelScale"] = float("nan")  # has no JSON
        with self.assertRaises(ValueError):
            web.page(broken, path)
        self.assertEqual(path.read_text(), "before")
        self.assertEqual(sorted(p.name for p in folder.iterdir()), ["page.html"])
        web.page(web.torus(atlastest.TRAINED, size=8), path)
        self.assertEqual(sorted(p.name for p in folder.iterdir()), ["page.html"])
        self.assertEqual(len(Page(path.read_text(encoding="utf-8")).scenes), 1)

    def test_bad_input(self):
        induction = atlastest.DATA / "models" / "induction" / "config.json"
        state = atlastest.OUTPUT / "broken.pvsm"
        state.write_text("rubbish")
        out = ["-o", atlastest.OUTPUT / "bad.html"]

        def command(*arguments):
            return lambda: web.main([str(argument) for argument in [*arguments, *([] if "-o" in arguments else out)]])

        self.assert_raise(
            (command("missing.safetensors"), "^missing.safetensors: no such file.$"),
            (command(atlastest.TRAINED, "--only", "donut"), "expected one of torus, deformed-torus"),
            # Found before a file is read.
            (command("missing", "-o", "page.txt"), "page.txt: expected a name that ends with .html"),
            (command("missing", "-o", "nodir/page.html"), "nodir/page.html: expected a file in a folder"),
            (command("missing", "--method", "foo"), "method: expected one of PCA, TSNE, UMAP; found 'foo'"),
            (command("missing", "--method", "umap"), "no such file"),
            (command(state), "broken.pvsm: expected a ParaView state, found no XML"),
            (command(atlastest.TRAINED, "--size", 1), "size: expected 2 to 4096, found 1"),
            (command(atlastest.TRAINED, "--only", "map"), "no scene named map"),
            (command(atlastest.RECORDING, "--only", "embedding"), "holds no queries"),
            (command(induction, "--kind", "Z"), "kind: expected Q or K or V, found 'Z'"),
            (command(atlastest.RECORDING, "--only", "sentence", "--head", 99), "head: expected 0 to 11, found 99"),
            (command(atlastest.RECORDING, "--only", "sentence", "--sequence", 7), "sequence: expected 0 to 0, found 7"),
            kind=SystemExit,
        )
        self.assertFalse((atlastest.OUTPUT / "bad.html").exists())
        self.assertEqual(self.take_errors(), [])
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
            web.main([str(atlastest.RECORDING), "--head", "twelve"])
        self.assertIn("argument --head: expected a number or mean, found 'twelve'.", said.getvalue())

        self.assert_raise(
            (lambda: web.from_view(None), "expected a render view, found no view"),
            (lambda: web.from_view("x"), "expected a render view, found str"),
            (lambda: web.from_view(self.view_of(simple.HyperTreeGridRandom())), "points, found vtkHyperTreeGrid"),
            (self.cells_at_points, "expected colors of points, found those of cells"),
            (self.no_number, "Broken: expected finite coordinates, found NaN"),
            (lambda: web.from_view(simple.CreateView("SpreadSheetView")), "a render view, found SpreadSheetView"),
            (lambda: web.from_view(simple.CreateRenderView()), "expected a visible representation"),
            (lambda: web.page(web.torus(atlastest.TRAINED, size=8), theme="blue"), "system, light, dark, found 'blue'"),
            (lambda: web.page([]), "expected at least one scene, found none"),
            (lambda: web.head_embedding(self.recording, dimensions=4), "dimensions: expected 2 or 3, found 4"),
            (lambda: web.from_view(self.view_of(simple.Wavelet(WholeExtent=3 * [0, 2]), "Volume")), "found Volume"),
            (lambda: web.head_embedding(atlastest.RECORDING), "", Missing),
        )

    def view_of(self, source, kind="Surface", **properties):
        view = simple.CreateRenderView(**properties)
        simple.Show(source, view).Representation = kind
        return view

    def cells_at_points(self):
        cells = simple.PointDatatoCellData(Input=elevation_of(simple.Sphere()))
        view = self.view_of(cells, "Points")
        simple.ColorBy(simple.GetDisplayProperties(cells, view), ("CELLS", "Elevation"))
        web.from_view(view)

    def no_number(self):
        script = """
            from vtkmodules.vtkCommonCore import vtkPoints
            points = vtkPoints()
            points.InsertNextPoint(0, 0, 0)
            points.InsertNextPoint(float("nan"), 1, 0)
            self.GetOutput().SetPoints(points)
            self.GetOutput().Allocate(1)
            self.GetOutput().InsertNextCell(1, 1, [0])
        """
        broken = simple.ProgrammableSource(
            registrationName="Broken", OutputDataSetType="vtkPolyData", Script=textwrap.dedent(script)
        )
        web.from_view(self.view_of(broken, InteractionMode="2D"))

    def test_kinds_of_data(self):
        """Corners of composite data as an outline, all points of an image, points without texts."""
        image = simple.Wavelet(WholeExtent=[0, 3, 0, 3, 0, 3])
        group = simple.GroupDatasets(Input=[image, simple.Wavelet(WholeExtent=[5, 6, 0, 1, 0, 1])])
        (outline,) = web.from_view(self.view_of(group, "Outline")).parts
        self.assertNotIn("polys", outline)
        (spots,) = web.from_view(self.view_of(image, "Point Gaussian")).parts
        self.assertEqual(len(spots["points"]), 64)
        (dots,) = web.from_view(self.view_of(simple.Sphere(), "Points")).parts
        self.assertGreater(dots["size"], 0)

    def test_flat_views(self):
        """A plane far from z = 0 is seen from above; a view along x stays one along x."""
        plane = simple.Plane(Origin=[0, 0, 50], Point1=[1, 0, 50], Point2=[0, 1, 50])
        made = web.from_view(self.view_of(plane, InteractionMode="2D"))
        self.assertTrue(made.is_flat)
        self.assertEqual(made.camera["focalPoint"], [0.5, 0.5, 50])
        self.assertEqual(made.camera["position"], [0.5, 0.5, 55])
        view = self.view_of(plane, InteractionMode="2D")
        view.CameraPosition, view.CameraFocalPoint, view.CameraViewUp = [5, 0, 50], [0, 0, 50], [0, 0, 1]
        made = web.from_view(view)
        self.assertFalse(made.is_flat)
        self.assertTrue(made.camera["isParallel"])
        self.assertEqual(made.camera["position"], [5, 0, 50])

    def test_views_without_data(self):
        """A view that shows only a text is left out."""
        for view in simple.GetRenderViews():
            simple.Delete(view)
        self.view_of(simple.Sphere())
        simple.Show(simple.Text(Text="Text"), simple.CreateRenderView())
        self.assertEqual([made.title for made in web.scenes()], ["View 1"])

    def test_script_is_that_of_its_sources(self):
        """The script was made of these sources and of the pinned packages, whose licenses are beside it."""
        folder = pathlib.Path(web.__file__).with_name("assets")
        licenses = (folder / "page.min.js.LICENSES.txt").read_text()
        lock = json.loads((atlastest.SOURCE / "Plugin" / "web" / "package-lock.json").read_text())
        found = dict(re.findall(r"^---- (\S+) (\S+) \(", licenses, re.M))
        self.assertIn("@kitware/vtk.js", found)
        for name, version in found.items():
            self.assertEqual(lock["packages"][f"node_modules/{name}"]["version"], version)
        hashes = dict(re.findall(r"^SHA-256 of (.*): ([0-9a-f]{64})$", licenses, re.M))
        sources = hashlib.sha256()
        root = atlastest.SOURCE / "Plugin" / "web"
        for path in [*sorted(root.iterdir()), *sorted((root / "article").iterdir())]:
            if path.suffix == ".js" or path.name in ("build.mjs", "package.json", "package-lock.json"):
                sources.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
        self.assertEqual(hashes["their sources"], sources.hexdigest())
        for name in ("page.min.js", "article.min.js"):
            self.assertEqual(hashes[name], hashlib.sha256((folder / name).read_bytes()).hexdigest())
        self.assertIn("Redistribution and use in source and binary forms", licenses)
        self.assertLess((folder / "page.min.js").stat().st_size, 1_000_000)
