"""Files and folders that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import tempfile
from collections.abc import Iterator

#: Where the keeper of this process reads what is temporary; None without one.
_told: int | None = None


def _remove(path: str, only_empty: bool = False) -> None:
    """Removes a file or a folder, if it is there. only_empty: a folder, unless there is something in it."""
    if only_empty:
        with contextlib.suppress(OSError):
            os.rmdir(path)
    elif os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        pathlib.Path(path).unlink(missing_ok=True)


def keep_clean() -> None:
    """Starts a process that removes temporary files of this one when it is killed, as Ctrl+C does. To be called before
    there are threads."""
    global _told
    reading, _told = os.pipe()
    if os.fork() > 0:
        os.close(reading)
        return
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.close(_told)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # readers of the output do not wait for this process
        os.dup2(nowhere, stream)
    left: dict[bytes, bytes] = {}
    with os.fdopen(reading, "rb") as file:  # until the other process ends
        for entry in file.read().split(b"\0")[:-1]:
            left[entry[1:]] = entry[:1]
    for path, sign in reversed(left.items()):  # what is in a folder before it
        if sign != b"-":
            with contextlib.suppress(OSError):
                _remove(os.fsdecode(path), sign == b"?")
    os._exit(0)


@contextlib.contextmanager
def _temporary(path: pathlib.Path, only_empty: bool = False) -> Iterator[None]:
    """Removes a file or folder at the end of `with`, or of the process. only_empty: a folder that is empty then."""

    def tell(sign: str) -> None:
        if _told is not None:
            with contextlib.suppress(OSError):
                os.write(_told, os.fsencode(f"{sign}{path.absolute()}\0"))

    tell("?" if only_empty else "+")
    try:
        yield
    finally:
        _remove(str(path), only_empty)
        tell("-")


@contextlib.contextmanager
def complete(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A temporary name beside a path; the file that is written under it gets its name at the end of `with`."""
    temporary = path.with_name(f"{path.stem}.{os.getpid()}.part{path.suffix}")
    with _temporary(temporary):
        yield temporary
        temporary.replace(path)


@contextlib.contextmanager
def scratch() -> Iterator[pathlib.Path]:
    """A folder for what nobody keeps."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="attention-atlas-"))
    with _temporary(folder):
        yield folder


@contextlib.contextmanager
def gathered(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """A temporary folder; its files go to a folder at the end of `with`, and nowhere if it ends otherwise, so that two
    runs into one folder do not mix."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    temporary = pathlib.Path(tempfile.mkdtemp(prefix=".part-", dir=folder))
    with contextlib.ExitStack() as after:
        if is_new:
            after.enter_context(_temporary(folder, only_empty=True))
        after.enter_context(_temporary(temporary))
        yield temporary
        for file in sorted(path for path in temporary.rglob("*") if path.is_file()):
            target = folder / file.relative_to(temporary)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)
