"""terminal.py [--home FOLDER] [--warning TEXT] -- COMMAND...: runs ParaView and fails if its terminal shows a line that
is not of the test itself.

A user's terminal shows nothing from the start to the end of a session. A message of Qt, of ParaView or of the plugin
is a fault, even if the session goes on.

--home: a folder that is emptied and stands for the user's, so that neither settings of users nor those of earlier
sessions matter, and none is changed. --warning: the one warning that the session leads to, exactly this text, in which #
is a number; it has to appear once.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

#: What the playback of a test prints, and Cancel.py of what it has canceled.
OF_TESTS = re.compile(
    r"Process started$|Playing: |debug: In .*pqTestUtility\.cxx, line \d+$|debug: Test  .* is finished\. Success =  true$"
    r"|Opening .* in ParaView \.\.\.$"  # of attention-atlas view
    r"|Cancel\.py: \w+: clicked at .* s later$"
    r"|<DartMeasurement|Using View API for capture$|$"
    # ParaView asks each display from :0 to :9 what it is; this is of one that is someone else's.
    r"|Authorization required, but no authorization protocol specified$"
    # Of ParaView 6.1 with Qt 6.10, in some sessions.
    r"|warning: (In unknown, line 0|QObject::disconnect: wildcard call disconnects from destroyed signal of pqTimer)"
    r"|.*vtkTesting\.cxx:\d+ +INFO\| .*(Using \w+ image comparison method|Comparing baselines using .*)\."
)
#: Colors of letters on a terminal.
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def expected_line(warning):
    """A pattern of the line that has a warning of a class of VTK."""
    text = re.escape(warning).replace(re.escape("#"), r"\d+")
    return re.compile(rf".*\bWARN\| vtk\w+ \(0x[0-9a-f]+\): {text}")


def own_home(folder):
    """The environment with a new, empty folder for a user."""
    shutil.rmtree(folder, ignore_errors=True)
    pathlib.Path(folder).mkdir(parents=True)
    return {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--home")
    parser.add_argument("--warning")
    begin = sys.argv.index("--")
    found, command = parser.parse_args(sys.argv[1:begin]), sys.argv[begin + 1 :]
    environment = own_home(found.home) if found.home else None
    program = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
        env=environment,
    )
    others, warnings = [], 0
    for line in program.stdout.splitlines():
        plain = _COLOR.sub("", line)
        if found.warning and expected_line(found.warning).fullmatch(plain):
            warnings += 1
            # CTest looks for the mark of a warning.
            print("terminal.py: as expected,", plain.partition("WARN| ")[2], flush=True)
            continue
        print(line, flush=True)
        if not OF_TESTS.match(line):
            others.append(line)
    if others:
        print("terminal.py: expected only lines of the playback, found", *others, sep="\n  ")
    if found.warning and warnings != 1:
        print(f"terminal.py: expected the warning '{found.warning}' once, found it {warnings} times.")
    return program.returncode or bool(others) or (found.warning is not None and warnings != 1)


if __name__ == "__main__":
    sys.exit(main())
