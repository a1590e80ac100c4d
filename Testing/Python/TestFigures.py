"""The figures for print, called from a script."""

import atlastest
from attentionatlas import figures
from atlastest import AtlasTest


class Figures(AtlasTest):
    def test_render_tells_what_it_wrote(self):
        told = []
        folder = atlastest.OUTPUT / "figures"
        written = figures.render(
            atlastest.TRAINED, folder, ["class-map"], width=400, progress=told.append
        )
        self.assertEqual(written, [folder / "trained-n5-h3-class-map.png"])
        self.assertEqual(told, written)
        # 400 pixels are 10 radians; 8.3 radians are high.
        self.assertEqual(atlastest.read_picture(written[0]).shape[:2], (332, 400))

    def test_attention_is_drawn_for_each_head_and_pattern(self):
        written = figures.render(atlastest.TRAINED, atlastest.OUTPUT / "all", width=300)
        self.assertEqual(len(written), 1 + 2 * 3)
        self.assertEqual(len(set(written)), len(written))
        for path in written:
            self.assertTrue(path.is_file(), path)

    def test_says_what_is_wrong(self):
        with self.assertRaisesRegex(ValueError, "unknown figure 'map'; known are class-map"):
            figures.render(atlastest.TRAINED, atlastest.OUTPUT, ["map"])
        with self.assertRaisesRegex(ValueError, "expected 200 to 16384 pixels, found 20"):
            figures.render(atlastest.TRAINED, atlastest.OUTPUT, width=20)
        with self.assertRaisesRegex(FileNotFoundError, "absent.safetensors: no such file"):
            figures.render(atlastest.OUTPUT / "absent.safetensors", atlastest.OUTPUT)
        bad = atlastest.OUTPUT / "bad.safetensors"
        bad.write_bytes(b"")
        with self.assertRaisesRegex(ValueError, "bad.safetensors: cannot be read"):
            figures.render(bad, atlastest.OUTPUT)
        self.assert_one_error("bad.safetensors", "found 0 bytes")

    def test_command_line_refuses_figures_of_the_same_name(self):
        with self.assertRaises(SystemExit):
            figures.main([str(atlastest.TRAINED), str(atlastest.TRAINED), "-o", str(atlastest.OUTPUT)])


if __name__ == "__main__":
    atlastest.main()
