"""Each class is born with the defaults that the XML gives its proxy.

ParaView pushes the XML's defaults to every object that it makes, so that a proxy cannot show those of its class. This
test defines a proxy without setters for each class, and asks it for what the setters of the XML set.
"""

import copy
import xml.etree.ElementTree as ElementTree

import atlastest
from atlastest import AtlasTest, read_proxies
from paraview import servermanager, simple
from vtkmodules.vtkCommonDataModel import vtkDataObject

GROUP = "atlas_bare"
HELPERS = {
    "IntVectorProperty": "SimpleIntInformationHelper",
    "DoubleVectorProperty": "SimpleDoubleInformationHelper",
    "StringVectorProperty": "SimpleStringInformationHelper",
    "IdTypeVectorProperty": "SimpleIdTypeInformationHelper",
}
#: Lists with a default, which no method without arguments gives: where they are tested instead.
ELSEWHERE = {
    ("AttentionTokens", "Vectors"): "TestAttentionTokensFilter",
    ("HarmonicHead", "Coefficients"): "TestTorusAlgorithm",
}
#: Views, whose settings are those of ParaView's class and have no methods that give them: TestDiagrams.
RENDERED = {"vtkDiagramView"}


def our_classes():
    """The classes that the modules make for proxies; not those of the server manager itself."""
    found = {path.stem for path in (atlastest.SOURCE / "Filters").glob("*/vtk*.h")}
    return {name for name in found if not name.startswith("vtkSM")} - RENDERED


def properties(proxies, proxy):
    """The properties of a proxy that are set, its own and those of the proxies that it extends, by name."""
    base = proxies.get((proxy.get("base_proxygroup"), proxy.get("base_proxyname")))
    found = {} if base is None else properties(proxies, base)
    for element in proxy:
        if element.tag in HELPERS and element.get("command") and element.get("information_only") != "1":
            found[element.get("name")] = element
    return found


def is_list(element):
    return element.get("repeat_command") == "1"


def is_array(element):
    """Whether a property chooses an array of the input: no method without arguments gives its name."""
    return element.get("command") == "SetInputArrayToProcess"


def expected(element):
    """The default as the XML has it."""
    text = element.get("default_values")
    if is_array(element):
        return [text.split(";")[-1]]
    if element.tag == "StringVectorProperty":
        return [text or ""]
    return [float(value) for value in (text or "").split()]


def described(proxy, elements):
    """A proxy of the same class that has no setters, as XML."""
    bare = ElementTree.Element("Proxy", {"name": proxy.get("name"), "class": proxy.get("class")})
    for element in elements:
        getter = {"name": element.get("name"), "command": "G" + element.get("command")[1:], "information_only": "1"}
        information = ElementTree.SubElement(bare, element.tag, getter)
        ElementTree.SubElement(information, HELPERS[element.tag])
    return bare


def values_of(proxy, element):
    """The values of a property as its object has them now."""
    name = element.get("name")
    if is_array(element):
        information = proxy.GetClientSideObject().GetInputArrayInformation(0)
        return [information.Get(vtkDataObject.FIELD_NAME()) or ""]
    helper = servermanager.vtkSMPropertyHelper(proxy.GetProperty(name))
    if proxy.GetProperty(name).IsA("vtkSMStringVectorProperty"):
        return [helper.GetAsString(i) or "" for i in range(helper.GetNumberOfElements())]
    return [helper.GetAsDouble(i) for i in range(helper.GetNumberOfElements())]


class Defaults(AtlasTest):
    def mismatches(self, proxies):
        """What proxies and classes disagree in, and how many defaults were compared."""
        checked = {
            key: [p for p in properties(proxies, proxy).values() if not is_list(p)]
            for key, proxy in proxies.items()
            if proxy.get("class") in our_classes()
        }
        root = ElementTree.Element("ServerManagerConfiguration")
        group = ElementTree.SubElement(root, "ProxyGroup", {"name": GROUP})
        for key, elements in checked.items():
            group.append(described(proxies[key], [e for e in elements if not is_array(e)]))
        manager = servermanager.ProxyManager().SMProxyManager
        text = ElementTree.tostring(root, encoding="unicode")
        manager.GetProxyDefinitionManager().LoadConfigurationXMLFromString(text)
        wrong = []
        for key, elements in checked.items():
            bare = manager.NewProxy(GROUP, key[1])
            bare.UpdateVTKObjects()
            bare.UpdatePropertyInformation()
            for element in elements:
                found = values_of(bare, element)
                if found != expected(element):
                    wrong.append((key[1], element.get("name"), found))
        return wrong, checked

    def test_classes_have_the_defaults_of_the_xml(self):
        wrong, checked = self.mismatches(read_proxies())
        self.assertEqual(wrong, [])
        classes = {read_proxies()[key].get("class") for key in checked}
        self.assertGreaterEqual(len(classes), 20)
        self.assertGreater(sum(len(elements) for elements in checked.values()), 80)

    def test_lists_have_no_defaults(self):
        proxies = read_proxies()
        lists = {
            (key[1], element.get("name"))
            for key, proxy in proxies.items()
            for element in properties(proxies, proxy).values()
            if is_list(element) and element.get("default_values") is not None
        }
        self.assertEqual(lists, set(ELSEWHERE))

    def test_every_class_has_a_proxy(self):
        abstract = {
            "vtkTaskAlgorithm", "vtkRecordingAlgorithm", "vtkHeadAlgorithm", "vtkModelAlgorithm", "vtkTorusAlgorithm", "vtkCorpusAlgorithm",
            "vtkSafetensorsWriter", "vtkArrayColors",
        }
        classes = {proxy.get("class") for proxy in read_proxies().values()}
        self.assertEqual(our_classes() - abstract - classes, set())

    def test_a_bare_proxy_has_the_default_quantities(self):
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

    def test_another_default_is_found(self):
        proxies = copy.deepcopy(read_proxies())
        changes = {
            ("filters", "AttentionTorus"): ("Resolution", "512 511"),
            ("internal_filters", "TorusAlgorithm"): ("Pattern", "1"),
            ("sources", "AttentionOnlyTraining"): ("LearningRate", "0.0100000001"),
            ("filters", "TorusDeformation"): ("Vectors", "0;0;0;0;Mix"),
            ("sources", "TransformerReader"): ("Architecture", "gpt2"),
        }
        for key, (name, default) in changes.items():
            properties(proxies, proxies[key])[name].set("default_values", default)
        wrong, _ = self.mismatches(proxies)
        found = {(proxy, name): values for proxy, name, values in wrong}
        self.assertEqual(found["AttentionTorus", "Resolution"], [512, 512])
        self.assertEqual(found["TokenPairs", "Pattern"], [0])
        self.assertEqual(found["AttentionOnlyTraining", "LearningRate"], [0.01])
        self.assertEqual(found["TorusDeformation", "Vectors"], ["Output"])
        self.assertEqual(found["TransformerReader", "Architecture"], ["Auto"])
