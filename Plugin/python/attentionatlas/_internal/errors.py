"""What filters say when they fail, as exceptions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from attentionatlas._internal import host, progress
from attentionatlas._internal.problems import Error, Missing, WriteError

__all__ = ["Error", "Missing", "WriteError", "raised", "update"]


def raised(source: Any, kind: type[Error] = Error) -> AbstractContextManager[None]:
    """Raises an exception of this kind at the end of `with` if a source or filter has failed, or one whose output it
    uses, with what that says of the last time that it ran. What they say meanwhile is not displayed."""
    return host.raised(source, kind)


def update(source: Any, time: float | None = None, what: str = "") -> None:
    """Brings a source or filter up to date, also at a time; raises Error with the message of what fails.

    As UpdatePipeline, after which a filter that has failed has an empty output. Nothing is displayed beside the exception.
    what: the name of a bar that shows the progress, where there is tqdm. Ctrl-C cancels it: KeyboardInterrupt.
    """
    with raised(source), progress.watched(source, what):
        host.update(source, time)
