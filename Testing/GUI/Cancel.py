"""Cancel.py COMMAND...: runs a command under the window manager openbox, if it is there, and clicks at the button
Cancel of ParaView's status bar once, when its cross is red.

Cancel.py --log FILE COMMAND...: once for each work that the command reports in the file, as cancel_each.py does. Fails
unless each of these stops soon after its click.

ParaView plays no events of a test while a filter works. So the clicks come from the X server, as those of a user do, by
its extension XTEST.
"""

import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import time

BUTTON_PRESS, BUTTON_RELEASE, MOTION_NOTIFY = 4, 5, 6
LEFT = 1
#: Rows of the status bar, from the lower end of the window and its frame.
STATUS_BAR = range(4, 44)
PAUSE = 0.1
#: How long a user holds a button.
PRESS = 0.1
#: How much of a work may be done after the click, at most. On a fast machine it takes a minute.
REST = 0.2


class Display:
    """A connection to the X server DISPLAY, which asks for no authorization."""

    def __init__(self):
        number = os.environ["DISPLAY"].split(":")[1].split(".")[0]
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(f"/tmp/.X11-unix/X{number}")
        self._socket.sendall(struct.pack("<BxHHHHxx", ord("l"), 11, 0, 0, 0))
        accepted, length = struct.unpack("<B5xH", self._read(8))
        setup = self._read(4 * length)
        assert accepted == 1, setup
        vendor, formats = struct.unpack_from("<H", setup, 16)[0], setup[21]
        (self._root,) = struct.unpack_from("<I", setup, 32 + (vendor + 3) // 4 * 4 + 8 * formats)
        present, opcode = struct.unpack_from("<BB", self._ask_name(98, 0, b"XTEST"), 8)
        assert present, "the X server has no XTEST"
        self._xtest = opcode

    def _read(self, size):
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the X server has gone")
            data += part
        return data

    def _send(self, opcode, detail, body):
        self._socket.sendall(struct.pack("<BBH", opcode, detail, 1 + len(body) // 4) + body)

    def _ask(self, opcode, detail, body):
        """The reply to a request; None if it is an error."""
        self._send(opcode, detail, body)
        while True:
            reply = self._read(32)
            if reply[0] == 0:
                return None
            if reply[0] == 1:
                return reply + self._read(4 * struct.unpack_from("<I", reply, 4)[0])

    def _ask_name(self, opcode, detail, name):
        return self._ask(opcode, detail, struct.pack("<Hxx", len(name)) + name + bytes(-len(name) % 4))

    def is_managed(self):
        """Whether a window manager has begun its work."""
        (atom,) = struct.unpack_from("<I", self._ask_name(16, 0, b"_NET_SUPPORTING_WM_CHECK"), 8)
        value = self._ask(20, 0, struct.pack("<IIIII", self._root, atom, 0, 0, 1))
        return value is not None and struct.unpack_from("<I", value, 8)[0] != 0

    def windows(self):
        """x, y, width and height of all windows that are shown."""
        tree = self._ask(15, 0, struct.pack("<I", self._root))
        (count,) = struct.unpack_from("<H", tree, 16)
        places = []
        for window in struct.unpack_from(f"<{count}I", tree, 32):
            geometry = self._ask(14, 0, struct.pack("<I", window))
            attributes = self._ask(3, 0, struct.pack("<I", window))
            if geometry and attributes and attributes[26] == 2:  # it can be seen
                places.append(struct.unpack_from("<hhHH", geometry, 12))
        return places

    def largest_window(self):
        return max([(0, 0, 0, 0), *self.windows()], key=lambda place: place[2] * place[3])

    def point(self, x, y):
        self._fake(MOTION_NOTIFY, 0, x, y)

    def _fake(self, kind, detail, x=0, y=0):
        event = struct.pack("<BBxxII8xhh8x", kind, detail, 0, self._root, x, y)
        self._send(self._xtest, 2, event)

    def red_cross(self):
        """x and y of the middle of what is red in the status bar, or None."""
        x, y, width, height = self.largest_window()
        top, rows = y + height - STATUS_BAR[-1], len(STATUS_BAR)
        if height < 100:
            return None
        image = self._ask(73, 2, struct.pack("<IhhHHI", self._root, x, top, width, rows, 0xFFFFFFFF))
        if image is None:  # the window has gone, or is partly outside of the screen
            return None
        red = []
        for i in range(width * rows):
            blue, green, red_level = image[32 + 4 * i : 35 + 4 * i]
            if red_level > 180 and blue < 90 and green < 90:
                red.append((i % width, i // width))
        if not red:
            return None
        return x + sum(r[0] for r in red) // len(red), top + sum(r[1] for r in red) // len(red)

    def click(self, x, y):
        self.point(x, y)
        self._fake(BUTTON_PRESS, LEFT)
        time.sleep(PRESS)
        self._fake(BUTTON_RELEASE, LEFT)


class Works:
    """The works of a log, whose lines are `begin NAME TIME`, `progress FRACTION TIME`, `end NAME TIME` and, for one that
    is not reported further, `apply NAME TIME`."""

    def __init__(self, path):
        self._path = pathlib.Path(path)
        self.clicks = {}

    def _lines(self):
        return [line.split() for line in self._path.read_text(encoding="utf-8").splitlines() if line.count(" ") == 2]

    def names(self):
        """The names of the works that are reported."""
        return [name for kind, name, _ in self._lines() if kind == "begin"]

    def last(self):
        """The last work that the log speaks of: begin, apply or end, and its name."""
        marks = [(kind, name) for kind, name, _ in self._lines() if kind != "progress"]
        return marks[-1] if marks else ("end", "")

    def report(self, name):
        """Prints how a work ended. Returns whether it was canceled in time."""
        clicked, at, last, end = self.clicks.get(name), 0.0, 0.0, None
        lines = self._lines()
        begin = [line[:2] for line in lines].index(["begin", name])
        for kind, value, moment in lines[begin + 1 :]:
            if kind == "end":
                end = float(moment)
                break
            if float(value) < 1:  # with which VTK ends every update
                last = float(value)
                at = last if clicked is not None and float(moment) <= clicked else at
        if clicked is None or end is None:
            print(f"Cancel.py: {name}: expected that it is canceled, found {'no click' if end else 'no end'}.")
            return False
        print(f"Cancel.py: {name}: clicked at {at:.1%}, ended at {last:.1%}, {end - clicked:.2f} s later", flush=True)
        return last - at < REST


def manage(display):
    """Starts the window manager, if it is there, and returns it."""
    if shutil.which("openbox") is None:
        return None
    manager = subprocess.Popen(["openbox", "--sm-disable"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not display.is_managed() and manager.poll() is None:
        time.sleep(PAUSE)
    return manager


def run(command, works=None):
    """The exit code of a command, whose work is canceled by one click, or each of its works.

    A work that the command reports itself is clicked at when the cross is red, and one of an Apply when the cross has become
    red since: it can still be so from the work before.
    """
    display = Display()
    manager = manage(display)
    program = subprocess.Popen(command)
    clicked, last, is_new = set(), None, False
    while program.poll() is None:
        cross = display.red_cross()
        work = works.last() if works is not None else ("begin", "")
        is_new = (is_new and work == last) or cross is None
        kind, name = last = work
        if cross is not None and name not in clicked and (kind == "begin" or (kind == "apply" and is_new)):
            clicked.add(name)
            if works is not None:
                works.clicks[name] = time.time()
            display.click(*cross)
        time.sleep(PAUSE)
    if manager is not None:
        manager.terminate()
    return program.returncode


def main():
    if sys.argv[1] != "--log":
        return run(sys.argv[1:])
    log, command = sys.argv[2], sys.argv[3:]
    pathlib.Path(log).write_text("", encoding="utf-8")
    works = Works(log)
    failed = run(command, works)
    canceled = [works.report(name) for name in works.names()]
    return failed or not canceled or not all(canceled)


if __name__ == "__main__":
    sys.exit(main())
