"""The package that AOTInductor compiles from an exported program, for the runtimes that run it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from opwright.checker.models import exported, graphs, repro
from opwright.errors import ToolchainError
from opwright.toolchain.compiler import find_cxx, inductor_settings

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.checker.cases.case import Case
    from opwright.checker.models.exported import Exported
    from opwright.checker.steps import Steps
    from opwright.checker.subject import Subject


def why_not(subject: Subject) -> str:
    """Why no package can be compiled; empty if one can."""
    if reason := exported.why_not(subject):
        return reason
    if _chosen(subject) is None:
        return "AOTInductor does not support infinite or NaN constants or undefined results, and every sample has one"
    try:
        find_cxx()
    except ToolchainError:
        return "AOTInductor requires a C++ compiler, and none was found: `opwright doctor` shows how to install one"
    return ""


def packaged(steps: Steps, runtime: str) -> tuple[Path, Exported, list[Case]] | None:
    """The package of one group of samples, compiled now or earlier; its program, and the calls that it serves."""
    subject = steps.subject
    number = _chosen(subject)
    if number is None:  # only for the type checker: `why_not` has reported it
        raise AssertionError
    groups = exported.groups(subject)
    if len(groups) > 1:
        steps.recorder.note(f"compiled for {groups[number][0].name}, one of {len(groups)} combinations of constants")
    program = exported.exported(steps, groups[number], number)
    if program is None:
        return None
    path = subject.work / f"{subject.op.name}_package.pt2"
    if not path.is_file():
        step = f"{program.case.name}, compiled by AOTInductor"
        made = steps.do(step, repro.package(subject, program.case), lambda: _compile(program, path))
        if made is None:
            return None
    return path, program, exported.served(steps, program, runtime)


def _chosen(subject: Subject) -> int | None:
    """The number of the group of samples to package, which serves the most calls; None if none can be packaged."""
    groups = exported.groups(subject)
    served = {
        number: len(group) + len(graphs.other_sizes(subject, group[0]))
        for number, group in enumerate(groups)
        if not exported.has_infinities(group[0])
        if all(result is not None for result in subject.expected(group[0]).own)
    }
    return max(served, key=lambda number: served[number], default=None)


def _compile(program: Exported, path: Path) -> Path:
    part = path.with_suffix(".part.pt2")
    # Precompiled headers cost more time than they save for one model. The code that calls the kernels need not be fast.
    settings = {
        "aot_inductor.precompile_headers": False,
        "aot_inductor.compile_wrapper_opt_level": "O0",
        **inductor_settings(),
    }
    with torch.no_grad():
        torch._inductor.aoti_compile_and_package(program.program, package_path=str(part), inductor_configs=settings)
    return part.rename(path)
