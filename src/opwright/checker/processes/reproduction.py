"""Completes the repro of a fault: saves the tensors that it loads, and runs it once."""

from __future__ import annotations

import hashlib
import io
import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.cache.cache import Cache
from opwright.checker.cases.case import copied
from opwright.checker.cases.code import loaded_names
from opwright.checker.kinds import OF_VALUES, Kind
from opwright.checker.processes.channel import ForgedMessageError
from opwright.checker.processes.served_process import served_process

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.checker.job import Job
    from opwright.checker.processes.verdicts import Verdicts
    from opwright.checker.verdict import Cell, Failure

_LOADED = re.compile(r"torch\.load\('(inputs of [^\n]*)'\)$", re.MULTILINE)
_MOST_FILES = 500
_LONGEST_S = 120.0
# Kinds of faults that are visible in the result of a plain call of the operator.
_OF_THE_RESULT = OF_VALUES | {Kind.WRONG_DTYPE, Kind.RESULT_TYPE, Kind.STRIDES, Kind.OFFSET, Kind.SHARED}
# Errors in the repro itself, not in the code that it calls.
_ABOUT_THE_LINES = (
    *("NameError", "SyntaxError", "IndentationError", "ImportError", "ModuleNotFoundError"),
    *("FileNotFoundError", "UnpicklingError"),
)
_NOT_SHOWN = "# These lines alone did not reproduce the fault."


def complete(cell: Cell, job: Job, verdicts: Verdicts) -> Cell:
    """`cell` with repros that are ready to paste: their tensors are saved, and each repro has been run once."""
    return replace(cell, failures=tuple(_complete(cell, failure, job, verdicts) for failure in cell.failures))


def _complete(cell: Cell, failure: Failure, job: Job, verdicts: Verdicts) -> Failure:
    if not failure.repro:
        return failure
    op = cell.op.rpartition(":")[2]
    cases: list[Case] = []

    def load(found: re.Match[str]) -> str:
        case = verdicts.case_named(op, cell.device, found[1])
        if case is None:
            return f"{found[0]}  # not saved: its tensors are unknown"
        cases.append(case)
        return f"torch.load({str(saved(case))!r})"

    lines = _LOADED.sub(load, failure.repro)
    # The repro may hang too, and a fault that compute-sanitizer reports is not visible without its tool.
    if failure.kind in (Kind.HANG, Kind.FORKED) or job.options.tool:
        return replace(failure, repro=lines)
    shows = _shows(cell, failure, lines, cases[0] if cases else None, job, verdicts)
    return replace(failure, repro=lines if shows else f"{_NOT_SHOWN}\n{lines}")


def saved(case: Case, folder: Path | None = None) -> Path:
    """The file with those arguments of `case` that its repro loads."""
    values = [_detached(case.arguments[name]) for name in loaded_names(case)]
    try:
        content = _content(values)
    except RuntimeError:  # PyTorch cannot save memory that tensors of different dtypes share
        content = _content(pytree.tree_map_only(Tensor, copied, values))
    folder = folder or Cache().root / "inputs"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(content).hexdigest()[:16]}.pt"
    with tempfile.TemporaryDirectory(dir=folder) as part:  # an interrupted save leaves no file behind
        written = Path(part) / path.name
        written.write_bytes(content)
        written.replace(path)
    _keep_newest(folder)
    return path


def _content(values: list[Any]) -> bytes:
    file = io.BytesIO()
    torch.save(values, file)
    return file.getvalue()


def _detached(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_detached(one) for one in value]
    return value.detach() if isinstance(value, Tensor) else value


def _keep_newest(folder: Path) -> None:
    files = sorted(folder.glob("*.pt"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in files[_MOST_FILES:]:
        path.unlink(missing_ok=True)


def _shows(cell: Cell, failure: Failure, lines: str, case: Case | None, job: Job, verdicts: Verdicts) -> bool:
    """Whether the repro alone shows the fault, as far as that can be determined."""
    lines_only = [line for line in lines.splitlines() if not line.startswith("#")]
    program = Path(job.work) / f"repro_{os.getpid()}.py"
    program.write_text("\n".join(lines_only), encoding="utf-8")
    message: dict[str, Any] | None = None
    with served_process(
        replace(job, path=str(program)),
        program.with_suffix(".json"),
        "opwright.checker.processes.reproduction_worker",
        job.environment,
        job.python,
        limit_s=_LONGEST_S,
    ) as process:
        try:
            message = process.receive()
        except ForgedMessageError:
            return True
    if message is None or process.completed.exit_code:
        return True  # it crashes or hangs, which shows a fault
    if failure.kind is Kind.BAD_INPUT:
        return not message["error"]
    if failure.kind in _OF_THE_RESULT and cell.runtime == "eager" and case is not None and not message["error"]:
        op = verdicts.op(cell.op.rpartition(":")[2], cell.device)
        if op.mutates:
            return True
        results = message["value"]
        listed = list(results) if isinstance(results, tuple) else [results]
        return verdicts.fault(cell.op.rpartition(":")[2], cell.device, case, listed) is not None
    return not _is_about_the_lines(message["error"])


def _is_about_the_lines(error: str) -> bool:
    """Whether the repro itself is wrong."""
    return error.startswith(_ABOUT_THE_LINES)
