"""What fails in Python raises an exception with the sentence of the filter, reader or writer, and displays nothing; words of
options are those of the property; files are opened by what is in them."""

import io
import pickle
import shutil
import struct
import zipfile

import attentionatlas as atlas
import atlastest
import numpy
from atlastest import AtlasTest, read_proxies
from attentionatlas._internal import errors, readers
from matplotlib.text import Text
from paraview import servermanager, simple

LANGUAGE = atlastest.DATA / "models" / "language-2"
#: Words of the panels of some properties, of which most are none of any other.
WORDS = ("all", "last", "mean", "strongest", "whole vocabulary", "pca", "chess")


class Errors(AtlasTest):
    def open(self, path, *arguments):
        opened = atlas.open(path, *arguments)
        self.addCleanup(opened.close)
        return opened

    def recorded(self, **options):
        made = self.open(LANGUAGE).record(token_ids="1 2 3", **options)
        self.addCleanup(made.close)
        return made

    def assert_raises(self, use, *parts, kind=atlas.Error):
        """Expects an exception of this very class with these texts, and nothing on the terminal."""
        with self.assertRaises(kind) as raised:
            use()
        self.assertIs(type(raised.exception), kind, raised.exception)
        for part in (*parts, "."):
            self.assertIn(part, str(raised.exception))
        self.assertNotIn("above", str(raised.exception))
        self.assertEqual(self.take_errors(), [])

    def test_it_is_caught_as_before(self):
        for kind in (errors.Error, errors.Missing, errors.WriteError):
            self.assertTrue(issubclass(kind, (atlas.Error, ValueError)))
        self.assertTrue(issubclass(errors.WriteError, OSError))
        self.assertIs(atlas.Missing, readers.Missing)

    def test_numbers_beyond_their_range(self):
        """They are refused, not replaced by the nearest ones."""
        model, recording = self.open(LANGUAGE), self.recorded()
        for use, message in (
            (lambda: recording.embedding(dimensions=4), "dimensions: expected at most 3, found 4"),
            (lambda: model.record(token_ids="1", maximum_length=-1), "maximum_length: expected at least 0, found -1"),
            (lambda: model.record(token_ids="1", temperature=-0.5), "temperature: expected at least 0, found -0.5"),
            (lambda: model.record(token_ids="1", generate_tokens=200_000), "generate_tokens: expected at most 100000"),
            (lambda: recording.embedding(seed=-1), "seed: expected at least 0, found -1"),
            (lambda: recording.embedding(method="UMAP", seed=2**32 - 1), "seed: cannot be 4294967295"),
            (lambda: model.attribution("w1 w2", "w3 w2", steps=0), "steps: expected at least 1, found 0"),
        ):
            self.assert_raises(use, message, kind=ValueError)

    def test_what_is_open_as_something_else(self):
        model, recording = self.open(LANGUAGE), self.recorded()
        for use, what in (
            (lambda: atlas.heads.weights(model), "expected a recording or its file, found <Transformer language-2"),
            (lambda: atlas.circuits.composition(recording), "expected a transformer or its file, found <Recording"),
            (lambda: atlas.heads.weights(None), "expected a recording or its file, found None"),
            (lambda: atlas.corpus(recording, atlastest.SOURCE / "LICENSE"), "expected a transformer or its file"),
        ):
            self.assert_raises(use, what, kind=ValueError)

    def test_positions_from_the_end(self):
        recording = self.recorded()
        figure = atlas.circuits.score(recording, 1, 0, query=-1, key=-2)
        texts = [text.get_text() for text in figure.findobj(Text)]
        self.assertTrue(any("of query 2 and key 1" in text for text in texts), texts)
        self.assert_raises(lambda: atlas.circuits.score(recording, 1, 0, key=-9), "key: expected 0 to 2, found -9", kind=ValueError)
        with atlas.embedding.Embedding(recording, "PCA", layer=-1) as shown:
            self.assertEqual(set(shown.layer.tolist()), {1})

    def test_the_sentence_of_the_filter(self):
        model = self.open(LANGUAGE)
        bare = self.recorded(record=["QueriesAndKeys"])
        self.assert_raises(lambda: model.record(""), "prompt 1: expected a text, found no tokens")
        self.assert_raises(lambda: model.record(), "expected prompts")
        self.assert_raises(lambda: model.record(token_ids="9999"), "expected a token id", "found 9999")
        self.assert_raises(lambda: model.patching("w1", "w1 w2"), "expected")
        self.assert_raises(lambda: model.circuit(tokens=["#99999"]), "99999")
        without = self.open(atlastest.RECORDING)
        self.assert_raises(lambda: without.attention(4, 0, quantity="NormWeighted"), "no value norms")
        self.assert_raises(lambda: bare.updates(), "HeadOutputs")
        self.assert_raises(lambda: model.corpus(atlastest.SOURCE / "LICENSE", window=1), "Window: expected 2 to 128")
        self.assert_raises(lambda: atlas.train("TokenPairs", model_file="none.safetensors"), "none.safetensors")
        again = bare.kept
        for _ in range(2):  # it has not run again, and says the same
            self.assert_raises(lambda: again(atlas.tokens.Tokens, vectors=["Value"]), "no values of layer 0, head 0")

    def test_readers(self):
        folder = atlastest.OUTPUT
        broken = folder / "broken.safetensors"
        broken.write_bytes(b"12345678{}")
        self.assert_raises(lambda: atlas.Recording(broken), "broken.safetensors: ")
        self.assert_raises(lambda: atlas.SmallModel(broken), "broken.safetensors: ")  # by a reader within another
        self.assert_raises(lambda: atlas.Corpus(broken), "broken.safetensors: ")
        (folder / "config.json").write_text("{}")
        self.assert_raises(lambda: atlas.Transformer(folder), "config.json", "model_type")

    def test_writers(self):
        folder = atlastest.OUTPUT / "trained"
        shutil.rmtree(folder, ignore_errors=True)
        sizes = {"vocabulary": 16, "context": 32, "heads": 2, "model_dimension": 32, "batch_size": 4}
        with atlas.train("RepeatedTokens", steps=4, checkpoint_every=2, **sizes) as model:
            model.save(folder)
        with atlas.train("RepeatedTokens", steps=3, **sizes) as model:
            found = "found checkpoint-4"
            self.assert_raises(lambda: model.save(folder), "without another training", found, kind=errors.WriteError)
        place = atlastest.OUTPUT / "folder.safetensors"
        place.mkdir(exist_ok=True)
        self.assert_raises(lambda: self.recorded().save(place), "folder.safetensors", kind=errors.WriteError)

    def test_the_reason_lies_before(self):
        """What fails is a filter before the one that is asked for, which has nothing to do then."""
        reader = simple.TransformerReader(FileName=str(atlastest.OUTPUT / "no folder" / "none.json"))
        recorder = simple.TransformerRecorder(Input=reader, TokenIds="1 2")
        scores = simple.HeadScores(Input=recorder)
        self.take_errors()  # ParaView has asked for the layers
        self.assert_raises(lambda: atlas.update(scores), "no folder")
        reader.FileName = str(LANGUAGE / "config.json")
        atlas.update(scores)
        self.assertGreater(scores.GetDataInformation().GetNumberOfRows(), 0)

    def test_without_the_package_it_is_displayed_once(self):
        reader = simple.TransformerReader(FileName=str(atlastest.OUTPUT / "no folder" / "none.json"))
        reader.UpdatePipeline()
        reader.UpdatePipeline()
        self.assert_one_error("no folder")
        with self.assertRaises(atlas.Error):
            atlas.update(reader)
        reader.FileName = str(atlastest.OUTPUT / "no other" / "none.json")
        reader.UpdatePipeline()
        self.assert_one_error("no other")

    def test_warnings_go_on(self):
        """What a filter says and goes on with is no exception, and is displayed."""
        folder = atlastest.OUTPUT / "unused"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(atlastest.TRANSFORMERS / "llama", folder)
        path = folder / "model.safetensors"
        tensors, metadata = atlastest.read_safetensors(path)
        path.unlink()
        atlastest.write_safetensors(path, {**tensors, "extra": numpy.zeros(3, numpy.float32)}, metadata)
        self.open(folder)
        self.assert_one_error("'extra'")

    def test_arguments_of_record(self):
        model = self.open(LANGUAGE)
        for use, found in (
            (lambda: model.record([1, 2, 3]), "prompts: expected a text or a list of texts, found 1 in it."),
            (lambda: model.record([]), "prompts: expected a text or a list of texts, found none."),
            (lambda: model.record(5), "prompts: expected a text or a list of texts, found 5."),
            (lambda: model.record(["a", None]), "prompts: expected a text or a list of texts, found None in it."),
            (lambda: model.record("a", record=5), "record: expected one of QueriesAndKeys, Values"),
            (lambda: model.record("a", record=["Love"]), "record: expected one of QueriesAndKeys, Values"),
            (lambda: model.record("a", layers="all"), "layers: expected a number, found 'all'."),
            (lambda: model.record("a", layers=[0.5]), "layers: expected a whole number, found 0.5."),
            (lambda: model.record("a", maximum_length="long"), "maximum_length: expected a number"),
            (lambda: model.record("a", maximum_length=None, generate_tokens=1.5), "generate_tokens: expected a whole number"),
            (lambda: model.record(token_ids=5), "token_ids: expected a text, found 5."),
            (lambda: model.record_random("Chess"), "kind: expected one of OneToken"),
            (lambda: model.record_random(3), "kind: expected one of OneToken, Random, RepeatedBlock; found 3."),
            (lambda: model.corpus(5), "files: expected a file or a list of files, found 5."),
            (lambda: model.patching("", "a"), "prompt: expected a text, found none."),
            (lambda: model.patching("a", ""), "patch_from: expected a text, found none."),
            (lambda: model.attribution("a", ""), "patch_from: expected a text, found none."),
            (lambda: model.attribution("a", "b", edges=True, exact=True), "exact: expected False for edges"),
            (lambda: model.attribution("a", "b", exact_edges=3), "exact_edges: expected 0 without edges, found 3."),
            (lambda: model.circuit_faithfulness("a", "b", "None"), "circuit: expected one of Nodes, Edges; found 'None'."),
            (lambda: model.record_random(length="long"), "length: expected a number, found 'long'."),
        ):
            self.assert_raises(use, found, kind=ValueError)

    def test_a_head_of_a_layer_is_named(self):
        recording = self.recorded()
        numpy.testing.assert_array_equal(recording.attention(), recording.attention(0, 0))
        statistics = self.open(atlastest.DATA / "corpus" / "language-2.safetensors")
        for use in (
            recording.attention, recording.queries, recording.keys, recording.values, recording.outputs,
            recording.strongest_keys, recording.score_parts, recording.score_attribution, statistics.histogram,
            statistics.quantiles, statistics.tokens, statistics.contexts, statistics.parts, statistics.ends,
        ):
            with self.subTest(use.__name__):
                self.assert_raises(lambda use=use: use(1), "head: expected one of layer 1, found none.", kind=ValueError)

    def test_parts_end_with_their_recording(self):
        model = self.open(atlastest.MODELS / "marian")
        recording = model.record(token_ids="5 6 7", targets="3 4")
        encoder = recording.part("Encoder")
        cross = encoder.part("Cross")
        self.assertIs(cross.part("Decoder"), recording)
        self.assertIs(recording.part("Decoder"), recording)
        encoder.attention(0, 0)
        encoder.close()
        recording.attention(0, 0)  # which goes on
        recording.close()
        for part in (encoder, cross):
            self.assertIn("closed", repr(part))
            for use in (part.attention, part.tokens, part.focus, lambda part=part: part.part("Decoder")):
                self.assert_raises(use, "is closed", kind=ValueError)

    def test_a_model_is_for_recordings(self):
        for path in (LANGUAGE, atlastest.TRAINED, atlastest.DATA / "corpus" / "language-2.safetensors"):
            self.assert_raises(lambda path=path: atlas.open(path, LANGUAGE), "model: expected with a recording", kind=ValueError)


class Words(AtlasTest):
    """Every property with words, of every proxy."""

    def proxies(self):
        for group, name in sorted(read_proxies()):
            if group in ("sources", "filters"):
                yield servermanager._getPyProxy(servermanager.ProxyManager().NewProxy(group, name))

    def test_a_property_takes_its_own_words_alone(self):
        specials = entries = 0
        xml = {key[1]: proxy for key, proxy in read_proxies().items()}
        for proxy in self.proxies():
            name = proxy.GetXMLName()
            for element in xml[name]:
                if element.get("information_only") == "1" or element.tag not in ("IntVectorProperty", "DoubleVectorProperty"):
                    continue
                key = element.get("name")
                known = {entry.get("text"): entry.get("value") for entry in element.iter("Entry")}
                special = element.find("Hints/AtlasSpecial")
                own = set(map(str.casefold, known))
                with self.subTest(f"{name}.{key}"):
                    for text in known:
                        for spelled in (text, text.lower(), text.upper()):
                            readers._set(proxy, name, key, [spelled] if element.get("repeat_command") else spelled)
                            self.assertIn(text, str(proxy.GetPropertyValue(key)))
                        entries += 1
                    if special is not None:
                        text, value = special.get("text"), float(special.get("value"))
                        short = text.split()[0].lower()
                        own |= {text.casefold()} | ({short} & {"all", "last", "mean", "strongest"})
                        for spelled in own:
                            readers._set(proxy, name, key, spelled)
                            self.assertEqual(set(numpy.ravel(proxy.GetPropertyValue(key))), {value})
                        specials += 1
                    for other in set(WORDS) - own:
                        with self.assertRaisesRegex(ValueError, f"^{key}: expected .*found '{other}'"):
                            readers._set(proxy, name, key, other)
        self.assertGreater(specials, 50)
        self.assertGreater(entries, 100)

    def test_words_of_methods(self):
        with atlas.open(LANGUAGE) as model, model.record(token_ids="1 2 3 1 2") as recording:
            attribute = recording.score_attribution
            self.assert_raise(
                (lambda: attribute(key="last"), "^key: expected a number or strongest, found 'last'"),
                (lambda: attribute(query="strongest"), "^query: expected a number or last, found 'strongest'"),
            )
            recording.score_attribution(query="Last", key="STRONGEST")
            numpy.testing.assert_array_equal(recording.attention(0, 0, 0, "rollout"), recording.attention(0, 0, 0, "Rollout"))
            self.assertEqual(len(recording.embedding(method="umap", neighbors=3)), 2 * 8 * 2 * 5)
            same = [recording.columns("HeadEmbedding", method=method) for method in ("t-SNE", "TSNE")]
            for name, values in same[1].items():
                numpy.testing.assert_array_equal(same[0][name], values, name)


def torch_bytes(arrays, old):
    """A dictionary of tensors as torch.save writes it, to a zip archive or, before PyTorch 1.6, as a row of pickles."""

    def text(value):
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    def tuple_of(*parts):
        return b"(" + b"".join(parts) + b"t"

    def number(value):
        return b"J" + struct.pack("<i", value)

    made = b"\x80\x02}("
    for key, (name, array) in enumerate(arrays.items()):
        strides = [stride // array.itemsize for stride in array.strides]
        storage = [text("storage"), b"ctorch\nFloatStorage\n", text(str(key)), text("cpu"), number(array.size)]
        tensor = tuple_of(
            tuple_of(*storage, *([b"N"] if old else [])) + b"Q", number(0), tuple_of(*map(number, array.shape)),
            tuple_of(*map(number, strides)), b"\x89", b"ccollections\nOrderedDict\n)R",
        )
        made += text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n" + tensor + b"R"
    made += b"u."
    if old:
        system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
        pickles = [pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, system)]
        pickles += [made, pickle.dumps([str(key) for key in range(len(arrays))], 2)]
        return b"".join([*pickles, *(struct.pack("<q", array.size) + array.tobytes() for array in arrays.values())])
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as members:
        members.writestr("archive/data.pkl", made)
        for key, array in enumerate(arrays.values()):
            members.writestr(f"archive/data/{key}", array.tobytes())
        members.writestr("archive/version", "3\n")
    return archive.getvalue()


class Files(AtlasTest):
    """Files are opened by what is in them."""

    def setUp(self):
        super().setUp()
        self.folder = atlastest.OUTPUT / "files"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        values = numpy.random.default_rng(0).normal(size=(1, 4, 2, 8)).astype(numpy.float32)
        self.arrays = {"blocks.0.attn.hook_q": values, "blocks.0.attn.hook_k": values}

    def assert_opens(self, path, kind):
        with self.subTest(path.name), atlas.open(path) as opened:
            self.assertIs(type(opened), kind)

    def test_recordings(self):
        weights = numpy.tril(numpy.ones((1, 2, 3, 3))) / numpy.arange(1, 4)[:, None]
        numpy.save(self.folder / "run.npy", weights.astype(numpy.float32))
        numpy.savez(self.folder / "run.npz", **self.arrays)
        atlastest.write_safetensors(self.folder / "run.safetensors", self.arrays, {})
        for ending in ("pt", "pth"):
            (self.folder / f"run.{ending}").write_bytes(torch_bytes(self.arrays, old=False))
            (self.folder / f"old.{ending}").write_bytes(torch_bytes(self.arrays, old=True))
        shutil.copy(LANGUAGE / "config.json", self.folder)  # beside them is the model
        for path in sorted(self.folder.glob("*.[nsp]*")):
            self.assert_opens(path, atlas.Recording)

    def test_transformers(self):
        files = atlastest.MODELS.parent / "files"
        for path in (LANGUAGE, LANGUAGE / "config.json", LANGUAGE / "model.safetensors", files / "pt" / "gpt2-torch2.pt",
                     files / "gguf" / "conversions" / "gpt2.gguf"):
            self.assert_opens(path, atlas.Transformer)
        tensors, _ = atlastest.read_safetensors(LANGUAGE / "model.safetensors")
        tensors = {name: values.astype(numpy.float32) for name, values in tensors.items()}
        for old in (False, True):
            folder = self.folder / str(old)
            folder.mkdir()
            shutil.copy(LANGUAGE / "config.json", folder)
            (folder / "pytorch_model.bin").write_bytes(torch_bytes(tensors, old))
            self.assert_opens(folder / "pytorch_model.bin", atlas.Transformer)
        self.take_errors()  # tensors that are not used

    def test_others(self):
        self.assert_opens(atlastest.TRAINED, atlas.SmallModel)
        self.assert_opens(atlastest.DATA / "corpus" / "language-2.safetensors", atlas.Corpus)
        for content in (b"", b"A licence.", b"\x89PNG\r\n\x1a\n", b"\x80\x02}."):
            path = self.folder / "other"
            path.write_bytes(content)
            with self.assertRaisesRegex(atlas.Error, "other: expected a recording, .*; found a file of another kind"):
                atlas.open(path)
        path = self.folder / "picture.safetensors"
        path.write_bytes(b"\x89PNG\r\n\x1a\n")
        with self.assertRaisesRegex(atlas.Error, "picture.safetensors: expected a safetensors file, found a PNG picture"):
            atlas.open(path)
