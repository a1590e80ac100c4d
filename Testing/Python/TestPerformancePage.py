"""The tables that benchmarks write into Performance.md, from results that are written here: without running any.

    python3 TestPerformancePage.py
"""

import contextlib
import io
import json
import math
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "Testing" / "Benchmark"))
import growth  # noqa: E402
import page  # noqa: E402
import results  # noqa: E402
import run  # noqa: E402
import table  # noqa: E402

CONTEXT = {
    "date": "2026-03-05T10:00:00+00:00",
    "executable": "bin/BenchmarkEmbedding",
    "num_cpus": 2,
    "processor": "AMD EPYC",
    "instructions": "AVX2",
    "others": 0.021,
    "peers": {"python3-sklearn": "1.2.1", "umap-learn": None},
}
#: What Google Benchmark writes of t-SNE beside scikit-learn.
EMBEDDING = [
    {
        "name": "TSneOfHead/dimensions:2/steps:750",
        "real_time": 3100.0,
        "cpu_time": 2500.0,
        "time_unit": "ms",
        "threads": 1,
        "divergence": 0.9966,
        "trustworthiness": 0.98249,
        "kept": 0.3886,
    },
    {
        "name": "TSneOfHead/dimensions:3/steps:750",
        "real_time": 9000.0,
        "cpu_time": 8000.0,
        "time_unit": "ms",
        "threads": 1,
    },
    {
        "name": "ScikitLearnOfHead/iterations:1/manual_time",
        "real_time": 50000.0,
        "cpu_time": 1.0,
        "time_unit": "ms",
        "threads": 1,
        "divergence": 1.054,
        "trustworthiness": 0.982,
        "kept": 0.385,
    },
]
PAGE = """# Performance

By hand.

<!-- measured: t-SNE -->

What was there.

<!-- end of t-SNE -->

Also by hand: 5 s.
"""
WRITTEN = """# Performance

By hand.

<!-- measured: t-SNE -->

| program | processor time | times ours | divergence | trustworthiness | neighbors kept |
|---|---:|---:|---:|---:|---:|
| Attention Atlas, t-SNE, 750 iterations | 2.5 s | 1 | 0.997 | 0.982 | 0.389 |
| scikit-learn, Barnes-Hut, 750 iterations | 50 s | 20 | 1.054 | 0.982 | 0.385 |

*AMD EPYC with AVX2, 2 cores, 5 March 2026; a quiet machine: other programs used 2 % of the processors; python3-sklearn 1.2.1.*

<!-- end of t-SNE -->

Also by hand: 5 s.
"""


def grown(view, law, times):
    """The results of BenchmarkGrowth, of these times by size."""
    return [
        {
            "name": f"{view}/tokens:{size}/min_time:0.050/manual_time",
            "real_time": 1000 * seconds,
            "cpu_time": 1.0,
            "time_unit": "ms",
            "threads": 1,
            "cpu_s": 2 * seconds,
            "label": law,
        }
        for size, seconds in times.items()
    ]


class Pages(unittest.TestCase):
    def written(self, listed, context=CONTEXT, text=PAGE):
        """The page that the command writes from one file of results."""
        with tempfile.TemporaryDirectory() as folder:
            path, result = pathlib.Path(folder, "Performance.md"), pathlib.Path(folder, "result.json")
            path.write_text(text, encoding="utf-8")
            result.write_text(json.dumps({"context": context, "benchmarks": listed}), encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()):
                page.main(str(path), [str(result), str(pathlib.Path(folder, "absent.json"))])
            return path.read_text(encoding="utf-8")

    def test_only_what_was_measured_is_written(self):
        once = self.written(EMBEDDING)
        self.assertEqual(once, WRITTEN)
        self.assertEqual(self.written(EMBEDDING, text=once), WRITTEN)
        self.assertEqual(self.written(EMBEDDING[1:2]), PAGE)  # nothing of the table

    def test_missing_programs_are_named(self):
        missing = {"name": "ScikitLearnOfHead/iterations:1/manual_time", "error_message": "python3-sklearn is not installed"}
        context = CONTEXT | {"peers": {"python3-sklearn": None}, "others": 0.4}
        text = self.written([EMBEDDING[0], missing], context)
        self.assertIn("| scikit-learn, Barnes-Hut, 750 iterations | python3-sklearn is not installed | | | | |\n", text)
        self.assertIn(
            "; a busy machine: other programs used 40 % of the processors; python3-sklearn is not installed.*\n", text
        )
        step = {"name": "Step/2/iterations:3/manual_time", "real_time": 300.0, "time_unit": "ms"}
        step |= {"label": "python3-torch is not installed", "tokens_per_s": 27300.0, "share_of_products": 0.8}
        self.assertEqual(
            page.training(page.Results(CONTEXT, [step]))[2], "| 2 | 300 ms | 27,300 | 80 % | python3-torch is not installed |"
        )

    def test_what_has_no_place_is_an_error(self):
        for text in (PAGE.replace("measured: t-SNE", "measured: other"), PAGE + PAGE):
            with self.assertRaisesRegex(ValueError, "one place of the table t-SNE, found [02] and [12]"):
                self.written(EMBEDDING, text=text)

    def test_the_page_has_every_table_once(self):
        text = (ROOT / "Plugin" / "Documentation" / "Performance.md").read_text(encoding="utf-8")
        self.assertEqual(sorted(re.findall(r"^<!-- measured: (.+) -->$", text, re.M)), sorted(page.TABLES))
        places = re.findall(r"^<!-- measured: (.+) -->\n(?s:.*?)^<!-- end of (.+) -->$", text, re.M)
        self.assertTrue(all(begin == end for begin, end in places), places)
        self.assertEqual(len(places), len(page.TABLES))

    def test_every_table_is_of_a_benchmark(self):
        folder = ROOT / "Testing" / "Benchmark"
        for name, (benchmark, _) in page.TABLES.items():
            with self.subTest(name):
                self.assertTrue(any((folder / f"{benchmark}{ending}").exists() for ending in (".cxx", ".py")))
        self.assertEqual(set(page.COMPARED.values()), set(run.PEERS))
        script = (ROOT / "Plugin" / "install-deps.sh").read_text(encoding="utf-8")
        self.assertIn(f"for package in {' '.join(run.PEERS)}; do", script)

    def test_numbers(self):
        self.assertEqual([page.number(x) for x in (0, 0.0123, 1.04, 19.6, 12345.6)], ["0", "0.012", "1", "20", "12,300"])
        times = [page.time(x) for x in (31.4, 2.04, 0.0123, 0.00021)]
        self.assertEqual(times, ["31 s", "2 s", "12 ms", "210 µs"])


class Growth(unittest.TestCase):
    SIZES = [2**power for power in range(10, 17)]

    def of(self, law, function):
        (found,) = growth.growths(grown("AttentionMap", law, {size: function(size) for size in self.SIZES}))
        return found

    def test_laws_are_found(self):
        for law, function in growth.LAWS.items():
            with self.subTest(law):
                found = self.of(law, function)
                self.assertAlmostEqual(found.measured(), found.stated())
                self.assertFalse(found.is_above())
        for law, exponent in (("n", 1), ("n^1.5", 1.5), ("n^2", 2)):
            self.assertAlmostEqual(self.of(law, growth.LAWS[law]).stated(), exponent)
        # Between neighbors of a doubling, n log n grows by 2 log(2 n) / log n.
        between = [math.log2(2 * math.log(2 * n) / math.log(n)) for n in self.SIZES[3:-1]]
        self.assertTrue(min(between) < self.of("n log n", growth.LAWS["n log n"]).stated() < max(between))

    def test_small_sizes_do_not_count(self):
        found = self.of("n", lambda size: size if size >= self.SIZES[3] else 1e6)
        self.assertEqual(found.upper(), 3)
        self.assertAlmostEqual(found.measured(), 1)
        self.assertEqual(growth.Growth("", "", "n", [1, 2, 4], [1, 2, 4], 4).upper(), 0)

    def test_what_is_above_its_law_is_said(self):
        listed = grown("AttentionMap", "n", {size: 1e-6 * size**1.2 for size in self.SIZES})
        listed += grown("HeadEmbedding/TSne", "n^2", {size: 1e-9 * size**2 for size in self.SIZES})
        listed.append({"name": "AttentionMap/tokens:131072", "error_message": "the filter failed"})
        lines = page.grown(page.Results(CONTEXT, listed))
        self.assertEqual(
            lines,
            [
                "| view | grows with | stated law | its exponent | measured | law | largest size | time there |",
                "|---|---|---|---:|---:|---|---:|---:|",
                "| AttentionMap | tokens | n | 1.00 | 1.20 | above | 65,536 | 602 ms |",
                "| HeadEmbedding, t-SNE | tokens | n² | 2.00 | 2.00 | holds | 65,536 | 4.3 s |",
            ],
        )

    def test_the_figure_is_small(self):
        listed = growth.growths(grown("AttentionMap", "n", {size: 1e-6 * size for size in self.SIZES}))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "Growth.png")
            growth.draw(listed, path)
            self.assertTrue(path.read_bytes().startswith(b"\x89PNG"))
        kept = ROOT / "Plugin" / "Documentation" / "pictures" / "Growth.png"
        self.assertLess(kept.stat().st_size, 100_000)


class Runs(unittest.TestCase):
    def test_names_are_taken_apart(self):
        self.assertEqual(
            results.take_apart("TSneOfHead/dimensions:2/steps:750/min_time:3.000/iterations:1/manual_time"),
            ("TSneOfHead", {"dimensions": "2", "steps": "750"}),
        )
        self.assertEqual(results.take_apart("Pooled/100000/1/real_time"), ("Pooled", {0: "100000", 1: "1"}))
        self.assertEqual(
            results.take_apart("Start of the GUI/with plugin"), ("Start of the GUI/with plugin", {})
        )
        self.assertEqual(results.take_apart("HeadWeights/512/frame"), ("HeadWeights/frame", {0: "512"}))

    def test_the_machine_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            info, stat = pathlib.Path(folder, "cpuinfo"), pathlib.Path(folder, "stat")
            info.write_text("processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu sse4_1 avx2\n", encoding="utf-8")
            self.assertEqual(run.processor(info), ("AMD EPYC", "AVX2"))
            info.write_text(info.read_text().replace("avx2", "avx2 avx512f"), encoding="utf-8")
            self.assertEqual(run.processor(info)[1], "AVX-512")
            stat.write_text("cpu  100 20 30 9999 8888 4 5 6 7 8\ncpu0 1 1 1 1 1 1 1 1 1 1\n", encoding="utf-8")
            self.assertAlmostEqual(run.busy(stat) * run.os.sysconf("SC_CLK_TCK"), 100 + 20 + 30 + 4 + 5 + 6)

    def test_results_get_the_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            result = pathlib.Path(folder, "result.json")
            program = f"import json; json.dump({{'context': {{'num_cpus': 2}}, 'benchmarks': []}}, open({str(result)!r}, 'w'))"
            run.main(str(result), [sys.executable, "-c", program])
            context, listed = results.read(result)
            self.assertEqual((context["num_cpus"], listed), (2, []))
            self.assertEqual((context["processor"], context["instructions"]), run.processor())
            self.assertTrue(context["others"] is None or 0 <= context["others"] <= 1)
            self.assertTrue(set(context["peers"]) <= set(run.PEERS))
            with self.assertRaisesRegex(SystemExit, "exit status 3"):
                run.main(str(result), [sys.executable, "-c", f"open({str(result)!r}, 'w').write('{{'); raise SystemExit(3)"])
            self.assertFalse(result.exists())

    def test_the_printed_table_says_what_else_ran(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "result.json")
            path.write_text(json.dumps({"context": CONTEXT, "benchmarks": EMBEDDING}), encoding="utf-8")
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                table.main([str(path)])
        self.assertIn("\nOther programs used 2% of the processors.\n", printed.getvalue())
        self.assertIn("| ScikitLearnOfHead | 5e+04 ms |", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
