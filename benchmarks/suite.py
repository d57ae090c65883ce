"""Measures what the test suite costs: processor time by kind of program and by test.

    python benchmarks/suite.py [--top N] [--json FILE] [-- PYTEST ARGUMENTS]

Runs pytest with the given arguments, by default those of `make test`, in the folder of the script's clone. It reads
/proc every 50 ms. Each process counts from when it is first seen to its last reading: the kernel reports its whole
processor time, so that only what passes after the last reading is missed, and processes that end before the first.

A test's processor time is that of the process that runs it and of those that this process has waited for meanwhile.
The processes that a fork server starts are missing there, so the times of the tests add up to less than the whole.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

ROOT = Path(__file__).resolve().parents[1]

_TICKS = os.sysconf("SC_CLK_TCK")
_RECORDS = "OPWRIGHT_SUITE_RECORDS"
_PROGRAMS = {
    "cc1plus": "g++",
    "cc1": "g++",
    "as": "g++",
    "g++": "g++",
    "clang": "clang",
    "ld": "linker",
    "collect2": "linker",
    "cicc": "nvcc",
    "ptxas": "nvcc",
    "cudafe++": "nvcc",
    "opwright-host": "host",
    "sphinx-build": "documentation",
}
# The first of these that occurs in the command line of a Python process. A forked process has that of its server.
_PYTHON = {
    "exec(eval(sys.stdin.readline()))": "tests themselves",
    "-m pytest": "tests themselves",
    "opwright.toolchain.fork_server": "forked: checks, commands and pages",
    "compile_worker": "AOTInductor",
    "-m pip": "pip and uv",
    "-m sphinx": "documentation",
    "/ray/": "Ray",
    "-m opwright": "other commands of opwright",
    "bin/opwright": "other commands of opwright",
}


def main() -> None:
    """Run the tests and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--top", type=int, default=60, help="the number of tests and files to list (default: 60)")
    parser.add_argument("--json", metavar="FILE", help="write all times as JSON")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, after --")
    arguments = parser.parse_args()
    cores = os.cpu_count() or 1
    chosen = arguments.pytest or ["-q", "-n", str(cores + 1), "--dist", "worksteal"]
    with TemporaryDirectory() as folder:
        environment = os.environ | {_RECORDS: folder}
        environment.setdefault("MAX_JOBS", "1")
        command = [sys.executable, "-m", "pytest", "-p", "benchmarks.suite", *chosen]
        start = time.monotonic()
        with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
            sampler = Sampler(process.pid)
            while process.poll() is None:
                sampler.read()
                time.sleep(0.05)
        seconds = time.monotonic() - start
        tests = [json.loads(line) for one in Path(folder).iterdir() for line in one.read_text().splitlines()]
    kinds = sampler.kinds()
    print(f"\n{seconds:.0f} s, {sum(kinds.values()):.0f} s of processor time; exit status {process.returncode}\n")
    show("kind of program", largest(kinds))
    files = defaultdict[str, float](float)
    for one in tests:
        files[one["test"].partition("::")[0]] += one["processor"]
    show("file of tests", largest(files)[: arguments.top])
    slowest = sorted(tests, key=lambda one: -one["seconds"])[: arguments.top]
    show("test (seconds of the clock)", ((f"{one['test']} {one['when']}", one["seconds"]) for one in slowest))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"seconds": seconds, "kinds": kinds, "tests": tests}))


class Sampler:
    """The processor time of a process and of everything that it starts."""

    def __init__(self, root: int) -> None:
        self._known = {root}
        self._last: dict[tuple[int, int], tuple[str, float]] = {}

    def read(self) -> None:
        """Read the times of all processes that descend from the root, also if their parent has ended."""
        found: dict[int, tuple[int, int, float]] = {}
        for one in Path("/proc").iterdir():
            if one.name.isdecimal():
                try:
                    fields = (one / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                found[int(one.name)] = int(fields[1]), int(fields[19]), sum(map(int, fields[11:13])) / _TICKS
        self._known &= found.keys()
        while more := {pid for pid, (parent, _, _) in found.items() if parent in self._known} - self._known:
            self._known |= more
        for pid in self._known:
            _, born, seconds = found[pid]
            kind, _ = self._last.get((pid, born), ("", 0.0))
            # A process first bears the name of the one that started it.
            if not kind or seconds < 1:
                kind = kind_of(pid) or kind
            self._last[pid, born] = kind, seconds

    def kinds(self) -> dict[str, float]:
        """The seconds of each kind of program."""
        total = defaultdict[str, float](float)
        for kind, seconds in self._last.values():
            total[kind] += seconds
        return total


def kind_of(pid: int) -> str:
    """The kind of program that a process runs, or nothing if it has ended."""
    try:
        words = (Path("/proc") / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    name = Path(words[0]).name
    if not name.startswith("python"):
        return next((kind for program, kind in _PROGRAMS.items() if name == program), name)
    line = " ".join(words[1:])
    return next((kind for word, kind in _PYTHON.items() if word in line), "other Python")


def largest(seconds: dict[str, float]) -> list[tuple[str, float]]:
    """The names with most seconds first."""
    return sorted(seconds.items(), key=lambda pair: -pair[1])


def show(title: str, rows: Iterable[tuple[str, float]]) -> None:
    """Print rows of names and seconds."""
    print(f"{'seconds':>8}  {title}")
    for name, seconds in rows:
        print(f"{seconds:8.1f}  {name}")
    print()


# The plugin, which runs in each of pytest's processes. Some tests replace `time.monotonic`.
_clock = time.monotonic


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Time the fixtures of a test."""
    yield from _timed(item, "setup")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Time a test."""
    yield from _timed(item, "call")


def _timed(item: pytest.Item, when: str) -> Generator[None, None, None]:
    before, start = sum(os.times()[:4]), _clock()
    yield
    record = {
        "test": item.nodeid,
        "when": when,
        "seconds": _clock() - start,
        "processor": sum(os.times()[:4]) - before,
    }
    with (Path(os.environ[_RECORDS]) / str(os.getpid())).open("a") as file:
        file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
