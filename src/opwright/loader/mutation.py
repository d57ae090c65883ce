"""Registers with autograd that an operator mutates arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.loader.kernels import overload_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opwright.spec import Op

_BELOW_AUTOGRAD = torch._C._after_autograd_keyset
_BELOW_IN_PLACE = torch._C._after_ADInplaceOrView_keyset


def register_mutation(op: Op, kept: torch.library.Library) -> None:
    """Register the mutated arguments of `op` with autograd.

    An argument that requires grad must not be mutated, because the mutation has no derivative. Each mutation
    increments the version of the tensor, so that PyTorch rejects a backward that saved the previous one.
    """
    overload = overload_of(op)

    def count_versions(keys: torch._C.DispatchKeySet, *args: Any, **kwargs: Any) -> Any:
        # Before the kernel runs, because it may mutate the tensor and then fail.
        torch.autograd.graph.increment_version([tensor for _, tensor in _mutated(op, args, kwargs)])
        return overload.redispatch(keys & _BELOW_IN_PLACE, *args, **kwargs)

    kept.impl(op.name, _refuse_gradients(op), "Autograd", with_keyset=True)
    kept.impl(op.name, count_versions, "ADInplaceOrView", with_keyset=True)


def register_refusal(op: Op, kept: torch.library.Library) -> None:
    """Register a kernel that rejects a mutation, for the bridge to call if an argument requires grad.

    Args:
        op: the operator.
        kept: a library of the namespace `RECORDINGS` (see `opwright.loader.gradient`).
    """
    kept.define(f"{op.library.namespace}__{op.schema}")
    kept.impl(f"{op.library.namespace}__{op.name}", _refuse_gradients(op), "Autograd", with_keyset=True)


def _refuse_gradients(op: Op) -> Callable[..., Any]:
    overload = overload_of(op)

    def kernel(keys: torch._C.DispatchKeySet, *args: Any, **kwargs: Any) -> Any:
        for name, tensor in _mutated(op, args, kwargs):
            if tensor.requires_grad and torch.is_grad_enabled():
                kind = "a leaf that requires grad" if tensor.is_leaf else "part of a graph that requires grad"
                msg = (
                    f"{op.qualified_name} mutates {name}, which is {kind}, and the mutation has no derivative: call it "
                    f"under torch.no_grad(), or pass {name}.detach()"
                )
                raise RuntimeError(msg)
        with torch._C._AutoDispatchBelowAutograd():
            return overload.redispatch(keys & _BELOW_AUTOGRAD, *args, **kwargs)

    return kernel


def _mutated(op: Op, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    for at, parameter in enumerate(op.parameters):
        if not parameter.mutated:
            continue
        # The dispatcher omits an argument that equals its default, which for tensors is None.
        value = args[at] if at < len(args) else kwargs.get(parameter.name)
        for tensor in [value] if isinstance(value, Tensor) else value or ():
            yield parameter.name, tensor
