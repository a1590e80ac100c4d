"""Others.py FILE COMMAND...: runs a command, and fails unless it writes to the file that nothing is at fault: "nothing"."""

import pathlib
import subprocess
import sys


def main():
    log, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    log.unlink(missing_ok=True)
    failed = subprocess.run(command, check=False).returncode
    found = log.read_text(encoding="utf-8") if log.exists() else "no file"
    if found != "nothing":
        print(f"Others.py: expected nothing at fault, found {found}")
    return failed or found != "nothing"


if __name__ == "__main__":
    sys.exit(main())
