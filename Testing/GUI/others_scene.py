"""A sphere of another user in one view, with a color bar, a background and a selection of its own, beside an empty view. After a
double click in its view the file OTHERS_LOG says what has changed: nothing."""

import os

from paraview import servermanager, simple


def text_of(value):
    if isinstance(value, (list, tuple)):
        return str([text_of(item) for item in value])
    return str(value.SMProxy.GetGlobalID()) if hasattr(value, "SMProxy") else repr(value)


def values(proxy):
    """The values of all properties of a proxy, other proxies by their numbers."""
    properties = {name: proxy.GetProperty(name) for name in proxy.ListProperties()}
    return {
        name: text_of(list(found) if hasattr(found, "__len__") else found.GetData())
        for name, found in properties.items() if hasattr(type(found), "GetData")
    }


def state():
    selection = sphere.SMProxy.GetSelectionInput(0)
    chosen = servermanager._getPyProxy(selection.GetProperty("Input").GetProxy(0)) if selection else None
    found = {"selection": {"proxy": str(selection and selection.GetGlobalID())}}
    for name, proxy in (("sphere", sphere), ("shown", shown), ("bar", bar), ("colors", colors), ("chosen", chosen)):
        found[name] = values(proxy) if proxy is not None else {}
    found["view"] = {
        name: value for name, value in values(view).items() if not name.startswith(("ViewSize", "ViewPosition", "ViewTime"))
    }
    return found


def compare(*_):
    after = state()
    changed = [
        f"{name}.{key}: {before[name].get(key)} -> {after[name].get(key)}"
        for name in before for key in sorted({*before[name], *after[name]})
        if before[name].get(key) != after[name].get(key)
    ]
    with open(os.environ["OTHERS_LOG"], "w", encoding="utf-8") as log:
        log.write("\n".join(changed) or "nothing")


view = simple.GetActiveViewOrCreate("RenderView")
view.UseColorPaletteForBackground = 0
view.Background = [1, 1, 1]
sphere = simple.Sphere(ThetaResolution=24, PhiResolution=24)
shown = simple.Show(sphere, view)
simple.ColorBy(shown, ("POINTS", "Normals", "X"))
shown.SetScalarBarVisibility(view, True)
colors = simple.GetColorTransferFunction("Normals")
bar = simple.GetScalarBar(colors, view)
simple.ResetCamera(view)
simple.Render(view)
simple.SelectSurfacePoints(Rectangle=[0, 0, 4000, 4000], View=view)
before = state()
# ParaView writes in white whatever the background is.
before["bar"]["TitleColor"] = before["bar"]["LabelColor"] = text_of([1.0, 1.0, 1.0])
view.GetInteractor().AddObserver("LeftButtonDoubleClickEvent", compare, -1.0)
layout = simple.GetLayout(view)
beside = simple.CreateView("RenderView")
simple.AssignViewToLayout(view=beside, layout=layout, hint=layout.SplitHorizontal(0, 0.5) + 1)
simple.SetActiveView(beside)
