"""Derives kernels for any device, fake kernels, gradients and the oracle from a reference.

Everything here runs the reference and therefore imports torch.
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
    """The reference as a kernel for devices without one; it records no gradient and returns tensors in new memory."""
    return python_kernel(op, composite(op))


def python_kernel(op: Op, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as a kernel that records no gradient."""
    run = _laid_out(op, function)

    def run_below_autograd(*args: Any, **kwargs: Any) -> Any:
        # A kernel runs below autograd, which has already recorded the call.
        with torch._C._AutoDispatchBelowAutograd():
            return run(*args, **kwargs)

    return run_below_autograd


def fake(op: Op) -> Callable[..., Any]:
    """The fake kernel: the author's, or the reference on fake tensors."""
    make_empty = _laid_out(op, op.hand_written_fake or _without_discarded_sizes(composite(op)))

    def run_on_one_device(*args: Any, **kwargs: Any) -> Any:
        # PyTorch also calls this if only some arguments are on the meta device; the others' values would be ignored.
        devices = sorted({str(tensor.device) for tensor in tensors((args, kwargs)) if tensor.dim() > 0})
        if len(devices) > 1:
            msg = (
                f"{op.qualified_name} expected all tensors on one device, got {' and '.join(devices)}: "
                "move them to the same device with .to(device)"
            )
            raise RuntimeError(msg)
        return make_empty(*args, **kwargs)

    return run_on_one_device


def _without_discarded_sizes(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, a reference on fake tensors; PyTorch forgets sizes that depend on values and that no result has.

    PyTorch calls such a size an unbacked symbol, and requires that a result has each one that a fake kernel creates.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        mode = torch._guards.detect_fake_mode(tensors((args, kwargs)))
        shapes = mode.shape_env if mode else None
        if shapes is None:
            return function(*args, **kwargs)
        from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

        earlier = set(shapes.pending_fresh_unbacked_symbols)
        results = function(*args, **kwargs)
        kept = earlier.union(*map(free_unbacked_symbols, tensors(results)))
        pending = shapes.pending_fresh_unbacked_symbols
        pending[:] = [symbol for symbol in pending if symbol in kept]
        return results

    return run


def composite(op: Op) -> Callable[..., Any]:
    """The reference as a composition of PyTorch operators, which record gradients; it returns tensors in new memory."""

    def run_reference(*args: Any, **kwargs: Any) -> Any:
        return _without_aliases(op.reference(*args, **kwargs), (args, kwargs))

    return run_reference


def _laid_out(op: Op, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`; a backward operator's gradients get the strides of their arguments, as from a native kernel."""
    if not op.gradients_of or not op.has_own_reference:  # a derived reference already does this
        return function

    def lay_out(gradient: Any, argument: Any) -> Any:
        # A gradient that does not match its argument is left unchanged, for a check to report.
        if isinstance(argument, (list, tuple)):
            pairs = zip(gradient, argument, strict=True)
            return [lay_out(*pair) for pair in pairs] if len(gradient) == len(argument) else gradient
        are_tensors = isinstance(gradient, Tensor) and isinstance(argument, Tensor)
        if not are_tensors or gradient.dtype != argument.dtype or gradient.shape != argument.shape:
            return gradient
        return torch.empty_like(argument).copy_(gradient)

    def run(*args: Any, **kwargs: Any) -> Any:
        arguments = op.bind(Sample(args, kwargs))
        results = function(*args, **kwargs)
        if len(op.gradients_of) == 1:
            return lay_out(results, arguments.get(op.gradients_of[0]))
        pairs = zip(results, op.gradients_of, strict=True)
        return tuple(lay_out(gradient, arguments.get(name)) for gradient, name in pairs)

    return run


def gradients(
    op: Op, arguments: Mapping[str, Any], grads: Sequence[Tensor | None], wanted: Sequence[bool]
) -> list[Any]:
    """The vector-Jacobian products of the reference of `op`.

    Args:
        op: the operator.
        arguments: all arguments of the call, by name.
        grads: the incoming gradient of each result, or of each element of a list result; None for zero.
        wanted: for each of `op.differentiable`, whether to compute its gradient.

    Returns:
        For each of `op.differentiable`, its gradient (a list for a list argument), or None if it was not requested or
        does not exist.
    """
    names = [name for name, asked in zip(op.differentiable, wanted, strict=True) if asked]
    by_name = reference_gradients(op, arguments, grads, names)
    return [by_name.get(name) for name in op.differentiable]


def reference_gradients(
    op: Op, arguments: Mapping[str, Any], grads: Sequence[Tensor | None], names: Sequence[str]
) -> dict[str, Any]:
    """The vector-Jacobian products of the reference for the arguments `names`, even if not declared differentiable."""
    flat, shape = pytree.tree_flatten([arguments[name] for name in names])
    movable = [at for at, leaf in enumerate(flat) if has_gradient(leaf)]
    live: list[int] = []

    def forward(*leaves: Tensor) -> tuple[Tensor, ...]:
        moved = list(flat)
        for at, leaf in zip(movable, leaves, strict=True):
            moved[at] = leaf
        given = {**arguments, **dict(zip(names, pytree.tree_unflatten(moved, shape), strict=True))}
        positional, keywords = op.spread(given)
        results = pytree.tree_leaves(op.reference(*positional, **keywords))
        live[:] = [at for at, result in enumerate(results) if has_gradient(result)]
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
    return dict(zip(names, pytree.tree_unflatten(found, shape), strict=True))


def laid_out_gradients(
    op: Op, arguments: Mapping[str, Any], grads: Sequence[Tensor | None], wanted: Sequence[bool]
) -> list[Any]:
    """`gradients` as the results of a backward operator: each with the strides of its argument.

    A list in a schema cannot contain None, so an unwanted list is empty, and missing gradients are zeros.
    """

    def lay_out(argument: Tensor, gradient: Tensor) -> Tensor:
        return torch.empty_like(argument).copy_(gradient)

    return _as_results(op, arguments, gradients(op, arguments, grads, wanted), wanted, lay_out)


def empty_gradients(
    op: Op,
    arguments: Mapping[str, Any],
    grads: Sequence[Tensor | None],  # noqa: ARG001  the same arguments as laid_out_gradients
    wanted: Sequence[bool],
) -> list[Any]:
    """Uninitialized tensors like those of `laid_out_gradients`: the fake kernel of a backward operator."""
    given = [arguments[name] for name in op.differentiable]
    return _as_results(op, arguments, given, wanted, lambda argument, _: torch.empty_like(argument))


def _as_results(
    op: Op,
    arguments: Mapping[str, Any],
    found: Sequence[Any],
    wanted: Sequence[bool],
    make: Callable[[Tensor, Tensor], Tensor],
) -> list[Any]:
    lists = {parameter.name for parameter in op.parameters if "List[" in parameter.type}

    def element(argument: Tensor | None, gradient: Tensor | None) -> Tensor:
        if argument is None:
            return torch.empty(0)
        if gradient is None or not has_gradient(argument):
            return torch.zeros_like(argument)
        return make(argument, gradient)

    results: list[Any] = []
    for name, gradient, asked in zip(op.differentiable, found, wanted, strict=True):
        argument = arguments[name]
        if name in lists:
            pairs = zip(argument, gradient, strict=True) if asked else ()
            results.append([element(*pair) for pair in pairs])
        else:
            there = asked and gradient is not None and has_gradient(argument)
            results.append(make(argument, gradient) if there else None)
    return results


def has_gradient(value: Any) -> bool:
    """Whether `value` is a tensor with a dtype that autograd supports: floating-point or complex."""
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def widened(value: Any) -> Any:
    """A floating-point or complex tensor converted to float64 or complex128; any other value unchanged."""
    if not has_gradient(value):
        return value
    return value.to(torch.complex128 if value.is_complex() else torch.float64)


def oracle(op: Op, arguments: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The expected results of a call: the author's oracle, or the reference with floating-point tensors in float64.

    Returns:
        The results, and the arguments after the call; those that the operator mutates are also results.
    """
    precise = with_tensors(dict(arguments), lambda tensor: widened(tensor.detach()))
    positional, keywords = op.spread(precise)
    return (op.hand_written_oracle or op.reference)(*positional, **keywords), precise


def tensors(results: Any) -> list[Tensor]:
    """The tensors in the arguments or results of an operator, in order."""
    # References run in modes that call this for every PyTorch operator, where pytree would dominate the run time.
    if isinstance(results, Tensor):
        return [results]
    if not isinstance(results, (list, tuple, dict)):
        return []
    return [tensor for one in (results.values() if isinstance(results, dict) else results) for tensor in tensors(one)]


def with_tensors(values: Any, change: Callable[[Tensor], Any]) -> Any:
    """The arguments or results of an operator with each tensor changed; lists, tuples and dicts are new.

    As `tensors`, it is called too often for pytree.
    """
    if isinstance(values, Tensor):
        return change(values)
    if isinstance(values, dict):
        return {name: with_tensors(one, change) for name, one in values.items()}
    if type(values) in (list, tuple):
        return type(values)(with_tensors(one, change) for one in values)
    return pytree.tree_map_only(Tensor, change, values) if isinstance(values, (list, tuple)) else values


def backward_samples(forward: Op, make: Make) -> Iterator[Sample]:
    """Sample calls of the backward operator of `forward`: its own samples, with random incoming gradients."""
    gradient = forward.gradient
    if gradient is None:  # only called for a backward operator
        raise AssertionError
    generator = torch.Generator().manual_seed(0)
    for sample in forward.draw(make):
        arguments = forward.bind(sample)
        positional, keywords = forward.spread(arguments)
        results = pytree.tree_leaves(forward.reference(*positional, **keywords))
        known = {**dict(zip(gradient.result_names, results, strict=True)), **arguments}
        # A result without a gradient has no incoming gradient.
        grads = [
            torch.randn(result.shape, generator=generator).to(result) if has_gradient(result) else None
            for result in results
        ]
        if not any(grad is not None for grad in grads):
            continue  # a call with integers only
        wanted = [any(map(has_gradient, tensors(arguments[name]))) for name in forward.differentiable]
        flags = [wanted] if gradient.takes_wanted else []
        yield Sample((*grads, *(known[name] for name in gradient.saves), *flags))


def _without_aliases(results: Any, arguments: Any) -> Any:
    """`results`, with arguments and views of them copied, because operators return new memory."""
    taken = {_storage(tensor) for tensor in tensors(arguments)}

    def own(result: Tensor) -> Tensor:
        storage = _storage(result)
        # A tensor wrapped by torch.func has no accessible storage.
        if storage is None or storage in taken:
            return result.clone()
        taken.add(storage)
        return result

    return pytree.tree_map_only(Tensor, own, results)


def _storage(tensor: Tensor) -> int | None:
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return None
    return int(tensor.untyped_storage()._cdata)
