"""Pages for a browser: scenes to be turned, hovered and searched, in one HTML file that needs no network.

    attention-atlas web FILE ... -o PAGE.html [--only NAME,...] [--layer L] [--head H] [--sequence S]
        [--pooling Maximum|Mean] [--cell TOKENS] [--megabytes M] [--size POINTS] [--kind Q|K|V] [--method TSNE|UMAP|PCA] [--perplexity P] [--seed S] [--x COLUMN] [--y COLUMN]
        [--measure Score|Attention|WrittenNorm|NextTokenEffect] [--structure FILE] [--chain C] [--title TEXT] [--theme system|light|dark]

FILE is an attention-only model (torus, deformed-torus, sphere), a recording (map, sentence, and with queries and
keys embedding, embedding-3d; of a protein with its structure contact-map, structure), the config.json of a language model (composition), statistics of a corpus (scatter,
contexts), or a ParaView state, whose render views are shown. Each is also a function that returns a scene, and a page
is made of any of them:

    from attentionatlas import web
    web.page([web.torus("model.safetensors"), web.sphere("model.safetensors")], "page.html")
    web.page(web.from_view(GetActiveView()), "view.html")     # whatever a render view of ParaView shows
    web.sentence("run.safetensors", layer=4, head=11)         # in a notebook: the page in a frame

The address of a page can choose a scene and search: page.html#scene=1&search=the. On a page of a recording or a corpus
it chooses a head, here 11 of layer 4: page.html#4-11. Whoever chooses a head in the list finds it in the address. On the map of
a long text it keeps the place: page.html#at=9000,120,500 has query 9,000 and key 120 in the middle, and is 500 tokens high.
"""

from __future__ import annotations

import argparse
import functools
import os
import pathlib
import sys
import xml.etree.ElementTree
from collections.abc import Callable, Iterable, Iterator, Sequence as Listed
from typing import Any, ParamSpec

from attentionatlas._internal import data, host, tiles
from attentionatlas._internal.arguments import MEAN, Head, PathLike, Sequence, head_name, head_option, number, word
from attentionatlas._internal.checks import check
from attentionatlas._internal.circuit_tables import measures_loss, patching_texts
from attentionatlas._internal.corpus import Corpus
from attentionatlas._internal.looks import Look, bytes_of, look_of
from attentionatlas._internal.model import SmallModel
from attentionatlas._internal.names import own
from attentionatlas._internal.opening import open_file
from attentionatlas._internal.proteins import (
    MEASURED, Ribbon, add_contact_options, contact_filter, mean_attention, of_heads, place_residues, ribbon,
)
from attentionatlas._internal.readers import Missing, holds_queries, kind_of, label, open_structure
from attentionatlas._internal.recording import KINDS, Recording, Transformer
from attentionatlas._internal.tiles import MapSize
from attentionatlas._internal.webpage import THEMES, Block, Page, Scene, Texts, checked, json_text
from attentionatlas._internal.webscene import color_by_attention, flat_scene, numbers, scene_in_space

__dir__ = own(__name__)

__all__ = [
    "SCENES", "MapSize", "Page", "Scene", "attention_map", "attribution", "composition", "contact_map", "contacts_in_space", "contexts",
    "deformed_torus", "from_view",
    "head_embedding", "map_size", "page", "scatter", "scenes", "sentence", "sphere", "torus",
]

P = ParamSpec("P")
#: A recording, or its file.
Source = Recording | PathLike
#: Light and shade that show the shape of a surface, and leave pale colors pale.
_SHADING: dict[str, Any] = {"Ambient": 0.45, "Diffuse": 0.65}
#: Points on a side of the torus, at least and at most.
_SIZES = (2, 4096)
#: The color of sites: a purple that neither contacts, attention nor the query have.
_SITE = (0.6, 0.3, 0.75)
#: Tokens in the table of a head.
_ROWS = 50


def _keeps_session(make: Callable[P, Scene]) -> Callable[P, Scene]:
    """Lets the session of ParaView stay as it was before a scene is made."""

    @functools.wraps(make)
    def keeping(*arguments: P.args, **options: P.kwargs) -> Scene:
        with host.session_kept():
            return make(*arguments, **options)

    return keeping


def _shown(source: Any, *ports: int, name: str | None = None, **changes: Any) -> Iterator[tuple[Any, Any]]:
    """Outputs of a filter as views show them; by default the first. name: of the filter. changes: other hints of its XML."""
    for port in ports or (0,):
        found = data.fetch(source, port)
        yield found, look_of(source, port, found, name, **changes)


def from_view(view: Any, title: str | None = None, caption: str = "") -> Scene:
    """The scene that a render view of ParaView shows: the representations that are visible in it, in their colors.

    title: "Scene" by default. Raises ValueError for a view that shows nothing or is no render view, and for a
    representation that a page cannot show, such as Volume.
    """
    host.need_paraview("A view")
    from attentionatlas._internal import viewscene

    return viewscene.from_view(view, title, caption)


@_keeps_session
def torus(model: SmallModel | PathLike, size: int = 512) -> Scene:
    """The torus as a map of the next token, with the token pairs. size: points on a side."""
    check("size", size, *_SIZES)
    with SmallModel.opened(model) as opened:
        chart = opened.chart(size, Quantities=["ClassColor", "Class", "Probability"])
        caption = (
            "The color of each point is the next token that the transformer predicts for that pair of word "
            "embeddings, paler where it is less certain. x is the angle of token 1, y that of token 2. The dots are "
            "the token pairs in the color of their true next token."
        )
        return flat_scene([*_shown(chart), *_shown(opened.filter("TokenPairs"))], "Torus", caption)


@_keeps_session
def deformed_torus(model: SmallModel | PathLike, size: int = 256) -> Scene:
    """The torus at the outputs of the model, each axis on a scale of its own, with the token pairs."""
    check("size", size, *_SIZES)
    with SmallModel.opened(model) as opened:
        chart = opened.chart(size, Quantities=["ClassColor", "Class", "Probability", "Output"])
        moved = {"Shape": "Vectors", "Vectors": ["POINTS", "Output"], "Normalization": "PerAxis"}
        surface = opened.filter("TorusDeformation", Input=chart, **moved)
        pairs = opened.filter("TorusDeformation", Input=opened.filter("TokenPairs"), Reference=chart, **moved)
        caption = (
            "The torus at the outputs of the attention layer, in the colors of the next token. The dots are the "
            "token pairs."
        )
        shown = [*_shown(surface, **_SHADING), *_shown(pairs, name="Token Pairs")]
        return scene_in_space(shown, "Deformed torus", caption)


@_keeps_session
def sphere(model: SmallModel | PathLike) -> Scene:
    """The token that the unembedding predicts in each direction, with the outputs of the token pairs."""
    with SmallModel.opened(model) as opened:
        pairs = opened.deformed(opened.filter("TokenPairs"), "UnitSphere")
        caption = (
            "Each direction of the output predicts the token of its cell. The dots are the rows of the unembedding, "
            "and the outputs at the token pairs in the color of their true next token."
        )
        shown = [*_shown(opened.filter("UnembeddingSphere"), 0, 1, 2), *_shown(pairs, name="Token Pairs")]
        return scene_in_space(shown, "Sphere of the unembedding", caption)


@_keeps_session
def contact_map(
    recording: Source, layer: int | str = "all", head: int | str = "all", sequence: int = 0,
    structure: PathLike | None = None, **measured: Any,
) -> Scene:
    """What the attention of a protein language model says of contacts: all pairs of residues.

    layer, head: a number; by default the mean over all.
    structure: a .cif or .pdb file of the protein. measured: options of Recording.contacts, such as chain. Raises ValueError
    for the structure of another protein.
    """
    with Recording.opened(recording) as opened:
        of_all = (layer, head) == ("all", "all")
        made = contact_filter(opened, structure, {"layer": layer, "head": head, "sequence": sequence, **measured}, of_all)
        caption = f"Each pair of residues: their attention to each other, less the average product, of {of_heads(layer, head)}."
        if "Prediction" in data.point_names(made):
            caption = "Each pair of residues: the probability of a contact that the model predicts."
        return flat_scene(_shown(made), "Contact map", caption)


@_keeps_session
def contacts_in_space(
    recording: Source, layer: int | str = "all", head: int | str = "all", sequence: int = 0,
    structure: PathLike | None = None, **measured: Any,
) -> Scene:
    """The structure of a protein as a ribbon in the colors of the attention of a residue, which its reader chooses by a click,
    with the strongest pairs of residues as arcs: blue in contact, orange not. With sites=, as "12 45-48" or a list of numbers
    from 1, these residues have balls. Other arguments and errors are those of contact_map; Missing without a structure."""
    if structure is None:
        raise Missing("expected a structure")
    with Recording.opened(recording) as opened:
        made = contact_filter(opened, structure, {"layer": layer, "head": head, "sequence": sequence, **measured})
        backbone = ribbon(data.fetch(opened.own(open_structure(structure)), 1))
        rows, positions = place_residues(backbone, data.fetch(made, 4))
        plain: dict[str, Any] = {"color": (0.8, 0.8, 0.8), "light": {"ambient": 0.25, "diffuse": 0.75, "specular": 0.1, "power": 20.0}}
        shown = [
            (backbone.surface, Look("Ribbon", **plain)),
            (backbone.residues, Look("Residues", "Token Labels", point_size=0, color=(0.4, 0.4, 0.4))),
            *_sites(backbone), *_shown(made, 4),
        ]
        caption = (
            "The color of the ribbon is what each residue gets of the attention of the one that is chosen by a click, the green "
            f"one, or at first of all, by {of_heads(layer, head)}. The arcs are the strongest pairs of residues, as many as there are residues: blue in contact, orange not."
        )
        scene = scene_in_space(shown, "Contacts on the structure", caption)
        weights = mean_attention(opened, positions, layer, head, sequence)
        color_by_attention(scene, weights, positions, rows, backbone.owners)
        return scene


def _sites(backbone: Ribbon) -> list[tuple[Any, Look]]:
    """Balls at the residues of sites, if there are some."""
    from vtkmodules.vtkFiltersCore import vtkThresholdPoints

    if not backbone.residues.GetPointData().HasArray("Site"):
        return []
    chosen = vtkThresholdPoints()
    chosen.SetInputData(backbone.residues)
    chosen.SetInputArrayToProcess(0, 0, 0, 0, "Site")
    chosen.ThresholdByUpper(1)
    chosen.Update()
    legend = {"title": "Sites", "entries": [["site", bytes_of(_SITE)]]}
    return [(chosen.GetOutput(), Look("Sites", "Point Gaussian", radius=0.9, color=_SITE, legend=legend))]


def _begin(
    recording: Recording, layer: int | None, head: Head | None, sequence: Sequence = 0
) -> tuple[list[tuple[int, int]], str]:
    """The heads of a recording, first the one that is asked for, or else that with most to see; and why it is that."""
    if layer is None and head is None:
        return recording.striking_heads(sequence)
    places = [(of, number) for of in recording.layer_numbers for number in range(recording.head_count)]
    layer, head, _ = recording.place(layer, 0 if head is None else head, sequence)
    return [(layer, head), *(place for place in places if place != (layer, head))], ""


def _heads(
    made: Any, ports: Iterable[int], texts: tuple[str, str], begin: tuple[list[tuple[int, int]], str],
    megabytes: float | None,
) -> Scene:
    """What a filter has of the first head, and of as many others as have room; None: without others. texts: title,
    caption."""
    places, reason = begin
    found: dict[tuple[int, int], Scene] = {}
    block, written = Block(), 0
    for place in places[: 1 if megabytes is None or places[0][1] == -1 else None]:
        made.Layer, made.Head = place
        shown = flat_scene(_shown(made, *ports), f"{texts[0]}: {_place(made)}", texts[1])
        written += len(json_text(shown.described(block)))
        if found and written + 4 / 3 * block.size > 1e6 * (megabytes or 0):
            break
        found[place] = shown
    first = found[places[0]]
    if len(found) > 1:
        first.heads = dict(sorted(found.items()))
        if len(found) < len(places):
            reason += f" The list has {len(found)} of {len(places)} heads; {megabytes:g} MB has no room for more."
    first.caption = f"{first.caption} {reason}".strip()
    return first


def _place(made: Any) -> str:
    return f"layer {made.Layer}, {head_name(int(made.Head))}"


def map_size(
    recording: Source, sequence: Sequence = 0, cell: int | None = None, megabytes: float = 20
) -> MapSize | None:
    """How large the map of a long text will be in a page, at most, and how fine; None for that of a text of at most
    1,024 tokens, which has a point for each pair. Arguments and errors are those of attention_map."""
    with Recording.opened(recording) as opened:
        place = opened.place(sequence=sequence)[2]
        is_long = cell is not None or max(map(len, opened.sides(place))) > tiles.POINTS
        return tiles.size(opened, place, cell, megabytes) if is_long else None


@_keeps_session
def attention_map(
    recording: Source, layer: int | None = None, head: Head | None = None, sequence: Sequence = 0,
    pooling: str = "Maximum", cell: int | None = None, megabytes: float = 20, all_heads: bool = False,
) -> Scene:
    """The attention matrix of one head with its tokens.

    layer, head: by default the head with most to see. head, sequence: a number, or "mean". all_heads: whether the page
    has all heads, of which its reader chooses one, as far as megabytes have room. A text of more than 1,024 tokens is
    pooled, as the filter AttentionMap does it from all pairs, to an image pyramid: whoever zooms in sees more.
    pooling: Maximum or Mean, what its pixels are of their pairs. cell: queries, and keys, of a pixel where it is finest,
    a power of 2, of texts of any length; by default as few as fit. megabytes: what the page may take, from 1 to 256;
    map_size says beforehand what it takes. Raises ValueError for what does not fit, and for a sequence without tokens.
    """
    with Recording.opened(recording) as opened:
        begin = _begin(opened, layer, head, sequence)
        asked = map_size(opened, sequence, cell, megabytes)
        pooled = {} if asked is None else {"maximum_size": 1, "resolution": 16}
        place = dict(zip(("layer", "head", "sequence"), opened.place(*begin[0][0], sequence)))
        made = opened.made("AttentionMap", **place, pooling=pooling, **pooled)
        if asked is not None:
            found = tiles.scene(opened, made, asked, pooling, f"Attention map: {_place(made)}")
            found.caption += f" {begin[1]}" + " Of a text this long the page has one head." * all_heads
            return found
        texts = ("Attention map", "Each row is a query, each column a key.")
        return _heads(made, (0,), texts, begin, megabytes if all_heads else None)


@_keeps_session
def sentence(
    recording: Source, layer: int | None = None, head: Head | None = None, sequence: Sequence = 0, megabytes: float = 20,
    all_heads: bool = False,
) -> Scene:
    """The words of a text with lines from queries to keys. Arguments are those of attention_map."""
    with Recording.opened(recording) as opened:
        begin = _begin(opened, layer, head, sequence)
        place = dict(zip(("layer", "head", "sequence"), opened.place(*begin[0][0], sequence)))
        made = opened.made("AttentionSentence", **place)
        caption = (
            "Queries are on the left and keys on the right. A line is the wider and the stronger, the larger its "
            "weight. Bars are what each key receives."
        )
        return _heads(made, range(3), ("Sentence", caption), begin, megabytes if all_heads else None)


@_keeps_session
def head_embedding(
    recording: Source, layer: int | None = None, head: int | None = None, dimensions: int = 2, **options: Any
) -> Scene:
    """The queries and keys of one head as points, near each other where it attends, with their tokens.

    layer, head: by default the head with most to see. dimensions: 2 or 3. options: of the filter HeadEmbedding, such as
    method="UMAP". Raises Missing for a recording without queries and keys.
    """
    if dimensions not in (2, 3):
        raise ValueError(f"dimensions: expected 2 or 3, found {dimensions}.")
    with Recording.opened(recording) as opened:
        if not holds_queries(opened.reader):
            raise Missing("the recording holds no queries and keys")
        places, reason = _begin(opened, layer, head)
        if places[0][1] == -1:
            raise Missing("an embedding is one of a single head")
        made = opened.made("HeadEmbedding", layer=places[0][0], head=places[0][1], dimensions=dimensions, **opened.some_heads(options))
        shown = _shown(made, kind="Token Labels")
        caption = (
            "A query and a key of every token as points, near each other where the head attends. The lightness "
            f"is the position in the sequence. {reason}"
        ).strip()
        title = f"Head embedding: {_place(made)}" + (" (in space)" if dimensions == 3 else "")
        found = flat_scene(shown, title, caption) if dimensions == 2 else scene_in_space(shown, title, caption, (0, 1, 0))
        for arrays in (part["pointArrays"] for part in found.parts):
            arrays["Kind"] = Texts(("query", "key")[kind] for kind in arrays["Kind"].ravel())
        return found


@_keeps_session
def composition(transformer: Transformer | PathLike, kind: str = "K") -> Scene:
    """Which heads read what heads of earlier layers write, as a graph. kind: Q, K or V."""
    if kind not in KINDS:
        raise ValueError(f"kind: expected {' or '.join(KINDS)}, found '{kind}'.")
    with Transformer.opened(transformer) as model:
        graph = model.made("HeadComposition", kind=kind)
        caption = (
            f"Lines lead from heads to the heads of later layers whose {KINDS[kind]} read what they write. A line is "
            "the wider and the stronger, the larger the score above that of random matrices."
        )
        return flat_scene(_shown(graph, 0, 2), f"{kind}-composition of heads", caption)


@_keeps_session
def attribution(
    transformer: Transformer | PathLike, prompt: str | Listed[str], patch_from: str | Listed[str], top: int = 60,
    file: PathLike | None = None, **options: Any,
) -> Scene:
    """Through which edges a model predicts one token and not another, as a graph: the strongest by attribution patching, or
    those of a circuit.

    prompt, patch_from: texts of as many tokens, or lists of them. top: the largest number of lines; 0: all. file: of a
    circuit, or a Circuit. options: others of the filter AttributionPatching, such as target="Mary".
    """
    chosen: dict[str, Any] = {"circuit": "FromFile", "circuit_file": file} if file is not None else {}
    with Transformer.opened(transformer) as model:
        texts = patching_texts(prompt, patch_from, None)
        graph = model.made("AttributionPatching", top=top, **chosen, **options, **texts)
        measured = "the loss" if measures_loss(graph) else "the difference of the logits"
        caption = (
            "A line goes up from what writes to what reads it, in the color of what reads: queries, keys, values, or an MLP "
            f"or the logits; the wider, the more it changes {measured}."
        )
        return flat_scene(_shown(graph, 0, 3), "Attribution of edges", caption)


@_keeps_session
def scatter(
    corpus: Corpus | PathLike, x: str = "Previous Token", y: str = "Prefix Matching", clusters: int = 4,
    by: str = "Statistics",
) -> Scene:
    """All heads by two of their statistics over a text, in the colors of their clusters; each has all of them as data.

    x, y: columns of Corpus.head_table(). clusters, by: as Corpus.clusters.
    """
    with Corpus.opened(corpus) as opened:
        made = opened.made("HeadScatter", x_column=x, y_column=y, clusters=clusters, cluster_by=by)
        caption = f"{x} to the right, {y} upward. Heads of one color are alike."
        return flat_scene(_shown(made, 0, 1, 2), f"Heads over {opened.token_count} tokens", caption)


def _tables_of_head(corpus: Corpus, layer: int, head: int) -> dict[str, dict[str, Any]]:
    """From which tokens a head attends and to which, and the parts of its scores with the tokens at their ends."""
    found = {
        "Head Token Table": corpus.columns("HeadTokenTable", layer=layer, head=head, top=_ROWS),
        "Score Parts": corpus.columns("ScoreParts", layer=layer, head=head),
        "Ends of Score Parts": corpus.columns("ScoreParts", 1, layer=layer, head=head, parts=4, ends=5),
    }
    return {
        name: {column: Texts(values) if isinstance(values, list) else numbers(values) for column, values in columns.items()}
        for name, columns in found.items()
        if len(next(iter(columns.values()), ()))
    }


@_keeps_session
def contexts(
    corpus: Corpus | PathLike, layer: int | None = None, head: int = 0, measure: str = "Attention", top: int = 10,
    all_heads: bool = False,
) -> Scene:
    """The strongest contexts of a head, with the query on green and the key on pink; and tables of its tokens and of
    the parts of its scores.

    layer: the first that was measured by default. measure, top: as Corpus.contexts. all_heads: whether the page has all
    other heads, too, of which its reader chooses one: in a list, at a scatter of heads, or by the address, as #4-11 for
    layer 4, head 11. Raises Missing without texts.
    """
    with Corpus.opened(corpus) as opened:
        if number("head", head, ("mean",)) is MEAN:
            raise Missing("texts are of a single head")
        place = opened.place(layer, head)
        known = data.table(opened.reader)
        places = list(zip(known["Layer"].tolist(), known["Head"].tolist())) if all_heads else [place]
        made = opened.made("TopContexts", measure=measure, top=top)
        found: dict[tuple[int, int], Scene] = {}
        for of_head in places:
            made.Layer, made.Head = of_head
            if data.fetch(made).GetNumberOfRows() == 0:
                continue
            caption = "In each text the query is on green and the key on pink; what has no room is left out."
            shown = [*_shown(made, 1, PointSize=0.5), *_shown(made, 2)]
            found[of_head] = flat_scene(shown, f"Top contexts: {_place(made)}", caption)
            found[of_head].tables = _tables_of_head(opened, *of_head)
        if place not in found:
            raise Missing("no texts of heads were kept")
        if all_heads:
            found[place].heads = found
        return found[place]


def scenes(title: str | None = None) -> list[Scene]:
    """A scene of each render view of ParaView's session that shows data; title: of the first, by default its number."""
    host.need_paraview("A view")
    from paraview import simple

    from attentionatlas._internal import viewscene

    found: list[Scene] = []
    for number, view in enumerate(simple.GetRenderViews(), 1):
        if viewscene.shows_data(view):
            found.append(from_view(view, title if title and not found else f"View {number}"))
    return found


def page(
    scenes: Scene | Iterable[Scene], path: PathLike | None = None, title: str = "Attention Atlas", theme: str = "system"
) -> Page:
    """A page of a scene, or of several with a tab each, which Jupyter shows in a frame.

    path: the .html file to write, which appears complete or not at all; None writes none. theme: system,
    which follows the reader's settings, light or dark; the page has a choice of it. Returns the Page. Raises
    ValueError without scenes, or for another theme or name of the file.
    """
    made = Page([scenes] if isinstance(scenes, Scene) else scenes, title, theme)
    if path is not None:
        made.save(path)
    return made


#: The functions of views and their arguments, by what the files are: attentionatlas.widget has the same names.
VIEWS: dict[str, dict[str, tuple[Callable[..., Scene], dict[str, Any]]]] = {
    "model": {"torus": (torus, {}), "deformed-torus": (deformed_torus, {}), "sphere": (sphere, {})},
    "recording": {
        "map": (attention_map, {}),
        "sentence": (sentence, {}),
        "embedding": (head_embedding, {"dimensions": 2}),
        "embedding-3d": (head_embedding, {"dimensions": 3}),
        "contact-map": (contact_map, {}),
        "structure": (contacts_in_space, {}),
    },
    "transformer": {"composition": (composition, {})},
    "corpus": {"scatter": (scatter, {}), "contexts": (contexts, {})},
}
#: The scenes of recorded proteins, which --structure asks for.
_PROTEINS = ("contact-map", "structure")
#: The names of scenes, by what their files are.
SCENES = {kind: tuple(views) for kind, views in VIEWS.items()}


def widget(shown: Any, view: str | None = None, **options: Any) -> Page:
    """What attentionatlas.widget does."""
    if host.is_proxy(shown):
        return page(from_view(shown, **options))
    if isinstance(shown, (Scene, list, tuple)):
        return page(shown, **options)
    if isinstance(shown, (str, os.PathLike)):
        opened = open_file(shown)
        try:
            return widget(opened, view, **options)
        finally:
            opened.close()
    kinds = {SmallModel: "model", Recording: "recording", Transformer: "transformer", Corpus: "corpus"}
    kind = next((name for type_, name in kinds.items() if isinstance(shown, type_)), None)
    if kind is None:
        expected = "a model, a recording, statistics of a corpus, a file or a view"
        raise ValueError(f"widget: expected {expected}, found {type(shown).__name__}.")
    views = VIEWS[kind]
    if view is not None and view not in views:
        raise ValueError(f"view: expected one of {', '.join(views)}; found '{view}'.")
    make, fixed = views[view or next(iter(views))]
    return page(make(shown, **{**fixed, **options}))


def _size_of(found: argparse.Namespace) -> dict[str, Any]:
    """The arguments of the size of a map on the command line."""
    return {"cell": found.cell, "megabytes": found.megabytes}


def _options_of(name: str, found: argparse.Namespace) -> dict[str, Any]:
    """The arguments of a view on the command line."""
    place = {"layer": found.layer, "head": found.head}
    chosen = {"layer": "all" if found.layer is None else found.layer, "head": "all" if found.head in (None, "mean") else found.head}
    protein = {**chosen, "sequence": found.sequence, **{name: getattr(found, name) for name in MEASURED}}
    embedding = {**place, "method": found.method, "seed": found.seed, "perplexity": found.perplexity}
    return {
        "torus": {"size": found.size},
        "deformed-torus": {"size": min(found.size, 256)},
        "map": {**place, "sequence": found.sequence, "pooling": found.pooling, "all_heads": True, **_size_of(found)},
        "sentence": {**place, "sequence": found.sequence, "all_heads": True, "megabytes": found.megabytes},
        "embedding": embedding,
        "embedding-3d": embedding,
        "contact-map": protein,
        "structure": protein,
        "composition": {"kind": found.kind},
        "scatter": {"x": found.x, "y": found.y},
        "contexts": {"layer": found.layer, "head": found.head or 0, "measure": found.measure, "all_heads": True},
    }.get(name, {})


def _names(text: str | None) -> list[str]:
    """The scenes that are asked for; raises ValueError for an unknown one."""
    known = [name for names in SCENES.values() for name in names]
    names = text.split(",") if text else known
    for name in names:
        if name not in known:
            raise ValueError(f"scene: expected one of {', '.join(known)}; found '{name}'.")
    return names


def _views(path: pathlib.Path) -> dict[str, tuple[Callable[..., Scene], dict[str, Any]]]:
    """The views of a file, by name."""
    return VIEWS[kind_of(path)]


def _of_state(path: pathlib.Path) -> list[Scene]:
    """The scenes of a ParaView state."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    try:
        tree = xml.etree.ElementTree.parse(path).getroot()
    except xml.etree.ElementTree.ParseError as error:
        raise ValueError(f"{path}: expected a ParaView state, found no XML: {error}.") from error
    if tree.tag != "ServerManagerState" and tree.find("ServerManagerState") is None:
        raise ValueError(f"{path}: expected a ParaView state, found XML of the element {tree.tag}.")
    host.need_paraview("A state")
    from paraview import simple

    from attentionatlas import scene

    host.load()
    scene.clear()
    simple.LoadState(str(path))
    made = scenes()
    if not made:
        raise ValueError(f"{path}: expected a state with a render view that shows something, found none.")
    scene.clear()
    return made


def _scenes_of(
    paths: Listed[str], found: argparse.Namespace, names: list[str], left_out: list[str]
) -> Iterator[Scene]:
    """The scenes of files; those of which a file has no data are left out, with the reason."""
    for path in map(pathlib.Path, paths):
        if path.suffix == ".pvsm":
            yield from _of_state(path)
            continue
        for name, (make, fixed) in _views(path).items():
            if name not in names or (name in _PROTEINS and not found.structure and not found.only):
                continue
            try:
                size = map_size(path, found.sequence, **_size_of(found)) if name == "map" else None
                if size is not None:
                    print(f"map: {size}", file=sys.stderr, flush=True)
                made = make(path, **fixed, **_options_of(name, found))
            except ValueError as reason:
                is_other = name in _PROTEINS and len(paths) > 1  # of several files one may be the protein
                if not isinstance(reason, Missing) and not is_other:
                    raise
                left_out.append(f"{name}: {reason}")
                continue
            if len(paths) > 1:
                made.rename(f"{label(path)}: ")
            yield made


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-atlas web",
        description="Writes a page for the browser, with scenes to be turned, hovered and searched. It is one HTML "
        "file and needs no network.",
        epilog="The address of the page can choose a scene and search: page.html#scene=1&search=the; a head of a "
        "recording or a corpus by its layer and number: page.html#4-11; or a place on the map of a long text: page.html#at=9000,120,500.",
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE",
        help="an attention-only model, a recording, the config.json of a language model, statistics of a corpus, or a "
        "state (.pvsm)",
    )
    known = "; ".join(f"of a {kind}: {', '.join(names)}" for kind, names in SCENES.items())
    parser.add_argument("-o", "--output", default="page.html", help="the page (default: page.html)")
    parser.add_argument("--only", metavar="NAME,...", help=f"these scenes ({known}; default: all)")
    parser.add_argument("--title", default="Attention Atlas", help="of the page (default: Attention Atlas)")
    parser.add_argument("--theme", choices=THEMES, default="system", help="of the page (default: system, the reader's)")
    parser.add_argument("--sequence", type=int, default=0, help="of a recording (default: 0)")
    parser.add_argument("--layer", type=int, help="that the page begins with (default: that of the head, or the first one)")
    parser.add_argument("--head", type=head_option, help="of it: a number, or mean (default: of a recording the head with "
        "most to see, by prefix matching, the token before or the first token; else 0)")
    parser.add_argument("--pooling", choices=("Maximum", "Mean"), default="Maximum", help="of the map of a long text")
    parser.add_argument("--cell", type=int, metavar="TOKENS", help="tokens on each side of the finest pixels (default: the fewest that fit)")
    parser.add_argument("--megabytes", type=float, default=20, help="that such a map, or a view of all heads, may take (default: 20)")
    add_contact_options(parser)
    parser.add_argument("--method", default="TSNE", help="of embeddings: TSNE, UMAP or PCA (default: TSNE)")
    parser.add_argument("--perplexity", type=float, help="of t-SNE (default: 50)")
    parser.add_argument("--seed", type=int, default=0, help="of t-SNE and UMAP (default: 0)")
    parser.add_argument("--kind", default="K", help="of composition: Q, K or V (default: K)")
    parser.add_argument("--x", default="Previous Token", metavar="COLUMN", help="of a corpus (default: Previous Token)")
    parser.add_argument("--y", default="Prefix Matching", metavar="COLUMN", help="upward (default: Prefix Matching)")
    parser.add_argument("--measure", choices=host.words("TopContexts", "Measure"), default="Attention", help="of texts (default: Attention)")
    parser.add_argument("--size", type=int, default=512, help="points on a side of the torus (default: 512)")
    return parser


def main(arguments: Listed[str] | None = None) -> None:
    found = _parser().parse_args(arguments)
    left_out: list[str] = []
    try:
        found.method = word("method", found.method, host.words("HeadEmbedding", "Method"))
        checked(found.output)
        names = _names(found.only)
        made = list(_scenes_of(found.files, found, names, left_out))
        if not made:
            raise ValueError("; ".join(left_out) or f"page: the files have no scene named {found.only}.")
        page(made, found.output, found.title, found.theme)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    for reason in left_out:
        print(f"left out: {reason}", file=sys.stderr)
    print(found.output)


if __name__ == "__main__":
    main()
