"""Runs clang-tidy on the sources of a folder, reading those with the same options as one.

    python3 tidy.py [--tidy PROGRAM] --build BUILD FOLDER

BUILD holds compile_commands.json. Most of the time goes into the headers of VTK, Eigen and the standard library,
which are read and searched once this way. The static analyzer takes an included file for a header unless the
name of the file that includes it contains UnifiedSource, as in WebKit. It begins at the functions of all sources,
except those that it has followed from another function. It gives a function up after 40,000 states instead of
225,000, which halves its time.

With ATLAS_TIDY_END, in seconds since 1970, a folder is skipped after that time.

Ends with 1 if there is a warning, or a source in FOLDER that is not compiled.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time


def compiled_sources(entry):
    """The sources that a command compiles: those that a file of CMake's unity builds includes, or the file itself."""
    file = pathlib.Path(entry["directory"], entry["file"])
    if re.fullmatch(r"unity_\d+_cxx\.cxx", file.name):
        included = re.findall(r'^#include "(.+)"$', file.read_text(), re.MULTILINE)
        return [pathlib.Path(name).resolve() for name in included]
    return [file.resolve()]


def options_of(entry):
    """The command without the names of the source and the object, and the folder of the object's target.

    Clang warns of GCC's parameters, which it does not have.
    """
    words = [word for word in shlex.split(entry["command"]) if not word.startswith("--param=")]
    at = words.index("-o")
    target = re.match(r".*?\.dir/", words[at + 1])
    return tuple(words[:at]), target[0] if target else words[at + 1]


def grouped(entries, folder):
    """The sources of a folder in groups with the same options; each with one of the commands."""
    groups = {}
    for entry in entries:
        for source in compiled_sources(entry):
            if source.parent not in (folder, folder / "Internal"):
                continue
            options, target = options_of(entry)
            alone = None
            if "foreach_target.h" in source.read_text():
                # Highway reads such a source by its name again for each instruction set. One is enough here.
                options, alone = (*options, "-DHWY_COMPILE_ONLY_STATIC"), source
            key = (entry["directory"], options, target, alone)
            groups.setdefault(key, set()).add(source)
    return groups


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidy", default="clang-tidy", help="the program (default: clang-tidy)")
    parser.add_argument("--build", required=True, type=pathlib.Path, help="the build folder")
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    if time.time() > float(os.environ.get("ATLAS_TIDY_END", "inf")):
        print("Skipped: the time of ATLAS_TIDY_END is over.")
        return
    folder = options.folder.resolve()
    groups = grouped(json.loads((options.build / "compile_commands.json").read_text()), folder)
    expected = {*folder.glob("*.cxx"), *folder.glob("Internal/*.cxx")}
    missing = sorted(expected - set().union(*groups.values()))
    if not expected or missing:
        sys.exit(f"{folder}: expected sources that are compiled, found {missing or 'none'}.")

    source_tree = pathlib.Path(__file__).resolve().parents[2]
    place = options.build.resolve() / "Testing" / "Lint" / "-".join(folder.relative_to(source_tree).parts)
    place.mkdir(parents=True, exist_ok=True)
    commands = []
    for number, ((directory, words, _, alone), sources) in enumerate(groups.items()):
        file = alone or place / f"UnifiedSource{number}.cxx"
        if not alone:
            mark = "// NOLINTNEXTLINE(bugprone-suspicious-include)"
            file.write_text("".join(f'{mark}\n#include "{source}"\n' for source in sorted(sources)))
        commands.append({"directory": directory, "file": str(file), "arguments": [*words, "-c", str(file)]})
    (place / "compile_commands.json").write_text(json.dumps(commands, indent=1))
    # These search the file that clang-tidy is called with alone, which includes the sources.
    checks = "--checks=-misc-unused-using-decls,-misc-unused-alias-decls"
    limit = [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=40000")]
    command = [options.tidy, "-p", place, f"--config-file={source_tree / '.clang-tidy'}", checks, "--quiet", *limit]
    files = [entry["file"] for entry in commands]
    sys.exit(subprocess.run([*command, "--warnings-as-errors=*", *files], check=False).returncode != 0)


if __name__ == "__main__":
    main()
