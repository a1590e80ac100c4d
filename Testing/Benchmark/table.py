#!/usr/bin/env python3
"""Prints the results of Google Benchmark as a table in Markdown, with the share of its limit that
each path reaches.

    table.py RESULT.json [RESULT.json ...]
"""

import re
import sys

from results import read
from run import processor

COUNTERS = {
    "of_write": "of plain writes",
    "of_peak": "of peak arithmetic",
    "of_limit": "of its limit",
}
NUMBERS = {
    "kernel_ms": "kernel, ms",
    "filter_over_kernel": "time over kernel's",
    "cpu_ms": "processor time, ms",
    "cpu_over_kernel": "processor time over kernel's",
}


def number(value, unit):
    """The value with an SI prefix, to three digits."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def rate(result):
    """What the path does per second."""
    if "items_per_second" in result:
        return number(result["items_per_second"], "/s")
    if "operations_per_second" in result:
        return number(result["operations_per_second"], "flop/s")
    return ""


def row(cells):
    return "| " + " | ".join(cells) + " |"


def table(results):
    """The lines of the table of one file's results."""
    titles = COUNTERS | NUMBERS
    counters = [c for c in titles if any(c in r for r in results)]
    yield row(["path", "time", "rate", "written"] + [titles[c] for c in counters])
    yield row(["---"] + ["---:"] * (3 + len(counters)))
    for result in results:
        if "error_message" in result:
            yield row([result["name"], result["error_message"]] + [""] * (2 + len(counters)))
            continue
        written = result.get("bytes_per_second")
        # Google Benchmark divides by the iterations of all threads, each of which does its share.
        time = result["real_time"] * result.get("threads", 1)
        yield row(
            [re.sub("/(real_time|manual_time|process_time|min_time:[0-9.]+|iterations:[0-9]+)", "", result["name"])]
            + [f"{time:.3g} {result['time_unit']}", rate(result)]
            + [number(written, "B/s") if written else ""]
            + [(f"{result[c]:.3g}" if c in NUMBERS else f"{result[c]:.0%}") if c in result else "" for c in counters]
        )


def main(paths):
    if not paths:
        sys.exit(__doc__)
    for index, path in enumerate(paths):
        try:
            context, results = read(path)
        except ValueError as error:
            sys.exit(str(error))
        if index == 0:
            print(f"{processor()[0]}, {context['num_cpus']} cores, {context['date']}\n")
        print(f"## {context['executable'].rsplit('/', 1)[-1]}\n")
        if context.get("others") is not None:
            print(f"Other programs used {context['others']:.0%} of the processors.\n")
        print("\n".join(table(results)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
