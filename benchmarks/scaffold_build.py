"""Times `opwright build` of a library from `opwright new`: with an empty cache, after an edit, and found in the cache.

    python benchmarks/scaffold_build.py [--rounds 7] [--json FILE]

Each time is that of a new process, from start to end, which prints the path of the library. Each round starts with an
empty cache; the first edit is built without timing, because the second build also precompiles opwright's headers for
all later ones. After each timed build, a separate process loads the library and compares its results with the
reference. Prints the medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from opwright.toolchain.machine import this_machine

KERNEL = "return gate * sigmoid(gate) * value; }, gate, value);"
# Loads the built library and compares it with the formula, multiplied by the constant of the edit.
CHECK = """
import sys
import torch
torch.ops.load_library(sys.argv[1])
gate, value = torch.randn(2, 37, 101)
expected = float(sys.argv[2]) * torch.nn.functional.silu(gate) * value
torch.testing.assert_close(torch.ops.timed_build.swiglu(gate, value), expected)
"""


def build(library: Path, cache: Path) -> tuple[float, str]:
    """The duration of `opwright build` in seconds, and the path that it prints."""
    environment = {**os.environ, "OPWRIGHT_CACHE": str(cache)}
    command = [str(Path(sys.executable).with_name("opwright")), "build", str(library)]
    started = time.perf_counter()
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if ended.returncode != 0:
        sys.exit(f"opwright build failed:\n{ended.stdout}{ended.stderr}")
    return seconds, ended.stdout.strip()


def compare(built: str, constant: int) -> None:
    """Exit if the library computes something else."""
    if subprocess.run([sys.executable, "-c", CHECK, built, str(constant)], check=False).returncode != 0:
        sys.exit(f"{built} computes wrong results, so its time is meaningless")


def one_round(source: str, library: Path, cache: Path) -> dict[str, float]:
    """The durations of one round, in seconds."""
    kernel = library / "cpu.cpp"
    kernel.write_text(source)
    cold, built = build(library, cache)
    compare(built, 1)
    found, again = build(library, cache)
    if again != built:
        sys.exit("the library was built again although nothing has changed")
    for constant in (2, 3):
        kernel.write_text(source.replace(KERNEL, KERNEL.replace("return", f"return {constant} *")))
        edited, built = build(library, cache)
    compare(built, constant)
    return {"cold": cold, "found built": found, "after an edit": edited}


def main() -> None:
    """Build, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="number of rounds")
    parser.add_argument("--json", metavar="FILE", help="write all times as JSON")
    asked = parser.parse_args()
    rounds: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as name:
        library = Path(name) / "timed_build"
        command = [str(Path(sys.executable).with_name("opwright")), "new", str(library)]
        subprocess.run(command, capture_output=True, check=True)
        source = (library / "cpu.cpp").read_text()
        if KERNEL not in source:
            sys.exit(f"the scaffold's kernel has changed: {KERNEL!r} is not in it")
        for number in range(asked.rounds):
            rounds.append(one_round(source, library, Path(name) / f"cache_{number}"))
            print(f"round {number + 1}: {rounds[-1]}", file=sys.stderr)
    print(f"{this_machine()}, {asked.rounds} rounds")
    for kind in rounds[0]:
        times = [one[kind] for one in rounds]
        print(f"{statistics.median(times):6.2f} s  {kind}  (min {min(times):.2f}, max {max(times):.2f})")
    if asked.json:
        Path(asked.json).write_text(json.dumps(rounds, indent=2) + "\n")


if __name__ == "__main__":
    main()
