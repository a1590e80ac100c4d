#!/usr/bin/env python3
"""Places points with umap-learn (Debian: umap-learn), to compare BenchmarkUmap with.

    umap_learn.py POINTS.npy LAYOUT.f32

Writes the layout as float32 numbers and prints the CPU seconds that it took, without the
compilation of umap-learn itself, or that the package is missing.
"""

import os
import sys
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

try:
    import numpy as np
    import umap
except ImportError:
    sys.exit(print("umap-learn is not installed"))

warnings.simplefilter("ignore")


def place(points):
    """The layout with the settings of UmapOptions."""
    program = umap.UMAP(n_neighbors=15, min_dist=0.1, metric="cosine", random_state=0)
    return program.fit_transform(points)


def main():
    points = np.load(sys.argv[1]).astype(np.float32)
    place(points[:5000])  # compiles
    begin = time.process_time()
    layout = place(points)
    seconds = time.process_time() - begin
    layout.astype("<f4").tofile(sys.argv[2])
    print(seconds)


if __name__ == "__main__":
    main()
