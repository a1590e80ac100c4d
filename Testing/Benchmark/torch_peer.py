"""Torch, to compare with."""

import importlib
import os
import sys


def load(threads, waiting):
    """The module torch with this number of threads, or the end of the script if it is missing.

    Torch has threads of its own beside those of OpenBLAS, which multiplies. As they come, those that wait use the
    processor, so that both slow each other down: `waiting` is "spin". With "sleep" they sleep while they wait.
    """
    os.environ["OPENBLAS_NUM_THREADS"] = str(threads)
    if waiting == "sleep":
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        sys.exit(print("python3-torch is not installed"))
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    return torch
