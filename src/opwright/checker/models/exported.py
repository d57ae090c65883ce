"""Programs that `torch.export` creates from samples, stored in files and shared by the runtimes that use them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.export import Dim
from torch.utils import _pytree as pytree

from opwright.checker.models import graphs, repro, source
from opwright.spec import derive

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.checker.cases.case import Case
    from opwright.checker.steps import Steps
    from opwright.checker.subject import Subject

# Types of arguments that torch.export cannot save.
_UNSAVED = re.compile(r"List\[(ScalarType|Device|Layout|MemoryFormat|Optional\[(?!Tensor).*\])\]")


@dataclass(frozen=True)
class Exported:
    """A program, and the calls that it serves.

    Attributes:
        program: the exported program; everything but the tensors of `case` is constant in it.
        case: the call that was exported.
        others: other calls that differ from it only in the numbers and sizes of tensors.
    """

    program: torch.export.ExportedProgram
    case: Case
    others: tuple[Case, ...]


def why_not(subject: Subject) -> str:
    """Why the operator cannot be exported; empty if it can."""
    others = [result for result in subject.op.results if "Tensor" not in result]
    if others:
        return f"an exported program returns only tensors, but the operator returns {', '.join(others)}"
    for parameter in subject.op.parameters:
        given = any(case.arguments[parameter.name] is not None for case in subject.samples)
        if given and _UNSAVED.search(parameter.type):
            return f"torch.export cannot save an argument {parameter.schema_type} {parameter.name}"
    return ""


def groups(subject: Subject) -> list[list[Case]]:
    """The samples, grouped by the program that serves them."""
    return graphs.alike([case for case in subject.samples if not subject.expected(case).refusal])


def exported(steps: Steps, group: list[Case], number: int) -> Exported | None:
    """The program of group `number`, exported now or earlier; None if the export fails."""
    subject, case = steps.subject, group[0]
    path = program_path(subject, number)
    if path.is_file():
        program = torch.export.load(path)
    else:
        step = f"{case.name}, exported"
        made = steps.do(step, repro.export(subject, case), lambda: _export(subject, case, number, path))
        if made is None:
            return None
        program = made
    return Exported(program, case, (*group[1:], *graphs.other_sizes(subject, case)))


def program_path(subject: Subject, number: int) -> Path:
    """The file of the program of group `number`."""
    return subject.work / f"{subject.op.name}_exported_{number}.pt2"


def served(steps: Steps, exported: Exported, runtime: str) -> list[Case]:
    """The calls of `exported` whose sizes it accepts; a note lists the guard that excludes others."""
    cases = [exported.case]
    module = exported.program.module()
    for case in exported.others:
        step = f"{case.name}, in the exported program, for {runtime}"
        if not steps.recorder.begin(step, steps.subject.code(case), group=case.group):
            continue
        try:
            module(*derive.tensors(case.fresh()))
        except Exception as error:
            if guard := re.search(r"Guard failed: .*", str(error)):
                steps.recorder.note(f"the exported program accepts no other sizes: {guard[0]}")
            elif case.claimed:
                cases.append(case)  # it should work, so the runtime reports the error
            continue
        cases.append(case)
    return cases


def has_infinities(case: Case) -> bool:
    """Whether a number among the arguments, outside tensors, is infinite or NaN."""
    return any(isinstance(leaf, float) and not math.isfinite(leaf) for leaf in pytree.tree_leaves(case.arguments))


def _export(subject: Subject, case: Case, number: int, path: Path) -> torch.export.ExportedProgram:
    tensors = tuple(derive.tensors(case.fresh()))
    # Dimensions of size 0 or 1 would be specialized anyway.
    sizes = tuple({at: Dim.AUTO for at, size in enumerate(tensor.shape) if size > 1} for tensor in tensors)
    with torch.no_grad():
        program = torch.export.export(source.fixed(subject, case, number), tensors, dynamic_shapes=sizes)
    part = path.with_suffix(".part.pt2")
    torch.export.save(program, part)
    part.rename(path)
    return program
