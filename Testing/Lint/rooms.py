"""Checks what the rooms of Core include: headers of other rooms by their folder, only of the rooms that their
CMakeLists.txt lists, and nothing of another room's folder Internal. VTK modules include no JSON through them: VTK's headers
have a JSON of their own, which is another version."""

import functools
import pathlib
import re
import sys

FILTERS = pathlib.Path(__file__).resolve().parents[2] / "Filters"
CORE = FILTERS / "Core"
JSON = "nlohmann/json.hpp"


def allowed_rooms():
    """What each room may include: the rooms that it depends on, and theirs in turn."""
    rooms = {}
    calls = re.findall(r"atlas_add_room\((\w+)([^)]*)\)", (CORE / "CMakeLists.txt").read_text(encoding="utf-8"))
    for name, arguments in calls:
        listed = re.search(r"DEPENDS((?: \w+)+)", arguments)
        rooms[name] = {name}.union(*(rooms[above] for above in (listed[1].split() if listed else [])))
    return rooms


def faults(path, rooms):
    own = path.relative_to(CORE).parts[0]
    for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        included = re.match(r'#include "(?:(\w+)/)?(Internal/)?(.+)"', text)
        if included:
            room, internal, _ = included.groups()
            if room in rooms and (room not in rooms[own] or (internal and room != own)):
                kind = "internal header" if room in rooms[own] else "room it does not depend on"
                yield f"{path}:{line}: {own} includes a {kind}: {text}"
            elif not room and not internal and not (path.parent / included[3]).exists():
                yield f"{path}:{line}: expected a header with its room, found {text}"


@functools.cache
def way_to_json(path):
    """The headers through which a source includes JSON; none if it does not."""
    text = path.read_text(encoding="utf-8")
    if f"<{JSON}>" in text:
        return (path.name,)
    for name in re.findall(r'#include "(.+)"', text):
        for folder in (path.parent, CORE):
            if (folder / name).exists():
                way = way_to_json((folder / name).resolve())
                if way:
                    return (path.name, *way)
    return ()


def main():
    rooms = allowed_rooms()
    paths = [path for path in sorted(CORE.glob("*/**/*")) if path.suffix in (".h", ".cxx")]
    found = [fault for path in paths for fault in faults(path, rooms)]
    modules = [path.parent for path in FILTERS.glob("*/vtk.module")]
    for source in (source for module in sorted(modules) for source in sorted(module.glob("*.cxx"))):
        if way_to_json(source):
            found.append(f"{source}: includes {JSON}: {' > '.join(way_to_json(source))}")
    sys.exit("\n".join(found) if found else None)


if __name__ == "__main__":
    main()
