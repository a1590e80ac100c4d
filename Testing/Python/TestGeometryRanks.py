"""Attention on a mesh that ranks share: each place has the value that it has on one rank, and lines and table are equal
to the byte."""

import atlastest
import numpy
import randomrecording
from atlastest import RANKS, numbers
from paraview import simple
from ranktest import RankTest

SLICES = """
import numpy
data = inputs[0].VTKObject
centers = numpy.array([data.GetCell(i).GetBounds() for i in range(data.GetNumberOfCells())]).reshape(-1, 6)
centers = centers[:, ::2] + 0.5
odds = numpy.exp(numpy.sin(centers @ numpy.arange(1.0, 13).reshape(3, 4)))
weights = (odds / odds.sum(axis=1, keepdims=True)).astype("f4")
output.CellData.append(weights, "Slices")
output.CellData.append((centers * [1, 100, 10000]).sum(axis=1), "Place")
output.CellData.append((centers.sum(axis=1) % 10).astype("i4"), "Number")
"""


class GeometryRanks(RankTest):
    def setUp(self):
        super().setUp()
        path = atlastest.OUTPUT / f"recording-{self.id().split('.')[-1]}.safetensors"
        randomrecording.write_recording(path)
        self.recording = atlastest.read_recording(path)
        wavelet = simple.Wavelet(WholeExtent=[0, 9, 0, 8, 0, 7])
        self.mesh = simple.ProgrammableFilter(Input=wavelet, CopyArrays=1, Script=SLICES)

    def attention(self, properties, **binding):
        bound = simple.BindTokens(Input=self.mesh, Recording=self.recording, Places="Cells", **binding)
        return simple.SpatialAttention(Input=bound, Recording=self.recording, Layer=1, **properties)

    def expect(self, name, shown):
        """Cells of all ranks in the order of their places; lines, mark and table of the first."""
        cells = [numbers(part) for part in self.parts(shown, 0)]
        place, attention = (
            numpy.concatenate([part[f"CellData {array}"] for part in cells]) for array in ("Place", "Attention")
        )
        self.assertEqual(len(place), 9 * 8 * 7)
        if RANKS > 1:
            self.assertNotIn(len(place), [len(part["CellData Place"]) for part in cells])  # each has a part
        self.assert_as_on_one_rank(name, {"Attention": attention[numpy.argsort(place)]})
        self.assertGreater(self.first(shown, 3).GetNumberOfRows(), 2)
        # Ranks send no empty ones.
        self.assert_first(name, shown, *([2, 3] if shown.Direction == "Holds" else [1, 2, 3]))

    def test_by_tokens(self):
        grid = {"Method": "Grid", "PatchSize": [5, 2, 8], "PatchCounts": [2, 4, 1], "FirstToken": 1}
        for name, properties in (
            ("token", {"Token": 8, "Head": 2}),
            ("mean", {"Token": 8, "Head": -1, "DivideAmongPlaces": 1}),
            ("rollout", {"Token": 8, "Quantity": "Rollout", "Bend": 0.2}),
            ("probe", {"QueryBy": "Probe", "Probe": [4.1, 7.7, 3]}),
            ("to", {"QueryBy": "Probe", "Probe": [4.1, 0.7, 3], "Direction": "To"}),
        ):
            self.expect(f"tokens-{name}", self.attention(properties, **grid))

    def test_by_slices(self):
        weights = {"Method": "Weights", "WeightArray": "Slices", "FirstToken": 4}
        for name, properties in (
            ("token", {"Token": 7}),
            ("divided", {"Token": 7, "DivideAmongPlaces": 1, "Sequence": 2}),
            ("probe", {"QueryBy": "Probe", "Probe": [4.1, 7.7, 3], "Head": 1}),
            ("holds", {"QueryBy": "Probe", "Probe": [0, 0, 0], "Direction": "Holds"}),
        ):
            self.expect(f"slices-{name}", self.attention(properties, **weights))

    def test_by_nearest_and_residues(self):
        line = simple.Line(Point1=[0, 0, 0], Point2=[9, 8, 7], Resolution=9)
        self.expect("nearest", self.attention({"Token": 8}, Method="Nearest", TokenPositions=line))
        self.expect("residues", self.attention({"Token": 8}, Method="Residues", ResidueArray="Number"))

    def test_a_region_over_all_ranks(self):
        shown = self.attention({}, Method="Weights", WeightArray="Slices", FirstToken=4)
        shown.Selection = simple.ThresholdSelectionSource(ArrayName="Number", Thresholds=[3, 3], FieldType="CELL")
        self.expect("region", shown)

    def test_an_error_of_one_rank_is_told_once(self):
        """The last layer of cells, which the last rank has, is in a patch that no token is."""
        self.mesh.Script = SLICES + """
output.CellData.append(numpy.where(centers[:, 2] > 6, 10, 0).astype("i4"), "Wrong")
"""
        shown = self.attention({}, Method="Array", TokenArray="Wrong")
        shown.UpdatePipeline()
        self.assert_one_error("expected tokens from 0 to 9, or -1 for none, found 10")

    def test_contacts_and_mutations(self):
        folder = atlastest.DATA / "models" / "protein"
        recording = atlastest.read_recording(atlastest.DATA / "geometry" / "protein.safetensors")
        chain = simple.MmcifReader(FileName=str(folder / "chain.pdb"))
        lattice = {"ContactAtom": "CAlpha", "ContactDistance": 4, "MinimumSeparation": 3}
        contacts = simple.ContactMap(Input=recording, Structure=chain, **lattice)
        self.assert_tables("contacts", contacts, 1, 2, 3)
        self.assert_image("contacts-map", contacts)
        model = simple.TransformerReader(FileName=str(folder / "config.json"), Checkpoints=0)
        scan = simple.MutationScan(Input=model, Protein="GFGPGCLCSSG")
        self.assert_tables("mutations", scan, 0, 2)
        self.assert_image("mutations-image", scan, 1, ("Position", "Mutation Effect", "Log Probability"))
        contacts.ContactDistance = 0
        scan.Protein = "GF*"
        self.assert_told_once((contacts, "ContactDistance"), (scan, "a stop"))
