"""Writes the documents as a folder of HTML files with a search, which are read without a server or a network.

    python3 make_site.py FOLDER

The target `site` of CMake runs it. Removes what else stands in the folder from an earlier run.
"""

import html
import json
import pathlib
import shutil
import sys

import documents

#: Folders whose files keep their place in the site.
KEPT = documents.DOCUMENTATION
ASSETS = pathlib.Path(__file__).resolve().parent / "site"
MARK = ".attention-atlas-site"
#: Groups of pages in the navigation, by names of documents; others are at the end.
GROUPS = {
    "Begin": ("README", "Tutorial", "Gallery", "Requests"),
    "Use": ("Models", "Scripting", "Geometry", "Examples", "Reference", "Python", "Troubleshooting", "bad-input"),
    "Learn": ("Learning", "Training", "Findings", "Glossary"),
    "Build": ("Building", "Performance", "Parity", "Contributing", "Data", "Changes"),
}
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="site.css">
<script src="site.js" defer></script>
</head>
<body data-page="{page}">
<a class="skip" href="#content">Skip to the text</a>
<header>
<a class="home" href="index.html">Attention Atlas</a>
<div class="search" role="search">
<input id="search" type="search" placeholder="Search ( / )" aria-label="Search all pages" aria-controls="found"
  role="combobox" aria-expanded="false" aria-autocomplete="list" autocomplete="off">
<ol id="found" role="listbox" aria-label="Found" hidden></ol>
</div>
<button id="theme" type="button">Dark</button>
</header>
<nav aria-label="Documents">
{navigation}</nav>
<main id="content" tabindex="-1">
{body}
</main>
</body>
</html>
"""


def page_name(path):
    return "index.html" if path == documents.README else f"{documents.name(path)}.html"


class Site:
    """A folder with pages, and the files that they show or link to."""

    def __init__(self, folder):
        self.folder, self.paths = folder, documents.paths()
        self.titles = {path: documents.title(path.read_text(encoding="utf-8")) for path in self.paths}
        self.files, self.index = {}, []

    def link(self, path, anchor):
        """The address of a document or file in the site."""
        if path in self.titles:
            return page_name(path) + (f"#{anchor}" if anchor else "")
        if not path.is_file():
            return None
        inside = KEPT in path.parents
        address = path.relative_to(KEPT) if inside else "files" / path.relative_to(documents.ROOT)
        self.files[address] = path
        return address.as_posix()

    def navigation(self, present, parts):
        """Links to all pages, in groups, and to the parts of the present one."""
        by_name = {"README" if path == documents.README else documents.name(path): path for path in self.paths}
        groups = {title: [by_name.pop(name) for name in names if name in by_name] for title, names in GROUPS.items()}
        groups[list(groups)[-1]] += by_name.values()
        text = ""
        for title, members in groups.items():
            text += f"<h2>{title}</h2>\n<ul>\n"
            for path in members:
                mark = ' aria-current="page"' if path == present else ""
                text += f'<li><a href="{page_name(path)}"{mark}>{html.escape(self.titles[path])}</a>'
                if path == present:
                    inner = [(anchor, heading) for level, anchor, heading, _ in parts if level == 2]
                    items = "".join(f'<li><a href="#{anchor}">{heading}</a></li>' for anchor, heading in inner)
                    text += f"<ul>{items}</ul>" if inner else ""
                text += "</li>\n"
            text += "</ul>\n"
        return text

    def write(self):
        """Writes all files."""
        if self.folder.exists():
            if not (self.folder / MARK).exists() and any(self.folder.iterdir()):
                sys.exit(f"make_site.py: {self.folder}: expected an empty folder, or one with an earlier site")
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True)
        (self.folder / MARK).touch()
        for path in self.paths:
            body = documents.to_html(path, self.link, codehilite={"guess_lang": False})
            # Tables and code that are wider than the page scroll by themselves, by keys too.
            body = body.replace("<table>", '<div class="wide" tabindex="0"><table>')
            body = body.replace("</table>", "</table></div>").replace("<pre>", '<pre tabindex="0">')
            parts = documents.sections(body)
            for _, anchor, heading, text in parts:
                address = f"{page_name(path)}#{anchor}"
                self.index.append([self.titles[path], documents.plain(heading), address, documents.plain(text)])
            title, navigation = html.escape(self.titles[path]), self.navigation(path, parts)
            page = PAGE.format(title=title, page=page_name(path), body=body, navigation=navigation)
            (self.folder / page_name(path)).write_text(page, encoding="utf-8")
        for address, path in self.files.items():
            (self.folder / address).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, self.folder / address)
        script = (ASSETS / "site.js").read_text(encoding="utf-8")
        index = json.dumps(self.index, ensure_ascii=False, separators=(",", ":"))
        (self.folder / "site.js").write_text(script, encoding="utf-8")
        (self.folder / "search.js").write_text(f"const SECTIONS = {index};\n", encoding="utf-8")
        (self.folder / "site.css").write_text(style(), encoding="utf-8")


def style():
    """The style of the pages, with colors of code for both themes."""
    from pygments.formatters import HtmlFormatter

    text = (ASSETS / "site.css").read_text(encoding="utf-8")
    for theme, name in (("light", "xcode"), ("dark", "github-dark")):
        colors = HtmlFormatter(style=name).get_style_defs(f':root[data-theme="{theme}"] .codehilite')
        text += "\n".join(line for line in colors.splitlines() if line.startswith(":root")) + "\n"
    return text


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: python3 make_site.py FOLDER")
    Site(pathlib.Path(sys.argv[1]).resolve()).write()


if __name__ == "__main__":
    main()
