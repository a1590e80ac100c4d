"""Runs ParaView, which exports a diagram, and looks for its words in the file: Export.py FILE COMMAND..."""

import pathlib
import subprocess
import sys

file, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
file.unlink(missing_ok=True)
result = subprocess.run(command).returncode
if result:
    sys.exit(result)
text = subprocess.run(["pdftotext", file, "-"], check=True, capture_output=True, text=True).stdout
missing = [word for word in ("Query", "Key", "Data", "powers", "Attention weight", "Head 0") if word not in text]
if missing:
    sys.exit(f"{file}: expected {missing}, found {text!r}")
