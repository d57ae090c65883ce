"""The expected results of a call, from the operator's reference and oracle."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.spec import derive
from opwright.spec.difference import Difference, differs, first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opwright.spec.op import Op

# With larger tensors the reference is the oracle too: float64 copies would take too much memory.
_LARGE_BYTES = 2**31


@dataclass(frozen=True)
class Expected:
    """The expected results of a call.

    Attributes:
        refusal: why the reference rejects the arguments, which the operator must reject too; empty if it accepts them.
        own: the results of the reference in the dtypes of the arguments, for shapes and dtypes.
        precise: the results of the oracle in float64, for values.
    """

    refusal: str = ""
    own: tuple[Any, ...] = ()
    precise: tuple[Any, ...] = ()

    def difference(
        self, results: Sequence[Any], tolerance: Mapping[torch.dtype, float] = MappingProxyType({})
    ) -> Difference | None:
        """How the `results` of a call differ from the expected ones; None if they do not."""
        if len(results) != len(self.own):
            return Difference("type", f"{len(results)} results", f"{len(self.own)} results")
        for at, (result, own, precise) in enumerate(zip(results, self.own, self.precise, strict=True)):
            if isinstance(own, (list, tuple)):
                trios = zip(result, own, precise, strict=False)
                found = next((wrong for trio in trios if (wrong := differs(*trio, tolerance))), None)
                if len(result) != len(own):
                    found = Difference("type", f"{len(result)} tensors", f"{len(own)} tensors")
            else:
                found = differs(result, own, precise, tolerance)
            if found:
                which = f"result {at}: " if len(results) > 1 else ""
                return Difference(found.sort, which + found.got, which + found.expected)
        return None


def expected_results(op: Op, fresh: Callable[[], dict[str, Any]]) -> Expected:
    """The expected results of a call of `op`.

    Args:
        op: the operator.
        fresh: makes the arguments of the call, by name, anew each time: the reference may write to them.
    """
    try:
        arguments = fresh()
        large = any(tensor.nbytes > _LARGE_BYTES for tensor in derive.tensors(arguments))
        positional, keywords = op.spread(arguments)
        own = call_results(op, op.reference(*positional, **keywords), arguments)
    except Exception as error:  # noqa: BLE001  the author's code: whatever it raises rejects the arguments
        return Expected(refusal=first_line(error))
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
    return Expected(own=tuple(_kept(own)), precise=tuple(_kept(precise)))


def expected_gradients(
    op: Op, fresh: Callable[[], dict[str, Any]], grads: Sequence[Tensor | None], names: Sequence[str]
) -> dict[str, tuple[Any, Any]]:
    """The expected gradients of the arguments `names`: for each (in the dtypes of the arguments, in float64).

    Args:
        op: the operator.
        fresh: makes the arguments of the call, by name, anew each time.
        grads: the incoming gradient of each result, or element of a result that is a list; None for zero.
        names: the arguments, which need not be declared differentiable.
    """

    def of(convert: Callable[[Tensor], Tensor]) -> dict[str, Any]:
        arguments = pytree.tree_map_only(Tensor, convert, fresh())
        incoming = [None if grad is None else convert(grad) for grad in grads]
        return derive.reference_gradients(op, arguments, incoming, names)

    own = of(lambda tensor: tensor)
    try:
        precise = of(lambda tensor: tensor.double() if tensor.is_floating_point() else tensor)
    except Exception:  # noqa: BLE001  a reference without float64 support is compared in its own dtype
        precise = own
    return {name: (own[name], precise[name]) for name in names}


def call_results(op: Op, results: Any, arguments: Mapping[str, Any]) -> list[Any]:
    """The results of a call of `op` in one list, followed by the arguments that it mutates."""
    listed = list(results) if isinstance(results, tuple) else [results]
    returned = listed if op.results else []
    return [*returned, *(arguments[name] for name in op.mutates)]


def _shapes(results: list[Any]) -> list[tuple[int, ...]]:
    return [tuple(tensor.shape) for tensor in derive.tensors(results)]


def _kept(results: list[Any]) -> list[Any]:
    return [result.detach() if isinstance(result, Tensor) else result for result in results]
