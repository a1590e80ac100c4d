"""What the tests share: models and oracles, arrays and pictures, and the errors seen.

Scripts run in ParaView, or on VTK alone with ATLAS_HOST=VTK; `simple` has the filters in both, and in ParaView all the rest.
"""

import functools
import json
import os
import pathlib
import re
import struct
import unittest
from xml.etree import ElementTree

import numpy
from attentionatlas._internal import host
from attentionatlas._internal.windows import need_rendering
from vtkmodules.util.numpy_support import numpy_to_vtk, vtk_to_numpy
from vtkmodules.vtkCommonCore import vtkLogger, vtkPoints
from vtkmodules.vtkCommonDataModel import vtkPolyData
from vtkmodules.vtkIOImage import vtkPNGReader

#: The exit code of a test that was skipped.
SKIPPED = 77

SOURCE = pathlib.Path(os.environ["ATLAS_SOURCE_DIR"])
DATA = pathlib.Path(os.environ["ATLAS_DATA_DIR"])
ORACLE = pathlib.Path(os.environ["ATLAS_ORACLE_DIR"], "aot")
#: Models of transformers, with what the original code computes.
TRANSFORMERS, MODELS = ORACLE.parent / "transformers", ORACLE.parent / "models" / "transformers"
#: What the same test wrote on the first of its numbers of ranks.
REFERENCE = pathlib.Path(os.environ["ATLAS_REFERENCE_DIR"])
BASELINE = pathlib.Path(os.environ["ATLAS_BASELINE_DIR"])
OUTPUT = pathlib.Path(os.environ["ATLAS_OUTPUT_DIR"])

#: All that the recorder records of texts, beside Routing.
RECORD = [entry for name in ("QueriesAndKeys", "Values", "HeadOutputs", "Residual") for entry in (name, "1")]

TRAINED = DATA / "trained-n5-h3.safetensors"
#: Attention of GPT-2 to a prompt of six tokens.
RECORDING = DATA / "recordings" / "gpt2-data-visualization.safetensors"
SLOW = DATA / "trained-n5-h3-slow.safetensors"

#: The colors of classes 0 to 4: the palette of Okabe and Ito (2008).
PALETTE = [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [230, 159, 0]]

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


def read_safetensors(path):
    """The tensors of a file, by name, and its metadata."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, tensor in header.items():
        begin, end = (8 + length + offset for offset in tensor["data_offsets"])
        values = numpy.frombuffer(data[begin:end], _DTYPES[tensor["dtype"]])
        tensors[name] = values.reshape(tensor["shape"])
    return tensors, metadata


def write_safetensors(path, tensors, metadata):
    """Writes a file as read_safetensors gives it."""
    header = {"__metadata__": metadata}
    data = b""
    for name, values in tensors.items():
        begin = len(data)
        data += values.tobytes()
        dtype = next(key for key, value in _DTYPES.items() if values.dtype == value)
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_dictionary(hook, inputs, features=24, folder="dictionary", tensors=None, **settings):
    """Writes random numbers, or those of tensors, as a sparse dictionary of SAELens; returns the path of its weights."""
    random = numpy.random.default_rng(5)
    shapes = {"W_enc": (inputs, features), "b_enc": features, "W_dec": (features, inputs), "b_dec": inputs}
    made = {name: random.normal(0, 0.5, shape).astype("float32") for name, shape in shapes.items()}
    made = {name: values for name, values in {**made, **(tensors or {})}.items() if values is not None}
    place = OUTPUT / folder
    place.mkdir(exist_ok=True)
    config = {"architecture": "standard", "d_in": inputs, "d_sae": features, "metadata": {"hook_name": hook}, **settings}
    (place / "cfg.json").write_text(json.dumps(config), encoding="utf-8")
    write_safetensors(place / "sae_weights.safetensors", made, {})
    return str(place / "sae_weights.safetensors")


def checkpoints(folder):
    """Two files of the same model in training: at steps 100 and 250."""
    paths = []
    for source, step in ((SLOW, 100), (TRAINED, 250)):
        tensors, metadata = read_safetensors(source)
        paths.append(str(folder / f"step-{step}.safetensors"))
        write_safetensors(paths[-1], tensors, {**metadata, "step": str(step)})
    return paths


def read_model(path=TRAINED):
    return simple.AttentionOnlyModelReader(FileNames=[str(path)])


def read_recording(path=RECORDING):
    return simple.RecordingReader(FileName=str(path))


def data_model(name, **properties):
    """A reader of a model in Data."""
    return simple.TransformerReader(FileName=str(DATA / "models" / name / "config.json"), **properties)


def token_lines(rows):
    """Rows of token ids as the recorder takes them."""
    return "\n".join(" ".join(map(str, row)) for row in rows)


def read_transformer(name, **properties):
    """A reader of a transformer of the oracle."""
    folder = next(place / name for place in (TRANSFORMERS, MODELS) if (place / name).is_dir())
    return simple.TransformerReader(FileName=str(folder / "config.json"), **properties)


def read_proxies():
    """The proxies of all XML files, by group and name."""
    roots = [ElementTree.parse(path).getroot() for path in sorted((SOURCE / "XML").glob("*.xml"))]
    return {(group.get("name"), proxy.get("name")): proxy for root in roots for group in root for proxy in group}


def write_prose(name="prose.txt", paragraphs=60):
    """A text of words that the model language-2 knows, of two lines a paragraph; returns its path."""
    words = "And the king of Israel said unto God, in his house shall all men go up with thee from darkness to light".split()
    random = numpy.random.default_rng(len(name))
    lines = [" ".join(random.choice(words, 20)) + "." for _ in range(2 * paragraphs)]
    path = OUTPUT / name
    path.write_text("\n\n".join(map("\n".join, zip(lines[::2], lines[1::2]))) + "\n", encoding="utf-8")
    return str(path)


def torus(model, **properties):
    """An AttentionTorus of a size that is soon computed."""
    return simple.AttentionTorus(Input=model, **{"Resolution": [64, 48], **properties})


def points_source(theta):
    """A source of points at rows of theta_1 and theta_2."""
    coordinates = numpy.zeros((len(theta), 3))
    coordinates[:, :2] = theta
    points = vtkPoints()
    points.SetData(numpy_to_vtk(coordinates, deep=True))
    data = vtkPolyData()
    data.SetPoints(points)
    source = simple.PVTrivialProducer()
    source.GetClientSideObject().SetOutput(data)
    return source


def fetch(source, *time, port=0):
    """A source's output, up to date: Fetch alone goes by the type of the last one."""
    source.UpdatePipeline(*time)
    return host.fetch(source, port)


def point_arrays(source, *time):
    """The point arrays of a source's output, by name, at its current time or another."""
    return arrays_of(fetch(source, *time))


def arrays_of(data, kind="PointData"):
    """The arrays of numbers of a dataset or table, by name: of its points, or of CellData, RowData or FieldData."""
    attributes = getattr(data, f"Get{kind}")()
    found = map(attributes.GetArray, range(attributes.GetNumberOfArrays()))
    return {array.GetName(): vtk_to_numpy(array).copy() for array in found if array}


def numbers(data):
    """The arrays of numbers of a table, or those of a dataset's points and cells with the points themselves."""
    found = {}
    for kind in ("RowData",) if data.IsA("vtkTable") else ("PointData", "CellData"):
        found.update({f"{kind} {name}": values for name, values in arrays_of(data, kind).items()})
    if data.IsA("vtkPointSet") and data.GetPoints():
        found["Points"] = vtk_to_numpy(data.GetPoints().GetData()).copy()
    return found


def takes(group, name, source, port=0, input_name="Input"):
    """Whether ParaView offers a filter for an output, as in its menu."""
    proxy = servermanager.ProxyManager().GetPrototypeProxy(group, name)
    found = proxy.GetProperty(input_name)
    found.RemoveAllUncheckedProxies()
    found.AddUncheckedInputConnection(source.SMProxy, port)
    accepted = bool(found.IsInDomains())
    found.RemoveAllUncheckedProxies()
    return accepted


def plain(value):
    """A property's value as a list, a number or a text."""
    value = value.GetData() if hasattr(value, "GetData") else value
    return value if isinstance(value, (int, float, str)) else list(value)


def columns(source, port=0):
    """The columns of a table that an output has, by name; texts as a list."""
    table = fetch(source, port=port).GetRowData()
    found = {}
    for column in map(table.GetAbstractArray, range(table.GetNumberOfArrays())):
        texts = [column.GetVariantValue(row).ToString() for row in range(column.GetNumberOfTuples())]
        found[column.GetName()] = vtk_to_numpy(column).copy() if column.IsNumeric() else texts
    return found


def model_blocks(source, rank=0):
    """The tensors of a model, by name, on one of the ranks."""
    blocks = servermanager.Fetch(source, rank)
    tensors = {}
    for i in range(blocks.GetNumberOfBlocks()):
        name = blocks.GetMetaData(i).Get(blocks.NAME())
        tensors[name] = vtk_to_numpy(blocks.GetBlock(i).GetColumn(0))
    return tensors


def chart_view(size=400):
    """A view that shows the torus from -pi to pi and nothing else."""
    return simple.CreateRenderView(
        ViewSize=[size, size],
        OrientationAxesVisibility=0,
        CameraParallelProjection=1,
        CameraPosition=[0, 0, 10],
        CameraFocalPoint=[0, 0, 0],
        CameraParallelScale=numpy.pi,
        UseColorPaletteForBackground=0,
        Background=[1, 1, 1],
    )


def read_picture(path):
    """Rows of RGB from the bottom up."""
    reader = vtkPNGReader()
    reader.SetFileName(str(path))
    reader.Update()
    image = reader.GetOutput()
    width, height, _ = image.GetDimensions()
    pixels = vtk_to_numpy(image.GetPointData().GetScalars())
    return pixels.reshape(height, width, -1)[..., :3].astype(int)


def picture(view, name):
    """What a view shows; left in the output folder too."""
    path = OUTPUT / f"{name}.png"
    simple.SaveScreenshot(str(path), view)
    return read_picture(path)


def different_pixels(a, b, tolerance=24):
    """The share of pixels in which a channel differs by more than `tolerance` of 255."""
    return (numpy.abs(a - b).max(axis=-1) > tolerance).mean()


def _find_proxy(namespace, name=None, xmlname=None):
    """What ParaView's own _findProxy finds, without a search through all definitions for each name: it is called for the
    500 functions of each session, which takes 0.4 s."""

    def read():
        manager = namespace.session.GetProxyDefinitionManager()
        found = {}
        for group in namespace.xmlGroups:
            iterator = manager.NewSingleGroupIterator(group, manager.ALL_DEFINITIONS)
            for item in servermanager.ProxyDefinitionIterator(iterator):
                named = item["xml"].GetAttribute("name")
                label = {"xml": item["xml"]} if named else {"proxyname": item["key"]}
                found.setdefault(("label", namespace._getPyName(**label)), item)
                found.setdefault(("name", item["key"]), item)
        return found

    key = ("label", name) if name else ("name", xmlname)
    definitions = namespace.__dict__.get("_atlas_definitions", {})
    if key not in definitions:  # of a plugin, perhaps, that was loaded since
        definitions = namespace.__dict__["_atlas_definitions"] = read()
    return definitions.get(key)


class _Simple:
    """What tests use of paraview.simple, on VTK alone."""

    OutputPort, Delete = staticmethod(host.output_port), staticmethod(host.delete)

    def __getattr__(self, name):
        return getattr(host.filters, name)

    def SaveData(self, path, proxy):
        host.writer(path, proxy, {}).UpdatePipeline()


if host.is_paraview():
    from paraview import servermanager, simple
    from paraview.modules.vtkRemotingSettings import vtkPVGeneralSettings

    #: How many ranks this is one of.
    RANKS = servermanager.vtkProcessModule.GetProcessModule().GetNumberOfLocalPartitions()
    assert hasattr(servermanager.ProxyNamespace, "_findProxy")
    servermanager.ProxyNamespace._findProxy = _find_proxy
else:
    RANKS, simple = 1, _Simple()


def draws_surfaces(test):
    """A test that is skipped where VTK cannot draw surfaces: before 9.4 without a display."""

    @functools.wraps(test)
    def run(self):
        try:
            need_rendering()
        except OSError as error:
            self.skipTest(str(error))
        test(self)

    return run


def hide_bars():
    """Shows color bars by hand alone, in a new session: most tests look at the pixels of data; TestFirstShow.py has
    what views show by themselves."""
    vtkPVGeneralSettings.GetInstance().SetScalarBarMode(vtkPVGeneralSettings.MANUAL_SCALAR_BARS)


class AtlasTest(unittest.TestCase):
    """A test in a session of its own, which fails if ParaView reports an error unexpectedly.

    A test takes the errors that it expects with take_errors() or assert_one_error().
    """

    #: Of assert_close, relative.
    TOLERANCE = 2e-5

    def setUp(self):
        OUTPUT.mkdir(parents=True, exist_ok=True)
        self.start_session()
        self._log = OUTPUT / f"{self.id()}.log"
        vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)
        vtkLogger.LogToFile(str(self._log), vtkLogger.TRUNCATE, vtkLogger.VERBOSITY_WARNING)
        self._seen = 0
        self.addCleanup(self._check_errors)

    def start_session(self):
        if host.is_paraview():
            simple.ResetSession()
            hide_bars()
            host.load()

    def take_errors(self):
        """The errors and warnings since the last call, but that a request failed for them."""
        text = self._log.read_text(errors="replace")
        # What a server tells has its place on a line of its own.
        lines = re.sub(r"(ERROR|Warning): In \S+, line \d+\n", "", text).splitlines()
        new = lines[self._seen :]
        self._seen = len(lines)
        return [
            line.split("| ", 1)[1]
            for line in new
            if ("ERR| " in line or "WARN| " in line) and "returned failure for request" not in line
        ]

    def _check_errors(self):
        for view in simple.GetRenderViews() if host.is_paraview() else ():
            simple.Delete(view)
        vtkLogger.EndLogToFile(str(self._log))
        self.assertEqual(self.take_errors(), [])

    def reload(self):
        """Saves the session as a state and loads that into a new one."""
        path = str(OUTPUT / "state.pvsm")
        simple.SaveState(path)
        for view in simple.GetRenderViews():
            simple.Delete(view)
        simple.ResetSession()
        hide_bars()
        simple.LoadState(path)

    def record_images(self):
        """A recorder of the vision transformer of the oracle on its images."""
        tensors, _ = read_safetensors(TRANSFORMERS / "vit" / "expected.safetensors")
        path = OUTPUT / "images.safetensors"
        write_safetensors(path, {"pixel_values": tensors["pixel_values"]}, {})
        recorder = simple.TransformerRecorder(Input=read_transformer("vit"), Images=[str(path)])
        recorder.UpdatePipeline()
        self.take_errors()  # of tensors that the model does not use
        return recorder

    def assert_raise(self, *rows, kind=ValueError):
        """Expects exceptions of calls: rows of (call, what the message matches), or (call, this, another kind)."""
        for call, message, *other in rows:
            with self.subTest(message), self.assertRaisesRegex(*other or [kind], message):
                call()

    def assert_one_error(self, *parts):
        """Expects a single error that says all of these."""
        errors = self.take_errors()
        self.assertEqual(len(errors), 1, errors)
        for part in parts:
            self.assertIn(part, errors[0])

    def oracle(self, name="trained-n5-h3"):
        """The expected values of an oracle model and its file."""
        values, _ = read_safetensors(ORACLE / f"{name}.expected.safetensors")
        return values, ORACLE / f"{name}.safetensors"

    def assert_close(self, found, expected, tolerance=None):
        """Expects arrays within `tolerance` of the largest magnitude expected."""
        found, expected = numpy.asarray(found, float), numpy.asarray(expected, float)
        self.assertEqual(found.shape, expected.shape)
        largest = numpy.abs(expected).max() or 1
        self.assertLessEqual(numpy.abs(found - expected).max() / largest, tolerance or self.TOLERANCE)

    def assert_same_arrays(self, found, expected):
        """Expects dictionaries of equal arrays, to the byte."""
        self.assertEqual(sorted(found), sorted(expected))
        for name, values in expected.items():
            self.assertEqual(found[name].dtype, values.dtype, name)
            self.assertEqual(found[name].shape, values.shape, name)
            self.assertEqual(found[name].tobytes(), values.tobytes(), name)

    def image_arrays(self, source):
        """The point arrays of an image, rows by columns, from the parts of all ranks."""
        source.UpdatePipeline()
        x0, x1, y0, y1, _, _ = source.GetDataInformation().GetExtent()
        whole = {}
        covered = numpy.zeros((y1 - y0 + 1, x1 - x0 + 1), bool)
        for rank in range(RANKS):
            part = servermanager.Fetch(source, rank)
            left, right, bottom, top, _, _ = part.GetExtent()
            window = (slice(bottom - y0, top - y0 + 1), slice(left - x0, right - x0 + 1))
            covered[window] = True
            for name, values in arrays_of(part).items():
                values = values.reshape(*covered[window].shape, -1)
                empty = numpy.zeros((*covered.shape, values.shape[-1]), values.dtype)
                whole.setdefault(name, empty)[window] = values
        self.assertTrue(covered.all())
        return whole

    def assert_as_on_one_rank(self, name, arrays):
        """Leaves arrays here and expects those that the test on the first number of ranks left."""
        numpy.savez(OUTPUT / f"{name}.npz", **arrays)
        with numpy.load(REFERENCE / f"{name}.npz") as reference:
            self.assert_same_arrays(arrays, dict(reference))

    def assert_baseline(self, pixels, name):
        """Expects a picture as it is in Testing/Baseline, but for a hundredth of its pixels."""
        baseline = read_picture(BASELINE / f"{name}.png")
        self.assertEqual(pixels.shape, baseline.shape)
        self.assertLess(different_pixels(pixels, baseline), 0.01, name)
