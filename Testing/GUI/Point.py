"""Point.py COMMAND...: runs ParaView, under the window manager openbox if it is there, with a script that opens a diagram
in the whole window and then writes the file POINT_LOG. Fails unless a tooltip opens where the pointer rests on the diagram,
and none beside.
"""

import os
import pathlib
import subprocess
import sys
import time

import Cancel

#: Where the pointer rests, in the window: the middle of the map, and to its right, above the color bar.
MIDDLE, BESIDE = (0.65, 0.6), (0.9, 0.45)
#: Seconds until the window is there, and until a tooltip is.
START, TOOLTIP = 90, 10


def is_told(display, place):
    """Whether a small window opens at the lower right of the pointer, which moves to this place of the window and rests."""
    left, top, width, height = display.largest_window()
    x, y = left + int(place[0] * width), top + int(place[1] * height)
    for step in range(4):
        display.point(x + step, y)
        time.sleep(Cancel.PAUSE)
    end = time.time() + TOOLTIP
    while time.time() < end:
        for at, above, wide, high in display.windows():
            if abs(at - x) < 40 and abs(above - y) < 60 and 20 < wide < 400 and 10 < high < 200:
                return True
        time.sleep(Cancel.PAUSE)
    return False


def main():
    display, log = Cancel.Display(), pathlib.Path(os.environ["POINT_LOG"])
    log.unlink(missing_ok=True)
    manager = Cancel.manage(display)
    program = subprocess.Popen(sys.argv[1:])
    try:
        end = time.time() + START
        while not log.exists() and program.poll() is None and time.time() < end:
            time.sleep(Cancel.PAUSE)
        found = [is_told(display, place) for place in (BESIDE, MIDDLE)]
    finally:
        program.kill()
        if manager is not None:
            manager.terminate()
    if found != [False, True]:
        print(f"Point.py: expected a tooltip in the middle alone, found [beside, middle] {found}.")
    return found != [False, True]


if __name__ == "__main__":
    sys.exit(main())
