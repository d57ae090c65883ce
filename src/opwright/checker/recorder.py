"""Records the events of a cell while it runs, so that the last event identifies the cause of a crash."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from opwright.checker.kinds import Kind
from opwright.checker.verdict import Cell, Failure, Status

Emit = Callable[[dict[str, Any]], None]

# The prefix of event lines; kernels and libraries print the other lines.
MARK = "\x1e"


class FirstFaultError(BaseException):
    """Ends a cell at its first fault. Not an `Exception`, so that handlers of an operator's errors do not catch it."""


class UnusableProcessError(BaseException):
    """Ends a process in which no further step can run. Not an `Exception`, as for `FirstFaultError`."""


@dataclass(frozen=True)
class DeviceFault:
    """A fault of a step that its device reports, regardless of the step's outcome.

    Attributes:
        kind: the kind of fault.
        got: what the device reports.
        expected: what was expected.
        is_final: whether every later use of the device in this process fails.
    """

    kind: Kind
    got: str
    expected: str
    is_final: bool


class DeviceWatch(Protocol):
    """Watches the device on which the operator runs."""

    def faults(self) -> Iterable[DeviceFault]:
        """The faults since the previous call."""
        ...


class Recorder:
    """Collects the outcome of one cell, and announces each step.

    Args:
        op: the operator, as `namespace::name`.
        runtime: the runtime's name.
        device: `cpu` or `cuda`.
        emit: receives events.
        skip: the steps that ended an earlier process; they are not repeated.
        skip_groups: the groups in which several steps ended a process; their other steps are not tried.
        fail_fast: raise `FirstFaultError` after the first fault.
        watch: watches the device, if the device can report faults.

    Attributes:
        fail_fast: whether the cell ends at its first fault.
    """

    def __init__(
        self,
        op: str,
        runtime: str,
        device: str,
        emit: Emit,
        skip: frozenset[str] = frozenset(),
        skip_groups: frozenset[str] = frozenset(),
        *,
        fail_fast: bool = False,
        watch: DeviceWatch | None = None,
    ) -> None:
        self.fail_fast = fail_fast
        self._where = {"op": op, "runtime": runtime, "device": device}
        self._emit = emit
        self._skip = skip
        self._skip_groups = skip_groups
        self._untried: set[str] = set()
        self._started = time.perf_counter()
        self._failures: dict[str, Failure] = {}
        self._cases = 0
        self._rejected = 0
        self._notes: list[str] = []
        self._watch = watch
        self._step, self._repro, self._crash = "before the first case", "", Kind.CRASH

    def begin(self, step: str, repro: str = "", crash: Kind = Kind.CRASH, group: str = "") -> bool:
        """Announce a step; False if it must be skipped: it, or several others in its group, ended an earlier process.

        Args:
            step: a description of the step, unique in the cell: the name of a case, and the action.
            repro: lines of Python that reproduce it.
            crash: the kind of fault if the step ends the process.
            group: `Case.group`, if the step calls the operator with a case.
        """
        self.settle()
        if self.died_of(step, group):
            if step not in self._skip:
                self._untried.add(step)
            return False
        self._step, self._repro, self._crash = step, repro, crash
        event = {"step": step, "repro": repro, "crash": crash.value, "group": group}
        self._emit({"event": "step", **self._where, **event})
        return True

    def died_of(self, step: str, group: str = "") -> bool:
        """Whether this step, or several others in its group, ended an earlier process."""
        return step in self._skip or group in self._skip_groups

    def ok(self) -> None:
        """Count a case that returned what was expected."""
        self._cases += 1

    def rejected(self) -> None:
        """Count a varied input that was rejected with an error, which is allowed."""
        self._cases += 1
        self._rejected += 1

    def note(self, text: str) -> None:
        """Record a note that reports show if the cell passes."""
        if text not in self._notes:
            self._notes.append(text)

    def fail(self, failure: Failure) -> None:
        """Record a fault. Only the first of each kind is kept, because it comes from the simplest case.

        Nothing is recorded if the device reports a fault of the running step, which explains all others.

        Raises:
            FirstFaultError: the cell ends at its first fault.
            UnusableProcessError: the device reports that no further step can run in this process.
        """
        if not self.settle():
            self._keep(failure)

    def settle(self) -> bool:
        """Record the faults of the running step that its device reports, and return whether there are any.

        Raises:
            FirstFaultError: the cell ends at its first fault.
            UnusableProcessError: no further step can run in this process.
        """
        found = False
        for fault in self._watch.faults() if self._watch is not None else ():
            found = True
            # The step may have declared what an invalid access in it means.
            kind = self._crash if fault.is_final and self._crash is not Kind.CRASH else fault.kind
            failure = Failure(kind, self._step, self._repro, fault.got, fault.expected)
            if fault.is_final:
                self.end_process(failure)
            self._keep(failure)
        return found

    def end_process(self, failure: Failure) -> NoReturn:
        """Record a fault of the running step after which no further step can run in this process.

        Another process continues with the steps that follow, as after a crash.

        Raises:
            UnusableProcessError: always.
        """
        self._emit({"event": "unusable", "fault": failure.to_json()})
        raise UnusableProcessError

    def _keep(self, failure: Failure) -> None:
        if failure.kind.value not in self._failures:
            self._failures[failure.kind.value] = failure
            self._emit({"event": "fault", "repro": failure.repro})
        if self.fail_fast:
            raise FirstFaultError

    @property
    def has_died(self) -> bool:
        """Whether a step of this cell ended an earlier process."""
        return bool(self._skip)

    @property
    def failed(self) -> bool:
        """Whether a fault was found."""
        return bool(self._failures)

    def has(self, *kinds: Kind) -> bool:
        """Whether a fault of one of `kinds` was found."""
        return any(kind.value in self._failures for kind in kinds)

    def cell(self, status: Status | None = None, reason: str = "") -> Cell:
        """The cell so far; `passed` or `failed` unless another status is given."""
        notes = list(self._notes)
        if self._untried:
            groups = ", ".join(sorted(self._skip_groups))
            notes.append(f"cases skipped because similar ones crash: {len(self._untried)} ({groups})")
        outcome: Status = status or ("failed" if self._failures else "passed")
        return Cell(
            **self._where,
            status=outcome,
            reason=reason or "; ".join(notes),
            cases=self._cases,
            rejected=self._rejected,
            failures=tuple(self._failures.values()),
            seconds=round(time.perf_counter() - self._started, 3),
        )


def written(event: dict[str, Any]) -> str:
    """An event as a separate line, even if the output before it does not end with a newline."""
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
