"""Renders the images of the help pages and of Reference.md: what each proxy shows after Apply.

    ATLAS_PLUGIN=.../AttentionAtlas.so xvfb-run -a pvpython pictures.py TRANSFORMER/config.json

Any small transformer will do; the other inputs ship in Data. Writes Documentation/pictures/NAME.png. These
files are committed, so look at them first.
"""

import json
import os
import pathlib
import struct
import sys
import tempfile

import numpy
from paraview import simple as s
from PIL import Image, ImageChops, ImageDraw, ImageOps

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = ROOT / "Plugin" / "Documentation" / "pictures"
DATA = ROOT / "Data"
#: The size in pixels before margins are cut. Images are rendered at twice this size, to smooth text and edges.
SIZE = (600, 400)
MARGIN = 12
MODEL = str(DATA / "trained-n5-h3.safetensors")
RECORDING = str(DATA / "recordings" / "gpt2-data-visualization.safetensors")


def save(name, view, scale=2):
    """Saves an image of a view, rendered larger and scaled down, and starts a new session."""
    path = IMAGES / f"{name}.png"
    s.SaveScreenshot(str(path), view, ImageResolution=[scale * side for side in SIZE])
    image = Image.open(path).convert("RGB").resize(SIZE, Image.LANCZOS)
    content = ImageChops.difference(image, Image.new("RGB", SIZE, "white")).getbbox()
    margins = (-MARGIN, -MARGIN, MARGIN, MARGIN)
    image = ImageOps.expand(image, MARGIN, "white").crop(
        [edge + MARGIN + margin for edge, margin in zip(content, margins)]
    )
    image.save(path, optimize=True)
    begin()


def begin():
    s.ResetSession()
    s.LoadPlugin(os.environ["ATLAS_PLUGIN"], remote=False, ns=globals())


def render_view():
    view = s.CreateRenderView(ViewSize=SIZE, OrientationAxesVisibility=0, UseColorPaletteForBackground=0)
    view.Background = [1, 1, 1]
    return view


def show(name, *sources, direction=None, zoom=1.0):
    """Saves an image of sources after Apply. direction: from the center to the camera; None: from above."""
    view = render_view()
    for source in sources:
        s.Show(source, view)
    s.ResetCamera(view)
    if direction is not None:
        view.CameraPosition = [f + d for f, d in zip(view.CameraFocalPoint, direction)]
        view.CameraViewUp = [0, 0, 1]
        s.ResetCamera(view)
    s.GetActiveCamera().Zoom(zoom)
    save(name, view)


def chart(name, kind, source, series, title, bottom, x=None):
    """Saves a chart of columns of a table, over the column x or over the row numbers."""
    view = s.CreateView(kind, ViewSize=SIZE)
    view.ChartTitle, view.BottomAxisTitle = title, bottom
    view.ChartTitleFontSize = view.BottomAxisTitleFontSize = 16
    view.BottomAxisLabelFontSize = view.LeftAxisLabelFontSize = view.LegendFontSize = 14
    shown = s.Show(source, view)
    shown.UseIndexForXAxis = int(x is None)
    if x is not None:
        shown.XArrayName = x
    shown.SeriesVisibility = series
    colors = iter(("0.90 0.62 0", "0 0.45 0.70", "0 0.62 0.45"))
    shown.SeriesColor = [word for one in series for word in (one, *next(colors).split())]
    if hasattr(shown, "SeriesLineThickness"):
        shown.SeriesLineThickness = [word for one in series for word in (one, "3")]
    save(name, view, scale=1)


def text(name, lines, size=24):
    view = render_view()
    shown = s.Show(s.Text(Text="\n".join(lines)), view)
    shown.FontFamily, shown.FontSize, shown.Color = "Courier", size, [0, 0, 0]
    shown.WindowLocation, shown.Justification = "Upper Left Corner", "Left"
    save(name, view)


def model():
    return AttentionOnlyModelReader(FileNames=[MODEL])


def tensors_of(source):
    """The tensors of a small model and their shapes, one per line."""
    blocks = s.servermanager.Fetch(source, 0)
    lines = []
    for index in range(blocks.GetNumberOfBlocks()):
        column = blocks.GetBlock(index).GetColumn(0)
        name = blocks.GetMetaData(index).Get(blocks.NAME())
        lines.append(f"{name:20}{column.GetNumberOfTuples():3} x {column.GetNumberOfComponents()}")
    return lines


def weights_of(source):
    """The first tensors of a transformer, one per line."""
    table = s.servermanager.Fetch(source).GetBlock(0)
    columns = [table.GetColumnByName(name) for name in ("Name", "Type", "Shape")]
    rows = [[str(column.GetValue(row)) for column in columns] for row in range(12)]
    return [f"{name:48}{kind:5}{shape}" for name, kind, shape in rows]


def embedding(transformer, **properties):
    """The recording of random tokens, and the embedding of their queries and keys."""
    prompts = RandomPrompts(Count=24, Length=24, IdRange=[0, 199])
    recording = TransformerRecorder(Input=TransformerReader(FileName=transformer), Tokens=prompts)
    return recording, HeadEmbedding(Input=recording, Method="TSNE", **properties)


def recorded(transformer):
    """A transformer, and the recording of random tokens with what its heads write."""
    reader = TransformerReader(FileName=transformer)
    record = ["QueriesAndKeys", "1", "Values", "1", "HeadOutputs", "1", "Residual", "1"]
    prompts = RandomPrompts(Length=24, IdRange=[0, 199])
    return reader, TransformerRecorder(Input=reader, Tokens=prompts, Record=record)


def vision_transformer(folder):
    """The random vision transformer of the tests for images of 14 x 14 patches in place of 4 x 4, by linear
    interpolation of its position embeddings, as is usual; its config.json."""
    source = ROOT / "Testing" / "Oracle" / "transformers" / "vit"
    code = (source / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", code[:8])
    header = json.loads(code[8 : 8 + length])
    name = "embeddings.position_embeddings"
    begin, end = header[name]["data_offsets"]
    positions = numpy.frombuffer(code[8 + length + begin : 8 + length + end], "<f4").reshape(17, 32)
    finer = positions[1:].reshape(4, 4, 32)
    for axis in (0, 1):
        place = numpy.linspace(0, 3, 14)
        below = numpy.minimum(place.astype(int), 2)
        part = (place - below).reshape([-1 if i == axis else 1 for i in range(3)])
        finer = (1 - part) * finer.take(below, axis) + part * finer.take(below + 1, axis)
    values = numpy.concatenate([positions[:1], finer.reshape(196, 32)]).astype("<f4").tobytes()
    header[name] = {"dtype": "F32", "shape": [1, 197, 32], "data_offsets": [begin, begin + len(values)]}
    for other, entry in header.items():
        if other != "__metadata__" and entry["data_offsets"][0] >= end:
            entry["data_offsets"] = [offset + len(values) - (end - begin) for offset in entry["data_offsets"]]
    text = json.dumps(header).encode()
    rest = code[8 + length :]
    file = struct.pack("<Q", len(text)) + text + rest[:begin] + values + rest[end:]
    (folder / "model.safetensors").write_bytes(file)
    config = json.loads((source / "config.json").read_text()) | {"image_size": 112}
    (folder / "config.json").write_text(json.dumps(config))
    return folder / "config.json"


def add_vocabulary(folder):
    """Adds the tokenizer of GPT-2 to the folder of a model; its vocabulary."""
    tokenizers = ROOT / "Testing" / "Oracle" / "transformers" / "tokenizers"
    for name in ("vocab.json", "merges.txt"):
        (folder / name).write_bytes((tokenizers / f"gpt2-{name}").read_bytes())
    return json.loads((folder / "vocab.json").read_text())


def write_model(folder, tensors, config):
    """Writes a transformer; its config.json."""
    header, data = {}, b""
    for name, values in tensors.items():
        code = values.astype("<f4").tobytes()
        offsets = [len(data), len(data) + len(code)]
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": offsets}
        data += code
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder / "config.json")


def language_model(folder):
    """A random transformer of 8 layers with the tokenizer of GPT-2; its config.json."""
    layers, d, count = 8, 48, len(add_vocabulary(folder))
    sizes = {"wte.weight": (count, d), "wpe.weight": (64, d), "ln_f.weight": (d,), "ln_f.bias": (d,)}
    for layer in range(layers):
        for name in ("ln_1", "ln_2"):
            sizes |= {f"h.{layer}.{name}.weight": (d,), f"h.{layer}.{name}.bias": (d,)}
        linears = (("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d), ("mlp.c_fc", d, 4 * d), ("mlp.c_proj", 4 * d, d))
        for name, rows, columns in linears:
            sizes |= {f"h.{layer}.{name}.weight": (rows, columns), f"h.{layer}.{name}.bias": (columns,)}
    random = numpy.random.default_rng(3)
    tensors = {
        name: 0.25 * random.standard_normal(shape) + ("ln_" in name and name.endswith("weight"))
        for name, shape in sizes.items()
    }
    config = {"model_type": "gpt2", "n_embd": d, "n_head": 8, "n_layer": layers, "n_positions": 64}
    return write_model(folder, tensors, config | {"vocab_size": count})


#: Words of the same kind, for the head of word_model.
WORDS = ("the of in to", "he she his her", "Monday Friday", "one two", "New York", "said was")


def word_model(folder):
    """A transformer with GPT-2's vocabulary and one head, which attends to words of the same kind and raises them;
    its config.json."""
    vocabulary = add_vocabulary(folder)
    random = numpy.random.default_rng(0)
    d, count = 32, len(vocabulary)
    embedding = random.normal(0, 0.1, (count, d))
    for kind, words in enumerate(WORDS):
        for place, word in enumerate(words.split()):
            embedding[vocabulary["\u0120" + word], [kind, 8 + 2 * kind + place % 2]] += (1, 0.5)
    tensors = {"wte": embedding, "wpe": random.normal(0, 1, (32, d))}
    layer = {"attn.c_attn": numpy.tile(2 * numpy.eye(d), 3), "attn.c_proj": numpy.eye(d)}
    layer |= {"mlp.c_fc": numpy.zeros((d, d)), "mlp.c_proj": numpy.zeros((d, d))}
    for name, weight in layer.items():
        tensors |= {f"h.0.{name}": weight, f"h.0.{name}.bias": numpy.zeros(weight.shape[1])}
    for name in ("h.0.ln_1", "h.0.ln_2", "ln_f"):
        tensors |= {name: numpy.ones(d), f"{name}.bias": numpy.zeros(d)}
    tensors = {name if name.endswith(".bias") else f"{name}.weight": values for name, values in tensors.items()}
    config = {"model_type": "gpt2", "n_embd": d, "n_head": 1, "n_layer": 1, "n_positions": 32, "n_inner": d}
    return write_model(folder, tensors, config | {"vocab_size": count})


def rows_of(table, columns, count, first=0):
    """Some columns of rows of a table, one row per line; a middle dot for the space of a token."""
    data = s.servermanager.Fetch(table)
    lines = ["".join(f"{name:14}" for name in columns)]
    for row in range(first, first + count):
        line = ""
        for name in columns:
            value = data.GetColumnByName(name).GetValue(row)
            shown = f"{value:.3f}" if isinstance(value, float) else str(value).replace(" ", "\u00b7")
            line += f"{shown:14}"
        lines.append(line)
    return lines


def circuits(folder):
    """The pictures of circuits of words."""
    path = word_model(folder)
    bigrams = BigramTable(Input=TransformerReader(FileName=path), Tokens=["\u00b7he", "\u00b7York"], Top=4)
    text("BigramTable", rows_of(bigrams, ("Token", "Rank", "Next Token", "Logit"), 8), size=18)
    circuit = HeadCircuit(Input=TransformerReader(FileName=path))
    show("HeadCircuit", s.OutputPort(circuit, 1), zoom=1.2)
    trigrams = SkipTrigrams(Input=TransformerReader(FileName=path))
    text("SkipTrigrams", rows_of(trigrams, ("Source", "Destination", "Output", "Score"), 10), size=18)


def sharpen(path):
    """Multiplies the logits of a transformer by 5, so that its predictions differ in their probability."""
    code = bytearray(path.read_bytes())
    (length,) = struct.unpack("<Q", code[:8])
    begin, end = (8 + length + at for at in json.loads(code[8 : 8 + length])["ln_f.weight"]["data_offsets"])
    code[begin:end] = (5 * numpy.frombuffer(code[begin:end], "<f4")).tobytes()
    path.write_bytes(code)


def products(path):
    """The pictures of spectra and products of heads. path: of a small transformer."""
    graph = HeadComposition(Input=TransformerReader(FileName=path))
    show("HeadComposition", s.OutputPort(graph, 0), s.OutputPort(graph, 2), zoom=1.2)
    spectra = HeadSpectra(Input=TransformerReader(FileName=path))
    show("HeadSpectra", *(s.OutputPort(spectra, port) for port in (1, 2, 3)), zoom=1.2)
    weights = VirtualWeights(Input=TransformerReader(FileName=path))
    show("VirtualWeights", s.OutputPort(weights, 0), s.OutputPort(weights, 2), zoom=1.2)
    ids = "5 17 101 8 42 5 17 101 8 42 5 17 3 9 8 5 42 101 77 23"
    recording = TransformerRecorder(Input=TransformerReader(FileName=path), TokenIds=ids)
    contrast = QueryKeyContrast(Input=recording)
    show("QueryKeyContrast", s.OutputPort(contrast, 0), s.OutputPort(contrast, 2), zoom=1.2)


def scene(path):
    """Draws a small landscape."""
    image = Image.new("RGB", (448, 448), (125, 175, 225))
    draw = ImageDraw.Draw(image)
    draw.ellipse((310, 40, 390, 120), fill=(255, 225, 110))
    draw.rectangle((0, 310, 448, 448), fill=(95, 150, 75))
    for peak, foot, top, color in ((120, 130, 110, (120, 115, 135)), (250, 110, 180, (145, 140, 155))):
        draw.polygon([(peak - foot, 310), (peak, top), (peak + foot, 310)], fill=color)
    draw.polygon([(96, 146), (120, 110), (144, 146)], fill=(245, 245, 250))
    draw.rectangle((290, 300, 390, 400), fill=(180, 65, 55))
    draw.polygon([(275, 305), (340, 240), (405, 305)], fill=(95, 55, 45))
    draw.rectangle((325, 340, 355, 400), fill=(245, 225, 165))
    image.resize((112, 112), Image.LANCZOS).save(path)
    return path


def patches(folder):
    """The outputs of PatchAttention on the picture."""
    reader = TransformerReader(FileName=str(vision_transformer(folder)))
    recording = TransformerRecorder(Input=reader, Images=[str(scene(folder / "scene.png"))])
    shown = PatchAttention(Input=recording, Layer=1, Head=2, Patch=[10, 10], ArrowThreshold=0.025)
    return [s.OutputPort(shown, port) for port in range(5)]


def main(transformer):
    IMAGES.mkdir(exist_ok=True)
    begin()
    text("AttentionOnlyModelReader", tensors_of(model()))
    show("AttentionTorus", AttentionTorus(Input=model()), zoom=1.3)
    first = model()
    show("TokenPairs", AttentionTorus(Input=first), TokenPairs(Input=first), zoom=1.3)
    areas = ClassAreas(Input=model())
    chart("ClassAreas", "XYBarChartView", areas, ["Area"], "Share of each class", "class", "Class")
    show("TorusDeformation", TorusDeformation(Input=AttentionTorus(Input=model())), direction=(0.3, -1, 0.8))
    outputs = AttentionTorus(Input=model(), Quantities=["Output"])
    show("SummableColors", SummableColors(Input=outputs, Scale="SharedRange"), zoom=1.3)
    sphere = UnembeddingSphere(Input=model())
    show("UnembeddingSphere", *(s.OutputPort(sphere, port) for port in range(3)), direction=(1, -0.6, 0.7))
    circle = WordCircle(Input=model())
    ports = [s.OutputPort(circle, port) for port in range(2)]
    show("WordCircle", *ports, direction=(1, -0.3, 0.25), zoom=1.6)
    show("HeadAccuracySimplex", HeadAccuracySimplex(Input=model()), zoom=1.3)
    chart("HeadAccuracy", "XYBarChartView", HeadAccuracy(Input=model()), ["Accuracy"],
          "Accuracy of each head alone, of all, and of any", "row")
    amplitudes = [f"Amplitude {head}" for head in range(3)]
    chart("ScoreHarmonics", "XYBarChartView", ScoreHarmonics(Input=model()), amplitudes,
          "Amplitudes of the scores of each head", "harmonic")
    show("HarmonicHead", HarmonicHead(), zoom=1.3)
    rows = s.OutputPort(AttentionOnlyTraining(), 1)
    chart("AttentionOnlyTraining", "XYChartView", rows, ["Loss", "Accuracy"], "A training", "step", "Step")
    rows = s.OutputPort(TransformerTraining(Steps=500, MeasureEvery=20), 1)
    series = ["Held-out Loss", "Induction", "Previous Token"]
    chart("TransformerTraining", "XYChartView", rows, series, "Induction heads form", "step", "Step")
    text("AttentionOnlyModelWriter", ["SaveData('model.safetensors', model)"])

    text("TransformerReader", weights_of(TransformerReader(FileName=transformer)), size=16)
    vocabulary = VocabularyReader(FileName=str(DATA / "models" / "language-2" / "tokenizer.json"))
    text("VocabularyReader", rows_of(vocabulary, ("TokenId", "Token"), 8, first=300), size=18)
    prompts = RandomPrompts(Kind="RepeatedBlock", Length=64, Block=16)
    title = "A block of 16 tokens, repeated"
    chart("RandomPrompts", "XYChartView", prompts, ["TokenId"], title, "position", "Position")
    reader = TransformerReader(FileName=transformer)
    recording = TransformerRecorder(Input=reader, TokenIds="5 17 101 8 42 5 17 101 8 42 5 17")
    show("TransformerRecorder", AttentionMap(Input=recording, Layer=1, Head=0), zoom=1.2)
    for name, layer, head in (("RecordingReader", 0, 5), ("AttentionMap", 4, 11)):
        recording = RecordingReader(FileName=RECORDING)
        show(name, AttentionMap(Input=recording, Layer=layer, Head=head), zoom=1.2)
    with tempfile.TemporaryDirectory() as folder:
        show("PatchAttention", *patches(pathlib.Path(folder)), zoom=1.2)
    with tempfile.TemporaryDirectory() as folder:
        reader = TransformerReader(FileName=language_model(pathlib.Path(folder)))
        show("ActivationPatching", s.OutputPort(ActivationPatching(Input=reader, Site="Residual"), 1), zoom=1.3)
    matrix = AttentionMatrix(Input=RecordingReader(FileName=RECORDING))
    show("AttentionMatrix", *(s.OutputPort(matrix, port) for port in range(2)), zoom=1.2)
    scores = HeadScores(Input=RecordingReader(FileName=RECORDING))
    image = s.OutputPort(scores, 1)
    view = render_view()
    s.ColorBy(s.Show(image, view), ("POINTS", "Previous Token"))
    s.Show(s.OutputPort(scores, 2), view)
    s.ResetCamera(view)
    save("HeadScores", view)
    sentence = AttentionSentence(Input=RecordingReader(FileName=RECORDING), Layer=4, Heads=[3, 11])
    show("AttentionSentence", *(s.OutputPort(sentence, port) for port in range(3)), zoom=1.5)
    heads = embedding(transformer)[1]
    show("HeadEmbedding", *(s.OutputPort(heads, port) for port in (0, 2)))
    recording, points = embedding(transformer)
    show("TokenColors", TokenColors(Input=points, By="RelativePosition"), zoom=1.2)
    recording, points = embedding(transformer)
    found = TokenSearch(Input=points, Match="TokenId", Text="17 18 19")
    show("TokenSearch", *(s.OutputPort(found, port) for port in range(2)), zoom=1.2)
    recording, points = embedding(transformer, Layer=1, Head=2)
    lines = AttentionLines(Input=points, Recording=recording, Top=1)
    show("AttentionLines", lines, TokenColors(Input=points), zoom=1.2)
    recording = RecordingReader(FileName=RECORDING)
    focus = AttentionFocus(Input=recording)
    chart("AttentionFocus", "XYChartView", focus, ["First Weight", "Self Weight"],
          "Mean attention of 144 heads to the first and to the same token", "row")
    reader, recording = recorded(transformer)
    scores = ScoreBreakdown(Input=recording, Model=reader, Layer=1, Head=1, Top=1)
    chart("ScoreBreakdown", "XYChartView", scores, ["ALiBi", "Bias", "Attention"],
          "Parts of the largest score of each query", "query", "Query")
    reader, recording = recorded(transformer)
    updates = HeadUpdates(Input=recording)
    chart("HeadUpdates", "XYPointChartView", updates, ["Magnitude"],
          "Magnitude of updates by their orientation", "orientation", "Orientation")
    reader, recording = recorded(transformer)
    tokens = AttentionTokens(Input=recording, Model=reader, Layer=1, Head=1)
    show("AttentionTokens", s.OutputPort(tokens, 1), s.OutputPort(tokens, 4), zoom=1.2)
    reader, recording = recorded(transformer)
    shared = SharedTokens(Input=AttentionTokens(Input=recording, Model=reader))
    show("SharedTokens", s.OutputPort(shared, 0), s.OutputPort(shared, 2), zoom=1.2)
    reader, recording = recorded(transformer)
    tokens = AttentionTokens(Input=recording, Model=reader)
    show("AttentionTokenLayout", AttentionTokenLayout(Input=tokens, Model=reader), zoom=1.2)
    prompts = "Then, Mary and John went to the store"
    for name, ports, properties in (
        ("LogitAttribution", (1,), {}),
        ("LogitLens", (0, 2), {}),
        ("ScoreAttribution", (0,), {"Layer": 2, "Head": 3}),
    ):
        with tempfile.TemporaryDirectory() as folder:
            config = language_model(pathlib.Path(folder))
            sharpen(pathlib.Path(folder, "model.safetensors"))
            reader = TransformerReader(FileName=config)
            record = ["QueriesAndKeys", "1", "HeadOutputs", "1", "Residual", "1"]
            recording = TransformerRecorder(Input=reader, Prompts=prompts, Record=record)
            shown = globals()[name](Input=recording, Model=reader, **properties)
            show(name, *(s.OutputPort(shown, port) for port in ports))
    with tempfile.TemporaryDirectory() as folder:
        circuits(pathlib.Path(folder))
    products(transformer)
    text("RecordingWriter", ["SaveData('run.safetensors', recording)"])


main(sys.argv[1])
