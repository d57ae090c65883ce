"""AOTInductor: a package that is compiled ahead of time, and loaded and run from Python."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch

from opwright.checker.models import package, repro, source
from opwright.checker.steps import Steps
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

NAME = "aoti"


def why_not(subject: Subject) -> str:
    """Why no package can be compiled."""
    return package.why_not(subject)


def run(subject: Subject, recorder: Recorder) -> None:
    """Compile one package, and run all calls that it serves."""
    steps = Steps(subject, recorder)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        made = package.packaged(steps, NAME)
        if made is None:
            return
        path, program, cases = made
        code = repro.package(subject, program.case)
        load = torch._inductor.aoti_load_package
        loaded = steps.do("the package loaded", code, lambda: load(str(path)))
        if loaded is not None:
            for case in cases:
                if not _run(steps, case, loaded):
                    return  # later calls would only repeat the fault


def _run(steps: Steps, case: Case, loaded: Callable[..., Any]) -> bool:
    subject = steps.subject
    arguments = case.fresh()
    code = repro.package(subject, case)
    return steps.judge(
        f"{case.name}, run from the package",
        code,
        case,
        lambda: source.outcome(subject, loaded(*derive.tensors(arguments)), arguments),
    )
