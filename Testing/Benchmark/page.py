#!/usr/bin/env python3
"""Writes the measured tables of Performance.md.

    page.py PAGE.md RESULT.json [RESULT.json ...]

A table stands between the comments <!-- measured: NAME --> and <!-- end of NAME -->, with a line below it that says on
which machine it was measured, when, and what else ran there. Tables without results stay as they are, and so does all
text outside the comments. The figure of BenchmarkGrowth is written to pictures/Growth.png beside the page.
"""

import datetime
import pathlib
import sys

import growth
from results import read, seconds, take_apart

#: The machine was quiet if others used at most this share of the processors.
QUIET = 0.05


class Results:
    """What one benchmark measured."""

    def __init__(self, context, results):
        self.context, self.results = context, results
        self._parsed = [(*take_apart(result["name"]), result) for result in results]

    def families(self):
        """Their names, in the order in which they ran."""
        return list(dict.fromkeys(family for family, _, _ in self._parsed))

    def all(self, family, **arguments):
        """The results of a family with these arguments, in their order; _0 is the first one without a name."""
        wanted = {int(key[1:]) if key.startswith("_") else key: str(value) for key, value in arguments.items()}
        return [
            result
            for name, found, result in self._parsed
            if name == family and all(found.get(key) == value for key, value in wanted.items())
        ]

    def one(self, family, **arguments):
        """The first of them, or None."""
        return next(iter(self.all(family, **arguments)), None)


def number(value, digits=2):
    """A number to so many digits; to three or more if they are all before its point."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) >= 10 ** (digits - 1):
        return f"{float(f'{value:.{max(digits, 3)}g}'):,.0f}"
    return f"{rounded:.10f}".rstrip("0").rstrip(".")


def time(value):
    """Seconds, in the unit that suits them."""
    for factor, unit in ((1, "s"), (1e-3, "ms")):
        if value >= 0.9995 * factor:
            return f"{number(value / factor)} {unit}"
    return f"{number(value / 1e-6)} µs"


def milliseconds(value):
    return time(value / 1000)


def share(value):
    return f"{value:.0%}".replace("%", " %")


def times(value):
    return number(value)


def memory(mebibytes):
    return f"{number(mebibytes, 3)} MiB"


def rate(gigabytes):
    return f"{number(gigabytes)} GB/s"


def fixed(value):
    return f"{value:.3f}"


def counter(result, name, shown):
    """A counter of a result, as `shown` writes it; nothing if it is not there."""
    return shown(result[name]) if result is not None and name in result else ""


def row(cells):
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def table(titles, rows):
    """A table in Markdown. Columns whose titles begin with > have numbers."""
    lines = [row([title.lstrip(">") for title in titles])]
    lines.append("|" + "|".join("---:" if title.startswith(">") else "---" for title in titles) + "|")
    return lines + [row(cells) for cells in rows]


def maps(of):
    """Charts of 2000 x 2000 points on one thread, with each kind of vectors."""
    names = [name.split("/")[1] for name in of.families() if name.startswith("EvaluateChart/")]
    targets = [("AVX-512", name) for name in names if name.startswith("AVX3")][:1]
    targets += [(name, name) for name in names if name == "AVX2"]
    rows = []
    for heads, classes in ((1, 2), (3, 5), (8, 50), (16, 500)):
        shape = {"side": 2000, "heads": heads, "classes": classes}
        for instructions, target in targets:
            found, two = (of.one(f"EvaluateChart/{target}", threads=n, **shape) for n in (1, 2))
            write = of.one("WriteChart", threads=1, **shape)
            if found and two and write:
                rows.append(
                    [f"{heads}, {classes}", instructions, time(seconds(found)), time(seconds(two)), time(seconds(write))]
                    + [share(found["of_write"]), share(found["of_peak"])]
                )
    titles = ["heads, tokens", "instructions", ">one thread", ">two threads", ">plain writes, one thread"]
    return table(titles + [">share of plain writes", ">share of peak arithmetic"], rows)


def placed(listed, base):
    """Programs that place the same points: (title, result) each. `base` is the time that others are compared with."""
    for title, result in listed:
        if result is None:
            continue
        if "error_message" in result:
            yield [title, result["error_message"], "", "", "", ""]
            continue
        # The time of other programs is what they report: their processor time.
        taken = seconds(result) if "manual_time" in result["name"] else seconds(result, "cpu_time")
        yield [title, time(taken), times(taken / base)] + [
            counter(result, name, fixed) for name in ("divergence", "trustworthiness", "kept")
        ]


_PLACED = ["program", ">processor time", ">times ours", ">divergence", ">trustworthiness", ">neighbors kept"]


def tsne(of):
    """t-SNE of the points of a head, beside scikit-learn and openTSNE."""
    ours = [of.one("TSneOfHead", dimensions=2, steps=n) for n in (750, 250)]
    if not ours[0]:
        return []
    listed = [
        ("Attention Atlas, t-SNE, 750 iterations", ours[0]),
        ("Attention Atlas, t-SNE, 250 iterations", ours[1]),
        ("scikit-learn, Barnes-Hut, 750 iterations", of.one("HeadByProgram/scikit_learn")),
        ("openTSNE, 750 iterations", of.one("HeadByProgram/openTSNE")),
    ]
    return table(_PLACED, placed(listed, seconds(ours[0], "cpu_time")))


def umap(of):
    """UMAP of the points of a head, beside umap-learn."""
    ours = of.one("UmapOfHead", dimensions=2)
    if not ours:
        return []
    listed = [("Attention Atlas, UMAP", ours), ("umap-learn", of.one("UmapLearnOfHead"))]
    return table(_PLACED, placed(listed, seconds(ours, "cpu_time")))


def many_points(of, *programs):
    """Generated points, from thousands on. programs: (title, family) each."""
    rows = []
    for title, family in programs:
        for result in of.all(family):
            arguments = take_apart(result["name"])[1]
            cells = [title, f"{int(arguments['points']):,}", "all" if arguments["threads"] == "0" else arguments["threads"]]
            if "error_message" in result:
                rows.append(cells + [result["error_message"]] + [""] * 4)
                continue
            memory = counter(result, "peak_GiB", lambda number: f"{number:.1f} GiB")
            qualities = [counter(result, name, fixed) for name in ("divergence", "trustworthiness", "kept")]
            rows.append(cells + [time(seconds(result)), memory] + qualities)
    titles = ["program", ">points", ">threads", ">time", ">memory so far", ">divergence", ">trustworthiness"]
    return table(titles + [">neighbors kept"], rows)


FILTERS = (
    ("`AttentionTorus`: *Head Weights*, 2000 x 2000 points, attention of 3 heads", "HeadWeights", 2000),
    ("`AttentionTorus`: the same without attention", "ClassMap", 2000),
    ("`AttentionTorus`: the same of 512 x 512 points", "ClassMap", 512),
    ("`TorusDeformation`: a radius of the donut, 1024 x 1024 points", "Donut", 1024),
    ("`TorusDeformation`: new vectors, whitened, 1024 x 1024 points", "Surface", 1024),
    ("`TokenPairs`: *Head Weights*, 50 tokens", "Pairs", 50),
    ("`TokenPairs`: *Head Weights*, 500 tokens", "Pairs", 500),
    ("`AttentionMap`: another head, 512 tokens", "Map", 512),
    ("`AttentionMap`: another head, 2,048 tokens", "Map", 2048),
    ("`HeadEmbedding`: 8 heads of 256 tokens by principal components", "Embedding", 256),
    ("`HeadEmbedding`: *Arrangement* of 8 heads of 2,048 tokens, which needs no layout", "Arranged", 2048),
    ("`AttentionSentence`: another head, 64 tokens", "Sentence", 64),
    ("`AttentionSentence`: another head, 512 tokens", "Sentence", 512),
    ("`PatchAttention`: another head, of a word on pictures, 2,048 tokens", "Words", 2048),
)


def filters(of):
    rows = []
    for title, family, size in FILTERS:
        result = of.one(family, _0=size)
        if result:
            # What Arranged is compared with is a copy, not a kernel.
            kernel = "" if family == "Arranged" else counter(result, "cpu_over_kernel", times)
            rows.append([title, counter(result, "filter_ms", milliseconds), counter(result, "cpu_ms", milliseconds), kernel])
    return table(["change", ">time", ">processor time", ">times the kernel"], rows)


def sliders(of):
    rows = []
    for side in (512, 1024, 2048):
        cells = [of.one("HeadWeights/update", _0=side), of.one("HeadWeights/frame", _0=side)]
        cells += [of.one("HeadWeights/frame without FXAA", _0=side), of.one("Unchanged/frame", _0=side)]
        if all(cells):
            rows.append([f"{side} x {side}"] + [time(seconds(cell)) for cell in cells])
    titles = ["points", ">arrays", ">next frame", ">next frame without FXAA", ">frame without a change"]
    return table(titles, rows)


def starts(of):
    names = (
        ("GUI, without the plugin", "Start of the GUI/without plugin"),
        ("GUI, with the plugin", "Start of the GUI/with plugin"),
        ("pvpython, without the plugin", "Start/without plugin"),
        ("pvpython, with the plugin", "Start/with plugin"),
        ("of which `LoadPlugin`", "Start/LoadPlugin"),
        ("pvpython to the PNG of a map of a small model", "Cold"),
    )
    found = [(title, of.one(family)) for title, family in names]
    return table(["what", ">time"], [[title, time(seconds(result))] for title, result in found if result])


def ranks(of):
    names = (
        ("a chart of 4096 x 4096", "Chart", {"_0": 4096}),
        ("a surface of 1024 x 1024 points", "Surface", {"_0": 1024}),
        ("40 trainings of 500 steps", "Training/40x500", {}),
    )
    rows = []
    for title, family, arguments in names:
        one, two = (of.one(family, ranks=count, **arguments) for count in (1, 2))
        if one and two:
            rows.append([title, time(seconds(one)), time(seconds(two))])
    return table(["what", ">one rank", ">two ranks"], rows)


def recording(of):
    rows = []
    for result in of.all("Record"):
        arguments = take_apart(result["name"])[1]
        threads = "all" if arguments["threads"] == "0" else arguments["threads"]
        rows.append(
            [f"{arguments['sequences']} x {int(arguments['length']):,}", threads]
            + [time(seconds(result)), counter(result, "tokens_per_s", number)]
            + [counter(result, "share_of_blas", share)]
            + [counter(result, "torch_to_record", times) or result.get("label", "")]
            + [counter(result, "spinning_torch_to_record", times), counter(result, "peak_MiB", memory)]
        )
    titles = ["tokens", ">threads", ">time", ">tokens per second", ">rate of the products alone"]
    titles += [">time of torch, times ours", ">the same as it comes"]
    return table(titles + [">peak memory, with weights"], rows)


def recording_bfloat16(of):
    rows = []
    for result in of.all("RecordBfloat16"):
        if "tokens_per_s" not in result:  # the processor has no such products
            continue
        arguments = take_apart(result["name"])[1]
        rows.append(
            [f"{arguments['sequences']} x {int(arguments['length']):,}", time(seconds(result))]
            + [counter(result, "tokens_per_s", number), counter(result, "floats_to_bfloat16", times)]
            + [counter(result, "torch_to_record", times) or result.get("label", "")]
            + [counter(result, "spinning_torch_to_record", times)]
        )
    titles = ["tokens", ">time", ">tokens per second", ">time with floats, times this"]
    return table(titles + [">time of torch, times this", ">the same as it comes"], rows)


def training(of):
    rows = []
    for result in of.all("Step"):
        rows.append(
            [take_apart(result["name"])[1][0], time(seconds(result)), counter(result, "tokens_per_s", number)]
            + [counter(result, "share_of_products", share)]
            + [counter(result, "torch_to_step", times) or result.get("label", "")]
        )
    titles = ["threads", ">time of a step", ">tokens per second", ">rate of the products alone"]
    return table(titles + [">time of torch, times ours"], rows)


def attention_tokens(of):
    rows = []
    for result in of.all("Find", reading=0):
        tokens = take_apart(result["name"])[1]["tokens"]
        rows.append(
            [tokens, time(seconds(result)), time(seconds(result, "cpu_time")), number(result["GFlop"], 3)]
            + [counter(result, "share_of_peak", share), memory(result["peak_MiB"] - result["weights_MiB"])]
        )
    titles = ["tokens", ">time", ">processor time", ">billion operations", ">share of peak arithmetic"]
    return table(titles + [">memory beside the weights"], rows)


def circuits(of):
    names = (
        ("skip-trigrams of a head, 2,048 sources (the default)", "SkipTrigrams", {"sources": 2048}),
        ("skip-trigrams of a head, all 50,257 sources", "SkipTrigrams", {"sources": 0}),
        ("activation patching, 15 tokens, 144 heads (the default)", "Patching", {"kind": 0}),
        ("activation patching, 15 tokens, residual stream at 180 places", "Patching", {"kind": 1}),
        ("recording 15 tokens, for comparison", "Recording", {}),
        ("attribution: a run in double precision", "Run", {}),
        ("attribution: a backward pass", "Backward", {}),
        ("attribution: all 32,491 edges ranked", "Edges", {}),
        ("an exact edge", "ExactEdge", {}),
        ("a circuit of all edges", "CircuitOfEdges", {}),
    )
    found = [(title, of.one(family, **arguments)) for title, family, arguments in names]
    rows = [[title, time(seconds(result)), time(seconds(result, "cpu_time"))] for title, result in found if result]
    return table(["what", ">time", ">processor time"], rows)


def long_maps(of):
    rows = []
    for result in of.all("Pooled"):
        arguments = take_apart(result["name"])[1]
        tokens, causal = int(arguments[0]), arguments[1] == "1"
        pairs = tokens**2 / (2 if causal else 1)
        power = len(str(int(pairs))) - 1
        rows.append(
            ["causal" if causal else "without a mask", f"{tokens:,}", f"{pairs / 10**power:.2g} 10^{power}"]
            + [time(seconds(result)), counter(result, "cpu_s", time), counter(result, "peak_MiB", memory)]
        )
    return table(["mask", ">tokens", ">pairs", ">time", ">processor time", ">peak memory"], rows)


def long_windows(of):
    rows = [
        [f"{int(take_apart(result['name'])[1][0]):,}", counter(result, "slowest_ms", milliseconds)]
        + [counter(result, "cpu_s", time)]
        for result in of.all("Zoomed")
    ]
    return table([">tokens", ">slowest window", ">processor time of all windows"], rows)


def long_recordings(of):
    rows = [
        [f"{int(take_apart(result['name'])[1][0]):,}", time(seconds(result)), counter(result, "cpu_s", time)]
        + [counter(result, "peak_MiB", memory), counter(result, "estimate_MiB", memory)]
        for result in of.all("Recorded")
    ]
    titles = [">tokens", ">time", ">processor time", ">peak memory", ">estimated beforehand, without weights"]
    return table(titles, rows)


def bits(of):
    rows = []
    for kind in range(6):
        long, short = (of.one("Record", type=kind, millions=1240, length=length) for length in (128, 16))
        generated = of.one("Generate", type=kind, millions=1240)
        if long and short and generated:
            rows.append(
                [long["label"], memory(long["file_MiB"]), memory(long["beside_MiB"])]
                + [number(result["cpu_tokens_per_s"]) for result in (long, short, generated)]
            )
    titles = ["type", ">file", ">memory, 128 tokens", ">128 tokens recorded", ">16 tokens recorded"]
    return table(titles + [">generation"], rows)


def corpus(of):
    rows = []
    for result in of.all("Gpt2"):
        arguments = take_apart(result["name"])[1]
        rows.append(
            [arguments["window"], "compared" if arguments["agreement"] == "1" else "not compared"]
            + [counter(result, "tokens_per_s", number), counter(result, "share_of_recorder", fixed)]
            + [counter(result, "statistics_MiB", memory)]
        )
    titles = [">window", "attention of heads", ">tokens per second", ">share of the recorder's speed"]
    return table(titles + [">memory beside the weights, at most"], rows)


def corpus_length(of):
    rows = []
    for result in of.all("Language2"):
        tokens = int(take_apart(result["name"])[1][0])
        rows.append([f"{tokens:,}", time(seconds(result)), number(tokens / seconds(result))])
    return table([">tokens", ">time", ">tokens per second"], rows)


def geometry(of):
    names = (
        ("a value for each of 10,000,000 places of 64 slices (2.56 GB of weights)", "QueryOfSlices"),
        ("what one of 64 slices holds, for each of 10,000,000 places", "QueryOfOneSlice"),
        ("a value for each of 10,000,000 places of one of 10,000 tokens", "QueryOfTokens"),
        ("checks, sums and centers of 10,000,000 places of 64 slices, once after they are bound", "SumsOfSlices"),
    )
    rows = []
    for title, family in names:
        result = of.one(family, _0=10_000_000)
        if result:
            rates = [counter(result, name, rate) for name in ("GB_per_s", "memory_GB_per_s")]
            rows.append([title, time(seconds(result)), *rates])
    return table(["what", ">time", ">rate of all weights", ">rate of a plain read"], rows)


def binding(of):
    names = (
        ("the nearest of 10,000 tokens for 1,026,895 tetrahedra", "Nearest"),
        ("a new query on these", "Query"),
    )
    found = [(title, of.one(family)) for title, family in names]
    return table(["what", ">time"], [[title, time(seconds(result))] for title, result in found if result])


def tokenizers(of):
    rows = []
    for title, ours, library in (
        ("pairs of bytes", "Own/BytePairsOfModel", "Library/BytePairs"),
        ("unigrams", "Own/UnigramOfModel", "Library/Unigram"),
    ):
        own, other = of.one(ours), of.one(library)
        if own and "items_per_second" in own:
            cells = [title, number(own["items_per_second"])]
            missing = "libsentencepiece-dev is not installed"
            rows.append(cells + [number(other["items_per_second"]) if other and "items_per_second" in other else missing])
    return table(["model", ">Attention Atlas, tokens per second", ">sentencepiece"], rows)


def grown(of):
    rows = []
    for found in growth.growths(of.results):
        law = found.law.replace("^1.5", "^(3/2)").replace("^2", "²")
        rows.append(
            [found.view, found.unit, law, f"{found.stated():.2f}", f"{found.measured():.2f}"]
            + ["above" if found.is_above() else "holds", f"{found.sizes[-1]:,}", time(found.clock)]
        )
    titles = ["view", "grows with", "stated law", ">its exponent", ">measured", "law", ">largest size", ">time there"]
    return table(titles, rows)


#: The benchmark of each table, and what writes it.
TABLES = {
    "maps": ("BenchmarkFieldEvaluation", maps),
    "t-SNE": ("BenchmarkEmbedding", tsne),
    "UMAP": ("BenchmarkUmap", umap),
    "t-SNE of many points": ("BenchmarkEmbedding", lambda of: many_points(
        of, ("Attention Atlas", "TSneOfGenerated"), ("openTSNE", "OpenTsneOfGenerated"))),
    "UMAP of many points": ("BenchmarkUmap", lambda of: many_points(
        of, ("Attention Atlas", "UmapOfGenerated"), ("umap-learn", "UmapLearnOfGenerated"))),
    "filters": ("BenchmarkFilters", filters),
    "sliders": ("BenchmarkParaView", sliders),
    "starts": ("BenchmarkParaView", starts),
    "ranks": ("BenchmarkParaView", ranks),
    "recording": ("BenchmarkTransformer", recording),
    "recording with BF16": ("BenchmarkTransformer", recording_bfloat16),
    "training": ("BenchmarkLearning", training),
    "tokenizers": ("BenchmarkTokenizers", tokenizers),
    "attention tokens": ("BenchmarkAttentionTokens", attention_tokens),
    "circuits": ("BenchmarkCircuits", circuits),
    "long maps": ("BenchmarkLongContext", long_maps),
    "long windows": ("BenchmarkLongContext", long_windows),
    "long recordings": ("BenchmarkLongContext", long_recordings),
    "few bits": ("BenchmarkQuantized", bits),
    "corpus": ("BenchmarkCorpus", corpus),
    "length of a corpus": ("BenchmarkCorpus", corpus_length),
    "places": ("BenchmarkGeometry", geometry),
    "binding": ("BenchmarkBindTokens", binding),
    "growth": ("BenchmarkGrowth", grown),
}
#: The packages that a table compares with, by its name.
COMPARED = {
    "t-SNE": ("scikit-learn", "openTSNE"),
    "t-SNE of many points": ("openTSNE",),
    "UMAP": ("umap-learn",),
    "UMAP of many points": ("umap-learn",),
    "recording": ("python3-torch",),
    "recording with BF16": ("python3-torch",),
    "training": ("python3-torch",),
    "tokenizers": ("libsentencepiece-dev",),
}


def where(name, context):
    """The line below a table: machine, date, other programs, and the version of what is compared with."""
    date = datetime.datetime.fromisoformat(context["date"])
    others = context.get("others")
    if others is None:
        load = "it is not known what else ran"
    elif others <= QUIET:
        load = f"a quiet machine: other programs used {share(others)} of the processors"
    else:
        load = f"a busy machine: other programs used {share(others)} of the processors"
    machine = f"{context['processor']} with {context['instructions']}, {context['num_cpus']} cores"
    text = f"{machine}, {date.day} {date:%B %Y}; {load}"
    peers = context.get("peers", {})
    for package in COMPARED.get(name, ()):
        if package in peers:
            version = peers[package]
            text += f"; {package} {version}" if version else f"; {package} is not installed"
    return f"*{text}.*"


def write(page, reports):
    """The page with the tables of the results, which are those of benchmarks by name."""
    for name, (benchmark, make) in TABLES.items():
        if benchmark not in reports:
            continue
        lines = make(reports[benchmark])
        if len(lines) < 3:
            continue
        begin, end = f"<!-- measured: {name} -->\n", f"<!-- end of {name} -->\n"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"expected one place of the table {name}, found {page.count(begin)} and {page.count(end)}")
        before, after = page.index(begin) + len(begin), page.index(end)
        text = "\n".join(["", *lines, "", where(name, reports[benchmark].context), "", ""])
        page = page[:before] + text + page[after:]
    return page


def main(path, results):
    reports = {}
    for result in results:
        if not pathlib.Path(result).exists():
            print(f"{result}: not there, so its tables stay as they are")
            continue
        context, listed = read(result)
        reports[pathlib.Path(context["executable"]).name] = Results(context, listed)
    page = pathlib.Path(path)
    text = write(page.read_text(encoding="utf-8"), reports)
    if "BenchmarkGrowth" in reports:
        growth.draw(growth.growths(reports["BenchmarkGrowth"].results), page.parent / "pictures" / "Growth.png")
    part = page.with_name(page.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(page)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        main(sys.argv[1], sys.argv[2:])
    except ValueError as problem:
        sys.exit(str(problem))
