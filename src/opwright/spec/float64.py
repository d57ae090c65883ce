"""Runs references in float64, even where they request another precision."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.spec import derive
from opwright.spec.schema import schema_of_overload

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable

# The function behind `tensor.dtype`.
_READ_DTYPE = vars(torch._C.TensorBase)["dtype"].__get__
_Given = TypeVar("_Given")
_Result = TypeVar("_Result")


def precisely(arguments: Any, make: Callable[[], _Given], compute: Callable[[_Given], _Result]) -> _Result:
    """The result of `compute`, which runs a reference in float64.

    A reference may reject float64 because it accepts only float32. If it raises, it is run again with tensors that
    report the dtype of the arguments.

    Args:
        arguments: the arguments of the call in their own dtypes, in any nesting of lists, tuples and dicts.
        make: creates the input of `compute`; called for each run, because the reference may write to it.
        compute: runs the reference with the arguments in float64.

    Raises:
        Exception: `compute` raises in both runs.
    """
    given = make()
    try:
        with in_float64(arguments):
            return compute(given)
    except Exception:
        declared = _declared_dtypes(arguments)
        if not declared:
            raise
    given = make()
    with in_float64(arguments), _ReportsDtype(declared):
        return compute(given)


def in_float64(arguments: Any) -> contextlib.AbstractContextManager[object]:
    """A context in which a reference computes in float64 instead of the precision of its arguments.

    References often request float32 regardless of their arguments: `x.float()`, `torch.arange(n).float()`, a global
    constant. With float64 arguments, these steps would lose the precision that an oracle requires. A conversion to a
    dtype that is coarser than all arguments rounds on purpose and is kept.

    Args:
        arguments: the arguments of the call in their own dtypes, in any nesting of lists, tuples and dicts.
    """
    found = [torch.finfo(tensor.dtype).eps for tensor in derive.tensors(arguments) if derive.has_gradient(tensor)]
    return _InFloat64(min(found, default=torch.finfo(torch.float32).eps))


def _declared_dtypes(arguments: Any) -> dict[torch.dtype, torch.dtype]:
    """The dtypes that float64 and complex128 replace; empty for arguments of several precisions or of float64."""
    found = {tensor.dtype for tensor in derive.tensors(arguments) if derive.has_gradient(tensor)}
    real = {dtype.to_real() for dtype in found}
    if len(real) != 1 or torch.float64 in real:
        return {}
    (dtype,) = real
    has_complex = any(one.is_complex for one in found) or dtype == torch.float32
    return {torch.float64: dtype, **({torch.complex128: dtype.to_complex()} if has_complex else {})}


class _ReportsDtype(TorchFunctionMode):
    """Makes tensors report another dtype.

    Args:
        reported: for each dtype, the dtype that its tensors report.
    """

    def __init__(self, reported: dict[torch.dtype, torch.dtype]) -> None:
        super().__init__()
        self._reported = reported

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function, or read an attribute of a tensor."""
        made = func(*args, **(kwargs or {}))
        return self._reported.get(made, made) if func == _READ_DTYPE else made


class _InFloat64(TorchDispatchMode):
    """Passes float64 tensors to operators, and requests float64 results.

    Args:
        coarsest: the relative precision of the coarsest dtype that is replaced by float64.
    """

    def __init__(self, coarsest: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._coarsest = coarsest

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call an operator in float64."""
        kwargs = dict(kwargs or {})
        if isinstance(kwargs.get("dtype"), torch.dtype):
            kwargs["dtype"] = self._replaced(kwargs["dtype"])
        if not (func.is_view or schema_of_overload(func).is_mutable) and self._have_coarse((args, kwargs)):
            args, kwargs = derive.with_tensors((args, kwargs), self._widened)
        made = func(*args, **kwargs)
        if _takes_dtype(func) and kwargs.get("dtype") is None and self._have_coarse(made):
            made = func(*args, **{**kwargs, "dtype": torch.float64})  # it used the default dtype
        return made

    def _have_coarse(self, values: Any) -> bool:
        return any(map(self._is_coarse, derive.tensors(values)))

    def _is_coarse(self, tensor: Tensor) -> bool:
        return self._replaced(tensor.dtype) != tensor.dtype

    def _widened(self, tensor: Tensor) -> Tensor:
        return tensor.to(self._replaced(tensor.dtype))

    def _replaced(self, dtype: torch.dtype) -> torch.dtype:
        if not (dtype.is_floating_point or dtype.is_complex) or torch.finfo(dtype).eps > self._coarsest:
            return dtype
        return torch.complex128 if dtype.is_complex else torch.float64


@cache
def _takes_dtype(func: Any) -> bool:
    return any(argument.name == "dtype" for argument in schema_of_overload(func).arguments)
