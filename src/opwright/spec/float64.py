"""Runs references in float64, even where they ask for another precision themselves."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.spec import derive
from opwright.spec.schema import schema_of_overload

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable

# What Python calls for `tensor.dtype`.
_READ_DTYPE = vars(torch._C.TensorBase)["dtype"].__get__
_Given = TypeVar("_Given")
_Result = TypeVar("_Result")


def precisely(arguments: Any, make: Callable[[], _Given], compute: Callable[[_Given], _Result]) -> _Result:
    """The result of `compute`, which runs a reference in float64.

    A reference may reject float64, because it accepts float32 alone. So if it raises, it is run again, and each of its
    tensors says that it has the dtype of the arguments.

    Args:
        arguments: the arguments of the call in their own dtypes, in any nesting of lists, tuples and dicts.
        make: makes what `compute` gets, anew each time: the reference may write to it.
        compute: runs the reference with the arguments in float64.

    Raises:
        Exception: what `compute` raises, both times.
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
    with in_float64(arguments), _SaysDtype(declared):
        return compute(given)


def in_float64(arguments: Any) -> contextlib.AbstractContextManager[object]:
    """A context in which a reference computes in float64 what it would compute in the precision of its arguments.

    A reference often asks for float32 whatever its arguments are: `x.float()`, `torch.arange(n).float()`, a constant in
    a global. With arguments in float64, these steps would lose what the oracle is for. A conversion to a dtype that is
    coarser than all arguments rounds on purpose, and is kept.

    Args:
        arguments: the arguments of the call in their own dtypes, in any nesting of lists, tuples and dicts.
    """
    found = [torch.finfo(tensor.dtype).eps for tensor in derive.tensors(arguments) if derive.has_gradient(tensor)]
    return _InFloat64(min(found, default=torch.finfo(torch.float32).eps))


def _declared_dtypes(arguments: Any) -> dict[torch.dtype, torch.dtype]:
    """The dtypes for which float64 and complex128 stand; empty if the arguments have several precisions, or these."""
    found = {tensor.dtype for tensor in derive.tensors(arguments) if derive.has_gradient(tensor)}
    real = {dtype.to_real() for dtype in found}
    if len(real) != 1 or torch.float64 in real:
        return {}
    (dtype,) = real
    has_complex = any(one.is_complex for one in found) or dtype == torch.float32
    return {torch.float64: dtype, **({torch.complex128: dtype.to_complex()} if has_complex else {})}


class _SaysDtype(TorchFunctionMode):
    """Lets tensors say that they have another dtype.

    Args:
        said: for each dtype, what tensors of it say.
    """

    def __init__(self, said: dict[torch.dtype, torch.dtype]) -> None:
        super().__init__()
        self._said = said

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function, or read an attribute of a tensor."""
        made = func(*args, **(kwargs or {}))
        return self._said.get(made, made) if func == _READ_DTYPE else made


class _InFloat64(TorchDispatchMode):
    """Gives operators tensors in float64, and asks them for float64.

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
            args, kwargs = pytree.tree_map_only(Tensor, self._widened, (args, kwargs))
        made = func(*args, **kwargs)
        if _takes_dtype(func) and kwargs.get("dtype") is None and self._have_coarse(made):
            made = func(*args, **{**kwargs, "dtype": torch.float64})  # it takes the default dtype
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
