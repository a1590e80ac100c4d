#!/usr/bin/env python3
"""Runs a program under valgrind's memcheck and prints what it finds in our libraries: reads of memory
that was not written or is not there, and what is lost at the end.

    memcheck.py REPORT.xml PROGRAM [ARGUMENT ...]

What Python, VTK and others do among themselves is left out of the print, not of the report. Ends with
the program's exit code, or with 1 if anything of ours was found.
"""

import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

#: Part of the names of our libraries.
OURS = "AttentionAtlas"

# Valgrind knows no AVX-512, and sees a block lost only where Python allocates each by itself.
ENVIRONMENT = {"ATLAS_TARGET": "AVX2", "PYTHONMALLOC": "malloc"}

# Libraries that are closed at the end keep their names; threads take turns, or one that waits for
# another takes all of them.
COMMAND = [
    "valgrind", "--tool=memcheck", "--leak-check=full", "--show-leak-kinds=definite", "--keep-debuginfo=yes",
    "--fair-sched=yes", "--num-callers=40", "--xml=yes",
]


def is_ours(error):
    """Whether a stack of an error goes through a library of ours."""
    return any(OURS in pathlib.Path(o.text).name for o in error.iter("obj"))


def describe(error):
    """What an error is and where, a line per frame."""
    yield error.findtext("what") or error.findtext("xwhat/text")
    for stack in error.iter("stack"):
        for frame in stack.iter("frame"):
            name = frame.findtext("fn", frame.findtext("ip"))
            file = frame.findtext("file", pathlib.Path(frame.findtext("obj", "?")).name)
            yield f"    {name} ({file}:{frame.findtext('line', '?')})"
        yield ""


def main(report, *program):
    result = subprocess.run([*COMMAND, f"--xml-file={report}", *program], env={**os.environ, **ENVIRONMENT}, check=False)
    errors = xml.etree.ElementTree.parse(report).getroot().findall("error")
    ours = [error for error in errors if is_ours(error)]
    for error in ours:
        print("\n".join(describe(error)))
    print(f"memcheck: {len(ours)} errors in our libraries, {len(errors) - len(ours)} in others")
    return result.returncode or int(bool(ours))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
