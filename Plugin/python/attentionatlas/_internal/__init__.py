"""What the modules of attentionatlas share. None of it imports a module of the package above."""

import importlib.util
import sys

if importlib.util.find_spec("vtkmodules") is None:
    raise ModuleNotFoundError(
        f"{sys.executable} has no module 'vtkmodules': expected the Python of VTK. The wheel of attention-atlas installs it; "
        "ParaView has it, too: pvpython or, with Debian's ParaView, /usr/bin/python3. See the page Scripting of the documentation.",
        name="vtkmodules",
    )
