"""Checks that a call works on a GPU that is not the current one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.behavior.gpu_code import other_gpu_code
from opwright.checker.behavior.same_call import is_right_alone
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import described, first_line

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

_OTHER = torch.device("cuda", 1)


def check_other_gpu(subject: Subject, recorder: Recorder) -> None:
    """Call the operator with arguments on the second GPU while the first one is current."""
    if subject.device != "cuda":
        return
    if torch.cuda.device_count() < 2:
        recorder.note("no call was made on a GPU that is not the current one: this machine has one GPU")
        return
    case = subject.samples[0]
    *lines, call = subject.code(case).splitlines()
    code = other_gpu_code(lines, call, case)
    step = f"{case.name}: on a GPU that is not the current one"
    if not recorder.begin(step, code, Kind.GPU) or not is_right_alone(subject, case):
        return
    current = torch.cuda.current_device()
    fault = _fault(subject, case)
    if torch.cuda.current_device() != current:
        fault = f"the current GPU is {torch.cuda.current_device()} afterwards", f"{current}, as before"
        torch.cuda.set_device(current)
    if fault is None:
        recorder.ok()
    else:
        recorder.fail(Failure(Kind.GPU, step, code, *fault))


def _fault(subject: Subject, case: Case) -> tuple[str, str] | None:
    """Return the wrong result and the expected one; None if the result is right."""
    there = pytree.tree_map_only(Tensor, lambda tensor: tensor.to(_OTHER), case.fresh())
    try:
        results = subject.call(there)
        torch.cuda.synchronize(_OTHER)
    except Exception as error:
        return first_line(error), "a result, as on the current GPU"
    elsewhere = [tensor for tensor in derive.tensors(results) if tensor.device != _OTHER]
    if elsewhere:
        return described(elsewhere[0]), f"a result on {_OTHER}, like the arguments"
    fault = subject.judge(case, pytree.tree_map_only(Tensor, lambda tensor: tensor.to("cuda:0"), results))
    return None if fault is None else (fault.got, fault.expected)
