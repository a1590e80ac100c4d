"""Linked views of a recorded transformer; scene.py writes them as a ParaView state.

All heads as a matrix, the map of one head, its words with lines between them or, of images, its picture; for recordings
with queries and keys the joint embedding of all heads, and of one head in space; and the tokens as a spreadsheet. Layer,
head and sequence are the same in all views of one head, which is at first that with most to see. In the GUI, a double click on a head in the matrix or the
embedding chooses it in all of them, and selected tokens are selected in all views.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from paraview import servermanager, simple

from attentionatlas._internal.arguments import PathLike
from attentionatlas._internal.readers import has_images, has_pictures, holds_queries, open_recording
from attentionatlas._internal.recording import Recording
from attentionatlas._internal.views import PLAIN, arrange, diagram, flat_view, render_view, table_view

#: Of the properties that all views of one head share.
LINKS = ("Layer", "Head", "Sequence")
#: What a filter does not share: all of its texts are in an embedding, all heads in a matrix.
UNLINKED = {"HeadEmbedding": ("Sequence",), "AttentionMatrix": ("Layer", "Head")}


def build(path: PathLike) -> Any:
    """Builds the views of a recording in the present session; returns the layout.

    Raises FileNotFoundError or ValueError for a file that is not there or no recording, OSError where
    ParaView cannot render.
    """
    recording = open_recording(path)
    views, shown = show_heads(recording)
    if holds_queries(recording):
        views.append(render_view(registrationName="Queries and keys of the head", **PLAIN))
        one = simple.HeadEmbedding(
            registrationName="Embedding of the head",
            Input=recording,
            Method="TSNE",
            Layer=shown[0].Layer,
            Head=shown[0].Head,
            Dimensions=3,
        )
        shown.append(show(one, views[-1]))
    table = table_view("Tokens")
    simple.Show(shown[1] if has_images(recording) else simple.OutputPort(shown[1], 1), table)
    link(shown)
    simple.SetActiveSource(shown[0])
    simple.SetActiveView(views[1])
    return arrange([*views, table])


def show_heads(recording: Any) -> tuple[list[Any], list[Any]]:
    """Shows all heads, one head and its words or picture, and queries and keys; returns views, and what is linked."""
    views = [diagram("All heads"), diagram("One head")]
    heads = show(simple.AttentionMatrix(registrationName="All heads", Input=recording), views[0], (0, 1))
    place = dict(zip(LINKS, _striking_head(recording)))
    shown = [show(simple.AttentionMap(registrationName="Head", Input=recording, **place), views[1])]
    if not has_images(recording):
        views.append(diagram("Words"))
        words = simple.AttentionSentence(registrationName="Words", Input=recording, **place)
        shown.append(show(words, views[-1], range(3)))
    if has_images(recording) or has_pictures(recording):
        views.append(diagram("Picture"))
        picture = simple.PatchAttention(registrationName="Picture", Input=recording, **place)
        shown.append(show(picture, views[-1], range(6)))
    if holds_queries(recording):
        views.append(flat_view(registrationName="Queries and keys"))
        show(simple.HeadEmbedding(registrationName="Embedding", Input=recording), views[-1], (0, 2))
    return views, [*shown, heads]


def _striking_head(recording: Any) -> tuple[int, int]:
    """The layer and head with most to see; what finds them is deleted."""
    data = Recording(recording)
    with data.scope():
        return data.striking_heads()[0][0]


def show(source: Any, view: Any, ports: Iterable[int] = (0,)) -> Any:
    """Shows outputs of a source; returns it."""
    for port in ports:
        simple.Show(simple.OutputPort(source, port), view)
    simple.ResetCamera(view)
    return source


def link(sources: Iterable[Any], names: Iterable[str] = LINKS) -> None:
    """Gives sources the same values of properties, now and later; by default the layer, head and sequence of one head."""
    for name in names:
        joined = servermanager.vtkSMPropertyLink()
        for source in sources:
            if name in source.ListProperties() and name not in UNLINKED.get(source.GetXMLName(), ()):
                joined.AddLinkedProperty(source.SMProxy, name, joined.INPUT)
                joined.AddLinkedProperty(source.SMProxy, name, joined.OUTPUT)
        servermanager.ProxyManager().RegisterLink(name, joined)
