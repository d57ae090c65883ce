"""What follows from a reference: kernels for any device, fake kernels, gradients, the oracle.

Everything here runs the reference, and so needs torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from opwright.spec.samples import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opwright.spec.op import Op
    from opwright.spec.samples import Make


def kernel(op: Op) -> Callable[..., Any]:
    """The reference as a kernel for devices that have none: it records no gradient, and owns what it returns."""

    def run_reference(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  the schema decides
        # A kernel lies below autograd, which has recorded the call already.
        with torch._C._AutoDispatchBelowAutograd():  # noqa: SLF001  what torch's own Python kernels use
            return _owned(op.reference(*args, **kwargs), (args, kwargs))

    return run_reference


def fake(op: Op) -> Callable[..., Any]:
    """The fake kernel: the author's, or the reference run on fake tensors."""
    if op.hand_written_fake is not None:
        return op.hand_written_fake

    def run_reference(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  the schema decides
        return _owned(op.reference(*args, **kwargs), (args, kwargs))

    return run_reference


def gradients(
    op: Op, arguments: Mapping[str, Any], grads: Sequence[Tensor | None], wanted: Sequence[bool]
) -> list[Any]:
    """The vector-Jacobian products of the reference of `op`.

    Args:
        op: the operator.
        arguments: every argument of the call by its name.
        grads: the incoming gradient of each tensor that the operator returns; None for zero.
        wanted: for each of `op.differentiable`, whether its gradient is wanted.

    Returns:
        For each of `op.differentiable` a gradient (a list of them for a list), or None where it is not wanted or there
        is none.
    """
    names = [name for name, asked in zip(op.differentiable, wanted, strict=True) if asked]
    flat, shape = pytree.tree_flatten([arguments[name] for name in names])
    movable = [at for at, leaf in enumerate(flat) if isinstance(leaf, Tensor) and leaf.is_floating_point()]
    live: list[int] = []

    def forward(*leaves: Tensor) -> tuple[Tensor, ...]:
        moved = list(flat)
        for at, leaf in zip(movable, leaves, strict=True):
            moved[at] = leaf
        given = {**arguments, **dict(zip(names, pytree.tree_unflatten(moved, shape), strict=True))}
        positional, keywords = op.spread(given)
        results = tensors(op.reference(*positional, **keywords))
        live[:] = [at for at, result in enumerate(results) if result.is_floating_point()]
        return tuple(results[at] for at in live)

    found: list[Any] = [None] * len(flat)
    if movable:
        outputs, pull, *_ = torch.func.vjp(forward, *(flat[at] for at in movable))
        if outputs:
            given = [grads[at] for at in live]
            cotangents = tuple(
                torch.zeros_like(output) if grad is None else grad for output, grad in zip(outputs, given, strict=True)
            )
            for at, gradient in zip(movable, pull(cotangents), strict=True):
                found[at] = gradient
    by_name = dict(zip(names, pytree.tree_unflatten(found, shape), strict=True))
    return [by_name.get(name) for name in op.differentiable]


def laid_out_gradients(
    op: Op, arguments: Mapping[str, Any], grads: Sequence[Tensor | None], wanted: Sequence[bool]
) -> list[Any]:
    """`gradients`, each laid out in memory as its argument is: what a backward operator gives."""
    found = gradients(op, arguments, grads, wanted)

    def lay_out(gradient: Any, argument: Any) -> Any:  # noqa: ANN401  a tensor, a list of them, or None
        if isinstance(gradient, (list, tuple)):
            return [lay_out(*pair) for pair in zip(gradient, argument, strict=True)]
        return None if gradient is None else torch.empty_like(argument).copy_(gradient)

    return [lay_out(gradient, arguments[name]) for gradient, name in zip(found, op.differentiable, strict=True)]


def empty_gradients(
    op: Op,
    arguments: Mapping[str, Any],
    grads: Sequence[Tensor | None],  # noqa: ARG001  the same arguments as the one above
    wanted: Sequence[bool],
) -> list[Any]:
    """What `laid_out_gradients` gives, without the numbers: the fake kernel of a backward operator."""
    empty = {
        name: pytree.tree_map_only(Tensor, torch.empty_like, arguments[name])
        for name, asked in zip(op.differentiable, wanted, strict=True)
        if asked
    }
    return [empty.get(name) for name in op.differentiable]


def oracle(op: Op, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401  the schema decides
    """What the operator should give: the author's oracle, or the reference with its floating tensors in float64."""
    precise = pytree.tree_map_only(Tensor, _in_float64, dict(arguments))
    positional, keywords = op.spread(precise)
    return (op.hand_written_oracle or op.reference)(*positional, **keywords)


def tensors(results: Any) -> list[Tensor]:  # noqa: ANN401  whatever an operator returns
    """The tensors in what an operator took or returned, in order."""
    return [leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, Tensor)]


def backward_samples(forward: Op, make: Make) -> Iterator[Sample]:
    """Sample calls of the backward operator of `forward`: its own samples, with random incoming gradients."""
    gradient = forward.gradient
    if gradient is None:  # only a backward operator asks
        raise AssertionError
    generator = torch.Generator().manual_seed(0)
    for sample in forward.draw(make):
        arguments = forward.bind(sample)
        positional, keywords = forward.spread(arguments)
        results = tensors(forward.reference(*positional, **keywords))
        names = ["result"] if len(results) == 1 else [f"result_{at}" for at in range(len(results))]
        known = {**dict(zip(names, results, strict=True)), **arguments}
        grads = [torch.randn(result.shape, generator=generator).to(result) for result in results]
        # An integer argument is never asked for its gradient.
        wanted = [any(leaf.is_floating_point() for leaf in tensors(arguments[name])) for name in forward.differentiable]
        said = [wanted] if gradient.wanted_is_said else []
        yield Sample((*grads, *(known[name] for name in gradient.saves), *said))


def _owned(results: Any, given: Any) -> Any:  # noqa: ANN401  whatever the reference takes and returns
    """`results`, where a view of an argument (or the argument itself) became a copy: operators return fresh memory."""
    taken = {tensor.untyped_storage()._cdata for tensor in tensors(given)}  # noqa: SLF001  fake tensors have no address

    def own(result: Tensor) -> Tensor:
        storage = result.untyped_storage()._cdata  # noqa: SLF001  as above
        if storage in taken:
            return result.clone()
        taken.add(storage)
        return result

    return pytree.tree_map_only(Tensor, own, results)


def _in_float64(tensor: Tensor) -> Tensor:
    return tensor.detach().double() if tensor.is_floating_point() else tensor.detach()
