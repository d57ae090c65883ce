"""Builds published packages with PyTorch's builder and with opwright in its place, from the same unchanged setup.py.

    python benchmarks/drop_in.py [--rounds 1] [--only torch-scatter ...] [--tests] [--json FILE]

pip downloads the source archive of each package, in the version below. Each round builds it in place, each time in a
fresh copy: with PyTorch's builder; with `python -m opwright.cpp_extension setup.py`, first with an empty cache, then
again after adding a comment to each source, which recompiles every source but finds the precompiled headers. The flags
are those of the setup.py. Both builds must produce the same files and compute the same numbers before a time is
printed: wall time, and the processor time of all processes, which is more reliable on a busy machine. With --tests, the
package's own tests run against both builds, if its archive contains them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opwright.toolchain.machine import this_machine


@dataclass(frozen=True)
class Package:
    """A package to build.

    Attributes:
        name: its name in the registry.
        version: its version.
        call: a program that calls the built extensions and prints numbers.
        tests: the folder of its own tests that require neither a GPU nor other packages; empty if there are none.
    """

    name: str
    version: str
    call: str
    tests: str = ""


PACKAGES = (
    Package(
        "torch-scatter",
        "2.1.2",
        "import torch, torch_scatter as s; x = torch.arange(24.).view(4, 6).sin(); i = torch.tensor([0, 1, 0, 2]);"
        "print(s.scatter_max(x, i, 0), s.segment_csr(x, torch.tensor([0, 1, 4])), s.scatter_mul(x, i, 0))",
    ),
    Package(
        "torch-cluster",
        "1.6.3",
        "import torch, torch_cluster as c; x = torch.arange(90.).view(30, 3).sin();"
        "print(c.knn_graph(x, 3), c.radius_graph(x, 0.7), c.fps(x, ratio=0.3, random_start=False))",
    ),
    Package(
        "torch-spline-conv",
        "1.2.2",
        "import torch, torch_spline_conv; b = torch.ops.torch_spline_conv.spline_basis;"
        "u = torch.linspace(0, 1, 12).view(6, 2); print(b(u, torch.tensor([5, 5]), torch.tensor([1, 1]).byte(), 1))",
    ),
    Package(
        "pytorch-fast-transformers",
        "0.4.0",
        "import torch; from fast_transformers.causal_product import causal_dot_product as f;"
        "x = torch.arange(96.).view(1, 2, 6, 8).sin(); print(f(x, x + 1, x + 2))",
        "tests",
    ),
    Package(
        "torchsort",
        "0.1.10",
        "import torch, torchsort; x = torch.arange(24.).view(4, 6).sin(); print(torchsort.soft_rank(x))",
    ),
    Package(
        "torchlpc",
        "0.7.2",
        "import torch, torchlpc; x = torch.arange(24.).view(4, 6).sin();"
        "print(torch.ops.torchlpc.scan(x, x.cos() / 2, torch.ones(4)))",
        "tests",
    ),
)
# PATH has no nvcc: with it, several of these setup.py files build for CUDA with every PyTorch. It has no ccache, which
# PyTorch's builder puts before the compiler if installed, because it would cache the compilations of earlier rounds.
ENVIRONMENT = {
    **os.environ,
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
    "CCACHE_DISABLE": "1",
}
BUILD = ("setup.py", "build_ext", "--inplace")


def run(command: list[str], folder: Path, **environment: str) -> str:
    """The output of a command that succeeds."""
    ended = subprocess.run(
        command, cwd=folder, env={**ENVIRONMENT, **environment}, capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        sys.exit(f"{command} failed in {folder}:\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}")
    return ended.stdout


def unpacked(package: Package, folder: Path) -> Path:
    """The unpacked source archive of a package."""
    options = ["--no-binary", ":all:", "--no-deps", "--no-build-isolation", "-q", "-d", str(folder)]
    run([sys.executable, "-m", "pip", "download", *options, f"{package.name}=={package.version}"], folder)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    archive.unlink()
    (tree,) = folder.iterdir()
    return tree


def used() -> float:
    """The processor time of finished child processes, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed(command: list[str], folder: Path, **environment: str) -> tuple[float, float]:
    """The wall time and the processor time of a build, in seconds."""
    started, before = time.perf_counter(), used()
    run([sys.executable, *command, *BUILD], folder, **environment)
    return time.perf_counter() - started, used() - before


def names(tree: Path) -> set[str]:
    """The shared objects in a tree, without those in its folder `build`."""
    return {str(path.relative_to(tree)) for path in tree.rglob("*.so") if path.relative_to(tree).parts[0] != "build"}


def changed(tree: Path) -> None:
    """Add a comment to each C++ source."""
    for pattern in ("*.cpp", "*.cc"):
        for path in tree.rglob(pattern):
            with path.open("a") as file:
                file.write("\n// compiled again\n")


def tested(package: Package, tree: Path) -> str:
    """The last line of pytest for the package's own tests."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-o", "addopts="]
    ended = subprocess.run(
        [*command, package.tests],
        cwd=tree,
        env={**ENVIRONMENT, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    return (ended.stdout.strip().splitlines() or [ended.stderr.strip()])[-1]


def measured(package: Package, rounds: int, *, with_tests: bool) -> dict[str, Any]:
    """The times of a package, and the outcome of its tests."""
    times: dict[str, list[tuple[float, float]]] = {"torch": [], "cold": [], "again": []}
    outcome = {}
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "source").mkdir()
        source = unpacked(package, Path(scratch) / "source")
        for number in range(rounds):
            theirs, ours = (
                Path(shutil.copytree(source, Path(scratch) / f"{which}{number}")) for which in ("torch", "ours")
            )
            cache = str(Path(scratch) / f"cache{number}")
            times["torch"].append(timed([], theirs))
            drop_in = ["-m", "opwright.cpp_extension"]
            times["cold"].append(timed(drop_in, ours, OPWRIGHT_CACHE=cache))
            same_files = names(theirs) == names(ours)
            results = [run([sys.executable, "-c", package.call], tree, PYTHONPATH=str(tree)) for tree in (theirs, ours)]
            if not same_files or results[0] != results[1] or not results[0].strip():
                sys.exit(f"{package.name}: the two builds differ: {names(theirs) ^ names(ours)} {results}")
            if with_tests and package.tests and number == 0:
                outcome = {"torch": tested(package, theirs), "opwright": tested(package, ours)}
            changed(ours)
            times["again"].append(timed(drop_in, ours, OPWRIGHT_CACHE=cache))
    row: dict[str, Any] = {"package": f"{package.name} {package.version}", "tests": outcome}
    for at, clock in enumerate(("wall", "processors")):
        row[clock] = {which: statistics.median(pair[at] for pair in pairs) for which, pairs in times.items()}
        for which in ("cold", "again"):
            ratios = [one[at] / other[at] for one, other in zip(times[which], times["torch"], strict=True)]
            row[clock][f"{which} ratio"] = statistics.median(ratios)
    return row


def main() -> None:
    """Print a table, and write it as JSON on request."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=[package.name for package in PACKAGES])
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    print(this_machine())
    print(f"{'package':34} {'time':10} {'PyTorch':>9} {'opwright':>9} {'ratio':>6} {'again':>9} {'ratio':>6}")
    rows = []
    for package in PACKAGES:
        if asked.only and package.name not in asked.only:
            continue
        row = measured(package, asked.rounds, with_tests=asked.tests)
        rows.append(row)
        for clock in ("wall", "processors"):
            times = row[clock]
            print(
                f"{row['package']:34} {clock:10} {times['torch']:7.1f} s {times['cold']:7.1f} s"
                f" {times['cold ratio']:6.2f} {times['again']:7.1f} s {times['again ratio']:6.2f}",
                flush=True,
            )
        for which, line in row["tests"].items():
            print(f"  its own tests, built by {which}: {line}", flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
