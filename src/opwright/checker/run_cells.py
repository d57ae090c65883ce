"""Runs the cells of a check in parallel processes."""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from opwright.checker import sanitize as sanitizers
from opwright.checker.job import Job, Options
from opwright.checker.processes.lane import run_lane
from opwright.checker.run_under_tools import run_under_tools
from opwright.checker.runtime_table import LANES, RUNTIME_NAMES, runtime_row
from opwright.checker.verdict import Cell, Failure, not_run_cell
from opwright.toolchain.fork_server import PLAIN, fork_server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from opwright.checker.matrix import CellName
    from opwright.checker.target import Target
    from opwright.checker.watcher import Watcher

# The modules that the processes of the cells import, without Inductor: it starts threads, which do not survive a fork.
PRELOADED = (
    *(
        "opwright.checker.processes.judge_process",
        "opwright.checker.processes.first_calls_worker",
        "torch.testing._internal.optests",
        "torch._dynamo",
    ),
    *(f"opwright.checker.runtimes.{name.replace('-', '_')}" for name in RUNTIME_NAMES),
)


# The factor by which a step may take longer under a tool of compute-sanitizer.
_SLOWER_UNDER_A_TOOL = 4


def python_for(
    cells: Sequence[CellName], sanitize: tuple[str, ...] = ()
) -> contextlib.AbstractContextManager[tuple[str, ...]]:
    """The command that starts the processes of the cells. It imports PyTorch once for all of them, during the build."""
    if sanitize or any(device != "cpu" for _, _, device in cells):
        return contextlib.nullcontext(PLAIN)  # neither a sanitizer nor CUDA survives a fork
    return fork_server(PRELOADED)


def run_cells(
    target: Target, cells: Sequence[CellName], options: Options, work: Path, watcher: Watcher, python: Sequence[str]
) -> list[Cell]:
    """Run the cells, and return them in the given order.

    Lanes run in parallel. If the check stops at the first fault, they run one after the other, the fastest one first.

    Args:
        target: the library.
        cells: the cells to run.
        options: the options of the check.
        work: an empty folder for files.
        watcher: receives the progress.
        python: the prefix of a command line that runs a module.

    Raises:
        LoadError: the library could not be opened.
    """
    watcher.start(cells)
    done: list[Cell] = []
    lanes: dict[tuple[str, str, str], list[list[str]]] = {}
    for op, runtime, device in cells:
        reason = _not_run(runtime, device, options, target.sanitize)
        if reason:
            done.append(Cell(f"{target.namespace}::{op}", runtime, device, "not run", reason=reason))
            continue
        lanes.setdefault((op, device, runtime_row(runtime).lane), []).append([op, runtime, device])
    for cell in done:
        watcher.end(cell)
    environment = sanitizers.environment(target.sanitize) if target.sanitize else {}
    tools = sanitizers.tools_among(target.sanitize)

    def run(job: Job) -> list[Cell]:
        if tools:
            return [run_under_tools(job, tools, environment, watcher)]
        return run_lane(job, environment, watcher, python)

    jobs = [_job(target, lane, listed, options, work) for lane, listed in lanes.items()]
    # The slowest first, because it determines when the check finishes.
    jobs.sort(key=lambda job: LANES.index(runtime_row(job.cells[0][1]).lane), reverse=options.fail_fast)
    if options.fail_fast:
        for job in jobs:
            if any(cell.status == "failed" for cell in done):
                done += [not_run_cell(target.namespace, (op, runtime, device)) for op, runtime, device in job.cells]
            else:
                done += run(job)
    else:
        with ThreadPoolExecutor(max_workers=max(1, min(4, os.cpu_count() or 1))) as pool:
            for future in [pool.submit(run, job) for job in jobs]:
                done += future.result()
    order = {(f"{target.namespace}::{op}", runtime, device): at for at, (op, runtime, device) in enumerate(cells)}
    done.sort(key=lambda cell: order[cell.op, cell.runtime, cell.device])
    return [_finished(str(work), cell, is_elsewhere=target.is_external) for cell in done]


def _job(target: Target, lane: tuple[str, str, str], cells: list[list[str]], options: Options, work: Path) -> Job:
    folder = work / "-".join(lane).replace(" ", "_")
    folder.mkdir()
    limit_s = max(runtime_row(runtime).step_limit_s for _, runtime, _ in cells)
    is_watched = bool(sanitizers.tools_among(target.sanitize))
    if is_watched:
        limit_s *= _SLOWER_UNDER_A_TOOL
    return Job(
        namespace=target.namespace,
        path=str(target.path),
        shared_object=None if target.shared_object is None else str(target.shared_object),
        cells=cells,
        options=options,
        work=str(folder),
        step_limit_s=limit_s if target.step_limit_s is None else target.step_limit_s,
        kernels=_kernels(target) if is_watched else [],
    )


def _kernels(target: Target) -> list[str]:
    # Imported here, because it imports a library that reads ELF files, which is slow.
    from opwright.builder.symbols import cuda_kernels

    return [] if target.shared_object is None else cuda_kernels(target.shared_object)


def _finished(work: str, cell: Cell, *, is_elsewhere: bool) -> Cell:
    """`cell` without the path of the temporary folder, which differs in each check and is removed at its end."""

    def cut(text: str) -> str:
        return text.replace(f"{work}/", "")

    def cleaned(failure: Failure) -> Failure:
        return replace(
            failure,
            repro=cut(failure.repro),
            got=cut(failure.got),
            expected=cut(failure.expected),
            detail=cut(failure.detail),
            is_elsewhere=is_elsewhere,
        )

    return replace(cell, failures=tuple(map(cleaned, cell.failures)))


def _not_run(runtime: str, device: str, options: Options, sanitize: tuple[str, ...]) -> str:
    row = runtime_row(runtime)
    if tools := sanitizers.tools_among(sanitize):
        if device != "cuda":
            return f"{tools[0]} checks CUDA kernels: pass --device cuda"
        return "" if runtime == "eager" else f"{tools[0]} checks only eager mode, which calls the same kernels"
    if sanitize and not row.sanitizable:
        return "it starts processes that the sanitizer does not check"
    if options.quick and not row.quick:
        return "--quick skips runtimes that compile code"
    return ""
