"""The expected results of a call, from the operator's reference and oracle."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.spec import derive
from opwright.spec.difference import Difference, Goal, differs, first_line
from opwright.spec.float64 import precisely
from opwright.spec.rounding import Nearby
from opwright.spec.time_limit import LIMIT_S, TimeLimitError, time_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opwright.spec.op import Op

# A reference is inaccurate if more than this fraction of its results has a larger relative error than this.
_INACCURATE = 0.1
# PyTorch's and NumPy's messages about an unsupported dtype or view.
_MISSING = re.compile(
    r"not implemented for|unsupported (scalartype|dtype)|low precision dtypes|numpy\(\) on tensor that has",
    re.IGNORECASE,
)
# Python's and PyTorch's messages about an integer that does not fit into 64 bits.
_OVERFLOWING = re.compile(
    r"int too (big|large) to convert|Overflow when unpacking long|converted to type int64_t without overflow"
)
# For larger tensors, the reference is also the oracle: float64 copies would take too much memory.
_LARGE_BYTES = 2**31


@dataclass(frozen=True)
class Expected:
    """The expected results of a call.

    Attributes:
        refusal: why the reference rejects the arguments, which the operator must also reject; empty if it accepts them.
        unknown: whether the reference fails only because PyTorch has no kernel for this dtype, so that the arguments
            may be valid.
        overflows: whether the reference fails only because one of its integers exceeds PyTorch's 64 bits, so that the
            arguments may be valid.
        own: the results of the reference in the dtypes of the arguments, for shapes and dtypes.
        precise: the results of the oracle in float64, for values.
        nearby: the results of the oracle for arguments changed in the last place; None if they take too much memory.
    """

    refusal: str = ""
    unknown: bool = False
    overflows: bool = False
    own: tuple[Any, ...] = ()
    precise: tuple[Any, ...] = ()
    nearby: Nearby | None = None

    @property
    def is_finite(self) -> bool:
        """Whether all results of the oracle are finite."""
        return are_finite(list(self.precise))

    @property
    def is_accurate(self) -> bool:
        """Whether the reference is finite where the oracle is, and inaccurate in only a few elements.

        It may overflow, to an infinity of the same sign, where the oracle's result exceeds its dtype.
        """
        for own, precise in zip(*map(derive.tensors, (list(self.own), list(self.precise))), strict=True):
            if not derive.has_gradient(own) or not own.numel():
                continue
            goal, mine = derive.widened(precise), derive.widened(own)
            lost = (mine - goal).abs() > _INACCURATE * goal.abs() + torch.finfo(own.dtype).tiny
            overflows = ~mine.isfinite() & goal.isfinite() & (mine != derive.widened(goal.to(own.dtype)))
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


def expected_results(op: Op, fresh: Callable[[], dict[str, Any]], limit_s: float = LIMIT_S) -> Expected:
    """The expected results of a call of `op`.

    Args:
        op: the operator.
        fresh: creates the arguments of the call, by name; called for each run, because the reference may write to them.
        limit_s: the limit of processor time for the reference, and later for each draw, in seconds.
    """

    def reference(given: dict[str, Any]) -> list[Any]:
        positional, keywords = op.spread(given)
        return call_results(op, op.reference(*positional, **keywords), given)

    def oracle(given: dict[str, Any]) -> list[Any]:
        return call_results(op, *derive.oracle(op, given))

    try:
        arguments = fresh()
        large = _are_large(arguments)
        with time_limit(limit_s):
            own = reference(arguments)
    except TimeLimitError:
        return Expected(refusal=f"the reference was stopped after {limit_s:g} s", unknown=True)
    except Exception as error:  # noqa: BLE001  the author's code: any exception rejects the arguments
        unknown = isinstance(error, torch.OutOfMemoryError) or _is_missing_kernel(error)
        refusal = first_line(error)
        overflows = _OVERFLOWING.search(refusal) is not None
        return Expected(refusal=refusal, unknown=unknown or _rounds(error, oracle, fresh), overflows=overflows)
    if large:
        return Expected(own=tuple(_kept(own)), precise=tuple(_kept(own)))
    # A caller may overwrite its own arguments before the draws are needed.
    given_now = fresh()

    # A hand-written oracle chooses its own precision.
    def run_oracle(make: Callable[[], dict[str, Any]]) -> list[Any]:
        return oracle(make()) if op.hand_written_oracle else precisely(given_now, make, oracle)

    def compute() -> list[Any]:
        with time_limit(limit_s):
            return run_oracle(fresh)

    precise, refusal = _precise(compute, own)
    if refusal and op.hand_written_oracle:
        return Expected(refusal=refusal, unknown=True)
    has_float64 = not refusal and all(map(_is_wide, derive.tensors(precise)))

    def evaluate(change: Callable[[Any], Any]) -> list[Any]:
        run = run_oracle if has_float64 else lambda make: reference(make())
        return pytree.tree_leaves(run(lambda: pytree.tree_map(change, given_now)))

    nearby = Nearby(evaluate, given_now, in_float64=has_float64, limit_s=limit_s)
    return Expected(own=tuple(_kept(own)), precise=tuple(_kept(precise)), nearby=nearby)


def expected_gradients(
    op: Op, fresh: Callable[[], dict[str, Any]], grads: Sequence[Tensor | None], names: Sequence[str]
) -> dict[str, Any]:
    """The expected gradients of the arguments `names`: a `Goal` for each, or a list of them for a list argument.

    Args:
        op: the operator.
        fresh: creates the arguments of the call, by name.
        grads: the incoming gradient of each result, or of each element of a list result; None for zero.
        names: the arguments, which need not be declared differentiable.
    """
    arguments = fresh()

    def compute(given: Any) -> list[Any]:
        of_call, incoming = given
        by_name = derive.reference_gradients(op, of_call, incoming, names)
        return pytree.tree_leaves([by_name[name] for name in names])

    # None, which means no gradient, is also a leaf.
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
        with time_limit(LIMIT_S):
            precise, has_float64 = precisely(given, lambda: pytree.tree_map(derive.widened, given), compute), True
    except (Exception, TimeLimitError):  # noqa: BLE001  without float64 support, it is compared in its own dtype
        precise, has_float64 = own, False

    def evaluate(change: Callable[[Any], Any]) -> list[Any]:
        changed = pytree.tree_map(change, given)
        if not has_float64:
            return compute(changed)
        # Labels are not changed, and keep their dtype.
        return precisely(given, lambda: pytree.tree_map(derive.widened, changed), compute)

    nearby = None if _are_large(given) else Nearby(evaluate, given, in_float64=has_float64)
    return [Goal(*pair, nearby, at) for at, pair in enumerate(zip(own, precise, strict=True))]


def call_results(op: Op, results: Any, arguments: Mapping[str, Any]) -> list[Any]:
    """The results of a call of `op` in one list, followed by the arguments that it mutates."""
    listed = list(results) if isinstance(results, tuple) else [results]
    returned = listed if op.results else []
    return [*returned, *(arguments[name] for name in op.mutates)]


def are_finite(values: Any) -> bool:
    """Whether all floating-point numbers in the tensors of `values` are finite."""
    numeric = (tensor for tensor in derive.tensors(values) if derive.has_gradient(tensor) and not tensor.is_meta)
    return all(bool(derive.widened(tensor).isfinite().all()) for tensor in numeric)


def _is_missing_kernel(error: Exception) -> bool:
    is_pytorchs = isinstance(error, (RuntimeError, TypeError))
    return isinstance(error, NotImplementedError) or (is_pytorchs and _MISSING.search(str(error)) is not None)


def _rounds(error: Exception, oracle: Callable[[dict[str, Any]], Any], fresh: Callable[[], dict[str, Any]]) -> bool:
    """Whether the reference may reject the arguments only due to rounding: a matrix that float64 can factorize."""
    if not isinstance(error, torch.linalg.LinAlgError):  # type: ignore[attr-defined]
        return False
    given = fresh()

    def evaluate(change: Callable[[Any], Any]) -> list[Any]:
        return pytree.tree_leaves(oracle(pytree.tree_map(change, given)))

    with contextlib.suppress(Exception):
        return bool(evaluate(lambda value: value))
    nearby = Nearby(evaluate, given)
    return bool(nearby.draws(nearby.eps))


def _precise(compute: Callable[[], list[Any]], own: list[Any]) -> tuple[list[Any], str]:
    """The results of the oracle; if they cannot be compared, those of the reference, and the reason."""
    try:
        precise = compute()
    except (Exception, TimeLimitError) as error:  # noqa: BLE001  the author's code
        return own, first_line(error)
    if _shapes(own) != _shapes(
        precise
    ):  # the shapes depend on the dtype, as those of x.view(torch.uint8), or on rounding
        return own, f"the oracle returns shapes {_shapes(precise)}, the reference {_shapes(own)}: they must be equal"
    return precise, ""


def _are_large(arguments: Any) -> bool:
    return any(tensor.nbytes > _LARGE_BYTES for tensor in derive.tensors(arguments))


def _is_wide(tensor: Tensor) -> bool:
    return not derive.has_gradient(tensor) or tensor.dtype in (torch.float64, torch.complex128)


def _shapes(results: list[Any]) -> list[tuple[int, ...]]:
    return [tuple(tensor.shape) for tensor in derive.tensors(results)]


def _kept(results: list[Any]) -> list[Any]:
    return [result.detach() if isinstance(result, Tensor) else result for result in results]
