"""Finds arguments that affect the reference's results but that autograd does not track."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.spec import derive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opwright.spec import Op

# Relative changes of the arguments: if a derivative exists, the response to the first is twice that to the second.
_LARGE, _SMALL = 2.0**-6, 2.0**-7
# How far the ratio of the two responses may be from 2. Curvature and rounding change it; steps change it more.
_RATIO_WITHIN = 0.5


def untracked(op: Op, fresh: Callable[[], dict[str, Any]], names: Sequence[str]) -> list[str]:
    """Return the arguments among `names` that affect the reference's results but are not in their autograd graph.

    PyTorch computes a gradient of zero for them, which is wrong: the reference calls an operator without a derivative,
    or leaves autograd (`.detach()`, NumPy, `torch.no_grad()`). A result that changes only in steps, such as that of a
    comparison, counts as independent: its derivative is zero.

    Args:
        op: the operator.
        fresh: returns new copies of the arguments of the call, by name.
        names: names of arguments; those without floating-point tensors are ignored.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns about an operator without a derivative
        generator = torch.Generator().manual_seed(0)
        grads = [
            torch.randn(result.shape, generator=generator, dtype=torch.float64).to(result)
            if isinstance(result, Tensor) and result.is_floating_point()
            else None
            for result in pytree.tree_leaves(_call(op, fresh()))
        ]
        derived = derive.reference_gradients(op, fresh(), grads, names)
        zero = [name for name in names if not any(bool(one.any()) for one in derive.tensors([derived[name]]))]
        return [name for name in zero if _is_lost(op, fresh, grads, name)]


def _is_lost(op: Op, fresh: Callable[[], dict[str, Any]], grads: Sequence[Tensor | None], name: str) -> bool:
    """Whether a gradient of zero is wrong because the graph does not contain the argument `name`."""
    arguments = fresh()
    leaves: list[Tensor] = []

    def leaf(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        leaves.append(tensor.detach().requires_grad_())
        # A clone, because a reference may write to its argument.
        return leaves[-1].clone()

    arguments[name] = pytree.tree_map_only(Tensor, leaf, arguments[name])
    with torch.enable_grad():
        results = pytree.tree_leaves(_call(op, arguments))
        pairs = [pair for pair in zip(results, grads, strict=True) if pair[1] is not None and pair[0].requires_grad]
        outputs, incoming = zip(*pairs, strict=True) if pairs else ((), ())
        found = torch.autograd.grad(outputs, leaves, incoming, allow_unused=True) if outputs and leaves else ()
    known = [gradient for gradient in found if gradient is not None]
    # torch.func does not see the graph of an operator composed of PyTorch's operators.
    return any(bool(gradient.any()) for gradient in known) if known else _depends(op, fresh, name)


def _depends(op: Op, fresh: Callable[[], dict[str, Any]], name: str) -> bool:
    def moved_by(change: float) -> list[Tensor]:
        generator = torch.Generator().manual_seed(0)

        def move(tensor: Tensor) -> Tensor:
            if not tensor.is_floating_point():
                return tensor
            # Different factors, because a result may depend only on the ratios of the elements.
            factors = 1 + change * torch.rand(tensor.shape, generator=generator, dtype=torch.float64)
            return (tensor.double() * factors.to(tensor.device)).to(tensor)

        arguments = fresh()
        arguments[name] = pytree.tree_map_only(Tensor, move, arguments[name])
        with torch.no_grad():
            results = derive.tensors(_call(op, arguments))
        return [result for result in results if result.is_floating_point()]

    trios = zip(moved_by(0.0), moved_by(_SMALL), moved_by(_LARGE), strict=True)
    return any(_responds_linearly(*trio) for trio in trios)


def _responds_linearly(still: Tensor, small: Tensor, large: Tensor) -> bool:
    if not still.shape == small.shape == large.shape:
        return False
    less, more = ((one.double() - still.double()).flatten() for one in (small, large))
    changed = (less != 0) & less.isfinite() & more.isfinite()
    ratios = more[changed] / less[changed]
    return bool(len(ratios)) and bool((ratios.median() - 2).abs() < _RATIO_WITHIN)


def _call(op: Op, arguments: dict[str, Any]) -> Any:
    positional, keywords = op.spread(arguments)
    return op.reference(*positional, **keywords)
