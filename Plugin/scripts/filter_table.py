"""Writes what Python knows of the filters, from the XML of ParaView's proxies: a table in JSON.

    python3 filter_table.py TABLE CLASSES FILE.xml...

TABLE: of each reader, source, filter and writer by its name: its VTK class, inputs, outputs, and properties with the
commands that set them, defaults and words, and how views show each output. CLASSES: the module of each VTK class.
"""

import json
import pathlib
import sys

import help_pages

_FILTERS = pathlib.Path(__file__).parents[2] / "Filters"
_SHOWN = ("sources", "filters", "writers")
_TYPES = {"IntVectorProperty": "int", "DoubleVectorProperty": "float", "StringVectorProperty": "text", "Property": "call"}
#: ParaView's own classes around one of ours: readers and writers of files over time.
_WRAPPERS = ("vtkFileSeriesReader", "vtkFileSeriesWriter")
#: Properties of labels, whose defaults every output has.
_LABELS = ("MaximumLabels", "LabelFontSize", "LabelHeight")


def python_name(element):
    """The name that ParaView gives a property in Python: its label, without what no name can have."""
    label = element.get("label") or element.get("name")
    return "".join(c for c in label if c.isalnum() or c == "_")


def elements(proxy):
    """All properties of a proxy, also those that only tell something, by their names in the XML."""
    found = elements(proxy.base) if proxy.base else {}
    found.update({child.get("name"): child for child in proxy.element if child.tag.endswith("Property")})
    return found


def core(proxy):
    """The proxy whose class does the work: the inner one of a series of files."""
    if proxy.element.get("class") in _WRAPPERS:
        inner = proxy.element.find("SubProxy/Proxy")
        return proxy.known[inner.get("proxygroup"), inner.get("proxyname")]
    return proxy


def values(element):
    """The default of a property."""
    text = element.get("default_values")
    if text is None or element.tag == "Property":
        return []
    if element.tag == "StringVectorProperty":
        return text.split(element.get("default_values_delimiter")) if element.get("default_values_delimiter") else [text]
    number = int if element.tag == "IntVectorProperty" else float
    return [] if text == "none" else [number(one) for one in text.split()]


def entries(element):
    """The words of a property with their numbers."""
    for domain in element:
        if domain.tag.endswith("EnumerationDomain"):
            return {entry.get("text"): int(entry.get("value")) for entry in domain.findall("Entry")}
    return {}


def default_of_input(element, known):
    """The command that tells the range of a property and the end of it that is its default, if its input decides it."""
    for domain in element:
        mode = domain.get("default_mode")
        for required in domain.iter("Property"):
            if mode and required.get("function") == "Range":
                return [known[required.get("name")].get("command"), ("min", "max").index(mode)]
    return None


def property_row(element, known):
    count = int(element.get("number_of_elements") or 0)
    row = {
        "name": python_name(element),
        "type": _TYPES[element.tag],
        "command": element.get("command"),
        "count": count,
        "default": values(element),
        "words": entries(element),
        "choices": [entry.get("value") for entry in element.findall("StringListDomain/String")],
        "range": default_of_input(element, known),
        "each": int(element.get("number_of_elements_per_command") or 1) if element.get("repeat_command") else 0,
        "clean": element.get("clean_command"),
        "indexed": element.get("use_index") == "1",
        "number": element.get("set_number_command"),
        "boolean": element.find("BooleanDomain") is not None,
        "selects": element.find("ArraySelectionDomain") is not None,
        "special": [[hint.get("text"), float(hint.get("value"))] for hint in element.findall("Hints/AtlasSpecial")],
    }
    return {key: value for key, value in row.items() if value or key in ("name", "type")}


def input_row(element):
    row = {
        "name": python_name(element),
        "port": int(element.get("port_index") or 0),
        "command": element.get("command"),
        "clean": element.get("clean_command"),
        "optional": element.find("Hints/Optional") is not None,
        "formats": [name for domain in element.findall("AtlasFormatDomain") for name in domain.get("formats", "").split()],
    }
    return {key: value for key, value in row.items() if value or key in ("name", "port")}


def value(element):
    """What a hint gives a property of a representation: a text, a number or a list of numbers."""
    if element.get("text") is not None:
        return element.get("text")
    numbers = [float(one) for one in element.get("values").split()]
    return numbers if len(numbers) > 1 else numbers[0]


def look(proxy, port):
    """How a view shows an output, by the hints that RepresentationHints.cxx reads: kind, arrays (of which the last one that
    is there gives the colors), suffix (of such an array), discs, and other properties by their names."""
    labels = elements(proxy.known["representations", "TokenLabelsRepresentation"])
    found = {name: values(labels[name])[0] for name in _LABELS} | {"arrays": []}
    hints = [one for one in proxy.element.findall("Hints/*") if one.tag == "RepresentationType"]
    for one in [*hints, *proxy.element.findall("Hints/AtlasRepresentation/*")]:
        if int(one.get("port", port)) != port:
            continue
        if one.tag == "RepresentationType":
            found["kind"] = one.get("type")
        elif one.tag == "ColorArray" and one.get("suffix"):
            found["suffix"] = one.get("suffix")
        elif one.tag == "ColorArray":
            found["arrays"].append(one.get("name"))
        elif one.tag == "Discs":
            discs = {"array": one.get("array"), "radius": float(one.get("radius", 0.1)), "z": float(one.get("z", 0))}
            found["discs"] = discs
        elif one.tag == "Property":
            found["kind" if one.get("name") == "Representation" else one.get("name")] = value(one)
    return found


def row(proxy):
    """What the table has of a proxy."""
    inner = core(proxy)
    known = {**elements(inner), **elements(proxy)} if inner is not proxy else elements(proxy)
    outputs = max(1, len(proxy.element.findall("OutputPort")))
    rows = {
        "class": inner.element.get("class"),
        "label": proxy.label,
        "outputs": outputs,
        "inputs": [input_row(one) for one in known.values() if one.tag == "InputProperty"],
        "properties": [
            property_row(one, known) for one in known.values()
            if one.tag in _TYPES and one.get("information_only") != "1"
        ],
    }
    if proxy.element.find("Hints/AtlasRepresentation") is not None:
        rows["looks"] = [look(proxy, port) for port in range(outputs)]
    if inner is not proxy:
        rows["series"] = True
        for one in rows["properties"]:
            if one.get("command") == "AddFileName":  # of ParaView's class; ours reads one file
                one.update(command=proxy.element.get("file_name_method"), each=0, clean=None)
    if proxy.group == "writers":
        rows["writes"] = True
    return rows


def main():
    path, classes, *sources = map(pathlib.Path, sys.argv[1:])
    known = help_pages.read(sources)
    table = {name: row(proxy) for (group, name), proxy in known.items() if group in _SHOWN}
    modules = {header.stem: f"AttentionAtlas{header.parent.name}" for header in sorted(_FILTERS.glob("*/vtk*.h"))
               if "ParaView::" not in (header.parent / "vtk.module").read_text(encoding="utf-8")}
    lines = ["from typing import Any", *(f"from attentionatlas.vtk.{module} import {name} as {name}" for name, module in modules.items())]
    types = "\n".join([*lines, "", "def class_of(name: str) -> Any: ...", ""])
    (classes.parent / "__init__.pyi").write_text(types, encoding="utf-8")
    for file, made in ((path, table), (classes, modules)):
        file.write_text(json.dumps(made, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
