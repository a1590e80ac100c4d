"""Web pages and documents: axe-core finds no serious or critical issue; the script of pages is what its sources give.

Needs npm and Chromium; a test of the preset lint, since npm loads what package-lock.json in Plugin/web names.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import atlastest
import chromium
from atlastest import AtlasTest
from attentionatlas import article, web
from randomrecording import write_recording

sys.path.insert(0, str(atlastest.SOURCE / "Plugin" / "scripts"))
import make_site  # noqa: E402

WEB = atlastest.SOURCE / "Plugin" / "web"
RESULTS = pathlib.Path("python", "attentionatlas", "assets")
FOUND = """axe.run().then(({violations, passes}) => [passes.length, violations
  .filter(({impact}) => impact === "serious" || impact === "critical")
  .map(({id, help, nodes}) => [id, help, ...nodes.map(({html}) => html.slice(0, 120))].join(" | "))])"""


@unittest.skipUnless(shutil.which("npm") and chromium.PROGRAM, "needs npm and Chromium: Plugin/install-deps.sh --all")
class Accessible(AtlasTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = atlastest.OUTPUT / "web"
        shutil.rmtree(cls.folder, ignore_errors=True)
        shutil.copytree(WEB, cls.folder, ignore=shutil.ignore_patterns("node_modules"))
        (atlastest.OUTPUT / RESULTS).mkdir(parents=True, exist_ok=True)
        try:
            cls.npm("ci")
        except RuntimeError as error:
            if re.search("EAI_AGAIN|ECONN|ENETUNREACH|ENOTFOUND|ETIMEDOUT|ERR_SOCKET_TIMEOUT", str(error)):
                raise unittest.SkipTest(f"the registry of npm cannot be reached: {error}") from error
            raise

    @classmethod
    def npm(cls, *arguments):
        ran = subprocess.run(["npm", *arguments], cwd=cls.folder, capture_output=True, text=True, timeout=300)
        if ran.returncode:
            raise RuntimeError(f"npm {' '.join(arguments)}: {ran.stdout}{ran.stderr}")

    def test_script(self):
        """The scripts in the package are what the sources and the pinned packages give, to the byte."""
        self.npm("run", "build")
        for name in ("page.min.js", "article.min.js"):
            kept = atlastest.SOURCE / "Plugin" / RESULTS / name
            self.assertEqual((atlastest.OUTPUT / RESULTS / name).read_bytes(), kept.read_bytes())

    def audit(self, browser):
        """Expects that axe-core finds nothing serious in what the browser shows."""
        passed, issues = browser.run(FOUND)
        self.assertEqual(issues, [])
        self.assertGreater(passed, 20)

    def looks(self, width, height):
        """A browser with axe-core's script and, as wide as a screen and as a phone, light and dark, what the subtests are of."""
        axe = (self.folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
        with chromium.Chromium() as browser:
            for phone in (False, True):
                browser.resize(*((390, 844) if phone else (width, height)), phone)
                for theme in ("light", "dark"):
                    browser.prefer(theme)
                    yield browser, axe, {"theme": theme, "phone": phone}

    def test_pages(self):
        """Every kind of scene, without and with its table."""
        recording = write_recording(atlastest.OUTPUT / "random.safetensors")
        corpus = atlastest.DATA / "corpus" / "language-2.safetensors"
        settings = {"method": "TSNE", "perplexity": 10, "iterations": 100}
        scenes = [
            web.torus(atlastest.TRAINED, 32), web.deformed_torus(atlastest.TRAINED, 32), web.sphere(atlastest.TRAINED),
            web.attention_map(recording), web.attention_map(recording, cell=1), web.sentence(recording),
            web.head_embedding(recording, **settings),
            web.head_embedding(recording, dimensions=3, **settings),
            web.composition(atlastest.DATA / "models" / "induction" / "config.json"),
            web.scatter(corpus), web.contexts(corpus, all_heads=True),
        ]
        path = atlastest.OUTPUT / "page.html"
        web.page(scenes, path)
        for browser, axe, look in self.looks(1000, 800):
            for number in range(len(scenes)):
                browser.open(path, f"1-5&scene={number}")
                browser.run(axe)
                browser.run("document.getElementById('stage').focus()")
                for table in ("closed", "open"):
                    with self.subTest(scene=number, table=table, **look):
                        self.audit(browser)
                    browser.run("document.getElementById('table').click()")
                    browser.settle()
            # What it finds where there is an issue: a field without a label.
            browser.run("document.querySelector('label[for=search]').remove()")
            self.assertIn("label |", "".join(browser.run(FOUND)[1]))

    def test_article(self):
        """The article, before and after its guesses."""
        (path,) = article.write(atlastest.OUTPUT / "article.html", steps=100, pdf=False, states=False)
        for browser, axe, look in self.looks(1300, 900):
            browser.open(path)
            browser.run(axe)
            for guessed in (False, True):
                with self.subTest(guessed=guessed, **look):
                    self.audit(browser)
                browser.run("document.querySelectorAll('fieldset input').forEach(input => input.click())")
                browser.settle()

    def test_documents(self):
        """The pages of the documents."""
        folder = atlastest.OUTPUT / "site"
        make_site.Site(folder).write()
        for browser, axe, look in self.looks(1000, 800):
            for path in sorted(folder.glob("*.html")) if not look["phone"] else []:
                with self.subTest(path.name, **look):
                    browser.open(path)
                    browser.run(axe)
                    self.audit(browser)
