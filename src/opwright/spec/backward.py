"""The backward of an operator: the operator that computes its gradient."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from opwright.errors import SpecError
from opwright.spec.op import Backward, Op
from opwright.spec.schema import Parameter, schema_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opwright.spec.samples import Make


def describe_backward(
    forward: Op,
    reference: Callable[..., Any] | None,
    saves: Sequence[str] | None,
    differentiable: Sequence[str] | None,
) -> Op | Callable[[Callable[..., Any]], Op]:
    """Implement `Op.backward`, which documents the arguments and errors."""
    if isinstance(saves, str):
        msg = f"saves={saves!r} of {forward.qualified_name} is one string; write a tuple: saves=({saves!r},)"
        raise SpecError(msg)
    if forward.gradient is not None:
        first = forward.gradient.op.qualified_name
        msg = f"{forward.qualified_name} already has a backward, {first}: keep one of the two"
        raise SpecError(msg)
    if differentiable is not None:
        forward.declare_differentiable(differentiable)
    _check_forward(forward)
    saved = tuple(saves) if saves is not None else tuple(parameter.name for parameter in forward.parameters)
    expected = _expected_parameters(forward, saved)

    def attach(reference: Callable[..., Any] | None) -> Op:
        op = _BackwardOp(forward, reference, expected)
        forward.own_gradient = Backward(forward, op, saved)
        forward.library.add(op)
        return op

    if reference is not None:
        return attach(reference)
    return attach(None) if saves is None else attach


class _BackwardOp(Op):
    """A backward operator; without its own reference it uses the derivative of the forward operator's reference."""

    def __init__(self, forward: Op, reference: Callable[..., Any] | None, expected: list[Parameter]) -> None:
        self.forward = forward
        name = f"{forward.name}_backward"
        super().__init__(forward.library, reference or _derived(forward, name, expected, "laid_out_gradients"))
        self.name = name
        taken = {parameter.name for parameter in expected[len(forward.results) :]}
        self.gradients_of = tuple(given if given in taken else "" for given in forward.differentiable)
        if reference is None:
            self.has_own_reference = False
            # An entry in the instance's __dict__ takes precedence over the cached property of the class.
            self.__dict__["schema"] = f"{name}{_as_parameters(expected)} -> {_as_results(_expected_results(forward))}"
            self._fake = _derived(forward, name, expected, "empty_gradients")
        else:
            _check_signature(self, expected)

    @functools.cached_property
    def differentiable(self) -> tuple[str, ...]:
        """By default, all its tensors except arguments for which the forward operator has no gradient."""
        declared = self._in_order(self._differentiable)
        if self._differentiable is not None:
            return declared
        fixed = {parameter.name for parameter in self.forward.parameters} - set(self.forward.differentiable)
        return tuple(name for name in declared if name not in fixed)

    @property
    def has_samples(self) -> bool:
        return self._samples is not None or self.forward.has_samples

    def draw(self, make: Make) -> Iterator[Any]:
        if self._samples is not None:
            return super().draw(make)
        from opwright.spec.derive import backward_samples

        return backward_samples(self.forward, make)

    @property
    def has_domain(self) -> bool:
        return self._domain is not None or self.forward.has_domain

    def why_outside(self, bound: dict[str, Any]) -> str:
        if self._domain is not None or not self.forward.has_domain:
            return super().why_outside(bound)
        needed = [parameter.name for parameter in self.forward.parameters]
        missing = ", ".join(name for name in needed if name not in bound)
        if missing:
            domain = f"@{self.name}.domain"
            return f"the domain of {self.forward.name} requires {missing}, which is not saved: state it with {domain}"
        return self.forward.why_outside({name: bound[name] for name in needed})


def _check_forward(forward: Op) -> None:
    if forward.mutates:
        mutated = ", ".join(forward.mutates)
        msg = f"{forward.qualified_name} mutates {mutated}, so it has no gradient: return a new tensor instead"
        raise SpecError(msg)
    if not forward.differentiable:
        msg = f"{forward.qualified_name} has no differentiable argument, so it cannot have a backward: remove it"
        raise SpecError(msg)
    if any(result != "Tensor" for result in forward.results):
        results = ", ".join(forward.results)
        msg = (
            f"{forward.qualified_name} returns ({results}); a native backward requires that all results are tensors. "
            "Remove the backward: the gradient is then derived from the reference"
        )
        raise SpecError(msg)


def _expected_parameters(forward: Op, saves: tuple[str, ...]) -> list[Parameter]:
    several = len(forward.results) > 1
    results = forward.result_names
    arguments = {parameter.name: parameter.type for parameter in forward.parameters}
    known = {**dict.fromkeys(results, "Tensor"), **arguments}
    for name in saves:
        if name not in known:
            msg = f"the backward of {forward.qualified_name} saves {name!r}: expected names among {', '.join(known)}"
            raise SpecError(msg)
    grads = [Parameter(_free(f"grad_{at}", saves), "Optional[Tensor]") for at in range(len(results))]
    wanted = [Parameter(_free("wanted", saves), "List[bool]")] if len(forward.differentiable) > 1 else []
    return [
        *(grads if several else [Parameter(_free("grad", saves), "Tensor")]),
        *(Parameter(name, known[name]) for name in saves),
        *wanted,
    ]


def _free(name: str, saves: tuple[str, ...]) -> str:
    """`name`, prefixed with `grad_` until it is free: the backward of a backward saves an argument named `grad`."""
    while name in saves:
        name = f"grad_{name}"
    return name


def _expected_results(forward: Op) -> list[str]:
    types = {parameter.name: parameter.type for parameter in forward.parameters}
    return ["List[Tensor]" if "List[" in types[name] else "Tensor" for name in forward.differentiable]


def _check_signature(op: _BackwardOp, expected: list[Parameter]) -> None:
    got = [(parameter.name, parameter.type) for parameter in op.parameters]
    if got != [(parameter.name, parameter.type) for parameter in expected]:
        takes = op.schema.removeprefix(op.name)
        msg = f"the backward {op.qualified_name} must have parameters {_as_parameters(expected)}, but has {takes}"
        raise SpecError(msg)
    results = _expected_results(op.forward)
    if list(op.results) != results:
        returns = _as_results(op.results)
        msg = f"the backward {op.qualified_name} must return {_as_results(results)}, but returns {returns}"
        raise SpecError(msg)


def _as_parameters(parameters: Sequence[Parameter]) -> str:
    return f"({', '.join(f'{parameter.schema_type} {parameter.name}' for parameter in parameters)})"


def _as_results(types: Sequence[str]) -> str:
    names = [schema_type(one) for one in types]
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _derived(forward: Op, name: str, parameters: list[Parameter], by: str) -> Callable[..., Any]:
    """The function `by` of `spec.derive`, with the signature of the backward operator."""

    def derivative(*args: Any, **kwargs: Any) -> Any:
        from opwright.spec import derive

        given = signature.bind(*args, **kwargs).arguments
        grads = [given[parameter.name] for parameter in parameters[: len(forward.results)]]
        arguments = {parameter.name: given[parameter.name] for parameter in forward.parameters}
        wanted = given[parameters[-1].name] if len(forward.differentiable) > 1 else [True]
        found = getattr(derive, by)(forward, arguments, grads, wanted)
        return found[0] if len(found) == 1 else tuple(found)

    signature = inspect.Signature(
        [inspect.Parameter(parameter.name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for parameter in parameters]
    )
    derivative.__name__ = name
    derivative.__doc__ = f"The gradients of {forward.qualified_name}: the derivative of its reference."
    # inspect.signature reads this instead of the function itself.
    vars(derivative)["__signature__"] = signature
    return derivative
