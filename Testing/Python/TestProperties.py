"""The interface that users script against, as ParaView reads it: menu, defaults, enumerations.

TestXml.py checks the XML itself.
"""

import xml.etree.ElementTree as ElementTree

import atlastest
from atlastest import AtlasTest
from paraview import servermanager, simple

GROUPS = {}
for path in sorted((atlastest.SOURCE / "XML").glob("*.xml")):
    for group in ElementTree.parse(path).getroot():
        GROUPS.setdefault(group.get("name"), []).extend(group)
FILTERS = GROUPS["filters"]


def settable(proxy):
    elements = [child for child in proxy if child.tag.endswith("Property")]
    return [element for element in elements if element.get("information_only") != "1"]


class Proxies(AtlasTest):
    def transformers(self):
        recording = simple.RecordingReader(FileName=str(atlastest.RECORDING))
        return [
            simple.AttentionMap(Input=recording),
            simple.TransformerRecorder(Input=simple.TransformerReader()),
        ]

    def filters(self):
        return self.transformers() + [
            create(Input=atlastest.read_model())
            for create in (
                simple.AttentionTorus,
                simple.TokenPairs,
                simple.ScoreHarmonics,
                simple.HeadAccuracySimplex,
                simple.HeadAccuracy,
            )
        ]

    def test_filters_are_in_the_menu(self):
        for proxy in FILTERS:
            menu = proxy.find("Hints/ShowInMenu")
            self.assertRegex(menu.get("category"), "^Attention Atlas: ")
            self.assertTrue(menu.get("icon"))

    def test_defaults_are_those_of_the_xml(self):
        described = {proxy.get("name"): proxy for proxy in FILTERS}
        for proxy in self.filters():
            for element in settable(described[proxy.GetXMLName()]):
                expected = element.get("default_values")
                if expected is None or element.tag == "StringVectorProperty":
                    continue
                found = servermanager.vtkSMPropertyHelper(proxy.SMProxy, element.get("name"))
                values = [found.GetAsDouble(i) for i in range(found.GetNumberOfElements())]
                self.assertEqual(
                    values,
                    [float(value) for value in expected.split()],
                    f"{proxy.GetXMLName()}.{element.get('name')}",
                )

    def test_shared_defaults_are_those_of_the_xml(self):
        (shared,) = (p for p in GROUPS["internal_filters"] if p.get("name") == "TorusAlgorithm")
        checked = 0
        for make in (simple.AttentionTorus, simple.TokenPairs):
            proxy = make(Input=atlastest.read_model())
            for element in settable(shared):
                if element.get("default_values") is not None:
                    found = servermanager.vtkSMPropertyHelper(proxy.SMProxy, element.get("name"))
                    self.assertEqual(found.GetAsInt(), int(element.get("default_values")))
                    checked += 1
        self.assertEqual(checked, 2 * 7)

    def test_defaults_of_lists(self):
        torus = simple.AttentionTorus(Input=atlastest.read_model())
        self.assertEqual(list(torus.HeadWeights), [])
        self.assertEqual(list(torus.Quantities), ["Class", "Probability", "ClassColor"])
        self.assertIsNone(torus.Points)

    def test_defaults_of_a_bare_proxy(self):
        torus = servermanager.filters.AttentionTorus(Input=atlastest.read_model())
        names = sorted(atlastest.point_arrays(torus))
        self.assertEqual(names, ["Class", "ClassColor", "Probability"])

    def test_enumerations_have_the_names_of_the_design(self):
        torus = simple.AttentionTorus(Input=atlastest.read_model())
        pairs = simple.TokenPairs(Input=atlastest.read_model())
        residuals = ["EmbeddingPosition", "Embedding", "None"]
        self.assertEqual(list(torus.GetProperty("Residual").Available), residuals)
        residuals.append("RawEmbedding")
        self.assertEqual(list(pairs.GetProperty("Residual").Available), residuals)
        self.assertEqual(list(torus.GetProperty("Pattern").Available), ["Softmax", "Hardmax"])
        self.assertEqual(list(torus.GetProperty("Angles").Available), ["Isometric", "Skewed"])


if __name__ == "__main__":
    atlastest.main()
