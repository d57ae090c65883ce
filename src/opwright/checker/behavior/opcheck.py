"""Runs PyTorch's own test of registrations, `torch.library.opcheck`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from opwright.checker.behavior.lacks import runs_on_fake_tensors
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject


def check_with_opcheck(subject: Subject, recorder: Recorder) -> None:
    """Run the tests of `torch.library.opcheck` that apply to the operator."""
    if recorder.failed:
        return
    tests = ["test_schema"]
    if subject.has_gradient_kernel:
        tests.append("test_autograd_registration")
    if runs_on_fake_tensors(subject):
        tests.append("test_faketensor")
    for case in subject.samples[: 1 if subject.options.quick else 2]:
        call = subject.code(case)
        if not recorder.begin(f"{case.name}: torch.library.opcheck", call):
            continue
        arguments = case.fresh()
        for name in subject.differentiable(case):
            for tensor in derive.tensors(arguments[name]):
                tensor.requires_grad_(tensor.is_floating_point())
        positional, keywords = subject.op.spread(arguments)
        try:
            torch.library.opcheck(subject.overload, tuple(positional), keywords, test_utils=tests)
            recorder.ok()
        except Exception as error:
            recorder.fail(
                Failure(Kind.OPCHECK, case.name, call, first_line(error), "no error", detail=str(error)[:2000])
            )
