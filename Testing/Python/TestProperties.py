"""The interface that users script against: each property is explained and has a domain."""

import xml.etree.ElementTree as ElementTree

import atlastest
from atlastest import AtlasTest
from paraview import servermanager, simple

GROUPS = {}
for path in sorted((atlastest.SOURCE / "XML").glob("*.xml")):
    for group in ElementTree.parse(path).getroot():
        GROUPS.setdefault(group.get("name"), []).extend(group)
PROXIES = [proxy for proxies in GROUPS.values() for proxy in proxies]
FILTERS = GROUPS["filters"]
#: Properties that hold any text, for which ParaView has no domain.
TEXTS = {
    "Text",
    "Architecture",
    "Prompts",
    "TokenIds",
    "Segments",
    "Tokens",
    "Ablate",
    "PatchFrom",
    "ReferencePrompts",
    "PatchSites",
    "Prompt",
    "Target",
    "TargetToken",
    "Column",
    "Against",
}


def properties(proxy):
    return [child for child in proxy if child.tag.endswith("Property")]


def settable(proxy):
    return [p for p in properties(proxy) if p.get("information_only") != "1"]


def domains(element):
    return [child for child in element if child.tag.endswith("Domain")]


def words(element):
    """The text of an element, in one line."""
    return " ".join((element.text or "").split()) if element is not None else ""


class Xml(AtlasTest):
    def each_property(self, check, of=settable):
        """Checks every property; a failure names it."""
        for proxy in PROXIES:
            for element in of(proxy):
                with self.subTest(f"{proxy.get('name')}.{element.get('name')}"):
                    check(element)

    def test_there_are_proxies(self):
        names = [proxy.get("name") for proxy in FILTERS]
        expected = {"AttentionTorus", "TokenPairs", "UnembeddingSphere", "AttentionMap"}
        self.assertLessEqual(expected, set(names))
        self.assertGreater(len([p for proxy in PROXIES for p in settable(proxy)]), 10)

    def test_proxies_are_documented(self):
        for proxy in PROXIES:
            if "class" not in proxy.attrib:
                continue
            with self.subTest(proxy.get("name")):
                self.assertGreater(len(words(proxy.find("Documentation"))), 30)

    def test_proxies_of_users_have_labels_and_short_help(self):
        for group in ("sources", "filters", "writers"):
            for proxy in GROUPS[group]:
                with self.subTest(proxy.get("name")):
                    self.assertRegex(proxy.get("label"), "^[A-Z]")
                    self.assertTrue(proxy.find("Documentation").get("short_help").endswith("."))
                    self.assertTrue(proxy.find("Documentation").get("long_help").endswith("."))

    def test_properties_are_documented(self):
        def check(element):
            text = words(element.find("Documentation"))
            self.assertGreater(len(text), 10)
            self.assertTrue(text.endswith("."), text)

        self.each_property(check, properties)

    def test_properties_have_domains(self):
        self.each_property(
            lambda element: self.assertTrue(domains(element) or element.get("name") in TEXTS)
        )

    def test_defaults_are_documented(self):
        def check(element):
            if element.get("default_values") is not None:
                self.assertIn("Default: ", words(element.find("Documentation")))

        self.each_property(check)

    def test_defaults_lie_in_their_domains(self):
        self.each_property(self.expect_default_in_domains)

    def expect_default_in_domains(self, element):
        if element.tag == "StringVectorProperty":
            return  # its domain is what the input has
        values = [float(value) for value in (element.get("default_values") or "").split()]
        for domain in domains(element):
            if domain.tag.endswith("RangeDomain"):
                self.expect_in_range(values, domain)
            elif domain.tag.endswith("EnumerationDomain"):
                entries = [float(entry.get("value")) for entry in domain]
                self.assertTrue(set(values) <= set(entries))
            elif domain.tag == "BooleanDomain":
                self.assertTrue(set(values) <= {0, 1})

    def expect_in_range(self, values, domain):
        for attribute, outside in (("min", float.__lt__), ("max", float.__gt__)):
            bounds = [float(bound) for bound in (domain.get(attribute) or "").split()]
            for value, bound in zip(values, bounds):
                self.assertFalse(outside(value, bound), f"{value} and {attribute} {bound}")

    def test_filters_are_in_the_menu(self):
        for proxy in FILTERS:
            menu = proxy.find("Hints/ShowInMenu")
            self.assertEqual(menu.get("category"), "Attention Atlas")
            self.assertTrue(menu.get("icon"))


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
                simple.AttentionHarmonics,
                simple.HeadAccuracySimplex,
                simple.HeadAccuracy,
            )
        ]

    def test_labels_are_words(self):
        for proxy in [atlastest.read_model(), *self.filters()]:
            for key in proxy.ListProperties():
                label = proxy.GetProperty(key).SMProperty.GetXMLLabel()
                self.assertNotRegex(label, "[a-z][A-Z]", f"{proxy.GetXMLName()}.{key}")

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
