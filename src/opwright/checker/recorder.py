"""Records the events of a cell while it runs, so that the last event identifies the cause of a crash."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from opwright.checker.kinds import Kind
from opwright.checker.verdict import Cell, Failure, Status

Emit = Callable[[dict[str, Any]], None]

# The prefix of lines that are events; kernels and libraries print the others.
MARK = "\x1e"


class Recorder:
    """Collects the outcome of one cell, and announces each step.

    Args:
        op: the operator, as `namespace::name`.
        runtime: the runtime's name.
        device: `cpu` or `cuda`.
        emit: receives events.
        skip: the steps that ended an earlier process; they are not repeated.
    """

    def __init__(self, op: str, runtime: str, device: str, emit: Emit, skip: frozenset[str] = frozenset()) -> None:
        self._where = {"op": op, "runtime": runtime, "device": device}
        self._emit = emit
        self._skip = skip
        self._started = time.perf_counter()
        self._failures: dict[str, Failure] = {}
        self._cases = 0
        self._rejected = 0
        self._notes: list[str] = []

    def begin(self, step: str, repro: str = "", crash: Kind = Kind.CRASH) -> bool:
        """Announce a step; False if it ended an earlier process, and must not be repeated.

        Args:
            step: the step in words, unique in the cell: the name of a case, and what is done with it.
            repro: lines of Python that reproduce it.
            crash: the kind of fault if the step ends the process.
        """
        if self.died_of(step):
            return False
        self._emit({"event": "step", **self._where, "step": step, "repro": repro, "crash": crash.value})
        return True

    def died_of(self, step: str) -> bool:
        """Whether that step ended an earlier process."""
        return step in self._skip

    def ok(self, count: int = 1) -> None:
        """Count cases that returned what was expected."""
        self._cases += count

    def rejected(self, count: int = 1) -> None:
        """Count varied inputs that were rejected with an error, which is allowed."""
        self._cases += count
        self._rejected += count

    def note(self, text: str) -> None:
        """Record a note for the reader of a passed cell."""
        if text not in self._notes:
            self._notes.append(text)

    def fail(self, failure: Failure) -> None:
        """Record a fault; the first of each kind is kept, which comes from the simplest case."""
        self._failures.setdefault(failure.kind.value, failure)

    @property
    def failed(self) -> bool:
        """Whether a fault was found."""
        return bool(self._failures)

    def has(self, *kinds: Kind) -> bool:
        """Whether a fault of one of `kinds` was found."""
        return any(kind.value in self._failures for kind in kinds)

    def cell(self, status: Status | None = None, reason: str = "") -> Cell:
        """The cell so far; `passed` or `failed` unless another status is given."""
        outcome: Status = status or ("failed" if self._failures else "passed")
        return Cell(
            **self._where,
            status=outcome,
            reason=reason or "; ".join(self._notes),
            cases=self._cases,
            rejected=self._rejected,
            failures=tuple(self._failures.values()),
            seconds=round(time.perf_counter() - self._started, 3),
        )


def written(event: dict[str, Any]) -> str:
    """An event as a separate line, whatever was printed before it."""
    return f"\n{MARK}{json.dumps(event)}\n"


def read(line: str) -> dict[str, Any] | None:
    """The event in a line; None if the line is other output."""
    if not line.startswith(MARK):
        return None
    try:
        event: dict[str, Any] = json.loads(line[len(MARK) :])
    except json.JSONDecodeError:  # truncated by the end of the process, or by the output of another thread
        return None
    return event
