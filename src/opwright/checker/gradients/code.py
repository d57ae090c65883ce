"""Writes lines of Python that compute gradients, ready to paste."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.checker.cases.code import variable
from opwright.checker.cases.variation import tensors
from opwright.checker.gradients.trial import is_among
from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opwright.checker.cases.case import Case
    from opwright.checker.subject import Subject

_OUTPUTS = "outputs = [one for one in torch.utils._pytree.tree_leaves(result) if getattr(one, 'requires_grad', False)]"
_BACKWARD = "torch.autograd.backward(outputs, [torch.randn_like(one) for one in outputs])"


def gradient_code(subject: Subject, case: Case, names: Iterable[str]) -> str:
    """Lines that compute the gradients of the arguments `names`."""
    *lines, call = subject.code(case).splitlines()
    paths = [
        variable(path)
        for path, tensor in tensors(case.arguments)
        if derive.has_gradient(tensor) and is_among(path, names)
    ]
    return "\n".join([*lines, *(f"{path}.requires_grad_()" for path in paths), f"result = {call}", _OUTPUTS, _BACKWARD])
