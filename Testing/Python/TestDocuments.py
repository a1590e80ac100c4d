"""The documents: all code in them runs and prints what they say, and what they link to is there, also as HTML.

The pages are searched in headless Chromium, where there is one.
"""

import html
import re
import shutil
import sys
import unittest
import urllib.parse

import atlastest
import chromium
from atlastest import OUTPUT, SOURCE, AtlasTest

sys.path.insert(0, str(SOURCE / "Plugin" / "scripts"))
import documents  # noqa: E402
import make_site  # noqa: E402

#: What ParaView reports as the code of documents runs: the shipped ViT has a classifier, which is not used.
EXPECTED = "'classifier.bias', 'classifier.weight'"
#: Languages of blocks that are shown and not run.
SHOWN = ("text", "cpp", "xml")


class Code(AtlasTest):
    def test_code_is_fenced(self):
        """Every block has its language, and none is only indented."""
        for path in documents.paths():
            text = path.read_text(encoding="utf-8")
            for block in documents.blocks(text):
                with self.subTest(f"{path.name}:{block.line}"):
                    self.assertIn(block.language, (*documents.RUN, *SHOWN))
            without = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
            self.assertEqual(re.findall(r"(?<=\n\n)    \S.*", without), [], path.name)

    def test_what_is_printed_is_compared(self):
        for said, fails in (("3", False), ("4", True)):
            path = OUTPUT / "printed.md"
            path.write_text(f"# P\n\n```python\nprint(1 + 2)\n```\n\n```text\n{said}\n```\n", encoding="utf-8")
            if fails:
                with self.assertRaisesRegex(documents.Unexpected, r"printed.md:8: expected\n4\n\nfound\n3\n"):
                    documents.run(path, OUTPUT / "printed")
            else:
                self.assertEqual(documents.run(path, OUTPUT / "printed"), 1)

    def test_errors_name_their_line(self):
        path = OUTPUT / "wrong.md"
        path.write_text("# W\n\n```sh\nattention-atlas fly\n```\n", encoding="utf-8")
        with self.assertRaisesRegex(documents.Unexpected, "wrong.md:4: expected that the commands succeed"):
            documents.run(path, OUTPUT / "wrong")
        path.write_text("# W\n\n<!-- not run: wrong -->\n```sh\nfalse\n```\n", encoding="utf-8")
        self.assertEqual(documents.run(path, OUTPUT / "wrong"), 0)

    def expect_to_run(self, path):
        text = path.read_text(encoding="utf-8")
        run = [block for block in documents.blocks(text) if block.language in documents.RUN and not block.reason]
        shutil.rmtree(OUTPUT / documents.name(path), ignore_errors=True)  # what an earlier run saved
        self.assertEqual(documents.run(path, OUTPUT / documents.name(path)), len(run))
        self.assertEqual([line for line in self.take_errors() if not re.search(EXPECTED, line)], [])
        if path.name == "Gallery.md":
            self.expect_pictures(OUTPUT / documents.name(path) / "gallery", documents.DOCUMENTATION / "gallery", text)

    def expect_pictures(self, made, kept, text):
        """The code makes each picture of the gallery, as large as the one that is shown and not empty."""
        names = sorted(set(re.findall(r"gallery/(\d\d-[\w-]+\.png)", text)))
        self.assertGreater(len(names), 25)
        self.assertEqual(names, sorted(path.name for path in kept.glob("[0-9][0-9]-*.png")))
        for name in names:
            with self.subTest(name):
                picture, shown = atlastest.read_picture(made / name), atlastest.read_picture(kept / name)
                for side, expected in zip(picture.shape[:2], shown.shape[:2]):
                    self.assertLess(abs(side - expected), 0.1 * expected)  # fonts differ
                self.assertGreater(picture[..., :3].std(), 5)


class Links(AtlasTest):
    def test_links_have_targets(self):
        """Links to files, to headings and to pictures."""
        anchors = {}
        for path in documents.paths():
            text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
            headings = re.findall(r"^#+ (.+)$", text, re.M)
            anchors[path] = {documents.slug(re.sub(r"[`*]", "", heading)) for heading in headings}
        for path in anchors:
            text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
            for pair in re.findall(r'\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"', text):
                link = pair[0] or pair[1]
                place = documents.place_of(path, link)
                with self.subTest(f"{path.name} {link}"):
                    if place:
                        self.assertTrue(place[0].exists())
                        if place[1]:
                            self.assertIn(place[1], anchors[place[0]])


class Site(AtlasTest):
    """The documents as a folder of HTML files, which the target `site` makes."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = OUTPUT / "site"
        make_site.Site(cls.folder).write()
        cls.pages = {path.name: path.read_text(encoding="utf-8") for path in cls.folder.glob("*.html")}

    def test_each_document_has_a_page(self):
        self.assertEqual(len(self.pages), len(documents.paths()))
        for text in self.pages.values():
            self.assertEqual(len(re.findall("<h1", text)), 1)
            self.assertNotRegex(text, r"(?:src|href)=\"(?:https?:)?//[^\"]+\.(?:js|css)")

    def test_links_have_targets(self):
        for name, text in self.pages.items():
            for link in re.findall(r'(?:src|href)="([^"]+)"', text):
                link = html.unescape(link)
                if not re.match("[a-z]+:", link):
                    page, _, anchor = urllib.parse.unquote(link).partition("#")
                    with self.subTest(f"{name} {link}"):
                        self.assertTrue((self.folder / (page or name)).is_file())
                        if anchor:
                            self.assertIn(f' id="{anchor}"', self.pages[page or name])

    def test_another_folder_is_left_alone(self):
        folder = OUTPUT / "not-a-site"
        folder.mkdir(exist_ok=True)
        (folder / "letter.txt").write_text("kept", encoding="utf-8")
        with self.assertRaisesRegex(SystemExit, "expected an empty folder"):
            make_site.Site(folder).write()
        self.assertEqual([path.name for path in folder.iterdir()], ["letter.txt"])

    @unittest.skipUnless(chromium.PROGRAM, "needs Chromium")
    def test_search(self):
        """By keys alone: a slash leads to the search, words find a section, Enter opens it."""
        with chromium.Chromium() as browser:
            browser.resize()
            browser.prefer("dark")
            browser.open(self.folder / "index.html")
            self.assertEqual(browser.run("document.documentElement.dataset.theme"), "dark")
            browser.run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true}))")
            self.assertEqual(browser.run("document.activeElement.id"), "search")
            for words, least in (("t-sne scikit-learn", 1), ("perplexity", 3), ("<script>", 0)):
                browser.run(f"input.value = {words!r}; input.dispatchEvent(new Event('input'))")
                browser.wait(f"!list.hidden")
                browser.wait(f"document.querySelectorAll('#found [data-address]').length >= {least}")
            browser.wait("list.textContent === 'Nothing found'")
            browser.run("input.value = 'umap-learn'; input.dispatchEvent(new Event('input'))")
            address = browser.wait("document.querySelector('#found [aria-selected=true]')?.dataset.address")
            browser.press("Enter")
            browser.wait(f"location.href.endsWith({address!r})")
            self.assertIn("umap-learn", browser.run("document.getElementById('content').textContent"))
            self.assertEqual(browser.console, [])


for document in documents.paths():
    name = "test_code_of_" + re.sub(r"\W", "_", documents.name(document))
    setattr(Code, name, lambda self, path=document: self.expect_to_run(path))
