"""Tables of circuits on several MPI ranks, which share the sources of skip-trigrams: as on one, to the byte.

On the first of its numbers of ranks this test leaves its arrays for the others.
"""

import atlastest
from atlastest import RANKS, AtlasTest
from paraview import servermanager, simple
from vtkmodules.util.numpy_support import vtk_to_numpy

TRANSFORMERS = atlastest.ORACLE.parent / "transformers"


class CircuitTables(AtlasTest):
    def setUp(self):
        super().setUp()
        self.model = simple.TransformerReader(FileName=str(TRANSFORMERS / "gpt2" / "config.json"))

    def check(self, name, source):
        """The first rank has the table; the others have nothing."""
        source.UpdatePipeline()
        for rank in range(1, RANKS):
            self.assertEqual(servermanager.Fetch(source, rank, idx=0).GetNumberOfRows(), 0)
        table = servermanager.Fetch(source, 0, idx=0).GetRowData()
        arrays = [table.GetArray(i) for i in range(table.GetNumberOfArrays())]
        arrays = {array.GetName(): vtk_to_numpy(array).copy() for array in arrays if array}
        self.assertGreater(len(arrays["Rank"]), 0)
        self.assert_as_on_one_rank(name, arrays)

    def test_tables(self):
        self.check("bigrams", simple.BigramTable(Input=self.model))
        self.check("trigrams", simple.SkipTrigrams(Input=self.model, Layer=1, Head=2))
        self.check("sources", simple.SkipTrigrams(Input=self.model, Tokens=["5", "7"]))

    def test_circuit(self):
        circuit = simple.HeadCircuit(Input=self.model, Layer=1, Head=2)
        self.check("circuit", circuit)
        # Arrays of a port are those of a filter that passes it on.
        entries = simple.PassArrays(Input=simple.OutputPort(circuit, 1), PointDataArrays=["QK"])
        self.assert_as_on_one_rank("image", self.image_arrays(entries))

    def test_errors_come_once(self):
        for proxy in (simple.BigramTable, simple.HeadCircuit, simple.SkipTrigrams):
            source = proxy(Input=self.model, Tokens=["the"])
            source.UpdatePipeline()
            self.assert_one_error("Tokens: expected an id from 0 to 210")
            simple.Delete(source)


if __name__ == "__main__":
    atlastest.main()
