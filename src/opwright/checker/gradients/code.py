"""Writes repros of the computation of gradients."""

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
    lines, call, _ = _parts(subject, case, names)
    return "\n".join([*lines, f"result = {call}", _OUTPUTS, _BACKWARD])


def gradient_call_code(subject: Subject, case: Case, names: Iterable[str]) -> tuple[list[str], str]:
    """Lines, followed by an expression that computes the gradients of the arguments `names` when it is evaluated."""
    lines, call, paths = _parts(subject, case, names)
    gradients = (
        "def gradients():",
        f"    result = {call}",
        f"    {_OUTPUTS}",
        "    grads = [torch.ones_like(one) for one in outputs]",
        f"    return torch.autograd.grad(outputs, [{', '.join(paths)}], grads, allow_unused=True)",
    )
    return [*lines, *gradients], "gradients()"


def _parts(subject: Subject, case: Case, names: Iterable[str]) -> tuple[list[str], str, list[str]]:
    """The lines before the call, the call, and the variables that require a gradient."""
    *lines, call = subject.code(case).splitlines()
    paths = [
        variable(path)
        for path, tensor in tensors(case.arguments)
        if derive.has_gradient(tensor) and is_among(path, names)
    ]
    return [*lines, *(f"{path}.requires_grad_()" for path in paths)], call, paths
