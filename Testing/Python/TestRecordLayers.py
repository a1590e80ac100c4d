"""attentionatlas.record.write_hugging_face: what a model's attention functions get becomes a recording, layer by layer.

The model calls them as those of transformers do; its arithmetic is that of this file alone.
"""

import contextlib
import io
import json
import math
import pathlib
import sys
import types
import unittest.mock

import attentionatlas
import numpy
from atlastest import OUTPUT, AtlasTest, read_safetensors
from attentionatlas import record
from faketorch import Tensor
from paraview import simple

#: The module in which the fake model is, as those of transformers.
LIBRARY = types.ModuleType("fake_modeling")


class Module:
    """What record asks of a torch.nn.Module."""

    def named_modules(self, name=""):
        yield name, self
        for key, child in vars(self).items():
            parts = child.items() if isinstance(child, dict) else [(key, child)]
            for key, part in parts:
                if isinstance(part, Module):
                    yield from part.named_modules(f"{name}.{key}" if name else key)

    def modules(self):
        return [module for _, module in self.named_modules()]


class Attention(Module):
    """Calls the attention function of its model."""

    __module__ = LIBRARY.__name__

    def __init__(self, query, key, mask=None, causal=True, config=None, layer_idx=None, newer=False, **given):
        self.tensors = [query, key, key]
        self.mask, self.is_causal, self.config, self.given, self.newer = mask, causal, config, given, newer
        if layer_idx is not None:
            self.layer_idx = layer_idx

    def __call__(self, implementation):
        functions, eager = LIBRARY.ALL_ATTENTION_FUNCTIONS, LIBRARY.eager_attention_forward
        if self.newer:  # releases from 5 on
            function = functions.get_interface(implementation, eager)
        else:
            function = eager if implementation == "eager" else functions[implementation]
        return function(self, *self.tensors, self.mask, dropout=0.0, **self.given)


class Model(Module):
    """Runs its attention modules, in this order."""

    def __init__(self, modules, implementation="eager", **config):
        self.attention, self.implementation = modules, implementation
        self.config = types.SimpleNamespace(model_type="fake", **config)
        self.calls = []

    def named_modules(self, name=""):
        yield "", self
        for name, module in self.attention.items():
            yield from module.named_modules(name)

    def forward(self, input_ids=None, attention_mask=None, use_cache=True, **others):
        self.calls.append(use_cache)
        return [module(self.implementation) for module in self.attention.values()]

    __call__ = forward


class Functions(dict):
    def get_interface(self, name, default):
        return default if name == "eager" else self[name]


def eager_attention_forward(module, query, key, value, attention_mask, scaling, dropout=0.0, **kwargs):
    return "eager", query


def sdpa(module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, **kwargs):
    return "sdpa", query


class Tokenizer:
    @staticmethod
    def convert_ids_to_tokens(ids):
        return [f"w{token}" for token in ids]


def softmax(query, key, scale, seen, cap=None, sink=None):
    """The weights [queries, keys] of one head over the keys that are seen, one row after another."""
    rows = []
    for i in range(len(query)):
        scores = [scale * float(numpy.dot(query[i].astype("f8"), k.astype("f8"))) for k in key]
        scores = [cap * math.tanh(score / cap) for score in scores] if cap else scores
        powers = [math.exp(score) if seen(i, j) else 0.0 for j, score in enumerate(scores)]
        rows.append([power / (sum(powers) + (math.exp(sink) if sink is not None else 0)) for power in powers])
    return numpy.array(rows)


def additive(seen):
    """A mask as transformers adds it: 0, or the least number."""
    return Tensor(numpy.where(seen, 0, numpy.finfo("f4").min).astype("f4"))


def causal(i, j):
    return j <= i


class RecordTest(AtlasTest):
    """A test with the fake library, two sequences of which the second is padded, and a folder."""

    BATCH, HEADS, GROUPS, LENGTH, SIZE = 2, 4, 2, 6, 3

    def setUp(self):
        super().setUp()
        LIBRARY.eager_attention_forward = eager_attention_forward
        LIBRARY.ALL_ATTENTION_FUNCTIONS = self.functions = Functions(sdpa=sdpa, flash_attention_2=sdpa)
        patch = unittest.mock.patch.dict(sys.modules, {LIBRARY.__name__: LIBRARY})
        patch.start()
        self.addCleanup(patch.stop)
        self.random = numpy.random.default_rng(7)
        self.ids = numpy.arange(12).reshape(2, 6)
        self.kept = numpy.array([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1]])  # padding comes first
        self.inputs = {"input_ids": Tensor(self.ids), "attention_mask": Tensor(self.kept)}
        self.folder = OUTPUT / self.id()
        self.folder.mkdir(exist_ok=True)
        for path in self.folder.iterdir():
            path.unlink()

    def tensor(self, heads, length=LENGTH):
        return Tensor(self.random.normal(size=(self.BATCH, heads, length, self.SIZE)).astype("f4"))

    def pair(self):
        return self.tensor(self.HEADS), self.tensor(self.GROUPS)

    def mask(self, window=99):
        i, j = numpy.ogrid[:6, :6]
        seen = (j <= i) & (i - j < window)
        return additive(seen & (self.kept[:, None, None, :] > 0))

    def write(self, model, name="run.safetensors", inputs=None, tokenizer=Tokenizer, **options):
        path = self.folder / name
        self.assertEqual(record.write_hugging_face(path, model, tokenizer, inputs or self.inputs, **options), path)
        return path

    def refuse(self, model, *parts, **options):
        """Nothing is written, and the functions are as before."""
        with self.assertRaises(ValueError) as raised:
            self.write(model, **options)
        for part in parts:
            self.assertIn(part, str(raised.exception))
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertIs(LIBRARY.eager_attention_forward, eager_attention_forward)
        self.assertIs(LIBRARY.ALL_ATTENTION_FUNCTIONS, self.functions)

    def expect(self, path, layers):
        """The plugin computes the weights of each layer: (tensors of queries and keys, arguments of softmax)."""
        with attentionatlas.open(path) as recording:
            self.assertEqual(recording.layers, sorted(layers))
            self.assertEqual(recording.lengths, [6, 4])
            self.assertEqual(recording.tokens(1), ["w8", "w9", "w10", "w11"])
            for layer, ((query, key), given) in layers.items():
                for head in range(self.HEADS):
                    for sequence, first in enumerate((0, 2)):
                        q = query.values[sequence, head, first:]
                        k = key.values[sequence, head // 2, first:]
                        sinks = given.get("sinks")
                        own = {name: value for name, value in given.items() if name != "sinks"}
                        expected = softmax(q, k, **own, sink=sinks[head] if sinks else None)
                        found = recording.attention(layer, head, sequence)
                        numpy.testing.assert_allclose(found, expected, atol=2e-6)


class Layers(RecordTest):
    def test_each_layer(self):
        """A cap, a window and sinks; padding before and keys that two heads share."""
        pairs = [self.pair() for _ in range(3)]
        sinks = [0.5, -1.0, 2.0, 0.25]
        modules = {
            "layers.0.self_attn": Attention(*pairs[0], self.mask(), scaling=0.5, softcap=0.75),
            "layers.1.self_attn": Attention(*pairs[1], self.mask(3), scaling=0.25, sliding_window=3),
            "layers.2.self_attn": Attention(*pairs[2], self.mask(), scaling=0.5, s_aux=Tensor(numpy.float32(sinks))),
        }
        model = Model(modules, num_hidden_layers=5)
        path = self.write(model)
        self.assertEqual(model.calls, [False])  # no cache of keys
        self.assertIs(LIBRARY.eager_attention_forward, eager_attention_forward)
        self.expect(
            path,
            {
                0: (pairs[0], {"scale": 0.5, "seen": causal, "cap": 0.75}),
                1: (pairs[1], {"scale": 0.25, "seen": lambda i, j: j <= i and i - j < 3}),
                2: (pairs[2], {"scale": 0.5, "seen": causal, "sinks": sinks}),
            },
        )
        tensors, about = read_safetensors(path)
        self.assertEqual((about["version"], about["layer_count"], about["rotated"]), ("2", "5", "false"))
        self.assertNotIn("layers.0.heads.1.key", tensors)  # once per group
        self.assertEqual([file.name for file in self.folder.iterdir()], ["run.safetensors"])

    def test_sinks_that_scale(self):
        """Granite's scale what a head writes: its attention is that without."""
        granite = type("GraniteSWAAttention", (Attention,), {"__module__": LIBRARY.__name__})
        pair = self.pair()
        path = self.write(Model({"layers.0.self_attn": granite(*pair, self.mask(), scaling=0.5, s_aux=Tensor([9.0] * 4))}))
        self.expect(path, {0: (pair, {"scale": 0.5, "seen": causal})})

    def test_every_attention_function(self):
        """By name and by get_interface; each does what it does without a recording."""
        for implementation in ("eager", "sdpa", "flash_attention_2"):
            for newer in (False, True):
                with self.subTest(implementation, newer=newer):
                    pair = self.pair()
                    mask = self.mask() if implementation != "flash_attention_2" else Tensor(self.kept)
                    module = Attention(*pair, mask, scaling=0.5, newer=newer)
                    model = Model({"h.0.attn": module}, implementation)
                    outputs = []

                    class Watched(Model):
                        def __call__(self, **given):
                            outputs.append(self.forward(**given))

                    model.__class__ = Watched
                    path = self.write(model)
                    name = "eager" if implementation == "eager" else "sdpa"
                    self.assertEqual(outputs, [[(name, pair[0])]])
                    self.expect(path, {0: (pair, {"scale": 0.5, "seen": causal})})

    def test_what_a_module_declares(self):
        """Without a mask: causal under sdpa, all keys under eager; without a scale 1 / sqrt(d)."""
        for implementation, is_causal, seen in (
            ("sdpa", True, causal), ("sdpa", False, lambda i, j: True), ("eager", False, lambda i, j: True)
        ):
            with self.subTest(implementation, causal=is_causal):
                pair = self.pair()
                given = {"scaling": None} if implementation == "eager" else {}
                model = Model({"h.4.attn": Attention(*pair, causal=is_causal, **given)}, implementation)
                self.expect(self.write(model), {4: (pair, {"scale": 3**-0.5, "seen": seen})})

    def test_a_window_that_only_the_mask_has(self):
        pair = self.pair()
        path = self.write(Model({"h.0.attn": Attention(*pair, self.mask(2), scaling=1.0)}))
        self.expect(path, {0: (pair, {"scale": 1.0, "seen": lambda i, j: j <= i < j + 2})})

    def test_windows_on_both_sides(self):
        """As ModernBERT has them: by the mask, or declared, with and without padding."""
        declared, shown = self.pair(), self.pair()
        i, j = numpy.ogrid[:6, :6]
        mask = additive((abs(i - j) < 2) & (self.kept[:, None, None, :] > 0))
        modules = {
            "h.0.attn": Attention(*declared, causal=False, scaling=1.0, sliding_window=3),
            "h.1.attn": Attention(*shown, mask, causal=False, scaling=1.0),
        }
        path = self.write(Model(modules, "sdpa"))
        self.expect(
            path,
            {
                0: (declared, {"scale": 1.0, "seen": lambda i, j: abs(i - j) < 3}),
                1: (shown, {"scale": 1.0, "seen": lambda i, j: abs(i - j) < 2}),
            },
        )
        self.assertEqual(read_safetensors(path)[1]["windows"], '{"0": 3, "1": 2}')

    def test_chunks(self):
        """As Llama 4 has them: by the mask, which counts from the first token that is no padding, or declared."""
        shown, declared, whole = (self.pair() for _ in range(3))
        place = numpy.arange(6) - numpy.array([[0], [2]])  # by sequence, of each token
        seen = (place[:, :, None] // 3 == place[:, None, :] // 3) & (place[:, None, :] <= place[:, :, None])
        mask = additive(seen[:, None] & (self.kept[:, None, None, :] > 0))
        config = types.SimpleNamespace(layer_types=["chunked_attention"] * 2 + ["full_attention"], attention_chunk_size=3)
        modules = {
            "h.0.attn": Attention(*shown, mask, scaling=1.0),
            "h.1.attn": Attention(*declared, config=config, layer_idx=1, scaling=1.0),
            "h.2.attn": Attention(*whole, config=config, layer_idx=2, scaling=1.0),
        }
        path = self.write(Model(modules, "sdpa"))
        given = {"scale": 1.0, "seen": lambda i, j: j <= i and i // 3 == j // 3}
        self.expect(path, {0: (shown, given), 1: (declared, given), 2: (whole, {"scale": 1.0, "seen": causal})})
        about = read_safetensors(path)[1]
        self.assertEqual((about["version"], about["chunks"]), ("5", '{"0": 3, "1": 3}'))

    def test_shards(self):
        """A file per layer, and one of tokens; a shorter recording of the same name takes their place."""
        pairs = [self.pair() for _ in range(3)]
        modules = {f"h.{i}.attn": Attention(*pair, self.mask(), scaling=0.5) for i, pair in enumerate(pairs)}
        name = "run.safetensors.index.json"
        given = {"scale": 0.5, "seen": causal}
        for layers in (None, [2, 0]):
            with self.subTest(layers=layers):
                path, there = self.folder / name, []
                replace = pathlib.Path.replace

                def watched(source, target, path=path, there=there):
                    there.append(path.exists())
                    return replace(source, target)

                with unittest.mock.patch.object(pathlib.Path, "replace", watched):
                    self.write(Model(modules), name, layers=layers)
                self.assertFalse(any(there))  # no index while the files of two recordings are mixed
                chosen = layers or [0, 1, 2]
                count = len(chosen) + 1
                files = {f"run-{i + 1:05}-of-{count:05}.safetensors" for i in range(count)}
                self.assertEqual({file.name for file in self.folder.iterdir()}, files | {name})
                self.assertEqual(set(json.loads(path.read_text())["weight_map"].values()), files)
                self.expect(path, {layer: (pairs[layer], given) for layer in chosen})
                opened = simple.OpenDataFile(str(path))
                self.assertEqual(opened.SMProxy.GetXMLName(), "RecordingReader")

    def test_a_run_that_fails(self):
        """What was there stays as it was."""

        class Broken(Attention):
            __module__ = LIBRARY.__name__

            def __call__(self, implementation):
                raise RuntimeError("out of memory")

        good = Attention(*self.pair(), self.mask(), scaling=0.5)
        for name in ("run.safetensors", "run.safetensors.index.json"):
            with self.subTest(name):
                self.write(Model({"h.0.attn": good}), name)
                before = {path.name: path.read_bytes() for path in self.folder.iterdir()}
                with self.assertRaisesRegex(RuntimeError, "out of memory"):
                    self.write(Model({"h.0.attn": good, "h.1.attn": Broken(*self.pair())}), name)
                self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir()}, before)
                self.assertIs(LIBRARY.eager_attention_forward, eager_attention_forward)
                for path in self.folder.iterdir():
                    path.unlink()

    def test_precisions(self):
        """Numbers of a half precision are kept as they are, others are rounded to the nearest."""
        exact = numpy.array([1.0, -0.5, 2.0**-120, 3.140625], "f4")  # of 8 significant bits
        between = numpy.array([1 + 2.0**-8, 1 + 3 * 2.0**-8, -1 - 2.0**-9, 0.1], "f4")  # ties go to even
        rounded = numpy.array([1.0, 1 + 2.0**-6, -1.0, 0.10009765625], "f4")
        for values, dtype, option, kind, expected in (
            (exact, "bfloat16", None, "BF16", exact),
            (between, None, "bfloat16", "BF16", rounded),
            (between.astype("f2"), None, None, "F16", between.astype("f2").astype("f4")),
            (between, None, "float16", "F16", between.astype("f2").astype("f4")),
            (between, None, None, "F32", between),
        ):
            with self.subTest(kind, option=option):
                tensor = Tensor(values.reshape(1, 1, 1, 4), dtype)
                model = Model({"h.0.attn": Attention(tensor, tensor, scaling=1.0)}, "sdpa")
                path = self.write(model, inputs={"input_ids": Tensor([[3]])}, dtype=option, values=True)
                with path.open("rb") as file:
                    header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
                for quantity in ("query", "key", "value"):
                    self.assertEqual(header[f"layers.0.heads.0.{quantity}"]["dtype"], kind)
                with attentionatlas.open(path) as recording:
                    numpy.testing.assert_array_equal(recording.queries(0, 0)[0], expected)
        self.folder.joinpath("run.safetensors").unlink()
        big = Tensor(numpy.full((1, 1, 1, 4), 1e5, "f4"))
        model = Model({"h.0.attn": Attention(big, big, scaling=1.0)}, "sdpa")
        options = {"inputs": {"input_ids": Tensor([[3]])}, "dtype": "float16"}
        self.refuse(model, "layers.0.heads.0.query", "finite as F16", **options)

    def test_options_that_are_refused(self):
        model = Model({"h.0.attn": Attention(*self.pair(), self.mask(), scaling=0.5)})
        self.refuse(model, "dtype: expected float32, float16 or bfloat16, found int8", dtype="int8")
        self.refuse(model, "part: expected language or vision, found audio", part="audio")
        self.refuse(model, "layers: expected some of [0], found 1", layers=[0, 1])
        self.refuse(model, "expected a name that ends with .safetensors", name="run.npz")
        self.refuse(model, "expected a vision tower", part="vision")

    def test_attention_that_does_not_follow_from_queries_and_keys(self):
        prefix = self.mask().values.copy()
        prefix[:, :, 2:, 2:5] = 0  # tokens that see each other in both directions
        biased = self.mask().values.copy()
        biased[:, :, :, 3] += 0.5
        by_head = numpy.repeat(self.mask().values, 4, axis=1)
        by_head[:, 2, 5, 4] = -numpy.inf
        for implementation, mask, given, message in (
            ("eager", Tensor(prefix), {}, "found another"),
            ("eager", Tensor(biased), {}, "a bias that is added to scores"),
            ("eager", Tensor(by_head), {}, "a mask that all heads share"),
            ("sdpa", self.mask(), {"softcap": 5.0}, "sdpa leaves out this model's cap of scores"),
            ("sdpa", self.mask(), {"s_aux": Tensor([0.0])}, "sdpa leaves out this model's sinks"),
        ):
            with self.subTest(message):
                module = Attention(*self.pair(), mask, scaling=0.5, **given)
                self.refuse(Model({"h.0.attn": module}, implementation), "h.0.attn", message)

    def test_layers_that_differ(self):
        good = Attention(*self.pair(), self.mask(), scaling=0.5)
        everywhere = additive(self.kept[:, None, None] > 0)
        for other, message in (
            (Attention(self.tensor(2), self.tensor(2), self.mask(), scaling=1.0), "4 heads as elsewhere, found 2"),
            (Attention(self.tensor(4, 5), self.tensor(4, 5), scaling=1.0), "expected queries and keys of"),
            (Attention(*self.pair(), everywhere, scaling=1.0), "expected a causal mask"),
            (Attention(*self.pair(), self.mask(), scaling=1.0, layer_idx=0), "found two"),
        ):
            with self.subTest(message):
                self.refuse(Model({"h.0.attn": good, "h.1.attn": other}), "h.1.attn", message)

    def test_no_attention_function(self):
        """Such as BLOOM and GPT-J, whose modules compute attention themselves."""
        with self.assertRaisesRegex(record.NotHeardError, "Model: its attention does not go through"):
            self.write(Model({}))
        self.refuse(Model({}), "--attention")

    def test_language_and_vision(self):
        """Of a model with a tower, one of both is kept."""
        text, picture = (type(name, (types.SimpleNamespace,), {})() for name in ("TextConfig", "VisionConfig"))
        text.num_hidden_layers = 1
        patches = self.tensor(2, 9), self.tensor(2, 9)
        pair = self.pair()
        modules = {
            "vision_tower.layers.0.self_attn": Attention(*patches, causal=False, config=picture, scaling=0.5),
            "language_model.layers.0.self_attn": Attention(*pair, self.mask(), config=text, scaling=0.25),
        }
        model = Model(modules, get_text_config=lambda: text)
        self.expect(self.write(model), {0: (pair, {"scale": 0.25, "seen": causal})})
        with attentionatlas.open(self.write(model, "vision.safetensors", part="vision")) as recording:
            self.assertEqual(recording.lengths, [9, 9])
            for sequence in (0, 1):
                q, k = (tensor.values[sequence, 1] for tensor in patches)
                expected = softmax(q, k, 0.5, lambda i, j: True)
                numpy.testing.assert_allclose(recording.attention(0, 1, sequence), expected, atol=2e-6)

    def translation(self, **config):
        """A model with an encoder and a decoder: modules, inputs, and the tensors of each part."""
        sources, targets = self.kept, numpy.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
        parts = {
            "encoder": (self.tensor(2), self.tensor(2)),
            "decoder": (self.tensor(2, 5), self.tensor(2, 5)),
            "cross": (self.tensor(2, 5), self.tensor(2)),
        }
        hides = additive(numpy.broadcast_to(sources[:, None, None] > 0, (2, 1, 6, 6)))
        modules = {
            "model.encoder.layers.0.self_attn": Attention(*parts["encoder"], hides, causal=False, scaling=0.5),
            "model.decoder.layers.0.self_attn": Attention(
                *parts["decoder"], additive((numpy.tri(5) > 0) & (targets[:, None, None] > 0)), scaling=0.5
            ),
            "model.decoder.layers.0.encoder_attn": Attention(
                *parts["cross"], Tensor(hides.values[:, :, :5].copy()), causal=False, scaling=0.5
            ),
        }
        encoder = Module()
        layers = {"encoder_layers": 1, "decoder_layers": 3}
        model = Model({"model.encoder": encoder, **modules}, is_encoder_decoder=True, **layers, **config)
        model.get_encoder = lambda: encoder
        encoder.__class__ = type("Encoder", (Module,), {"__call__": lambda self, implementation: None})
        inputs = {
            **self.inputs,
            "decoder_input_ids": Tensor(numpy.arange(20, 30).reshape(2, 5)),
            "decoder_attention_mask": Tensor(targets),
        }
        return model, inputs, parts

    def test_an_encoder_and_a_decoder(self):
        """Three parts; in that of cross attention, tokens of the source come first."""
        model, inputs, parts = self.translation()
        path = self.write(model, inputs=inputs)
        tensors, about = read_safetensors(path)
        self.assertEqual(about["version"], "3")
        for prefix, mask, offsets, layers in (
            ("", "causal", [0, 3, 8], "3"),
            ("encoder.", "bidirectional", [0, 6, 10], "1"),
            ("cross.", "cross", [0, 9, 18], "3"),
        ):
            self.assertEqual((about[f"{prefix}mask"], about[f"{prefix}layer_count"]), (mask, layers))
            self.assertEqual(tensors[f"{prefix}sequence_offsets"].tolist(), offsets)
        self.assertEqual(tensors["cross.source_lengths"].tolist(), [6, 4])
        self.assertEqual(tensors["cross.tokens.position"].tolist(), [*range(9), *range(9)])
        ids = [0, 1, 2, 3, 4, 5, 20, 21, 22, 8, 9, 10, 11, 25, 26, 27, 28, 29]
        self.assertEqual(tensors["cross.tokens.id"].tolist(), ids)
        self.assertEqual(json.loads(about["cross.tokens"]), [f"w{token}" for token in ids])
        for head in (0, 1):
            query, key = (tensors[f"cross.layers.0.heads.{head}.{name}"] for name in ("query", "key"))
            q, k = (tensor.values[:, head] for tensor in parts["cross"])
            zeros = [numpy.zeros((count, self.SIZE), "f4") for count in (6, 3, 4, 5)]
            numpy.testing.assert_array_equal(query, numpy.concatenate([zeros[0], q[0, :3], zeros[2], q[1]]))
            numpy.testing.assert_array_equal(key, numpy.concatenate([k[0], zeros[1], k[1, 2:], zeros[3]]))
            for prefix, part, kept in (
                ("", "decoder", (slice(3), slice(5))), ("encoder.", "encoder", (slice(6), slice(2, 6)))
            ):
                for name, tensor in zip(("query", "key"), parts[part]):
                    expected = numpy.concatenate([tensor.values[b, head, kept[b]] for b in (0, 1)])
                    numpy.testing.assert_array_equal(tensors[f"{prefix}layers.0.heads.{head}.{name}"], expected)
        with attentionatlas.open(path) as recording:
            for kind, mask, rows, columns in (
                ("Decoder", causal, (0, 3), (0, 3)),
                ("Encoder", lambda i, j: True, (2, 6), (2, 6)),
                ("Cross", lambda i, j: True, (0, 5), (2, 6)),
            ):
                sequence = int(kind != "Decoder")
                q, k = (tensor.values[sequence, 1] for tensor in parts[kind.lower()])
                expected = softmax(q[slice(*rows)], k[slice(*columns)], 0.5, mask)
                found = recording.part(kind).attention(0, 1, sequence)
                numpy.testing.assert_allclose(found, expected, atol=2e-6)

    def test_what_the_decoder_reads(self):
        """A translation that is given, or else the one that the model generates, each up to its end."""
        model, inputs, _ = self.translation(eos_token_id=9)
        asked = []

        class Both(Tokenizer):
            def __call__(self, text=None, text_target=None, return_tensors="pt", padding=False):
                asked.append((text, text_target, padding))
                if text_target:
                    return {"input_ids": Moved([[7]]), "attention_mask": Moved(numpy.ones((2, 5), int))}
                return self_inputs

        class Moved(Tensor):
            def to(self, device):
                return self

            def new_tensor(self, values):
                return Tensor(numpy.array(values))

        self_inputs, model.device = {name: Moved(tensor.values) for name, tensor in self.inputs.items()}, "cpu"
        model.generate = lambda **given: Moved([[9, 20, 9, 9, 9], [9, 20, 21, 22, 23]])
        ten = numpy.arange(10).reshape(2, 5)
        model.prepare_decoder_input_ids_from_labels = lambda labels: Moved(labels.values + ten)
        about = {}
        for target, mask in ((["x", "y"], numpy.ones((2, 5))), (None, [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])):
            hides = additive((numpy.tri(5) > 0) & (numpy.array(mask)[:, None, None] > 0))
            model.attention["model.decoder.layers.0.self_attn"].mask = hides
            path = self.folder / "run.safetensors"
            record.write_hugging_face(path, model, Both(), ["a", "b"], target=target)
            about[bool(target)] = json.loads(read_safetensors(path)[1]["tokens"])
        self.assertEqual(about[True], [f"w{token}" for token in range(7, 17)])
        self.assertEqual(about[False], "w9 w20 w9 w9 w20 w21 w22 w23".split())
        self.assertEqual(asked, [(["a", "b"], None, True), (None, ["x", "y"], True), (["a", "b"], None, True)])

    def test_cross_attention_that_hides_tokens(self):
        model, inputs, _ = self.translation()
        module = model.attention["model.decoder.layers.0.encoder_attn"]
        module.mask.values[0, 0, 1, 2] = -numpy.inf
        self.refuse(model, "encoder_attn", "cross attention to all tokens of the source", inputs=inputs)

    def test_t5(self):
        """Its modules are heard themselves; biases go by the distance from query to key."""

        class Linear(Module):
            def __init__(self):
                self.hooks = []

            def register_forward_hook(self, hook):
                self.hooks.append(hook)
                return types.SimpleNamespace(remove=lambda: self.hooks.remove(hook))

            def give(self, output):
                for hook in list(self.hooks):
                    hook(self, None, output)

        outer = self

        class T5Attention(Linear):
            __module__ = LIBRARY.__name__
            key_value_proj_dim, is_decoder, relative_attention_max_distance = 3, True, 2

            def __init__(self, first):
                super().__init__()
                self.q, self.k, self.v, self.has_relative_attention_bias = Linear(), Linear(), Linear(), first
                self.tensors = [Tensor(outer.random.normal(size=(2, 6, 12)).astype("f4")) for _ in "qkv"]

            def compute_bias(self, queries, keys):
                i, j = numpy.ogrid[:queries, :keys]
                return Tensor(numpy.stack([bias[(j - i) + 2] for bias in biases])[None])

            def __call__(self, implementation):
                for linear, tensor in zip((self.q, self.k, self.v), self.tensors):
                    linear.give(tensor)
                self.give(None)

        biases = self.random.normal(size=(4, 5)).astype("f4")
        modules = {f"block.{i}.layer.0.SelfAttention": T5Attention(i == 0) for i in range(2)}
        inputs = {"input_ids": Tensor(self.ids)}
        path = self.write(Model(modules), inputs=inputs)
        tensors, about = read_safetensors(path)
        numpy.testing.assert_array_equal(tensors["distance_bias"], biases)
        self.assertEqual((about["version"], about["score_scales"]), ("3", '{"0": 1.0, "1": 1.0}'))
        self.assertEqual([hook for module in modules.values() for hook in (*module.hooks, *module.q.hooks)], [])
        with attentionatlas.open(path) as recording:
            for layer, module in enumerate(modules.values()):
                q, k, _ = (tensor.values[1].reshape(6, 4, 3).astype("f8") for tensor in module.tensors)
                i, j = numpy.ogrid[:6, :6]
                scores = q[:, 2] @ k[:, 2].T + biases[2][numpy.clip(j - i, -2, 2) + 2]
                powers = numpy.where(j <= i, numpy.exp(scores), 0)
                expected = powers / powers.sum(axis=1, keepdims=True)
                numpy.testing.assert_allclose(recording.attention(layer, 2, 1), expected, atol=2e-6)
        path.unlink()
        for module in modules.values():
            module.has_relative_attention_bias = True
        self.refuse(Model(modules), "expected the biases of distances in one layer", inputs=inputs)


class Command(RecordTest):
    """What the command line does with a library of models."""

    def run_main(self, model, *words):
        loaded = []

        def from_pretrained(kind):
            def load(name, **given):
                loaded.append((kind, given))
                return types.SimpleNamespace(eval=lambda: model)

            return types.SimpleNamespace(from_pretrained=load)

        class Tokens(Tokenizer):
            def __call__(_, text, return_tensors):
                return {"input_ids": Tensor([[3, 4]])}

        library = types.SimpleNamespace(
            AutoConfig=types.SimpleNamespace(from_pretrained=lambda name: model.config),
            AutoTokenizer=types.SimpleNamespace(from_pretrained=lambda name: Tokens()),
            AutoModel=from_pretrained("AutoModel"),
            AutoModelForSeq2SeqLM=from_pretrained("AutoModelForSeq2SeqLM"),
        )
        told = io.StringIO()
        with unittest.mock.patch.dict(sys.modules, transformers=library), contextlib.redirect_stderr(told):
            record.main(["fake", "a text", "-o", str(self.folder / "run.safetensors"), *words])
        return loaded, told.getvalue()

    def test_command(self):
        tensor = self.random.normal(size=(1, 2, 2, 3)).astype("f4")
        pair = Tensor(tensor), Tensor(tensor)
        model = Model({f"h.{i}.attn": Attention(*pair, scaling=0.5) for i in range(3)}, "flash_attention_2")
        words = "--implementation flash_attention_2 --layers 0 2 --values --dtype float16".split()
        loaded, told = self.run_main(model, *words)
        self.assertEqual(loaded, [("AutoModel", {"torch_dtype": "auto", "attn_implementation": "flash_attention_2"})])
        self.assertEqual(told, "")
        with attentionatlas.open(self.folder / "run.safetensors") as recording:
            self.assertEqual(recording.layers, [0, 2])
            numpy.testing.assert_array_equal(recording.queries(2, 1), tensor[0, 1].astype("f2").astype("f4"))
            self.assertEqual(recording.tokens(), ["w3", "w4"])

    def test_attention_is_kept_where_queries_cannot_be(self):
        """As by --attention, but it says why."""
        weights = numpy.array([[[[1, 0], [0.25, 0.75]]]], "f4")
        model = Model({})
        model.__class__ = type(
            "Bloom", (Model,), {"__call__": lambda self, **given: types.SimpleNamespace(attentions=(Tensor(weights),))}
        )
        written = {}

        def save_file(tensors, path, metadata):
            written.update(tensors)
            open(path, "wb").close()

        module = types.ModuleType("safetensors.numpy")
        module.save_file = save_file
        eager = ("AutoModel", {"attn_implementation": "eager"})
        for words, loads in (([], [("AutoModel", {"torch_dtype": "auto"}), eager]), (["--attention"], [eager])):
            with self.subTest(words), unittest.mock.patch.dict(sys.modules, {"safetensors.numpy": module}):
                loaded, told = self.run_main(model, *words)
                self.assertEqual(loaded, loads)
                self.assertEqual("Bloom: its attention does not go through" in told, not words)
                numpy.testing.assert_array_equal(written.pop("attention"), weights[None])
        words = "--attention --layers 0 --dtype float16".split()
        with unittest.mock.patch.dict(sys.modules, {"safetensors.numpy": module}):
            self.run_main(model, *words)
        found = written.pop("layer.0.attention")
        self.assertEqual(found.dtype, "f2")
        numpy.testing.assert_array_equal(found, weights)

    def test_options_that_do_not_apply(self):
        """They are refused by name, not left out."""
        for words, message in (
            ("--attention --values", "--values: is not for attention alone"),
            ("--attention --target x", "--target: is not for attention alone"),
            ("--transformer-lens --implementation sdpa", "--implementation: is not for a run of TransformerLens"),
            ("--transformer-lens --attention", "expected one of them, found both"),
        ):
            with self.subTest(words), contextlib.redirect_stderr(io.StringIO()) as told:
                with self.assertRaises(SystemExit):
                    record.main(["fake", "a text", *words.split()])
                self.assertIn(message, told.getvalue())
