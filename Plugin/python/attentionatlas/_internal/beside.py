"""Work that other processes do beside this one."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any, Self

from attentionatlas._internal import host

#: Does something, or begins to.
Begin = Callable[[Callable[[], Any]], Any]


def at_once(work: Callable[[], Any]) -> None:
    """Does something in this process."""
    work()


@contextlib.contextmanager
def beside() -> Iterator[Begin]:
    """What does something beside this process, until the end of `with`, where copies of it can: on Linux, with several cores,
    and without ParaView's threads. Raises what one of them raised."""
    if sys.platform != "linux" or host.is_paraview() or len(os.sched_getaffinity(0)) == 1:
        yield at_once
        return
    with _Beside() as others:
        yield others.begin


class _Beside:
    """Copies of this process that do something, as many at a time as there are cores, which this process often leaves to
    them; for `with`, whose end waits for them. Raises what one of them raised."""

    def __init__(self) -> None:
        self._most = min(4, len(os.sched_getaffinity(0)))
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
