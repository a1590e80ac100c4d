#!/usr/bin/env python3
"""Runs a benchmark, and adds to its results on which machine it ran and what else ran there.

    run.py RESULT.json PROGRAM [ARGUMENT...]

The program writes RESULT.json, of which "context" then also has
  processor     the name that Linux reports
  instructions  the widest vector instructions: AVX-512, AVX2 or another
  others        the share of the processors' time that was not this program's, 0 to 1
  peers         versions of the other programs by package, null for those that are not installed
"""

import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import time

#: What is compared with, as Debian packages it and in the Python registry: install-deps.sh --peers.
PEERS = ("python3-torch", "libsentencepiece-dev")
REGISTRY = ("scikit-learn", "openTSNE", "umap-learn")
#: The Python that has what comes from the registry.
PEERS_PYTHON = pathlib.Path(__file__).parents[2] / "build/peers/bin/python3"


def processor(path="/proc/cpuinfo"):
    """The processor's name and its widest vector instructions."""
    name, flags = platform.processor() or "unknown processor", []
    try:
        with open(path, encoding="utf-8") as info:
            for line in info:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    name = value.strip()
                elif key.strip() in ("flags", "Features"):
                    flags = value.split()
                    break
    except OSError:
        pass
    widest = {"avx512f": "AVX-512", "avx2": "AVX2", "sve": "SVE", "asimd": "NEON", "sse4_1": "SSE4"}
    return name, next((text for flag, text in widest.items() if flag in flags), "no vectors")


def registered():
    """The versions of the packages from the Python registry; None for those that are not installed."""
    script = "import importlib.metadata as m; print(*(f'{d.name}={d.version}' for d in m.distributions()))"
    try:
        done = subprocess.run([PEERS_PYTHON, "-c", script], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return dict.fromkeys(REGISTRY)
    versions = {name.lower(): version for name, version in (word.split("=", 1) for word in done.stdout.split())}
    return {name: versions.get(name.lower()) for name in REGISTRY}


def peers():
    """The versions of the packages that are installed."""
    found = registered()
    for package in PEERS:
        try:
            done = subprocess.run(
                ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package], capture_output=True, text=True
            )
        except OSError:
            return {}
        status, _, version = done.stdout.partition(" ")
        found[package] = version if status == "installed" else None
    return found


def busy(path="/proc/stat"):
    """Seconds of all processors that programs and the system used, and other virtual machines took."""
    with open(path, encoding="utf-8") as stat:
        user, nice, system, _, _, interrupt, soft, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + interrupt + soft + steal) / os.sysconf("SC_CLK_TCK")


def own():
    """Seconds of processors that ended programs used that this one started."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(command):
    """Runs a program, and returns its exit status and the share that others had; None if the system does not tell."""
    try:
        before = busy() - own(), time.monotonic()
        status = subprocess.run(command).returncode
        others, passed = busy() - own() - before[0], time.monotonic() - before[1]
    except (OSError, ValueError):
        return subprocess.run(command).returncode, None
    return status, min(1, max(0, others / (passed * os.cpu_count())))


def main(path, command):
    result = pathlib.Path(path)
    result.unlink(missing_ok=True)
    status, others = run(command)
    if status:
        result.unlink(missing_ok=True)  # of which only a part is there
        sys.exit(f"{command[0]}: exit status {status}")
    report = json.loads(result.read_text(encoding="utf-8"))
    name, instructions = processor()
    report["context"] |= {"processor": name, "instructions": instructions, "others": others, "peers": peers()}
    part = result.with_name(result.name + ".part")
    part.write_text(json.dumps(report, indent=2), encoding="utf-8")
    part.replace(result)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
