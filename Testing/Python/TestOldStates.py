"""States that ParaView 5.11 has saved open in every later version, with the same pictures.

states/save_states.py has made them: NAME.pvsm, NAME.py, and a picture of each view.
"""

import gzip
import pathlib

import atlastest
import paraview
from atlastest import AtlasTest
from attentionatlas import scene
from paraview import servermanager, simple

STATES = pathlib.Path(__file__).parent / "states" / "5.11"
#: What later versions tell of any state of 5.11, with or without our plugin.
MESSAGES = (
    "Compatibility version is set to (5, 11)",  # a script, from 5.12
    "State missing required attribute exceptionBlacklist",  # a link of cameras, from 5.12
    "is a printf format",  # a legend, from 6.1
)


class OldStates(AtlasTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.close)

    def close(self):
        """Takes all out of the session, at first the version that a script has asked for."""
        paraview.compatibility.major = paraview.compatibility.minor = None
        scene.clear()

    def unpack(self, name):
        """A state in the output folder, with the place of its data."""
        text = gzip.decompress((STATES / f"{name}.gz").read_bytes()).decode()
        path = atlastest.OUTPUT / name
        path.write_text(text.replace("@DATA@", str(atlastest.DATA)))
        return path

    def load(self, name):
        simple.LoadState(str(self.unpack(f"{name}.pvsm")))

    def run_script(self, name):
        path = self.unpack(f"{name}.py")
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})

    def check_pictures(self, name, limit=0.01):
        """Expects the pictures of a state's views, and no message but those of any state."""
        views = [view for view in simple.GetViews() if view.GetXMLName() != "SpreadSheetView"]
        expected = sorted(STATES.glob(f"{name}-?.png"))
        self.assertEqual(len(views), len(expected))
        for view, path in zip(views, expected):
            before = atlastest.read_picture(path)
            height, width, _ = before.shape
            found = atlastest.OUTPUT / f"{self.id()}-{path.name}"
            simple.SaveScreenshot(str(found), view, ImageResolution=[width, height])
            after = atlastest.read_picture(found)
            self.assertLess(atlastest.different_pixels(after, before), limit, path.name)
        errors = self.take_errors()
        self.assertEqual([e for e in errors if not any(known in e for known in MESSAGES)], [])

    def check(self, name, limit=0.01, limit_of_script=None):
        """Opens both kinds of a state, each in a session of its own."""
        for opened, most in ((self.load, limit), (self.run_script, limit_of_script or limit)):
            with self.subTest(opened.__name__):
                opened(name)
                self.check_pictures(name, most)
                self.close()
                self.start_session()

    def test_map_with_pairs(self):
        # So exactly that the place of the pairs above the map counts: ticks of the axes depend on it.
        # Scripts do not say how long a legend is, which is shorter now.
        self.check("map-with-pairs", 0.001, 0.02)

    def test_deformed_torus(self):
        # Bars that scripts make now have short numbers at their ends, and smaller letters.
        self.check("deformed-torus", 0.02, 0.04)

    def test_attention_map(self):
        self.check("attention-map", 0.06)  # as above, and its words were faint

    def test_charts(self):
        self.check("charts", 0.03)  # VTK 9.6 draws the lines of charts half a pixel aside

    def test_linked_views(self):
        self.load("linked-views")
        self.check_pictures("linked-views")
        link = servermanager.ProxyManager().GetRegisteredLink(scene.LINKS[0])
        self.assertEqual({link.GetLinkedProxy(i).GetXMLName() for i in range(2)}, {"RenderView"})
        for name in scene.LINKS[1:3]:  # 1.0.0 did not link weights of heads
            self.assertIsNotNone(servermanager.ProxyManager().GetRegisteredLink(name), name)
