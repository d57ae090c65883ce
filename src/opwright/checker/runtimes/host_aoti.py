"""An AOTInductor package in a C++ process that opens the operator library, without Python."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch

from opwright.checker.models import package, probe_process, repro
from opwright.checker.models.probe_process import Question
from opwright.checker.steps import Steps
from opwright.spec import derive

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

NAME = "host-aoti"


def why_not(subject: Subject) -> str:
    """What the operator lacks, or why no package can be compiled."""
    return probe_process.why_not(subject) or package.why_not(subject)


def run(subject: Subject, recorder: Recorder) -> None:
    """Run all calls that one package serves in a process that opens the library."""
    steps = Steps(subject, recorder)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = probe_process.host_program(steps)
        made = package.packaged(steps, NAME)
        if program is None or made is None:
            return
        path, _, cases = made
        questions = [
            Question(
                f"{case.name}, run from the package",
                case,
                _code(subject, case),
                tuple(derive.tensors(case.fresh())),
            )
            for case in cases
        ]
        probe_process.ask(steps, program, path, questions, probe_process.libraries(subject))


def _code(subject: Subject, case: Case) -> str:
    given = repro.holders(case.arguments)
    compiled = "torch._inductor.aoti_compile_and_package(program)"
    return repro.in_host(subject, repro.export(subject, case), compiled, given, linked=False, with_gradients=False)
