"""The interface is documented, and the documents follow it: a check of files, without ParaView.

    python3 TestXml.py

Every property has a label, documentation and a domain that contains its default. Every panel is grouped.
Reference.md is up to date, the README has the two commands, and the text has none of the words below.
"""

import collections
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "Plugin" / "scripts"
DOCUMENTATION = ROOT / "Plugin" / "Documentation"
PAGES = [ROOT / "README.md", ROOT / "Data" / "README.md", ROOT / ".github" / "CONTRIBUTING.md"]
XML = sorted((ROOT / "XML").glob("*.xml"))

sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS))
import help_pages  # noqa: E402

PROXIES = help_pages.read(XML)
OF_USERS = [proxy for (group, _), proxy in PROXIES.items() if group in help_pages.GROUPS]
#: Properties with any text, for which ParaView has no domain, by proxy and property.
FREE_TEXT = {
    ("AttentionDiagram", "Title"),
    ("AttentionDiagram", "ShownTitle"),
    ("RecordingReader", "Architecture"),
    ("TransformerRecorder", "Prompts"),
    ("TransformerRecorder", "TokenIds"),
    ("TransformerRecorder", "Targets"),
    ("TransformerRecorder", "Ablate"),
    ("TransformerRecorder", "PatchFrom"),
    ("TransformerRecorder", "PatchSites"),
    ("PointedText", "Quantities"),
    ("ActivationPatching", "Prompt"),
    ("ActivationPatching", "PatchFrom"),
    ("ActivationPatching", "ReferencePrompts"),
    ("ActivationPatching", "Target"),
    ("ActivationPatching", "Against"),
    ("TransformerRecorder", "Segments"),
    ("TokenSearch", "Text"),
    ("BigramTable", "Tokens"),
    ("HeadCircuit", "Tokens"),
    ("SkipTrigrams", "Tokens"),
    ("QueryKeyContrast", "Column"),
    ("LogitAttribution", "TargetToken"),
    ("LogitAttribution", "Against"),
}
#: The most entries of a submenu.
LONGEST_MENU = 12
#: A panel with more visible properties than this has groups.
UNGROUPED_AT_MOST = 3
#: A panel shows no more properties than this at first, the rest after a click on its gear.
SHOWN_AT_MOST = 8
#: Names in CamelCase that are written so everywhere.
PROPER_NAMES = "ALiBi|AttentionViz|ReLU|SiLU|TransformerLens"
#: The first sentence of a property's text is its tooltip (Plugin/Gui/pqPropertyWidgets.cxx).
TOOLTIP_AT_MOST = 170
#: Words that the style excludes, with what to write in their place.
BANNED = {
    r"tells?": "reports, shows",
    r"of (theirs|ours)": "their, our",
    r"so many": "that number of",
    r"lacks?": "without, missing",
    r"frontiers?": "decision boundary",
    r"colour\w*": "color",
    r"grey\w*": "gray",
    r"neighbour\w*": "neighbor",
    r"behaviour\w*": "behavior",
    r"(normal|optim|recogn|initial|visual)is(e|ed|es|ing|ation)": "-ize",
}


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


def shown_at_first(element, properties):
    """Whether a panel of a new proxy has a row for a property. Decorators hide some at other choices."""
    if not visible(element) or element.get("panel_visibility") == "advanced":
        return False
    shown = True
    for decorator in element.findall("Hints/PropertyWidgetDecorator"):
        name = decorator.get("property")
        # What is known of the input is 0 without one; it is not among the properties.
        default = properties[name].get("default_values") if name in properties else "0" if name.endswith("Info") else None
        if decorator.get("mode") == "visibility" and default is not None:
            matches = default in (decorator.get("value") or decorator.get("values")).split()
            shown = shown and matches != (decorator.get("inverse") == "1")
    return shown


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
    def each(self, check, of=settable):
        for proxy in PROXIES.values():
            for element in of(proxy):
                with self.subTest(f"{proxy.name}.{element.get('name')}"):
                    check(proxy, element)

    def test_there_are_proxies(self):
        self.assertGreater(len(OF_USERS), 15)
        self.assertGreater(sum(len(settable(proxy)) for proxy in PROXIES.values()), 50)

    def test_documentation_is_sentences(self):
        def check(_, element):
            self.assertRegex(documentation(element), r"^[A-Z].{10,}\.$")

        self.each(check, own_properties)

    def test_labels_are_words(self):
        def check(_, element):
            self.assertRegex(element.get("label") or element.get("name"), r"^[A-Z]")
            self.assertNotRegex(element.get("label") or element.get("name"), r"[a-z][A-Z]")

        self.each(check)

    def test_each_property_has_a_domain(self):
        def check(proxy, element):
            is_command = element.tag == "Property"
            free = is_command or (proxy.name, element.get("name")) in FREE_TEXT
            self.assertEqual(bool(domains(element)), not free)

        self.each(check)

    def test_defaults_lie_in_their_domains(self):
        def check(_, element):
            defaults = default_values(element)
            for domain in domains(element) if defaults else []:
                self.expect_inside(defaults, domain)

        self.each(check)

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
        self.each(self.expect_documented_default)

    def expect_documented_default(self, _, element):
        defaults = default_values(element)
        if not defaults:
            return
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

    def test_special_values_are_said_in_one_way(self):
        """As "0: automatic, ..." and "Empty: automatic, ..."; enumerations begin with Auto."""
        other = r"\b([01]|[Ee]mpty( list)?) (chooses|cuts|means|records|takes|trains|uses)\b|FromFile"

        def check(_, element):
            self.assertNotRegex(documentation(element), other)
            for domain in domains(element):
                if domain.tag.endswith("EnumerationDomain"):
                    texts = [entry.get("text") for entry in domain.iter("Entry")]
                    self.assertNotIn("Auto", texts[1:])

        self.each(check)

    def test_menus_are_short(self):
        menus = collections.Counter()
        for proxy in OF_USERS:
            for menu in proxy.element.iterfind("Hints/ShowInMenu"):
                self.assertRegex(menu.get("category"), "^Attention Atlas: ")
                menus[proxy.group, menu.get("category")] += 1
        self.assertTrue(menus)
        for menu, entries in menus.items():
            self.assertLessEqual(entries, LONGEST_MENU, menu)

    def test_panels_are_grouped(self):
        for proxy in OF_USERS:
            with self.subTest(proxy.name):
                shown = {name for name, element in proxy.properties().items() if visible(element)}
                grouped = [name for _, names in proxy.panel_groups() for name in names]
                self.assertEqual(sorted(set(grouped)), sorted(grouped), "in two groups")
                self.assertLessEqual(set(grouped), shown)
                if len(shown) > UNGROUPED_AT_MOST:
                    self.assertEqual(set(), shown - set(grouped))

    def test_panels_are_short(self):
        for proxy in OF_USERS:
            with self.subTest(proxy.name):
                properties = proxy.properties()
                shown = [name for name, each in properties.items() if shown_at_first(each, properties)]
                self.assertLessEqual(len(shown), SHOWN_AT_MOST, shown)

    def test_choices_are_words(self):
        def check(_, element):
            for entry in element.iter("Entry"):
                text = entry.get("info") or entry.get("text")
                self.assertNotRegex(re.sub(PROPER_NAMES, "", text), r"[a-z][A-Z]", "in CamelCase")

        def texts_differ(_, element):
            for domain in domains(element):
                texts = [entry.get("info") or entry.get("text") for entry in domain.findall("Entry")]
                self.assertEqual(len(texts), len(set(texts)))

        self.each(check)
        self.each(texts_differ)

    def test_special_numbers_are_words(self):
        """A number that stands for something else, such as "-1: all heads", has a check box in the panel."""

        def check(_, element):
            said = {found[1] for found in re.finditer(r"(?<![\d.-])(-1|0)(?: \1)*: ", documentation(element))}
            if element.tag in ("IntVectorProperty", "DoubleVectorProperty"):
                hints = element.findall("Hints/AtlasSpecial")
                self.assertEqual(said, {hint.get("value") for hint in hints})
                for hint in hints:
                    self.assertRegex(hint.get("text"), r"^[A-Z][a-z]+")
                    self.assertNotEqual(hint.get("value"), hint.get("start"))

        def minus_one_is_no_bound(_, element):
            for domain in element if element.find("Hints/AtlasSpecial") is None else []:
                if domain.tag.endswith("RangeDomain") and not domain.get("max"):
                    self.assertNotIn("-1", (domain.get("min") or "").split())

        self.each(check)
        self.each(minus_one_is_no_bound)

    def test_tooltips_are_short(self):
        def check(_, element):
            sentence = re.split(r"(?<! al)\.(?= )", documentation(element))[0]
            self.assertLessEqual(len(sentence), TOOLTIP_AT_MOST, sentence)

        self.each(check)

    def test_proxies_are_documented(self):
        for proxy in OF_USERS:
            with self.subTest(proxy.name):
                self.assertRegex(help_pages.line(proxy.help.text), r"^[A-Z].{60,}\.$")
                for key in ("short_help", "long_help"):
                    self.assertRegex(proxy.help.get(key), r"^[A-Z][^.]+\.$")


class Documents(unittest.TestCase):
    def test_the_reference_is_up_to_date(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "Reference.md")
            command = [sys.executable, SCRIPTS / "help_pages.py", "--reference", path, *reversed(XML)]
            subprocess.run(command, check=True)
            expected = path.read_text(encoding="utf-8")
        found = (DOCUMENTATION / "Reference.md").read_text(encoding="utf-8")
        self.assertTrue(found == expected, "Reference.md is stale; its first lines say how to generate it.")

    def test_the_readme_has_the_two_commands(self):
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        for preset in ("figures", "test"):
            self.assertIn(f"Plugin/install-deps.sh && cmake --workflow --preset {preset}\n", text)

    def test_the_citation_has_the_version(self):
        (version,) = re.findall(r"^project\(.* VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)
        self.assertIn(f"\nversion: {version}\n", (ROOT / "CITATION.cff").read_text(encoding="utf-8"))

    def test_words(self):
        # bad-input.md has the program's messages, which a test writes.
        written = [path for path in DOCUMENTATION.glob("*.md") if path.name != "bad-input.md"]
        wrong = []
        for path in [*XML, *PAGES, *written]:
            text = path.read_text(encoding="utf-8")
            for pattern, better in BANNED.items():
                for found in re.finditer(rf"\b({pattern})\b", text, re.IGNORECASE):
                    row = text.count("\n", 0, found.start()) + 1
                    wrong.append(f"{path.name}:{row}: write '{better}' in place of '{found[0]}'")
        self.assertEqual([], wrong)


if __name__ == "__main__":
    unittest.main()
