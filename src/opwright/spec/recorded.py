"""Recorded calls of an operator: the file that `opwright.record` writes, and the samples in it.

The file is a dictionary in PyTorch's format that contains only data: numbers, strings, lists and tensors. It is loaded
with `weights_only`, so that no code in it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opwright.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import torch
    from torch import Tensor

FORMAT = 1
# The keys that describe a tensor whose data is not saved.
_DRAWN = {"dtype", "shape", "strides", "mean", "deviation", "low", "high", "seed"}


def encoded(value: Any) -> Any:
    """An argument other than a tensor, as data: `torch.float32` becomes {"torch": "float32"}.

    Raises:
        TypeError: its type cannot be saved.
    """
    import torch

    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return {"torch": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    # Subclasses, such as NumPy numbers and enumerations, are saved as plain numbers.
    plain: Any
    for plain in (bool, int, float, complex, str):
        if isinstance(value, plain):
            return plain(value)
    if value is not None:
        msg = f"an argument of type {type(value).__name__} cannot be recorded"
        raise TypeError(msg)
    return None


def copied(tensor: Tensor, dtype: torch.dtype, device: str) -> Tensor:
    """A copy with the same strides, and no more memory than they require."""
    import torch

    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype, device=device)
    if device != "meta":
        _once(made).copy_(_once(tensor))
    return made


def _once(tensor: Tensor) -> Tensor:
    """A view of the same memory without overlapping elements, which PyTorch does not write to."""
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dim] > 1:
            tensor = tensor.narrow(dim, 0, 1)
    end = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride <= end:
            span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
            return tensor.as_strided((span,), (1,))
        end += stride * (size - 1)
    return tensor


def drawn(tensor: Tensor, seed: int) -> dict[str, Any]:
    """The description of a floating-point tensor from which one with similar numbers can be drawn."""
    numbers = _once(tensor).double().flatten()
    numbers = numbers[numbers.isfinite()]
    if not numbers.numel():
        numbers = numbers.new_zeros(1)
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "strides": list(tensor.stride()),
        "mean": float(numbers.mean()),
        "deviation": float(numbers.std(correction=0)),
        "low": float(numbers.min()),
        "high": float(numbers.max()),
        "seed": seed,
    }


def recorded_calls(path: Path, dtype: torch.dtype, device: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The positional and keyword arguments of the calls in a file that `opwright.record` wrote.

    Args:
        path: the file.
        dtype: the dtype of tensors that were float32; others keep theirs.
        device: the device of the tensors.

    Raises:
        SpecError: the file cannot be read, or does not contain recorded calls.
    """
    content = _read(path)
    for call in content["calls"]:
        try:
            args, kwargs = (_restored(call[part], dtype, device) for part in ("args", "kwargs"))
        except SpecError:
            raise
        except Exception as error:
            msg = f"{path} describes a tensor that cannot be created ({type(error).__name__}): record the calls again"
            raise SpecError(msg) from error
        yield tuple(args), kwargs


def _read(path: Path) -> dict[str, Any]:
    import torch

    try:
        content = torch.load(path, weights_only=True)
    except OSError as error:
        msg = f"the recorded calls in {path} cannot be read: {error.strerror}; write them with opwright.record"
        raise SpecError(msg) from error
    except Exception as error:
        msg = f"{path} is not a file of recorded calls written by opwright.record: record them again"
        raise SpecError(msg) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT or not _is_list_of_calls(content.get("calls")):
        msg = f"{path} is not a file of recorded calls of format {FORMAT}: record them again"
        raise SpecError(msg)
    return content


def _is_list_of_calls(calls: Any) -> bool:
    return isinstance(calls, list) and all(
        isinstance(call, dict) and isinstance(call.get("args"), list) and isinstance(call.get("kwargs"), dict)
        for call in calls
    )


def _restored(value: Any, dtype: torch.dtype, device: str) -> Any:
    import torch

    if isinstance(value, list):
        return [_restored(one, dtype, device) for one in value]
    if isinstance(value, dict) and value.keys() == _DRAWN:
        return _moved(_draw(value), dtype, device)
    if isinstance(value, dict) and value.keys() == {"torch"}:
        return _constant(value["torch"])
    if isinstance(value, dict) and value.keys() == {"device"}:
        return torch.device(device)
    if isinstance(value, dict):
        return {name: _restored(one, dtype, device) for name, one in value.items()}
    return _moved(value, dtype, device) if isinstance(value, torch.Tensor) else value


def _moved(tensor: Tensor, dtype: torch.dtype, device: str) -> Tensor:
    """The tensor on a device with its strides; float32 becomes `dtype`."""
    import torch

    wanted = dtype if tensor.dtype == torch.float32 else tensor.dtype
    return copied(tensor, wanted, device)


def _draw(described: dict[str, Any]) -> Tensor:
    import torch

    generator = torch.Generator().manual_seed(described["seed"])
    dtype = _constant(described["dtype"])
    made = torch.empty_strided(described["shape"], described["strides"], dtype=dtype)
    into = _once(made)
    numbers = torch.randn(into.shape, generator=generator, dtype=torch.float64)
    into.copy_((numbers * described["deviation"] + described["mean"]).clamp(described["low"], described["high"]))
    return made


def _constant(name: str) -> Any:
    """PyTorch's dtype, layout or memory format with this name.

    Raises:
        SpecError: there is none.
    """
    import torch

    found = getattr(torch, str(name), None)
    if not isinstance(found, (torch.dtype, torch.layout, torch.memory_format)):
        msg = f"a file of recorded calls names {name!r}, which is not a dtype, layout or memory format: record it again"
        raise SpecError(msg)
    return found
