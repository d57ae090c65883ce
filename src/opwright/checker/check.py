"""Checks an operator library: every operator in every runtime, on every device."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder.cache import Cache
from opwright.builder.compile import build_plan
from opwright.builder.plan import plan_library
from opwright.checker import sanitize as sanitizers
from opwright.checker.job import Job, Options
from opwright.checker.kinds import Kind
from opwright.checker.processes.lane import run_lane
from opwright.checker.runtime_table import LANES, RUNTIME_NAMES, runtime_row
from opwright.checker.verdict import Cell, Failure, Report
from opwright.checker.watcher import NullWatcher, Watcher
from opwright.errors import BridgeError, BuildError, LoadError, SignatureError, SpecError
from opwright.loader.bridge import build_bridge
from opwright.report.progress import Progress
from opwright.spec import Library, library_at
from opwright.spec.select import select_names
from opwright.toolchain.devices import DEVICES, devices_of
from opwright.toolchain.fork_server import PLAIN, fork_server
from opwright.toolchain.machine import this_machine
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Sequence

_SEEDS = 10**6  # short enough to type again
# The modules that the processes of the cells import. Not Inductor: it starts threads, which do not survive a fork.
PRELOADED = (
    *(
        "opwright.checker.processes.judge_process",
        "opwright.checker.processes.first_calls_worker",
        "torch.testing._internal.optests",
        "torch._dynamo",
    ),
    *(f"opwright.checker.runtimes.{name.replace('-', '_')}" for name in RUNTIME_NAMES),
)


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
    progress: Watcher | None = None,
) -> Report:
    """Check that the operators of a library are correct in every runtime.

    Cells run in separate processes: an operator that crashes costs one step, not the check.

    Args:
        library: the folder of an op.py, the file, or what it describes.
        ops: the names of the operators to check; all by default.
        runtimes: the runtimes to check them in; all eleven by default.
        devices: `cpu` and `cuda`; by default the CPU, and the GPU if one is available and the library has CUDA sources.
        seed: the seed of the random inputs and variations; a new one for each check by default.
        quick: fewer cases, and only runtimes that compile nothing: seconds instead of minutes.
        large: also tensors of more than 2**31 bytes, if memory allows.
        sanitize: sanitizers to build the native code with: `address`, `undefined`, `thread`.
        progress: receives the progress of the check.

    Returns:
        The report; `report.passed` says whether every cell passed.

    Raises:
        SpecError: op.py does not describe a library, or a name is unknown.
        ToolchainError: a compiler or a sanitizer is missing.

    Example:
        report = opwright.check("ops/mine", quick=True)
        assert report.passed, report.kinds
    """
    started = time.perf_counter()
    described = library if isinstance(library, Library) else library_at(library)
    cells = _cells(described, ops, runtimes, devices)
    seed = secrets.randbelow(_SEEDS) if seed is None else seed
    watched = sanitizers.checked(tuple(sanitize))
    if watched and not described.sources:
        msg = f"the library {described.namespace!r} has no native source: there is nothing that a sanitizer could watch"
        raise SpecError(msg)
    found: list[Cell] = []
    failures: list[Failure] = []
    try:
        options = Options(seed=seed, quick=quick, large=large, alone="thread" in watched)
        with _python(cells, watched) as python, tempfile.TemporaryDirectory(prefix="opwright-check-") as work:
            built = _build(described, watched)
            ran = _run(described, built, cells, options, watched, Path(work), progress or NullWatcher(), python)
            found = [_without(work, cell) for cell in ran]
    except BuildError as error:
        kind = Kind.SIGNATURE if isinstance(error, SignatureError) else Kind.BUILD
        failures.append(Failure(kind, got=str(error), expected="a library that builds", detail=error.output[-4000:]))
    except LoadError as error:
        failures.append(Failure(Kind.LOAD, got=str(error), expected="a library that loads"))
    return Report(
        namespace=described.namespace,
        path=str(described.root),
        pytorch=find_pytorch().version,
        machine=str(this_machine()),
        seed=seed,
        sanitize=watched,
        cells=tuple(found),
        failures=tuple(failures),
        seconds=round(time.perf_counter() - started, 3),
    )


def _cells(
    library: Library, ops: Sequence[str], runtimes: Sequence[str], devices: Sequence[str]
) -> list[tuple[str, str, str]]:
    if not (library.root / "op.py").is_file():
        msg = f"the library {library.namespace!r} is in no op.py: a check opens it from a file, in separate processes"
        raise SpecError(msg)
    if not library.ops:
        msg = f"library {library.namespace!r} describes no operators: decorate a function in op.py with @library.op"
        raise SpecError(msg)
    chosen_ops = select_names(ops, list(library.ops), "operator", f"{library.namespace}::")
    chosen_runtimes = select_names(runtimes, RUNTIME_NAMES, "runtime")
    chosen_devices = select_names(devices, DEVICES, "device") if devices else devices_of(library)
    return [(op, runtime, device) for op in chosen_ops for device in chosen_devices for runtime in chosen_runtimes]


def _python(
    cells: list[tuple[str, str, str]], sanitize: tuple[str, ...]
) -> contextlib.AbstractContextManager[tuple[str, ...]]:
    """The command that starts the processes of the cells: PyTorch is imported once for all, during the build."""
    if sanitize or any(device != "cpu" for _, _, device in cells):
        return contextlib.nullcontext(PLAIN)  # neither a sanitizer nor CUDA survives a fork
    return fork_server(PRELOADED)


def _build(library: Library, sanitize: tuple[str, ...]) -> Path | None:
    """Build the library, instrumented if requested; None if it has no native source."""
    library.schemas()  # first, to report an annotation that makes no schema before anything is built
    if not library.sources:
        return None
    cache = Cache()
    plan = plan_library(library, cache)
    if sanitize:
        plan = sanitizers.instrumented(plan, sanitize)
    if any(op.gradient is not None for op in library.ops.values()):
        # Here, and not in processes that run under a sanitizer, because the compiler would run under it too. If it
        # cannot be built, those processes report it.
        with contextlib.suppress(BridgeError):
            build_bridge()
    return build_plan(plan, cache=cache, progress=Progress(library.namespace)).path


def _run(
    library: Library,
    built: Path | None,
    cells: list[tuple[str, str, str]],
    options: Options,
    sanitize: tuple[str, ...],
    work: Path,
    watcher: Watcher,
    python: Sequence[str],
) -> list[Cell]:
    """Run the cells in parallel processes, and return them in the requested order."""
    watcher.start(cells)
    left_out: list[Cell] = []
    lanes: dict[tuple[str, str, str], list[list[str]]] = {}
    for op, runtime, device in cells:
        reason = _not_run(runtime, options, sanitize)
        if reason:
            left_out.append(Cell(f"{library.namespace}::{op}", runtime, device, "not run", reason=reason))
            continue
        lanes.setdefault((op, device, runtime_row(runtime).lane), []).append([op, runtime, device])
    for cell in left_out:
        watcher.end(cell)
    environment = sanitizers.environment(sanitize) if sanitize else {}
    done = list(left_out)
    with ThreadPoolExecutor(max_workers=max(1, min(4, os.cpu_count() or 1))) as pool:
        futures = []
        for (op, device, lane), listed in sorted(lanes.items(), key=lambda item: LANES.index(item[0][2])):
            folder = work / f"{op}-{device}-{lane.replace(' ', '_')}"
            folder.mkdir()
            job = Job(
                namespace=library.namespace,
                path=str(library.root / "op.py"),
                shared_object=None if built is None else str(built),
                cells=listed,
                options=options,
                work=str(folder),
                step_limit_s=max(runtime_row(runtime).step_limit_s for _, runtime, _ in listed),
            )
            futures.append(pool.submit(run_lane, job, environment, watcher, python))
        for future in futures:
            done += future.result()
    order = {(f"{library.namespace}::{op}", runtime, device): at for at, (op, runtime, device) in enumerate(cells)}
    return sorted(done, key=lambda cell: order[cell.op, cell.runtime, cell.device])


def _without(work: str, cell: Cell) -> Cell:
    """`cell`, without the name of the temporary folder, which differs each time and is removed after the check."""

    def cut(text: str) -> str:
        return text.replace(f"{work}/", "")

    def cleaned(failure: Failure) -> Failure:
        texts = (failure.repro, failure.got, failure.expected, failure.detail)
        return Failure(failure.kind, failure.case, *map(cut, texts))

    return replace(cell, failures=tuple(map(cleaned, cell.failures)))


def _not_run(runtime: str, options: Options, sanitize: tuple[str, ...]) -> str:
    row = runtime_row(runtime)
    if sanitize and not row.sanitizable:
        return "it starts processes that the sanitizer does not see"
    if options.quick and not row.quick:
        return "--quick runs what compiles nothing"
    return ""
