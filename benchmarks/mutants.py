"""Measures how many mutants of real libraries `opwright check` and `torch.library.opcheck` notice.

    python benchmarks/mutants.py [--library NAME] [--count N] [--quick] [--seed N] [--no-opcheck] [--json FILE]

The libraries:

    lltm               ops/lltm, its kernels for the CPU
    warp_perspective   ops/warp_perspective
    new                what `opwright new` makes
    torch_scatter      csrc/cpu/segment_csr_cpu.cpp of torch-scatter 2.1.2
    torch_spline_conv  csrc/cpu/basis_cpu.cpp of torch-spline-conv 1.2.2

The last two are downloaded with pip as source distributions. benchmarks/mutants has an op.py for each, and the C++ that
registers its functions and checks their arguments; only the package's own file is changed. They are not checked in a
process without Python.

Each row has the mutants killed by the check, by its quick part, and by opcheck, which gets every sample as it is and
with gradients required. opcheck has to accept the library without a change.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opcheck import Ended, opcheck

from opwright.builder.cache import Cache
from opwright.builder.plan import plan_library
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
# A package, its version, and the file that is changed.
PACKAGES = {
    "torch_scatter": ("torch-scatter", "2.1.2", "csrc/cpu/segment_csr_cpu.cpp"),
    "torch_spline_conv": ("torch-spline-conv", "1.2.2", "csrc/cpu/basis_cpu.cpp"),
}
LIBRARIES = ("lltm", "warp_perspective", "new", *PACKAGES)
# They include torch/extension.h, which needs Python.
PACKAGES_RUNTIMES = [name for name in RUNTIME_NAMES if not name.startswith("host-")]
ACCEPTED = 0


def main() -> None:
    """Check the mutants of each library, and print its row and its survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", metavar="NAME", action="append", choices=LIBRARIES, help="only this library")
    parser.add_argument("--count", metavar="N", type=int, default=60, help="mutants of each")
    parser.add_argument("--quick", action="store_true", help="check with --quick alone")
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="seed of the choice, and of inputs")
    parser.add_argument("--no-opcheck", action="store_true", help="leave out opcheck")
    parser.add_argument("--json", metavar="FILE", help="write the reports as JSON")
    arguments = parser.parse_args()
    rows = {}
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
            noticed = None if arguments.no_opcheck else noticed_by_opcheck(folder, report, Path(work))
            show(name, report, noticed)
            rows[name] = report.to_json() | {"opcheck": noticed}
            if arguments.json:
                Path(arguments.json).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def library(name: str, work: Path) -> tuple[Path, list[Path]]:
    """The folder of a library, and the files to change in it; none for all."""
    if name == "new":
        subprocess.run([sys.executable, "-m", "opwright", "new", str(work / "new")], check=True, stdout=sys.stderr)
        return work / "new", []
    if name not in PACKAGES:
        return ROOT / "ops" / name, []
    package, version, changed = PACKAGES[name]
    # pip runs the package's setup.py for its metadata, which imports torch.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:"]
    subprocess.run([*command, f"{package}=={version}"], cwd=work, check=True, stdout=sys.stderr)
    (archive,) = work.glob("*.tar.gz")
    with tarfile.open(archive) as unpacked:
        unpacked.extractall(work / "unpacked", filter="data")
    (sources,) = (work / "unpacked").glob("*/csrc")
    folder = work / name
    shutil.copytree(Path(__file__).with_name("mutants") / name, folder)
    shutil.copytree(sources, folder / "csrc")
    return folder, [folder / changed]


def noticed_by_opcheck(folder: Path, report: MutationReport, work: Path) -> dict[str, str] | None:
    """The objections of opcheck to the mutants that were checked, by name; None if it rejects the library itself."""
    described = library_at(folder)
    plan = plan_library(described, Cache()) if described.sources else None
    judged = [result for result in report.results if result.fate in {"killed", "survived"}]
    mirrors = [Mirror(described, plan, work / f"mirror_{number}") for number in range(2)]
    original = opcheck(folder / "op.py", os.environ, mirrors[0].original)
    if original.code != ACCEPTED:
        print(f"opcheck rejects {report.namespace} without a change: {original.summary}", file=sys.stderr)
        return None
    with ThreadPoolExecutor(len(mirrors)) as pool:
        halves = pool.map(objections, mirrors, (judged[::2], judged[1::2]))
    return {name: text for half in halves for name, text in half.items()}


def objections(mirror: Mirror, results: Sequence[MutantResult]) -> dict[str, str]:
    """The objections of opcheck to some mutants, by name."""
    found = {}
    for result in results:
        built: Built = mirror.build(result.mutant)
        ended: Ended = opcheck(built.op_file, os.environ, built.shared_object)
        if ended.code != ACCEPTED:
            found[result.mutant.name] = ended.summary
    return found


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
