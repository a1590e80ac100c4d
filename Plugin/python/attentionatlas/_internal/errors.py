"""What filters say when they fail, as exceptions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from attentionatlas._internal import host


class Error(ValueError):
    """A reader, filter or writer of the plugin failed; the message is its own."""


class Missing(Error):
    """Something that a figure or table needs is missing from the file or the plugin; the message says what."""


class WriteError(Error, OSError):
    """A file cannot be written; the message is the writer's own."""


def raised(source: Any, kind: type[Error] = Error) -> AbstractContextManager[None]:
    """Raises an exception of this kind at the end of `with` if a source or filter has failed, or one whose output it
    uses, with what that says of the last time that it ran. What they say meanwhile is not displayed."""
    return host.raised(source, kind)


def update(source: Any, time: float | None = None) -> None:
    """Brings a source or filter up to date, also at a time; raises Error with the message of what fails.

    As UpdatePipeline, after which a filter that has failed has an empty output. Nothing is displayed beside the exception.
    """
    with raised(source):
        host.update(source, time)
