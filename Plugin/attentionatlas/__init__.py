"""Attention Atlas in Python: load the plugin, draw the figures, open a scene.

    from attentionatlas import load_plugin
    load_plugin()                       # the proxies are in paraview.simple now

    from attentionatlas import tour
    tour.render("model.safetensors", "out", ["class-map"])      # without names: every figure

    from attentionatlas import scene
    scene.save("model.safetensors", "scene.pvsm")               # linked views, for the ParaView GUI

or, from the command line,

    pvpython -m attentionatlas.tour model.safetensors -o out
    pvpython -m attentionatlas.scene model.safetensors -o scene.pvsm
"""

import os
import pathlib

__all__ = ["load_plugin", "plugin_path"]

_PLUGIN = pathlib.Path("plugins", "AttentionAtlas", "AttentionAtlas.so")


def plugin_path():
    """The plugin's file: what ATLAS_PLUGIN names, or the one installed or built beside this package.

    Raises FileNotFoundError if there is none.
    """
    if os.environ.get("ATLAS_PLUGIN"):
        return pathlib.Path(os.environ["ATLAS_PLUGIN"])
    for folder in pathlib.Path(__file__).resolve().parents:
        found = sorted(folder.glob(f"paraview-*/{_PLUGIN}"))
        if found:
            return found[-1]
    raise FileNotFoundError(
        "AttentionAtlas.so: not found near the Python package; name it in the environment variable "
        "ATLAS_PLUGIN, or load it with paraview.simple.LoadPlugin first."
    )


def load_plugin():
    """Loads the plugin into ParaView unless it is there already, on the server too.

    Also where paraview.simple.LoadPlugin(..., ns=globals()) loaded it, which gives the proxies to the
    script alone: afterwards they are in paraview.simple too.
    """
    from paraview import servermanager, simple

    simple.LoadPlugins()  # none: takes over the proxies of plugins that are there
    if hasattr(simple, "AttentionTorus"):
        return
    path = str(plugin_path())
    connection = servermanager.ActiveConnection
    if connection is not None and connection.IsRemote():
        simple.LoadPlugin(path, remote=True, ns=vars(simple))
    simple.LoadPlugin(path, remote=False, ns=vars(simple))
