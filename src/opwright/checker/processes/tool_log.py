"""The output of a compute-sanitizer tool for a process, and the steps of the check to which its reports belong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwright.checker.gpu_tool import again
from opwright.checker.kinds import Kind
from opwright.checker.tool_report import ToolReport, distinct, reports, shown, troubles
from opwright.checker.verdict import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opwright.checker.job import Job

_MOST_OTHERS = 10  # further faults to list


@dataclass(frozen=True)
class _Mark:
    """A step, and the size of the output when it started."""

    size: int
    step: Mapping[str, Any]


class ToolLog:
    """The file for the reports of one process, which the tool writes while the process runs.

    Args:
        job: the cell that the process runs.
        path: the file.
    """

    def __init__(self, job: Job, path: Path) -> None:
        self.path = path
        self._tool = job.options.tool
        self._root = Path(job.path).parent
        self._library = "" if job.shared_object is None else Path(job.shared_object).name
        self._kernels = frozenset(job.kernels)
        self._marks: list[_Mark] = []

    def begin(self, step: Mapping[str, Any]) -> None:
        """Start a step: later output belongs to it."""
        self._marks.append(_Mark(len(self._content()), step))

    def fault(self) -> Failure | None:
        """The first fault of the library that the tool reports, with the others in its detail; None without one."""
        found = distinct(filter(self._concerns, reports(self._content())))
        # The report about a kernel explains CUDA calls that fail after the kernel was stopped.
        found = [report for report in found if not report.is_api_error] or found
        if not found:
            return None
        first = found[0]
        step = self._step(first)
        return Failure(
            Kind(self._tool),
            case=step.get("step", "before the first case"),
            repro=again(self._tool, step["repro"]) if step.get("repro") else "",
            got=shown(first, self._root),
            expected=f"no report by {self._tool}",
            detail="\n".join([first.text, *self._others(found[1:])]),
        )

    def troubles(self) -> list[str]:
        """The tool's messages about its own limits."""
        return [f"{self._tool}: {trouble}" for trouble in troubles(self._content())]

    @property
    def text(self) -> str:
        """The whole output, for a process that ended without a report."""
        return self._content().decode(errors="replace").strip()

    def _content(self) -> bytes:
        return self.path.read_bytes() if self.path.is_file() else b""

    def _step(self, report: ToolReport) -> Mapping[str, Any]:
        before = [mark for mark in self._marks if mark.size <= report.offset]
        return before[-1].step if before else {}

    def _concerns(self, report: ToolReport) -> bool:
        """Whether a report is about the library, not about PyTorch, whose calls and kernels may be checked too."""
        if report.is_api_error:
            return report.caller == self._library
        if self._tool != "initcheck" or not self._kernels:
            return True  # the other tools check only the library's kernels
        places = (*report.places, *report.frames)
        return any(place.function in self._kernels or place.is_below(self._root) for place in places)

    def _others(self, others: Sequence[ToolReport]) -> list[str]:
        listed = [f"also: {shown(report, self._root)}" for report in others[:_MOST_OTHERS]]
        left = len(others) - len(listed)
        return [*listed, *([f"and {left} more"] if left > 0 else [])]
