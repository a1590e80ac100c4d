"""Puts the licenses of what is in a wheel into it: ours, and those of the libraries that auditwheel added or that are headers.

    python3 wheel_licenses.py WHEEL

On Debian, where each file's package has its license: /usr/share/doc/PACKAGE/copyright, and the texts of
/usr/share/common-licenses that these refer to. They are written to the folder licenses of the wheel's .dist-info.
"""

import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import zipfile

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
#: Headers that are compiled into our libraries.
HEADERS = ("Eigen/Core", "cxxopts.hpp", "gemmi/align.hpp", "hwy/highway.h", "nanoflann.hpp", "nlohmann/json.hpp", "include/utf8.h")
COMMON = pathlib.Path("/usr/share/common-licenses")


def package_of(file):
    """The Debian package of a file whose path ends so."""
    found = subprocess.run(["dpkg-query", "-S", f"*/{file}"], capture_output=True, text=True, check=False)
    names = sorted({line.split(": ")[0].split(":")[0] for line in found.stdout.splitlines()})
    if not names:
        raise SystemExit(f"wheel_licenses.py: {file}: expected a file of a Debian package, whose license is known; found none.")
    return names[0]


def original(name):
    """The name of a library before auditwheel added the hash of its content: libpng16-1a2b3c4d.so.16.39.0."""
    return re.sub(r"-[0-9a-f]{8}(?=\.)", "", name)


def licenses(libraries):
    """The texts of the licenses by their names in the wheel."""
    found = {"LICENSE": (CHECKOUT / "LICENSE").read_text(encoding="utf-8")}
    for package in sorted({package_of(file) for file in (*map(original, libraries), *HEADERS)}):
        text = pathlib.Path("/usr/share/doc", package, "copyright").read_text(encoding="utf-8", errors="replace")
        found[f"{package}.txt"] = text
        for name in re.findall(rf"{COMMON}/([\w.+-]*\w)", text):
            if (COMMON / name).is_file():
                found[f"{name}.txt"] = (COMMON / name).read_text(encoding="utf-8")
    return found


def record(name, data):
    """The line of a file in RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def main():
    wheel = pathlib.Path(sys.argv[1])
    with zipfile.ZipFile(wheel) as read:
        files = {info: read.read(info) for info in read.infolist()}
    metadata = next(info for info in files if info.filename.endswith(".dist-info/METADATA"))
    folder = metadata.filename.rpartition("/")[0]
    libraries = [info.filename.rpartition("/")[2] for info in files if re.search(r"\.libs/[^/]+\.so", info.filename)]
    added = {f"{folder}/licenses/{name}": text.encode() for name, text in licenses(libraries).items()}
    kept = {info: data for info, data in files.items() if not info.filename.startswith(f"{folder}/licenses/")}
    head, _, body = files[metadata].decode().partition("\n\n")
    lines = [line for line in head.splitlines() if not line.startswith("License-File:")]
    lines += [f"License-File: {name.rpartition('/')[2]}" for name in added]
    head = re.sub(r"^Metadata-Version: .*", "Metadata-Version: 2.4", "\n".join(lines))
    kept[metadata] = f"{head}\n\n{body}".encode()
    made = wheel.with_suffix(".part")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as written:
        rows = []
        listed = next(info for info in kept if info.filename == f"{folder}/RECORD")
        for info, data in kept.items():
            if info is not listed:
                written.writestr(info, data, zipfile.ZIP_DEFLATED)
                rows.append("" if info.is_dir() else record(info.filename, data))
        for name, data in added.items():
            written.writestr(name, data)
            rows.append(record(name, data))
        written.writestr(listed, "".join(rows) + f"{listed.filename},,\n", zipfile.ZIP_DEFLATED)
    made.replace(wheel)
    print(f"{wheel.name}: {len(added)} licenses")


if __name__ == "__main__":
    main()
