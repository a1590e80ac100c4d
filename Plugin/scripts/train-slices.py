"""Trains the slice-attention solver of Data/geometry and writes what ParaView shows of it.

    python3 train-slices.py DIR          heat.vtu, heat.safetensors and heat-untrained.safetensors

Needs NumPy, SciPy and PyTorch. The same versions on the same processor give the same bytes; one thread, minutes.

The problem: the stationary heat equation -div(k grad u) = f on a plate with a hole, in triangles of random points.
A problem draws the conductivity k of each region (matrix, ring, bar, inclusion), a heater of random strength in
one of them, and the temperature of the outer edge; the hole is insulated. Linear finite elements give u.

The solver, as Transolver (Wu et al. 2024), with one set of slices for all layers and heads: each point becomes
a vector of its position and of what was drawn, but is not told its region; a softmax of it is its weights of 24 slices
[points, slices]; a slice token is the weighted mean of its points; two layers of attention and MLP work among the
tokens; u and the flux -k grad u of a point are the mean of what is read from the tokens, with its weights.
"""

import base64
import json
import pathlib
import struct
import sys

import numpy
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial
import torch

SEED = 7
POINTS, SLICES, WIDTH, LAYERS, HEADS, INPUTS = 900, 24, 32, 2, 4, 24
TEMPERATURE = 0.5
PROBLEMS, HELD_OUT, STEPS, BATCH, RATE = 600, 64, 2500, 8, 3e-3
REGIONS = ("matrix", "ring", "bar", "inclusion")
HOLE, CENTER = 0.16, (0.35, 0.6)


def region_of(points):
    """The region of each point, as an index of REGIONS."""
    x, y = points.T
    ring = numpy.hypot(x - CENTER[0], y - CENTER[1]) < 0.27
    bar = (y > 0.12) & (y < 0.24) & (x > 0.1) & (x < 0.9)
    inclusion = numpy.hypot(x - 0.78, y - 0.72) < 0.15
    return numpy.select([ring, bar, inclusion], [1, 2, 3], 0)


def make_mesh(random):
    """Points and triangles of the unit square without the hole, finer near it."""
    edge = numpy.linspace(0, 1, 24)
    square = [(a, b) for a in edge for b in (0, 1)] + [(b, a) for a in edge[1:-1] for b in (0, 1)]
    angles = numpy.linspace(0, 2 * numpy.pi, 36, endpoint=False)
    circle = numpy.add(CENTER, HOLE * numpy.stack([numpy.cos(angles), numpy.sin(angles)], 1))
    points = [*square, *map(tuple, circle)]
    while len(points) < POINTS:  # the farthest of a few candidates: irregular, but without slivers
        candidates = random.random((12, 2))
        from_hole = numpy.hypot(*(candidates - CENTER).T) - HOLE
        distance = scipy.spatial.cKDTree(points).query(candidates)[0] / (0.5 + numpy.maximum(from_hole, 0))
        distance[from_hole < 0.01] = 0
        points.append(tuple(candidates[distance.argmax()]))
    points = numpy.array(points)
    triangles = scipy.spatial.Delaunay(points).simplices
    inside = numpy.hypot(*(points[triangles].mean(1) - CENTER).T) > HOLE * 0.99
    a, b, c = (points[triangles[:, i]] for i in range(3))
    area = ((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2
    return points, triangles[inside & (area > 1e-9)]


class Heat:
    """Linear finite elements on a mesh; the outer edge has a temperature."""

    def __init__(self, points, triangles):
        self.points, self.triangles = points, triangles
        corners = points[triangles]
        self.edges = edges = corners[:, [2, 0, 1]] - corners[:, [1, 2, 0]]  # opposite to each corner
        self.area = (edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0]) / 2
        self.stiffness = numpy.einsum("tia,tja->tij", edges, edges) / (4 * self.area[:, None, None])
        self.region = region_of(corners.mean(1))
        corner = triangles.ravel()
        own = region_of(points)[corner] == numpy.repeat(self.region, 3)
        share = numpy.repeat(self.area, 3) * numpy.where(own, 1, 1e-9)  # all triangles, if none is of the region
        share /= numpy.bincount(corner, share)[corner]
        self.mean = scipy.sparse.csr_matrix((share, (corner, numpy.repeat(numpy.arange(len(triangles)), 3))))
        self.edge = (points == 0).any(1) | (points == 1).any(1)

    def solve(self, conductivity, heat, temperature):
        """u at the points; conductivity and heat of each triangle, temperature of the points of the edge."""
        size = len(self.points)
        rows = numpy.repeat(self.triangles, 3, 1).ravel()
        columns = numpy.tile(self.triangles, (1, 3)).ravel()
        values = (conductivity[:, None, None] * self.stiffness).ravel()
        matrix = scipy.sparse.csr_matrix((values, (rows, columns)), (size, size))
        load = numpy.bincount(self.triangles.ravel(), numpy.repeat(heat * self.area / 3, 3), size)
        solution = numpy.where(self.edge, temperature, 0.0)
        free = ~self.edge
        load -= matrix @ solution
        solution[free] = scipy.sparse.linalg.spsolve(matrix[free][:, free].tocsc(), load[free])
        return solution

    def flux(self, conductivity, solution):
        """-k grad u at the points [points, 2]: the mean over the triangles around that are of the point's region."""
        turned = numpy.stack([-self.edges[..., 1], self.edges[..., 0]], -1) / (2 * self.area[:, None, None])
        flux = -conductivity[:, None] * numpy.einsum("tid,ti->td", turned, solution[self.triangles])
        return self.mean @ flux


def draw_problem(random, heat):
    """The inputs of each point [points, INPUTS], and u and the flux there [points, 3]."""
    conductivity = 10 ** random.uniform(-1, 1, len(REGIONS))
    source = numpy.zeros(len(REGIONS))
    source[random.integers(1, len(REGIONS))] = random.uniform(2, 10)
    slope = random.uniform(-1, 1, 2)
    temperature = (heat.points - 0.5) @ slope
    solution = heat.solve(conductivity[heat.region], source[heat.region], temperature)
    settings = numpy.concatenate([numpy.log10(conductivity), source[1:] / 5, slope])
    place = heat.points * 2 - 1
    waves = [wave(numpy.pi * scale * place) for scale in (0.5, 1, 2) for wave in (numpy.sin, numpy.cos)]
    inputs = numpy.column_stack([place, *waves, heat.edge, numpy.tile(settings, (len(place), 1))])
    return inputs, numpy.column_stack([solution, heat.flux(conductivity[heat.region], solution)])


class Layer(torch.nn.Module):
    """Attention and MLP among slice tokens."""

    def __init__(self):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(WIDTH) for _ in range(2))
        self.query, self.key, self.value, self.output = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.GELU(), torch.nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, tokens):
        x = self.norms[0](tokens)
        query, key, value = (
            part(x).unflatten(-1, (HEADS, -1)).transpose(-2, -3) for part in (self.query, self.key, self.value)
        )
        weights = torch.softmax(query @ key.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5, -1)
        tokens = tokens + self.output((weights @ value).transpose(-2, -3).flatten(-2))
        return tokens + self.mlp(self.norms[1](tokens)), query, key


class SliceSolver(torch.nn.Module):
    """The model of the text above."""

    def __init__(self):
        super().__init__()
        self.lift = torch.nn.Sequential(
            torch.nn.Linear(INPUTS, 2 * WIDTH),
            torch.nn.GELU(),
            torch.nn.Linear(2 * WIDTH, 2 * WIDTH),
            torch.nn.GELU(),
            torch.nn.Linear(2 * WIDTH, WIDTH),
        )
        self.slice = torch.nn.Sequential(torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, SLICES))
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.read = torch.nn.Sequential(torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, 3))

    def forward(self, inputs):
        """u and the flux at the points, their weights of slices, and queries and keys of each layer."""
        points = self.lift(inputs)
        weights = torch.softmax(self.slice(points) / TEMPERATURE, -1)
        tokens = weights.transpose(-1, -2) @ points / (weights.sum(-2).unsqueeze(-1) + 1e-6)
        recorded = []
        for layer in self.layers:
            tokens, query, key = layer(tokens)
            recorded.append((query, key))
        return weights @ self.read(tokens), weights, recorded


def information(weights, region):
    """The mutual information of the slice and the region of a point, in bits, and the entropy of the regions."""
    joint = numpy.stack([weights[region == r].sum(0) for r in range(len(REGIONS))]) / len(weights)
    own = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    share = joint.sum(1)
    bits = (joint * numpy.log2(numpy.maximum(joint, 1e-30) / own)).sum()
    return float(bits), float(-(share * numpy.log2(share)).sum())


def relative_errors(found, wanted):
    """The means over problems of the relative errors of u and of the flux, in the Euclidean norm of all points."""
    parts = (slice(0, 1), slice(1, 3))
    return torch.stack(
        [
            ((found - wanted)[..., part].flatten(1).norm(dim=1) / wanted[..., part].flatten(1).norm(dim=1)).mean()
            for part in parts
        ]
    )


def write_mesh(path, points, triangles, arrays):
    """A .vtu file; its arrays in base64."""

    def data(name, values, more=""):
        kind = {"f": "Float32", "i": "Int32", "u": "UInt8"}[values.dtype.kind]
        components = f' NumberOfComponents="{values.shape[1]}"' if values.ndim > 1 else ""
        raw = numpy.ascontiguousarray(values).tobytes()
        text = base64.b64encode(struct.pack("<I", len(raw)) + raw).decode()
        return f'<DataArray type="{kind}" Name="{name}"{components} format="binary"{more}>{text}</DataArray>\n'

    count = len(triangles)
    flat = numpy.pad(points, ((0, 0), (0, 1))).astype("<f4")
    path.write_text(
        '<VTKFile type="UnstructuredGrid" version="0.1" byte_order="LittleEndian">\n<UnstructuredGrid>\n'
        f'<Piece NumberOfPoints="{len(points)}" NumberOfCells="{count}">\n<Points>\n'
        + data("Points", flat)
        + "</Points>\n<Cells>\n"
        + data("connectivity", triangles.astype("<i4").ravel())
        + data("offsets", numpy.arange(3, 3 * count + 1, 3, dtype="<i4"))
        + data("types", numpy.full(count, 5, numpy.uint8))
        + '</Cells>\n<PointData Scalars="Temperature">\n'
        + "".join(data(name, values) for name, values in arrays.items())
        + "</PointData>\n</Piece>\n</UnstructuredGrid>\n</VTKFile>\n"
    )


def write_recording(path, recorded):
    """Queries and keys of the slice tokens as a native recording."""
    arrays = {"sequence_offsets": numpy.array([0, SLICES], "<i8"), "tokens.position": numpy.arange(SLICES, dtype="<i4")}
    for layer, (query, key) in enumerate(recorded):
        for head in range(HEADS):
            arrays[f"layers.{layer}.heads.{head}.query"] = query[0, head].numpy().astype("<f4")
            arrays[f"layers.{layer}.heads.{head}.key"] = key[0, head].numpy().astype("<f4")
    metadata = {
        "format": "attention-atlas.recording",
        "version": "1",
        "architecture": "slices",
        "mask": "bidirectional",
        "rotated": "false",
        "processing": "unknown",
        "layer_count": str(LAYERS),
        "head_count": str(HEADS),
        "score_scales": json.dumps({str(layer): (WIDTH // HEADS) ** -0.5 for layer in range(LAYERS)}),
        "tokens": json.dumps([f"slice {index}" for index in range(SLICES)]),
    }
    header, offset = {"__metadata__": metadata}, 0
    for name, values in arrays.items():
        kind = {"<i8": "I64", "<i4": "I32", "<f4": "F32"}[values.dtype.str]
        header[name] = {"dtype": kind, "shape": values.shape, "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(values.tobytes() for values in arrays.values()))


def main(folder):
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    random = numpy.random.default_rng(SEED)
    points, triangles = make_mesh(random)
    heat = Heat(points, triangles)
    region = region_of(points)
    problems = [draw_problem(random, heat) for _ in range(PROBLEMS)]
    inputs, solutions = (torch.tensor(numpy.stack(parts), dtype=torch.float32) for parts in zip(*problems))
    model = SliceSolver()
    shown = inputs[-1:]

    def evaluate(name):
        """Records the last problem; prints the error of the held-out problems and what slices tell of regions."""
        with torch.no_grad():
            solution, weights, recorded = model(shown)
            found = torch.cat([model(part)[0] for part in inputs[-HELD_OUT:].split(BATCH)])
        errors = relative_errors(found, solutions[-HELD_OUT:]).tolist()
        bits, entropy = information(weights[0].double().numpy(), region)
        errors = f"relative errors {errors[0]:.3f} of u, {errors[1]:.3f} of the flux"
        print(f"{name}: {errors}, {bits:.3f} of {entropy:.3f} bits of the region", flush=True)
        return solution[0].numpy(), weights[0].numpy(), recorded

    _, untrained, untrained_recorded = evaluate("untrained")
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, STEPS, pct_start=0.1)
    for step in range(STEPS):
        chosen = torch.tensor(random.integers(PROBLEMS - HELD_OUT, size=BATCH))
        loss = relative_errors(model(inputs[chosen])[0], solutions[chosen]).sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        schedule.step()
        if step % 250 == 249:
            evaluate(f"step {step + 1}")
    solution, weights, recorded = evaluate("trained")

    wanted = solutions[-1].numpy()
    folder.mkdir(exist_ok=True)
    write_mesh(
        folder / "heat.vtu",
        points,
        triangles,
        {
            "Temperature": wanted[:, 0],
            "Flux": numpy.pad(wanted[:, 1:], ((0, 0), (0, 1))),
            "PredictedTemperature": solution[:, 0],
            "PredictedFlux": numpy.pad(solution[:, 1:], ((0, 0), (0, 1))),
            "Region": region.astype("<i4"),
            "Slices": weights.astype("<f4"),
            "UntrainedSlices": untrained.astype("<f4"),
        },
    )
    write_recording(folder / "heat.safetensors", recorded)
    write_recording(folder / "heat-untrained.safetensors", untrained_recorded)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
