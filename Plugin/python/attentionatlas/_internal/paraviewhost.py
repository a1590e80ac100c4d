"""What ParaView's proxies say when they fail."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from paraview import servermanager

from attentionatlas._internal.problems import Error


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


def algorithms(source: Any) -> list[Any]:
    """The algorithms of VTK in this process, none of a server, of a source and of those whose output it uses."""
    proxies: list[Any] = []
    _with_producers(source.SMProxy, proxies)
    found = [proxy.GetClientSideObject() for proxy in proxies]
    return [one for one in found if one is not None and one.IsA("vtkAlgorithm")]


@contextlib.contextmanager
def raised(source: Any, kind: type[Error] = Error) -> Iterator[None]:
    """Raises an exception of this kind at the end of `with` if a source or filter has failed, or one whose output it
    uses, with what that says of the last time that it ran. What they say meanwhile is not displayed."""
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
