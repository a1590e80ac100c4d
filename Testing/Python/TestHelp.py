"""The pages of ParaView's Help window: one per document, one per proxy, with an image and every property."""

import os
import re
import sqlite3
import struct
import subprocess
import zlib

import atlastest
from atlastest import AtlasTest


def pages_of(path):
    """The files in a help file of Qt, by name. Each is stored compressed, after its size."""
    with sqlite3.connect(path) as help_file:
        query = "select Name, Data from FileNameTable join FileDataTable on FileId = FileDataTable.Id"
        rows = help_file.execute(query).fetchall()
    files = {}
    for name, data in rows:
        if name:
            (size,) = struct.unpack(">I", data[:4])
            files[name] = zlib.decompress(data[4:])
            assert len(files[name]) == size, name
    return files


class Help(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pages = pages_of(os.environ["ATLAS_HELP"])
        cls.proxies = {
            f"{group}.{name}.html": proxy
            for (group, name), proxy in atlastest.read_proxies().items()
            if group in ("sources", "filters", "writers")
        }
        # Of each document but the reference, which the pages of proxies are.
        cls.documents = {
            f"{path.stem}.html": path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
            for path in (atlastest.SOURCE / "Plugin" / "Documentation").glob("*.md")
            if path.stem != "Reference"
        }

    def page(self, name):
        self.assertIn(name, self.pages)
        return self.pages[name].decode("utf-8")

    def test_each_proxy_has_a_page_with_an_image(self):
        self.assertGreater(len(self.proxies), 15)
        for name, proxy in self.proxies.items():
            with self.subTest(name):
                page = self.page(name)
                self.assertEqual(page.count("<html>"), 1)
                self.assertIn(f"<h2>{proxy.get('label')}</h2>", page)
                (image,) = re.findall('<img src="([^"]+)"', page)
                self.assertTrue(self.pages[image].startswith(b"\x89PNG"))

    def test_each_property_is_on_its_page(self):
        for name, proxy in self.proxies.items():
            for element in proxy:
                if element.tag.endswith("Property") and element.get("information_only") != "1":
                    with self.subTest(f"{name} {element.get('name')}"):
                        self.assertIn(f"<code>{element.get('name')}</code>", self.page(name))

    def test_inherited_properties_are_on_the_page(self):
        for name, inherited in (
            ("filters.AttentionTorus.html", ("Input", "HeadWeights", "Residual")),
            ("sources.AttentionOnlyModelReader.html", ("SubHeads",)),
        ):
            for word in inherited:
                self.assertIn(f"<code>{word}</code>", self.page(name))

    def test_allowed_values_and_groups_are_on_the_page(self):
        page = self.page("filters.AttentionTorus.html")
        self.assertIn("<td>Softmax, All weight on the largest score (Hardmax)</td>", page)
        self.assertIn("<td>Mean of heads (-1)</td>", self.page("filters.AttentionMap.html"))
        self.assertIn("<td>from -2 to 2</td>", page)
        self.assertIn('<th class="group" colspan="3">Ablation</th>', page)

    def test_links_have_targets(self):
        """Pages, headings and pictures."""
        for name in self.pages:
            if name.endswith(".html"):
                for link in re.findall('(?:href|src)="([^"]+)"', self.page(name)):
                    if not link.startswith("http"):
                        page, _, anchor = link.partition("#")
                        with self.subTest(f"{name} {link}"):
                            self.assertIn(page or name, self.pages)
                            if anchor:
                                self.assertIn(f' id="{anchor}"', self.page(page or name))

    def test_the_index_links_to_every_page(self):
        links = re.findall('href="([^"]+)"', self.page("index.html"))
        self.assertEqual(sorted(links), sorted([*self.proxies, *self.documents]))

    def test_documents_have_pages(self):
        self.assertLessEqual({"Tutorial.html", "Gallery.html", "Troubleshooting.html"}, set(self.documents))
        for name, heading in self.documents.items():
            self.assertRegex(self.page(name), f"<h1 id=[^>]+>{re.escape(heading)}</h1>")
        self.assertIn('<img alt="Class map" src="gallery-01-class-map.png"', self.page("Gallery.html"))


class Script(AtlasTest):
    def test_a_submenu_without_its_chapter_is_an_error(self):
        script = atlastest.SOURCE / "Plugin" / "scripts" / "help_pages.py"
        pages = atlastest.OUTPUT / "pages"
        text = (atlastest.SOURCE / "XML" / "AttentionAtlasTorus.xml").read_text(encoding="utf-8")
        self.assertIn("Small Models", text)
        xml = atlastest.OUTPUT / "Torus.xml"
        xml.write_text(text.replace("Small Models", "Toys"), encoding="utf-8")
        result = subprocess.run(["python3", script, "-o", pages, xml], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("found 'Toys'", result.stderr)
        self.assertFalse(pages.exists())
