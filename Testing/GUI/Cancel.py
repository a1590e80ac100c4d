"""Cancel.py [--once] COMMAND...: runs a command, and clicks at the button Cancel of ParaView's status bar whenever its
cross is red, until the command ends; once: until the cross is no longer red.

ParaView plays no events of a test while a filter works. So the clicks come from the X server, as those of a user do, by
its extension XTEST.
"""

import os
import socket
import struct
import subprocess
import sys
import time

BUTTON_PRESS, BUTTON_RELEASE, MOTION_NOTIFY = 4, 5, 6
LEFT = 1
#: Rows of the status bar, from the lower end of the window.
STATUS_BAR = range(6, 26)
PAUSE = 0.3


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
        name = b"XTEST"
        present, opcode = struct.unpack_from("<BB", self._ask(98, 0, struct.pack("<Hxx", len(name)) + name + bytes(3)), 8)
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

    def largest_window(self):
        """x, y, width and height of the largest window."""
        tree = self._ask(15, 0, struct.pack("<I", self._root))
        (count,) = struct.unpack_from("<H", tree, 16)
        places = [(0, 0, 0, 0)]
        for window in struct.unpack_from(f"<{count}I", tree, 32):
            geometry = self._ask(14, 0, struct.pack("<I", window))
            attributes = self._ask(3, 0, struct.pack("<I", window))
            if geometry and attributes and attributes[26] == 2:  # it can be seen
                places.append(struct.unpack_from("<hhHH", geometry, 12))
        return max(places, key=lambda place: place[2] * place[3])

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
        if image is None:  # the window has gone
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
        self._fake(MOTION_NOTIFY, 0, x, y)
        self._fake(BUTTON_PRESS, LEFT)
        self._fake(BUTTON_RELEASE, LEFT)


def run(command, once=False):
    """The exit code of a command, whose work is canceled."""
    display = Display()
    program = subprocess.Popen(command)
    clicked = False
    while program.poll() is None:
        cross = display.red_cross()
        if cross is not None:
            display.click(*cross)
            clicked = True
        elif once and clicked:
            return program.wait()
        time.sleep(PAUSE)
    return program.returncode


def main():
    once = sys.argv[1] == "--once"
    return run(sys.argv[1 + once :], once)


if __name__ == "__main__":
    sys.exit(main())
