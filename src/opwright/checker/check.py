"""Checks an operator library: every operator in every runtime, on every device."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.checker import sanitize as sanitizers
from opwright.checker.job import Options, new_seed
from opwright.checker.kinds import Kind
from opwright.checker.matrix import select_cells
from opwright.checker.run_cells import python_for, run_cells
from opwright.checker.target import Target, build_checked
from opwright.checker.verdict import Cell, Failure, Report, shortened
from opwright.checker.watcher import NullWatcher, Watcher
from opwright.errors import BuildError, LoadError, SignatureError, SpecError
from opwright.spec import Library, library_at
from opwright.toolchain.machine import this_machine
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.checker.matrix import CellName


def check(
    library: Library | str | Path,
    *,
    ops: Sequence[str] = (),
    runtimes: Sequence[str] = (),
    devices: Sequence[str] = (),
    seed: int | None = None,
    quick: bool = False,
    large: bool = False,
    sanitize: Sequence[str] = (),
    fail_fast: bool = False,
    progress: Watcher | None = None,
) -> Report:
    """Check that the operators of a library are correct in every runtime.

    Cells run in separate processes, so that a crash costs one step, not the whole check.

    Args:
        library: the folder that contains op.py, the path of op.py, or the library that it describes.
        ops: the names of the operators to check; all by default.
        runtimes: the runtimes to check them in; all eleven by default.
        devices: `cpu` and `cuda`; by default the CPU, and the GPU if one is available and the library has CUDA sources.
        seed: the seed of the random inputs and variations; a new one for each check by default.
        quick: run fewer cases, and only runtimes that compile nothing: takes seconds instead of minutes.
        large: also check tensors of more than 2**31 bytes, or 2**31 elements on a GPU, if memory allows. A full check
            on a GPU always does.
        sanitize: sanitizers to build the native code with: `address`, `undefined`, `thread`; or tools of NVIDIA's
            compute-sanitizer to run CUDA kernels under, each in a separate run: `memcheck`, `racecheck`, `initcheck`,
            `synccheck`.
        fail_fast: stop at the first fault; the runtimes run one after the other, the fastest ones first.
        progress: receives the progress of the check.

    Returns:
        The report; `report.passed` is true if at least one cell ran and none failed.

    Raises:
        SpecError: op.py does not describe a library, or a name is unknown.
        ToolchainError: a compiler or a sanitizer is missing.

    Example:
        report = opwright.check("ops/mine", quick=True)
        assert report.passed, report.kinds
    """
    described = library if isinstance(library, Library) else library_at(library)
    watched = sanitizers.checked(tuple(sanitize))
    tools = sanitizers.tools_among(watched)
    cells = select_cells(described, ops, runtimes, devices or (("cuda",) if tools else ()))
    if watched and not described.sources:
        msg = f"the library {described.namespace!r} has no native source that a sanitizer could check"
        raise SpecError(msg)
    if tools and not any(source.suffix == ".cu" for source in described.sources):
        msg = f"the library {described.namespace!r} has no CUDA source that {tools[0]} could check"
        raise SpecError(msg)
    options = Options(
        seed=new_seed() if seed is None else seed,
        quick=quick,
        large=large,
        alone="thread" in watched,
        fail_fast=fail_fast,
    )
    return check_cells(described, cells, options, watched, progress)


def check_cells(
    library: Library,
    cells: Sequence[CellName],
    options: Options,
    sanitize: tuple[str, ...] = (),
    progress: Watcher | None = None,
) -> Report:
    """Build a library and check the given cells; the arguments, result and errors are those of `check`."""
    started = time.perf_counter()
    found: list[Cell] = []
    failures: list[Failure] = []
    try:
        with python_for(cells, sanitize) as python, tempfile.TemporaryDirectory(prefix="opwright-check-") as work:
            built = build_checked(library, sanitize)
            target = Target(library.namespace, library.root / "op.py", built, sanitize, library.is_external)
            found = run_cells(target, cells, options, Path(work), progress or NullWatcher(), python)
    except BuildError as error:
        kind = Kind.SIGNATURE if isinstance(error, SignatureError) else Kind.BUILD
        output = shortened(error.output, 4000)
        failures.append(Failure(kind, got=str(error), expected="a library that builds", detail=output))
    except LoadError as error:
        failures.append(Failure(Kind.LOAD, got=str(error), expected="a library that loads"))
    return Report(
        namespace=library.namespace,
        path=str(library.root),
        pytorch=find_pytorch().version,
        machine=str(this_machine()),
        seed=options.seed,
        sanitize=sanitize,
        cells=tuple(found),
        failures=tuple(failures),
        seconds=round(time.perf_counter() - started, 3),
    )
