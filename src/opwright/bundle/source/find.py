"""Finds the model to ship, and the declarations of its author in the same file."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from opwright.bundle.error_summary import error_summary
from opwright.bundle.source import saved
from opwright.errors import BundleError, OpwrightError
from opwright.spec.find import UncachedLoader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    from opwright.bundle.source.saved import SavedKind

_FORMS = "expected file.py:callable, package.module:callable, or a saved model (.pt, .pt2)"
_UNNAMED = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


@dataclass(frozen=True)
class Source:
    """A model, and the declarations of its author in the same file.

    Attributes:
        name: the model as the user named it.
        model: the callable: a module in eval mode, or an AOTInductor package.
        kind: `"module"`, or the kind of file that it was saved in.
        parameters: the names of the parameters of `forward`; empty if unknown.
        path: the file of a saved model.
        program: the exported program, if the model is one.
        samples: returns the sample inputs; None if there are none.
        shapes: the shape of each input, keyed by its name.
        images: how a picture becomes each input, keyed by its name.
    """

    name: str
    model: Any
    kind: SavedKind | str
    parameters: tuple[str, ...]
    path: Path | None = None
    program: torch.export.ExportedProgram | None = None
    samples: Callable[[], Any] | None = None
    shapes: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def find_source(model: str | Path | nn.Module, *, trust: bool = False, device: str = "cpu") -> Source:
    """Load the model that `model` names onto the device.

    Args:
        model: `file.py:callable`, `package.module:callable`, the path of a saved model, or a module. The callable
            has no parameters and returns a module.
        trust: whether code in a saved model may run.
        device: the device that it will run on: `cpu` or `cuda`.

    Raises:
        BundleError: the model does not exist, fails, or could run arbitrary code when it is read.
    """
    if isinstance(model, nn.Module):
        name = type(model).__name__
        kind = "torchscript" if isinstance(model, torch.jit.ScriptModule) else "module"
        return Source(name, _placed(name, model, device), kind, _parameters(model))
    text = str(model)
    if Path(text).suffix in saved.SUFFIXES or _exists(Path(text)):
        return _saved(Path(text), trust=trust, device=device)
    where, colon, attribute = text.rpartition(":")
    if not colon or not where or not attribute:
        msg = f"{text!r} does not name a model: {_FORMS}"
        raise BundleError(msg)
    module = _file(Path(where)) if where.endswith(".py") else _module(where)
    return _called(text, module, attribute, device)


def _exists(path: Path) -> bool:
    """Whether `path` exists and is not a folder, so that it names a file."""
    try:
        return path.exists() and not path.is_dir()
    except (OSError, ValueError):
        return False


def _saved(path: Path, *, trust: bool, device: str) -> Source:
    if not path.exists():
        msg = f"the model {path} does not exist: {_FORMS}"
        raise BundleError(msg)
    if path.suffix == ".py":
        msg = f"{path} is Python source: name the callable in it that creates the model, as in {path}:model"
        raise BundleError(msg)
    kind = saved.kind_of(path)
    loaded = saved.load_saved(path, kind, trust=trust, device=device)
    if kind == "torchscript":
        return Source(str(path), loaded, kind, _parameters(loaded), path)
    if kind == "exported":
        names = tuple(str(name) for name in loaded.graph_signature.user_inputs)
        return Source(str(path), _ran(str(path), loaded.module), kind, names, path, loaded)
    return Source(str(path), loaded, kind, (), path)


def _called(text: str, module: ModuleType, attribute: str, device: str) -> Source:
    make: Any = module
    for part in attribute.split("."):
        if not hasattr(make, part):
            offered = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
            msg = f"{text}: it has no {attribute!r}; its callables: {', '.join(offered) or 'none'}"
            raise BundleError(msg)
        make = getattr(make, part)
    if isinstance(make, nn.Module):
        model: Any = make
    else:
        if not callable(make):
            msg = f"{text} is a {type(make).__name__}: expected a callable without parameters that returns a module"
            raise BundleError(msg)
        model = _ran(text, make)
    if not isinstance(model, nn.Module):
        msg = f"{text} returns a {type(model).__name__}: expected a torch.nn.Module"
        raise BundleError(msg)
    kind = "torchscript" if isinstance(model, torch.jit.ScriptModule) else "module"
    return Source(
        text,
        _placed(text, model, device),
        kind,
        _parameters(model),
        samples=getattr(module, "samples", None),
        shapes=_declared(module, "shapes"),
        images=_declared(module, "images"),
    )


def _placed(name: str, model: nn.Module, device: str) -> nn.Module:
    """`model` in eval mode on the device; its author may have put it on another one."""
    placed: nn.Module = _ran(name, lambda: model.to(device))
    return placed.eval()


def _declared(module: ModuleType, name: str) -> dict[str, Any]:
    declared = getattr(module, name, {})
    if not isinstance(declared, dict) or not all(isinstance(key, str) for key in declared):
        msg = f"{name} in {module.__file__} is {declared!r:.100}: expected a dict keyed by the names of the inputs"
        raise BundleError(msg)
    return declared


def _file(path: Path) -> ModuleType:
    path = path.resolve()
    if not path.is_file():
        msg = f"the file {path} does not exist: {_FORMS}"
        raise BundleError(msg)
    # TorchScript includes the module's name in class names, so the name must not depend on the folder.
    name = f"opwright_model_{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path, loader=UncachedLoader(name, str(path)))
    if spec is None or spec.loader is None:  # only for the type checker: the path ends with .py
        raise AssertionError
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _first_on_path(path.parent):
        _ran(str(path), lambda: spec.loader.exec_module(module))  # type: ignore[union-attr]  # checked above
    return module


def _module(name: str) -> ModuleType:
    with _first_on_path(Path.cwd()):
        try:
            found = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            found = None
        if found is None:
            msg = f"no module {name!r} is in this folder or installed: {_FORMS}"
            raise BundleError(msg)
        module: ModuleType = _ran(name, lambda: importlib.import_module(name))
        return module


def _ran(what: str, run: Callable[[], Any]) -> Any:
    try:
        return run()
    except OpwrightError:
        raise
    except Exception as error:
        msg = f"{what} failed: {error_summary(error)}"
        raise BundleError(msg) from error


@contextlib.contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = before


def _parameters(model: nn.Module) -> tuple[str, ...]:
    if isinstance(model, torch.jit.ScriptModule):
        compiled: Any = model.forward
        return tuple(argument.name for argument in compiled.schema.arguments[1:])
    named = inspect.signature(model.forward).parameters.values()
    return tuple(parameter.name for parameter in named if parameter.kind not in _UNNAMED)
