"""Autograd: compares every gradient with the reference's, and with finite differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.checker.gradients.choice import trials
from opwright.checker.gradients.code import gradient_code
from opwright.checker.gradients.compare import check_trial
from opwright.checker.gradients.description import is_backward_right, is_tracked
from opwright.checker.gradients.numeric import check_numerically, smallest_in_float64
from opwright.checker.gradients.on_gpu import check_gradients_on_gpu
from opwright.checker.gradients.reuse import check_reuse
from opwright.checker.gradients.second import check_second_derivatives
from opwright.checker.gradients.trial import Trial, with_leaves
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

NAME = "autograd"


def why_not(subject: Subject) -> str:
    """Why autograd does not apply: it requires floating-point or complex inputs and outputs, and a gradient."""
    if subject.op.mutates:
        return f"it mutates {', '.join(subject.op.mutates)}: no gradient is derived for it"
    if not any(map(subject.floating, subject.samples)):
        return "no sample has floating-point inputs and outputs"
    if not subject.op.differentiable:
        return "op.py declares that it has no gradient: differentiable=()"
    if not any(map(subject.declared_differentiable, subject.samples)):
        listed = ", ".join(subject.op.differentiable)
        return f"no sample has a floating-point tensor where op.py declares a gradient: {listed}"
    return ""


def run(subject: Subject, recorder: Recorder) -> None:
    """Compare the gradients of samples, of subsets and variations, and of reused graphs; then second derivatives."""
    cases = [case for case in subject.claimed if subject.differentiable(case)]
    undeclared = [name for name in subject.floating(cases[0]) if name not in subject.op.differentiable]
    if undeclared:
        recorder.note(f"no gradient for {', '.join(undeclared)}: op.py does not declare it as differentiable")
    if not (is_tracked(subject, recorder, cases[0]) and is_backward_right(subject, recorder, cases)):
        return
    check_gradients_on_gpu(subject, recorder, cases[0])
    if recorder.has(Kind.STREAM):
        return  # whether further gradients are right is a matter of chance
    for case in cases:
        check_trial(subject, recorder, Trial(case, "all gradients", tuple(subject.floating(case))))
        _check_without_recording(subject, recorder, case)
    if not recorder.failed:
        for trial in trials(subject, cases):
            check_trial(subject, recorder, trial)
    if recorder.failed:
        return
    check_reuse(subject, recorder, cases)
    in_float64 = smallest_in_float64(subject, recorder)
    twice = check_second_derivatives(subject, recorder, cases, numerically=in_float64 is None)
    if in_float64 is None:
        recorder.note(
            "it does not accept float64: first gradients are compared only with the reference's, not with finite "
            "differences"
        )
    elif not recorder.failed:
        check_numerically(subject, recorder, in_float64, twice=twice)


def _check_without_recording(subject: Subject, recorder: Recorder, case: Case) -> None:
    """Check that results under no_grad and inference_mode are the same, and require no gradient."""
    for mode in (torch.no_grad, torch.inference_mode):
        step = f"{case.name}: under {mode.__name__}"
        code = gradient_code(subject, case, subject.floating(case))
        if not recorder.begin(step, code):
            continue
        try:
            with mode():
                arguments, _ = with_leaves(case, subject.floating(case))
                results = subject.call(arguments)
        except Exception as error:
            recorder.fail(Failure(Kind.RAISES, step, code, first_line(error), "a result", detail=str(error)[:2000]))
            continue
        if any(tensor.requires_grad for tensor in derive.tensors(results)):
            # Only an argument itself, or a view of it, can require a gradient here.
            recorder.fail(Failure(Kind.ALIAS, step, code, "a result that requires grad", "one that does not"))
        elif (
            fault := subject.judge(case, [pytree.tree_map_only(Tensor, Tensor.detach, one) for one in results])
        ) is None:
            recorder.ok()
        else:
            recorder.fail(fault)
