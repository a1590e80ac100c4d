"""Runs the tests of a script, or of several in one session, which starts sooner than one for each.

    pvpython run.py NAME...

Of several, each script has a folder of its own in the output folder, and in that of the reference. Ends with code 77 if
all tests were skipped. Returns after success: pvbatch has to end by itself, or mpirun calls it a failure.
"""

import importlib
import sys
import unittest

import atlastest


def main(names):
    output, reference = atlastest.OUTPUT, atlastest.REFERENCE
    failed, run, skipped = [], 0, 0
    for name in names:
        if len(names) > 1:
            atlastest.OUTPUT, atlastest.REFERENCE = output / name, reference / name
            print(f"{name}, {atlastest.RANKS} ranks", file=sys.stderr)
        atlastest.OUTPUT.mkdir(parents=True, exist_ok=True)
        tests = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name))
        result = unittest.TextTestRunner(verbosity=2).run(tests)
        run, skipped = run + result.testsRun, skipped + len(result.skipped)
        if not result.wasSuccessful() or not (result.testsRun or result.skipped):
            failed.append(name)
    if failed or not names:
        sys.exit(f"Failed: {' '.join(failed) or 'no test was named'}")
    if skipped >= run:
        sys.exit(atlastest.SKIPPED)


if __name__ == "__main__":
    main(sys.argv[1:])
