"""A pytest plugin: `pytest --opwright ops/` runs each operator in each runtime as a test.

    pytest --opwright --opwright-quick ops/

pytest loads this module in every run, so it imports the checker only with `--opwright`.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

import pytest

from opwright.checker.watcher import NullWatcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from opwright.checker.job import Options
    from opwright.checker.verdict import Cell
    from opwright.spec import Library

CellName = tuple[str, str, str]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("opwright", "operators (opwright)")
    group.addoption(
        "--opwright", action="store_true", help="Check the operators of each op.py: one test per operator and runtime."
    )
    group.addoption(
        "--opwright-quick", action="store_true", help="Fewer cases, and only runtimes that compile nothing."
    )
    group.addoption("--opwright-seed", type=int, metavar="N", help="Seed of inputs; a new one by default.")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect an op.py."""
    if file_path.name != "op.py" or not parent.config.getoption("--opwright"):
        return None
    collected: pytest.Collector = OpFile.from_parent(parent, path=file_path)
    return collected


class OpFile(pytest.File):
    """An op.py, whose operators are checked."""

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each operator, runtime and device."""
        from opwright.checker.matrix import select_cells
        from opwright.errors import OpwrightError
        from opwright.spec import library_at

        try:
            self.library = library_at(self.path)
            cells = select_cells(self.library, (), (), ())
        except OpwrightError as error:
            raise self.CollectError(str(error)) from error
        from opwright.checker.job import new_seed

        given = self.config.getoption("--opwright-seed")
        self.seed = new_seed() if given is None else int(given)
        self._check: _Check | None = None
        devices = {device for _, _, device in cells}
        for op, runtime, device in cells:
            where = f"{runtime}-{device}" if len(devices) > 1 else runtime
            yield CellItem.from_parent(self, name=f"{op}[{where}]", cell=(op, runtime, device))

    def outcome(self, item: CellItem) -> Cell:
        """The outcome of one test; the first call starts the check of all collected tests."""
        if hasattr(self.config, "workerinput"):  # pytest-xdist distributes the tests over processes
            return self._started([item.cell]).outcome(item.cell)
        if self._check is None:
            chosen = [
                other.cell for other in self.session.items if isinstance(other, CellItem) and other.parent is self
            ]
            self._check = self._started(chosen)
        return self._check.outcome(item.cell)

    def _started(self, cells: Sequence[CellName]) -> _Check:
        from opwright.checker.job import Options

        options = Options(seed=self.seed, quick=bool(self.config.getoption("--opwright-quick")))
        return _Check(self.library, cells, options)


class CellItem(pytest.Item):
    """One operator in one runtime."""

    def __init__(self, *, cell: CellName, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.cell = cell

    def runtest(self) -> None:
        """Fail with the faults of the cell, or skip the test if it was not run."""
        if not isinstance(self.parent, OpFile):  # only for the type checker
            raise TypeError
        cell = self.parent.outcome(self)
        if cell.status == "failed":
            raise CellFailedError(cell, self.parent.seed)
        if cell.status != "passed":
            pytest.skip(f"{cell.status}: {cell.reason}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: str | None = None) -> object:  # type: ignore[override]
        """The faults as text."""
        from opwright.errors import OpwrightError

        if isinstance(excinfo.value, (CellFailedError, LibraryFailedError, OpwrightError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)  # type: ignore[arg-type]

    def reportinfo(self) -> tuple[Path, int, str]:
        """The location of the reference, and the name of the test."""
        op, runtime, _ = self.cell
        library = self.parent.library if isinstance(self.parent, OpFile) else None
        line = 0 if library is None else library.ops[op].reference.__code__.co_firstlineno - 1
        return self.path, line, f"{op} in {runtime}"


class CellFailedError(AssertionError):
    """An operator is wrong in a runtime."""

    def __init__(self, cell: Cell, seed: int) -> None:
        from opwright.checker.report.text import failure_text

        texts = [failure_text(failure) for failure in cell.failures]
        head = f"{cell.op} in {cell.runtime}; the same cases again: --opwright-seed {seed}"
        super().__init__("\n\n".join([head, *texts]))


class LibraryFailedError(AssertionError):
    """A library does not build, or does not load."""


class _Check(NullWatcher):
    """A check that runs in a separate thread. It is the watcher of its own progress."""

    def __init__(self, library: Library, cells: Sequence[CellName], options: Options) -> None:
        self._namespace = library.namespace
        self._outcomes: dict[CellName, Future[Cell]] = {cell: Future() for cell in cells}

        def run() -> None:
            from opwright.checker.check import check_cells
            from opwright.checker.report.text import failure_text

            try:
                report = check_cells(library, cells, options, progress=self)
                broken = "\n\n".join(map(failure_text, report.failures))
                error: BaseException = LibraryFailedError(broken or "the check did not run this cell")
            except BaseException as raised:  # noqa: BLE001  passed to the waiting thread
                error = raised
            for outcome in self._outcomes.values():
                if not outcome.done():
                    outcome.set_exception(error)

        threading.Thread(target=run, daemon=True).start()

    def outcome(self, cell: CellName) -> Cell:
        """Wait for the outcome of a cell."""
        return self._outcomes[cell].result()

    def end(self, cell: Cell) -> None:
        """Set the outcome of a cell."""
        name = (cell.op.removeprefix(f"{self._namespace}::"), cell.runtime, cell.device)
        self._outcomes[name].set_result(cell)
