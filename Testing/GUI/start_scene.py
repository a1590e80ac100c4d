"""start_scene.py TRANSFORMER SCENE: saves a scene, as Start.xml opens it: all heads of a transformer beside one head."""

import sys

from paraview import simple

from attentionatlas import load_plugin
from attentionatlas._internal import recording_scene
from attentionatlas._internal.views import PLAIN, flat_view, render_view


def main():
    load_plugin()
    # Without color bars, for which views make room, so that a head is at the same place in all versions of ParaView.
    settings = simple.GetSettingsProxy("GeneralSettings")
    (settings.ScalarBarMode,) = [mode for mode in settings.GetProperty("ScalarBarMode").Available if "Manual" in mode]
    model = simple.TransformerReader(registrationName="Transformer", FileName=sys.argv[1])
    words = "5 17 101 8 42 5 17 9 10 11\n3 4 5 6 7 8 9 10 11 12"
    recording = simple.TransformerRecorder(registrationName="Recording", Input=model, TokenIds=words)
    layout = simple.CreateLayout(name="Heads")
    grid, space = flat_view(), render_view(**PLAIN)
    simple.AssignViewToLayout(view=grid, layout=layout, hint=0)
    simple.AssignViewToLayout(view=space, layout=layout, hint=layout.SplitHorizontal(0, 0.6) + 1)
    heads = simple.HeadEmbedding(registrationName="Heads", Input=recording, Method="PCA")
    recording_scene.show(heads, grid, (0, 2))
    head = simple.HeadEmbedding(registrationName="Head", Input=recording, Method="PCA", Layer=1, Head=3, Dimensions=3)
    recording_scene.show(head, space)
    simple.SetActiveSource(head)
    simple.SetActiveView(grid)
    simple.RenderAllViews()
    simple.SaveState(sys.argv[2])


if __name__ == "__main__":
    main()
