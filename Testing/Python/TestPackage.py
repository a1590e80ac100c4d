"""What an installation has: the files of the Debian package, which find each other wherever they are, man pages that
name every option, modules that import each other in one direction, and the archive of the source.

ATLAS_BUILD_DIR is the build folder; ATLAS_CMAKE, ATLAS_CPACK and ATLAS_PVPYTHON are the programs."""

import ast
import graphlib
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["ATLAS_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["ATLAS_BUILD_DIR"])
PLUGIN = pathlib.Path(os.environ["ATLAS_PLUGIN"])
#: The folder with the plugin, below the prefix.
PLUGIN_FOLDER = PLUGIN.parent.relative_to(BUILD)
TOOLS = ("attention-atlas-learn", "attention-atlas-map")
#: Those of the Debian package. The component development is for a build of ParaView itself.
COMPONENTS = ("Unspecified", "runtime", "debian")
LINK = "share/paraview/plugins/AttentionAtlas"


def run(*command, **options):
    """The output of a command, which must succeed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def files(folder):
    """The files and links below a folder, relative to it."""
    return {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()
    }


def tracked():
    """The files of the checkout that git tracks, or would: a commit may be under way."""
    names = run("git", "-C", SOURCE, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return {name for name in names if name and (SOURCE / name).exists()}


def needs_checkout(test):
    git = shutil.which("git")
    known = git is not None and subprocess.run(
        [git, "-C", SOURCE, "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=False
    )
    is_checkout = known and known.returncode == 0 and pathlib.Path(known.stdout.strip()) == SOURCE.resolve()
    return unittest.skipUnless(is_checkout, "the source is no checkout of git")(test)


class Installation(unittest.TestCase):
    """An installation in a folder that nothing was configured for."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.prefix = pathlib.Path(folder.name, "prefix")
        for component in COMPONENTS:
            run(
                os.environ["ATLAS_CMAKE"],
                *("--install", BUILD, "--prefix", cls.prefix, "--component", component, "--strip"),
            )
        cls.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("ATLAS_", "PYTHON", "PV_"))
        }

    def binaries(self):
        return [*(self.prefix / PLUGIN_FOLDER).glob("*.so"), *(self.prefix / "bin" / tool for tool in TOOLS)]

    def test_files(self):
        package = SOURCE / "Plugin" / "python"
        sources = [*package.rglob("*.py"), *package.rglob("assets/page.*")]
        expected = {
            *(f"bin/{tool}" for tool in TOOLS),
            *(f"share/man/man1/{tool}.1.gz" for tool in TOOLS),
            *(f"lib/python3/dist-packages/{path.relative_to(package)}" for path in sources),
            *(f"share/attention-atlas/{name}" for name in files(SOURCE / "Data")),
            *(f"{PLUGIN_FOLDER}/{library.name}" for library in PLUGIN.parent.glob("*.so")),
            f"{PLUGIN_FOLDER.parent}/attentionatlas.plugins.xml",
            "share/doc/attention-atlas/changelog.Debian.gz",
            "share/doc/attention-atlas/copyright",
            *self.lists_of_plugins(),
        }
        self.assertEqual(files(self.prefix), expected)

    def lists_of_plugins(self):
        """What lists the plugin in ParaView: a link in Debian 13's folder of plugins, else a file beside ParaView."""
        if self.has_folder_of_plugins():
            return {LINK}
        return {"bin/paraview.conf", "share/lintian/overrides/attention-atlas"}

    def has_folder_of_plugins(self):
        libraries = pathlib.Path("/usr/lib")
        confs = [*libraries.glob("paraview-*/paraview.conf"), *libraries.glob("*/paraview-*/paraview.conf")]
        return any("/usr/share/paraview/plugins" in conf.read_text(encoding="utf-8") for conf in confs)

    def test_run_paths_are_relative(self):
        binaries = self.binaries()
        self.assertGreater(len(binaries), 10)
        for binary in binaries:
            dynamic = run("readelf", "--dynamic", "--wide", binary)
            for paths in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
                for path in paths.split(":"):
                    self.assertTrue(path == "$ORIGIN" or path.startswith("$ORIGIN/"), f"{binary.name}: {path}")

    def test_no_file_names_the_source_or_the_build(self):
        folders = "|".join(re.escape(path.name) for path in SOURCE.iterdir() if path.is_dir())
        names = re.compile(rf"{re.escape(str(SOURCE))}/({folders})/|{re.escape(str(BUILD))}/".encode())
        for path in sorted(files(self.prefix) - {LINK}):
            self.assertIsNone(names.search((self.prefix / path).read_bytes()), path)

    def test_libraries_are_found_in_the_installation(self):
        """Those of ours, and all others of the system: the build folder is not used."""
        for binary in self.binaries():
            listing = run("ldd", binary, env=self.environment)
            self.assertNotIn("not found", listing, binary.name)
            for name, path in re.findall(r"(libAttentionAtlas\S*) => (\S+)", listing):
                self.assertEqual(
                    pathlib.Path(path).resolve(), (self.prefix / PLUGIN_FOLDER / name).resolve(), binary.name
                )

    def test_paraview_finds_the_plugin(self):
        xml = self.prefix / PLUGIN_FOLDER.parent / "attentionatlas.plugins.xml"
        names = re.findall(r'<Plugin name="(\w+)"', xml.read_text(encoding="utf-8"))
        self.assertEqual(names, ["AttentionAtlas"])
        library = self.prefix / PLUGIN_FOLDER / "AttentionAtlas.so"
        self.assertTrue(library.is_file())
        self.assertEqual(library, xml.parent / names[0] / f"{names[0]}.so")
        if self.has_folder_of_plugins():
            link = self.prefix / LINK
            self.assertFalse(os.readlink(link).startswith("/"))
            self.assertEqual((link / library.name).resolve(), library.resolve())
        else:
            conf = self.prefix / "bin" / "paraview.conf"
            (line,) = conf.read_text(encoding="utf-8").splitlines()
            self.assertEqual((conf.parent / line).resolve(), xml.resolve())

    def test_python_finds_the_plugin_and_the_models(self):
        script = (
            "from attentionatlas import load_plugin, plugin_path, tour\n"
            "from attentionatlas.findings import models_folder\n"
            "from paraview import simple\n"
            "load_plugin()\n"
            "simple.AttentionTorus\n"
            "print(plugin_path(), models_folder(), tour.__file__, sep='\\n')\n"
        )
        python = self.prefix / "lib" / "python3" / "dist-packages"
        environment = {**self.environment, "PYTHONPATH": str(python), "PYTHONDONTWRITEBYTECODE": "1"}
        lines = run(os.environ["ATLAS_PVPYTHON"], "-c", script, env=environment).splitlines()[-3:]
        prefix = self.prefix.resolve()
        self.assertEqual(
            lines,
            [
                str(prefix / PLUGIN_FOLDER / "AttentionAtlas.so"),
                str(prefix / "share" / "attention-atlas" / "models"),
                str(python / "attentionatlas" / "tour.py"),
            ],
        )

    def test_man_pages_have_every_option_of_help(self):
        for tool in TOOLS:
            text = run(self.prefix / "bin" / tool, "--help", env=self.environment)
            options = set(re.findall(r"^ +(?:-\w, )?--([a-z][a-z0-9-]*)", text, re.MULTILINE))
            self.assertIn("help", options)
            page = gzip.decompress((self.prefix / "share" / "man" / "man1" / f"{tool}.1.gz").read_bytes()).decode()
            body = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES"):
                self.assertIn(f"\n.SH {section}\n", body, tool)
            described = set(re.findall(r"^\.TP\n(?:-\w, )?--([a-z][a-z0-9-]*)", body, re.MULTILINE))
            self.assertEqual(described, options, tool)
            # Examples use options that there are.
            self.assertLessEqual(set(re.findall(r"--([a-z][a-z0-9-]*)", body)), options, tool)

    def test_changelog_and_copyright(self):
        folder = self.prefix / "share" / "doc" / "attention-atlas"
        citation = (SOURCE / "CITATION.cff").read_text(encoding="utf-8")
        (version,) = re.findall(r"^version: (\S+)$", citation, re.MULTILINE)
        changelog = gzip.decompress((folder / "changelog.Debian.gz").read_bytes()).decode()
        self.assertRegex(changelog, rf"^attention-atlas \({re.escape(version)}-1(~deb\d+)?\) ")
        self.assertRegex(changelog, r"\n -- [^<\n]+ <\S+@\S+>  \w{3}, \d\d \w{3} \d{4} [\d:]{8} \+0000\n$")
        # The text of the license, word for word.
        words = (SOURCE / "LICENSE").read_text(encoding="utf-8").split()
        terms = words[words.index("Redistribution") :]
        written = [word for word in (folder / "copyright").read_text(encoding="utf-8").split() if word != "."]
        self.assertEqual(written[-len(terms) :], terms)


class Modules(unittest.TestCase):
    def test_imports_have_no_circle(self):
        """Nor does a module of _internal import one above, not even within a function."""
        folder = SOURCE / "Plugin" / "python"
        paths = {
            ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__"): path
            for path in folder.rglob("*.py")
        }
        imported = {}
        for module, path in paths.items():
            names = set()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    names |= {f"{node.module}.{alias.name}" for alias in node.names}
            names = {name if name in paths else name.rpartition(".")[0] for name in names}
            imported[module] = names & paths.keys()
            if "._internal" in module:
                self.assertEqual([name for name in imported[module] if "._internal" not in name], [], module)
        graphlib.TopologicalSorter(imported).prepare()  # raises CycleError


class SourceArchive(unittest.TestCase):
    @needs_checkout
    def test_has_what_git_tracks(self):
        with tempfile.TemporaryDirectory() as folder:
            run(os.environ["ATLAS_CPACK"], "--config", BUILD / "CPackSourceConfig.cmake", "-B", folder)
            (archive,) = pathlib.Path(folder).glob("attention-atlas-*.tar.gz")
            with tarfile.open(archive) as tar:
                names = [member.name for member in tar.getmembers() if not member.isdir()]
        top = archive.name.removesuffix(".tar.gz") + "/"
        self.assertEqual({name.removeprefix(top) for name in names}, tracked())


if __name__ == "__main__":
    unittest.main()
