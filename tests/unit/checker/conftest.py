"""Fixtures: operators in the form in which a check uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from opwright.checker.job import Options
from opwright.checker.subject import Subject
from opwright.loader.open import open_library

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from opwright.checker.verdict import Cell
    from tests.unit.conftest import Describe


class RecordingWatcher:
    """A watcher that records its calls."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, str, str]] = []
        self.ended: list[Cell] = []
        self.cases: list[str] = []

    def start(self, cells: Sequence[tuple[str, str, str]]) -> None: ...

    def begin(self, op: str, runtime: str, device: str) -> None:
        self.begun.append((op, runtime, device))

    def case(self, text: str) -> None:
        self.cases.append(text)

    def end(self, cell: Cell) -> None:
        self.ended.append(cell)


class MakeSubject(Protocol):
    """Describes an operator, registers it with PyTorch, and returns it as the subject of a check."""

    def __call__(self, text: str, *, quick: bool = False, large: bool = False, seed: int = 0) -> Subject: ...


@pytest.fixture(scope="session")
def make_subject(describe: Describe, tmp_path_factory: pytest.TempPathFactory) -> MakeSubject:
    def make_subject(text: str, *, quick: bool = False, large: bool = False, seed: int = 0) -> Subject:
        library = describe(text)
        open_library(library)
        op = next(iter(library.ops.values()))
        work: Path = tmp_path_factory.mktemp("work")
        return Subject(op, None, "cpu", Options(seed, quick, large), work)

    return make_subject
