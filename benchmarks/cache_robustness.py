"""Tests the cache with many processes, killed builders, and pruning during builds.

    python benchmarks/cache_robustness.py [--processes 16] [--kills 50] [--rounds 10] [--json FILE]

1. Many processes request the same build at the same time. Counts the compilers that were started.
2. A builder is killed with SIGKILL at a random time, alone or with its compilers. Then another process builds the
   library and calls it.
3. Eight processes build or find libraries that were not used for days, and call them, in random orders, while others
   repeatedly prune all old entries.

Exits with 1 if a build fails, hangs, or returns a library that is missing or returns a wrong answer.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from opwright.toolchain.pytorch import find_pytorch

# Builds the given sources, calls each library, and prints the number of compiled sources.
BUILD = """
import ctypes, json, random, sys
from opwright.builder.compile import build_plan
from opwright.builder.plan import plan_sources
sources, compiled = json.loads(sys.argv[1]), 0
random.Random(int(sys.argv[2])).shuffle(sources)
for source, expected in sources:
    artefact = build_plan(plan_sources("mine", [source], cflags=["-O0"]))
    compiled += len(artefact.compiled)
    if sys.argv[3] == "build":
        continue
    answer = ctypes.CDLL(str(artefact.path)).answer()
    assert answer == expected, f"{source} answers {answer}, not {expected}"
print(compiled)
"""
PRUNE = """
import json, sys, time
from opwright.cache.bound import Bound
from opwright.cache.cache import Cache
until, removed = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < until:
    removed += len(Cache().prune(Bound(0, 0)).removed)
print(removed)
"""
SOURCE = '#include "{name}.h"\nextern "C" __attribute__((visibility("default"))) int answer() {{ return ANSWER; }}\n'
# Nothing here takes that long: a process that takes longer hangs.
LONGEST_S = 300.0
LIBRARIES, BUILDERS, PRUNERS = 12, 8, 2


class Workplace:
    """A folder with sources, a cache, and a compiler that logs its runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self._log = folder / "log"
        compiler = folder / "g++"
        compiler.write_text(f'#!/bin/sh\necho "$*" >> {self._log}\nexec {shutil.which("g++")} "$@"\n')
        compiler.chmod(0o755)
        self._environment = {
            **os.environ,
            "CXX": str(compiler),
            "OPWRIGHT_CACHE": str(self.cache),
            "OPWRIGHT_SHARED_CACHE": "",
            "LD_LIBRARY_PATH": str(find_pytorch().lib_dir),  # instead of importing PyTorch, which takes seconds
        }

    def write(self, name: str, answer: int) -> tuple[str, int]:
        """A source, and the answer of its library."""
        (self.folder / f"{name}.h").write_text(f"#define ANSWER {answer}\n")
        (self.folder / f"{name}.cpp").write_text(SOURCE.format(name=name))
        return str(self.folder / f"{name}.cpp"), answer

    def start(self, program: str, *arguments: object) -> subprocess.Popen[str]:
        """Start a Python program, in a separate process group."""
        return subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def build(self, sources: list[tuple[str, int]], seed: int = 0, then: str = "call") -> subprocess.Popen[str]:
        """Start a process that builds and calls the libraries of `sources`, in an order that `seed` determines."""
        return self.start(BUILD, json.dumps(sources), seed, then)

    def compilers(self) -> tuple[int, int]:
        """The number of compilers and linkers that ran since the last call."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return sum(" -c " in line for line in lines), sum("-o" in line.split() and " -c " not in line for line in lines)


def outcome(process: subprocess.Popen[str]) -> int:
    """The number that a process prints at its end; exits if the process fails or hangs."""
    try:
        out, err = process.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        sys.exit(f"a process hung for {LONGEST_S:.0f} s")
    if process.returncode != 0:
        sys.exit(f"a process failed:\n{out}{err}")
    return int(out)


def one_build(place: Workplace, processes: int) -> dict[str, Any]:
    """Many processes request the same build at the same time."""
    source = place.write("same", 7)
    started = time.perf_counter()
    compiled = [outcome(process) for process in [place.build([source]) for _ in range(processes)]]
    compilers, linkers = place.compilers()
    return {
        "processes": processes,
        "that_compiled": sum(compiled),
        "compilers": compilers,
        "linkers": linkers,
        "seconds": round(time.perf_counter() - started, 1),
    }


def kills(place: Workplace, times: int, seed: int) -> dict[str, Any]:
    """Builders are killed at random times, and others build and load afterwards."""
    moments = random.Random(seed)
    durations = []
    for answer in (-1, -2, -3):
        source = place.write("killed", answer)
        started = time.perf_counter()
        outcome(place.build([source], then="build"))
        durations.append(time.perf_counter() - started)
    too_late = resumed = 0
    for answer in range(1, times + 1):
        source = place.write("killed", answer)
        process = place.build([source], then="build")
        time.sleep(moments.uniform(0.1, 1.0) * min(durations))
        too_late += process.poll() is not None
        with contextlib.suppress(ProcessLookupError):
            if answer % 2:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()
        resumed += outcome(place.build([source])) == 0
    left = list((place.cache / "4/work").iterdir())
    return {"killed": times, "after_their_end": too_late, "found_whole_afterwards": resumed, "left_behind": len(left)}


def pruned(place: Workplace, rounds: int) -> dict[str, Any]:
    """Eight processes build and load libraries that others prune."""
    sources = [place.write(f"library_{number}", number) for number in range(LIBRARIES)]
    outcome(place.build(sources))
    removed = compiled = 0
    for number in range(rounds):
        for entry in place.cache.glob("*/entries/*.json"):
            then = time.time() - 3 * 86_400
            os.utime(entry, (then, then))
        pruners = [place.start(PRUNE, 3.0) for _ in range(PRUNERS)]
        builders = [place.build(sources, number * BUILDERS + one) for one in range(BUILDERS)]
        compiled += sum(map(outcome, builders))
        removed += sum(map(outcome, pruners))
    return {
        "builds": rounds * BUILDERS * LIBRARIES,
        "removed": removed,
        "compiled_again": compiled,
        "found": rounds * BUILDERS * LIBRARIES - compiled,
    }


def main() -> None:
    """Run all tests, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=16, help="number of processes that request one build")
    parser.add_argument("--kills", type=int, default=50, help="number of killed builders")
    parser.add_argument("--rounds", type=int, default=10, help="number of rounds in which all entries are pruned")
    parser.add_argument("--seed", type=int, default=14, help="seed of the times of the kills")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON")
    asked = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Workplace(Path(folder))
        figures["one build"] = one_build(place, asked.processes)
        figures["kills"] = kills(place, asked.kills, asked.seed)
        figures["pruning"] = pruned(place, asked.rounds)
    for name, values in figures.items():
        print(f"{name}: {', '.join(f'{key} {value}' for key, value in values.items())}")
    if asked.json:
        Path(asked.json).write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
