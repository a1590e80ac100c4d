"""terminal.py COMMAND...: runs ParaView and fails if its terminal shows a line that is not of the test itself.

A user's terminal shows nothing from the start to the end of a session. A message of Qt, of ParaView or of the plugin
is a fault, even if the session goes on.
"""

import re
import subprocess
import sys

#: What the playback of a test prints.
OF_TESTS = re.compile(
    r"Process started$|Playing: |debug: In .*pqTestUtility\.cxx, line \d+$|debug: Test  .* is finished\. Success =  true$"
    r"|<DartMeasurement|Using View API for capture$|$"
    # ParaView asks each display from :0 to :9 what it is; this is of one that is someone else's.
    r"|Authorization required, but no authorization protocol specified$"
    # Of ParaView 6.1 with Qt 6.10, in some sessions.
    r"|warning: (In unknown, line 0|QObject::disconnect: wildcard call disconnects from destroyed signal of pqTimer)"
    r"|.*vtkTesting\.cxx:\d+ +INFO\| .*(Using \w+ image comparison method|Comparing baselines using .*)\."
)


def main():
    program = subprocess.run(
        sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
    )
    print(program.stdout, end="", flush=True)
    others = [line for line in program.stdout.splitlines() if not OF_TESTS.match(line)]
    if others:
        print("terminal.py: expected only lines of the playback, found", *others, sep="\n  ")
    return program.returncode or bool(others)


if __name__ == "__main__":
    sys.exit(main())
