"""A client and a pvserver show what a session without a server shows, and the server survives errors.

ATLAS_SERVER is the command that starts pvserver, perhaps on several ranks.
"""

import ctypes
import os
import shlex
import signal
import socket
import subprocess
import time
import unittest
import unittest.mock

import atlastest
import numpy
from atlastest import AtlasTest
from attentionatlas import Error, load_plugin, plugin_path, update
from paraview import servermanager, simple
from webpages import Page

#: Bytes of geometry, in MB, beyond which the server renders: always, and never.
THRESHOLDS = {"server": 0, "client": 1e6}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def without_mpi():
    """The environment without the variables of MPI: pvpython is an MPI process itself, and they are not for mpirun."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "ORTE_"))}


def end_with_parent():
    """Has the system end this process when its parent is gone, however that ended."""
    set_death_signal = 1
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGTERM)


class Server:
    """A pvserver and, unless that is for another process, the connection to it."""

    def __init__(self, name, *options, connects=True):
        self.log = atlastest.OUTPUT / f"{name}.log"
        for _ in range(3):  # another program may take the port first
            self.port = free_port()
            self._start([f"--server-port={self.port}", *options])
            if self._is_listening():
                break
            self.stop()
        else:
            raise RuntimeError(f"pvserver does not start:\n{self.log.read_text()}")
        if connects and simple.Connect("127.0.0.1", self.port, timeout=30) is None:
            self.stop()
            raise RuntimeError("no connection to pvserver")
        atlastest.hide_bars()  # of the new session

    def _start(self, options):
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*shlex.split(os.environ["ATLAS_SERVER"]), *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env=without_mpi(), start_new_session=True, preexec_fn=end_with_parent,
            )

    def _is_listening(self):
        end = time.monotonic() + 90
        while self.is_running() and time.monotonic() < end:
            if "Accepting connection" in self.log.read_text():
                return True
            time.sleep(0.1)
        return False

    def is_running(self):
        return self.process.poll() is None

    def stop(self):
        """Ends all of its processes, whatever they do."""
        for end in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, end)  # mpirun passes the first on to its ranks
                self.process.wait(5)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass


def pictures(name, view):
    """What a view shows where the server renders, and where the client does."""
    found = {}
    for where, threshold in THRESHOLDS.items():
        view.RemoteRenderThreshold = threshold
        found[f"{name} by the {where}"] = atlastest.picture(view, f"{name}-{where}")
    return found


def show_surface(torus, view):
    """Shows a chart as a surface, which it is on several ranks; on one it would be a texture."""
    display = simple.Show(torus, view)
    if display.Representation == "Slice":
        display.SetRepresentationType("Surface")


def show_torus():
    """The class map, its pairs, the donut, and the pairs as points on a screen of many pixels per inch."""
    model = atlastest.read_model()
    torus = atlastest.torus(model, Quantities=["ClassColor", "Attention"])
    view = atlastest.chart_view()
    show_surface(torus, view)
    simple.Show(simple.TokenPairs(Input=model), view)
    arrays = pictures("map", view)
    donut = simple.TorusDeformation(Input=torus)
    view = simple.CreateRenderView(ViewSize=[300, 300], OrientationAxesVisibility=0)
    simple.Show(donut, view)
    simple.ResetCamera(view)
    arrays.update(pictures("donut", view))
    view = simple.CreateRenderView(ViewSize=[300, 300], OrientationAxesVisibility=0, PPI=144)
    simple.Show(simple.TokenPairs(Input=model), view, Representation="Points", PointSize=10)
    simple.ResetCamera(view)
    return {**arrays, **pictures("points", view)}


def show_training():
    """A training, played."""
    training = simple.AttentionOnlyTraining(Steps=100, CheckpointEvery=50)
    torus = atlastest.torus(training)
    view = atlastest.chart_view()
    show_surface(torus, view)
    scene = simple.GetAnimationScene()
    scene.UpdateAnimationUsingDataTimeSteps()
    arrays = {"times": numpy.array(training.TimestepValues)}
    for step in (0, 50, 100):
        scene.AnimationTime = step
        arrays.update(pictures(f"training-{step}", view))
        for name, values in atlastest.model_blocks(training, 0).items():
            arrays[f"{name} at {step}"] = values.copy()
    return arrays


def show_recording():
    """A map as squares, with and without its labels, and saved again."""
    recording = atlastest.read_recording()
    attention = simple.AttentionMap(Input=recording, Layer=4, Head=11)
    attention.UpdatePipeline()
    view = atlastest.chart_view()
    view.CameraFocalPoint = [2.5, -2.5, 0]
    view.CameraPosition = [2.5, -2.5, 10]
    view.CameraParallelScale = 6
    display = simple.Show(attention, view)
    arrays = {"squares": numpy.array(display.Representation == "Squares")}
    arrays.update(pictures("labels", view))
    display.TokenLabels = False
    arrays.update(pictures("squares", view))
    diagram = simple.CreateView("AttentionDiagram", ViewSize=[400, 400])
    simple.Show(attention, diagram)
    arrays.update(pictures("diagram", diagram))
    path = atlastest.OUTPUT / "saved.safetensors"
    path.unlink(missing_ok=True)
    simple.SaveData(str(path), proxy=recording)
    arrays["saved"] = numpy.frombuffer(path.read_bytes(), "u1")
    return arrays


class ServerTest(AtlasTest):
    """A test with a server of its own."""

    options = ()

    def start_session(self):
        self.server = Server(f"server-{self._testMethodName}", *self.options)
        self.addCleanup(self.server.stop)
        self.addCleanup(simple.Disconnect)


class WithPlugin(ServerTest):
    options = (f"--plugin-search-paths={plugin_path().parent}", "--plugins=AttentionAtlas")

    def start_session(self):
        if servermanager.ActiveConnection is None:
            simple.Connect()
            atlastest.hide_bars()
        super(ServerTest, self).start_session()
        shows = {"test_torus": show_torus, "test_training": show_training, "test_recording": show_recording}
        script = shows.get(self._testMethodName)
        self.expected = script() if script else None  # without a server
        super().start_session()
        load_plugin()

    def assert_as_without_server(self, found):
        self.assertEqual(sorted(found), sorted(self.expected))
        for name, values in self.expected.items():
            if " by the " in name:
                self.assertGreater(len(numpy.unique(values)), 3, name)
                # The edges of an image's points move by a pixel where it went to the client first.
                self.assertLess(atlastest.different_pixels(found[name], values), 0.01, name)
            else:
                numpy.testing.assert_array_equal(found[name], values, name)
        self.assertTrue(self.server.is_running())

    def test_torus(self):
        self.assert_as_without_server(show_torus())

    def test_training(self):
        self.assert_as_without_server(show_training())

    def test_recording(self):
        found = show_recording()
        self.assert_as_without_server(found)
        for where in THRESHOLDS:
            labels, none = (found[f"{name} by the {where}"] for name in ("labels", "squares"))
            self.assertGreater(atlastest.different_pixels(labels, none), 0.003)

    def test_filters_take_the_data_of_the_server(self):
        sources = {"AttentionTorus": atlastest.read_model(), "AttentionMap": atlastest.read_recording()}
        for mine, source in sources.items():
            source.UpdatePipeline()
            for name in sources:
                self.assertEqual(atlastest.takes("filters", name, source), name == mine, name)

    def test_errors_reach_the_client(self):
        model = atlastest.read_model()
        torus = atlastest.torus(model, Resolution=[0, 7])
        torus.UpdatePipeline()
        self.assert_one_error("Resolution: expected at least 2 points along each angle, found 0 x 7.")
        torus.Resolution = [9, 7]
        torus.UpdatePipeline()
        self.assertGreaterEqual(torus.GetDataInformation().GetNumberOfPoints(), 63)
        atlastest.read_model("/no such file").UpdatePipeline()
        self.assert_one_error("/no such file: cannot open file")
        simple.RecordingReader(FileName="/no such recording.npy").UpdatePipeline()
        self.assert_one_error("/no such recording.npy")
        torus.Resolution = [0, 7]
        with self.assertRaisesRegex(Error, "^Resolution: expected at least 2 points along each angle, found 0 x 7.$"):
            update(torus)
        with self.assertRaisesRegex(Error, "/no such file: cannot open file"):
            update(atlastest.read_model("/no such file"))  # by a reader within another
        self.assertTrue(self.server.is_running())


class WithoutPlugin(ServerTest):
    def test_message(self):
        with unittest.mock.patch.dict(os.environ, ATLAS_PLUGIN="/elsewhere/AttentionAtlas.so"):
            with self.assertRaisesRegex(RuntimeError, "cannot load /elsewhere/AttentionAtlas.so: start"):
                load_plugin()
        for error in self.take_errors():
            self.assertIn("/elsewhere/AttentionAtlas.so", error)
        simple.LoadPlugin(str(plugin_path()), remote=False, ns={})
        vars(simple).pop("AttentionTorus", None)  # ParaView 6.1 gives simple what it gives to any namespace
        manager = servermanager.ProxyManager().SMProxyManager
        for group, name in (("filters", "AttentionTorus"), ("representations", "SquaresRepresentation")):
            self.assertIsNone(manager.NewProxy(group, name))
            self.assert_one_error(f"group={group} and proxy={name}")
        load_plugin()
        model = atlastest.read_model()
        torus = atlastest.torus(model)
        torus.UpdatePipeline()
        self.assertGreaterEqual(torus.GetDataInformation().GetNumberOfPoints(), 64 * 48)
        self.assertTrue(self.server.is_running())


#: Writes a page of a donut and its pairs; with a port, from a server there.
CLIENT = """
import sys
from paraview import simple
if len(sys.argv) > 3:
    simple.Connect("127.0.0.1", int(sys.argv[3]))
from attentionatlas import load_plugin, web
load_plugin()
model = simple.AttentionOnlyModelReader(FileNames=[sys.argv[1]])
view = simple.CreateRenderView(ViewSize=[200, 200])
simple.Show(simple.TorusDeformation(Input=simple.AttentionTorus(Input=model, Resolution=[41, 31])), view)
simple.Show(simple.TokenPairs(Input=model), view)
web.page([web.from_view(view)], sys.argv[2])
"""


class NewClient(unittest.TestCase):
    """A process that has loaded the plugin nowhere before."""

    def page(self, name, *port):
        """The page that it writes, and what it says."""
        path = atlastest.OUTPUT / f"{name}.html"
        done = subprocess.run(
            [os.environ["ATLAS_PVPYTHON"], "-c", CLIENT, str(atlastest.TRAINED), str(path), *port],
            capture_output=True, text=True, check=False, timeout=120, env=without_mpi(),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return Page(path.read_text(encoding="utf-8")), done.stdout + done.stderr

    def test_loads_the_plugin_silently_and_writes_the_same_page(self):
        server = Server("new-client", connects=False)
        self.addCleanup(server.stop)
        found, told = self.page("from-server", str(server.port))
        self.assertNotIn("ERR|", told)
        self.assertNotIn("WARN|", told)
        expected, _ = self.page("alone")
        surface, pairs = expected.scenes[0]["parts"]
        found_surface, found_pairs = found.scenes[0]["parts"]
        self.assertEqual(surface["polys"]["count"], 40 * 30)
        self.assertEqual(found_surface["polys"]["count"], surface["polys"]["count"])
        self.assertEqual(found_pairs["points"]["count"], pairs["points"]["count"])
        if " -np " not in os.environ["ATLAS_SERVER"]:  # ranks share points where their parts meet
            self.assertEqual(found.bytes, expected.bytes)
