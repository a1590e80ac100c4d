"""Linked views of a recorded transformer; scene.py writes them as a ParaView state.

Two layouts. Heads: all heads as a matrix, the map of one head, its words with lines between them or, of
images, its picture, and the tokens as a spreadsheet. Embedding, for recordings with queries and keys: the
joint embedding of all heads, and of one head in space. Layer, head and sequence are the same in all views of
one head. In the GUI, a double click on a head in the matrix or the embedding chooses it in all of them, and
selected tokens are selected in all views.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from paraview import servermanager, simple

from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.readers import has_images, has_pictures, holds_queries, open_recording
from attentionatlas._internal.space import PLAIN, diagram, flat_view, render_view

#: Of the properties that all views of one head share.
LINKS = ("Layer", "Head", "Sequence")
#: What a filter does not share: all of its texts are in an embedding, all heads in a matrix.
UNLINKED = {"HeadEmbedding": ("Sequence",), "AttentionMatrix": ("Layer", "Head")}


def build(path: PathLike) -> Any:
    """Builds the views of a recording in the present session; returns the layout of its heads.

    Raises FileNotFoundError or ValueError for a file that is not there or no recording, OSError where
    ParaView cannot render.
    """
    recording = open_recording(path)
    layout = simple.CreateLayout(name="Heads")
    matrix, head, words = (diagram() for _ in range(3))
    table = simple.CreateView("SpreadSheetView")
    simple.AssignViewToLayout(view=matrix, layout=layout, hint=0)
    right = layout.SplitHorizontal(0, 0.45)
    simple.AssignViewToLayout(view=words, layout=layout, hint=right + 1)
    layout.SplitVertical(right, 0.55)
    simple.AssignViewToLayout(view=head, layout=layout, hint=2 * right + 2)
    layout.SplitVertical(right + 1, 0.65)
    simple.AssignViewToLayout(view=table, layout=layout, hint=2 * (right + 1) + 2)

    heads = show(simple.AttentionMatrix(registrationName="All heads", Input=recording), matrix, (0, 1))
    shown = [show(simple.AttentionMap(registrationName="Head", Input=recording), head)]
    if has_images(recording):
        shown.append(show(simple.PatchAttention(registrationName="Picture", Input=recording), words, range(6)))
        simple.Show(shown[-1], table)
    else:
        shown.append(show(simple.AttentionSentence(registrationName="Words", Input=recording), words, range(3)))
        simple.Show(simple.OutputPort(shown[-1], 1), table)
    if has_pictures(recording):
        shown.append(_show_pictures(recording))
    if holds_queries(recording):
        shown.append(_show_embedding(recording, shown[0]))
    link([*shown, heads])
    simple.SetActiveSource(shown[0])
    simple.SetActiveView(head)
    return layout


def show(source: Any, view: Any, ports: Iterable[int] = (0,)) -> Any:
    """Shows outputs of a source; returns it."""
    for port in ports:
        simple.Show(simple.OutputPort(source, port), view)
    simple.ResetCamera(view)
    return source


def _show_pictures(recording: Any) -> Any:
    """What the last word attends to on the pictures among the words, in a layout of its own."""
    layout = simple.CreateLayout(name="Pictures")
    view = diagram()
    simple.AssignViewToLayout(view=view, layout=layout, hint=0)
    return show(simple.PatchAttention(registrationName="Pictures", Input=recording), view, range(6))


def _show_embedding(recording: Any, head: Any) -> Any:
    """The joint embedding of all heads, and of the head that a map shows in space, which is returned."""
    layout = simple.CreateLayout(name="Embedding")
    grid, space = flat_view(), render_view(**PLAIN)
    simple.AssignViewToLayout(view=grid, layout=layout, hint=0)
    right = layout.SplitHorizontal(0, 0.6)
    simple.AssignViewToLayout(view=space, layout=layout, hint=right + 1)
    heads = simple.HeadEmbedding(registrationName="Embedding", Input=recording)
    for port in (0, 2):
        simple.Show(simple.OutputPort(heads, port), grid)
    simple.ResetCamera(grid)
    one = simple.HeadEmbedding(
        registrationName="Embedding of the head",
        Input=recording,
        Method="TSNE",
        Layer=head.Layer,
        Head=head.Head,
        Dimensions=3,
    )
    return show(one, space)


def link(sources: Sequence[Any], names: Iterable[str] = LINKS) -> None:
    """Gives the views of one head the same layer, head and sequence, now and later."""
    for name in names:
        joined = servermanager.vtkSMPropertyLink()
        for source in (s for s in sources if name not in UNLINKED.get(s.GetXMLName(), ())):
            joined.AddLinkedProperty(source.SMProxy, name, joined.INPUT)
            joined.AddLinkedProperty(source.SMProxy, name, joined.OUTPUT)
        servermanager.ProxyManager().RegisterLink(name, joined)
