"""A training on several MPI ranks is that on one: every rank has the model, a sweep is shared."""

import atlastest
import numpy
from atlastest import RANKS, AtlasTest
from paraview import servermanager, simple


def columns(source, port, ranks):
    """The columns of a table as arrays, one rank's rows behind the other's."""
    found = {}
    for rank in ranks:
        table = servermanager.Fetch(source, rank, idx=port)
        for number in range(table.GetNumberOfColumns()):
            values = [table.GetValue(row, number) for row in range(table.GetNumberOfRows())]
            values = [value.ToString() if value.IsString() else value.ToDouble() for value in values]
            found.setdefault(table.GetColumnName(number), []).extend(values)
    return {name: numpy.array(values) for name, values in found.items()}


class TrainingRanks(AtlasTest):
    def setUp(self):
        super().setUp()
        self.training = simple.AttentionOnlyTraining(Steps=300, CheckpointEvery=100, Runs=5, AllModes=1)

    def test_model(self):
        for step in (0, 100, 300):
            self.training.UpdatePipeline(step)
            for rank in range(RANKS):
                blocks = atlastest.model_blocks(self.training, rank)
                self.assert_as_on_one_rank(f"model-{step}", blocks)

    def test_pairs_of_every_rank(self):
        pairs = simple.TokenPairs(Input=self.training)
        pairs.UpdatePipeline(200)
        self.assertEqual(pairs.GetDataInformation().GetNumberOfPoints(), 25)
        self.assert_as_on_one_rank("pairs", atlastest.point_arrays(pairs, 200))

    def test_chart(self):
        """Every rank draws its part of the map of the one model."""
        chart = simple.AttentionTorus(Input=self.training, Resolution=[61, 41])
        chart.UpdatePipeline(300)
        self.assert_as_on_one_rank("chart", self.image_arrays(chart))

    def test_tables(self):
        self.training.UpdatePipeline()
        for port, rows, ranks in ((1, 4, [0]), (2, 15, range(RANKS))):
            information = simple.OutputPort(self.training, port).GetDataInformation()
            self.assertEqual(information.GetNumberOfRows(), rows, "once, on all ranks together")
            table = columns(self.training, port, ranks)
            self.assert_as_on_one_rank(f"table-{port}", table)
        self.assertEqual(list(table["Seed"]), 3 * [0, 1, 2, 3, 4])
