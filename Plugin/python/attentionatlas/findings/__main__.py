"""The command line of the findings: attention-atlas findings -o DIR [--models FOLDER] [--only NAME,...]."""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Sequence

from vtkmodules.vtkCommonCore import vtkLogger

from attentionatlas._internal.readers import Missing
from attentionatlas.findings import FINDINGS, render


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="attention-atlas findings",
        description="Tests findings of the literature on models that ship with the plugin: figures, numbers and a page.",
    )
    parser.add_argument("-o", "--output", default="findings", help="folder to write to (default: findings)")
    parser.add_argument("--models", metavar="FOLDER", help="has a folder per model (default: Data/models)")
    parser.add_argument("--recording", metavar="FILE", help="of GPT-2 (default: that of Data)")
    parser.add_argument("--only", metavar="NAME,...", help=f"of {', '.join(f.name for f in FINDINGS)} (default: all)")
    found = parser.parse_args(arguments)
    # Recorders warn of texts that are cut to one length, and of the transparency of pictures.
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_ERROR)
    names = found.only.split(",") if found.only else None
    try:
        render(found.output, found.models, found.recording, names, lambda line: print(line, flush=True))
    except (OSError, ValueError, Missing) as error:
        raise SystemExit(str(error)) from error
    print(pathlib.Path(found.output, "index.html"))


if __name__ == "__main__":
    main()
