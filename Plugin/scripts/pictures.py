"""Renders the pictures of the help pages and of Reference.md, those of ParaView's window and of a page in a browser,
and the animation.

    ATLAS_PLUGIN=.../AttentionAtlas.so PYTHONPATH=build/dev/lib/python3/dist-packages with-display.sh pvpython pictures.py [NAME...]

A help picture is what a view shows of a proxy after Apply, of the models in Data. Writes
Documentation/pictures/NAME.png, by default all. Only if named, `window` writes Documentation/window.png, by the command
that ATLAS_PROGRAM names, `page` Documentation/gallery/page.png and `article` Documentation/gallery/article.png, which
need chromium, and `training` Documentation/training.gif. These files are committed, so look at them first.
"""

import functools
import json
import os
import pathlib
import struct
import sys
import tempfile

import numpy
from paraview import simple as s
from paraview.modules.vtkRemotingSettings import vtkPVGeneralSettings
from PIL import Image, ImageChops, ImageDraw, ImageOps

import help_pages
from window_pictures import DATA, DOCUMENTATION, GPT2, MODEL, ROOT, TEXT, article, page, save, training, window

IMAGES = DOCUMENTATION / "pictures"
#: All filters of the XML, by name.
FILTERS = {
    name: proxy for (group, name), proxy in help_pages.read(sorted((ROOT / "XML").glob("*.xml"))).items() if group == "filters"
}
#: The size of views, in which pictures are shown. They have twice as many pixels.
SIZE = (600, 400)
MARGIN = 16
CORPUS = str(DATA / "corpus" / "language-2.safetensors")
#: The head of the language model that attends to what followed the same word before.
LAYER, HEAD = 1, 5


def cropped(image):
    """An image without most of its white margins."""
    content = ImageChops.difference(image, Image.new("RGB", image.size, "white")).getbbox()
    edges = [edge + MARGIN + side for edge, side in zip(content, (-MARGIN, -MARGIN, MARGIN, MARGIN))]
    return ImageOps.expand(image, MARGIN, "white").crop(edges)


def enlarge(proxy):
    """Doubles the sizes of a proxy that ParaView does not scale with a picture."""
    for name in proxy.ListProperties():
        size = proxy.GetPropertyValue(name)
        if name.endswith("FontSize"):
            setattr(proxy, name, 2 * size)
        elif name in ("SeriesMarkerSize", "SeriesLineThickness"):  # name, size, name, size ...
            setattr(proxy, name, [str(2 * float(word)) if place % 2 else word for place, word in enumerate(size)])


def picture(name, view):
    """Saves what a view shows at twice its size."""
    doubled = [2 * side for side in SIZE]
    if "BottomAxisTitle" in view.ListProperties():  # a chart, whose texts overlap if ParaView scales it
        s.Render(view)  # which gives it a title
        for proxy in (view, *view.Representations):
            enlarge(proxy)
        view.ViewSize = doubled  # after its fonts: so many words fit
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "view.png")
        s.SaveScreenshot(path, view, ImageResolution=doubled)
        image = Image.open(path).convert("RGB")
    save(IMAGES / f"{name}.png", cropped(image))


def own_view(source):
    """The view that a source, or an output of one, opens in."""
    source.UpdatePipeline()
    controller = s.servermanager.vtkSMParaViewPipelineControllerWithRendering()
    return controller.GetPreferredViewType(source.SMProxy, source.Port) or "RenderView"


def show(name, *sources, kind=None, direction=None, zoom=1, **properties):
    """Saves what sources show after Apply. kind: of the view; None: the one of the first source. direction: from the
    center to the camera; None: from above. zoom: how many times larger. properties: of the view."""
    kind = kind or own_view(sources[0])
    more = {"OrientationAxesVisibility": 0} if kind == "RenderView" else {}
    view = s.CreateView(kind, ViewSize=SIZE, **more, **properties)
    for source in sources:
        s.Show(source, view)
    if direction is not None:
        view.CameraPosition = [f + d for f, d in zip(view.CameraFocalPoint, direction)]
        view.CameraViewUp = [0, 0, 1]
    if kind == "RenderView":
        s.ResetCamera(view)
        view.GetActiveCamera().Zoom(zoom)
    picture(name, view)


def ports(source, *numbers):
    """Some outputs of a source."""
    return [s.OutputPort(source, number) for number in numbers]


def first_view(name):
    """Saves what a filter shows of the example that its input takes: all outputs that open in the view of the first."""
    properties = FILTERS[name].properties()
    example = EXAMPLES[properties["Input"].find("AtlasFormatDomain").get("formats")]
    source = getattr(s, name)(Input=example())
    choice = {"Layer": LAYER, "Head": HEAD} if example in (transformer, corpus) else {}
    for key, value in choice.items():
        if key in properties and getattr(source, key) >= 0:  # else it shows all heads by default
            setattr(source, key, value)
    outputs = ports(source, *range(source.SMProxy.GetNumberOfOutputPorts()))
    kinds = {output: own_view(output) for output in outputs}
    kind = next(kind for kind in kinds.values() if kind not in ("None", "SpreadSheetView"))
    show(name, *(output for output in outputs if kinds[output] == kind), kind=kind)


def text(name, lines, size=14):
    """Saves lines of text, as a table or a script."""
    view = s.CreateRenderView(ViewSize=SIZE, OrientationAxesVisibility=0)
    shown = s.Show(s.Text(Text="\n".join(lines)), view)
    shown.FontFamily, shown.FontSize = "Courier", size
    shown.WindowLocation, shown.Justification = "Upper Left Corner", "Left"
    picture(name, view)


def cut(title, count, all_count, things):
    """The first line above a list: its title, and how much of it follows."""
    return [f"{title}: {count} of {all_count} {things}" if count < all_count else f"{title}: {count} {things}", ""]


def rows_of(title, table, columns, count, first=0):
    """Some columns of rows of a table, one row per line below a title; a middle dot for the space of a token."""
    data = s.servermanager.Fetch(table)
    lines = cut(title, count, data.GetNumberOfRows(), "rows")
    lines.append("".join(f"{name:14}" for name in columns))
    for row in range(first, first + count):
        line = ""
        for name in columns:
            value = data.GetColumnByName(name).GetValue(row)
            word = str(value).replace(" ", "\u00b7").replace("\n", "\\n")
            shown = f"{value:.3f}" if isinstance(value, float) else word
            line += f"{shown:14}"
        lines.append(line)
    return lines


def small():
    return s.AttentionOnlyModelReader(FileNames=[MODEL])


def gpt2():
    return s.RecordingReader(FileName=GPT2)


def transformer(name="language-2"):
    """A model of Data/models, after its training."""
    reader = s.TransformerReader(registrationName=name, FileName=str(DATA / "models" / name / "config.json"))
    scene = s.GetAnimationScene()
    scene.UpdateAnimationUsingDataTimeSteps()
    if len(reader.TimestepValues) > 1:
        scene.AnimationTime = reader.TimestepValues[-1]
    return reader


def recorded(prompts=TEXT, name="language-2"):
    """A model of Data/models, and all that it computes of prompts."""
    reader = transformer(name)
    record = [word for part in ("QueriesAndKeys", "Values", "HeadOutputs", "Residual") for word in (part, "1")]
    return reader, s.TransformerRecorder(registrationName="Recording", Input=reader, Prompts=prompts, Record=record)


def explained(name, prompts=TEXT, **properties):
    """A filter of a recording and its model."""
    reader, recording = recorded(prompts)
    return getattr(s, name)(Input=recording, Model=reader, **properties)


def dictionary_features():
    """The tokens' embeddings as features of what the first layer reads."""
    data = (DATA / "models" / "language-2" / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    embedding = json.loads(data[8 : 8 + length])["embed.W_E"]
    begin, end = (8 + length + offset for offset in embedding["data_offsets"])
    vectors = numpy.frombuffer(data[begin:end], "<f2").reshape(embedding["shape"]).astype("<f4")
    vectors = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
    tensors = {"W_enc": vectors.T.copy(), "W_dec": vectors, "b_enc": numpy.zeros(len(vectors), "<f4"), "b_dec": 0 * vectors[0]}
    header, body = {}, b""
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [len(body), len(body) + values.nbytes]}
        body += values.tobytes()
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps(header).encode()
        file = pathlib.Path(folder, "sae_weights.safetensors")
        file.write_bytes(struct.pack("<Q", len(text)) + text + body)
        settings = {"architecture": "topk", "k": 3, "hook_name": "blocks.0.hook_resid_pre"}
        pathlib.Path(folder, "cfg.json").write_text(json.dumps(settings), encoding="utf-8")
        prompt = "And the king of Egypt spake unto Moses, and the king"
        show("DictionaryFeatures", *ports(explained("DictionaryFeatures", prompt, DictionaryFile=str(file)), 1))


#: Some sentences of the kind that the language model was trained on.
SENTENCES = """And the LORD spake unto Moses, saying, Speak unto the children of Israel.
And David said unto the men of Judah, The king shall come into the city of Jerusalem.
And Moses took the people out of the land of Egypt, and brought them unto the land of Israel.
The priest shall put the blood upon the altar, and burn the offering before the LORD.
And Jesus answered and said unto them, Hear the word of the Lord God.
And Saul went out against the city, and his servants with him, three hundred men."""


#: The words of its circuits.
WORDS = ["\u00b7" + word for word in "Moses Aaron David Saul king priest people Israel Judah Egypt the of".split()]


def embedded(**properties):
    """The recording of sentences, and the joint embedding of its queries and keys."""
    _, recording = recorded(SENTENCES)
    return recording, s.HeadEmbedding(Input=recording, Method="TSNE", **properties)


def drawn(path):
    """A disc before a plain ground, like the pictures that the vision transformer was trained on."""
    image = Image.new("RGB", (512, 512), (70, 110, 160))
    ImageDraw.Draw(image).ellipse((200, 130, 440, 370), fill=(240, 180, 60))
    image.resize((32, 32), Image.LANCZOS).save(path)
    return str(path)


def attention_only_model_reader():
    """The tensors of a small model and their shapes, one per line."""
    blocks = s.servermanager.Fetch(small(), 0)
    lines = cut("Small model trained-n5-h3", *[blocks.GetNumberOfBlocks()] * 2, "tensors")
    for index in range(blocks.GetNumberOfBlocks()):
        column = blocks.GetBlock(index).GetColumn(0)
        name = blocks.GetMetaData(index).Get(blocks.NAME())
        lines.append(f"{name:20}{column.GetNumberOfTuples():3} x {column.GetNumberOfComponents()}")
    text("AttentionOnlyModelReader", lines)


def transformer_reader():
    """The first tensors of a transformer, one per line."""
    table = s.servermanager.Fetch(transformer()).GetBlock(0)
    columns = [table.GetColumnByName(name) for name in ("Name", "Type", "Shape")]
    rows = [[str(column.GetValue(row)) for column in columns] for row in range(12)]
    title = cut("Model language-2", len(rows), table.GetNumberOfRows(), "tensors: name, type, shape")
    text("TransformerReader", title + [f"{name:28}{kind:5}{shape}" for name, kind, shape in rows])


def token_pairs():
    model = small()
    show("TokenPairs", s.AttentionTorus(Input=model), s.TokenPairs(Input=model))


def summable_colors():
    outputs = s.AttentionTorus(Input=small(), Quantities=["Output"])
    show("SummableColors", s.SummableColors(Input=outputs, Scale="SharedRange"))


def vocabulary():
    file = DATA / "models" / "language-2" / "tokenizer.json"
    text("VocabularyReader", rows_of("Tokens of language-2", s.VocabularyReader(FileName=str(file)), ("TokenId", "Token"), 12, first=300))


def random_prompts():
    show("RandomPrompts", s.RandomPrompts(Kind="RepeatedBlock", Length=64, Block=16))


def transformer_recorder():
    _, recording = recorded()
    show("TransformerRecorder", s.AttentionMap(Input=recording, Layer=LAYER, Head=HEAD))


def patch_attention():
    with tempfile.TemporaryDirectory() as folder:
        image = drawn(pathlib.Path(folder, "disc.png"))
        recording = s.TransformerRecorder(Input=transformer("vit"), Images=[image])
        shown = s.PatchAttention(Input=recording, Layer=1, Head=0, Patch=[3, 5])
        show("PatchAttention", *ports(shown, *range(5)))


def on_a_sphere():
    """120 tokens on a sphere by hand, which attend to a ring around them: the mesh, and its attention."""
    step = numpy.arange(120)
    z = 1 - (2 * step + 1) / len(step)
    angle = numpy.pi * (1 + 5**0.5) * step
    places = numpy.stack([numpy.sqrt(1 - z**2) * numpy.cos(angle), numpy.sqrt(1 - z**2) * numpy.sin(angle), z], axis=1)
    odds = numpy.exp(-40 * (places @ places.T - 0.5) ** 2)
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "attention.npy")
    numpy.save(path, (odds / odds.sum(axis=1, keepdims=True)).astype("f4")[None, None])
    numpy.savetxt(os.path.join(folder, "places.csv"), places / 2, delimiter=",", header="x,y,z", comments="")
    recording = s.RecordingReader(FileName=path)
    table = s.CSVReader(FileName=[os.path.join(folder, "places.csv")])
    tokens = s.TableToPoints(Input=table, XColumn="x", YColumn="y", ZColumn="z")
    mesh = s.Sphere(ThetaResolution=128, PhiResolution=128)
    bound = s.BindTokens(Input=mesh, Recording=recording, Method="Nearest", TokenPositions=tokens)
    return bound, s.SpatialAttention(
        Input=bound, Recording=recording, QueryBy="Probe", Probe=[0.1, -0.5, 0.1], Bend=0.3, Count=12
    )


def mmcif_reader():
    """Two helices, as proteins have them: 3.6 residues per turn, 1.5 angstroms apart."""
    items = ("group_PDB", "label_atom_id", "auth_asym_id", "auth_seq_id", "Cartn_x", "Cartn_y", "Cartn_z")
    lines = ["data_helices", "loop_", *(f"_atom_site.{item}" for item in items)]
    for chain, side in (("A", 0), ("B", 10)):
        for residue in range(40):
            for atom, radius, turn, rise in (("N", 1.5, -0.47, -0.9), ("CA", 2.3, 0, 0), ("C", 1.6, 0.45, 1.1)):
                angle = residue * 2 * numpy.pi / 3.6 + turn
                x, y, z = radius * numpy.cos(angle) + side, radius * numpy.sin(angle), 1.5 * residue + rise
                lines.append(f"ATOM {atom} {chain} {residue + 1} {z:.3f} {x:.3f} {y:.3f}")
    path = os.path.join(tempfile.mkdtemp(), "helices.cif")
    pathlib.Path(path).write_text("\n".join(lines) + "\n")
    view = s.CreateRenderView(ViewSize=SIZE, OrientationAxesVisibility=0)
    s.Show(s.OutputPort(s.MmcifReader(FileName=path), 1), view)
    s.ResetCamera(view)
    picture("MmcifReader", view)


def bind_tokens():
    bound = on_a_sphere()[0]
    view = s.CreateRenderView(ViewSize=SIZE, OrientationAxesVisibility=0)
    s.Show(bound, view)
    view.CameraPosition, view.CameraViewUp = [0.3, -3, 0.8], [0, 0, 1]
    s.ResetCamera(view)
    picture("BindTokens", view)


def spatial_attention():
    show("SpatialAttention", *ports(on_a_sphere()[1], 0, 1, 2), direction=[0.3, -3, 0.8])


def geometry_example(name, data, query, count=3, **binding):
    """An example on geometry with the mean attention of a query."""
    recording = s.RecordingReader(FileName=str(DATA / "geometry" / f"{name}.safetensors"))
    bound = s.BindTokens(Input=data, Recording=recording, **binding)
    return s.SpatialAttention(Input=bound, Recording=recording, Head=-1, Count=count, **query)


def balls(data, size):
    """Balls at points, which keep the arrays of the points."""
    glyph = s.Glyph(Input=data, GlyphType="Sphere", ScaleFactor=size, GlyphMode="All Points")
    glyph.ScaleArray = ["POINTS", "No scale array"]
    glyph.GlyphType.ThetaResolution = glyph.GlyphType.PhiResolution = 24
    return glyph


def shown_attention(view):
    """What a view shows with the array Attention on its points."""
    sources = [shown.Input for shown in view.Representations if hasattr(shown, "ColorArrayName") and shown.Visibility]
    return [source for source in sources if source.PointData.GetArray("Attention")]


def example_view(name, direction, up=(0, 0, 1), zoom=1, keeps_colors=False):
    view = s.GetActiveView()
    heat = s.GetColorTransferFunction("Attention")  # also where filters of ParaView show it
    if not keeps_colors:
        heat.ApplyPreset("Inferno (matplotlib)", True)
    largest = max(source.PointData["Attention"].GetRange()[1] for source in shown_attention(view))
    heat.RescaleTransferFunction(0, largest)
    for shown in view.Representations:
        if getattr(shown, "ColorArrayName", ["", ""])[1] == "Attention":
            shown.SetScalarBarVisibility(view, True)
    bar = s.GetScalarBar(heat, view)
    bar.Title, bar.ComponentTitle, bar.RangeLabelFormat = "Attention of the query", "", bar.LabelFormat
    view.CameraPosition = [f + d for f, d in zip(view.CameraFocalPoint, direction)]
    view.CameraViewUp = up
    s.ResetCamera(view)
    view.GetActiveCamera().Zoom(zoom)
    picture(name, view)


def protein_contacts():
    view = s.CreateRenderView(ViewSize=SIZE, OrientationAxesVisibility=0)
    reader = s.MmcifReader(FileName=str(DATA / "models" / "protein" / "chain.pdb"))
    shown = geometry_example("protein", s.OutputPort(reader, 1), {"Token": 16}, 4, Method="Residues")
    s.Show(s.OutputPort(shown, 0), view)
    for port in (1, 2):
        s.Show(s.OutputPort(shown, port), view)
    example_view("ProteinContacts", (2, -3, 1), zoom=1.1, keeps_colors=True)


def contact_map():
    recording = s.RecordingReader(FileName=str(DATA / "geometry" / "protein.safetensors"))
    show("ContactMap", *ports(s.ContactMap(Input=recording), 0))


def mutation_scan():
    model = s.TransformerReader(FileName=str(DATA / "models" / "protein" / "config.json"), Checkpoints=0)
    show("MutationScan", *ports(s.MutationScan(Input=model, Protein="GFGPGCLCSSGSGIGCGTTQTPGKWPDPMMGPMPMP"), 1))


def volume_blocks():
    view = s.CreateRenderView(ViewSize=SIZE, OrientationAxesVisibility=0)
    volume = s.XMLImageDataReader(FileName=[str(DATA / "geometry" / "volume.vti")])
    grid = {"PatchSize": [4, 4, 4], "PatchCounts": [4, 4, 4], "FirstToken": 1}
    shown = geometry_example("volume", volume, {"Token": 13}, 1, Method="Grid", Places="Cells", **grid)
    dense = s.CellDatatoPointData(Input=s.OutputPort(shown, 0))
    inside = s.Contour(Input=dense, ContourBy=["POINTS", "Density"], Isosurfaces=[110])
    shapes = s.Show(inside, view)
    s.ColorBy(shapes, None)
    shapes.Opacity = 0.35
    key = s.Threshold(Input=s.OutputPort(shown, 0), Scalars=["CELLS", "Attention"])
    key.LowerThreshold, key.UpperThreshold, key.ThresholdMethod = 0.1, 1, "Between"
    block = s.Show(key, view, "UnstructuredGridRepresentation")
    s.ColorBy(block, ("CELLS", "Attention"))
    for port in (1, 2):
        s.Show(s.OutputPort(shown, port), view)
    s.Show(s.Outline(Input=volume), view)
    example_view("VolumeBlocks", (2, -3, 1.2))


def nearest_landmarks():
    view = s.CreateRenderView(ViewSize=SIZE, OrientationAxesVisibility=0)
    cloud = s.XMLPolyDataReader(FileName=[str(DATA / "geometry" / "points.vtp")])
    query = {"QueryBy": "Probe", "Probe": [0, -0.6, 0.2]}
    shown = geometry_example("points", cloud, query, Method="Array", TokenArray="Token")
    s.ColorBy(s.Show(balls(s.OutputPort(shown, 0), 0.07), view), ("POINTS", "Attention"))
    marks = s.Threshold(Input=cloud, Scalars=["POINTS", "Landmark"])
    marks.LowerThreshold, marks.UpperThreshold, marks.ThresholdMethod = 1, 1, "Between"
    ring = s.Show(balls(marks, 0.14), view)
    s.ColorBy(ring, None)
    ring.Opacity = 0.3
    for port in (1, 2):
        s.Show(s.OutputPort(shown, port), view)
    s.Show(s.Outline(Input=cloud), view)
    example_view("NearestLandmarks", (1.5, -3, 1))


def heat_slices():
    view = s.CreateRenderView(ViewSize=SIZE, OrientationAxesVisibility=0)
    mesh = s.XMLUnstructuredGridReader(FileName=[str(DATA / "geometry" / "heat.vtu")])
    query = {"QueryBy": "Probe", "Probe": [0.12, 0.6, 0], "Layer": 1}
    shown = geometry_example("heat", mesh, query, 3, Method="Weights", WeightArray="Slices")
    s.ColorBy(s.Show(s.OutputPort(shown, 0), view), ("POINTS", "Attention"))
    regions = s.Show(s.Contour(Input=mesh, ContourBy=["POINTS", "Region"], Isosurfaces=[0.5]), view)
    s.ColorBy(regions, None)
    regions.DiffuseColor, regions.LineWidth = [0, 0, 0], 2
    for port in (1, 2):
        s.Show(s.OutputPort(shown, port), view)
    example_view("HeatSlices", (0, 0, 1), up=(0, 1, 0))


def head_scores():
    shown = s.HeadScores(Input=recorded()[1])
    show("HeadScores", *ports(shown, 1, 2))


def expert_routing():
    """Of a model with random weights: no trained one with experts is small enough."""
    folder = ROOT / "Testing" / "Oracle" / "models" / "transformers" / "qwen2_moe"
    reader = s.TransformerReader(FileName=str(folder / "config.json"))
    ids = " ".join(str((17 * t + 5) % 97) for t in range(14))
    recording = s.TransformerRecorder(Input=reader, TokenIds=ids, Record=["Routing", "1"])
    show("ExpertRouting", *ports(s.ExpertRouting(Input=recording, Show="Experts"), 0))


def token_colors():
    heads = embedded()[1]
    show("TokenColors", s.TokenColors(Input=heads, By="Norm"), *ports(heads, 2))


def token_search():
    heads = embedded()[1]
    found = s.TokenSearch(Input=heads, Match="Whole", Text="of")
    show("TokenSearch", *ports(found, 0, 1), *ports(heads, 2))


def attention_lines():
    recording, points = embedded(Layer=LAYER, Head=HEAD)
    show("AttentionLines", s.AttentionLines(Input=points, Recording=recording, Top=1), s.TokenColors(Input=points))


def score_breakdown():
    reader, recording = recorded(name="language-alibi")
    scores = s.ScoreBreakdown(Input=recording, Model=reader, Layer=1, Head=1, Top=1)
    show("ScoreBreakdown", scores, kind="XYPointChartView")


def shared_tokens():
    show("SharedTokens", s.SharedTokens(Input=explained("AttentionTokens")))


def attention_token_layout():
    reader, recording = recorded()
    tokens = s.AttentionTokens(Input=recording, Model=reader)
    show("AttentionTokenLayout", s.AttentionTokenLayout(Input=tokens, Model=reader))


def activation_patching():
    effects = s.ActivationPatching(
        Input=transformer(),
        Prompt="And the king of Egypt and the king of",
        PatchFrom="And the king of Judah and the king of",
    )
    show("ActivationPatching", *ports(effects, 1))


def attributed(**properties):
    return s.AttributionPatching(
        Input=transformer(),
        Prompt="And the king of Egypt and the king of",
        PatchFrom="And the king of Judah and the king of",
        **properties,
    )


def circuit_reader():
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder, "king.circuit"))
        s.SaveData(path, proxy=attributed(Top=20))
        show("CircuitReader", *ports(s.CircuitReader(FileName=path), 0, 3))


def bigram_table():
    bigrams = s.BigramTable(Input=transformer(), Tokens=["\u00b7children", "\u00b7Jerusalem"], Top=5)
    text("BigramTable", rows_of("language-2: bigrams", bigrams, ("Token", "Rank", "Next Token", "Logit"), 10))


def skip_trigrams():
    trigrams = s.SkipTrigrams(Input=transformer(), Layer=LAYER, Head=HEAD, Tokens=WORDS)
    text("SkipTrigrams", rows_of(f"language-2, layer {LAYER}, head {HEAD}: skip-trigrams", trigrams, ("Source", "Destination", "Output", "Score"), 12))


def corpus():
    """What the heads of the language model do over the King James Bible."""
    return s.CorpusReader(FileName=CORPUS)


def corpus_statistics():
    """Some statistics of all heads, as bars."""
    show("CorpusStatistics", corpus(), kind="XYBarChartView")


def corpus_reader():
    """Some statistics of each head, one head per line."""
    text("CorpusReader", rows_of("language-2 over a corpus", corpus(), ("Layer", "Head", "Entropy", "Sink Rate", "Induction"), 16))


def head_token_table():
    """The tokens to which an induction head attends most, each time that they occur."""
    tokens = s.HeadTokenTable(Input=corpus(), Layer=LAYER, Head=HEAD, SortBy="To", MinimumOccurrences=1000)
    title = f"language-2, layer {LAYER}, head {HEAD}: tokens of a corpus"
    text("HeadTokenTable", rows_of(title, tokens, ("Token", "Occurrences", "To", "From", "To Distance"), 16))


def unembedding_sphere():
    show("UnembeddingSphere", *ports(s.UnembeddingSphere(Input=small()), 0, 1, 2), direction=(1, -0.6, 0.7))


def torus_deformation():
    show("TorusDeformation", s.TorusDeformation(Input=s.AttentionTorus(Input=small())), direction=(0.3, -1, 0.8))


#: What a filter is shown with, by the format of its input.
EXAMPLES = {
    "attention-atlas.attention-only": small,
    "attention-atlas.recording": gpt2,
    "attention-atlas.transformer": transformer,
    "attention-atlas.corpus": corpus,
}
#: What each name renders; a filter that is not here is shown by first_view.
PICTURES = {
    "AttentionOnlyModelReader": attention_only_model_reader,
    "TokenPairs": token_pairs,
    "TorusDeformation": torus_deformation,
    "SummableColors": summable_colors,
    "UnembeddingSphere": unembedding_sphere,
    "WordCircle": lambda: show("WordCircle", *ports(s.WordCircle(Input=small()), 0, 1), direction=(1, -0.3, 0.25)),
    "ScoreHarmonics": lambda: show(
        "ScoreHarmonics", s.ScoreHarmonics(Input=small()), kind="XYBarChartView", BottomAxisLabelFontSize=9
    ),
    "HarmonicHead": lambda: show("HarmonicHead", s.HarmonicHead()),
    "AttentionOnlyTraining": lambda: show(
        "AttentionOnlyTraining", *ports(s.AttentionOnlyTraining(), 1), kind="XYChartView"
    ),
    "AttentionOnlyModelWriter": lambda: text("AttentionOnlyModelWriter", ["SaveData('model.safetensors', model)"]),
    "TransformerTraining": lambda: show(
        "TransformerTraining", *ports(s.TransformerTraining(Steps=500, MeasureEvery=20), 1), kind="XYChartView"
    ),
    "TransformerWriter": lambda: text("TransformerWriter", ["SaveData('trained/config.json', training)"]),
    "TransformerReader": transformer_reader,
    "VocabularyReader": vocabulary,
    "RandomPrompts": random_prompts,
    "TransformerRecorder": transformer_recorder,
    "RecordingReader": lambda: show("RecordingReader", s.AttentionMap(Input=gpt2(), Layer=0, Head=5)),
    "AttentionMap": lambda: show("AttentionMap", s.AttentionMap(Input=gpt2(), Layer=4, Head=11)),
    "AttentionMatrix": lambda: show("AttentionMatrix", *ports(s.AttentionMatrix(Input=recorded()[1]), 0, 1)),
    "AttentionSentence": lambda: show(
        "AttentionSentence", *ports(s.AttentionSentence(Input=gpt2(), Layer=4, Heads=[3, 11]), 0, 1, 2)
    ),
    "PatchAttention": patch_attention,
    "MmcifReader": mmcif_reader,
    "BindTokens": bind_tokens,
    "SpatialAttention": spatial_attention,
    "ContactMap": contact_map,
    "MutationScan": mutation_scan,
    "ProteinContacts": protein_contacts,
    "VolumeBlocks": volume_blocks,
    "NearestLandmarks": nearest_landmarks,
    "HeatSlices": heat_slices,
    "HeadEmbedding": lambda: show("HeadEmbedding", *ports(embedded()[1], 0, 2)),
    "TokenColors": token_colors,
    "TokenSearch": token_search,
    "AttentionLines": attention_lines,
    "ScoreBreakdown": score_breakdown,
    "HeadUpdates": lambda: show("HeadUpdates", s.HeadUpdates(Input=recorded(SENTENCES)[1]), kind="XYPointChartView"),
    "ExpertRouting": expert_routing,
    "HeadScores": head_scores,
    "AttentionTokens": lambda: show(
        "AttentionTokens",
        *ports(explained("AttentionTokens", "And the king of Egypt and the king of", Layer=LAYER, Head=HEAD), 1, 4),
    ),
    "SharedTokens": shared_tokens,
    "AttentionTokenLayout": attention_token_layout,
    "RecordingWriter": lambda: text("RecordingWriter", ["SaveData('run.safetensors', recording)"]),
    "BigramTable": bigram_table,
    "HeadCircuit": lambda: show(
        "HeadCircuit", *ports(s.HeadCircuit(Input=transformer(), Layer=LAYER, Head=HEAD, Tokens=WORDS), 1)
    ),
    "SkipTrigrams": skip_trigrams,
    "DictionaryFeatures": dictionary_features,
    "LogitAttribution": lambda: show("LogitAttribution", *ports(explained("LogitAttribution"), 1)),
    "LogitLens": lambda: show(
        "LogitLens", *ports(explained("LogitLens", "And king of Egypt, king of"), 0, 2)
    ),
    "ScoreAttribution": lambda: show(
        "ScoreAttribution", *ports(explained("ScoreAttribution", Layer=LAYER, Head=HEAD), 0)
    ),
    "ActivationPatching": activation_patching,
    "AttributionPatching": lambda: show("AttributionPatching", *ports(attributed(), 0, 3)),
    "CircuitReader": circuit_reader,
    "CircuitWriter": lambda: text("CircuitWriter", ["SaveData('induction.circuit', attribution)"]),
    "QueryKeyContrast": lambda: show(
        "QueryKeyContrast", *ports(s.QueryKeyContrast(Input=recorded(SENTENCES)[1]), 0, 2)
    ),
    "CorpusStatistics": corpus_statistics,
    "CorpusReader": corpus_reader,
    "HeadScatter": lambda: show(
        "HeadScatter", *ports(s.HeadScatter(Input=corpus(), SizeColumn="Written Norm"), 0, 1, 2)
    ),
    "TopContexts": lambda: show(
        "TopContexts", *ports(s.TopContexts(Input=corpus(), Layer=LAYER, Head=HEAD, Around=4), 1), zoom=1.5
    ),
    "HeadTokenTable": head_token_table,
    "ScoreParts": lambda: show("ScoreParts", *ports(s.ScoreParts(Input=corpus(), Layer=LAYER, Head=HEAD), 2), zoom=1.4),
    "CorpusWriter": lambda: text("CorpusWriter", ["SaveData('corpus.safetensors', statistics)"]),
}


def begin():
    """Starts a new session."""
    s.ResetSession()
    s.LoadPalette("WhiteBackground")
    s.LoadPlugin(os.environ["ATLAS_PLUGIN"], remote=False, ns=vars(s))
    # Legends as by default, whatever the user's settings say.
    vtkPVGeneralSettings.GetInstance().SetScalarBarMode(vtkPVGeneralSettings.AUTOMATICALLY_HIDE_SCALAR_BARS)


def main(names):
    more = {"window": window, "training": training, "page": page, "article": article}
    shown = [name for name in FILTERS if (IMAGES / f"{name}.png").exists() and name not in PICTURES]
    for name in names or [*PICTURES, *shown]:
        begin()
        ({**PICTURES, **more}.get(name) or functools.partial(first_view, name))()


main(sys.argv[1:])
