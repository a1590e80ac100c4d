"""The session of a user stays as it is while a picture or a scene is made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from paraview import servermanager, simple

#: Groups of proxies that displays change or add: ParaView has one color map for all arrays of a name.
_GROUPS = ("lookup_tables", "piecewise_functions", "transfer_2d_functions")


def _registered() -> dict[tuple[str, ...], Any]:
    """The color maps and opacities of the session by group and name."""
    manager = servermanager.ProxyManager()
    return {(group, *key): proxy for group in _GROUPS for key, proxy in manager.GetProxiesInGroup(group).items()}


class _Values:
    """The values of all properties of a proxy."""

    def __init__(self, proxy: Any) -> None:
        self._proxy = proxy.SMProxy
        self._copy = servermanager.ProxyManager().NewProxy(proxy.GetXMLGroup(), proxy.GetXMLName())
        self._copy.Copy(self._proxy)
        properties = [proxy.GetProperty(name).SMProperty for name in proxy.ListProperties()]
        self._empty = [p for p in properties if p.IsA("vtkSMVectorProperty") and not p.GetNumberOfElements()]

    def restore(self) -> None:
        self._proxy.Copy(self._copy)
        for vector in self._empty:  # which Copy leaves as they are
            vector.SetNumberOfElements(0)
        self._proxy.UpdateVTKObjects()


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Restores at the end of `with`: the active view and source, the time, and all color maps and opacities.

    Color maps that are new by then are removed. Views and sources that use them have to be deleted before.
    """
    view, source = simple.GetActiveView(), simple.GetActiveSource()
    time = simple.GetAnimationScene().AnimationTime
    before = {key: _Values(proxy) for key, proxy in _registered().items()}
    try:
        yield
    finally:
        for values in before.values():
            values.restore()
        for key, proxy in _registered().items():
            if key not in before:
                servermanager.ProxyManager().UnRegisterProxy(key[0], key[1], proxy.SMProxy)
        animation = simple.GetAnimationScene()
        if animation.AnimationTime != time:
            animation.AnimationTime = time
        simple.SetActiveView(view)
        simple.SetActiveSource(source)
