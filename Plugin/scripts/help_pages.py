"""Writes the pages of ParaView's Help window: one per proxy, with its picture and every property that can
be set, those of its base proxies among them, and index.html, which leads to them.

    python3 help_pages.py -o DIR XML...

ParaView makes pages of its own from the same XML, under the same names. These replace them: ParaView's have
no pictures, leave out what a proxy inherits, and stop at the first bracket that is not closed. Prints the
table of contents for Qt's help.
"""

import argparse
import html
import pathlib
import shutil
import sys
import xml.etree.ElementTree as ElementTree

PICTURES = pathlib.Path(__file__).parent / "pictures"
TITLE = "Attention Atlas"
#: Chapters, in the order in which a newcomer meets them. What none names comes at the end of the last.
CHAPTERS = {
    "A small model": [
        "AttentionOnlyModelReader",
        "AttentionTorus",
        "TokenPairs",
        "TorusDeformation",
        "SummableColors",
        "ClassAreas",
        "UnembeddingSphere",
        "EmbeddingCircle",
        "HeadAccuracySimplex",
        "HeadAccuracy",
        "AttentionHarmonics",
        "HarmonicAttention",
        "AttentionOnlyModelWriter",
    ],
    "A model that learns": ["AttentionOnlyTraining"],
    "Real transformers": [
        "TransformerReader",
        "RandomPrompts",
        "TransformerRecorder",
        "RecordingReader",
        "AttentionMap",
        "RecordingWriter",
    ],
}
#: What is not in a panel at first, by its visibility there.
WHERE = {"advanced": " (advanced)", "never": " (not in the panel)"}
GROUPS = ("sources", "filters", "writers")
HEADS = '<th width="24%">Property, in Python</th><th width="56%">Meaning</th><th>Values</th>'
#: Of the pictures that lead to pages, in pixels.
WIDTH = ' width="120"'
STYLE = """
body { font-family: sans-serif; margin: 1em 2em; max-width: 46em; }
h2 { margin-bottom: 0.2em; }
table { border-collapse: collapse; width: 100%; }
td, th { border-bottom: 1px solid #c8c8c8; padding: 0.4em 0.6em; text-align: left; vertical-align: top; }
"""


def words(text):
    """A text in one line, for HTML."""
    return html.escape(" ".join((text or "").split()))


class Proxy:
    """A proxy of the XML. known: all proxies by group and name."""

    def __init__(self, group, element, known):
        self.group, self.element, self.known = group, element, known
        self.name = element.get("name")
        self.label = element.get("label") or self.name
        self.page = f"{group}.{self.name}.html"
        self.picture = PICTURES / f"{self.name}.png"

    @property
    def help(self):
        return self.element.find("Documentation")

    def properties(self):
        """The properties that can be set, by name: those of the base proxy and of a proxy within first."""
        base = self.known.get((self.element.get("base_proxygroup"), self.element.get("base_proxyname")))
        found = base.properties() if base else {}
        for part in self.element.iter("SubProxy"):
            within = part.find("Proxy")
            exposed = [p.get("name") for p in part.iter("Property")]
            inner = self.known[within.get("proxygroup"), within.get("proxyname")].properties()
            found.update({name: inner[name] for name in exposed})
        for child in self.element:
            if child.tag.endswith("Property") and child.get("information_only") != "1":
                found[child.get("name")] = child
        return found


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
    """Titles with their proxies. Ends the program if a chapter names what is not there."""
    of_users = {proxy.name: proxy for (group, _), proxy in known.items() if group in GROUPS}
    found = {}
    for title, names in CHAPTERS.items():
        missing = [name for name in names if name not in of_users]
        if missing:
            sys.exit(f"help_pages.py: expected each of '{title}' in the XML, found no {', '.join(missing)}")
        found[title] = [of_users.pop(name) for name in names]
    found[title] += of_users.values()
    return found


def values(element):
    """What a property may be, from its domains."""
    found = []
    for domain in element:
        if domain.tag == "EnumerationDomain":
            found.append(", ".join(entry.get("text") for entry in domain))
        elif domain.tag == "BooleanDomain":
            found.append("on or off")
        elif domain.tag.endswith("RangeDomain") and (domain.get("min") or domain.get("max")):
            bounds = [(word, domain.get(key)) for word, key in (("from", "min"), ("to", "max"))]
            found.append(" ".join(f"{word} {bound.split()[0]}" for word, bound in bounds if bound))
        elif domain.tag == "FileListDomain":
            found.append("files" if element.get("repeatable") or element.get("repeat_command") else "a file")
    return html.escape("; ".join(found))


def page(title, body):
    return (
        f'<html>\n<head>\n<meta charset="utf-8"/>\n<title>{html.escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def image(proxy, more=""):
    if not proxy.picture.exists():
        return ""
    return f'<img src="{proxy.picture.name}" alt="{html.escape(proxy.label)}"{more}/>'


def proxy_page(proxy):
    rows = ""
    for name, element in proxy.properties().items():
        label = element.get("label") or name
        where = WHERE.get(element.get("panel_visibility"), "")
        code = f"<br/><code>{name}</code>{where}"
        text = words(element.findtext("Documentation"))
        rows += f"<tr><th>{html.escape(label)}{code}</th><td>{text}</td><td>{values(element)}</td></tr>\n"
    table = f"<table>\n<tr>{HEADS}</tr>\n{rows}</table>\n"
    body = f"<h2>{html.escape(proxy.label)}</h2>\n<p><i>{words(proxy.help.get('long_help'))}</i></p>\n"
    body += f"<p>{image(proxy)}</p>\n<p>{words(proxy.help.text)}</p>\n{table if rows else ''}"
    body += f'<p>In Python: <code>{proxy.name}</code>. <a href="index.html">All of {TITLE}</a></p>\n'
    return page(proxy.label, body)


def index_page(found):
    body = f"<h2>{TITLE}</h2>\n<p>See how transformers attend.</p>\n"
    for title, proxies in found.items():
        rows = ""
        for proxy in proxies:
            link = f'<a href="{proxy.page}">{html.escape(proxy.label)}</a>'
            short = words(proxy.help.get("short_help"))
            rows += f"<tr><td>{image(proxy, WIDTH)}</td><th>{link}</th><td>{short}</td></tr>\n"
        body += f"<h3>{title}</h3>\n<table>\n{rows}</table>\n"
    return page(TITLE, body)


def contents(found):
    sections = ""
    for title, proxies in found.items():
        inner = "".join(f'<section title="{html.escape(p.label)}" ref="{p.page}"/>' for p in proxies)
        sections += f'<section title="{title}" ref="index.html">{inner}</section>'
    return f'<toc><section title="{TITLE}" ref="index.html">{sections}</section></toc>'


def write(path, text):
    """Leaves a file alone that is so already, which spares what depends on it."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="Writes the pages of ParaView's Help window.")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("xml", nargs="+")
    arguments = parser.parse_args()

    found = chapters(read(arguments.xml))
    proxies = [proxy for chapter in found.values() for proxy in chapter]
    pages = {proxy.page: proxy_page(proxy) for proxy in proxies}
    pages["index.html"] = index_page(found)
    pictures = {proxy.picture.name: proxy.picture for proxy in proxies if proxy.picture.exists()}
    arguments.output.mkdir(parents=True, exist_ok=True)
    for path in arguments.output.iterdir():
        if path.name not in pages.keys() | pictures.keys():
            path.unlink()
    for name, text in pages.items():
        write(arguments.output / name, text)
    for name, picture in pictures.items():
        shutil.copy2(picture, arguments.output / name)
    print(contents(found))


if __name__ == "__main__":
    main()
