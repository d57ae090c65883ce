"""Runs references in float64, even where they ask for another precision themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.spec import derive
from opwright.spec.schema import schema_of_overload

if TYPE_CHECKING:
    import contextlib


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
        if not (func.is_view or schema_of_overload(func).is_mutable):
            args, kwargs = pytree.tree_map_only(Tensor, self._widened, (args, kwargs))
        made = func(*args, **kwargs)
        if _takes_dtype(func) and kwargs.get("dtype") is None and any(map(self._is_coarse, derive.tensors(made))):
            made = func(*args, **{**kwargs, "dtype": torch.float64})  # it takes the default dtype
        return made

    def _is_coarse(self, tensor: Tensor) -> bool:
        return self._replaced(tensor.dtype) != tensor.dtype

    def _widened(self, tensor: Tensor) -> Tensor:
        return tensor.to(self._replaced(tensor.dtype))

    def _replaced(self, dtype: torch.dtype) -> torch.dtype:
        if not (dtype.is_floating_point or dtype.is_complex) or torch.finfo(dtype).eps > self._coarsest:
            return dtype
        return torch.complex128 if dtype.is_complex else torch.float64


def _takes_dtype(func: Any) -> bool:
    return any(argument.name == "dtype" for argument in schema_of_overload(func).arguments)
