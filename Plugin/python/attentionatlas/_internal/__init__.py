"""What the modules of attentionatlas share. None of it imports a module of the package above."""

import importlib.util
import sys

if importlib.util.find_spec("vtkmodules") is None:
    raise ModuleNotFoundError(
        f"{sys.executable} has no module 'vtkmodules': expected VTK, of which pip install vtk has the Python, as has "
        "ParaView: pvpython or, with Debian's ParaView, /usr/bin/python3. The page Scripting of the documentation tells more.",
        name="vtkmodules",
    )
