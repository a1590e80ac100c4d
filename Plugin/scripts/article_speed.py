"""Measures the live article in Chromium with software rendering: milliseconds of a frame while each control moves, on
canvases of two sizes, and what of it is the shader; the time until the first picture; and what JavaScript would take
for the same points. Writes JSON.

    python3 article_speed.py ARTICLE.html [OUTPUT.json]
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Testing" / "Python"))
from chromium import Chromium  # noqa: E402

SIZES = (512, 1024)
FRAMES = 12
#: Pixels drawn for one of the canvas, along each side: at rest, and at least while something moves.
DETAILS = (1, 0.3)
#: Chapter, value, and its range.
CONTROLS = (
    ("two-tokens", "temperature", (0, 3)), ("circle", "angle0", (-3, 3)), ("torus", "shape", (0, 2)),
    ("torus", "residual", (0, 1)), ("harmonics", "wave1", (0, 3)), ("harmonics", "wave2", (-3, 3)),
    ("sphere", "weight0", (-1, 3)), ("heads", "weight0", (-1, 3)), ("training", "frame", (0, 60)),
    ("trained", "checkpoint", (0, 6)),
)
#: A map drawn by the shader alone; and the same points by the script, in milliseconds.
SHADER = """(() => { const {painter} = article, {evaluator} = article.chapters[1], times = [];
  const look = {camera: [[1, 0, 0], [0, 0, 1], [0, -1, 0]], zoom: [1, 1], isFlat: true};
  for (let i = 0; i < 12; ++i) { const from = performance.now();
    painter.begin(SIZE, SIZE); painter.drawSurface(evaluator, look); painter.finish();
    times.push(performance.now() - from); }
  return times.sort((a, b) => a - b)[5]; })()"""
SCRIPT = """(() => { const from = performance.now(); article.chapters[1].evaluator.grid(SIZE, ({predicted}) => predicted);
  return performance.now() - from; })()"""


def main(path, output=None):
    measured = {"bytes": pathlib.Path(path).stat().st_size, "frames": []}
    with Chromium() as browser:
        browser.resize(1300, 900)
        browser.open(path)
        measured["first picture"] = int(browser.state("milliseconds"))
        for chapter, value, ends in CONTROLS:
            for size in SIZES:
                times = [
                    browser.run(f"article.measure('{chapter}', '{value}', {list(ends)}, {size}, {FRAMES}, {detail})")
                    for detail in DETAILS
                ]
                row = {"chapter": chapter, "control": value, "size": size}
                measured["frames"].append({**row, **{f"detail {d}": round(t, 1) for d, t in zip(DETAILS, times)}})
        for size in SIZES:
            for name, script in (("shader", SHADER), ("script", SCRIPT)):
                measured[f"{name} {size}"] = round(browser.run(script.replace("SIZE", str(size))), 1)
    text = json.dumps(measured, indent=1)
    if output:
        pathlib.Path(output).write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
