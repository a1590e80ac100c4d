"""The command attention-atlas of a wheel: the program beside the package, which runs its commands that draw by this Python."""

from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    """Becomes the program."""
    program = pathlib.Path(__file__).parents[1] / "bin" / "attention-atlas"
    os.environ["ATLAS_PYTHON"] = sys.executable
    os.execv(program, sys.argv)
