"""The interface is documented, and the documents follow it: a check of files, without ParaView.

    python3 TestXml.py

Every property has documentation, a domain that contains its default, and this default in its text. Every panel is
grouped. Reference.md is up to date.
"""

import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "Plugin" / "scripts"
XML = sorted((ROOT / "XML").glob("*.xml"))

sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS))
import help_pages  # noqa: E402

PROXIES = help_pages.read(XML)
OF_USERS = [proxy for (group, _), proxy in PROXIES.items() if group in help_pages.GROUPS]
#: A panel with more visible properties than this has groups.
UNGROUPED_AT_MOST = 3


def own_properties(proxy):
    """The properties that the proxy itself defines."""
    return [child for child in proxy.element if child.tag.endswith("Property")]


def settable(proxy):
    return [element for element in own_properties(proxy) if element.get("information_only") != "1"]


def visible(element):
    """Whether a property has a row in the panel. Inputs do where they are chosen there."""
    is_selection = element.find("Hints/SelectionInput") is not None
    is_hidden_input = element.tag == "InputProperty" and not element.get("panel_widget") and not is_selection
    return not is_hidden_input and element.get("panel_visibility") != "never"


def domains(element):
    return [child for child in element if child.tag.endswith("Domain")]


def documentation(element):
    return help_pages.line(element.findtext("Documentation"))


def default_values(element):
    """The words of a property's default; of a chosen array, the name alone."""
    text = element.get("default_values") or ""
    delimiter = element.get("default_values_delimiter")
    if delimiter is not None:
        return text.split(delimiter)[-1:]
    if element.tag == "StringVectorProperty" and element.get("number_of_elements") == "1":
        return [text] if text else []
    return text.split()


def number(word):
    """A number of the documentation, where pi stands for itself."""
    return {"pi": math.pi, "-pi": -math.pi}.get(word) or float(word)


class Properties(unittest.TestCase):
    def each(self, of=settable):
        """The names and elements of all properties."""
        found = {
            f"{proxy.group}.{proxy.name}.{element.get('name')}": element
            for proxy in PROXIES.values() for element in of(proxy)
        }
        self.assertGreater(len(found), 300)
        return found.items()

    def test_diagrams_have_the_icon_of_their_view(self):
        """ParaView warns of a type of view that has no icon of its own."""
        shown = [proxy for proxy in PROXIES.values() if any(v.get("type") == "AttentionDiagram" for v in proxy.element.iter("View"))]
        self.assertGreater(len(shown), 15)
        for proxy in shown:
            icons = [icon.get("name") for icon in proxy.element.iter("PipelineIcon")]
            self.assertEqual(icons, [":/AttentionAtlas/AttentionDiagram.svg"], proxy.name)

    def test_documentation_is_sentences(self):
        for name, element in self.each(own_properties):
            with self.subTest(name):
                self.assertRegex(documentation(element), r"^[A-Z].{10,}\.$")
        for proxy in OF_USERS:
            with self.subTest(proxy.name):
                self.assertRegex(help_pages.line(proxy.help.text), r"^[A-Z].{60,}\.$")
                for key in ("short_help", "long_help"):
                    self.assertRegex(proxy.help.get(key), r"^[A-Z][^.]+\.$")

    def test_each_property_has_a_domain(self):
        """But texts, for which ParaView has none, and commands."""
        for name, element in self.each():
            with self.subTest(name):
                self.assertTrue(domains(element) or element.tag in ("Property", "StringVectorProperty"))

    def test_defaults_lie_in_their_domains(self):
        for name, element in self.each():
            with self.subTest(name):
                defaults = default_values(element)
                for domain in domains(element) if defaults else []:
                    self.expect_inside(defaults, domain)

    def expect_inside(self, defaults, domain):
        if domain.tag.endswith("RangeDomain"):
            for key, is_inside in (("min", float.__ge__), ("max", float.__le__)):
                bounds = (domain.get(key) or "").split()
                for default, bound in zip(defaults, bounds):
                    self.assertTrue(is_inside(float(default), float(bound)), f"{key} {bound}")
        elif domain.tag == "BooleanDomain":
            self.assertIn(defaults, (["0"], ["1"]))
        elif domain.tag.endswith("EnumerationDomain") or domain.tag == "StringListDomain":
            self.assertLessEqual(set(defaults), {entry.get("value") for entry in domain})

    def test_documented_defaults_are_those_of_the_xml(self):
        for name, element in self.each():
            with self.subTest(name):
                if default_values(element):
                    self.expect_documented_default(element, default_values(element))

    def expect_documented_default(self, element, defaults):
        found = re.search(r"Default: (.+)\.$", documentation(element))
        self.assertTrue(found, documentation(element))
        kinds = {domain.tag.replace("Atlas", ""): domain for domain in domains(element)}
        enumeration = next((kinds[tag] for tag in kinds if tag.endswith("EnumerationDomain")), None)
        if enumeration is not None:
            texts = {entry.get("value"): entry.get("text") for entry in enumeration.iter("Entry")}
            self.assertEqual(found[1], " ".join(texts[default] for default in defaults))
        elif "BooleanDomain" in kinds:
            self.assertEqual(found[1], "on" if defaults == ["1"] else "off")
        elif element.tag == "StringVectorProperty":
            self.assertEqual(found[1], " ".join(defaults))
        else:
            values = [number(word) for word in found[1].split()]
            self.assertEqual(values, [float(default) for default in defaults])

    def test_choices_differ(self):
        for name, element in self.each():
            with self.subTest(name):
                for domain in domains(element):
                    texts = [entry.get("info") or entry.get("text") for entry in domain.findall("Entry")]
                    self.assertEqual(len(texts), len(set(texts)))

    def test_special_numbers_have_a_check_box(self):
        """A number that stands for something else, such as "-1: all heads"."""
        for name, element in self.each():
            with self.subTest(name):
                hints = element.findall("Hints/AtlasSpecial")
                if element.tag in ("IntVectorProperty", "DoubleVectorProperty"):
                    said = {found[1] for found in re.finditer(r"(?<![\d.-])(-1|0)(?: \1)*: ", documentation(element))}
                    self.assertEqual(said, {hint.get("value") for hint in hints})
                    for hint in hints:
                        self.assertRegex(hint.get("text"), r"^[A-Z][a-z]+")
                        self.assertNotEqual(hint.get("value"), hint.get("start"))
                for domain in domains(element) if not hints else []:
                    if domain.tag.endswith("RangeDomain") and not domain.get("max"):
                        self.assertNotIn("-1", (domain.get("min") or "").split())

    def test_panels_are_grouped(self):
        for proxy in OF_USERS:
            with self.subTest(proxy.name):
                shown = {name for name, element in proxy.properties().items() if visible(element)}
                grouped = [name for _, names in proxy.panel_groups() for name in names]
                self.assertEqual(sorted(set(grouped)), sorted(grouped), "in two groups")
                self.assertLessEqual(set(grouped), shown)
                if len(shown) > UNGROUPED_AT_MOST:
                    self.assertEqual(set(), shown - set(grouped))


class Documents(unittest.TestCase):
    def test_the_reference_is_up_to_date(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "Reference.md")
            command = [sys.executable, SCRIPTS / "help_pages.py", "--reference", path, *reversed(XML)]
            subprocess.run(command, check=True)
            expected = path.read_text(encoding="utf-8")
        found = (ROOT / "Plugin" / "Documentation" / "Reference.md").read_text(encoding="utf-8")
        self.assertTrue(found == expected, "Reference.md is stale; its first lines say how to generate it.")

    def test_the_citation_has_the_version(self):
        (version,) = re.findall(r"^project\(.* VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)
        self.assertIn(f"\nversion: {version}\n", (ROOT / "CITATION.cff").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
