"""Figures of the tour are the same on several MPI ranks.

On the first of its numbers of ranks this test leaves its figures for the others.
"""

import atlastest
import numpy
from atlastest import AtlasTest
from attentionatlas import tour

NAMES = ["class-map", "attention", "simplex", "harmonics"]


class TourRanks(AtlasTest):
    def test_figures(self):
        folder = atlastest.OUTPUT / "figures"
        for path in tour.render(atlastest.TRAINED, folder, NAMES, width=300):
            pixels = atlastest.read_picture(path)
            reference = atlastest.read_picture(atlastest.REFERENCE / "figures" / path.name)
            self.assertEqual(pixels.shape, reference.shape)
            self.assertLess(atlastest.different_pixels(pixels, reference), 1e-3, path.name)
            if path.stem.endswith("class-map"):  # an empty page would be the same, too
                for color in atlastest.PALETTE:
                    near = numpy.abs(pixels - color).max(axis=2) < 10
                    self.assertGreater(near.mean(), 0.02, f"a class of {path.name}")


if __name__ == "__main__":
    atlastest.main()
