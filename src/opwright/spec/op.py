"""An operator: its name, its reference in plain PyTorch, and the parts that its author adds."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from opwright.errors import SpecError
from opwright.spec.claims import ClaimedOp
from opwright.spec.differentiable import merged, ordered
from opwright.spec.schema import Parameter, parameters_of, require_same_parameters, results_of, schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import torch

    from opwright.spec.samples import Sample

# The devices for which a kernel can be written in Python.
KERNEL_DEVICES = ("cpu", "cuda")

F = TypeVar("F", bound="Callable[..., Any]")


class OpLibrary(Protocol):
    """The interface of `Library` that its operators use.

    Attributes:
        namespace: the namespace of its operators.
        root: the folder of its op.py.
        sources: its native sources.
        imports: modules that register its operators.
        objects: shared objects that register its operators.
        ops: its operators by name.
    """

    namespace: str
    root: Path
    sources: list[Path]
    imports: list[str]
    objects: list[Path]
    ops: dict[str, Op]

    @property
    def is_external(self) -> bool:
        """Whether the operators are registered elsewhere."""

    def add(self, op: Op) -> None:
        """Add an operator to the library."""

    def describe_backward(
        self,
        forward: Op,
        reference: Callable[..., Any] | None,
        saves: Sequence[str] | None,
        differentiable: Sequence[str] | None,
    ) -> Op | Callable[[Callable[..., Any]], Op]:
        """Implement `Op.backward`."""

    def describe_training_form(self, op: Op, reference: Callable[..., Any]) -> Op:
        """Implement `Op.for_training`."""


class Op(ClaimedOp):
    """An operator as its author describes it. `Library.op` creates it; calling it runs the reference.

    Attributes:
        library: the library that it belongs to.
        name: the operator's name, the part after `::`; with an overload, `sum.dim_IntList`.
        reference: the plain PyTorch function that specifies what the operator computes.
        mutates: the names of the tensors that the operator mutates.
        claims_vmap: whether the author claims that `torch.vmap` over the operator works.
        tolerance: by dtype, the absolute difference from the oracle to allow in addition to rounding.
        training_form: the operator that is called in its place while autograd records; None for the operator itself.
        has_own_reference: whether the author wrote the reference; otherwise it is derived from another operator's.
        gradients_of: for each result of a backward operator, the argument whose gradient it is, or "" if the operator
            does not have that argument; empty for other operators.
    """

    def __init__(
        self,
        library: OpLibrary,
        reference: Callable[..., Any],
        *,
        name: str | None = None,
        mutates: Sequence[str] = (),
        differentiable: Sequence[str] | None = None,
        vmap: bool = False,
        tolerance: Mapping[torch.dtype, float] | None = None,
    ) -> None:
        super().__init__()
        self.library = library
        self.name = name or reference.__name__
        self.reference = reference
        self.mutates = tuple(mutates)
        self.claims_vmap = vmap
        self.tolerance = dict(tolerance or {})
        self.training_form: Op | None = None
        self.own_gradient: Backward | None = None
        self.has_own_reference = True
        self._differentiable = None if differentiable is None else tuple(differentiable)
        self._fake: Callable[..., Any] | None = None
        self._oracle: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        self._kernels: dict[str, Callable[..., Any]] = {}
        self.gradients_of: tuple[str, ...] = ()
        functools.update_wrapper(self, reference)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the reference."""
        return self.reference(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Op {self.qualified_name}>"

    @property
    def qualified_name(self) -> str:
        """`namespace::name`, as graphs and the dispatcher write it."""
        return f"{self.library.namespace}::{self.name}"

    # -- derived from the reference -------------------------------------------------------------------

    @functools.cached_property
    def schema(self) -> str:
        """The schema without the namespace: `name(Tensor x, float a=1.0) -> Tensor`.

        Raises:
            SpecError: the reference's annotations do not define a schema.
        """
        return schema_of(self.reference, self.name, self.mutates)

    @functools.cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The arguments of the schema, in order."""
        return parameters_of(self.schema)

    @functools.cached_property
    def results(self) -> tuple[str, ...]:
        """The types of the results, as TorchScript annotates them."""
        return results_of(self.schema)

    @property
    def result_names(self) -> list[str]:
        """A backward's names for the results, in order: `result` for a single one, else `result_0` and so on."""
        return ["result"] if len(self.results) == 1 else [f"result_{at}" for at in range(len(self.results))]

    @functools.cached_property
    def differentiable(self) -> tuple[str, ...]:
        """The names of the arguments that have a gradient if they are floating-point; by default all tensors.

        Raises:
            SpecError: a name is not a tensor argument.
        """
        return self._in_order(self._differentiable)

    def declare_differentiable(self, names: Sequence[str]) -> None:
        """Declare which arguments have a gradient, as `Library.op` does.

        Raises:
            SpecError: they differ from an earlier declaration, or one is not a tensor argument.
        """
        declared = merged(self.qualified_name, self._differentiable, names)
        found = self._in_order(declared)
        self._differentiable = declared
        # The cached property returns the entry in the instance's __dict__.
        self.__dict__["differentiable"] = found

    def _in_order(self, declared: tuple[str, ...] | None) -> tuple[str, ...]:
        if self.mutates and declared:
            msg = (
                f"{self.qualified_name} mutates {', '.join(self.mutates)}, so it has no gradient: return a new "
                "tensor instead, or omit differentiable"
            )
            raise SpecError(msg)
        tensors = [parameter.name for parameter in self.parameters if parameter.holds_tensors]
        if declared is None:
            return () if self.mutates or "Tensor" not in " ".join(self.results) else tuple(tensors)
        return ordered(self.qualified_name, declared, tensors)

    @property
    def recorded(self) -> Op:
        """The operator that autograd records: this one, or its training form if that has a native backward."""
        form = self.training_form
        return self if form is None or form.own_gradient is None else form

    @property
    def gradient(self) -> Backward | None:
        """The native backward; None if the gradient is derived from the reference."""
        return self.recorded.own_gradient

    def bind(self, sample: Sample) -> dict[str, Any]:
        """All arguments of the call `sample` by name, in the order of the schema, with defaults.

        Raises:
            SpecError: the sample does not match the reference's parameters.
        """
        try:
            bound = inspect.signature(self.reference).bind(*sample.args, **sample.kwargs)
        except TypeError as error:
            msg = f"a sample of {self.qualified_name} does not match its parameters: {error}"
            raise SpecError(msg) from error
        bound.apply_defaults()
        return dict(bound.arguments)

    def spread(self, bound: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments `bound` as positional and keyword arguments of a call."""
        keywords = {parameter.name for parameter in self.parameters if parameter.keyword_only}
        return (
            [value for name, value in bound.items() if name not in keywords],
            {name: value for name, value in bound.items() if name in keywords},
        )

    # -- added by the author --------------------------------------------------------------------------

    def fake(self, function: F) -> F:
        """Replace the derived fake kernel: decorates a function that returns uninitialized results."""
        self._fake = function
        return function

    def kernel(self, *, device: str) -> Callable[[F], F]:
        """Implement the operator on a device in Python: with Triton, with numba, or with other PyTorch operators.

        Decorates a function with the operator's parameters that returns new tensors. The kernel is available only in
        processes with Python.

        Args:
            device: `cpu` or `cuda`.

        Raises:
            SpecError: the device is unknown or already has a kernel, or the function has different parameters.

        Example:
            @scale.kernel(device="cuda")
            def _(x, factor):
                result = torch.empty_like(x)
                scale_triton[(triton.cdiv(x.numel(), 1024),)](x, result, factor, x.numel(), BLOCK=1024)
                return result
        """
        if device not in KERNEL_DEVICES:
            msg = (
                f"device={device!r} of a kernel of {self.qualified_name} is unknown: use {' or '.join(KERNEL_DEVICES)}"
            )
            raise SpecError(msg)
        if device in self._kernels:
            msg = f"{self.qualified_name} already has a Python kernel for {device}: keep one of the two"
            raise SpecError(msg)

        def keep(function: F) -> F:
            require_same_parameters(f"the {device} kernel of {self.qualified_name}", function, self.reference)
            self._kernels[device] = function
            return function

        return keep

    def oracle(self, function: F) -> F:
        """Replace the oracle, which by default is the reference with float64 inputs."""
        self._oracle = function
        return function

    def vmap(self, function: F) -> F:
        """Claim `torch.vmap`, with a custom rule from `(info, in_dims, *args)` to `(result, out_dims)`."""
        self._vmap = function
        self.claims_vmap = True
        return function

    @overload
    def backward(
        self,
        reference: Callable[..., Any],
        /,
        *,
        saves: Sequence[str] | None = None,
        differentiable: Sequence[str] | None = None,
    ) -> Op: ...
    @overload
    def backward(self, /, *, differentiable: Sequence[str] | None = None) -> Op: ...
    @overload
    def backward(
        self, /, *, saves: Sequence[str], differentiable: Sequence[str] | None = None
    ) -> Callable[[Callable[..., Any]], Op]: ...
    def backward(
        self,
        reference: Callable[..., Any] | None = None,
        /,
        *,
        saves: Sequence[str] | None = None,
        differentiable: Sequence[str] | None = None,
    ) -> Op | Callable[[Callable[..., Any]], Op]:
        """Describe the native operator `<name>_backward`, which computes the gradient.

        Its parameters are `Tensor grad` for one result, or `Tensor? grad_0, Tensor? grad_1, ...` for several; each
        saved value under its own name; and, with two or more differentiable arguments, `bool[] wanted`, one flag for
        each. It returns the gradients of the differentiable arguments. An unwanted gradient is an undefined tensor or
        an empty list. A wanted list has one gradient per element, and any tensor for an element that is None.

        Args:
            reference: what it computes, in plain PyTorch; by default the derivative of this operator's reference.
            saves: the values of the forward call that it requires: names of arguments, and "result" (or "result_0",
                "result_1", ...) for the results; by default all arguments.
            differentiable: the names of the arguments whose gradients it computes, if `@library.op` does not declare
                them; by default all tensors.

        Returns:
            The backward operator, which is added to the library. With only `saves`, a decorator for its reference,
            which cannot be derived unless all arguments are saved.

        Raises:
            SpecError: a name is unknown, the operator has no gradient, the reference has a different signature, or
                `@library.op` declares other differentiable arguments.
        """
        return self.library.describe_backward(self, reference, saves, differentiable)

    def for_training(self, reference: Callable[..., Any], /) -> Op:
        """Describe the training form: the operator that is called in place of this one while autograd records.

        A backward often needs intermediate results of the forward. The training form returns them after the results of
        this operator, and its own `backward` saves them. Calls without gradients do not compute them.

        Args:
            reference: has the parameters of this operator, and returns its results followed by more tensors.

        Returns:
            The training form, which is added to the library. It is used once it has a native backward.

        Raises:
            SpecError: its parameters or results do not match, or this operator itself has a backward.

        Example:
            @norm.for_training
            def norm_with_scale(x: Tensor) -> tuple[Tensor, Tensor]:
                scale = x.square().mean(-1, keepdim=True).rsqrt()
                return x * scale, scale

            @norm_with_scale.backward(saves=("result_0", "result_1"))
            def norm_with_scale_backward(...): ...
        """
        return self.library.describe_training_form(self, reference)

    # -- used by check -----------------------------------------------------------------------

    @property
    def hand_written_fake(self) -> Callable[..., Any] | None:
        """The function that `fake` decorated."""
        return self._fake

    @property
    def python_kernels(self) -> Mapping[str, Callable[..., Any]]:
        """The functions that `kernel` decorated, by device."""
        return self._kernels

    @property
    def hand_written_oracle(self) -> Callable[..., Any] | None:
        """The function that `oracle` decorated."""
        return self._oracle

    @property
    def hand_written_vmap(self) -> Callable[..., Any] | None:
        """The function that `vmap` decorated."""
        return self._vmap


@dataclass(frozen=True)
class Backward:
    """The backward of an operator.

    Attributes:
        forward: the operator whose gradient is computed.
        op: the backward operator.
        saves: the values of the forward call that it receives: names of arguments, `result`, or `result_0` and so on.
    """

    forward: Op
    op: Op
    saves: tuple[str, ...]

    @property
    def takes_wanted(self) -> bool:
        """Whether the backward operator has the parameter `wanted`, a flag for each differentiable argument."""
        return len(self.forward.differentiable) > 1

    @property
    def result_names(self) -> list[str]:
        """The backward operator's names for the forward operator's results, in order."""
        return self.forward.result_names
