"""The operator under the clock: its arguments at one size, and how each of its ways is called."""

from __future__ import annotations

import copy
import functools
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.bencher.timer import Prepared
from opwright.spec import derive, expected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opwright.bencher.result import Direction
    from opwright.bencher.timer import Row as TimedRow
    from opwright.spec import Op
    from opwright.spec.expected import Expected
    from opwright.spec.sweep import Size

    Way = Callable[..., Any]  # takes what the operator takes, and gives what it gives


@dataclass(frozen=True)
class Gradients:
    """Which gradients are timed, and of what.

    Attributes:
        arguments: the arguments of the call, by name, of which those whose gradient is timed require it.
        names: the names of these.
        leaves: their tensors.
        grads: the incoming gradient of each result, or element of a result that is a list; None for what has none.
        select: picks, of the results of a call, those that have a gradient.
    """

    arguments: dict[str, Any]
    names: tuple[str, ...]
    leaves: tuple[Tensor, ...]
    grads: tuple[Tensor | None, ...]
    select: Callable[[Any], Sequence[Tensor]]

    @property
    def are_there(self) -> bool:
        """Whether there are any."""
        return bool(self.leaves and self.incoming)

    @property
    def incoming(self) -> tuple[Tensor, ...]:
        """The incoming gradients that there are."""
        return tuple(grad for grad in self.grads if grad is not None)

    def of(self, selected: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
        """The gradients of the leaves, from what `select` picked."""
        return torch.autograd.grad(selected, self.leaves, self.incoming, allow_unused=True)


class Subject:
    """One operator at one size, on one device.

    Attributes:
        op: the operator as it is described.
        label: the size in words.
        device: `cpu` or `cuda`.
        arguments: the arguments of the call, by name; none requires a gradient.
    """

    def __init__(self, op: Op, size: Size, device: str, seed: int) -> None:
        self.op = op
        self.label = size.label
        self.device = device
        self.arguments = op.bind(size.call)
        self._seed = seed

    @functools.cached_property
    def expected(self) -> Expected:
        """What the call should give."""
        return expected.expected(self.op, self.fresh)

    def fresh(self) -> dict[str, Any]:
        """The arguments anew, in memory of their own, laid out as they were."""
        return copy.deepcopy(self.arguments)

    @property
    def tensors_in(self) -> list[Tensor]:
        """The tensors among the arguments."""
        return derive.tensors(self.arguments)

    @property
    def tensors_out(self) -> list[Tensor]:
        """The tensors that the call gives, or writes to."""
        return derive.tensors(list(self.expected.own))

    @functools.cached_property
    def gradients(self) -> Gradients:
        """The gradients that are timed."""
        names = tuple(
            name
            for name in self.op.timed_gradients
            if any(map(derive.has_gradient, derive.tensors(self.arguments[name])))
        )
        leaves: list[Tensor] = []

        def leaf(tensor: Tensor) -> Tensor:
            if not derive.has_gradient(tensor):
                return tensor
            leaves.append(tensor.detach().requires_grad_())
            return leaves[-1]

        arguments = dict(self.arguments)
        for name in names:
            arguments[name] = pytree.tree_map_only(Tensor, leaf, arguments[name])
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
        return Gradients(arguments, names, tuple(leaves), grads, _selector(results))

    def call(self, way: Way, arguments: dict[str, Any]) -> list[Any]:
        """Call the operator in one way. What it returns, in order, and then what it says that it writes to."""
        positional, keywords = self.op.spread(arguments)
        return expected.outcome(self.op, way(*positional, **keywords), arguments)

    def row(self, way: Way, direction: Direction) -> TimedRow:
        """How a way is timed in a direction."""
        if direction == "forward":
            if not self.op.mutates:
                return self._bound(way, self.arguments)

            def call_with(bound: Callable[[], Any]) -> Any:
                return bound()

            # What is written to would grow, or become denormal, from call to call.
            return Prepared(lambda: self._bound(way, self.fresh()), call_with)
        call = self._bound(way, self.gradients.arguments)
        select, of = self.gradients.select, self.gradients.of
        if direction == "recorded":
            return call
        if direction == "backward":
            return Prepared(lambda: select(call()), of)
        return lambda: of(select(call()))

    def _bound(self, way: Way, arguments: dict[str, Any]) -> Callable[[], Any]:
        positional, keywords = self.op.spread(arguments)
        return functools.partial(way, *positional, **keywords)


def _selector(results: Any) -> Callable[[Any], Sequence[Tensor]]:
    """Picks the results that require a gradient. It runs while the clock does: for most results it is one step."""
    if isinstance(results, Tensor):
        return lambda result: (result,)
    flat = pytree.tree_leaves(results)
    live = [at for at, one in enumerate(flat) if isinstance(one, Tensor) and one.requires_grad]
    if not isinstance(results, tuple) or any(isinstance(one, (list, tuple)) for one in results):
        return lambda nested: [pytree.tree_leaves(nested)[at] for at in live]
    # Of one place, itemgetter would give no sequence.
    return operator.itemgetter(*live) if len(live) > 1 else lambda listed: [listed[at] for at in live]
