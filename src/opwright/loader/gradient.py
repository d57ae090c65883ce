"""Registers gradients in Python: derived from a reference, or computed by a native backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import Function, forward_ad
from torch.utils import _pytree as pytree

from opwright.loader.kernels import overload_of
from opwright.spec import derive
from opwright.spec.samples import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opwright.spec import Op
    from opwright.spec.op import Backward


# The namespace in which the bridge (autograd/bridge.cpp) looks for references, each under "<namespace>__<name>".
COMPOSITES = "opwright_composite"
# The namespace in which it looks for the kernels below, under the same names.
RECORDINGS = "opwright_recorded"


def register_composite(op: Op, kept: torch.library.Library) -> None:
    """Register the reference of `op`, which has a native gradient, for the bridge to call in forward mode.

    Args:
        op: the operator.
        kept: a library of the namespace `COMPOSITES`.
    """
    kept.define(f"{op.library.namespace}__{op.schema}")
    kept.impl(f"{op.library.namespace}__{op.name}", _in_forward_mode(op), "CompositeImplicitAutograd")


def register_gradient(op: Op, kept: torch.library.Library) -> None:
    """Register the gradient of `op` with PyTorch, in `kept`.

    Does not use `torch.library.register_autograd`, which computes no gradient for keyword-only tensors and for lists
    that contain None, does not support `torch.func.grad`, and returns zero as the derivative of `torch.func.jvp`.
    """
    kept.impl(op.name, _AutogradKernel(op), "Autograd", with_keyset=True)


def register_recording(op: Op, kept: torch.library.Library) -> None:
    """Register the kernel of `register_gradient` for the bridge to call when a gradient is recorded.

    Args:
        op: the operator.
        kept: a library of the namespace `RECORDINGS`.
    """
    kept.define(f"{op.library.namespace}__{op.schema}")
    kept.impl(f"{op.library.namespace}__{op.name}", _AutogradKernel(op), "Autograd", with_keyset=True)


class _AutogradKernel:
    """The kernel of an operator for the Autograd key."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self._overload = overload_of(op)
        # The operator to call while autograd records: the operator itself, or its training form.
        self.recorded = op.recorded
        self._recorded_overload = overload_of(op.recorded)
        self._in_forward_mode = _in_forward_mode(op)
        self._places = {parameter.name: at for at, parameter in enumerate(op.parameters)}

    def __call__(self, keys: torch._C.DispatchKeySet, *args: Any, **kwargs: Any) -> Any:
        inputs = [_tensors(self._argument(name, args, kwargs)) for name in self.op.differentiable]
        flat = [tensor for tensors in inputs for tensor in tensors]
        if forward_ad._current_level >= 0 and any(map(_has_tangent, flat)):  # noqa: SLF001  it has no public name
            return self._in_forward_mode(*args, **kwargs)
        if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in flat)):
            return self.run(keys, args, kwargs)
        call = _Call(self, keys, args, kwargs)
        if _is_in_a_transformation():
            # The dispatcher calls this kernel once per torch.func level: record the call at this level.
            with enable_single_level_autograd_function():
                recorded: Any = super(Function, _Recorded).apply(call, *flat)  # type: ignore[no-untyped-call]
        else:
            recorded = _Recorded.apply(call, *flat)  # type: ignore[no-untyped-call]
        tensors = iter(recorded)
        leaves = [next(tensors) if leaf is _TENSOR else leaf for leaf in call.result_leaves]
        results = pytree.tree_unflatten(leaves, call.result_shape)
        if self.recorded is self.op:
            return results
        shared = len(self.op.results)
        return results[:shared] if shared > 1 else results[0]

    def run(
        self,
        keys: torch._C.DispatchKeySet,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        recording: bool = False,
    ) -> Any:
        """Call the kernel below autograd."""
        overload = self._recorded_overload if recording else self._overload
        with torch._C._AutoDispatchBelowAutograd():
            return overload.redispatch(keys & torch._C._after_autograd_keyset, *args, **kwargs)

    def _argument(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        at = self._places[name]
        # The dispatcher omits an argument that equals its default, which for tensors is None.
        return args[at] if at < len(args) else kwargs.get(name)


# A placeholder for a tensor in a list of leaves that is kept without its tensors.
_TENSOR = object()


class _Call:
    """The state of one call of `_Recorded`, whose own inputs can only be tensors."""

    def __init__(
        self, kernel: _AutogradKernel, keys: torch._C.DispatchKeySet, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self.kernel = kernel
        self.keys = keys
        self.args = args
        self.kwargs = kwargs
        self.result_leaves: list[Any] = []
        self.result_shape: Any = None


class _Recorded(Function):
    @staticmethod
    def forward(ctx: Any, call: _Call, *_inputs: Tensor) -> tuple[Tensor, ...]:
        op = call.kernel.recorded
        # `apply` has disabled both. Below, the outer transformations record the operations that they differentiate.
        with (
            torch.set_grad_enabled(_is_in_a_transformation()),
            forward_ad._set_fwd_grad_enabled(_is_in_a_transformation()),  # noqa: SLF001  it has no public name
        ):
            output = call.kernel.run(call.keys, call.args, call.kwargs, recording=True)
        results, call.result_shape = pytree.tree_flatten(output)
        call.result_leaves = _without_tensors(results)
        known = (op.bind(Sample(tuple(call.args), call.kwargs)), output if op.gradient else None)
        flat, ctx.shape = pytree.tree_flatten(known)
        ctx.op, ctx.leaves, ctx.result_leaves = op, _without_tensors(flat), call.result_leaves
        ctx.save_for_backward(*filter(_is_tensor, flat))
        ctx.set_materialize_grads(False)
        return tuple(filter(_is_tensor, results))

    @staticmethod
    def backward(ctx: Any, *incoming: Tensor | None) -> tuple[Tensor | None, ...]:
        op = ctx.op
        if not any(map(_is_tensor, incoming)):
            return (None,) * len(ctx.needs_input_grad)
        saved, given = iter(ctx.saved_tensors), iter(incoming)
        leaves = [next(saved) if leaf is _TENSOR else leaf for leaf in ctx.leaves]
        arguments, output = pytree.tree_unflatten(leaves, ctx.shape)
        grads = [next(given) if leaf is _TENSOR else None for leaf in ctx.result_leaves]
        asked = iter(ctx.needs_input_grad[1:])
        wanted = [any([next(asked) for _ in _tensors(arguments[name])]) for name in op.differentiable]  # noqa: C419  consumes all elements
        found: Sequence[Any]
        if op.gradient is None:
            found = derive.gradients(op, arguments, grads, wanted)
        else:
            found = _native(op.gradient, arguments, output, grads, wanted)
        return (None, *_for_each_tensor(op, arguments, found))


def _in_forward_mode(op: Op) -> Callable[..., Any]:
    """The kernel of `op` for tensors with tangents: its reference, whose operators PyTorch can differentiate.

    Without it PyTorch would treat the tangents as zero.
    """
    composite = derive.composite(op)

    def run(*args: Any, **kwargs: Any) -> Any:
        if not op.has_own_reference and _is_in_a_transformation():
            msg = (
                f"{op.qualified_name} has no forward-mode derivative (torch.func.jvp, jacfwd, hessian): its reference "
                "is itself a derivative. Use reverse mode for both (torch.func.jacrev of jacrev)"
            )
            raise NotImplementedError(msg)
        return composite(*args, **kwargs)

    return run


def _native(
    gradient: Backward,
    arguments: Mapping[str, Any],
    output: Any,
    grads: Sequence[Tensor | None],
    wanted: Sequence[bool],
) -> Sequence[Any]:
    known = {**dict(zip(gradient.result_names, pytree.tree_leaves(output), strict=True)), **arguments}
    call = overload_of(gradient.op)
    flags = [list(wanted)] if gradient.takes_wanted else []
    found = call(*grads, *(known[name] for name in gradient.saves), *flags)
    return found if len(gradient.forward.differentiable) > 1 else [found]


def _for_each_tensor(op: Op, arguments: Mapping[str, Any], found: Sequence[Any]) -> list[Tensor | None]:
    grads: list[Tensor | None] = []
    for name, gradient in zip(op.differentiable, found, strict=True):
        argument = arguments[name]
        if argument is None or isinstance(argument, Tensor):
            grads += _tensors(argument) and [gradient]
        else:
            given = gradient or [None] * len(argument)
            grads += [one for one, element in zip(given, argument, strict=True) if element is not None]
    return grads


def _tensors(argument: Any) -> list[Tensor]:
    if isinstance(argument, Tensor):
        return [argument]
    return [] if argument is None else [element for element in argument if element is not None]


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, Tensor)


def _without_tensors(leaves: Sequence[Any]) -> list[Any]:
    return [_TENSOR if isinstance(leaf, Tensor) else leaf for leaf in leaves]


def _is_in_a_transformation() -> bool:
    return torch._C._are_functorch_transforms_active()  # noqa: SLF001  it has no public name


def _has_tangent(tensor: Tensor) -> bool:
    return forward_ad.unpack_dual(tensor).tangent is not None
