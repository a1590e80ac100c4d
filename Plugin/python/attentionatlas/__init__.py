"""Attention Atlas in Python: load the plugin, draw figures, open a scene.

    from attentionatlas import load_plugin
    load_plugin()                       # the proxies are in paraview.simple now

    from attentionatlas import figures
    figure = figures.class_map("model.safetensors", width_mm=89)   # a matplotlib Figure
    figures.save(figure, "class-map.pdf")

    from attentionatlas import tour
    tour.render("model.safetensors", "out", ["class-map"])      # without names: every figure, as files

    from attentionatlas import scene
    scene.save("model.safetensors", "scene.pvsm")               # linked views, for the ParaView GUI

    from attentionatlas import display, web
    web.page([web.torus("model.safetensors")], "page.html")     # for a browser; in a notebook it shows itself
    display(GetActiveView())                                    # a picture of a view, in a notebook

or, from the command line,

    pvpython -m attentionatlas.tour model.safetensors -o out
    pvpython -m attentionatlas.scene model.safetensors -o scene.pvsm
"""

from attentionatlas._internal.plugin import load_plugin, plugin_path

__all__ = ["display", "load_plugin", "plugin_path"]


def display(shown, width=900, height=600):
    """A picture of a view as it is, or of a source or output port in a view of its own, which Jupyter shows.

    width, height: in pixels. Raises ValueError for anything else, and for a source without points or cells; OSError
    where ParaView cannot render.
    """
    from attentionatlas._internal import pictures  # with matplotlib, which loading the plugin does without

    return pictures.display(shown, width, height)
