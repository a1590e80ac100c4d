#!/usr/bin/env python3
"""Places points with another program, to compare BenchmarkEmbedding and BenchmarkUmap with.

    layout_peer.py PROGRAM POINTS.npy LAYOUT.f32 [THREADS]

PROGRAM is scikit-learn, openTSNE or umap-learn (install-deps.sh --peers). Writes the layout as float32 numbers and prints
the seconds that it took without what umap-learn compiles: those of the processors on one thread, which is the default,
else those of the clock. If the program is not installed, it prints that.
"""

import os
import sys
import time
import warnings

threads = int(sys.argv[4]) if len(sys.argv) > 4 else 1
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = str(threads)

try:
    import numpy as np

    if sys.argv[1] == "scikit-learn":
        from sklearn.manifold import TSNE
    elif sys.argv[1] == "openTSNE":
        import openTSNE
    else:
        import umap
except ImportError:
    sys.exit(print(f"{sys.argv[1]} is not installed"))

warnings.simplefilter("ignore")


def unit(points):
    """Between unit vectors, Euclidean neighbors are Cosine's."""
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def scikit_learn(points):
    """The layout with the settings of TSneOptions."""
    settings = {"perplexity": 50, "init": "pca", "learning_rate": "auto", "n_jobs": threads}
    try:
        program = TSNE(max_iter=750, **settings)
    except TypeError:  # before 1.5
        program = TSNE(n_iter=750, **settings)
    return program.fit_transform(unit(points))


def open_tsne(points):
    """The same; its default is the interpolation by Fourier transforms."""
    program = openTSNE.TSNE(
        perplexity=50, early_exaggeration_iter=250, n_iter=500, metric="euclidean", n_jobs=threads, random_state=0
    )
    return np.asarray(program.fit(unit(points)))


def umap_learn(points):
    """The layout with the settings of UmapOptions. A fixed state would allow it one thread alone."""
    state = 0 if threads == 1 else None
    program = umap.UMAP(n_neighbors=15, min_dist=0.1, metric="cosine", random_state=state, n_jobs=threads)
    return program.fit_transform(points)


def main():
    points = np.load(sys.argv[2]).astype(np.float32)
    place = {"scikit-learn": scikit_learn, "openTSNE": open_tsne, "umap-learn": umap_learn}[sys.argv[1]]
    clock = time.process_time if threads == 1 else time.monotonic
    if place is umap_learn:
        place(points[:5000])  # compiles
    begin = clock()
    layout = place(points)
    seconds = clock() - begin
    layout.astype("<f4").tofile(sys.argv[3])
    print(seconds)


if __name__ == "__main__":
    main()
