"""Writes calls as lines of Python that can be pasted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.checker.cases.case import LARGE_BYTES, is_far
from opwright.spec import derive

if TYPE_CHECKING:
    from opwright.checker.cases.case import Case
    from opwright.spec import Op

# Tensors with at most this many elements are written out.
_WRITTEN_OUT = 6
# The range of a large integer tensor is taken from its first elements.
_LOOKED_AT = 2**16


def call_code(op: Op, case: Case) -> str:
    """Return lines of Python that open the library and call `op` with the arguments of `case`.

    Tensors that are too large to write out are loaded from a file, whose name is the placeholder `inputs_of(case)`.
    """
    lines = opening_code(op)
    loaded = loaded_names(case)
    if loaded:
        lines.append(f"{', '.join(map(variable, loaded))}, = torch.load({inputs_of(case)!r})")
    names = [name for name, value in case.arguments.items() if derive.tensors(value)]
    written = {name: case.arguments[name] for name in names if name not in loaded}
    lines += [f"{variable(name)} = {value_code(value)}{_comment(value)}" for name, value in written.items()]
    keywords = {parameter.name for parameter in op.parameters if parameter.keyword_only}
    given = [
        (f"{name}=" if name in keywords else "") + (variable(name) if name in names else value_code(value))
        for name, value in case.arguments.items()
    ]
    lines.append(f"torch.ops.{op.library.namespace}.{op.name}({', '.join(given)})")
    return "\n".join(lines)


def variable(name: str) -> str:
    """The variable for an argument; `self` is renamed, because the lines may be part of a method."""
    return "self_" if name == "self" else name


def opening_code(op: Op) -> list[str]:
    """Return lines of Python that register the operators of a library, without opwright if it is external."""
    library = op.library
    if not library.is_external:
        return ["import opwright, torch", f"opwright.open({str(library.root)!r})"]
    modules = dict.fromkeys(["torch", *library.imports])
    return [f"import {', '.join(modules)}", *(f"torch.ops.load_library({str(path)!r})" for path in library.objects)]


def loaded_names(case: Case) -> list[str]:
    """The arguments that are loaded from a file, because they contain tensors that are not written out."""
    return [name for name, value in case.arguments.items() if not all(map(_is_written, derive.tensors(value)))]


def inputs_of(case: Case) -> str:
    """The placeholder for the file with the arguments of `case`."""
    return f"inputs of {case.name}"


def _is_written(tensor: Tensor) -> bool:
    """Whether to write out this tensor: it is small, or its memory is too large for a file."""
    if tensor.is_meta or is_far(tensor) or tensor.numel() == 0 or _is_large(tensor):
        return True
    is_dense = tensor.is_contiguous() and tensor.storage_offset() == 0 and not (tensor.is_conj() or tensor.is_neg())
    if not is_dense or tensor.numel() > _WRITTEN_OUT:
        return False
    return tensor.dtype != torch.bool or bool((tensor.view(torch.uint8) <= 1).all())


def _is_large(tensor: Tensor) -> bool:
    return tensor.nbytes > LARGE_BYTES and tensor.is_contiguous()


def value_code(value: Any) -> str:
    """Return an expression for `value`, whose tensors must be small enough to write out."""
    if isinstance(value, Tensor):
        return _tensor_code(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(value_code(one) for one in value)}]"
    if isinstance(value, complex):
        return f"complex({value_code(value.real)}, {value_code(value.imag)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return f"torch.device('{value}')" if isinstance(value, torch.device) else repr(value)


def _comment(value: Any) -> str:
    tensors = derive.tensors(value)
    if any(map(_is_large, tensors)):
        return "  # different values than in the check: the size alone shows the fault"
    return "  # untouched pages use no memory" if any(map(is_far, tensors)) else ""


def _tensor_code(tensor: Tensor) -> str:
    """Return an expression for a tensor that `_is_written`."""
    dtype = "" if tensor.dtype == torch.float32 else f", dtype={tensor.dtype}"
    device = "" if tensor.device.type == "cpu" else f", device={tensor.device.type!r}"
    shape, strides = tuple(map(int, tensor.shape)), tuple(map(int, tensor.stride()))
    if tensor.is_meta or not tensor.numel():
        return f"torch.empty_strided({shape}, {strides}{dtype}{device})"
    if is_far(tensor):
        size = tensor.untyped_storage().nbytes() // tensor.element_size()
        offset = int(tensor.storage_offset())
        return f"torch.empty({size}{dtype}).as_strided({shape}, {strides}, {offset})"
    if _is_large(tensor):
        return _random_code(tensor, shape, dtype, device)
    return f"torch.tensor({value_code(tensor.tolist())}{dtype}{device})"


def _random_code(tensor: Tensor, shape: tuple[int, ...], dtype: str, device: str) -> str:
    if tensor.is_floating_point() and tensor.element_size() == 1:  # PyTorch cannot draw 8-bit floats
        return f"torch.randn({shape}{device}).to({tensor.dtype})"
    if tensor.is_floating_point() or tensor.is_complex():
        return f"torch.randn({shape}{dtype}{device})"
    seen = tensor.flatten()[:_LOOKED_AT].to(
        torch.int64
    )  # aminmax() does not support unsigned integers of several bytes
    low, high = (int(bound) for bound in seen.aminmax())
    return f"torch.randint({low}, {high + 1}, {shape}{dtype}{device})"
