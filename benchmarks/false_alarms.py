"""Counts the false alarms of `opwright check` on correct libraries, with many seeds.

    python benchmarks/false_alarms.py [--library NAME] [--runs 20] [--seed 0] [--busy N] [--full] [--json FILE]

The libraries are those of ops/, the correct ones of tests/packages, the repaired twins of tests/packages/traps, and the
one that `opwright new` creates. Each run checks a library with another seed, with `--quick` unless `--full` is given. A
false alarm is a run that does not pass; it is printed with the seed that reproduces it. `--busy N` runs N compute-bound
processes alongside the checks, as on a busy machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import opwright

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ROOT / "tests" / "packages"
CORRECT = ("above", "every_runtime")
COMPUTES = "while True: sum(range(10**6))"


def main() -> None:
    """Check each library with each seed, and print the runs that did not pass."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", metavar="NAME", action="append", help="only this library; repeat for several")
    parser.add_argument("--runs", metavar="N", type=int, default=20, help="number of seeds")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="the first seed")
    parser.add_argument("--busy", metavar="N", type=int, default=0, help="number of busy processes during the checks")
    parser.add_argument("--full", action="store_true", help="every runtime, and the whole search")
    parser.add_argument("--json", metavar="FILE", help="write all false alarms as JSON")
    arguments = parser.parse_args()
    os.environ["OPWRIGHT_TRAP"] = "repaired"
    alarms: list[dict[str, Any]] = []
    runs = 0
    with tempfile.TemporaryDirectory() as work, busy(arguments.busy):
        folders = libraries(Path(work))
        if unknown := set(arguments.library or ()) - set(folders):
            sys.exit(f"unknown library {', '.join(sorted(unknown))}: expected names among {', '.join(folders)}")
        for name in arguments.library or folders:
            started = time.perf_counter()
            found = []
            for seed in range(arguments.seed, arguments.seed + arguments.runs):
                found += checked(folders[name], seed, arguments)
                print(f"{name}: seed {seed}, {len(found)} false alarms so far", file=sys.stderr)
            seconds = (time.perf_counter() - started) / arguments.runs
            print(f"{name}: {len(found)} false alarms in {arguments.runs} runs, {seconds:.1f} s each", flush=True)
            for alarm in found:
                print(f"  seed {alarm['seed']}: {alarm['faults']}", flush=True)
            alarms += [{"library": name, **alarm} for alarm in found]
            runs += arguments.runs
    print(f"{len(alarms)} false alarms in {runs} runs, {arguments.busy} busy processes alongside the checks")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(alarms, indent=2) + "\n", encoding="utf-8")


def libraries(work: Path) -> dict[str, Path]:
    """The folders of the correct libraries, by name; `opwright new` creates one in `work`."""
    new = work / "new"
    subprocess.run([sys.executable, "-m", "opwright", "new", str(new)], check=True, stdout=subprocess.DEVNULL)
    return {
        **{folder.parent.name: folder.parent for folder in sorted((ROOT / "ops").glob("*/op.py"))},
        "new": new,
        **{name: PACKAGES / name for name in CORRECT},
        **{f"traps/{path.parent.name}": path.parent for path in sorted((PACKAGES / "traps").glob("*/op.py"))},
    }


def checked(folder: Path, seed: int, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The false alarm of one run, as a list; empty if the run passes."""
    report = opwright.check(folder, quick=not arguments.full, seed=seed)
    if report.passed:
        return []
    faults = [
        f"{cell.op} in {cell.runtime}: {fault.kind.value}, {fault.case}, got {fault.got}"
        for cell in report.cells
        for fault in cell.failures
    ]
    return [{"seed": seed, "faults": faults or [str(fault) for fault in report.failures]}]


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Run `count` compute-bound processes."""
    processes = [subprocess.Popen([sys.executable, "-c", COMPUTES]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
