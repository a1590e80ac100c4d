"""The tutorial, played as a new user would: the clicks of each section, and what the window then has to show.

tutorial.py FOLDER DATA writes a session for each entry of SESSIONS, with a picture beside, and prints their names. As a script
of ParaView it makes the checks of TUTORIAL_SESSION, one after another, each time the session saves a state. TUTORIAL_LOG
then says "nothing" or what is not as the tutorial says.
"""

import csv
import json
import os
import pathlib
import struct
import sys
import zlib
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

WINDOW = "pqClientMainWindow"
PIPELINE = f"{WINDOW}/pipelineBrowserDock/pipelineBrowser"
PANEL = f"{WINDOW}/propertiesDock/propertiesPanel"
PROPERTIES = f"{PANEL}/scrollArea/qt_scrollarea_viewport/scrollAreaWidgetContents/PropertiesFrame/ProxyPanel"
LAYOUTS = f"{WINDOW}/centralwidget/MultiViewWidget/CoreWidget"
# In ParaView, the folder of the log, and no data: what sessions read is in them.
FOLDER, DATA = (
    (pathlib.Path(os.environ["TUTORIAL_LOG"]).parent, None) if "TUTORIAL_LOG" in os.environ
    else map(pathlib.Path, sys.argv[1:])
)
DIAGRAM, SPACE = "AttentionDiagram", "RenderView"
EMPTY = "EmptyView/scrollArea/qt_scrollarea_viewport/widgetFoo/ConvertActionsFrame"
SHEPHERD = "The LORD is my shepherd"


def frame_of(number, layout=1):
    """A cell of a layout, which may have a view."""
    return f"{LAYOUTS}/qt_tabwidget_stackedwidget/MultiViewWidget{layout}/Container/Frame.{number}"


class Session:
    """Clicks, and checks between them."""

    def __init__(self, name):
        self.name, self.events, self.checks = name, [], []

    def do(self, place, command, arguments=""):
        self.events.append((place, command, arguments))

    def menu(self, menu, action):
        self.do(f"{WINDOW}/menubar/{menu}", "activate", action)

    def open(self, file):
        self.menu("menu_File", "actionFileOpen")
        self.do(f"{WINDOW}/FileOpenDialog", "filesSelected", file)

    def reset(self):
        self.menu("menu_Edit", "actionDelete_All")

    def load_plugin(self):
        """By hand. CMake puts in the file, and how ParaView names the dialog."""
        manager = f"{WINDOW}/PluginManagerDialog"
        self.menu("menuTools", "actionManage_Plugins")
        self.do(f"{manager}/splitter/localGroup/loadLocal", "activate")
        self.do(f"{manager}/@ATLAS_FILE_DIALOG@", "filesSelected", "@ATLAS_PLUGIN@")
        self.do(f"{manager}/buttonBox/1QPushButton0", "activate")

    def apply(self):
        self.do(f"{PANEL}/Accept", "activate")

    def add(self, submenu, name, menu="menuFilters"):
        self.do(f"{WINDOW}/menubar", "activate", menu)
        self.menu(f"{menu}/Attention Atlas: {submenu}", name)

    def select(self, place):
        """The item of the pipeline browser at a place, as ParaView writes it."""
        self.do(PIPELINE, "currentChanged", place)

    def click_eye(self, place):
        """Of the item of the pipeline browser with these rows."""
        index = "".join(f"/{row}:0" for row in place[:-1]) + f"/{place[-1]}:1"
        for command, buttons in (("mousePress", 1), ("mouseRelease", 0)):
            self.do(PIPELINE, command, f"1,{buttons},0,8,8,{index}")

    def untick(self, name):
        """The box of a number that can be a choice in words."""
        self.do(f"{PROPERTIES}/{name}/CheckBox", "set_boolean", "false")

    def set(self, **values):
        """Properties by their names: numbers, lists of numbers, switches, words of a list, and texts."""
        for name, value in values.items():
            if isinstance(value, bool):
                self.do(f"{PROPERTIES}/{name}/CheckBox", "set_boolean", str(value).lower())
            elif isinstance(value, int):
                self.do(f"{PROPERTIES}/{name}/IntRangeWidget/LineEdit", "set_string", str(value))
            else:
                self.do(f"{PROPERTIES}/{name}/{name}", "set_string", value)

    def choose(self, name, words):
        self.do(f"{PROPERTIES}/{name}/ComboBox", "set_string", words)

    def mouse(self, frame, command, x, y, buttons=(1, 1), layout=1):
        arguments = f"({x},{y},{buttons[0]},{buttons[1]},0)"
        self.do(f"{frame_of(frame, layout)}/CentralWidgetFrame/Viewport/1QVTKOpenGLNativeWidget0", command, arguments)

    def click(self, frame):
        """Into a view."""
        self.mouse(frame, "mousePress", 0.5, 0.5)
        self.mouse(frame, "mouseRelease", 0.5, 0.5)

    def double_click(self, title, place):
        """A double click in the view with these words in its title, where a function says, in the coordinates of its data."""
        self.expect(double_clicked(title, place))

    def fix_size(self):
        """Gives views a size that does not depend on the version of ParaView."""
        self.menu("menuTools", "actionTesting_Window_Size")

    def expect(self, *checks):
        self.checks.append(checks)
        self.menu("menu_File", "actionFileSaveServerState")
        self.do(f"{WINDOW}/FileSaveServerStateDialog", "filesSelected", str(self.state(len(self.checks))))

    def state(self, number):
        """The file of the state with which a check is made, from 1."""
        return FOLDER / f"tutorial-{self.name}-{number}.pvsm"

    def save(self, name):
        """What is active, as a file."""
        self.menu("menu_File", "actionFileSaveData")
        self.do(f"{WINDOW}/FileSaveDialog", "filesSelected", str(FOLDER / name))
        self.do(f"{WINDOW}/WriterSettingsDialog/widget/OKButton", "activate")

    def export(self, name):
        """The active view."""
        self.menu("menu_File", "actionExport")
        self.do(f"{WINDOW}/FileExportDialog", "filesSelected", str(FOLDER / name))
        self.do(f"{WINDOW}/ProxyWidgetDialog/widget/OKButton", "activate")

    def save_screenshot(self, name):
        self.menu("menu_File", "actionFileSaveScreenshot")
        self.do(f"{WINDOW}/SaveScreenshotFileDialog", "filesSelected", str(FOLDER / name))
        self.do(f"{WINDOW}/SaveScreenshotDialog/widget/OKButton", "activate")

    def load_state(self, number):
        """That of a check, from 1."""
        self.menu("menu_File", "actionFileLoadServerState")
        self.do(f"{WINDOW}/FileLoadServerStateDialog", "filesSelected", str(self.state(number)))
        self.do("LoadStateOptionsDialog/widget/OKButton", "activate")

    def write(self, path):
        lines = [
            f"  <pqevent object={quoteattr(place)} command={quoteattr(command)} arguments={quoteattr(arguments)} />"
            for place, command, arguments in self.events
        ]
        path.write_text("\n".join(['<?xml version="1.0" ?>', "<pqevents>", *lines, "</pqevents>", ""]), encoding="utf-8")


# What is checked, in ParaView. A check gives what was expected and what was found.


def shown_views():
    """The views, with their titles."""
    from paraview import simple

    (layout,) = simple.GetLayouts().values()
    found = []
    for other in simple.GetViewsInLayout(layout):
        title = other.SMProxy.GetProperty("ShownTitle") or other.SMProxy.GetProperty("ChartTitle")
        found.append((other, other.SMProxy.GetXMLName(), title.GetElement(0) if title else ""))
    return found


def has_clear_border(view):
    """Whether nothing but the background is at the border of the picture of a diagram."""
    from vtkmodules.util.numpy_support import vtk_to_numpy

    image = view.SMProxy.CaptureWindow(1)
    width, height, _ = image.GetDimensions()
    pixels = vtk_to_numpy(image.GetPointData().GetScalars()).reshape(height, width, -1)[..., :3]
    return all((side == 255).all() for side in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]))


def views(*expected):
    """These views and no others: the type of each, and words of its title. What diagrams show is inside, unless they
    are smaller than 300 x 300, which not all are."""

    def check():
        found = shown_views()
        rest = list(found)
        for kind, *words in expected:
            fitting = [one for one in rest if one[1] == kind and all(word in one[2] for word in words)]
            if not fitting:
                break
            rest.remove(fitting[0])
        diagrams = [one for one in found if one[1] == DIAGRAM]
        looked_at = [one for one in diagrams if min(one[0].ViewSize) >= 300]
        cut = [title for view, _, title in looked_at if not has_clear_border(view)]
        sizes = [] if looked_at else [list(view.ViewSize) for view, _, _ in diagrams]
        fits = not rest and len(found) == len(expected) and not cut and not sizes
        return (expected, "nothing cut", "a large diagram"), [one[1:] for one in found] + cut + sizes, fits

    return check


def visible(*expected):
    """The visible sources of views in space."""

    def check():
        from paraview import simple

        names = {source.GetGlobalID(): name for (name, _), source in simple.GetSources().items()}
        found = {
            names[shown.SMProxy.GetProperty("Input").GetProxy(0).GetGlobalID()]
            for view, kind, _ in shown_views() if kind == SPACE for shown in view.Representations
            if "Input" in shown.ListProperties() and shown.Visibility
        }
        return set(expected), found, found == set(expected)

    return check


def value(expected, evaluate):
    """A value that is computed of what is shown, rounded as the tutorial has it."""

    def check():
        found = evaluate()
        return expected, found, found == expected

    return check


def double_clicked(title, place):
    """A double click, as the widget of a view gives it to the view's interactor."""

    def check():
        from paraview import simple

        (view,) = [one for one, _, shown in shown_views() if title in shown]
        renderer, interactor = view.SMProxy.GetRenderer(), view.SMProxy.GetInteractor()
        renderer.SetWorldPoint(*place(), 1)
        renderer.WorldToDisplay()
        at = [round(number) for number in renderer.GetDisplayPoint()[:2]]
        inside = all(0 < number < size for number, size in zip(at, view.ViewSize))
        simple.SetActiveView(view)
        interactor.SetEventInformation(*at)
        for event in ("LeftButtonPress", "LeftButtonRelease", "LeftButtonDoubleClick", "LeftButtonRelease"):
            interactor.InvokeEvent(f"{event}Event")
        return f"a place in {list(view.ViewSize)}", at, inside

    return check


def place_of(name, port=0, **numbers):
    """The middle of the cells or points with these values."""
    import numpy

    found = data(name, port)
    rows = numpy.all([array(name, key, port) == number for key, number in numbers.items()], axis=0).nonzero()[0]
    of_cells = found.GetCellData().HasArray(next(iter(numbers)))
    boxes = numpy.array([found.GetCell(row).GetBounds() if of_cells else numpy.repeat(found.GetPoint(row), 2) for row in rows])
    return [(boxes[:, 2 * axis].min() + boxes[:, 2 * axis + 1].max()) / 2 for axis in range(3)]


def data(name, port=0):
    from paraview import servermanager, simple

    return servermanager.Fetch(simple.FindSource(name), idx=port)


def array(name, array_name, port=0):
    """An array of rows, cells or points."""
    from vtkmodules.util.numpy_support import vtk_to_numpy

    found = data(name, port)
    tables = [found.GetRowData()] if found.IsA("vtkTable") else [found.GetCellData(), found.GetPointData()]
    values = next(table.GetAbstractArray(array_name) for table in tables if table.HasArray(array_name))
    if values.IsA("vtkStringArray"):
        return [values.GetValue(i) for i in range(values.GetNumberOfValues())]
    return vtk_to_numpy(values)


def words(name, field, port=0):
    """The texts of a field array."""
    values = data(name, port).GetFieldData().GetAbstractArray(field)
    return [values.GetValue(i) for i in range(values.GetNumberOfValues())]


def property_of(name, key):
    from paraview import simple

    return list(simple.FindSource(name).GetProperty(key))


def given(name, key, number):
    """Sets a number whose widget depends on the version of ParaView, and looks whether it is kept."""

    def check():
        from paraview import simple

        simple.FindSource(name).GetProperty(key).SetElement(0, number)
        return [number], property_of(name, key), property_of(name, key) == [number]

    return check


def heads_of(name):
    return set(zip(*(array(name, number) for number in ("Layer", "Head"))))


def weights(name):
    """The attention that a map shows: [queries, keys]."""
    values = array(name, "Weights")
    size = round(len(values) ** 0.5)
    return values.reshape(size, size)[::-1]


# The sections.


def small_model(session):
    session.load_plugin()
    session.open("$PARAVIEW_DATA_ROOT/trained-n5-h3.safetensors")
    session.apply()
    session.expect(
        views((SPACE, "Attention Torus")), visible("AttentionTorus1", "TokenPairs1"),
        value((25, 25), lambda: (len(array("TokenPairs1", "Correct")), int(array("TokenPairs1", "Correct").sum()))),
        value(25, right_areas),
    )
    session.select("/0/0/0|0")
    session.do(f"{WINDOW}/MainControlsToolbar/actionAutoApply", "set_boolean", "true")
    session.do(f"{PROPERTIES}/HeadWeights/Row1/Head1/DoubleLineEdit", "set_string", "0")
    session.do(f"{WINDOW}/MainControlsToolbar", "pause", "1000")
    session.expect(value(True, lambda: right_areas() < 25))
    session.do(f"{WINDOW}/MainControlsToolbar/actionAutoApply", "set_boolean", "false")
    session.do(f"{PROPERTIES}/HeadWeights/Reset", "activate")
    session.apply()
    session.expect(value(25, right_areas))
    session.add("Small Models", "TorusDeformation")
    session.apply()
    session.expect(views((SPACE, "Torus Deformation")), visible("TorusDeformation1"))


def right_areas():
    """How many pairs lie in an area of their own color."""
    import numpy
    from vtkmodules.util.numpy_support import vtk_to_numpy

    torus, pairs = data("AttentionTorus1"), data("TokenPairs1")
    classes = vtk_to_numpy(torus.GetPointData().GetArray("Class"))
    targets = vtk_to_numpy(pairs.GetPointData().GetArray("Target"))
    places = [torus.FindPoint(pairs.GetPoint(i)) for i in range(pairs.GetNumberOfPoints())]
    assert min(places) >= 0, "a pair is outside of the map"
    return int(numpy.sum(classes[places] == targets))


def heads(session):
    """Sections 2 to 4, on one recording."""
    session.open("$PARAVIEW_DATA_ROOT/recordings/language-2.safetensors")
    session.apply()
    session.select("/0/0/0|0")
    session.set(Sequence=2)
    session.apply()
    session.fix_size()
    session.expect(
        views((DIAGRAM, "Attention Matrix", SHEPHERD)),
        value(16, lambda: len(heads_of("AttentionMatrix1") - {(-1, -1)})),
    )
    session.double_click("Attention Matrix", lambda: place_of("AttentionMatrix1", Layer=0, Head=6))
    session.expect(
        views((DIAGRAM, "Attention Matrix"), (DIAGRAM, "Attention Map", "Layer 0", "Head 6", SHEPHERD)),
        value(0.98, lambda: round(float(weights("AttentionMap1").diagonal(-1).mean()), 2)),
    )
    session.set(Layer=1, Head=5)
    session.apply()
    session.expect(
        views((DIAGRAM, "Attention Matrix"), (DIAGRAM, "Attention Map", "Layer 1", "Head 5", SHEPHERD)),
        value([("ph", 0.47), ("ant", 0.96)], lambda: [
            (words("AttentionMap1", "Key Token")[row.argmax()].strip(), round(float(row.max()), 2))
            for row in weights("AttentionMap1")[[19, 27]]
        ]),
    )
    session.select("/0/0|0")
    session.add("Heads", "AttentionSentence")
    session.set(Sequence=2, Layer=1, Head=5)
    session.apply()
    shown = [
        (DIAGRAM, "Attention Matrix"), (DIAGRAM, "Attention Map"),
        (DIAGRAM, "Attention Sentence", "Layer 1", "Head 5", SHEPHERD),
    ]
    session.expect(views(*shown))
    session.do(frame_of(6) + "/actionSelectSurfacePoints", "set_boolean", "true")
    session.mouse(6, "mousePress", 0.25, 0.45)
    session.mouse(6, "mouseMove", 0.5, 0.7, (1, 0))
    session.mouse(6, "mouseRelease", 0.5, 0.7, (1, 0))
    session.expect(
        value(True, lambda: 0 < len(property_of("AttentionSentence1", "SelectedTokens")) < 30),
        value(True, lambda: set() < set(array("AttentionSentence1", "Query")) <= set(
            property_of("AttentionSentence1", "SelectedTokens")
        )),
    )
    session.select("/0/0|0")
    session.add("Heads", "HeadScores")
    session.apply()
    session.select("/0/0/3/1|0")
    session.do(f"{WINDOW}/variableToolbar/displayColor/Variables", "set_string", "Previous Token")
    session.expect(
        views(*shown, (DIAGRAM, "Head Scores", "Previous Token")),
        value((0.98, [0.0, 0.5]), lambda: (best_of(0, "Previous Token", 2), [best_of(n, "Prefix Matching", 1) for n in (0, 1)])),
    )
    saved(session, [*shown, (DIAGRAM, "Head Scores", "Previous Token")])


def saved(session, shown):
    """What the tutorial ends with, of the heads."""
    state = len(session.checks)
    session.save_screenshot("scores.png")
    session.export("scores.svg")
    session.export("scores.pdf")
    session.select("/0/0/3/0|0")
    session.save("scores.csv")
    session.expect(
        value((True, True), lambda: tuple(colors_in("scores.png", color) for color in (is_black, is_blue))),
        value([], lambda: [word for word in ("Head Scores", "Previous Token") if word not in " ".join(words_of_svg("scores.svg"))]),
        value(b"%PDF-", lambda: (FOLDER / "scores.pdf").read_bytes()[:5]),
        value((16, 0.98), lambda: (len(rows_of("scores.csv")), round(max(float(row["Previous Token"]) for row in rows_of("scores.csv")), 2))),
    )
    session.reset()
    session.load_state(state)
    session.expect(rendered(views(*shown)))


def rendered(check):
    """A check of views that have been loaded."""

    def made():
        from paraview import simple

        simple.RenderAllViews()
        return check()

    return made


def view_of(words):
    (found,) = [view for view, _, title in shown_views() if words in title]
    return found


def is_black(pixels):
    return (pixels < 64).all(axis=-1)


def is_blue(pixels):
    return (pixels[..., 2] > 128) & (pixels[..., 0] < 64)


def colors_in(name, is_color):
    """Whether a PNG file has a color."""
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOImage import vtkPNGReader

    reader = vtkPNGReader()
    reader.SetFileName(str(FOLDER / name))
    reader.Update()
    return bool(is_color(vtk_to_numpy(reader.GetOutput().GetPointData().GetScalars()).astype(int)[..., :3]).any())


def words_of_svg(name):
    return ["".join(text.itertext()) for text in ElementTree.parse(FOLDER / name).iter("{http://www.w3.org/2000/svg}text")]


def rows_of(name):
    with open(FOLDER / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def best_of(layer, score, digits):
    """The largest score of a head of a layer, in the table of Head Scores."""
    rows = zip(array("HeadScores1", "Layer"), array("HeadScores1", score))
    return round(max(float(value) for at, value in rows if at == layer), digits)


def points(session):
    session.reset()
    session.open("$PARAVIEW_DATA_ROOT/recordings/language-2.safetensors")
    session.apply()
    session.select("/0/0|0")
    session.add("Heads", "HeadEmbedding")
    session.choose("Method", "t-SNE")
    session.expect(given("HeadEmbedding1", "Perplexity", 30))
    session.apply()
    def space(*words):
        return views((DIAGRAM, "Attention Matrix"), (SPACE, *words))

    session.expect(
        space("Head Embedding", "t-SNE"), value(16 * 410, lambda: len(array("HeadEmbedding1", "Kind"))),
        value(["TSNE", 30], lambda: [property_of("HeadEmbedding1", key)[0] for key in ("Method", "Perplexity")]),
    )
    session.add("Tokens", "TokenColors")
    session.choose("By", "Position")
    session.apply()
    session.expect(space("Token Colors", "Colors by Position"), visible("TokenColors1", "HeadEmbedding1"))
    session.add("Tokens", "TokenSearch")
    session.set(Text="God")
    session.apply()
    shown = space("Token Search", "Text \u201cGod\u201d")
    session.expect(shown, visible("TokenSearch1", "HeadEmbedding1"))
    session.select("/0/0/1|0")
    session.add("Heads", "AttentionLines")
    session.apply()
    session.expect(shown, visible("TokenSearch1", "HeadEmbedding1", "AttentionLines1"))


def lens(session):
    """Section 4, from the recording."""
    session.reset()
    session.open("$PARAVIEW_DATA_ROOT/recordings/language-2.safetensors")
    session.apply()
    session.open("$PARAVIEW_DATA_ROOT/models/language-2/checkpoint-3000/config.json")
    session.apply()
    session.select("/0/0|0")
    session.add("Circuits", "LogitLens")
    session.set(Sequence=2)
    session.apply()
    shown = [(DIAGRAM, "Attention Matrix"), (DIAGRAM, "Logit Lens", SHEPHERD)]
    session.expect(views(*shown), value([("ity", 0.45), ("d", 0.29), ("d", 0.96)], lambda: [
        (token, round(float(probability), 2))
        for place, rank, token, probability in zip(*(
            array("LogitLens1", name, 1) for name in ("Position", "Rank", "Token", "Probability")
        )) if place == 21 and rank == 1
    ]))
    session.select("/0/0|0")
    session.add("Circuits", "LogitAttribution")
    session.set(Sequence=2)
    session.apply()
    shown.append((DIAGRAM, "Logit Attribution"))
    session.expect(views(*shown))
    session.select("/0/0|0")
    session.add("Circuits", "ScoreAttribution")
    session.untick("Query")
    session.untick("Key")
    session.set(Sequence=2, Layer=1, Head=5, Query=20, Key=6)
    session.apply()
    shown.append((DIAGRAM, "Score Attribution", "Layer 1", "Head 5", "Query 20 \u201cph\u201d", "Key 6 \u201cer\u201d"))
    session.expect(views(*shown))


def weights_of_model(session):
    """Section 4, from the model."""
    session.reset()
    session.open("$PARAVIEW_DATA_ROOT/models/language-2/checkpoint-3000/config.json")
    session.apply()
    session.fix_size()
    session.expect(views((DIAGRAM, "Head Composition")))
    session.double_click("Head Composition", lambda: place_of("HeadComposition1", 2, Layer=1, Head=5))
    shown = [(DIAGRAM, "Head Composition"), (DIAGRAM, "Circuit", "Layer 1", "Head 5")]
    session.expect(views(*shown))
    prompts = {
        "Prompt": "The LORD is my shepherd. The LORD is my she", "PatchFrom": "The LORD is my saviour. The LORD is my she"
    }
    session.select("/0/0|0")
    session.add("Circuits", "ActivationPatching")
    session.set(**prompts)
    session.apply()
    shown.append((DIAGRAM, "Activation Patching"))
    session.expect(views(*shown), value((0, 6, 0.6), strongest_patch))
    session.select("/0/0|0")
    session.add("Circuits", "AttributionPatching")
    session.set(**prompts)
    session.apply()
    shown.append((DIAGRAM, "Attribution Patching"))
    session.expect(views(*shown))
    session.choose("Circuit", "Circuits of edges")
    session.set(Top=100)
    session.apply()
    session.expect(views(*shown), value((0.9, 0.0), lambda: kept_by(100)))
    session.save("induction.circuit")
    session.expect(value(100, lambda: len(circuit_of("induction")["edges"])))
    session.choose("Circuit", "Circuits of nodes")
    session.set(Edges=False, Top=7)
    session.apply()
    session.expect(views(*shown), value(0.7, lambda: kept_by(7)[0]))
    session.save("nodes.circuit")
    session.expect(value((7, 0), lambda: tuple(len(circuit_of("nodes")[key]) for key in ("nodes", "edges"))))
    session.select("/0/0|0")
    session.add("Run and Train", "TransformerRecorder")
    session.set(Prompts=prompts["Prompt"], PatchFrom=prompts["PatchFrom"])
    session.do(f"{PROPERTIES}/CircuitFile/FileChooser/FileLineEdit", "set_string", str(FOLDER / "nodes.circuit"))
    session.apply()
    session.expect(
        views(*shown), value(prompts["Prompt"], lambda: recorded_text("TransformerRecorder1")),
        value((set(), prompts["PatchFrom"]), lambda: heads_without("nodes", *words("TransformerRecorder1", "Interventions"))),
    )


def features(session):
    """Section 4, what one head writes of a sparse dictionary."""
    session.reset()
    session.open("$PARAVIEW_DATA_ROOT/recordings/language-2.safetensors")
    session.apply()
    session.open("$PARAVIEW_DATA_ROOT/models/language-2/checkpoint-3000/config.json")
    session.apply()
    session.select("/0/0|0")
    session.add("Circuits", "DictionaryFeatures")
    file = f"{DATA}/dictionaries/language-2/sae_weights.safetensors"
    session.do(f"{PROPERTIES}/DictionaryFile/FileChooser/FileLineEdit", "set_string", file)
    session.set(Sequence=2)
    session.apply()
    shown = views((DIAGRAM, "Attention Matrix"), (DIAGRAM, "Dictionary Features", SHEPHERD))
    session.expect(
        shown, value(512, lambda: field_of("DictionaryFeatures1", "Features")),
        value(20, lambda: len(set(array("DictionaryFeatures1", "Feature", 1)))),
    )
    session.untick("Feature")
    session.set(Feature=90)
    session.apply()
    session.expect(
        shown, value("head 1.6", lambda: strongest_part("DictionaryFeatures1")),
        value([" my", " mine", " me"], lambda: array("DictionaryFeatures1", "Token", 3)[:3]),
    )


def field_of(name, field):
    """A number of the field data."""
    return int(data(name).GetFieldData().GetArray(field).GetValue(0))


def strongest_part(name):
    """The head that contributes most to a feature."""
    contributions = array(name, "Contribution", 2)
    heads = [row for row, head in enumerate(array(name, "Head", 2)) if head >= 0 and contributions[row] == contributions[row]]
    return array(name, "Component", 2)[max(heads, key=lambda row: contributions[row])]


def circuit_of(name):
    """What Save Data wrote."""
    return json.loads((FOLDER / f"{name}.circuit").read_text(encoding="utf-8"))


def heads_without(circuit, interventions):
    """The heads that are both or neither in a circuit and among those that a run replaced, and the text they are from."""
    heads, _, source = interventions.partition(" from another input: ")
    inside = {node.removeprefix("head ") for node in circuit_of(circuit)["nodes"]}
    return {f"{layer}.{head}" for layer in range(2) for head in range(8)} - (inside ^ set(heads.split(", "))), source


def recorded_text(name):
    """The tokens of a recording of one text, as this text."""
    tokens = data(name).GetBlock(0).GetColumnByName("Token")
    return "".join(tokens.GetValue(i) for i in range(tokens.GetNumberOfValues()))


def strongest_patch():
    """The head whose patch has the largest effect, and this."""
    effects = array("ActivationPatching1", "Effect")
    best = int(effects.argmax())
    return (*(int(array("ActivationPatching1", name)[best]) for name in ("Layer", "Head")), round(float(effects[best]), 1))


def kept_by(count):
    """What of the preference so many edges or nodes, or the next number in the table, keep, and what is left without."""
    row = next(i for i, size in enumerate(array("AttributionPatching1", "Size", 4)) if size >= count)
    return tuple(
        round(abs(float(array("AttributionPatching1", name, 4)[row])), 1) for name in ("Faithfulness", "Without Circuit")
    )


def write_disc(path):
    """The picture of the tutorial."""
    rows = b""
    for y in range(32):
        inside = [(y - 16) ** 2 + (x - 16) ** 2 < 81 for x in range(32)]
        rows += b"\0" + b"".join(bytes((235, 140, 30) if disc else (40, 60, 120)) for disc in inside)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    ))


def on_disc():
    """How much of the heat is on the patches of the disc, in that of the others."""
    import numpy

    rows, columns = numpy.mgrid[0:32, 0:32]
    disc = ((rows - 16) ** 2 + (columns - 16) ** 2 < 81).reshape(8, 4, 8, 4).mean(axis=(1, 3)) > 0.5
    heat = numpy.zeros((8, 8))
    for row, column, weight in zip(*(array("PatchAttention1", name) for name in ("Row", "Column", "Weight"))):
        if row >= 0:
            heat[row, column] = weight
    return round(float(heat[disc].mean() / heat[~disc].mean()), 1)


def picture(session):
    session.reset()
    session.open("$PARAVIEW_DATA_ROOT/models/vit/checkpoint-3500/config.json")
    session.apply()
    session.add("Run and Train", "TransformerRecorder")
    session.do(f"{PROPERTIES}/Images/FileChooser/FileLineEdit", "set_string", str(FOLDER / "disc.png"))
    session.apply()
    session.add("Heads", "PatchAttention")
    session.set(Layer=1, Head=2)
    session.untick("Patch")
    for side in range(2):
        session.do(f"{PROPERTIES}/Patch/IntRangeWidget{side}/LineEdit", "set_string", "4")
    session.apply()
    session.expect(
        views((DIAGRAM, "Head Composition"), (DIAGRAM, "Patch Attention", "Layer 1", "Head 2")), value(4.0, on_disc)
    )
    session.set(AllHeads=True)
    session.apply()
    session.expect(
        views((DIAGRAM, "Head Composition"), (DIAGRAM, "Patch Attention")),
        value(2 * 4, lambda: len(heads_of("PatchAttention1") - {(-1, -1)})),
    )


def text(session):
    session.reset()
    session.open("$PARAVIEW_DATA_ROOT/models/language-2/checkpoint-3000/config.json")
    session.apply()
    session.add("Run and Train", "TransformerRecorder")
    session.set(Prompts="In the beginning God created", GenerateTokens=12)
    session.apply()
    session.add("Heads", "AttentionSentence")
    session.set(Layer=1, Head=5)
    session.apply()
    session.do(f"{WINDOW}/VCRToolbar/actionVCRPlay", "activate")
    session.expect(
        views((DIAGRAM, "Head Composition"), (DIAGRAM, "Attention Sentence", "Layer 1", "Head 5", "In the beginning God")),
        value("In the beginning God created, and the full of the LORD, and the", lambda: "".join(
            token for token, side in zip(array("AttentionSentence1", "Token", 1), array("AttentionSentence1", "Side", 1))
            if side == 0
        )),
    )
    session.select("/0/0/1|0")
    session.untick("Temperature")
    session.do(f"{PROPERTIES}/Temperature/DoubleRangeWidget/DoubleLineEdit", "set_string", "0.8")
    for seed in (1, 2, 1):
        session.do(f"{PROPERTIES}/Seed/LineEdit0", "set_string", str(seed))
        session.apply()
        session.expect(value(True, lambda seed=seed: is_continuation(seed)))


#: What was written with each seed.
WRITTEN = {}


def is_continuation(seed):
    """Whether the recorder has written something else than the likeliest words and than with other seeds, and the same with
    the same seed."""
    text = recorded_text("TransformerRecorder1")
    others = [other for known, other in WRITTEN.items() if known != seed]
    return (
        text.startswith("In the beginning God created") and WRITTEN.setdefault(seed, text) == text
        and text not in ["In the beginning God created, and the full of the LORD, and the", *others]
    )


def training(session):
    """Without the training of a transformer, which takes a minute."""
    session.reset()
    session.add("Run and Train", "AttentionOnlyTraining", "menuSources")
    session.apply()
    session.select("/0/0/0|0")
    session.add("Small Models", "AttentionTorus")
    session.apply()
    session.do(f"{WINDOW}/VCRToolbar/actionVCRPlay", "activate")
    session.expect(
        views(("XYChartView", ""), (SPACE, "Attention Torus")),
        value([0, 3500, 0.12, 1.0], lambda: [
            round(float(array("AttentionOnlyTraining1", name, 1)[row]), 2) for name in ("Step", "Accuracy") for row in (0, -1)
        ]),
        value(3500, animation_time),
    )


def animation_time():
    from paraview import simple

    return simple.GetAnimationScene().AnimationTime


def highest_head():
    """The head with the most Prefix Matching, and this."""
    matching = array("HeadScatter1", "Prefix Matching")
    best = int(matching.argmax())
    return (*(int(array("HeadScatter1", name)[best]) for name in ("Layer", "Head")), round(float(matching[best]), 2))


def corpus(session):
    session.reset()
    session.open("$PARAVIEW_DATA_ROOT/corpus/language-2.safetensors")
    session.apply()
    session.expect(views((DIAGRAM, "Head Scatter")), value((1, 5, 0.49), highest_head))
    session.double_click("Head Scatter", lambda: place_of("HeadScatter1", Layer=1, Head=5))
    session.fix_size()  # after the click: in a small view discs touch
    session.expect(
        views((DIAGRAM, "Head Scatter"), (DIAGRAM, "Top Contexts", "Layer 1", "Head 5")),
        value(10, lambda: len(array("TopContexts1", "Text"))),
    )
    for place in (between_discs, inside_disc):
        session.double_click("Head Scatter", place)
        session.expect(value(True, lambda: property_of("TopContexts1", "Layer") + property_of("TopContexts1", "Head") == NEAREST))
    session.double_click("Head Scatter", induction_head)
    session.expect(views((DIAGRAM, "Head Scatter"), (DIAGRAM, "Top Contexts", "Layer 1", "Head 5")))
    session.open("$PARAVIEW_DATA_ROOT/models/language-2/checkpoint-3000/config.json")
    session.apply()
    session.double_click("Top Contexts", lambda: place_of_text(1))
    shown = [(DIAGRAM, "Head Scatter"), (DIAGRAM, "Top Contexts"), (DIAGRAM, "Attention Sentence", "Layer 1", "Head 5")]
    session.expect(views(*shown), value([1], lambda: property_of("TopContexts1", "Recorded")))
    session.double_click("Top Contexts", lambda: place_of_text(4))
    session.expect(views(*shown), value([4], lambda: property_of("TopContexts1", "Recorded")))
    session.select("/0/0|0")
    session.add("Corpus", "HeadHistogram")
    session.set(Layer=1, Head=5)
    session.apply()
    session.expect(views(*shown, ("XYBarChartView", "Head")))


#: The layer and the head of the disc that is nearest to the last double click.
NEAREST = []


def discs():
    """The middle and the radius of each disc of Head Scatter, and its head."""
    import numpy

    found = data("HeadScatter1")
    boxes = numpy.array([found.GetCell(i).GetBounds() for i in range(found.GetNumberOfCells())])
    heads = numpy.stack([array("HeadScatter1", name) for name in ("Layer", "Head")], axis=1)
    return boxes[:, 0:4:2] + (boxes[:, 1:4:2] - boxes[:, 0:4:2]) / 2, (boxes[:, 1] - boxes[:, 0]) / 2, heads.tolist()


def look_at(place, pixel):
    """Moves the camera of Head Scatter to a place, with this length of a pixel."""
    from paraview import simple

    view = view_of("Head Scatter")
    simple.Render(view)  # at the size that it has by now
    view.CameraFocalPoint, view.CameraPosition = [*place, 0], [*place, 10]
    view.CameraParallelScale = pixel * view.ViewSize[1] / 2
    simple.Render(view)
    return [*place, 0]


def between_discs():
    """Between two discs that are 8 pixels apart: 1 from one and 7 from the other."""
    import numpy

    middles, radii, heads = discs()
    pairs = [(a, b) for a in range(len(heads)) for b in range(len(heads)) if a != b]
    apart = {pair: numpy.hypot(*(middles[pair[1]] - middles[pair[0]])) - radii[list(pair)].sum() for pair in pairs}
    (near, far), gap = min(((pair, gap) for pair, gap in apart.items() if gap > 0.005), key=lambda found: found[1])
    way = middles[far] - middles[near]
    NEAREST[:] = heads[near]
    return look_at(middles[near] + way / numpy.hypot(*way) * (radii[near] + gap / 8), gap / 8)


def inside_disc():
    """In the middle of the last disc, 30 pixels from what is around."""
    middles, radii, heads = discs()
    NEAREST[:] = heads[-1]
    return look_at(middles[-1], radii[-1] / 30)


def induction_head():
    """With all discs in view again."""
    from paraview import simple

    view = view_of("Head Scatter")
    view.FitToData = 1
    simple.Render(view)
    return place_of("HeadScatter1", Layer=1, Head=5)


def place_of_text(rank):
    """The middle of a text, which is as far down as its rank."""
    left, right, *_ = data("TopContexts1", 1).GetBounds()
    return (left + right) / 2, -rank, 0


def reader_of(name):
    from paraview import simple

    return simple.FindSource(name).SMProxy.GetXMLName()


def protein(session):
    session.reset()
    session.open("$PARAVIEW_DATA_ROOT/geometry/protein.safetensors")
    session.apply()
    session.expect(views((DIAGRAM, "Attention Matrix")))
    session.open("$PARAVIEW_DATA_ROOT/models/protein/chain.pdb")
    readers = f"{WINDOW}/pqSelectReaderDialog"
    session.do(f"{readers}/listWidget", "currentChangedbyItemName", "Mmcif Reader")
    session.do(f"{readers}/okButton", "activate")
    session.apply()
    session.expect(
        views((DIAGRAM, "Attention Matrix"), (SPACE, "")), visible("chain.pdb"),
        value("MmcifReader", lambda: reader_of("chain.pdb")), value(36, lambda: data("chain.pdb").GetNumberOfPoints()),
    )
    session.select("/0/0|0")
    session.add("Geometry", "ContactMap")
    session.do(f"{PROPERTIES}/Structure/1QComboBox0", "set_string", "chain.pdb:Atoms")
    session.choose("ContactAtom", "C-alpha")
    session.do(f"{PROPERTIES}/ContactDistance/DoubleRangeWidget/DoubleLineEdit", "set_string", "4")
    session.do(f"{PROPERTIES}/MinimumSeparation/LineEdit0", "set_string", "3")
    session.apply()
    shown = [(DIAGRAM, "Attention Matrix"), (SPACE, ""), (DIAGRAM, "Contact Map")]
    session.expect(views(*shown), value((36, 36), lambda: (
        len(array("ContactMap1", "Contact", 1)), int((array("ContactMap1", "Contact", 1) == 1).sum())
    )))
    session.click(5)
    session.click_eye((0, 2, 4))
    session.expect(
        views(*shown), visible("chain.pdb", "ContactMap1"),
        value((36, 1), lambda: (data("ContactMap1", 4).GetNumberOfLines(), len(set(map(tuple, array("ContactMap1", "MarkColor", 4)))))),
    )
    session.set(Sites="1-4")
    session.apply()
    session.expect(views(*shown), value([0.10, 0.12, 0.17, 0.08], lambda: [
        round(float(share), 2) for share in array("ContactMap1", "Site Attention Share", 2)
    ]))
    session.select("/0/1/1|0")  # the output Ribbon
    recorded = f"{PROPERTIES}/Recording/1QComboBox0"
    session.add("Geometry", "BindTokens")
    session.do(recorded, "set_string", "protein.safetensors")
    session.apply()
    session.add("Geometry", "SpatialAttention")
    session.do(recorded, "set_string", "protein.safetensors")
    session.set(Head=True)  # their mean
    session.do(f"{PROPERTIES}/Token/LineEdit0", "set_string", "5")
    session.apply()
    session.expect(views(*shown), value([29, 31, 33], lambda: sorted(set(
        array("SpatialAttention1", "sequence")[array("SpatialAttention1", "Attention") > 0.1].tolist()
    ))))
    session.do(frame_of(5) + "/SplitVertical", "activate")
    session.do(frame_of(12) + f"/CentralWidgetFrame/{EMPTY}/SpreadSheetView", "activate")
    session.click_eye((0, 2, 2))
    shown.append(("SpreadSheetView", ""))
    session.expect(views(*shown), value([("ContactMap1", 2)], tables))
    session.open("$PARAVIEW_DATA_ROOT/models/protein/checkpoint-2000/config.json")
    session.apply()
    session.add("Geometry", "MutationScan")
    session.set(Protein="GFGPGCLCSSGSGIGCGTTQTPGKWPDPMMGPMPMP")
    session.apply()
    session.expect(
        views(*shown, (DIAGRAM, "Mutation Scan")), value(36 * 20, lambda: len(array("MutationScan1", "Mutation Effect", 1)))
    )


def tables():
    """What tables show: sources and ports."""
    from paraview import simple

    names = {source.GetGlobalID(): name for (name, _), source in simple.GetSources().items()}
    inputs = [
        shown.SMProxy.GetProperty("Input") for view, kind, _ in shown_views() if kind == "SpreadSheetView"
        for shown in view.Representations if shown.Visibility
    ]
    return [(names[one.GetProxy(0).GetGlobalID()], one.GetOutputPortForConnection(0)) for one in inputs]


def joined(*plays):
    def play(session):
        for one in plays:
            one(session)
    return play


#: The sessions: what of the tutorial each plays.
SESSIONS = {
    "Small": small_model, "Heads": heads, "Points": joined(points, lens), "Weights": weights_of_model, "Features": features,
    "Run": joined(picture, text, training), "Corpus": joined(corpus, protein),
}


def play_checks(name):
    """Makes the checks of a session in ParaView, each when a state is saved."""
    from paraview import simple
    from paraview.modules.vtkRemotingCore import vtkProcessModule
    from paraview.servermanager import vtkSMProxyManager

    session = Session(name)
    SESSIONS[name](session)
    for written in (*FOLDER.glob(f"tutorial-{name}-*.pvsm"), *(FOLDER.glob("*.circuit") if name == "Weights" else ())):
        written.unlink()
    faults, left = [], list(session.checks)
    log = pathlib.Path(os.environ["TUTORIAL_LOG"])

    def check(*_):
        number = len(session.checks) - len(left) + 1
        if not left or not simple.GetSources():
            return  # Reset Session saves a state, too
        if number > 1 and not session.state(number - 1).exists():
            faults.append(f"check {number - 1}: made for a state that the session did not save")
        for one in left.pop(0):
            try:
                expected, found, fits = one()
            except Exception as error:  # which ParaView would only print
                expected, found, fits = "a value", repr(error), False
            if not fits:
                faults.append(f"check {number}: expected {expected}, found {found}")
        log.write_text("\n".join(faults) or (f"{len(left)} checks are left" if left else "nothing"), encoding="utf-8")

    met = []

    def meet(*_):
        manager = vtkSMProxyManager.GetProxyManager().GetActiveSessionProxyManager()
        if manager not in met:
            met.append(manager)
            manager.AddObserver("SaveStateEvent", check)

    meet()
    vtkProcessModule.GetProcessModule().AddObserver("ConnectionCreatedEvent", meet)


if "TUTORIAL_SESSION" in os.environ:
    play_checks(os.environ["TUTORIAL_SESSION"])
else:
    for name, play in SESSIONS.items():
        session = Session(name)
        play(session)
        session.write(FOLDER / f"{name}.xml")
    write_disc(FOLDER / "disc.png")
    print(*SESSIONS, sep=";", end="")
