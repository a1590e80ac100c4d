"""Without a display, ParaView 6 renders all the same; before, surfaces are refused with one error, where ParaView would
crash."""

import os

import atlastest
from atlastest import AtlasTest
from attentionatlas import scene, tour
from paraview import simple

NEEDS_DISPLAY = simple.GetParaViewVersion().major < 6


class NoDisplay(AtlasTest):
    def test_there_is_none(self):
        self.assertNotIn("DISPLAY", os.environ)

    def test_flat_figures_need_none(self):
        written = tour.render(atlastest.TRAINED, atlastest.OUTPUT, ["class-map"], width=300)
        self.assertEqual([path.name for path in written], ["trained-n5-h3-class-map.png"])

    def expect(self, render):
        """Renders, or the error that tells what is missing."""
        if not NEEDS_DISPLAY:
            return render()
        with self.assertRaisesRegex(OSError, "^DISPLAY: ParaView 5.*found none. Run .* xvfb-run -a pvpython"):
            render()
        return None

    def surface(self):
        return tour.render(atlastest.TRAINED, atlastest.OUTPUT, ["deformed-torus"], width=300)

    def test_surfaces(self):
        written = self.expect(self.surface)
        if written:
            self.assertEqual([path.name for path in written], ["trained-n5-h3-deformed-torus.png"])

    def test_a_display_that_does_not_answer(self):
        os.environ["DISPLAY"] = "unix:9999"
        self.addCleanup(os.environ.pop, "DISPLAY")
        self.expect(self.surface)

    def test_scene(self):
        state = atlastest.OUTPUT / "scene.pvsm"
        state.unlink(missing_ok=True)
        self.expect(lambda: scene.save(atlastest.TRAINED, state))
        self.assertEqual(state.exists(), not NEEDS_DISPLAY)
        scene.clear()
