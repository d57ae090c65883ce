"""The operator that stands in for another one while gradients are recorded, and keeps what its backward needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opwright.errors import SpecError
from opwright.spec.op import Op

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch

    from opwright.spec.samples import Make, Sample


def describe_training_form(op: Op, reference: Callable[..., Any]) -> Op:
    """What `Op.for_training` does; arguments and errors are told there."""
    if op.training_form is not None:
        msg = f"{op.qualified_name} has a training form already, {op.training_form.qualified_name}: keep one of the two"
        raise SpecError(msg)
    why = ""
    if op.mutates:
        why = f"writes to {', '.join(op.mutates)}"
    elif op.gradient is not None:
        why = f"has a backward itself, {op.gradient.op.name}"
    if why:
        msg = f"{op.qualified_name} {why}, and so takes no training form: that is for what has a backward to keep for"
        raise SpecError(msg)
    form = _TrainingForm(op, reference)
    _check_signature(op, form)
    op.library.add(form)
    op.training_form = form
    return form


class _TrainingForm(Op):
    """An operator with the parameters of another one, whose samples and claims are its own."""

    def __init__(self, plain: Op, reference: Callable[..., Any]) -> None:
        super().__init__(
            plain.library,
            reference,
            differentiable=plain.differentiable,
            vmap=plain.claims_vmap,
            tolerance=plain.tolerance,
        )
        self.plain = plain

    @property
    def has_samples(self) -> bool:
        return self.plain.has_samples

    @property
    def dtypes(self) -> tuple[torch.dtype, ...]:
        return self.plain.dtypes

    def draw(self, make: Make) -> Iterator[Sample]:
        return self.plain.draw(make)


def _check_signature(plain: Op, form: Op) -> None:
    if form.parameters != plain.parameters:
        msg = (
            f"{form.qualified_name} must take what {plain.qualified_name} takes, in whose place it is called:\n"
            f"  {plain.schema}\n  {form.schema}"
        )
        raise SpecError(msg)
    shared = len(plain.results)
    if form.results[:shared] != plain.results or set(form.results[shared:]) != {"Tensor"}:
        msg = (
            f"{form.qualified_name} must return what {plain.qualified_name} returns, and behind it the tensors that "
            f"its backward needs:\n  {plain.schema}\n  {form.schema}"
        )
        raise SpecError(msg)
