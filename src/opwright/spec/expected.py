"""The expected results of a call, from the operator's reference and oracle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.spec import derive
from opwright.spec.difference import Difference, Goal, differs, first_line
from opwright.spec.rounding import Nearby

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opwright.spec.op import Op

# A reference is inaccurate if more than this fraction of its results has a larger relative error than this.
_INACCURATE = 0.1
# With larger tensors the reference is the oracle too: float64 copies would take too much memory.
_LARGE_BYTES = 2**31


@dataclass(frozen=True)
class Expected:
    """The expected results of a call.

    Attributes:
        refusal: why the reference rejects the arguments, which the operator must reject too; empty if it accepts them.
        unknown: whether the reference fails only because PyTorch has no kernel for this dtype, which says nothing about
            the arguments.
        own: the results of the reference in the dtypes of the arguments, for shapes and dtypes.
        precise: the results of the oracle in float64, for values.
        nearby: the results of the oracle for arguments changed in the last place; None if they take too much memory.
    """

    refusal: str = ""
    unknown: bool = False
    own: tuple[Any, ...] = ()
    precise: tuple[Any, ...] = ()
    nearby: Nearby | None = None

    @property
    def is_finite(self) -> bool:
        """Whether all results of the oracle are finite."""
        return are_finite(list(self.precise))

    @property
    def is_accurate(self) -> bool:
        """Whether the reference is finite where the oracle is, and inaccurate in only a few elements."""
        for own, precise in zip(*map(derive.tensors, (list(self.own), list(self.precise))), strict=True):
            if not own.is_floating_point() or not own.numel():
                continue
            goal, mine = precise.double(), own.double()
            lost = (mine - goal).abs() > _INACCURATE * goal.abs() + torch.finfo(own.dtype).tiny
            overflows = ~mine.isfinite() & goal.to(own.dtype).double().isfinite()
            if bool(overflows.any()) or float(lost.double().mean()) > _INACCURATE:
                return False
        return True

    def difference(
        self, results: Sequence[Any], tolerance: Mapping[torch.dtype, float] = MappingProxyType({})
    ) -> Difference | None:
        """How the `results` of a call differ from the expected ones; None if they do not."""
        if len(results) != len(self.own):
            return Difference("type", f"{len(results)} results", f"{len(self.own)} results")
        leaf = 0
        for at, (result, own, precise) in enumerate(zip(results, self.own, self.precise, strict=True)):
            found = None
            if isinstance(own, (list, tuple)) and len(result) != len(own):
                found = Difference("type", f"{len(result)} tensors", f"{len(own)} tensors")
            trios = zip(*map(pytree.tree_leaves, (result, own, precise)), strict=False)
            for given, its_own, its_precise in trios if found is None else ():
                found = found or differs(given, Goal(its_own, its_precise, self.nearby, leaf), tolerance)
                leaf += 1
            if found:
                which = f"result {at}: " if len(results) > 1 else ""
                return replace(found, got=which + found.got, expected=which + found.expected)
        return None


def expected_results(op: Op, fresh: Callable[[], dict[str, Any]]) -> Expected:
    """The expected results of a call of `op`.

    Args:
        op: the operator.
        fresh: makes the arguments of the call, by name, anew each time: the reference may write to them.
    """
    try:
        arguments = fresh()
        large = _are_large(arguments)
        positional, keywords = op.spread(arguments)
        own = call_results(op, op.reference(*positional, **keywords), arguments)
    except Exception as error:  # noqa: BLE001  the author's code: whatever it raises rejects the arguments
        return Expected(refusal=first_line(error), unknown=_is_missing_kernel(error))
    if large:
        return Expected(own=tuple(_kept(own)), precise=tuple(_kept(own)))
    try:
        precise = call_results(op, *derive.oracle(op, fresh()))
    except Exception as error:  # noqa: BLE001  a reference without float64 support is compared in its own dtype
        if op.hand_written_oracle is not None:
            return Expected(refusal=first_line(error))
        precise = own
    if _shapes(own) != _shapes(precise):
        if op.hand_written_oracle is not None:
            reason = f"the oracle returns shapes {_shapes(precise)}, the reference {_shapes(own)}: they must be equal"
            return Expected(refusal=reason)
        precise = own  # the shapes depend on the dtype, as those of x.view(torch.uint8) do
    # A reference that requests float32, as x.sum(dtype=torch.float32) does, computes in it whatever its inputs are.
    in_float64 = precise is not own and all(map(_is_wide, derive.tensors(precise)))

    given_now = fresh()  # a caller may rewrite its own arguments before the draws are needed

    def evaluate(change: Callable[[Any], Any]) -> list[Any]:
        given = pytree.tree_map(change, given_now)
        if in_float64:
            return pytree.tree_leaves(call_results(op, *derive.oracle(op, given)))
        positional, keywords = op.spread(given)
        return pytree.tree_leaves(call_results(op, op.reference(*positional, **keywords), given))

    nearby = Nearby(evaluate, given_now, in_float64=in_float64)
    return Expected(own=tuple(_kept(own)), precise=tuple(_kept(precise)), nearby=nearby)


def expected_gradients(
    op: Op, fresh: Callable[[], dict[str, Any]], grads: Sequence[Tensor | None], names: Sequence[str]
) -> dict[str, Any]:
    """The expected gradients of the arguments `names`: for each a `Goal`, or a list of them for a list argument.

    Args:
        op: the operator.
        fresh: makes the arguments of the call, by name, anew each time.
        grads: the incoming gradient of each result, or element of a result that is a list; None for zero.
        names: the arguments, which need not be declared differentiable.
    """
    arguments = fresh()

    def compute(given: Any) -> list[Any]:
        of_call, incoming = given
        by_name = derive.reference_gradients(op, of_call, incoming, names)
        return pytree.tree_leaves([by_name[name] for name in names])

    # None, which means no gradient, is a leaf too.
    shape = pytree.tree_structure([arguments[name] for name in names])
    goals = expected_values(compute, (arguments, list(grads)))
    return dict(zip(names, pytree.tree_unflatten(goals, shape), strict=True))


def expected_values(compute: Callable[[Any], list[Any]], given: Any) -> list[Goal]:
    """The expected results of a computation in plain PyTorch.

    Args:
        compute: computes a list of tensors, or None in place of one, from `given`, in any precision.
        given: its arguments, in any nesting of lists, tuples and dicts.
    """
    own = compute(given)
    try:
        precise, in_float64 = compute(pytree.tree_map(widened, given)), True
    except Exception:  # noqa: BLE001  a reference without float64 support is compared in its own dtype
        precise, in_float64 = own, False

    def evaluate(change: Callable[[Any], Any]) -> list[Any]:
        changed = pytree.tree_map(change, given)
        # Labels are not changed, so they still have their original dtype.
        return compute(pytree.tree_map(widened, changed) if in_float64 else changed)

    nearby = None if _are_large(given) else Nearby(evaluate, given, in_float64=in_float64)
    return [Goal(*pair, nearby, at) for at, pair in enumerate(zip(own, precise, strict=True))]


def call_results(op: Op, results: Any, arguments: Mapping[str, Any]) -> list[Any]:
    """The results of a call of `op` in one list, followed by the arguments that it mutates."""
    listed = list(results) if isinstance(results, tuple) else [results]
    returned = listed if op.results else []
    return [*returned, *(arguments[name] for name in op.mutates)]


def are_finite(values: Any) -> bool:
    """Whether all floating-point numbers in the tensors of `values` are finite."""
    floating = (tensor for tensor in derive.tensors(values) if tensor.is_floating_point() and not tensor.is_meta)
    return all(bool(tensor.double().isfinite().all()) for tensor in floating)


def _is_missing_kernel(error: Exception) -> bool:
    return isinstance(error, NotImplementedError) or "not implemented for" in str(error)


def _are_large(arguments: Any) -> bool:
    return any(tensor.nbytes > _LARGE_BYTES for tensor in derive.tensors(arguments))


def widened(value: Any) -> Any:
    """A tensor in float64 or complex128 if it is floating-point or complex; other values as they are."""
    if not derive.has_gradient(value):
        return value
    return value.to(torch.complex128 if value.is_complex() else torch.float64)


def _is_wide(tensor: Tensor) -> bool:
    return not derive.has_gradient(tensor) or tensor.dtype in (torch.float64, torch.complex128)


def _shapes(results: list[Any]) -> list[tuple[int, ...]]:
    return [tuple(tensor.shape) for tensor in derive.tensors(results)]


def _kept(results: list[Any]) -> list[Any]:
    return [result.detach() if isinstance(result, Tensor) else result for result in results]
