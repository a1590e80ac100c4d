"""Attention on meshes, volumes and molecules in a pipeline of ParaView: values, states, selections and time."""

import atlastest
import numpy
import randomrecording
from atlastest import AtlasTest
from paraview import servermanager, simple, smstate

TOKENS = 10  # of each of the three sequences
HEAD, LAYER = 1, 1

#: Two chains of a protein and water. Residue 7 is not there, and 12 of chain A comes after chain B.
PROTEIN = """\
ATOM      1  N   GLY A   5      11.000  12.000  13.000  1.00  0.00           N
ATOM      2  CA  GLY A   5      12.000  12.000  13.000  1.00  0.00           C
ATOM      3  N   ALA A   6      13.000  12.000  13.000  1.00  0.00           N
ATOM      4  N   SER A   8      14.000  12.000  13.000  1.00  0.00           N
ATOM      5  N   ALA B   3      15.000  12.000  13.000  1.00  0.00           N
ATOM      6  CA  ALA B   3      16.000  12.000  13.000  1.00  0.00           C
ATOM      7  N   GLY A  12      17.000  12.000  13.000  1.00  0.00           N
HETATM    8  O   HOH B 101      18.000  12.000  13.000  1.00  0.00           O
END
"""
RESIDUES = [0, 0, 1, 2, 4, 4, 3, -1]


def arrays(source, port=0, kind="PointData"):
    """The arrays of an output, by name."""
    return atlastest.arrays_of(servermanager.Fetch(source, idx=port), kind)


class Geometry(AtlasTest):
    @classmethod
    def setUpClass(cls):
        randomrecording.write_recording(atlastest.OUTPUT / "recording.safetensors")
        (atlastest.OUTPUT / "protein.pdb").write_text(PROTEIN)

    def setUp(self):
        super().setUp()
        self.recording = atlastest.read_recording(atlastest.OUTPUT / "recording.safetensors")
        self.weights = randomrecording.attention_of(atlastest.OUTPUT / "recording.safetensors", LAYER, HEAD, slice(TOKENS))

    def volume(self):
        """A volume of 10 x 4 x 3 cells, each layer of cells along x a token."""
        wavelet = simple.Wavelet(WholeExtent=[0, 10, 0, 4, 0, 3])
        return simple.BindTokens(
            Input=wavelet, Recording=self.recording, Method="Grid", Places="Cells", PatchSize=[1, 4, 3], PatchCounts=[10, 1, 1]
        )

    def attention(self, bound, **properties):
        return simple.SpatialAttention(Input=bound, Recording=self.recording, Layer=LAYER, Head=HEAD, **properties)

    def test_cells_of_a_volume(self):
        shown = self.attention(self.volume(), Token=7)
        cells = arrays(shown, kind="CellData")
        self.assertEqual(cells["Attention"].dtype, numpy.float32)
        numpy.testing.assert_array_equal(cells["Bound Token"], numpy.tile(numpy.arange(10), 12))
        numpy.testing.assert_allclose(cells["Attention"], numpy.tile(self.weights[7], 12), atol=1e-6)
        shown.Direction = "To"
        numpy.testing.assert_allclose(
            arrays(shown, kind="CellData")["Attention"], numpy.tile(self.weights[:, 7], 12), atol=1e-6
        )
        self.assertIn("RTData", arrays(shown))  # what was there is there

    def test_lines_and_table(self):
        shown = self.attention(self.volume(), Token=7, Count=4)
        order = [key for key in numpy.argsort(-self.weights[7]) if self.weights[7][key] > 0][:4]
        table = arrays(shown, 3, "RowData")
        self.assertEqual(list(table["Position"]), order)
        numpy.testing.assert_allclose(table["Weight"], self.weights[7][order], atol=1e-6)
        self.assertEqual(list(table["Places"]), [12] * 4)
        centers = [[key + 0.5, 2, 1.5] for key in order]
        numpy.testing.assert_allclose(table["Center"], centers, atol=1e-9)
        keys = [key for key in order if key != 7]
        self.assertEqual(list(arrays(shown, 1, "CellData")["Key"]), keys)
        mark = servermanager.Fetch(shown, idx=2)
        numpy.testing.assert_allclose(mark.GetPoint(0), [7.5, 2, 1.5], atol=1e-9)

    def test_filters_of_paraview_follow(self):
        shown = self.attention(self.volume(), Token=9)
        strong = simple.Threshold(Input=shown, Scalars=["CELLS", "Attention"])
        strong.LowerThreshold, strong.UpperThreshold = float(numpy.sort(self.weights[9])[-3]) - 1e-6, 1
        strong.UpdatePipeline()
        self.assertEqual(servermanager.Fetch(strong).GetNumberOfCells(), 3 * 12)
        contour = simple.Contour(Input=simple.CellDatatoPointData(Input=shown), ContourBy=["POINTS", "Attention"])
        contour.Isosurfaces = [float(self.weights[9].max()) / 2]
        contour.UpdatePipeline()
        self.assertGreater(servermanager.Fetch(contour).GetNumberOfCells(), 0)

    def test_a_probe_moves_in_time(self):
        shown = self.attention(self.volume(), QueryBy="Probe")
        track = simple.GetAnimationTrack("Probe", index=0, proxy=shown)
        first, last = simple.CompositeKeyFrame(), simple.CompositeKeyFrame()
        first.KeyTime, first.KeyValues = 0, [0.5]
        last.KeyTime, last.KeyValues = 1, [9.5]
        track.KeyFrames = [first, last]
        scene = simple.GetAnimationScene()
        scene.PlayMode, scene.NumberOfFrames = "Sequence", 10
        scene.StartTime, scene.EndTime = 0, 9
        for frame in (0, 4, 9):
            scene.AnimationTime = frame
            found = arrays(shown, kind="CellData")["Attention"][:10]
            numpy.testing.assert_allclose(found, self.weights[frame], atol=1e-6)

    def test_a_selection_is_a_region(self):
        shown = self.attention(self.volume())
        shown.Selection = simple.IDSelectionSource(IDs=[0, 8, 0, 9, 0, 19], FieldType="CELL")  # 8, 9 and 9
        expected = (self.weights[8] + 2 * self.weights[9]) / 3
        found = arrays(shown, kind="CellData")["Attention"]
        numpy.testing.assert_allclose(found[:10], expected, atol=1e-6)

    def test_residues_of_a_protein(self):
        atoms = simple.PDBReader(FileName=str(atlastest.OUTPUT / "protein.pdb"))
        bound = simple.BindTokens(Input=atoms, Recording=self.recording, Method="Residues", FirstToken=1)
        tokens = arrays(bound)["Bound Token"]
        self.assert_one_error("expected 9 residues, one per token from 1 on, found 5: chain A 4, chain B 1.")
        self.assertEqual([token - 1 if token >= 0 else -1 for token in tokens], RESIDUES)
        shown = self.attention(bound, QueryBy="Probe", Probe=[17, 12, 13])  # residue 12, token 4
        expected = [self.weights[4][token + 1] if token >= 0 else 0 for token in RESIDUES]
        numpy.testing.assert_allclose(arrays(shown)["Attention"], expected, atol=1e-6)
        bound.HeteroAtoms = 1
        self.assertEqual(arrays(bound)["Bound Token"][-1], 1 + 5)
        self.assert_one_error("found 6: chain A 4, chain B 1, ligands and water 1.")

    def test_it_begins_with_what_fits(self):
        """Of the arrays of a dataset those are offered whose values can be tokens, and a method that fits is chosen."""
        mesh = simple.XMLUnstructuredGridReader(FileName=[str(atlastest.DATA / "geometry" / "heat.vtu")])
        recording = atlastest.read_recording(atlastest.DATA / "geometry" / "heat.safetensors")
        self.assertEqual(simple.BindTokens(Input=mesh, Recording=recording).Method, "Array", "nothing is known yet")
        mesh.UpdatePipeline()
        bound = simple.BindTokens(Input=mesh, Recording=recording)
        self.assertEqual((bound.Method, bound.WeightArray), ("Weights", "Slices"))
        self.assertNotIn("Temperature", bound.GetProperty("TokenArray").GetAvailable())
        self.assertNotIn("Temperature", bound.GetProperty("WeightArray").GetAvailable())
        bound.UpdatePipeline()
        bound.Method, bound.TokenArray = "Array", "Temperature"
        bound.UpdatePipeline()
        self.assert_one_error("expected tokens from 0 to 23, or -1 for none", "'Temperature' has values from")
        atoms = simple.PDBReader(FileName=str(atlastest.OUTPUT / "protein.pdb"))
        atoms.UpdatePipeline()
        self.assertEqual(simple.BindTokens(Input=atoms, Recording=self.recording).Method, "Residues")
        named = "output.PointData.append(numpy.arange(8) % 4, 'Token'); output.PointData.append(numpy.arange(8) % 3, 'Part')"
        numbered = simple.ProgrammableFilter(Input=atoms, CopyArrays=1, Script=f"import numpy\n{named}")
        numbered.UpdatePipeline()
        bound = simple.BindTokens(Input=numbered, Recording=self.recording)
        self.assertEqual((bound.Method, bound.TokenArray), ("Array", "Token"))
        self.assertIn("Part", bound.GetProperty("TokenArray").GetAvailable())
        numbered.Script = "import numpy; output.PointData.append(numpy.arange(8) % 3, 'Part')"
        numbered.UpdatePipeline()
        chosen = simple.BindTokens(Input=numbered, Recording=self.recording, TokenArray="Part")
        self.assertEqual((chosen.Method, chosen.TokenArray), ("Array", "Part"))

    def test_a_wrong_input_is_one_sentence(self):
        sphere = simple.Sphere()
        shown = simple.SpatialAttention(Input=sphere, Recording=self.recording)
        shown.UpdatePipeline()
        self.assert_one_error("Input: expected data with tokens, found none; apply Bind Tokens first.")
        for make in (simple.SpatialAttention, simple.BindTokens):  # the inputs the wrong way round
            shown = make(Input=self.recording, Recording=self.recording)
            shown.UpdatePipeline()
            self.assert_one_error("Input: expected a dataset with points or cells")

    def test_nearest_tokens(self):
        plane = simple.Plane(XResolution=9, YResolution=3)
        line = simple.Line(Point1=[-0.5, 0, 0], Point2=[0.5, 0, 0], Resolution=9)
        bound = simple.BindTokens(Input=plane, Recording=self.recording, Method="Nearest", TokenPositions=line)
        numpy.testing.assert_array_equal(arrays(bound)["Bound Token"], numpy.tile(numpy.arange(10), 4))

    def sliced(self):
        """A plane with weights of four slices, which follow from x."""
        plane = simple.Plane(XResolution=12, YResolution=5)
        script = simple.ProgrammableFilter(Input=plane, CopyArrays=1)
        script.Script = """
import numpy
x = numpy.asarray(inputs[0].Points)[:, 0].astype(float)
odds = numpy.exp(-numpy.abs(x[:, None] - numpy.linspace(-0.5, 0.5, 4)) * 6)
output.PointData.append((odds / odds.sum(axis=1, keepdims=True)).astype("f4"), "Slices")
"""
        return simple.BindTokens(
            Input=script, Recording=self.recording, Method="Weights", WeightArray="Slices", FirstToken=3
        )

    def test_soft_slices(self):
        bound = self.sliced()
        shown = self.attention(bound, Token=6)
        points = arrays(shown)
        slices = points["Slices"].astype(float)
        numpy.testing.assert_allclose(points["Attention"], slices @ self.weights[6][3:7], atol=1e-6)
        shown.QueryBy, shown.Probe = "Probe", [0.5, 0.5, 0]
        corner = slices[-1] @ self.weights[3:7, 3:7]
        numpy.testing.assert_allclose(arrays(shown)["Attention"], slices @ corner, atol=1e-6)
        shown.Direction = "Holds"
        numpy.testing.assert_allclose(arrays(shown)["Attention"], slices @ slices[-1], atol=1e-6)
        shown.DivideAmongPlaces, shown.Direction = 1, "From"
        self.assertAlmostEqual(float(arrays(shown)["Attention"].sum()), float(corner.sum()), delta=1e-5)

    def test_states(self):
        for kind in ("pvsm", "Python"):
            with self.subTest(kind):
                shown = self.attention(self.sliced(), QueryBy="Probe", Probe=[-0.2, 0.1, 0], Bend=0.3)
                simple.RenameSource("Shown", shown)
                simple.Show(shown, atlastest.chart_view())
                expected = arrays(shown)["Attention"]
                script = smstate.get_state()
                self.reload()
                if kind == "Python":
                    self.start_session()
                    self.assertIsNone(simple.FindSource("Shown"))
                    exec(compile(script, "state", "exec"), {})
                shown = simple.FindSource("Shown")
                self.assertEqual([shown.QueryBy, list(shown.Probe), shown.Bend], ["Probe", [-0.2, 0.1, 0], 0.3])
                numpy.testing.assert_array_equal(arrays(shown)["Attention"], expected)
                self.setUp()

    def test_first_show(self):
        shown = self.attention(self.volume(), Token=7)
        view = simple.CreateRenderView()
        displays = [simple.Show(simple.OutputPort(shown, port), view) for port in range(3)]
        simple.Render(view)
        self.assertEqual(list(displays[0].ColorArrayName), ["CELLS", "Attention"])
        self.assertEqual(list(displays[1].ColorArrayName), ["CELLS", "MarkColor"])
        table = displays[0].LookupTable
        self.assertEqual(table.RGBPoints[0], 0)
        self.assertAlmostEqual(table.RGBPoints[-4], self.weights[7].max(), delta=1e-6)  # as heat of patches
        shown.Token = 4
        simple.Render(view)
        self.assertAlmostEqual(table.RGBPoints[-4], self.weights[4].max(), delta=1e-6)
        self.assertEqual(displays[1].LineWidth, 3)
        self.assertEqual(displays[2].PointSize, 14)
