"""What an installation has: the files of the Debian package, which find each other wherever they are, a command that
needs no setting, man pages that name every option, completion, modules that import each other in one direction, and the archive of the source.

ATLAS_BUILD_DIR is the build folder; ATLAS_CMAKE, ATLAS_CPACK and ATLAS_PVPYTHON are the programs."""

import ast
import contextlib
import graphlib
import gzip
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import unittest

SOURCE = pathlib.Path(os.environ["ATLAS_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["ATLAS_BUILD_DIR"])
PLUGIN = pathlib.Path(os.environ["ATLAS_PLUGIN"])
#: The folder with the plugin, below the prefix.
PLUGIN_FOLDER = PLUGIN.parent.relative_to(BUILD)
PYTHON_FOLDER = "lib/python3/dist-packages"
#: Before 6.0, ParaView draws on a display only.
NEEDS_DISPLAY = "paraview-5" in PLUGIN_FOLDER.as_posix()
PROGRAM = "attention-atlas"
COMMANDS = ("view", "figures", "web", "attribution", "article", "scene", "record", "corpus", "learn", "map", "findings")
PAGES = (PROGRAM, *(f"{PROGRAM}-{command}" for command in COMMANDS))
COMPLETION = f"share/bash-completion/completions/{PROGRAM}"
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
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}


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


def of_ours(errors):
    """What the command reports, without what the displays of others answer as ParaView asks :0 to :9 what they are."""
    return re.sub(r"Authorization required, but no authorization protocol specified\n\n?", "", errors)


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
        classes = self.prefix / PYTHON_FOLDER / "attentionatlas" / "vtk"
        return [*(self.prefix / PLUGIN_FOLDER).glob("*.so"), *classes.glob("*.so"), self.prefix / "bin" / PROGRAM]

    def test_files(self):
        package = SOURCE / "Plugin" / "python"
        sources = [*package.rglob("*.py"), *package.rglob("py.typed"), *package.rglob("assets/*.*")]
        expected = {
            f"bin/{PROGRAM}",
            COMPLETION,
            *(f"share/man/man1/{page}.1.gz" for page in PAGES),
            *(f"{PYTHON_FOLDER}/{path.relative_to(package)}" for path in sources),
            *(f"{PYTHON_FOLDER}/attentionatlas/{name}" for name in ("_internal/filters.json", "vtk/classes.json")),
            *(path.relative_to(BUILD).as_posix() for kind in ("*.so", "*.pyi") for path in (BUILD / PYTHON_FOLDER / "attentionatlas" / "vtk").glob(kind)),
            *(f"share/attention-atlas/{name}" for name in files(SOURCE / "Data")),
            *(f"share/doc/attention-atlas/html/{name}" for name in self.site()),
            *(f"{PLUGIN_FOLDER}/{library.name}" for library in PLUGIN.parent.glob("*.so")),
            f"{PLUGIN_FOLDER.parent}/attentionatlas.plugins.xml",
            "share/doc/attention-atlas/changelog.Debian.gz",
            "share/doc/attention-atlas/copyright",
            *self.lists_of_plugins(),
        }
        self.assertEqual(files(self.prefix), expected)

    def site(self):
        """The files of the documents as HTML, made afresh; the one that marks their folder is not installed."""
        with tempfile.TemporaryDirectory() as folder:
            run("/usr/bin/python3", "-B", SOURCE / "Plugin" / "scripts" / "make_site.py", folder)
            return {name for name in files(pathlib.Path(folder)) if not name.startswith(".")}

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
                self.assertEqual(pathlib.Path(path).resolve(), (self.prefix / PLUGIN_FOLDER / name).resolve(), binary.name)

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

    def help(self, page):
        """What --help of a command says, in the words of its man page."""
        command = page.removeprefix(PROGRAM).lstrip("-")
        return run(self.prefix / "bin" / PROGRAM, *filter(None, [command]), "--help", env=self.nothing())

    def nothing(self):
        """The environment of a user who has set nothing."""
        return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "PYTHONDONTWRITEBYTECODE": "1"}

    def test_man_pages_have_every_option_of_help(self):
        for name in PAGES:
            options = set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*)", self.help(name)))
            self.assertIn("help", options)
            page = gzip.decompress((self.prefix / "share" / "man" / "man1" / f"{name}.1.gz").read_bytes()).decode()
            body = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
            for section in ("NAME", "DESCRIPTION", "EXAMPLES"):
                self.assertRegex(body, rf'\n\.SH "?{section}"?\n', name)
            self.assertEqual(set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*)", body)), options, name)

    def completed(self, *words):
        """What bash offers for the last of the words."""
        script = (
            f'source "{self.prefix / COMPLETION}"; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _attention_atlas; '
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        return run("bash", "-c", script, "bash", PROGRAM, *words).split()

    def test_completion(self):
        self.assertEqual(self.completed(""), list(COMMANDS))
        self.assertEqual(self.completed("f"), ["figures", "findings"])
        self.assertEqual(self.completed("--v"), ["--version"])
        self.assertEqual(self.completed("record", "gpt2", "--la"), ["--layers"])
        self.assertEqual(self.completed("figures", "run.safetensors", "--hide-f"), ["--hide-first"])
        self.assertEqual(self.completed("figures", "run"), [])  # files, which bash itself offers
        for command in COMMANDS:
            options = set(re.findall(r"^ +(?:-\w, ?)?(--[a-z][a-z0-9-]*)", self.help(f"{PROGRAM}-{command}"), re.MULTILINE))
            self.assertLessEqual(options, set(self.completed(command, "--")), command)

    def test_the_command_needs_no_setting(self):
        """From the build folder and from the installation: no variable names the plugin, Python's modules or a display."""
        model = SOURCE / "Data" / "trained-n5-h3.safetensors"
        recording = SOURCE / "Data" / "recordings" / "gpt2-data-visualization.safetensors"
        config = SOURCE / "Data" / "models" / "language-1" / "config.json"
        for place in (BUILD, self.prefix):
            with tempfile.TemporaryDirectory() as folder, self.subTest(place=place):

                def atlas(*arguments):
                    return run(place / "bin" / PROGRAM, *arguments, cwd=folder, env=self.nothing())

                surface = ["--only", "class-map,deformed-torus", "--width", "300"]
                atlas("figures", model, *surface, "-o", "figures")
                atlas("figures", recording, "--only", "sentence", "--head", "0,3", "--width", "300", "-o", "figures")
                atlas("record", config, "In the beginning", "--record", "all", "-o", "run.safetensors")
                atlas("record", config, "In the beginning", "--products", "bf16", "-o", "rounded.safetensors")
                head = (pathlib.Path(folder) / "rounded.safetensors").read_bytes()[:100_000]
                self.assertIn(b'"products":"bf16"', head)
                atlas("figures", "run.safetensors", "--only", "heads", "--width", "300", "-o", "figures")
                atlas("web", model, "run.safetensors", "--only", "torus,map", "-o", "page.html")
                atlas("scene", "run.safetensors", "-o", "scene.pvsm")
                written = files(pathlib.Path(folder))
                for name in (
                    "trained-n5-h3-class-map.png", "trained-n5-h3-deformed-torus.png",
                    "gpt2-data-visualization-sentence.png", "run-all-heads.png",
                ):
                    self.assertIn(f"figures/{name}", written)
                self.assertIn("page.html", written)
                self.assertIn("scene.pvsm", written)

    def test_progress_is_a_bar_on_a_terminal_alone(self):
        model = SOURCE / "Data" / "trained-n5-h3.safetensors"
        with tempfile.TemporaryDirectory() as folder:
            command = [self.prefix / "bin" / PROGRAM, "figures", model, "--only", "class-map,mixes", "--width", "300"]
            command += ["-o", folder]
            lines = run(*command, env=self.nothing()).splitlines()
            self.assertEqual(lines[:2], ["trained-n5-h3: figure 1 of 2, class-map", "trained-n5-h3: figure 2 of 2, mixes"])
            leader, follower = os.openpty()
            process = subprocess.Popen(command, stdout=follower, stderr=follower, env=self.nothing())
            os.close(follower)
            shown = b""
            with contextlib.suppress(OSError):  # at the end
                while part := os.read(leader, 4096):
                    shown += part
            os.close(leader)
            self.assertEqual(process.wait(), 0, shown)
        half = "\r[" + 15 * "#" + 15 * "." + "] trained-n5-h3: figure 2 of 2, mixes\33[K\r\33[K"
        self.assertIn(half, shown.decode())

    def test_ctrl_c_ends_the_command_and_its_display(self):
        model = SOURCE / "Data" / "trained-n5-h3.safetensors"
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [self.prefix / "bin" / PROGRAM, "figures", model, "-o", folder],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.nothing(),
            )
            self.assertIn("figure 1 of", process.stdout.readline())
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            names = [pathlib.Path(f"/proc/{child}/comm").read_text().strip() for child in children]
            own = pathlib.Path(f"/proc/{process.pid}/comm").read_text().strip()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=120)
            self.assertEqual((process.returncode, of_ours(errors)), (-signal.SIGINT, ""))
            deadline = time.monotonic() + 30
            while any(pathlib.Path(f"/proc/{child}/exe").exists() for child in children):
                self.assertLess(time.monotonic(), deadline, "the display is still there")
                time.sleep(0.1)
            self.assertEqual(names.count("Xvfb"), NEEDS_DISPLAY, names)
            self.assertEqual(names.count(own), 1, f"the process that cleans up, among {names}")  # others are MPI's
            self.assertEqual(os.listdir(folder), [], "figures that nobody asked to keep")

    def test_errors_of_the_command(self):
        program = self.prefix / "bin" / PROGRAM

        def fails(*arguments, **environment):
            environment = {**self.nothing(), **environment}
            done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, env=environment)
            self.assertEqual(done.returncode, 1, done.stderr)
            return of_ours(done.stderr)

        model = SOURCE / "Data" / "trained-n5-h3.safetensors"
        self.assertEqual(fails("figures", "none.safetensors"), "attention-atlas figures: none.safetensors: no such file.\n")
        self.assertIn("--only: expected some of layer-norm, class-map", fails("figures", model, "--only", "class"))
        self.assertIn("--patch: none of the chosen figures", fails("figures", model, "--patch", "1", "2"))
        self.assertIn("none.safetensors", fails("scene", "none.safetensors"))
        # Nothing else is said: Python, which would tell what it imports, is not started for nothing.
        told = fails("web", "none.gguf", PYTHONVERBOSE="1")
        self.assertEqual(told, "attention-atlas web: none.gguf: no such file.\n")
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder, "run.safetensors")
            picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(100)))
            self.assertIn("expected a safetensors file, found a PNG picture.", fails("figures", picture, "-o", folder))
            file = pathlib.Path(folder, "file")
            file.touch()
            self.assertEqual(fails("figures", model, "-o", file), f"attention-atlas figures: {file}: file exists.\n")

    def test_figures_are_chosen_by_the_names_of_their_files(self):
        program, recording = self.prefix / "bin" / PROGRAM, SOURCE / "Data" / "recordings" / "language-2.safetensors"
        with tempfile.TemporaryDirectory() as folder:
            run(program, "figures", recording, "--only", "weights,focus-self", "-o", folder, env=self.nothing())
            self.assertEqual(files(pathlib.Path(folder)), {"language-2-weights.png", "language-2-focus-self.png"})

    def test_a_new_recording_has_what_figures_need(self):
        program, model = self.prefix / "bin" / PROGRAM, SOURCE / "Data" / "models" / "language-2"
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder, "run.safetensors")
            run(program, "record", model, "And God said, Let there be light", "-o", recording, env=self.nothing())
            lines = run(program, "figures", recording, "-o", folder, "--width", "300", env=self.nothing())
            omitted = [line for line in lines.splitlines() if "omitted" in line]
            self.assertEqual(len([line for line in omitted if "needs the model" not in line]), 0, omitted)

    def test_recordings_are_those_of_the_plugin(self):
        """record writes the bytes that the recorder of the plugin and the writer write."""
        script = (
            "import sys\n"
            "from attentionatlas import load_plugin\n"
            "from paraview import simple\n"
            "load_plugin()\n"
            "model = simple.TransformerReader(FileName=sys.argv[1], Checkpoints=0)\n"
            "recorder = simple.TransformerRecorder(Input=model, Prompts='In the beginning\\nGod said, let',"
            " Record=['QueriesAndKeys', 'Values', 'Residual'], GenerateTokens=3, Temperature=1, Seed=2)\n"
            "simple.SaveData(sys.argv[2], proxy=recorder)\n"
        )
        config = SOURCE / "Data" / "models" / "language-1" / "config.json"
        python = self.prefix / "lib" / "python3" / "dist-packages"
        environment = {**self.environment, "PYTHONPATH": str(python), "PYTHONDONTWRITEBYTECODE": "1"}
        with tempfile.TemporaryDirectory() as folder:
            own, other = pathlib.Path(folder, "own.safetensors"), pathlib.Path(folder, "other.safetensors")
            run(
                *(self.prefix / "bin" / PROGRAM, "record", config, "In the beginning", "God said, let"),
                *("--record", "QueriesAndKeys,Values,Residual", "--generate", "3", "--temperature", "1", "--seed", "2"),
                *("-o", own), env=self.nothing(),
            )
            run(os.environ["ATLAS_PVPYTHON"], "-c", script, config, other, env=environment)
            self.assertEqual(own.read_bytes(), other.read_bytes())

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
        """Nor does a module of _internal import one above, not even within a function. The VTK classes are below all."""
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
                self.assertEqual([name for name in imported[module] - {"attentionatlas.vtk"} if "._internal" not in name], [], module)
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
