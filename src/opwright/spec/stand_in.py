"""Runs an op.py without importing PyTorch if it only names PyTorch's types and functions, as most do.

`import torch` then returns a stand-in that contains only these names. Any other use of PyTorch while the op.py runs,
such as a call of `torch.cuda.is_available()`, cancels the attempt: PyTorch is imported, and the op.py runs again.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from opwright.spec.annotations import Types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

_DTYPES = frozenset(
    {
        *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128"),
        *("half", "float", "double", "short", "int", "long", "cfloat", "cdouble"),
    }
)
# Modules that contain only functions: every attribute can be called, and none is a constant.
_OF_FUNCTIONS = frozenset({"torch.nn.functional", "torch.linalg", "torch.special", "torch.fft"})
_PACKAGES = frozenset({"torch", "torch.nn"})
# Aliases of dtypes.
_SAME = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "cfloat": "complex64",
    "cdouble": "complex128",
}


class _NeedsPyTorch(BaseException):  # not an Exception, which an op.py may catch
    """An op.py used PyTorch beyond naming its types and functions."""

    # Recorded because an op.py may catch every exception, and continue as if PyTorch had raised it.
    was_raised = False

    def __init__(self) -> None:
        super().__init__()
        _NeedsPyTorch.was_raised = True


class _NamedType(type):
    """A stand-in for a class of PyTorch, for use in annotations."""

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> _NamedType:
        if bases:
            raise _NeedsPyTorch
        return super().__new__(cls, name, bases, members)

    def __call__(cls, *_args: Any, **_kwargs: Any) -> Any:
        raise _NeedsPyTorch

    def __getattr__(cls, name: str) -> Any:
        raise AttributeError(name) if name.startswith("__") else _NeedsPyTorch

    def __instancecheck__(cls, _instance: Any) -> bool:
        raise _NeedsPyTorch

    def __subclasscheck__(cls, _subclass: Any) -> bool:
        raise _NeedsPyTorch


class _Named:
    """A stand-in for one of PyTorch's dtypes or functions."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise _NeedsPyTorch

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name) if name.startswith("__") else _NeedsPyTorch

    def __bool__(self) -> bool:
        raise _NeedsPyTorch


class _StandIn(ModuleType):
    """A stand-in for a module of PyTorch.

    Args:
        name: such as `torch.nn.functional`.
        root: the folder of the op.py; other code gets PyTorch itself.
    """

    def __init__(self, name: str, root: Path) -> None:
        super().__init__(name)
        self.__dict__["_opwright_root"] = root

    def __getattr__(self, name: str) -> Any:
        is_special = name.startswith("__") and name.endswith("__")
        is_asked_by_op = _is_within(_file_that_asks(), self.__dict__["_opwright_root"])
        if is_special and (name == "__path__" or not is_asked_by_op):  # Python itself reads these of any module
            raise AttributeError(name)
        if not isinstance(sys.modules.get("torch"), _StandIn):  # the attempt is over
            return getattr(importlib.import_module(self.__name__), name)
        if is_special or not is_asked_by_op:
            raise _NeedsPyTorch
        found = _named(self.__name__, name)
        self.__dict__[name] = found
        return found


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the stand-ins for PyTorch's modules."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The module spec of a stand-in for one of PyTorch's modules."""
        if name.partition(".")[0] != "torch":
            return None
        if name not in _PACKAGES | _OF_FUNCTIONS:
            raise _NeedsPyTorch
        # Callers may read PyTorch's location from the spec.
        found = importlib.machinery.PathFinder.find_spec(name) if name == "torch" else None
        spec = importlib.machinery.ModuleSpec(name, self, is_package=name in _PACKAGES)
        spec.submodule_search_locations = found.submodule_search_locations if found else []
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """An empty stand-in."""
        return _StandIn(spec.name, self._root)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a stand-in has no code."""


def describe_without_pytorch(root: Path, describe: Callable[[], T]) -> T:
    """The result of `describe`, which runs the op.py in `root`: without PyTorch if possible, otherwise with it.

    Args:
        root: the folder of the op.py.
        describe: called once or twice.
    """
    if "torch" in sys.modules or importlib.machinery.PathFinder.find_spec("torch") is None:
        return describe()
    _NeedsPyTorch.was_raised = False
    # The stand-in may have caused an error. If the op.py caused it, the second call raises it again.
    with contextlib.suppress(_NeedsPyTorch, Exception), _standing_in(root.resolve()):
        described = describe()
        if not _NeedsPyTorch.was_raised:
            return described
    return describe()


def standing_in() -> Types | None:
    """The stand-ins currently used for PyTorch's types; None if PyTorch itself is used."""
    return _TYPES if isinstance(sys.modules.get("torch"), _StandIn) else None


def require_pytorch() -> NoReturn:
    """Cancel an attempt to describe operators without PyTorch."""
    raise _NeedsPyTorch


@contextlib.contextmanager
def _standing_in(root: Path) -> Iterator[None]:
    before = set(sys.modules)
    finder = _Finder(root)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        # The folder's modules refer to the stand-in, so the next import must run them again. Modules from elsewhere may
        # also refer to it without having used it: it then forwards PyTorch's own names to them.
        for name in set(sys.modules) - before:
            module = sys.modules[name]
            if isinstance(module, _StandIn) or _is_within(getattr(module, "__file__", None), root):
                del sys.modules[name]


def _named(module: str, name: str) -> Any:
    if f"{module}.{name}" in _PACKAGES | _OF_FUNCTIONS:
        return importlib.import_module(f"{module}.{name}")
    if module in _OF_FUNCTIONS:
        return _Named(f"{module.removeprefix('torch.')}.{name}")
    if module == "torch" and name in _CLASSES:
        return _CLASSES[name]
    if module == "torch" and name in _DTYPES:
        return _constants.setdefault(_SAME.get(name, name), _Named(_SAME.get(name, name)))
    raise _NeedsPyTorch


def _file_that_asks() -> Any:
    """The file of the code that reads a name from a stand-in, directly or through an import."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") in (__name__, "importlib._bootstrap"):
        frame = frame.f_back
    return frame and frame.f_globals.get("__file__")


def _is_within(file: Any, root: Path) -> bool:
    return isinstance(file, str) and root in Path(file).resolve().parents


_CLASSES = {name: _NamedType(name, (), {"__module__": "torch"}) for name in ("Tensor", "dtype", "device")}
_TYPES = Types(_CLASSES["Tensor"], _CLASSES["dtype"], _CLASSES["device"])
_constants: dict[str, _Named] = {}
