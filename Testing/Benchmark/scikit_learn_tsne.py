#!/usr/bin/env python3
"""Places points with t-SNE of scikit-learn (Debian: python3-sklearn), to compare
BenchmarkEmbedding with.

    scikit_learn_tsne.py POINTS.npy LAYOUT.f32

Writes the layout as float32 numbers and prints the CPU seconds that it took, or that the package is missing.
"""

import os
import sys
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

try:
    import numpy as np
    from sklearn.manifold import TSNE
except ImportError:
    sys.exit(print("python3-sklearn is not installed"))

warnings.simplefilter("ignore")


def place(points):
    """The layout with the settings of TSneOptions: Cosine is Euclidean between unit vectors."""
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    settings = {"perplexity": 50, "init": "pca", "learning_rate": "auto", "n_jobs": 1}
    try:
        program = TSNE(max_iter=750, **settings)
    except TypeError:  # before 1.5
        program = TSNE(n_iter=750, **settings)
    return program.fit_transform(unit)


def main():
    points = np.load(sys.argv[1]).astype(np.float32)
    begin = time.process_time()
    layout = place(points)
    seconds = time.process_time() - begin
    layout.astype("<f4").tofile(sys.argv[2])
    print(seconds)


if __name__ == "__main__":
    main()
