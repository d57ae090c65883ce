"""`torch.export`: runs, saves, loads and decomposes a program with dynamic dimensions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch

from opwright.checker.kinds import Kind
from opwright.checker.models import exported, graphs, repro, source
from opwright.checker.steps import Steps
from opwright.checker.verdict import Failure
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.checker.cases.case import Case
    from opwright.checker.models.exported import Exported
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

NAME = "export"

_MOST_PROGRAMS = 4


def why_not(subject: Subject) -> str:
    """Why no program can be exported."""
    return exported.why_not(subject)


def run(subject: Subject, recorder: Recorder) -> None:
    """Export the samples, with one program for all that differ only in the numbers and sizes of tensors."""
    steps = Steps(subject, recorder)
    groups = exported.groups(subject)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for number, group in enumerate(groups[:_MOST_PROGRAMS]):
            program = exported.exported(steps, group, number)
            if program is not None:
                _check(steps, program, number)
    if len(groups) > _MOST_PROGRAMS:
        recorder.note(f"{_MOST_PROGRAMS} programs, for {len(groups)} combinations of constants and dtypes")


def _check(steps: Steps, program: Exported, number: int) -> None:
    subject, case = steps.subject, program.case
    code = repro.export(subject, case)
    _check_holds(steps, f"{case.name}, exported", code, program.program)
    module = program.program.module()
    for other in exported.served(steps, program, NAME):
        if not _run(steps, f"{other.name}, run from the program of {case.name}", other, module):
            return  # later calls would only repeat the fault
    path = exported.program_path(subject, number)
    loaded = steps.do(f"{case.name}, loaded", code, lambda: torch.export.load(path).module())
    if loaded is not None:
        _run(steps, f"{case.name}, run from the loaded program", case, loaded)
    decomposed_code = repro.export(subject, case, "program.run_decompositions().module()({})")
    decomposed = steps.do(f"{case.name}, decomposed", decomposed_code, program.program.run_decompositions)
    if decomposed is not None:
        _check_holds(steps, f"{case.name}, decomposed", decomposed_code, decomposed)
        _run(steps, f"{case.name}, run from the decomposed program", case, decomposed.module())


def _run(steps: Steps, step: str, case: Case, module: Callable[..., Any]) -> bool:
    subject = steps.subject
    arguments = case.fresh()
    code = repro.export(subject, case)
    return steps.judge(step, code, case, lambda: source.outcome(subject, module(*derive.tensors(arguments)), arguments))


def _check_holds(steps: Steps, step: str, code: str, program: torch.export.ExportedProgram) -> None:
    if not graphs.holds(steps.subject, program.graph_module):
        wanted = f"a graph that calls {steps.subject.op.qualified_name}"
        steps.recorder.fail(Failure(Kind.NOT_IN_GRAPH, step, code, got=str(program.graph), expected=wanted))
