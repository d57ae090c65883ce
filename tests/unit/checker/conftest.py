"""Fixtures: operators in the form in which a check uses them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from opwright.checker.job import Job, Options
from opwright.checker.recorder import Recorder
from opwright.checker.subject import Subject
from opwright.loader.open import open_library

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from opwright.checker.verdict import Cell
    from opwright.spec import Library
    from tests.unit.conftest import Describe

SAMPLES = """
@f.samples
def _(make):
    yield make.randn(40)
"""
RIGHT = "@library.op\ndef f(x: Tensor) -> Tensor:\n    return x + 1\n"


def operator(parameters: str, reference: str, *samples: str, results: str = "Tensor") -> str:
    """The text of an operator `f`; the reference and the samples are Python expressions."""
    drawn = "".join(f"    yield {sample}\n" for sample in samples)
    described = f"@library.op\ndef f({parameters}) -> {results}:\n    return {reference}\n"
    return f"{described}\n@f.samples\ndef _(make):\n{drawn}"


def recorder_of_steps(runtime: str) -> tuple[Recorder, list[str]]:
    """A recorder of a cell in `runtime`, and the steps that it announces."""
    steps: list[str] = []

    def report(event: dict[str, Any]) -> None:
        if event["event"] == "step":
            steps.append(event["step"])

    return Recorder("f", runtime, "cpu", report), steps


def job_of(library: Library, cells: list[tuple[str, str]], work: Path, **changed: Any) -> Job:
    """A quick check of `cells`, operators of `library` in runtimes on the CPU."""
    on_cpu = [[op, runtime, "cpu"] for op, runtime in cells]
    job = Job(library.namespace, str(library.root / "op.py"), None, on_cpu, Options(quick=True), str(work))
    return replace(job, **changed)


def install_compute_sanitizer(cuda_home: Path, text: str = "#!/bin/sh\n") -> Path:
    """Writes a script in place of compute-sanitizer, and returns its path."""
    program = cuda_home / "bin/compute-sanitizer"
    program.parent.mkdir()
    program.write_text(text)
    program.chmod(0o755)
    return program


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
