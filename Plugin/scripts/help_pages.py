"""Writes the interface documentation from the server-manager XML, its single source.

    python3 help_pages.py -o DIR XML...
    python3 help_pages.py --reference ../Documentation/Reference.md XML...

-o writes the pages of ParaView's Help window: one per document, one per proxy, with its image and every property
that can be set, including inherited ones, and index.html, which links to them. It prints the table of contents for
Qt's help. ParaView generates pages from the same XML under the same names; these replace them. ParaView's have no
images, omit inherited properties, and stop at the first bracket that is not closed.

--reference writes the same content as one Markdown file. Testing/Python/TestXml.py fails if the committed
file differs.
"""

import argparse
import html
import os
import pathlib
import shutil
import struct
import sys
import xml.etree.ElementTree as ElementTree

import documents

IMAGES = pathlib.Path(__file__).resolve().parents[1] / "Documentation" / "pictures"
TITLE = "Attention Atlas"
#: The submenus, in the order in which a newcomer meets them, and what a chapter calls them.
CHAPTERS = {
    "Small Models": "A small model",
    "Run and Train": "Transformers that run and learn",
    "Heads": "What heads attend to",
    "Tokens": "What heads and tokens say",
    "Circuits": "Circuits",
    "Corpus": "Many texts",
    "Geometry": "Meshes, volumes and molecules",
    "": "Files",
}
#: What is hidden in the panel at first, by panel_visibility.
WHERE = {"advanced": " (advanced)", "never": " (not in the panel)"}
#: The groups of proxies that users create.
GROUPS = ("sources", "filters", "writers")
HEADS = '<th width="24%">Property, in Python</th><th width="56%">Meaning</th><th>Values</th>'
#: The width of images in the index, in pixels.
WIDTH = 160
STYLE = """
body { font-family: sans-serif; margin: 1em 2em; max-width: 46em; }
h2 { margin-bottom: 0.2em; }
table { border-collapse: collapse; width: 100%; }
td, th { border-bottom: 1px solid #c8c8c8; padding: 0.4em 0.6em; text-align: left; vertical-align: top; }
th.group { background: #f0f0f0; }
"""
REFERENCE = """# Reference

All readers, sources, filters and writers of Attention Atlas, with every property. The names are those of
Python; the panel shows them as words. *Advanced* properties appear after a click on the panel's gear. In
ParaView, `?` in the Properties panel shows the same text.

This file is generated from `XML/*.xml`; edit those. To generate it again:

<!-- not run: writes this file -->
```sh
python3 Plugin/scripts/help_pages.py --reference Plugin/Documentation/Reference.md XML/*.xml
```
"""


def line(text):
    """A text in one line."""
    return " ".join((text or "").split())


def words(text):
    """A text in one line, for HTML."""
    return html.escape(line(text))


class Proxy:
    """A proxy of the XML. known: all proxies by group and name."""

    def __init__(self, group, element, known):
        self.group, self.element, self.known = group, element, known
        self.name = element.get("name")
        self.label = element.get("label") or self.name
        self.page = f"{group}.{self.name}.html"
        self.image = IMAGES / f"{self.name}.png"

    @property
    def help(self):
        return self.element.find("Documentation")

    @property
    def base(self):
        return self.known.get((self.element.get("base_proxygroup"), self.element.get("base_proxyname")))

    def properties(self):
        """The properties that can be set, by name: first those of the base proxy and exposed subproxies.

        Old names, which are for old scripts and states, are not among them.
        """
        found = self.base.properties() if self.base else {}
        for part in self.element.iter("SubProxy"):
            within = part.find("Proxy")
            exposed = [p.get("name") for p in part.iter("Property")]
            inner = self.known[within.get("proxygroup"), within.get("proxyname")].properties()
            found.update({name: inner[name] for name in exposed})
        for child in self.element:
            if child.tag.endswith("Property") and child.get("information_only") != "1":
                found[child.get("name")] = child
        return found

    def panel_groups(self):
        """Labels of the panel's groups with the names of their properties, inherited groups first."""
        found = self.base.panel_groups() if self.base else []
        for part in self.element.findall("PropertyGroup"):
            found.append((part.get("label"), [p.get("name") for p in part.findall("Property")]))
        return found

    def sections(self):
        """Labels of groups with {name: property}. The first has what is in no group, if anything."""
        rest = self.properties()
        grouped = []
        for label, names in self.panel_groups():
            grouped.append((label, {name: rest.pop(name) for name in names}))
        inputs = all(element.tag == "InputProperty" for element in rest.values())
        return ([("Input" if inputs else "Properties", rest)] if rest else []) + grouped


def read(paths):
    known = {}
    for path in paths:
        for group in ElementTree.parse(path).getroot():
            for element in group:
                if element.tag.endswith("Proxy"):
                    proxy = Proxy(group.get("name"), element, known)
                    known[group.get("name"), proxy.name] = proxy
    return known


def chapters(known):
    """Titles with their proxies: a chapter for each submenu. Ends the program for a submenu without a title."""
    found = {title: [] for title in CHAPTERS.values()}
    for (group, _), proxy in known.items():
        if group in GROUPS:
            menu = proxy.element.find("Hints/ShowInMenu")
            category = "" if menu is None else menu.get("category", "").split(": ")[-1]
            if category not in CHAPTERS:
                sys.exit(f"help_pages.py: expected a submenu of {', '.join(CHAPTERS)}, found '{category}' ({proxy.name})")
            found[CHAPTERS[category]].append(proxy)
    return found


def choice(entry):
    """A choice as the panel shows it and, if they differ, its name in Python."""
    name = entry.get("text")
    return f"{entry.get('info')} ({name})" if entry.get("info") else name


def values(element):
    """The values that a property can have, from its domains and the hints of Plugin/Gui/pqPropertyWidgets.h."""
    found = [", ".join(choice(entry) for entry in listed) for listed in element.findall("Hints/AtlasWords")]
    for domain in element:
        if domain.tag.endswith("EnumerationDomain"):
            found.append(", ".join(choice(entry) for entry in domain.iter("Entry")))
        elif domain.tag == "StringListDomain":
            found.append(", ".join(entry.get("value") for entry in domain))
        elif domain.tag == "BooleanDomain":
            found.append("on or off")
        elif domain.tag.endswith("RangeDomain") and (domain.get("min") or domain.get("max")):
            bounds = [(word, domain.get(key)) for word, key in (("from", "min"), ("to", "max"))]
            found.append(" ".join(f"{word} {bound.split()[0]}" for word, bound in bounds if bound))
        elif domain.tag == "FileListDomain":
            found.append("files" if element.get("repeatable") or element.get("repeat_command") else "a file")
    elements = int(element.get("number_of_elements") or 1) or 1
    for hint in element.findall("Hints/AtlasSpecial"):
        found.append(f"{hint.get('text')} ({' '.join([hint.get('value')] * elements)})")
    return "; ".join(found)


def page(title, body):
    return (
        f'<html>\n<head>\n<meta charset="utf-8"/>\n<title>{html.escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def image(proxy, width=None):
    """The picture of a proxy, by default at half its size: it has twice as many pixels, for fine screens."""
    if not proxy.image.exists():
        return ""
    if width is None:
        (width,) = struct.unpack(">I", proxy.image.read_bytes()[16:20])
        width //= 2
    return f'<img src="{proxy.image.name}" alt="{html.escape(proxy.label)}" width="{width}"/>'


def proxy_page(proxy):
    rows = ""
    for group, members in proxy.sections():
        rows += f'<tr><th class="group" colspan="3">{html.escape(group)}</th></tr>\n'
        for name, element in members.items():
            label = element.get("label") or name
            where = WHERE.get(element.get("panel_visibility"), "")
            code = f"<br/><code>{name}</code>{where}"
            text = words(element.findtext("Documentation"))
            allowed = html.escape(values(element))
            rows += f"<tr><th>{html.escape(label)}{code}</th><td>{text}</td><td>{allowed}</td></tr>\n"
    table = f"<table>\n<tr>{HEADS}</tr>\n{rows}</table>\n"
    body = f"<h2>{html.escape(proxy.label)}</h2>\n<p><i>{words(proxy.help.get('long_help'))}</i></p>\n"
    body += f"<p>{image(proxy)}</p>\n<p>{words(proxy.help.text)}</p>\n{table if rows else ''}"
    body += f'<p>In Python: <code>{proxy.name}</code>. <a href="index.html">All pages of {TITLE}</a></p>\n'
    return page(proxy.label, body)


class Documents:
    """The pages of the documents. Those of the reference are the pages of proxies."""

    def __init__(self, proxies):
        self.of_proxies = {proxy.name.lower(): proxy.page for proxy in proxies}
        self.images = {}
        reference = documents.DOCUMENTATION / "Reference.md"
        listed = [path for path in documents.paths() if path.parent == documents.DOCUMENTATION and path != reference]
        self.titles = {path: documents.title(path.read_text(encoding="utf-8")) for path in listed}
        self.index = {reference: "index.html", documents.README: "index.html"}

    def link(self, path, anchor):
        """The page of a document, or the image of a file; None for what help does not have."""
        if path in self.titles:
            return f"{path.stem}.html" + (f"#{anchor}" if anchor else "")
        if path in self.index:
            return self.of_proxies.get(anchor, "index.html")
        if path.suffix != ".png" or not path.is_file():
            return None
        name = path.name if path.parent == IMAGES else "-".join(path.relative_to(documents.DOCUMENTATION).parts)
        self.images[name] = path
        return name

    def pages(self):
        """The pages by name."""
        back = f'<p><a href="index.html">All pages of {TITLE}</a></p>\n'
        return {
            f"{path.stem}.html": page(title, documents.to_html(path, self.link) + back)
            for path, title in self.titles.items()
        }


def index_page(found, texts):
    body = f"<h2>{TITLE}</h2>\n<p>See how transformers attend.</p>\n<h3>Documents</h3>\n<ul>\n"
    for path, title in texts.titles.items():
        body += f'<li><a href="{path.stem}.html">{html.escape(title)}</a></li>\n'
    body += "</ul>\n"
    for title, proxies in found.items():
        rows = ""
        for proxy in proxies:
            link = f'<a href="{proxy.page}">{html.escape(proxy.label)}</a>'
            short = words(proxy.help.get("short_help"))
            rows += f"<tr><td>{image(proxy, WIDTH)}</td><th>{link}</th><td>{short}</td></tr>\n"
        body += f"<h3>{title}</h3>\n<table>\n{rows}</table>\n"
    return page(TITLE, body)


def contents(found, texts):
    inner = "".join(f'<section title="{html.escape(t)}" ref="{p.stem}.html"/>' for p, t in texts.titles.items())
    sections = f'<section title="Documents" ref="index.html">{inner}</section>'
    for title, proxies in found.items():
        inner = "".join(f'<section title="{html.escape(p.label)}" ref="{p.page}"/>' for p in proxies)
        sections += f'<section title="{title}" ref="index.html">{inner}</section>'
    return f'<toc><section title="{TITLE}" ref="index.html">{sections}</section></toc>'


def markdown(text):
    """A text in one line, with nothing that Markdown would interpret, also within a table."""
    for sign in "\\|*<>`":
        text = text.replace(sign, f"\\{sign}")
    return line(text)


def reference_section(proxy):
    text = f"\n### {proxy.name}\n\n*{markdown(proxy.help.get('long_help'))}*\n"
    if proxy.image.exists():
        shown = image(proxy).replace('src="', f'src="{IMAGES.name}/')
        text += f"\n{shown}\n"
    text += f"\n{markdown(proxy.help.text)}\n"
    for group, members in proxy.sections():
        text += f"\n| {group} | Meaning | Values |\n|---|---|---|\n"
        for name, element in members.items():
            where = WHERE.get(element.get("panel_visibility"), "")
            meaning = markdown(element.findtext("Documentation"))
            text += f"| `{name}`{where} | {meaning} | {markdown(values(element))} |\n"
    return text


def reference(found):
    """The text of Reference.md."""
    text = REFERENCE
    for title, proxies in found.items():
        text += f"\n## {title}\n\n| Name | What it shows or makes |\n|---|---|\n"
        for proxy in proxies:
            link = f"[{proxy.name}](#{proxy.name.lower()})"
            text += f"| {link} | {markdown(proxy.help.get('short_help'))} |\n"
        text += "".join(reference_section(proxy) for proxy in proxies)
    return text


def write(path, text):
    """Writes a file, unless it has this text already: then nothing that depends on it is rebuilt."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_pages(folder, found):
    """Writes the pages and images into a folder and removes everything else from it. Returns the table of contents."""
    proxies = [proxy for chapter in found.values() for proxy in chapter]
    texts = Documents(proxies)
    pages = {proxy.page: proxy_page(proxy) for proxy in proxies}
    pages |= {"index.html": index_page(found, texts), **texts.pages()}
    images = {proxy.image.name: proxy.image for proxy in proxies if proxy.image.exists()} | texts.images
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in pages.keys() | images.keys():
            path.unlink()
    for name, text in pages.items():
        write(folder / name, text)
    for name, path in images.items():
        shutil.copy2(path, folder / name)
    return contents(found, texts)


def main():
    parser = argparse.ArgumentParser(description="Writes the interface documentation from the XML.")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="folder of the Help window's pages")
    parser.add_argument("--reference", type=pathlib.Path, help="Markdown file to write")
    parser.add_argument("xml", nargs="+")
    arguments = parser.parse_args()
    if not arguments.output and not arguments.reference:
        parser.error("expected -o or --reference, found neither")

    # By file name: the reference does not depend on the order in which files are given.
    found = chapters(read(sorted(arguments.xml, key=os.path.basename)))
    if arguments.reference:
        write(arguments.reference, reference(found))
    if arguments.output:
        print(write_pages(arguments.output, found))


if __name__ == "__main__":
    main()
