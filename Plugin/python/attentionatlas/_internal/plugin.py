"""Where the plugin is, and how it is loaded."""

from __future__ import annotations

import os
import pathlib
from typing import Any

from attentionatlas._internal.hosts import need_paraview

_PLUGIN = pathlib.Path("plugins", "AttentionAtlas", "AttentionAtlas.so")


def plugin_path() -> pathlib.Path:
    """The plugin's file: what ATLAS_PLUGIN names, or the one installed or built beside this package.

    Raises FileNotFoundError if there is none.
    """
    if os.environ.get("ATLAS_PLUGIN"):
        return pathlib.Path(os.environ["ATLAS_PLUGIN"])
    for folder in pathlib.Path(__file__).resolve().parents:
        # Debian's libraries have a folder of their own in lib, such as x86_64-linux-gnu.
        found = sorted([*folder.glob(f"paraview-*/{_PLUGIN}"), *folder.glob(f"*/paraview-*/{_PLUGIN}")])
        if found:
            return found[-1]
    raise FileNotFoundError(
        "AttentionAtlas.so: not found near the Python package; name it in the environment variable "
        "ATLAS_PLUGIN, or load it with paraview.simple.LoadPlugin first."
    )


def _has_plugin(information: Any) -> bool:
    """Whether a process has loaded the plugin, by what ParaView's plugin manager knows of it."""
    return any(
        information.GetPluginName(i) == "AttentionAtlas" and information.GetPluginLoaded(i)
        for i in range(information.GetNumberOfPlugins())
    )


def _renew_classes(namespace: Any) -> None:
    """Lets ParaView make its Python classes of representations again, once in a session: those of before the plugin do not
    have the properties that it adds."""
    mark = "attention_atlas"
    if mark not in vars(namespace):
        for name in [name for name, known in vars(namespace).items() if isinstance(known, type)]:
            delattr(namespace, name)
        setattr(namespace, mark, True)


def load_plugin() -> None:
    """Loads the plugin into ParaView unless it is there already, on the server too.

    Also where paraview.simple.LoadPlugin(..., ns=globals()) loaded it, which gives the proxies to the
    script alone: afterwards they are in paraview.simple too. Raises RuntimeError if a server cannot
    load it.
    """
    need_paraview("The plugin")
    from paraview import servermanager, simple

    connection = servermanager.ActiveConnection
    manager = servermanager.vtkSMProxyManager.GetProxyManager().GetPluginManager()
    # The client first: it reads the server's definitions of proxies with the plugin's classes.
    if not _has_plugin(manager.GetLocalInformation()):
        simple.LoadPlugin(str(plugin_path()), remote=False, ns=vars(simple))
    if connection is not None and connection.IsRemote():
        if not _has_plugin(manager.GetRemoteInformation(connection.Session)):
            path = str(plugin_path())
            try:
                simple.LoadPlugin(path, remote=True, ns=vars(simple))
            except RuntimeError as error:
                raise RuntimeError(
                    f"the server {connection.Session.GetURI()} cannot load {path}: start it with "
                    "pvserver --plugin-search-paths=FOLDER --plugins=AttentionAtlas, where FOLDER is "
                    "the plugin's on its machine."
                ) from error
    simple.LoadPlugins()  # none: takes over the proxies of plugins that are there
    if connection is not None:
        _renew_classes(connection.ProxiesNS.rendering)
