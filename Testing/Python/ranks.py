"""Runs the tests of several scripts in one session of pvbatch, which starts sooner than one for each.

    pvbatch ranks.py NAME...

Each script has a folder of its own in the output folder, and in that of the reference.
"""

import importlib
import sys
import unittest

import atlastest


def main():
    output, reference = atlastest.OUTPUT, atlastest.REFERENCE
    failed = []
    for name in sys.argv[1:]:
        atlastest.OUTPUT, atlastest.REFERENCE = output / name, reference / name
        print(f"{name}, {atlastest.RANKS} ranks", file=sys.stderr)
        tests = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name))
        result = unittest.TextTestRunner(verbosity=2).run(tests)
        if not result.wasSuccessful() or result.testsRun == 0:
            failed.append(name)
    if failed or len(sys.argv) == 1:
        sys.exit(f"Failed: {' '.join(failed) or 'no test was named'}")


if __name__ == "__main__":
    main()
