"""Figures of the tour are the same on several MPI ranks.

On the first of its numbers of ranks this test leaves its figures for the others.
"""

import atlastest
from atlastest import AtlasTest
from attentionatlas import tour

NAMES = ["class-map", "harmonics"]


class TourRanks(AtlasTest):
    def test_figures(self):
        folder = atlastest.OUTPUT / "figures"
        for path in tour.render(atlastest.TRAINED, folder, NAMES, width=300):
            pixels = atlastest.read_picture(path)
            reference = atlastest.read_picture(atlastest.REFERENCE / "figures" / path.name)
            self.assertEqual(pixels.shape, reference.shape)
            self.assertLess(atlastest.different_pixels(pixels, reference), 1e-3, path.name)
            # ... which an empty page would pass.
            self.assertGreater((pixels.min(axis=2) < 250).mean(), 0.1, path.name)


if __name__ == "__main__":
    atlastest.main()
