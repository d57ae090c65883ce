"""Checks the mutants of a library in parallel."""

from __future__ import annotations

import os
import queue
import random
import tempfile
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder.abi import authors_files
from opwright.builder.plan import plan_library
from opwright.cache.cache import Cache
from opwright.checker.job import Options, new_seed
from opwright.checker.matrix import select_cells
from opwright.checker.mutants.bytecode import is_same_bytecode
from opwright.checker.mutants.cpp import cpp_mutants
from opwright.checker.mutants.mirror import Built, Mirror
from opwright.checker.mutants.python import python_mutants
from opwright.checker.mutants.score import MutantResult, MutationReport
from opwright.checker.mutants.watcher import MutantWatcher, NullMutantWatcher
from opwright.checker.run_cells import python_for, run_cells
from opwright.checker.target import Target
from opwright.checker.watcher import NullWatcher
from opwright.errors import BuildError, LoadError, SpecError
from opwright.spec import Library, library_at
from opwright.toolchain.machine import this_machine
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opwright.builder.plan import Plan
    from opwright.checker.matrix import CellName
    from opwright.checker.mutants.mutant import Mutant
    from opwright.checker.verdict import Cell

DEFAULT_COUNT = 60
# A step of a quick check takes a fraction of a second. This limit ends mutants with an infinite loop.
_STEP_LIMIT_S = 60.0
_COMPILED_STEP_LIMIT_S = 300.0
# Larger than any number of lines between two changes in a file.
_FAR = 2**31


def check_mutants(
    library: Library | str | Path,
    count: int | None = DEFAULT_COUNT,
    *,
    ops: Sequence[str] = (),
    runtimes: Sequence[str] = (),
    devices: Sequence[str] = (),
    files: Sequence[str | Path] = (),
    seed: int | None = None,
    quick: bool = False,
    progress: MutantWatcher | None = None,
) -> MutationReport:
    """Make small changes to the sources of a library, one at a time, and report which ones a check does not notice.

    It changes the native sources, the author's headers that they include, and kernels in Python.

    Args:
        library: the folder that contains op.py, the path of op.py, or the library that it describes.
        count: how many mutants to check, not counting those that are equivalent or do not compile; None for all.
        ops: the operators to check; all by default.
        runtimes: the runtimes to check them in; all eleven by default.
        devices: the devices, as for `opwright.check`.
        files: the files to change; all by default.
        seed: the seed of the choice of mutants, and of the check's inputs; a new one by default.
        quick: check with `quick`.
        progress: receives the progress.

    Raises:
        SpecError: there is nothing to change, a file does not belong to the library, or the unchanged library fails its
            check.
        OpwrightError: the library cannot be built.
    """
    started = time.perf_counter()
    described = library if isinstance(library, Library) else library_at(library)
    cells = select_cells(described, ops, runtimes, devices)
    seed = new_seed() if seed is None else seed
    watcher = progress or NullMutantWatcher()
    plan = plan_library(described, Cache()) if described.sources else None
    mutants = _in_files(files, [*_native_mutants(plan), *python_mutants(described)])
    if not mutants:
        msg = (
            f"the library {described.namespace!r} has no code to change: expected native sources, or a kernel in "
            "Python (@op.kernel) in op.py"
        )
        raise SpecError(msg)
    with python_for(cells) as python, tempfile.TemporaryDirectory(prefix="opwright-mutants-") as work:
        trials = _Trials(described, plan, cells, Options(seed=seed, quick=quick), Path(work), python)
        watcher.start(described.namespace, count)
        trials.check_original()
        results = []
        for result in judge_first(lambda mutant: trials.result(mutant, watcher), mutants, count, seed, trials.parallel):
            watcher.end(result)
            results.append(result)
    results.sort(key=lambda result: (str(result.mutant.file), result.mutant.edit.start, result.mutant.edit.replacement))
    return MutationReport(
        namespace=described.namespace,
        path=str(described.root),
        pytorch=find_pytorch().version,
        machine=str(this_machine()),
        seed=seed,
        quick=quick,
        possible=len(mutants),
        results=tuple(results),
        seconds=round(time.perf_counter() - started, 3),
    )


def _native_mutants(plan: Plan | None) -> list[Mutant]:
    if plan is None:
        return []
    generated = plan.definitions.source if plan.definitions else None
    sources = [source for source in plan.sources if source != generated]
    files = authors_files(sources, plan.include_dirs)
    return [mutant for file in files for mutant in cpp_mutants(file)]


def _in_files(files: Sequence[str | Path], mutants: list[Mutant]) -> list[Mutant]:
    """The mutants of `files`; all mutants if `files` is empty."""
    found = {mutant.file for mutant in mutants}
    wanted = [Path(file).resolve() for file in files]
    for file in wanted:
        if file not in found:
            names = ", ".join(sorted(map(str, found))) or "none"
            msg = f"{file} has no code to change: expected one of {names}"
            raise SpecError(msg)
    return [mutant for mutant in mutants if mutant.file in wanted] if wanted else mutants


def judge_first(
    judge: Callable[[Mutant], MutantResult], mutants: Sequence[Mutant], count: int | None, seed: int, parallel: int
) -> Iterator[MutantResult]:
    """The results of the first `count` mutants in a random order that are neither equivalent nor rejected.

    They depend only on the seed, not on timing: a mutant is started only if it is needed regardless of other results.

    Args:
        judge: builds and checks a mutant, which takes minutes if it survives.
        mutants: all mutants.
        count: the number of mutants that are killed or survive; None for all.
        seed: the seed of the order.
        parallel: how many to judge at the same time.
    """
    order = iter(random.Random(seed).sample(mutants, len(mutants)))  # noqa: S311  a reproducible choice, not a secret
    wanted = len(mutants) if count is None else count
    judged = 0
    running: set[Future[MutantResult]] = set()
    with ThreadPoolExecutor(max_workers=parallel) as pool:
        while True:
            running |= {pool.submit(judge, mutant) for mutant in islice(order, wanted - judged - len(running))}
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                result = future.result()
                judged += result.fate in {"killed", "survived"}
                yield result


@dataclass(frozen=True)
class _Notice:
    """How a check notices a change.

    Attributes:
        text: where and how.
        by_quick: whether a quick check notices it.
        op: the operator that shows it; empty if the library cannot be opened.
    """

    text: str
    by_quick: bool
    op: str = ""

    @classmethod
    def of(cls, cell: Cell, what: str, *, by_quick: bool) -> _Notice:
        op, _, _ = _name(cell)
        return cls(f"{op} in {cell.runtime}: {what}", by_quick, op)


class _Trials:
    """Checks the library and its mutants, each in a free mirror."""

    def __init__(
        self,
        library: Library,
        plan: Plan | None,
        cells: list[CellName],
        options: Options,
        work: Path,
        python: Sequence[str],
    ) -> None:
        self.parallel = max(1, min(4, os.cpu_count() or 1))
        self._library = library
        self._cells = cells
        self._options = replace(options, reproduce=False)
        self._work = work
        self._python = python
        self._mirrors: queue.SimpleQueue[Mirror] = queue.SimpleQueue()
        with ThreadPoolExecutor(max_workers=self.parallel) as pool:
            folders = [work / f"mirror_{number}" for number in range(self.parallel)]
            for mirror in pool.map(lambda folder: Mirror(library, plan, folder), folders):
                self._unchanged = Built(library.root / "op.py", mirror.original, is_changed=False)
                self._mirrors.put(mirror)
        # The statuses of the cells of the unchanged library, in a quick check and in a full one.
        self._statuses: dict[bool, dict[CellName, str]] = {True: {}, False: {}}
        self._checking_original = threading.Lock()
        self._seen: dict[Path | None, _Notice | None] = {}
        # The mutants that were noticed, and the operator that showed it.
        self._kills: list[tuple[Mutant, str]] = []

    def check_original(self) -> None:
        """Run a quick check of the unchanged library; parts of a full check run when a mutant requires them.

        Raises:
            SpecError: the check fails.
        """
        self._original(self._cells, quick=True)

    def _original(self, cells: Sequence[CellName], *, quick: bool) -> dict[CellName, str]:
        """The statuses of at least `cells` in a check of the unchanged library."""
        statuses = self._statuses[quick]
        with self._checking_original:
            unknown = [cell for cell in cells if cell not in statuses]
            checked = self._run(self._unchanged, unknown, quick=quick, fail_fast=False) if unknown else []
            for cell in checked:
                if cell.status == "failed":
                    msg = (
                        f"{cell.op} fails in {cell.runtime} without a change ({_kinds(cell)}), so the check cannot "
                        f"notice mutants. First fix what `opwright check {self._library.root}` reports"
                    )
                    raise SpecError(msg)
                statuses[_name(cell)] = cell.status
        return statuses

    def result(self, mutant: Mutant, watcher: MutantWatcher) -> MutantResult:
        """Build and check one mutant."""
        started = time.perf_counter()
        if mutant.marked:
            return MutantResult(mutant, "marked", mutant.marked)
        watcher.begin(mutant)
        mirror = self._mirrors.get()
        try:
            result = self._tried(mirror, mutant)
        finally:
            self._mirrors.put(mirror)
        return replace(result, seconds=round(time.perf_counter() - started, 3))

    def _tried(self, mirror: Mirror, mutant: Mutant) -> MutantResult:
        if mutant.file.suffix == ".py" and is_same_bytecode(mutant.content, mutant.text):
            return MutantResult(mutant, "equivalent")
        try:
            built = mirror.build(mutant)
        except BuildError as error:
            return MutantResult(mutant, "rejected", str(error).splitlines()[0])
        except SyntaxError as error:
            return MutantResult(mutant, "rejected", str(error))
        if not built.is_changed:
            return MutantResult(mutant, "equivalent")
        notice = self._notice(built, likeliest_first(self._cells, mutant, list(self._kills)))
        if notice is None:
            return MutantResult(mutant, "survived")
        self._kills.append((mutant, notice.op))
        return MutantResult(mutant, "killed", notice.text, notice.by_quick)

    def _notice(self, built: Built, cells: list[CellName]) -> _Notice | None:
        """How the check notices the change; None if it does not."""
        if built.shared_object in self._seen:
            return self._seen[built.shared_object]
        found = None
        for quick in self._rounds:
            try:
                checked = self._run(built, cells, quick=quick, fail_fast=True)
                differing = unlike_passed(checked)
                before = self._original([_name(cell) for cell in differing], quick=quick)
                found = _difference(before, differing, by_quick=quick)
            except LoadError as error:
                found = _Notice(f"load: {str(error).splitlines()[0]}", by_quick=quick)
            if found:
                break
        if built.op_file.name == "op.py":
            self._seen[built.shared_object] = found
        return found

    @property
    def _rounds(self) -> list[bool]:
        """Whether each round is a quick check: first a quick one, then a full one for what it does not notice."""
        return [True] if self._options.quick else [True, False]

    def _run(self, built: Built, cells: list[CellName], *, quick: bool, fail_fast: bool) -> list[Cell]:
        work = Path(tempfile.mkdtemp(dir=self._work))
        limit_s = _STEP_LIMIT_S if quick else _COMPILED_STEP_LIMIT_S
        target = Target(self._library.namespace, built.op_file, built.shared_object, step_limit_s=limit_s)
        options = replace(self._options, quick=quick, fail_fast=fail_fast)
        return run_cells(target, cells, options, work, NullWatcher(), self._python)


def likeliest_first(cells: Sequence[CellName], mutant: Mutant, kills: Sequence[tuple[Mutant, str]]) -> list[CellName]:
    """The cells in the order to run them: first those of the operator that noticed the change nearest to this one.

    Args:
        cells: the cells.
        mutant: the mutant to check.
        kills: mutants that were noticed, and the operator that showed each.
    """
    distances: dict[str, int] = {}
    for other, op in kills:
        if other.file == mutant.file:
            distances[op] = min(distances.get(op, _FAR), abs(other.line - mutant.line))
    return sorted(cells, key=lambda cell: distances.get(cell[0], _FAR))


def _name(cell: Cell) -> CellName:
    return cell.op.rpartition("::")[2], cell.runtime, cell.device


def unlike_passed(cells: Sequence[Cell]) -> list[Cell]:
    """The first failed cell, because no cell runs after it; if there is none, all cells that did not pass."""
    failed = [cell for cell in cells if cell.status == "failed"]
    return failed[:1] or [cell for cell in cells if cell.status != "passed"]


def _difference(before: dict[CellName, str], cells: Sequence[Cell], *, by_quick: bool) -> _Notice | None:
    """A failed cell, or else the first cell that the change prevents from running; None if there is none."""
    for cell in cells:
        if cell.status == "failed":
            return _Notice.of(cell, _kinds(cell), by_quick=by_quick)
        if before[_name(cell)] == "passed":
            return _Notice.of(cell, f"{cell.status}, {cell.reason}", by_quick=by_quick)
    return None


def _kinds(cell: Cell) -> str:
    return ", ".join(f"{failure.kind.value} ({failure.case})" for failure in cell.failures)
