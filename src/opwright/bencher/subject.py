"""The operator to time at one size: its arguments, and how to call each of its implementations."""

from __future__ import annotations

import copy
import functools
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.bencher.rows import Prepared
from opwright.errors import SpecError
from opwright.spec import derive, expected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opwright.bencher.result import Direction
    from opwright.bencher.rows import Repeated
    from opwright.spec import Op
    from opwright.spec.difference import Goal
    from opwright.spec.expected import Expected
    from opwright.spec.sweep import Size

    Implementation = Callable[..., Any]  # the operator's arguments and results


@dataclass(frozen=True)
class Gradients:
    """The gradients to time, and the results that they are computed from.

    Attributes:
        arguments: the arguments of the call, by name; those whose gradient is timed have `requires_grad`.
        names: the names of the arguments whose gradient is timed.
        leaves: their tensors.
        grads: the incoming gradient of each result, or of each element of a list result; None if it has none.
        select: selects the results of a call that have a gradient.
    """

    arguments: dict[str, Any]
    names: tuple[str, ...]
    leaves: tuple[Tensor, ...]
    grads: tuple[Tensor | None, ...]
    select: Callable[[Any], Sequence[Tensor]]

    @property
    def exist(self) -> bool:
        """Whether there is any gradient to time."""
        return bool(self.leaves and self.incoming)

    @property
    def incoming(self) -> tuple[Tensor, ...]:
        """The incoming gradients that are not None."""
        return tuple(grad for grad in self.grads if grad is not None)

    def of(self, selected: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
        """The gradients of the leaves, from the results that `select` returned."""
        return torch.autograd.grad(selected, self.leaves, self.incoming, allow_unused=True)


class Subject:
    """One operator at one size, on one device.

    Attributes:
        op: the operator.
        label: the label of the size.
        device: `cpu` or `cuda`.
        arguments: the arguments of the call, by name, without `requires_grad`.

    Raises:
        SpecError: the call is outside the operator's domain.
    """

    def __init__(self, op: Op, size: Size, device: str, seed: int) -> None:
        self.op = op
        self.label = size.label
        self.device = device
        self.arguments = op.bind(size.call)
        self._seed = seed
        if op.has_domain and (outside := op.why_outside(self.fresh())):
            msg = f"{size.label!r} of {op.qualified_name} is outside its domain: {outside}. Time another call"
            raise SpecError(msg)

    def twin(self, arguments: dict[str, Any], grads: Sequence[Tensor | None] | None = None) -> Subject:
        """The same call with other `arguments` of the same layout.

        Args:
            arguments: the arguments, by name.
            grads: the incoming gradients; random ones by default.
        """
        twin = copy.copy(self)
        for name in ("expected", "gradients", "expected_gradients"):
            twin.__dict__.pop(name, None)
        twin.arguments = arguments
        if grads is None:
            grads = [None if grad is None else torch.randn_like(grad) for grad in self.gradients.grads]
        recorded, leaves = _with_leaves(arguments, self.gradients.names)
        twin.__dict__["gradients"] = Gradients(
            recorded, self.gradients.names, leaves, tuple(grads), self.gradients.select
        )
        return twin

    @functools.cached_property
    def expected(self) -> Expected:
        """The correct results of the call."""
        return expected.expected_results(self.op, self.fresh)

    def fresh(self) -> dict[str, Any]:
        """A copy of the arguments in new memory, with the same strides."""
        return copy.deepcopy(self.arguments)

    @property
    def tensors_in(self) -> list[Tensor]:
        """The tensors among the arguments."""
        return derive.tensors(self.arguments)

    @property
    def tensors_out(self) -> list[Tensor]:
        """The tensors that the call returns or mutates."""
        return derive.tensors(list(self.expected.own))

    @functools.cached_property
    def gradients(self) -> Gradients:
        """The gradients to time."""
        names = tuple(
            name
            for name in self.op.timed_gradients
            if any(map(derive.has_gradient, derive.tensors(self.arguments[name])))
        )
        arguments, leaves = _with_leaves(self.arguments, names)
        if not leaves:
            return Gradients(arguments, (), (), (), _selector(()))
        positional, keywords = self.op.spread(arguments)
        results = self.op.reference(*positional, **keywords)
        generator = torch.Generator().manual_seed(self._seed)
        grads = tuple(
            torch.empty_like(one).copy_(torch.randn(one.shape, generator=generator))
            if isinstance(one, Tensor) and one.requires_grad
            else None
            for one in pytree.tree_leaves(results)
        )
        return Gradients(arguments, names, leaves, grads, _selector(results))

    @functools.cached_property
    def expected_gradients(self) -> list[tuple[str, Goal]]:
        """For each leaf: the name of its argument, and its expected gradient."""
        given = self.gradients
        by_name = expected.expected_gradients(self.op, self.fresh, given.grads, given.names)
        found = []
        for name, goals in by_name.items():
            pairs = zip(*map(pytree.tree_leaves, (self.arguments[name], goals)), strict=True)
            found += [(name, goal) for leaf, goal in pairs if derive.has_gradient(leaf)]
        return found

    def call(self, implementation: Implementation, arguments: dict[str, Any]) -> list[Any]:
        """Call an implementation; returns its results in order, then the arguments that the operator mutates."""
        positional, keywords = self.op.spread(arguments)
        return expected.call_results(self.op, implementation(*positional, **keywords), arguments)

    def row(self, implementation: Implementation, direction: Direction) -> Repeated:
        """How to time an implementation in a direction."""
        if direction == "forward":
            if not self.op.mutates:
                return self._bound(implementation, self.arguments)
            # An argument that is mutated repeatedly would overflow, or become denormal.
            return Prepared(lambda: self._bound(implementation, self.fresh()), _call)
        call = self._bound(implementation, self.gradients.arguments)
        select, of = self.gradients.select, self.gradients.of
        if direction == "recorded":
            return call
        if direction == "backward":
            return Prepared(lambda: select(call()), of)
        return lambda: of(select(call()))

    def outputs(self, direction: Direction, call: Callable[[], object], result: Any) -> list[Any]:
        """The values that a timed call computed: gradients, or its results in order, then the arguments it mutates.

        Args:
            direction: the direction.
            call: the call, as the row makes it.
            result: what it returned.
        """
        if direction in {"backward", "both"}:
            return list(result)
        detached = pytree.tree_map_only(Tensor, Tensor.detach, result)
        if not self.op.mutates:
            return expected.call_results(self.op, detached, {})
        bound = cast("functools.partial[Any]", call).args[0]  # the state of a `Prepared` row
        arguments = dict(zip(self.arguments, bound.args, strict=False)) | bound.keywords
        return expected.call_results(self.op, detached, arguments)

    def _bound(self, implementation: Implementation, arguments: dict[str, Any]) -> functools.partial[Any]:
        positional, keywords = self.op.spread(arguments)
        return functools.partial(implementation, *positional, **keywords)


def _call(bound: Callable[[], object]) -> object:
    return bound()


def _with_leaves(arguments: dict[str, Any], names: Sequence[str]) -> tuple[dict[str, Any], tuple[Tensor, ...]]:
    """The arguments, with autograd leaves that share memory in place of those in `names`; and these leaves."""
    leaves: list[Tensor] = []

    def leaf(tensor: Tensor) -> Tensor:
        if not derive.has_gradient(tensor):
            return tensor
        leaves.append(tensor.detach().requires_grad_())
        return leaves[-1]

    recorded = dict(arguments)
    for name in names:
        recorded[name] = pytree.tree_map_only(Tensor, leaf, arguments[name])
    return recorded, tuple(leaves)


def _selector(results: Any) -> Callable[[Any], Sequence[Tensor]]:
    """A function that selects the results that require a gradient. It is short, because its time is measured too."""
    if isinstance(results, Tensor):
        return lambda result: (result,)
    flat = pytree.tree_leaves(results)
    live = [at for at, one in enumerate(flat) if isinstance(one, Tensor) and one.requires_grad]
    if not isinstance(results, tuple) or any(isinstance(one, (list, tuple)) for one in results):
        return lambda nested: [pytree.tree_leaves(nested)[at] for at in live]
    # With one index, itemgetter would not return a sequence.
    return operator.itemgetter(*live) if len(live) > 1 else lambda listed: [listed[at] for at in live]
