"""Work that other processes do beside this one."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from typing import Any, Self

from attentionatlas._internal import host


def can_fork() -> bool:
    """Whether copies of this process can work beside it: on Linux, with several cores, and without ParaView's threads."""
    return sys.platform == "linux" and not host.is_paraview() and len(os.sched_getaffinity(0)) > 1


class Beside:
    """Copies of this process that do something, as many at a time as there are other cores; for `with`, whose end waits for
    them. Raises what one of them raised."""

    def __init__(self) -> None:
        self._most = max(1, min(4, len(os.sched_getaffinity(0)) - 1))
        self._running: list[tuple[int, int]] = []

    def begin(self, work: Callable[[], Any]) -> None:
        """Does something in a copy, which sees what there is now; waits until a core is free."""
        while len(self._running) >= self._most:
            self._wait()
        sys.stdout.flush()
        sys.stderr.flush()
        reading, writing = os.pipe()
        process = os.fork()
        if process > 0:
            os.close(writing)
            self._running.append((process, reading))
            return
        said, status = b"", 1
        try:
            work()
            status = 0
        except BaseException as error:
            said = pickle.dumps(error)
        finally:
            with open(writing, "wb") as file:
                file.write(said)
            os._exit(status)

    def _wait(self) -> None:
        """Waits for the copy that began first."""
        process, reading = self._running.pop(0)
        with open(reading, "rb") as file:
            said = file.read()
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if said:
            raise pickle.loads(said)
        if status:
            raise OSError(f"a process that wrote a figure ended with {status}.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        failed = None
        while self._running:
            try:
                self._wait()
            except Exception as other:
                failed = failed or other
        if failed is not None and kind is None:
            raise failed
