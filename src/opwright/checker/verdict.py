"""The result of a check: failures, cells of the matrix, and the report that contains them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args

from opwright.checker.kinds import Kind

Status = Literal["passed", "failed", "lacking", "not applicable", "not run"]
_REPORT_IT = "report it to the maintainers of the operator, with the repro, which does not require opwright"
STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True)
class Failure:
    """One fault, with the information that its author needs to fix it.

    Attributes:
        kind: the kind of fault; its diagnosis contains the likely cause and the fix.
        case: a description of the case: `x transposed, float32 (16, 33)`.
        repro: lines of Python that reproduce the call; empty if there was none.
        got: the actual result.
        expected: the expected result.
        detail: further information: a sanitizer's report, a compiler's message.
        is_elsewhere: whether the operator belongs to an external library, so that op.py cannot fix it.
    """

    kind: Kind
    case: str = ""
    repro: str = ""
    got: str = ""
    expected: str = ""
    detail: str = ""
    is_elsewhere: bool = False

    @property
    def fix(self) -> str:
        """What to do."""
        diagnosis = self.kind.diagnosis
        return (diagnosis.elsewhere or _REPORT_IT) if self.is_elsewhere else diagnosis.fix

    def to_json(self) -> dict[str, Any]:
        """The failure in JSON, with its diagnosis."""
        diagnosis = self.kind.diagnosis
        texts = {"title": diagnosis.title, "cause": diagnosis.cause, "fix": self.fix}
        return {**dataclasses.asdict(self), "kind": self.kind.value, **texts}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Failure:
        """The failure that `to_json` wrote."""
        texts = {field.name for field in dataclasses.fields(cls)} - {"kind", "is_elsewhere"}
        is_elsewhere = bool(given.get("is_elsewhere"))
        return cls(Kind(given["kind"]), **{name: str(given[name]) for name in texts}, is_elsewhere=is_elsewhere)


def shortened(text: str, longest: int) -> str:
    """A long text without its middle: the cause of an error is at its start or its end, with a trace in between."""
    return text if len(text) <= longest else f"{text[: longest // 2]}\n[...]\n{text[-longest // 2 :]}"


@dataclass(frozen=True)
class Cell:
    """One operator in one runtime on one device.

    Attributes:
        op: the operator, as `namespace::name`.
        runtime: one of the eleven.
        device: `cpu` or `cuda`.
        status: its outcome; only `failed` makes the check fail. `lacking` means that an operator of an external library
            lacks what the runtime requires.
        reason: why it does not apply or was not run, or notes on a pass; may be empty.
        cases: how many cases returned what was expected.
        rejected: how many of them were varied inputs that the operator rejected with an error, which is allowed.
        failures: the faults, the most informative one first; at most one of a kind.
        seconds: how long it took.
    """

    op: str
    runtime: str
    device: str
    status: Status
    reason: str = ""
    cases: int = 0
    rejected: int = 0
    failures: tuple[Failure, ...] = ()
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The cell in JSON."""
        return {**dataclasses.asdict(self), "failures": [failure.to_json() for failure in self.failures]}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Cell:
        """The cell that `to_json` wrote."""
        return cls(**{**given, "failures": tuple(Failure.from_json(failure) for failure in given["failures"])})


def not_run_cell(namespace: str, cell: tuple[str, str, str]) -> Cell:
    """The cell (operator, runtime, device) of a check that stopped at an earlier fault."""
    op, runtime, device = cell
    return Cell(f"{namespace}::{op}", runtime, device, "not run", reason="the check stops at the first fault")


@dataclass(frozen=True)
class Report:
    """The outcome of a check.

    Attributes:
        namespace: the library's namespace.
        path: the folder of its op.py.
        pytorch: PyTorch's version.
        machine: a short description of the machine.
        seed: the seed of the random inputs.
        sanitize: the sanitizers that the native code was built with; empty for none.
        cells: the matrix, by operator and then by runtime.
        failures: faults of the library as a whole, which prevent all cells from running: it does not build or load.
        seconds: how long everything took, including the build.
    """

    namespace: str
    path: str
    pytorch: str
    machine: str
    seed: int
    sanitize: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()
    failures: tuple[Failure, ...] = ()
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether at least one cell ran, and nothing failed."""
        return self.ran and not self.failures and all(cell.status != "failed" for cell in self.cells)

    @property
    def ran(self) -> bool:
        """Whether any cell ran; otherwise a check proves nothing."""
        return any(cell.status in {"passed", "failed"} for cell in self.cells)

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of all faults that were found."""
        of_cells = (failure.kind for cell in self.cells for failure in cell.failures)
        return frozenset((*of_cells, *(failure.kind for failure in self.failures)))

    def to_json(self) -> dict[str, Any]:
        """The report as `--json` writes it."""
        return {
            "passed": self.passed,
            **dataclasses.asdict(self),
            "cells": [cell.to_json() for cell in self.cells],
            "failures": [failure.to_json() for failure in self.failures],
        }
