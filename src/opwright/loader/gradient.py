"""Gradients that are registered in Python: derived from a reference, or through a native backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opwright.spec import Op
    from opwright.spec.backward import Backward


def register_gradient(op: Op, kept: torch.library.Library) -> None:
    """Register the gradient of `op` with PyTorch, in `kept`."""
    positional = [parameter.name for parameter in op.parameters if not parameter.keyword_only]

    def keep(ctx: Any, arguments: Mapping[str, Any], output: Any) -> None:  # noqa: ANN401  torch's protocol
        flat, ctx.shape = pytree.tree_flatten((dict(arguments), output if op.gradient else None))
        ctx.is_tensor = [isinstance(leaf, Tensor) for leaf in flat]
        ctx.rest = [leaf for leaf in flat if not isinstance(leaf, Tensor)]
        ctx.is_tensor_result = [isinstance(leaf, Tensor) for leaf in pytree.tree_leaves(output)]
        ctx.save_for_backward(*(leaf for leaf in flat if isinstance(leaf, Tensor)))
        ctx.set_materialize_grads(False)

    def setup(ctx: Any, inputs: Sequence[Any], output: Any) -> None:  # noqa: ANN401  torch's protocol
        keep(ctx, dict(zip(positional, inputs, strict=True)), output)

    def setup_with_keywords(
        ctx: Any,  # noqa: ANN401  torch's protocol
        inputs: Sequence[Any],
        keyword_only_inputs: Mapping[str, Any],
        output: Any,  # noqa: ANN401  likewise
    ) -> None:
        keep(ctx, {**dict(zip(positional, inputs, strict=True)), **keyword_only_inputs}, output)

    def backward(ctx: Any, *incoming: Any) -> Any:  # noqa: ANN401  torch's protocol
        saved, rest = iter(ctx.saved_tensors), iter(ctx.rest)
        leaves = [next(saved) if is_tensor else next(rest) for is_tensor in ctx.is_tensor]
        arguments, output = pytree.tree_unflatten(leaves, ctx.shape)
        flat = pytree.tree_leaves(list(incoming))
        grads = [grad for grad, is_tensor in zip(flat, ctx.is_tensor_result, strict=True) if is_tensor]
        asked = dict(zip(positional, ctx.needs_input_grad, strict=True))
        wanted = [any(pytree.tree_leaves(asked.get(name, False))) for name in op.differentiable]
        found: Sequence[Any]
        if op.gradient is None:
            found = derive.gradients(op, arguments, grads, wanted)
        else:
            found = _native(op.gradient, arguments, output, grads, wanted)
        by_name = dict(zip(op.differentiable, found, strict=True))
        given = tuple(by_name.get(name) for name in positional)
        return given if len(given) > 1 else given[0]

    has_keywords = len(positional) < len(op.parameters)
    torch.library.register_autograd(
        op.qualified_name, backward, setup_context=setup_with_keywords if has_keywords else setup, lib=kept
    )


def _native(
    gradient: Backward,
    arguments: Mapping[str, Any],
    output: Any,  # noqa: ANN401  whatever the operator returns
    grads: Sequence[Tensor | None],
    wanted: Sequence[bool],
) -> Sequence[Any]:
    results = derive.tensors(output)
    names = ["result"] if len(results) == 1 else [f"result_{at}" for at in range(len(results))]
    known = {**dict(zip(names, results, strict=True)), **arguments}
    call = getattr(getattr(torch.ops, gradient.op.library.namespace), gradient.op.name)
    said = [list(wanted)] if gradient.wanted_is_said else []
    found = call(*grads, *(known[name] for name in gradient.saves), *said)
    return found if isinstance(found, (tuple, list)) and len(gradient.forward.differentiable) > 1 else [found]
