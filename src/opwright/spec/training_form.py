"""The training form: the operator that is called in place of another one while autograd records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opwright.errors import SpecError
from opwright.spec.op import Op

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import torch

    from opwright.spec.samples import Make, Sample


def describe_training_form(op: Op, reference: Callable[..., Any]) -> Op:
    """Implement `Op.for_training`, which documents the arguments and errors."""
    if op.training_form is not None:
        msg = f"{op.qualified_name} already has a training form, {op.training_form.qualified_name}: keep one of the two"
        raise SpecError(msg)
    why = ""
    if op.mutates:
        why = f"mutates {', '.join(op.mutates)}"
    elif op.gradient is not None:
        why = f"itself has a backward, {op.gradient.op.name}"
    if why:
        msg = f"{op.qualified_name} {why}, so it cannot have a training form: remove one of the two"
        raise SpecError(msg)
    form = _TrainingForm(op, reference)
    _check_signature(op, form)
    op.library.add(form)
    op.training_form = form
    return form


class _TrainingForm(Op):
    """An operator with the parameters, samples and claims of another one."""

    def __init__(self, plain: Op, reference: Callable[..., Any]) -> None:
        super().__init__(
            plain.library,
            reference,
            differentiable=plain.differentiable,
            vmap=plain.claims_vmap,
            tolerance=plain.tolerance,
        )
        self.plain = plain

    def declare_differentiable(self, names: Sequence[str]) -> None:
        # The gradient of the training form is that of the operator that it replaces.
        self.plain.declare_differentiable(names)
        self._differentiable = None
        super().declare_differentiable(names)

    @property
    def has_samples(self) -> bool:
        return self.plain.has_samples

    @property
    def dtypes(self) -> tuple[torch.dtype, ...]:
        return self.plain.dtypes

    @property
    def has_domain(self) -> bool:
        return self.plain.has_domain

    def why_outside(self, bound: dict[str, Any]) -> str:
        return self.plain.why_outside(bound)

    def draw(self, make: Make) -> Iterator[Sample]:
        return self.plain.draw(make)


def _check_signature(plain: Op, form: Op) -> None:
    if form.parameters != plain.parameters:
        msg = (
            f"{form.qualified_name} must have the parameters of {plain.qualified_name}, which it replaces:\n"
            f"  {plain.schema}\n  {form.schema}"
        )
        raise SpecError(msg)
    shared = len(plain.results)
    if form.results[:shared] != plain.results or set(form.results[shared:]) != {"Tensor"}:
        msg = (
            f"{form.qualified_name} must return the results of {plain.qualified_name}, followed by the tensors that "
            f"its backward needs:\n  {plain.schema}\n  {form.schema}"
        )
        raise SpecError(msg)
