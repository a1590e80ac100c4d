"""States of ParaView, as .pvsm and as Python, bring everything back."""

import atlastest
from atlastest import AtlasTest, plain, point_arrays
from paraview import simple, smstate

PROPERTIES = {
    "Resolution": [90, 70],
    "Pattern": "Hardmax",
    "Residual": "Embedding",
    "HeadWeights": [1.0, 0.0, -0.5],
    "WordInPattern": 1,
    "PositionInPattern": 0,
    "WordInValues": 1,
    "PositionInValues": 0,
    "Angles": "Skewed",
    "Quantities": ["Class", "ClassColor", "Attention", "Output"],
}
DISPLAY = ("MapScalars", "Ambient", "Diffuse", "Representation", "ColorArrayName")


class State(AtlasTest):
    def build(self):
        """A pipeline with no property at its default."""
        model = atlastest.read_model()
        torus = simple.AttentionTorus(registrationName="Torus", Input=model, **PROPERTIES)
        pairs = simple.TokenPairs(registrationName="Pairs", Input=model, Residual="RawEmbedding", HeadWeights=[0.5, 1, 1])
        view = atlastest.chart_view()
        for source in (torus, pairs):
            simple.Show(source, view)
        return self.look("before")

    def look(self, name):
        """All that must come back: properties, arrays, and the picture."""
        view = simple.GetRenderViews()[0]
        sources = {source: simple.FindSource(source) for source in ("Torus", "Pairs")}
        displays = {key: simple.GetDisplayProperties(s, view) for key, s in sources.items()}
        return {
            "torus": {key: plain(getattr(sources["Torus"], key)) for key in PROPERTIES},
            "pairs": [sources["Pairs"].Residual, plain(sources["Pairs"].HeadWeights)],
            "displays": {
                source: {key: plain(getattr(display, key)) for key in DISPLAY}
                for source, display in displays.items()
            },
            "shader": [displays["Pairs"].ShaderPreset, displays["Pairs"].CustomShader],
            "arrays": {key: point_arrays(source) for key, source in sources.items()},
            "picture": atlastest.picture(view, name),
        }

    def expect_same(self, found, expected):
        for key in ("torus", "pairs", "displays", "shader"):
            self.assertEqual(found[key], expected[key])
        for source, arrays in expected["arrays"].items():
            self.assert_same_arrays(found["arrays"][source], arrays)
        self.assertEqual((found["picture"] != expected["picture"]).sum(), 0)

    def test_is_not_the_default(self):
        state = self.build()
        self.assertEqual(state["torus"], PROPERTIES)
        self.assertEqual(state["displays"]["Torus"]["MapScalars"], 0)
        default = simple.AttentionTorus(Input=atlastest.read_model())
        unchanged = [key for key in PROPERTIES if plain(getattr(default, key)) == PROPERTIES[key]]
        self.assertEqual(unchanged, ["WordInPattern", "WordInValues"])

    def test_pvsm(self):
        """Colors follow what is chosen after loading, too."""
        expected = self.build()
        self.reload()
        self.expect_same(self.look("after-pvsm"), expected)
        view = simple.GetRenderViews()[0]
        display = simple.GetDisplayProperties(simple.FindSource("Torus"), view)
        for array, mapped in (("Class", 1), ("ClassColor", 0), ("Attention 0", 1)):
            simple.ColorBy(display, ("POINTS", array))
            self.assertEqual(display.MapScalars, mapped, array)

    def test_python(self):
        expected = self.build()
        path = atlastest.OUTPUT / "state.py"
        path.write_text(smstate.get_state())
        for view in simple.GetRenderViews():
            simple.Delete(view)
        self.start_session()
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
        self.expect_same(self.look("after-python"), expected)
