"""Features of sparse dictionaries: what NumPy computes from the activations and weights of the original code."""

import os
import subprocess
import unittest

import atlastest
import attentionatlas as atlas
import numpy
from atlastest import AtlasTest, simple, write_dictionary
from vtkmodules.util.numpy_support import vtk_to_numpy

GPT2 = atlastest.TRANSFORMERS / "gpt2"
EXPECTED, _ = atlastest.read_safetensors(GPT2 / "expected.safetensors")
WEIGHTS = {name.removeprefix("transformer."): values for name, values in atlastest.read_safetensors(GPT2 / "model.safetensors")[0].items()}
LAYERS, HEADS = 2, 4
SEQUENCES, LENGTH = EXPECTED["input_ids"].shape
D = WEIGHTS["wte.weight"].shape[1]
SIZE = D // HEADS
FEATURES = 24
ALL = {"top": FEATURES, "sequence": "all"}


def layer(number, name):
    return EXPECTED[f"layer.{number}.{name}"].astype(float)


def mixed(number):
    """z of all heads, one after another: [sequences, tokens, d]."""
    z = layer(number, "attention") @ layer(number, "value")
    return z.transpose(0, 2, 1, 3).reshape(SEQUENCES, LENGTH, D)


def written(number):
    return layer(number, "head_output").sum(axis=1) + WEIGHTS[f"h.{number}.attn.c_proj.bias"]


def qkv(number):
    """W_Q, W_K and W_V of each head [d, size], and the biases of values, with the normalization folded in and not."""
    gain, shift = (WEIGHTS[f"h.{number}.ln_1.{name}"].astype(float) for name in ("weight", "bias"))
    weight = WEIGHTS[f"h.{number}.attn.c_attn.weight"].astype(float)
    folded = gain[:, None] * weight
    folded = (folded - folded.mean(axis=0)).reshape(D, 3, HEADS, SIZE)
    bias = WEIGHTS[f"h.{number}.attn.c_attn.bias"].astype(float)
    return folded.transpose(1, 2, 0, 3), (bias + shift @ weight)[2 * D :], bias[2 * D :]


def output(number):
    """W_O of each head [size, d]."""
    return WEIGHTS[f"h.{number}.attn.c_proj.weight"].astype(float).reshape(HEADS, SIZE, D)


#: What a dictionary of each place reads.
INPUTS = {
    "blocks.1.attn.hook_z": mixed(1),
    "blocks.1.hook_attn_out": written(1),
    "blocks.1.hook_resid_pre": EXPECTED["hidden.1"].astype(float),
    "blocks.0.hook_resid_post": EXPECTED["hidden.1"].astype(float),
    "blocks.0.hook_resid_mid": EXPECTED["hidden.0"] + written(0),
}


def numbers_of(path):
    return {name: values.astype(float) for name, values in atlastest.read_safetensors(path)[0].items()}


def encode(x, numbers, settings):
    """The features of vectors [..., d], and their reconstruction."""
    norm = settings.get("normalize_activations")
    mean, back, scale = 0, 1, 1
    if norm == "layer_norm":
        mean, back = x.mean(axis=-1, keepdims=True), x.std(axis=-1, ddof=1, keepdims=True)
        scale = 1 / (back + 1e-5)
    elif norm == "constant_norm_rescale":
        scale = D**0.5 / numpy.linalg.norm(x, axis=-1, keepdims=True)
        back = 1 / scale
    read = (x - mean) * scale - numbers["b_dec"] * settings.get("apply_b_dec_to_input", True)
    p = read @ numbers["W_enc"]
    lengths = numpy.linalg.norm(numbers["W_dec"], axis=1) if settings.get("rescale_acts_by_decoder_norm") else 1
    kind = settings.get("architecture", "standard")
    if kind == "gated":
        gate = p + numbers["b_gate"]
        features = numpy.maximum(p * numpy.exp(numbers["r_mag"]) + numbers["b_mag"], 0) * (gate > 0)
    else:
        p = (p + numbers["b_enc"]) * lengths
        features = numpy.maximum(p, 0)
        if kind == "jumprelu":
            features = features * (p > numbers["threshold"])
        if kind == "topk":
            least = numpy.sort(p, axis=-1)[..., -settings["k"], None]
            features = features * (p >= least)
    return features, (features / lengths @ numbers["W_dec"] + numbers["b_dec"]) * back + mean


class DictionaryFeatures(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = atlas.open(GPT2)
        cls.recording = cls.model.record(token_ids=atlastest.token_lines(EXPECTED["input_ids"]))

    @classmethod
    def tearDownClass(cls):
        cls.recording.close()
        cls.model.close()

    def check(self, path, x, settings, **options):
        """Compares activations, errors and what is unexplained."""
        features, found = encode(x, numbers_of(path), settings)
        table = self.recording.features(path, **ALL, **options)
        rows = [
            (s, t, f, features[s, t, f])
            for s in range(SEQUENCES) for t in range(LENGTH)
            for f in numpy.argsort(-features[s, t], kind="stable") if features[s, t, f] > 0
        ]
        self.assertGreater(len(rows), LENGTH)
        for column, expected in zip(("Sequence", "Position", "Feature"), zip(*rows)):
            self.assertEqual(list(table[column]), [int(one) for one in expected], column)
        self.assert_close(table["Activation"], numpy.array([row[3] for row in rows]), 1e-5)
        errors = numpy.linalg.norm(x - found, axis=-1) / numpy.linalg.norm(x, axis=-1)
        self.assert_close(table["Reconstruction Error"], numpy.array([errors[s, t] for s, t, _, _ in rows]), 1e-5)
        fields = self.recording.dataset("DictionaryFeatures", dictionary_file=path, sequence=-1, **options).GetFieldData()
        flat, back = x.reshape(-1, D), found.reshape(-1, D)
        unexplained = ((flat - back) ** 2).sum() / ((flat - flat.mean(axis=0)) ** 2).sum()
        for name, expected in (
            ("Unexplained Variance", unexplained),
            ("Active Features", len(rows) / (SEQUENCES * LENGTH)),
            ("Features", FEATURES),
            ("Feature", features.max(axis=(0, 1)).argmax()),
        ):
            self.assertAlmostEqual(fields.GetArray(name).GetValue(0), expected, msg=name, delta=1e-4 * (abs(expected) or 1))

    def test_activations_of_each_place(self):
        for hook, x in INPUTS.items():
            with self.subTest(hook):
                self.check(write_dictionary(hook, D), x, {})

    def test_activations_of_each_kind(self):
        hook = "blocks.1.attn.hook_z"
        random = numpy.random.default_rng(9)

        def vector(scale=0.3):
            return random.normal(0, scale, FEATURES).astype("float32")

        for tensors, settings in (
            ({"threshold": abs(vector())}, {"architecture": "jumprelu"}),
            ({}, {"architecture": "topk", "k": 3}),
            ({}, {"architecture": "topk", "k": 3, "rescale_acts_by_decoder_norm": True}),
            ({"b_enc": None, "b_gate": vector(), "b_mag": vector(), "r_mag": vector()}, {"architecture": "gated"}),
            ({}, {"apply_b_dec_to_input": False}),
            ({}, {"normalize_activations": "layer_norm"}),
            ({}, {"normalize_activations": "constant_norm_rescale"}),
        ):
            with self.subTest(settings):
                self.check(write_dictionary(hook, D, tensors=tensors, **settings), INPUTS[hook], settings)

    def test_steps_of_transformer_lens(self):
        _, folded, stored = qkv(1)
        z, stream = INPUTS["blocks.1.attn.hook_z"], INPUTS["blocks.1.hook_resid_pre"]
        kwargs = {"hook_name": "blocks.1.attn.hook_z", "model_from_pretrained_kwargs": {"fold_value_biases": True}}
        self.check(write_dictionary("blocks.1.attn.hook_z", D), z - folded, {}, processing="TransformerLens")
        centered = stream - stream.mean(axis=-1, keepdims=True)
        self.check(write_dictionary("blocks.1.hook_resid_pre", D), centered, {}, processing="TransformerLens")
        path = write_dictionary("", D, metadata=kwargs)
        self.check(path, z - stored, {})
        self.check(path, z, {}, processing="None")

    def parts(self, hook, feature, settings=None, processing="FromFile"):
        """The heads of a feature, and its activations, reconstruction and numbers."""
        path = write_dictionary(hook, D, **settings or {})
        table = self.recording.features(path, "Heads", sequence="all", feature=feature, processing=processing)
        return {name: numpy.asarray(table[name]) for name in list(table)}, numbers_of(path)

    def test_heads_that_write_the_stream(self):
        hook = "blocks.1.hook_resid_pre"
        outputs = layer(0, "head_output")
        for settings in ({}, {"normalize_activations": "layer_norm"}):
            found, numbers = self.parts(hook, 5, settings)
            features, _ = encode(INPUTS[hook], numbers, settings)
            active = features[..., 5] > 0
            x = INPUTS[hook][active]
            e, scale = numbers["W_enc"][:, 5], numpy.ones(len(x))
            if settings:
                e, scale = e - e.mean(), 1 / (x.std(axis=1, ddof=1) + 1e-5)
            heads = [(scale * (outputs[:, h][active] @ e)).mean() for h in range(HEADS)]
            rest = (scale * (x @ e)).mean() - sum(heads)
            bias = numbers["b_enc"][5] - numbers["b_dec"] @ numbers["W_enc"][:, 5]
            self.assertEqual(list(found["Component"])[-2:], ["rest", "bias"])
            self.assertEqual(list(found["Component"])[:2], ["head 0.0", "head 0.1"])
            self.assert_close(found["Contribution"][[*range(HEADS), -2, -1]], numpy.array([*heads, rest, bias]), 1e-5)
            self.assertTrue(numpy.isnan(found["Contribution"][HEADS : 2 * HEADS]).all())
            self.assertAlmostEqual(numpy.nansum(found["Contribution"]), features[..., 5][active].mean(), 4)
            self.assertTrue(numpy.isnan(found["Share"]).all())

    def test_value_biases_are_none_of_the_heads(self):
        hook = "blocks.1.hook_resid_pre"
        found, numbers = self.parts(hook, 5, processing="TransformerLens")
        x = INPUTS[hook] - INPUTS[hook].mean(axis=-1, keepdims=True)
        active = encode(x, numbers, {})[0][..., 5] > 0
        e = numbers["W_enc"][:, 5] - numbers["W_enc"][:, 5].mean()
        folded = qkv(0)[1].reshape(HEADS, SIZE)
        heads = [(layer(0, "head_output")[:, h][active] @ e).mean() - folded[h] @ output(0)[h] @ e for h in range(HEADS)]
        self.assert_close(found["Contribution"][:HEADS], numpy.array(heads), 1e-5)

    def test_heads_that_mix_values(self):
        hook = "blocks.0.attn.hook_z"
        found, numbers = self.parts(hook, 7)
        features, _ = encode(mixed(0), numbers, {})
        active = features[..., 7] > 0
        z, e = mixed(0)[active].reshape(-1, HEADS, SIZE), numbers["W_enc"][:, 7].reshape(HEADS, SIZE)
        heads = (z * e).sum(axis=2).mean(axis=0)
        self.assert_close(found["Contribution"][:HEADS], heads, 1e-5)
        self.assertEqual(found["Component"][-1], "bias")
        self.assertAlmostEqual(numpy.nansum(found["Contribution"]), features[..., 7][active].mean(), 4)
        w = numbers["W_dec"][7].reshape(HEADS, SIZE)
        self.assert_close(found["Share"][:HEADS], (w**2).sum(axis=1) / (w**2).sum(), 1e-6)
        # They are read by the heads of the next layer.
        direction = sum(w[h] @ output(0)[h] for h in range(HEADS))
        direction -= direction.mean()  # as processed weights write it
        (query, key, value), _, _ = qkv(1)
        centered = output(1) - output(1).mean(axis=2, keepdims=True)
        for name, left, right in (
            ("Query", query, key.transpose(0, 2, 1)), ("Key", key, query.transpose(0, 2, 1)), ("Value", value, centered),
        ):
            products = left @ right
            scores = [numpy.linalg.norm(direction @ one) / numpy.linalg.norm(one) for one in products]
            self.assert_close(found[f"{name} Reading"][HEADS : 2 * HEADS], numpy.array(scores) / numpy.linalg.norm(direction), 1e-5)
            self.assertTrue(numpy.isnan(found[f"{name} Reading"][:HEADS]).all())

    def test_logits_and_contexts(self):
        hook = "blocks.1.hook_resid_pre"
        path = write_dictionary(hook, D)
        numbers = numbers_of(path)
        unembedding = WEIGHTS["ln_f.weight"].astype(float)[:, None] * WEIGHTS["wte.weight"].astype(float).T
        unembedding -= unembedding.mean(axis=0)
        unembedding -= unembedding.mean(axis=1, keepdims=True)
        effects = numbers["W_dec"][3] @ unembedding
        table = self.recording.features(path, "Logits", feature=3, top=4)
        order = numpy.argsort(effects)
        self.assertEqual(list(table["TokenId"]), [*order[::-1][:4], *order[:4]])
        self.assertEqual(list(table["End"]), 4 * ["Highest"] + 4 * ["Lowest"])
        self.assertEqual(list(table["Rank"]), [1, 2, 3, 4, 1, 2, 3, 4])
        self.assert_close(table["Logit"], effects[[*order[::-1][:4], *order[:4]]], 1e-5)

        features, _ = encode(INPUTS[hook], numbers, {})
        most = int((features > 0).sum(axis=(0, 1)).argmax())
        values = features[..., most].ravel()
        contexts = self.recording.features(path, "Contexts", sequence="all", feature=most, top=5)
        strongest = numpy.argsort(-values, kind="stable")[:5]
        self.assertEqual(list(contexts["Token Index"]), strongest.tolist())
        self.assert_close(contexts["Activation"], values[strongest], 1e-5)
        ids = EXPECTED["input_ids"]
        sequence, position = divmod(int(strongest[0]), LENGTH)
        begin = max(position - 8, 0)
        words = [str(one) for one in ids[sequence, begin : position + 9]]
        words[position - begin] = f"[{words[position - begin]}]"
        self.assertEqual(contexts["Text"][0], " ".join(words))

    def test_contexts_over_a_corpus(self):
        """Of each document, which is a sequence of the oracle, the token where a feature is strongest."""
        text = str(atlastest.OUTPUT / "sequences.npy")
        numpy.save(text, EXPECTED["input_ids"])
        shown = 0
        for hook, x in INPUTS.items():
            path = write_dictionary(hook, D)
            features, _ = encode(x, numbers_of(path), {})
            with self.model.corpus(text, dictionary_file=path, tokens=None) as corpus:
                for feature in range(0, FEATURES, 5):
                    largest = features[..., feature].max(axis=1)
                    order = [s for s in numpy.argsort(-largest, kind="stable") if largest[s] > 0]
                    contexts = corpus.contexts(feature=feature, around=1)
                    self.assertEqual(list(contexts["Document"]), order)
                    if not order:
                        continue
                    places = features[order, :, feature].argmax(axis=1)
                    self.assertEqual(list(contexts["Position"]), places.tolist())
                    self.assertEqual(set(contexts["Key"]), {-1})
                    self.assert_close(contexts["Value"], largest[order], 1e-5)
                    found = corpus.dataset("TopContexts", feature=feature).GetFieldData()
                    self.assertAlmostEqual(
                        found.GetArray("Active Share").GetValue(0), (features[..., feature] > 0).mean(), 12
                    )
                    self.assertEqual(found.GetAbstractArray("Hook Name").GetValue(0), hook)
                    for text_, s, t in zip(contexts["Text"], order, places):
                        self.assertIn(f"[{EXPECTED['input_ids'][s, t]}]", text_)
                        shown += 1
                saved = corpus.save(atlastest.OUTPUT / "of-features.safetensors")
                with atlas.open(saved) as again:
                    self.assertTrue(again.contexts(feature=5).equals(corpus.contexts(feature=5)))
        by_command = saved.with_name("of-features-by-command.safetensors")
        arguments = [str(GPT2), text, "--tokens", "0", "--dictionary", path, "-o", str(by_command)]
        subprocess.run([os.environ["ATLAS_PROGRAM"], "corpus", *arguments], check=True, capture_output=True)
        with atlas.open(by_command) as again, atlas.open(saved) as last:
            self.assertTrue(again.contexts(feature=5).equals(last.contexts(feature=5)))
        self.assertGreater(shown, len(INPUTS) * SEQUENCES)

    def test_a_corpus_goes_on_with_the_same_dictionary(self):
        text = str(atlastest.OUTPUT / "sequences.npy")
        numpy.save(text, EXPECTED["input_ids"])
        part = str(atlastest.OUTPUT / "part-of-features.safetensors")
        path = write_dictionary("blocks.1.attn.hook_z", D)
        chosen = {"dictionary_file": path, "batch_tokens": LENGTH}
        with self.model.corpus(text, tokens=1, **chosen) as begun:
            self.assertFalse(begun.is_complete)
            begun.save(part)
        with self.model.corpus(text, tokens=None, continue_from=part, **chosen) as whole:
            with self.model.corpus(text, tokens=None, **chosen) as at_once:
                for feature in range(FEATURES):
                    self.assertTrue(whole.contexts(feature=feature).equals(at_once.contexts(feature=feature)))
        other = write_dictionary("blocks.1.attn.hook_z", D, folder="other", tensors={"b_dec": numpy.ones(D, "float32")})
        for wrong in ({**chosen, "dictionary_file": other}, {"batch_tokens": LENGTH}):
            with self.assertRaisesRegex(ValueError, "found .* Dictionary of blocks.1.attn.hook_z, 24 features, [0-9a-f]{16}"):
                self.model.corpus(text, tokens=None, continue_from=part, **wrong)
        with self.assertRaisesRegex(ValueError, "Layers: expected layer 1 of the dictionary among them, found 1 others"):
            self.model.corpus(text, layers=[0], dictionary_file=path)

    def test_image(self):
        hook = "blocks.1.attn.hook_z"
        path = write_dictionary(hook, D)
        features, _ = encode(INPUTS[hook], numbers_of(path), {})
        image = self.recording.dataset("DictionaryFeatures", 1, dictionary_file=path, sequence=1, image_features=6)
        self.assertEqual(image.GetDimensions()[:2], (LENGTH, 6))
        values = vtk_to_numpy(image.GetPointData().GetArray("Activation")).reshape(6, LENGTH)[::-1]
        strongest = numpy.argsort(-features[1].max(axis=0), kind="stable")[:6]
        self.assert_close(values, features[1].T[strongest], 1e-5)
        labels = image.GetFieldData().GetAbstractArray("Query Token")
        self.assertEqual([labels.GetValue(i) for i in range(6)], [str(one) for one in strongest])

    def test_a_changed_file_is_read_again(self):
        path = write_dictionary("blocks.1.hook_resid_pre", D, folder="changed")
        made = simple.DictionaryFeatures(Input=self.recording.reader, Model=self.model.reader, DictionaryFile=path)
        made.UpdatePipeline()
        write_dictionary("blocks.1.hook_resid_pre", D, 7, folder="changed")
        made.Top = 11
        atlas.update(made)
        self.assertEqual(atlas._internal.data.field_number(made, "Features"), 7)
        simple.Delete(made)

    def test_bad_input(self):
        path = write_dictionary("blocks.1.attn.hook_z", D)
        wide = write_dictionary("blocks.1.attn.hook_z", D + 1, folder="wide")
        deep = write_dictionary("blocks.2.hook_resid_pre", D, folder="deep")
        last = write_dictionary("blocks.1.hook_resid_post", D, folder="last")
        features = self.recording.features
        with self.model.record(token_ids="5 7 9", record=["QueriesAndKeys"]) as plain:
            self.assert_raise(
                (lambda: plain.features(path), "Dictionary: expected a recording with values .* record Values"),
                (lambda: plain.features(last), "found one in recordings of gpt2 that is normalized"),
                (lambda: plain.features(deep), "Dictionary of blocks.2.hook_resid_pre: expected a layer from 0 to 1"),
                (lambda: plain.features(wide), f"expected {D} inputs as in the model, found {D + 1}"),
                (lambda: features(path, "Images"), "show: expected one of Activations, Heads, Logits, Contexts"),
                (lambda: features(path, feature=24), "Feature: expected one from 0 to 23, or -1 .* found 24"),
                (lambda: features(path, top=0), "Top: expected at least 1, found 0"),
                (lambda: features("/no/file.safetensors"), "/no/file.safetensors"),
                (lambda: features(path, sequence=7), "sequence"),
            )


if __name__ == "__main__":
    unittest.main()
