"""Measures how many mutants of real libraries `opwright check` and `torch.library.opcheck` detect.

    python benchmarks/mutants.py [--library NAME] [--count N] [--quick] [--seed N] [--no-opcheck] [--json FILE]

The libraries:

    lltm               ops/lltm, its kernels for the CPU
    warp_perspective   ops/warp_perspective
    new                the library that `opwright new` creates
    torch_scatter      csrc/cpu/segment_csr_cpu.cpp of torch-scatter 2.1.2
    torch_spline_conv  csrc/cpu/basis_cpu.cpp of torch-spline-conv 1.2.2

The last two are downloaded with pip as source distributions. benchmarks/mutants has an op.py for each, and the C++ that
registers its functions and checks their arguments. Only the package's own file is changed; lines in it are marked if a
change cannot be detected. They are not checked in a process without Python.

Each row has the mutants killed by the check, by its quick part, and by opcheck, which gets every sample unchanged and
with gradients required. opcheck must accept the unchanged library.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opcheck import Ended, opcheck

from opwright.builder.plan import plan_library
from opwright.cache.cache import Cache
from opwright.checker.mutants.mirror import Built, Mirror
from opwright.checker.mutants.report.progress import MutantProgress
from opwright.checker.mutants.run import check_mutants
from opwright.checker.runtime_table import RUNTIME_NAMES
from opwright.cli.output import stderr
from opwright.spec import library_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.checker.mutants.score import MutantResult, MutationReport

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Package:
    """A package whose kernel is changed.

    Attributes:
        name: its name.
        version: its version.
        file: the file that is changed.
        marks: the changes that cannot be detected, as in a mark after its first two words, and the lines to mark.
    """

    name: str
    version: str
    file: str
    marks: dict[str, tuple[int, ...]]


PACKAGES = {
    "torch_scatter": Package(
        "torch-scatter",
        "2.1.2",
        "csrc/cpu/segment_csr_cpu.cpp",
        {
            ": a machine without a GPU has one device": (12, 13, 15, 96, 97, 99),
            " [;]: a machine without a GPU has one device": (14, 98),
            " [at::ScalarType::BFloat16, at::ScalarType::Half]: the same dtypes": (61, 140),
            ": the result has no elements": (129, 130),
        },
    ),
    "torch_spline_conv": Package(
        "torch-spline-conv",
        "1.2.2",
        "csrc/cpu/basis_cpu.cpp",
        {
            ": a machine without a GPU has one device": (58, 59, 60, 118, 119, 120, 121),
            ": the degree is 1, 2 or 3": (26, 50),
            " [0.505]: the power is a whole number": (69, 151, 161),
        },
    ),
}
LIBRARIES = ("lltm", "warp_perspective", "new", *PACKAGES)
# torch-spline-conv includes torch/extension.h, which requires Python. torch-scatter does not, and its kernels are the
# same in every runtime.
PACKAGES_RUNTIMES = [name for name in RUNTIME_NAMES if not name.startswith("host-")]
ACCEPTED = 0
# An endless loop is stopped after this multiple of opcheck's time without a change.
PATIENCE = 5


def main() -> None:
    """Check the mutants of each library, and print its row and the surviving mutants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", metavar="NAME", action="append", choices=LIBRARIES, help="only this library")
    parser.add_argument("--count", metavar="N", type=int, default=60, help="mutants per library")
    parser.add_argument("--quick", action="store_true", help="check only with --quick")
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="seed of the selection and of the inputs")
    parser.add_argument("--no-opcheck", action="store_true", help="skip opcheck")
    parser.add_argument("--json", metavar="FILE", help="write the reports as JSON")
    arguments = parser.parse_args()
    rows: dict[str, Any] = {}
    for name in arguments.library or LIBRARIES:
        with tempfile.TemporaryDirectory(prefix="opwright-mutants-") as work:
            folder, files = library(name, Path(work))
            with MutantProgress(name, stderr(), verbose=True) as progress:
                report = check_mutants(
                    *(folder, arguments.count),
                    runtimes=PACKAGES_RUNTIMES if name in PACKAGES else (),
                    devices=["cpu"],
                    files=files,
                    seed=arguments.seed,
                    quick=arguments.quick,
                    progress=progress,
                )
            # Before opcheck, which takes as long: the measurements are kept if the user stops it.
            rows[name] = report.to_json()
            write(rows, arguments.json)
            noticed = None if arguments.no_opcheck else noticed_by_opcheck(folder, report, Path(work))
            rows[name]["opcheck"] = noticed
            write(rows, arguments.json)
            show(name, report, noticed)


def library(name: str, work: Path) -> tuple[Path, list[Path]]:
    """The folder of a library, and the files to change in it; empty for all."""
    if name == "new":
        subprocess.run([sys.executable, "-m", "opwright", "new", str(work / "new")], check=True, stdout=sys.stderr)
        return work / "new", []
    if name not in PACKAGES:
        return ROOT / "ops" / name, []
    package = PACKAGES[name]
    # pip runs the package's setup.py for its metadata, which imports torch.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:"]
    subprocess.run([*command, f"{package.name}=={package.version}"], cwd=work, check=True, stdout=sys.stderr)
    (archive,) = work.glob("*.tar.gz")
    with tarfile.open(archive) as unpacked:
        unpacked.extractall(work / "unpacked", filter="data")
    (sources,) = (work / "unpacked").glob("*/csrc")
    folder = work / name
    shutil.copytree(Path(__file__).with_name("mutants") / name, folder)
    shutil.copytree(sources, folder / "csrc")
    marked = folder / package.file
    lines = marked.read_text(encoding="utf-8").splitlines()
    for mark, numbers in package.marks.items():
        for number in numbers:
            lines[number - 1] += f"  // opwright: equivalent{mark}"
    marked.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder, [marked]


def noticed_by_opcheck(folder: Path, report: MutationReport, work: Path) -> dict[str, str] | None:
    """The objections of opcheck to the checked mutants, by name; None if it rejects the library itself."""
    described = library_at(folder)
    plan = plan_library(described, Cache()) if described.sources else None
    judged = [result for result in report.results if result.fate in {"killed", "survived"}]
    mirrors = [Mirror(described, plan, work / f"mirror_{number}") for number in range(2)]
    started = time.perf_counter()
    original = opcheck(folder / "op.py", os.environ, mirrors[0].original)
    seconds = PATIENCE * (time.perf_counter() - started)
    if original.code != ACCEPTED:
        print(f"opcheck rejects {report.namespace} without a change: {original.summary}", file=sys.stderr)
        return None
    with ThreadPoolExecutor(len(mirrors)) as pool:
        halves = pool.map(objections, mirrors, (judged[::2], judged[1::2]), (seconds, seconds))
    return {name: text for half in halves for name, text in half.items()}


def objections(mirror: Mirror, results: Sequence[MutantResult], seconds: float) -> dict[str, str]:
    """The objections of opcheck to some mutants, by name."""
    found = {}
    for result in results:
        built: Built = mirror.build(result.mutant)
        ended: Ended = opcheck(built.op_file, os.environ, built.shared_object, seconds)
        if ended.code != ACCEPTED:
            found[result.mutant.name] = ended.summary
        print(f"opcheck: {result.mutant.name}: {ended.summary or 'accepted'}", file=sys.stderr, flush=True)
    return found


def write(rows: dict[str, Any], path: str | None) -> None:
    """Write the reports as JSON, if a file is given."""
    if path is not None:
        Path(path).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def show(name: str, report: MutationReport, noticed: dict[str, str] | None) -> None:
    """Print the row of a library, and the mutants that survived."""
    judged = report.count("killed") + report.count("survived")
    by_quick = sum(result.by_quick for result in report.results)
    counts: dict[str, Any] = {"check": report.count("killed"), "its quick part": by_quick}
    if noticed is not None:
        counts["opcheck"] = len(noticed)
    shares = ", ".join(f"{what} {count} ({100 * count / judged:.1f} %)" for what, count in counts.items())
    left = ", ".join(f"{report.count(fate)} {fate}" for fate in ("equivalent", "marked", "rejected"))
    print(f"{name}: of {judged} mutants, killed by {shares}; besides {left}; {report.seconds:.0f} s", flush=True)
    for result in report.survivors:
        print(f"  survived: {result.mutant.name}", flush=True)


if __name__ == "__main__":
    main()
