"""Ten tasks of a researcher, each as short as it can be."""

import atlastest
import attentionatlas as atlas
import numpy
from atlastest import DATA, OUTPUT, AtlasTest
from matplotlib import pyplot

LANGUAGE = DATA / "models" / "language-2"
TEXT = "In the beginning God created the heaven and the earth."


class TenTasks(AtlasTest):
    def test_ten_tasks(self):
        # 1. Open a model.
        model = atlas.open(LANGUAGE)
        self.assertEqual((model.layers, model.heads), (2, 8))

        # 2. Record what it does on a text.
        recording = model.record(TEXT)
        recording.save(OUTPUT / "run.safetensors")
        self.assertEqual("".join(recording.tokens()).replace("\u0120", " ").strip(), TEXT)

        # 3. One head as an array.
        weights = recording.attention(1, 4)
        numpy.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)

        # 4. All heads in my subplots.
        figure, (left, right) = pyplot.subplots(1, 2)
        atlas.heads.all_heads(recording, ax=left)
        right.plot(weights.max(axis=1))
        figure.savefig(OUTPUT / "heads.png")
        self.assertEqual(len(left.images), 1)

        # 5. A table as CSV.
        recording.focus().to_csv(OUTPUT / "focus.csv")
        self.assertEqual(len((OUTPUT / "focus.csv").read_text().splitlines()), 1 + 2 * 8)

        # 6. A page for a browser.
        atlas.widget(recording, "sentence", layer=1, head=4).save(OUTPUT / "page.html")
        self.assertIn("<html", (OUTPUT / "page.html").read_text())

        # 7. Linked views for ParaView.
        atlas.scene.save(OUTPUT / "run.safetensors", OUTPUT / "scene.pvsm")
        self.assertIn("AttentionMatrix", (OUTPUT / "scene.pvsm").read_text())

        # 8. Train a model.
        trained = atlas.train("TokenPairs", steps=3500)
        self.assertEqual(list(trained.curves()["Accuracy"])[-1], 1)

        # 9. Patch activations.
        model = atlas.open(LANGUAGE)
        effects = model.patching("And God said unto Moses", "And God said unto David")
        self.assertEqual(len(effects), 2 * 8)

        # 10. Test a finding of the literature.
        found = atlas.findings.render(OUTPUT / "findings", names=["sinks-gpt2"])
        self.assertTrue(found["sinks-gpt2"].holds)


if __name__ == "__main__":
    atlastest.main()
