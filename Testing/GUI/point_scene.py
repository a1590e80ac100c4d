"""A map in the whole window, for Point.py."""

import os
import pathlib

from paraview import simple

view = simple.GetActiveView()
layout = simple.GetLayout(view)
simple.Delete(view)
recording = simple.OpenDataFile(os.environ["POINT_RECORDING"])
diagram = simple.CreateView("AttentionDiagram")
simple.AssignViewToLayout(diagram, layout=layout)
simple.Show(simple.AttentionMap(Input=recording), diagram)
simple.Render(diagram)
pathlib.Path(os.environ["POINT_LOG"]).write_text("shown", encoding="utf-8")
