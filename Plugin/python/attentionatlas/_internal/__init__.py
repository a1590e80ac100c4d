"""What the modules of attentionatlas share. None of it imports a module of the package above."""

import importlib.util
import sys

if importlib.util.find_spec("paraview") is None:
    raise ModuleNotFoundError(
        f"{sys.executable} has no module 'paraview': expected the Python of ParaView, which is pvpython or, with Debian's "
        "ParaView, /usr/bin/python3. The page Scripting of the documentation tells more.",
        name="paraview",
    )
