"""Continue.py PROGRAM MODEL FOLDER COMMAND...: runs a session of ParaView that measures FOLDER/continue.txt, is canceled
once, goes on, and saves FOLDER/continued.safetensors. Fails unless these are, to the byte, the statistics that PROGRAM,
attention-atlas, measures of the same text without a break.
"""

import os
import pathlib
import random
import subprocess
import sys

import Cancel

WORDS = "the LORD said unto Moses and Aaron king of Egypt light darkness earth heaven waters people went down upon".split()
#: As the session sets it.
TOKENS = 200_000


def write_text(path):
    """Writes a text that has more tokens."""
    chance = random.Random(1)
    lines = [" ".join(chance.choice(WORDS) for _ in range(200)) for _ in range(2000)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    program, model, folder, *command = sys.argv[1:]
    text, continued, whole = (pathlib.Path(folder, name) for name in (
        "continue.txt", "continued.safetensors", "whole.safetensors"
    ))
    write_text(text)
    continued.unlink(missing_ok=True)
    log = pathlib.Path(os.environ["CANCEL_LOG"])
    log.write_text("", encoding="utf-8")
    failed = Cancel.run(command, Cancel.Works(log))
    if failed:
        return failed
    measure = [program, "corpus", model, text, "--tokens", str(TOKENS), "-o", whole]
    subprocess.run(measure, check=True, capture_output=True)
    if continued.read_bytes() != whole.read_bytes():
        print(f"Continue.py: expected {continued} to be as {whole}, found other bytes.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
