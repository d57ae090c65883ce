"""Records the calls that operators receive, as samples."""

from __future__ import annotations

import contextlib
import fnmatch
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._ops import OpOverload, OpOverloadPacket
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.errors import OpwrightError, SpecError
from opwright.spec.difference import first_line
from opwright.spec.recorded import FORMAT, copied, drawn, encoded
from opwright.spec.schema import schema_of_overload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


# Floating-point tensors with more elements are described, and drawn again on replay; others are saved.
_SAVED_ELEMENTS = 2**12


@contextlib.contextmanager
def record(*ops: str, into: str | Path, most: int = 64) -> Iterator[None]:
    """Record the calls of operators, and write them as samples: `yield from make.recorded("recorded/nms.pt")`.

    Calls that differ only in the values of floating-point tensors are recorded once. Small tensors and integer tensors
    are saved; for larger ones, the shape, strides and distribution of values. Records only calls in the current
    thread, outside TorchScript and compiled graphs. The recorded calls are also written if the program raises an
    exception.

    Args:
        ops: the operators, such as `torchvision::nms`, `torchvision::*` or `aten::sum.dim_IntList`. A name without an
            overload means all overloads.
        into: the folder to which to write one file per operator: `nms.pt`. Existing files are replaced. Operators of
            several namespaces get one folder per namespace.
        most: the maximum number of calls to record for each operator.

    Raises:
        SpecError: no operator is named, or a name has no namespace.
        OpwrightError: a file cannot be written.

    Warns:
        UserWarning: an operator was not called, or calls could not be recorded, such as those with sparse tensors,
            random generators or fake tensors.

    Example:
        with opwright.record("torchvision::roi_align", into="ops/vision/recorded"):
            run_my_tests()
    """
    calls = _Calls(_checked(ops), most)
    folder = Path(into)
    with _written_into(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with _Dispatched(calls), _Called(calls):
            yield
    finally:
        with _written_into(folder):
            calls.write(folder)
        for message in calls.left_out():
            warnings.warn(message, stacklevel=3)  # the caller's `with`


def _checked(ops: Sequence[str]) -> tuple[str, ...]:
    wrong = [name for name in ops if "::" not in name]
    if wrong or not ops:
        named = f"{wrong[0]!r} has no namespace" if wrong else "no operator is named"
        msg = f"opwright.record: {named}; name operators as in opwright.record('torchvision::nms', into='recorded')"
        raise SpecError(msg)
    return tuple(ops)


@contextlib.contextmanager
def _written_into(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = f"recorded calls cannot be written to {folder}: {error.strerror}. Name a writable folder"
        raise OpwrightError(msg) from error


class _Calls:
    """The recorded calls by operator, one of each kind."""

    def __init__(self, patterns: tuple[str, ...], most: int) -> None:
        self._patterns = patterns
        self._most = most
        self._found: dict[str, dict[str, dict[str, Any]]] = {}
        self._seen: set[str] = set()
        self._left_out: dict[str, str] = {}
        self.is_paused = False

    def add(self, overload: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Record a call if its operator was requested. Errors in recording never reach the calling program."""
        schema = schema_of_overload(overload)
        name = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
        if self.is_paused or not (wanted := self._patterns_of(schema.name, name)):
            return
        self._seen |= wanted
        kept = self._found.setdefault(name, {})
        self.is_paused = True  # describing tensors also calls operators
        try:
            given, named = _bound(schema, args, kwargs)
            key = repr((_key(given), _key(named)))
            if key not in kept and len(kept) < self._most:
                kept[key] = _described(given, named, seed=len(kept))
        except Exception as error:  # noqa: BLE001  PyTorch raises various types for such tensors
            self._left_out.setdefault(name, first_line(error))
        finally:
            self.is_paused = False

    def _patterns_of(self, *names: str) -> set[str]:
        return {pattern for pattern in self._patterns for name in names if fnmatch.fnmatchcase(name, pattern)}

    def left_out(self) -> Iterator[str]:
        """A sentence for each operator that was not called, or whose calls were not all recorded."""
        for pattern in self._patterns:
            if pattern not in self._seen:
                yield f"opwright.record: {pattern} was not called in this thread"
        for name, why in self._left_out.items():
            yield f"opwright.record: calls of {name} were left out ({why})"

    def write(self, folder: Path) -> None:
        """Write one file per operator."""
        namespaces = {pattern.partition("::")[0] for pattern in self._patterns}
        is_one = len(namespaces) == 1 and namespaces.pop().isidentifier()
        for qualified_name, calls in self._found.items():
            if not calls:
                continue
            namespace, _, name = qualified_name.partition("::")
            content = {
                "format": FORMAT,
                "op": qualified_name,
                "pytorch": str(torch.__version__),
                "calls": list(calls.values()),
            }
            place = folder if is_one else folder / namespace
            place.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=place) as part:
                written = Path(part) / f"{name}.pt"
                torch.save(content, written)
                written.replace(place / written.name)


class _Dispatched(TorchDispatchMode):
    """Receives calls below autograd, including those that PyTorch's own functions make."""

    def __init__(self, calls: _Calls) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._calls = calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._calls.add(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


class _Called(TorchFunctionMode):
    """Receives calls from Python, including those of operators that PyTorch decomposes."""

    def __init__(self, calls: _Calls) -> None:
        super().__init__()
        self._calls = calls

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        overload = _only_overload(func)
        if overload is not None:
            self._calls.add(overload, args, kwargs or {})
        return func(*args, **(kwargs or {}))


def _only_overload(function: Any) -> Any:
    if isinstance(function, OpOverload):
        return function
    if isinstance(function, OpOverloadPacket) and function.overloads() == ["default"]:
        return function.default
    return None


def _bound(schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments in canonical form: without those equal to their default, by keyword only if required."""
    positional = [argument for argument in schema.arguments if not argument.kwarg_only]
    given: list[Any] = list(args)
    for argument in positional[len(given) :]:
        if argument.name not in kwargs and not argument.has_default_value():
            break
        given.append(kwargs.get(argument.name, argument.default_value))
    while given and _is_default(positional[len(given) - 1], given[-1]):
        given.pop()
    names = [argument for argument in schema.arguments if argument.kwarg_only and argument.name in kwargs]
    named = {argument.name: kwargs[argument.name] for argument in names}
    return given, {name: value for name, value in named.items() if not _is_default_named(names, name, value)}


def _is_default(argument: Any, value: Any) -> bool:
    if isinstance(value, Tensor) or not argument.has_default_value():
        return False
    return bool(type(value) is type(argument.default_value) and value == argument.default_value)


def _is_default_named(arguments: Sequence[Any], name: str, value: Any) -> bool:
    return any(argument.name == name and _is_default(argument, value) for argument in arguments)


def _key(value: Any) -> Any:
    """The key of a call, which contains everything except the values of tensors.

    Raises:
        TypeError: it cannot be recorded.
    """
    if isinstance(value, dict):
        return {name: _key(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_key(one) for one in value]
    if not isinstance(value, Tensor):
        return encoded(value)
    if why := _why_not(value):
        msg = f"{why} cannot be recorded"
        raise TypeError(msg)
    return (str(value.dtype), tuple(value.shape), tuple(value.stride()))


def _why_not(tensor: Tensor) -> str:
    """Why a tensor cannot be recorded: it has no elements in its own memory."""
    if torch.nn.parameter.is_lazy(tensor):
        return "an uninitialized parameter"
    if type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        return f"a tensor of the type {type(tensor).__name__}"
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return "a tensor inside a transformation of torch.func"
    if tensor.is_nested or tensor.layout != torch.strided:
        return "a nested tensor" if tensor.is_nested else f"a tensor of the layout {tensor.layout}"
    if tensor.is_quantized or tensor.is_meta:
        return "a quantized tensor" if tensor.is_quantized else "a tensor on the meta device"
    return ""


def _described(given: list[Any], named: dict[str, Any], seed: int) -> dict[str, Any]:
    seeds = iter(range(1000 * seed, 1000 * (seed + 1)))

    def described(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [described(one) for one in value]
        if not isinstance(value, Tensor):
            return encoded(value)
        plain = value.detach().as_subclass(Tensor)
        if plain.is_floating_point() and plain.numel() > _SAVED_ELEMENTS:
            return drawn(plain, next(seeds))
        return copied(plain, plain.dtype, "cpu")

    return {"args": described(given), "kwargs": {name: described(value) for name, value in named.items()}}
