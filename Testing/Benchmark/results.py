"""How results of Google Benchmark are read."""

import json

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
#: Parts of names that say how something was timed.
_TIMING = ("real_time", "manual_time", "process_time")


def read(path):
    """The context and the results of a file. Raises ValueError."""
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        return report["context"], report["benchmarks"]
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path}: expected the JSON of a Google Benchmark, found {error!r}") from error


def take_apart(name):
    """The family of a benchmark, and its arguments by name; those without one by their place, from 0."""
    family, arguments, place = [], {}, 0
    for part in name.split("/"):
        key, colon, value = part.partition(":")
        if part in _TIMING or key in ("min_time", "min_warmup_time", "iterations", "repeats"):
            continue
        if colon:
            arguments[key] = value
        elif part.isdigit():
            arguments[place] = part
            place += 1
        else:
            family.append(part)
    return "/".join(family), arguments


def seconds(result, kind="real_time"):
    """The time of an iteration. Google Benchmark divides by the iterations of all threads, each of which does its
    share."""
    return result[kind] * UNITS[result["time_unit"]] * result.get("threads", 1)
