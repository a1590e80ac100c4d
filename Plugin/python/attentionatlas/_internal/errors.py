"""What filters say when they fail, as exceptions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


class Error(ValueError):
    """A reader, filter or writer of the plugin failed; the message is its own."""


class Missing(Error):
    """Something that a figure or table needs is missing from the file or the plugin; the message says what."""


class WriteError(Error, OSError):
    """A file cannot be written; the message is the writer's own."""


def _with_producers(proxy: Any, found: list[Any]) -> None:
    """Adds a proxy to a list, after the sources and filters whose output it uses."""
    if proxy in found:
        return
    others = [proxy.GetProducerProxy(i) for i in range(proxy.GetNumberOfProducers())]
    properties = proxy.NewPropertyIterator()
    properties.Begin()
    while not properties.IsAtEnd():
        others.append(properties.GetProperty().GetParent())  # a proxy within this one, or itself
        properties.Next()
    for other in dict.fromkeys(others):
        if other is not proxy and other.IsA("vtkSMSourceProxy"):
            _with_producers(other, found)
    found.append(proxy)


@contextlib.contextmanager
def raised(source: Any, kind: type[Error] = Error) -> Iterator[None]:
    """Raises an exception of this kind at the end of `with` if a source or filter has failed, or one whose output it
    uses, with what that says of the last time that it ran. What they say meanwhile is not displayed."""
    from paraview import servermanager  # which a missing file is found without

    filters: list[Any] = []
    _with_producers(source.SMProxy, filters)
    errors = servermanager.ProxyManager().NewProxy("misc", "FilterErrors")
    watched = errors.GetProperty("Filters")
    for proxy in filters:
        watched.AddProxy(proxy)
    errors.UpdateVTKObjects()
    try:
        yield
        errors.InvokeCommand("Gather")
        errors.UpdatePropertyInformation()
        text = errors.GetProperty("Text").GetElement(0)
    finally:
        watched.RemoveAllProxies()
        errors.UpdateVTKObjects()
    if text:
        raise kind(text)


def update(source: Any, time: float | None = None) -> None:
    """Brings a source or filter up to date, also at a time; raises Error with the message of what fails.

    As UpdatePipeline, after which a filter that has failed has an empty output. Nothing is displayed beside the exception.
    """
    with raised(source):
        source.UpdatePipeline(*([] if time is None else [time]))
