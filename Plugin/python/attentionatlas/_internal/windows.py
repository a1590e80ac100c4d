"""Whether VTK can render here, and from where it looks."""

from __future__ import annotations

import ctypes
import importlib
import os

from attentionatlas._internal import host
from attentionatlas._internal.problems import NoDisplay

#: From the middle to the eye.
VIEWPOINT = (1.0, 0.75, 0.55)
#: The libraries with one of which VTK renders without a display, since 9.4.
_WITHOUT_DISPLAY = ("libEGL.so.1", "libEGL.so", "libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so")


def _load(name: str) -> ctypes.CDLL | None:
    """A shared library of the system, or None where it is missing."""
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def has_display() -> bool:
    """Whether there is an X server, and it answers."""
    x11 = _load("libX11.so.6")
    if x11 is None:
        return False
    x11.XOpenDisplay.restype = ctypes.c_void_p
    display = x11.XOpenDisplay(None)
    if display:
        x11.XCloseDisplay(ctypes.c_void_p(display))
    return bool(display)


def _finds_libraries() -> bool:
    """Whether this VTK would have the libraries with which it renders without a display: others do not load them."""
    from vtkmodules.vtkCommonCore import vtkVersion

    loads_them = (vtkVersion.GetVTKMajorVersion(), vtkVersion.GetVTKMinorVersion()) >= (9, 4)
    return not loads_them or any(_load(name) is not None for name in _WITHOUT_DISPLAY)


def need_rendering() -> None:
    """Makes VTK render without a display where there is none. Raises OSError for VTK before 9.4, and where a later one has
    no library for that: both would crash."""
    importlib.import_module("vtkmodules.vtkRenderingOpenGL2")  # what vtkRenderWindow makes
    if has_display():
        return
    if not _finds_libraries():
        raise NoDisplay(
            f"DISPLAY: {host.version()} draws surfaces on an X display, or with libEGL or libOSMesa, and found none. Install "
            "Debian's packages libegl1 and libgl1-mesa-dri, or what your system calls them."
        )
    from vtkmodules.vtkRenderingCore import vtkRenderWindow

    # Otherwise VTK tries X first, with a warning.
    os.environ.setdefault("VTK_DEFAULT_OPENGL_WINDOW", "vtkEGLRenderWindow")
    if vtkRenderWindow().GetClassName() == "vtkXOpenGLRenderWindow":
        raise NoDisplay(
            f"DISPLAY: {host.version()} draws surfaces on an X display only, and found none. Run the command with a "
            f"virtual one: xvfb-run -a {'pvpython' if host.is_paraview() else 'python3'} ..."
        )
