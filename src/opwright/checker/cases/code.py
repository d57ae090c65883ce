"""Writes calls as lines of Python, ready to paste."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.checker.cases.case import is_far
from opwright.spec import derive

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.spec import Op

# A tensor of at most this many elements is written out; of a larger one, this many of its special values.
_WRITTEN_OUT = 6
_LOOKED_AT = 2**24


def call_code(op: Op, case: Case) -> str:
    """Lines of Python that open the library and call `op` with the arguments of `case`."""
    lines = ["import opwright, torch", f"opwright.open({str(op.library.root)!r})"]
    names = []
    for name, value in case.arguments.items():
        if derive.tensors(value):
            lines.append(f"{name} = {value_code(value)}")
            names.append(name)
    keywords = {parameter.name for parameter in op.parameters if parameter.keyword_only}
    given = [
        (f"{name}=" if name in keywords else "") + (name if name in names else value_code(value))
        for name, value in case.arguments.items()
    ]
    lines.append(f"torch.ops.{op.library.namespace}.{op.name}({', '.join(given)})")
    return "\n".join(lines)


def value_code(value: Any) -> str:
    """An expression for `value`, or for a larger tensor an expression for one of the same dtype, sizes and strides."""
    if isinstance(value, Tensor):
        return _tensor_code(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(value_code(one) for one in value)}]"
    if isinstance(value, complex):
        return f"complex({value_code(value.real)}, {value_code(value.imag)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return f"torch.device('{value}')" if isinstance(value, torch.device) else repr(value)


def _tensor_code(tensor: Tensor) -> str:
    dtype = "" if tensor.dtype == torch.float32 else f", dtype={tensor.dtype}"
    device = "" if tensor.device.type == "cpu" else f", device={tensor.device.type!r}"
    shape, strides = tuple(map(int, tensor.shape)), tuple(map(int, tensor.stride()))
    offset = int(tensor.storage_offset())
    if tensor.device.type == "meta":
        return f"torch.empty_strided({shape}, {strides}{dtype}{device})"
    if is_far(tensor):
        size = tensor.untyped_storage().nbytes() // tensor.element_size()
        return f"torch.empty({size}{dtype}).as_strided({shape}, {strides}, {offset})  # untouched pages cost nothing"
    if strides == torch.empty(shape, device="meta").stride() and offset == 0:
        if 0 < tensor.numel() <= _WRITTEN_OUT:
            return f"torch.tensor({value_code(tensor.tolist())}{dtype}{device})"
        return _drawn(shape, tensor, dtype, device)
    size = offset + 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True) if n)
    return f"{_drawn((size,), tensor, dtype, device)}.as_strided({shape}, {strides}, {offset})"


def _drawn(memory: tuple[int, ...], tensor: Tensor, dtype: str, device: str) -> str:
    """An expression for memory of random numbers, in the range of those of `tensor`."""
    seen = tensor.detach().flatten()[:_LOOKED_AT]
    if tensor.is_floating_point() or tensor.is_complex():
        if tensor.is_floating_point() and tensor.element_size() == 1:  # PyTorch draws no 8-bit floats
            return f"torch.randn({memory}{device}){_unusual(tensor, seen, '', device)}.to({tensor.dtype})"
        return f"torch.randn({memory}{dtype}{device}){_unusual(tensor, seen, dtype, device)}"
    if tensor.dtype == torch.bool:
        return f"torch.randint(0, 2, {memory}{device}).bool()"
    known = seen.to(torch.int64)  # min() does not support unsigned integers of several bytes
    low, high = (int(known.min()), int(known.max())) if known.numel() else (0, 0)
    return f"torch.randint({low}, {min(high + 1, torch.iinfo(torch.int64).max)}, {memory}{dtype}{device})"


def _unusual(tensor: Tensor, seen: Tensor, dtype: str, device: str) -> str:
    """A call that writes the first special values of `tensor`, each to its place in memory."""
    wide = seen.to(torch.complex128 if seen.is_complex() else torch.float64)
    unusual = ~wide.isfinite()
    if not seen.is_complex():
        unusual |= (wide.abs() < torch.finfo(seen.dtype).tiny) & ((wide != 0) | wide.signbit())
    places = unusual.nonzero().flatten()[:_WRITTEN_OUT]
    if not len(places):
        return ""
    indices = zip(*(index.tolist() for index in torch.unravel_index(places, tensor.shape)), strict=True)
    steps = [sum(i * step for i, step in zip(index, tensor.stride(), strict=True)) for index in indices]
    at = [int(tensor.storage_offset() + step) for step in steps]
    return f".put_(torch.tensor({at}{device}), torch.tensor({value_code(wide[places].tolist())}{dtype}{device}))"
