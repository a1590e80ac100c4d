"""Searches sources for names that they declare for themselves and do not use.

    python3 unused_names.py FOLDER...

These are using declarations, namespace aliases, type aliases and constants at file scope. Clang reports some of
them too, but only in the file that it is called with, which here includes the sources (tidy.py); GCC reports
none. A name is reported if it occurs once, in a source and its header together. What is needed for its
initialization alone is declared [[maybe_unused]].

Ends with 1 if there is such a name, or if there are no sources in a FOLDER.
"""

import argparse
import pathlib
import re
import sys

# What is not code: comments, the texts of strings, and includes.
NO_CODE = re.compile(r'#include[^\n]*|//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
DECLARATION = re.compile(
    r"""^(?: using\s+(?:\w+::)+(\w+)\s*;
           | namespace\s+(\w+)\s*=
           | using\s+(\w+)\s*=
           | (?:static\s+)?(?:const|constexpr)\b[^;={(]*?\b(\w+)(?:\[[^]]*\])*\s*[={])""",
    re.MULTILINE | re.VERBOSE,
)


def code_of(file):
    """A file's text with spaces for what is not code; empty if there is no such file."""
    text = file.read_text() if file.exists() else ""
    return NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def unused_names(source):
    """Messages about a source."""
    code = code_of(source)
    both = code + code_of(source.with_suffix(".h"))
    for match in DECLARATION.finditer(code):
        name = match[match.lastindex]
        if len(re.findall(rf"\b{name}\b", both)) == 1:
            line = code.count("\n", 0, match.start(match.lastindex)) + 1
            yield f"{source}:{line}: {name} is not used."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", metavar="FOLDER", nargs="+", type=pathlib.Path)
    folders = parser.parse_args().folders
    messages = []
    for folder in folders:
        sources = sorted(folder.rglob("*.cxx"))
        if not sources:
            sys.exit(f"{folder}: expected sources, found none.")
        # The faults of the tests of these tests are there to be found.
        own = [source for source in sources if "Faults" not in source.relative_to(folder).parts]
        messages += [message for source in own for message in unused_names(source)]
    print("\n".join(messages))
    sys.exit(bool(messages))


if __name__ == "__main__":
    main()
