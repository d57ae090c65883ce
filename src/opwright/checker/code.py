"""Calls as lines of Python that somebody can paste."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.checker.case import is_far

if TYPE_CHECKING:
    from opwright.checker.case import Case
    from opwright.checker.subject import Subject

# A tensor of up to so many elements is written out.
_WRITTEN_OUT = 6


def call_code(subject: Subject, case: Case) -> str:
    """Lines of Python that open the library and make the call of `case`."""
    lines = ["import opwright, torch", f"opwright.open({str(subject.library.root)!r})"]
    names = []
    for name, value in case.arguments.items():
        if isinstance(value, Tensor) or (isinstance(value, list) and any(isinstance(one, Tensor) for one in value)):
            lines.append(f"{name} = {value_code(value)}")
            names.append(name)
    keywords = {parameter.name for parameter in subject.op.parameters if parameter.keyword_only}
    given = [
        (f"{name}=" if name in keywords else "") + (name if name in names else value_code(value))
        for name, value in case.arguments.items()
    ]
    lines.append(f"torch.ops.{subject.library.namespace}.{subject.op.name}({', '.join(given)})")
    return "\n".join(lines)


def value_code(value: Any) -> str:  # noqa: ANN401  whatever operators take
    """An expression that makes `value`, or for a larger tensor one of its dtype, sizes and strides."""
    if isinstance(value, Tensor):
        return _tensor_code(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(value_code(one) for one in value)}]"
    if isinstance(value, float) and value != value:  # noqa: PLR0124  NaN is the one number unlike itself
        return "float('nan')"
    return repr(value)


def _tensor_code(tensor: Tensor) -> str:
    dtype = "" if tensor.dtype == torch.float32 else f", dtype={tensor.dtype}"
    device = "" if tensor.device.type == "cpu" else f", device={tensor.device.type!r}"
    shape = tuple(int(size) for size in tensor.shape)
    if tensor.device.type == "meta":
        return f"torch.empty({shape}{dtype}{device})"
    plain = tensor.is_contiguous() and tensor.storage_offset() == 0
    if plain and tensor.numel() <= _WRITTEN_OUT:
        numbers = str(tensor.tolist()).replace("nan", "float('nan')").replace("inf", "float('inf')")
        return f"torch.tensor({numbers}{dtype}{device})"
    if is_far(tensor):
        size = tensor.untyped_storage().nbytes() // tensor.element_size()
        return f"torch.empty({size}{dtype}).as_strided({shape}, {tensor.stride()})  # untouched pages cost nothing"
    if plain:
        return _drawn(shape, tensor, dtype, device)
    size = int(tensor.storage_offset()) + 1 + sum((n - 1) * s for n, s in zip(shape, tensor.stride(), strict=True) if n)
    return f"{_drawn((size,), tensor, dtype, device)}.as_strided({shape}, {tensor.stride()}, {tensor.storage_offset()})"


def _drawn(shape: tuple[int, ...], tensor: Tensor, dtype: str, device: str) -> str:
    if tensor.is_floating_point() or tensor.is_complex():
        special = ".fill_(float('nan'))" if tensor.numel() and bool(tensor.isnan().any()) else ""
        return f"torch.randn({shape}{dtype}{device}){special}"
    if tensor.dtype == torch.bool:
        return f"torch.randint(0, 2, {shape}{device}).bool()"
    low, high = (int(tensor.min()), int(tensor.max()) + 1) if tensor.numel() else (0, 1)
    return f"torch.randint({low}, {high}, {shape}{dtype}{device})"
