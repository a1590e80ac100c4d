"""Whether VTK can render here, and from where it looks."""

from __future__ import annotations

import ctypes
import importlib
import os

from attentionatlas._internal import host

#: From the middle to the eye.
VIEWPOINT = (1.0, 0.75, 0.55)


def has_display() -> bool:
    """Whether there is an X server, and it answers."""
    try:
        x11 = ctypes.CDLL("libX11.so.6")
    except OSError:
        return False
    x11.XOpenDisplay.restype = ctypes.c_void_p
    display = x11.XOpenDisplay(None)
    if display:
        x11.XCloseDisplay(ctypes.c_void_p(display))
    return bool(display)


def need_rendering() -> None:
    """Makes VTK render without a display where there is none. Raises OSError for VTK before 9.4, which would crash."""
    importlib.import_module("vtkmodules.vtkRenderingOpenGL2")  # what vtkRenderWindow makes
    if has_display():
        return
    from vtkmodules.vtkRenderingCore import vtkRenderWindow

    # Otherwise VTK tries X first, with a warning.
    os.environ.setdefault("VTK_DEFAULT_OPENGL_WINDOW", "vtkEGLRenderWindow")
    if vtkRenderWindow().GetClassName() == "vtkXOpenGLRenderWindow":
        raise OSError(
            f"DISPLAY: {host.version()} draws surfaces on an X display only, and found none. Run the command with a "
            f"virtual one: xvfb-run -a {'pvpython' if host.is_paraview() else 'python3'} ..."
        )
