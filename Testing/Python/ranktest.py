"""What tests of several ranks share: the parts of outputs, and comparisons with one rank.

On the first of its numbers of ranks a test leaves its arrays and pictures for the others.
"""

import atlastest
from atlastest import RANKS, AtlasTest, numbers
from paraview import servermanager, simple


def first_output(source, port=0):
    """The output of the first rank, as it is there."""
    simple.OutputPort(source, port).UpdatePipeline()
    return source.GetClientSideObject().GetOutputDataObject(port)


def tables(data, name=""):
    """The number columns of all tables of a recording."""
    if data.IsA("vtkTable"):
        return {f"{name} {column}": values for column, values in numbers(data).items()}
    found = {}
    for i in range(data.GetNumberOfBlocks()):
        found.update(tables(data.GetBlock(i), f"{name}.{i}"))
    return found


class RankTest(AtlasTest):
    def parts(self, source, port=0):
        """An output as each rank has it."""
        simple.OutputPort(source, port).UpdatePipeline()
        return [servermanager.Fetch(source, rank, idx=port) for rank in range(RANKS)]

    def first(self, source, port=0):
        """An output that the first rank has; the others have nothing."""
        first, *others = self.parts(source, port)
        for part in others:
            self.assertEqual(part.GetNumberOfRows() if part.IsA("vtkTable") else part.GetNumberOfPoints(), 0)
        return first

    def assert_first(self, name, source, *ports):
        """Expects outputs that are not empty on the first rank, as they are on one."""
        for port in ports or (0,):
            arrays = numbers(self.first(source, port))
            self.assertTrue(any(len(values) for values in arrays.values()), f"{name}, port {port}")
            self.assert_as_on_one_rank(f"{name}-{port}", arrays)

    def assert_tables(self, name, source, *ports):
        """Expects tables that the first rank has, and others may have, as they are on one."""
        for port in ports or (0,):
            table = numbers(first_output(source, port))
            self.assertTrue(any(len(values) for values in table.values()), f"{name}, port {port}")
            self.assert_as_on_one_rank(f"{name}-{port}", table)

    def assert_image(self, name, source, port=0, arrays=()):
        """Expects the image of all ranks as it is on one. Arrays of a port are those of a filter that passes it on."""
        if port > 0:
            source = simple.PassArrays(Input=simple.OutputPort(source, port), PointDataArrays=list(arrays))
        self.assert_as_on_one_rank(name, self.image_arrays(source))

    def assert_picture(self, view, name, share=0):
        """Expects a picture in which no more than this share of pixels differs; returns it."""
        pixels = atlastest.picture(view, name)
        reference = atlastest.read_picture(atlastest.REFERENCE / f"{name}.png")
        self.assertLessEqual(atlastest.different_pixels(pixels, reference), share)
        return pixels

    def assert_told_once(self, *rows):
        """Expects of each source one error of all ranks that says this."""
        for source, message in rows:
            source.UpdatePipeline()
            self.assert_one_error(message)
            simple.Delete(source)
