"""A mesh of 8 x 8 cells, each a token of a recording by hand: a cell attends to its mirror image on the right or left,
and with a third of that weight to itself."""

import os
import tempfile

import numpy
from paraview import simple

settings = simple.GetSettingsProxy("GeneralSettings")
(settings.ScalarBarMode,) = [mode for mode in settings.GetProperty("ScalarBarMode").Available if "Manual" in mode]

tokens = numpy.arange(64)
mirror = 8 * (tokens // 8) + 7 - tokens % 8
attention = 0.25 * numpy.eye(64) + 0.75 * numpy.eye(64)[mirror]
path = os.path.join(tempfile.mkdtemp(), "attention.npy")
numpy.save(path, attention.astype("f4")[None, None])

recording = simple.RecordingReader(FileName=path)
mesh = simple.Plane(XResolution=8, YResolution=8)
bound = simple.BindTokens(
    Input=mesh, Recording=recording, Method="Grid", Places="Cells",
    GridOrigin=[-0.5, -0.5, -0.5], PatchSize=[0.125, 0.125, 1], PatchCounts=[8, 8, 1],
)
shown = simple.SpatialAttention(Input=bound, Recording=recording, Token=27)
view = simple.GetActiveViewOrCreate("RenderView")
view.OrientationAxesVisibility = 0
for port in range(3):
    simple.Show(simple.OutputPort(shown, port), view)
simple.ResetCamera(view)
simple.SetActiveSource(shown)
simple.Render(view)
