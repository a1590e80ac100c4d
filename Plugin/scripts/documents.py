"""What is done with the documents: the code in them, and HTML of them.

    xvfb-run -a pvpython documents.py FOLDER DOCUMENT...

runs the code of documents in a folder, with ATLAS_PLUGIN and ATLAS_PROGRAM naming the plugin and the command. What the
code writes lies there; the pictures in gallery/ are those of Documentation/gallery: look at them, and copy them.

Code is fenced, with its language. Blocks of python and sh are run in the order of the document, those of python in one
namespace. A block of the language text that follows is what they print. A comment <!-- not run: REASON --> before a
block excepts it.
"""

import contextlib
import dataclasses
import html
import io
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTATION = ROOT / "Plugin" / "Documentation"
README = ROOT / "README.md"
#: The documents in the order in which a reader meets them, by their names; others follow.
ORDER = (
    "README Tutorial Gallery Requests Scripting Geometry Examples Models Troubleshooting Reference Python Building "
    "Performance Learning Training Findings Parity bad-input Glossary Changes"
).split()
#: Pages of these names are not those of their files.
NAMES = {README: "index", ROOT / ".github" / "CONTRIBUTING.md": "Contributing", ROOT / "Data" / "README.md": "Data"}
RUN = ("python", "sh")
_FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?```(?P<language>\w*)\n(?P<code>.*?)^```$", re.M | re.S
)


@dataclasses.dataclass
class Block:
    """A fenced block: the number of its first line, its language and text, why it is not run, and whether it follows
    another block without a word between them."""

    line: int
    language: str
    code: str
    reason: str
    follows: bool


def blocks(text):
    """The fenced blocks of a document."""
    listed, end = [], 0
    for found in _FENCE.finditer(text):
        line, follows = text.count("\n", 0, found.start("code")) + 1, not text[end : found.start()].strip()
        listed.append(Block(line, found["language"], found["code"], found["reason"], follows))
        end = found.end()
    return listed


def paths():
    """The files of all documents, in the order in which a reader meets them."""
    order = {name: number for number, name in enumerate(ORDER)}
    found = sorted(DOCUMENTATION.glob("*.md"), key=lambda path: (order.get(path.stem, len(order)), path.stem))
    return [README, *found, *list(NAMES)[1:]]


def name(path):
    """The name of a document, of which its page and its folder are."""
    return NAMES.get(path, path.stem)


def title(text):
    """The first heading of a document."""
    return re.search(r"^# (.+)$", text, re.M)[1]


class Unexpected(Exception):
    """What a block of code did that its document does not say."""


class Runner:
    """Runs the blocks of a document in the present folder."""

    def __init__(self, path):
        self.path, self.namespace = path, {"__name__": "__main__"}

    def run(self):
        """Runs all blocks and returns how many. Raises Unexpected, or the exception of a Python block."""
        printed, number = None, 0
        for block in blocks(self.path.read_text(encoding="utf-8")):
            place = f"{self.path.name}:{block.line}"
            if block.language in RUN and not block.reason:
                printed = getattr(self, block.language)(block.code, place)
                number += 1
                continue
            if block.language == "text" and block.follows and printed is not None:
                if printed.split() != block.code.split():
                    raise Unexpected(f"{place}: expected\n{block.code}\nfound\n{printed}")
            printed = None
        return number

    def python(self, code, place):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("\n" * int(place.split(":")[1]) + code, place, "exec"), self.namespace)
        return printed.getvalue()

    def sh(self, code, place):
        program = pathlib.Path(os.environ["ATLAS_PROGRAM"])
        environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
        ran = subprocess.run(["bash", "-euc", code], capture_output=True, text=True, env=environment)
        if ran.returncode:
            raise Unexpected(f"{place}: expected that the commands succeed, found\n{ran.stdout}{ran.stderr}")
        return ran.stdout


def run(path, folder):
    """Runs the code of a document in a folder, which gets a link to Data. Returns the number of blocks."""
    folder = pathlib.Path(folder).resolve()
    for made in (folder, folder / "gallery"):
        made.mkdir(parents=True, exist_ok=True)
    if not (folder / "Data").exists():
        (folder / "Data").symlink_to(ROOT / "Data")
    before = pathlib.Path.cwd()
    os.chdir(folder)
    try:
        return Runner(pathlib.Path(path)).run()
    finally:
        os.chdir(before)


def slug(text, separator="-"):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", html.unescape(text).strip().lower()).replace(" ", separator)


def place_of(path, link):
    """The file or folder that a link in a document names, and its anchor; None for what is elsewhere."""
    if re.match(r"[a-z]+:", link):
        return None
    name, _, anchor = link.partition("#")
    return (path.parent / name).resolve() if name else path, anchor


def to_html(path, link, **extensions):
    """A document as the inside of an HTML body.

    link: what becomes of (file or folder, anchor) in links and pictures; None leaves out the link. extensions: more
    ones of Python-Markdown, with their settings.
    """
    try:
        import markdown
    except ImportError:
        sys.exit("documents.py: expected the Debian package python3-markdown, which Plugin/install-deps.sh installs")

    settings = {
        "markdown.extensions.tables": {},
        "markdown.extensions.fenced_code": {},
        "markdown.extensions.sane_lists": {},
        "markdown.extensions.toc": {"slugify": slug, "separator": "-"},
        **{f"markdown.extensions.{name}": values for name, values in extensions.items()},
    }
    made = markdown.markdown(
        path.read_text(encoding="utf-8"), extensions=list(settings), extension_configs=settings, tab_length=2
    )

    def replace(found):
        place = place_of(path, html.unescape(found[2]))
        target = link(*place) if place else html.unescape(found[2])
        return found[1] + html.escape(target or "") + found[3]

    made = re.sub(r'(<(?:a|img)\b[^>]*?(?:href|src)=")([^"]*)(")', replace, made)
    return re.sub(r'<a href="">(.*?)</a>', r"\1", made, flags=re.S)


def sections(made):
    """The parts of a document's HTML, by headings: level, anchor, heading, the HTML below it."""
    parts = re.split(r'<h([1-6]) id="([^"]*)">(.*?)</h\1>', made, flags=re.S)
    return [(int(level), *rest) for level, *rest in zip(*(parts[i::4] for i in range(1, 5)))]


def plain(made):
    """The text of HTML, in one line."""
    return " ".join(html.unescape(re.sub(r"<!--.*?-->|<[^>]+>", " ", made, flags=re.S)).split())


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: pvpython documents.py FOLDER DOCUMENT...")
    for document in sys.argv[2:]:
        path = pathlib.Path(document)
        number = run(path if path.exists() else DOCUMENTATION / document, sys.argv[1])
        print(f"{document}: ran {number} blocks")


if __name__ == "__main__":
    main()
