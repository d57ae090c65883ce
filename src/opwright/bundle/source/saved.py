"""Saved models: what kind of file one is, by what is in it and without executing any of it."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any, Literal

import torch

from opwright.bundle.error_summary import cause
from opwright.bundle.suppress_output import quiet
from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SavedKind = Literal["torchscript", "exported", "aoti"]

SUFFIXES = frozenset({".pt", ".pth", ".pt2", ".ts", ".torchscript"})


def kind_of(path: Path) -> SavedKind:
    """What the saved model at `path` is.

    Raises:
        BundleError: it is no model, or one that would run any code when it is read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [name.partition("/")[2] for name in archive.namelist()]
            if "constants.pkl" in members or any(name.startswith("code/") for name in members):
                return "torchscript"
            if any(name.startswith("data/aotinductor/") for name in members):
                return "aoti"
            if any(name.startswith("models/") for name in members):
                return "exported"
    except OSError as error:
        msg = f"the model {path} cannot be read: {error.strerror}"
        raise BundleError(msg) from error
    except zipfile.BadZipFile:
        pass  # what PyTorch pickled before 1.6, or no model at all: told below
    raise BundleError(_refusal(path))


def load_torchscript(path: Path) -> torch.jit.ScriptModule:
    """The TorchScript model at `path`.

    Raises:
        BundleError: it cannot be loaded.
    """
    load: Any = torch.jit.load
    loaded: Any = _loaded(path, lambda: load(str(path), map_location="cpu"))
    model: torch.jit.ScriptModule = loaded.eval()
    return model


def load_exported(path: Path) -> torch.export.ExportedProgram:
    """The exported program at `path`.

    Raises:
        BundleError: it cannot be loaded.
    """
    program: torch.export.ExportedProgram = _loaded(path, lambda: torch.export.load(path))
    return program


def load_package(path: Path) -> Any:
    """The package of AOTInductor's at `path`.

    Raises:
        BundleError: it cannot be loaded.
    """
    load = torch._inductor.aoti_load_package
    return _loaded(path, lambda: load(str(path)))


def _loaded(path: Path, load: Callable[[], Any]) -> Any:
    try:
        with quiet():
            return load()
    except Exception as error:
        msg = f"{path} cannot be loaded: {cause(error)}"
        raise BundleError(msg) from error


def _refusal(path: Path) -> str:
    """Why a file that holds no saved model is not taken, in words that say what to do."""
    try:
        held = torch.load(path, weights_only=True, map_location="cpu")
    except Exception:  # noqa: BLE001  it is refused whatever is wrong with it
        return (
            f"{path} is refused: it is pickled, and to read it could run any code, or it is no model at all. Name the "
            "callable that makes the model (file.py:callable, package.module:callable), and give its weights with "
            "--weights"
        )
    what = "weights" if isinstance(held, dict) else f"a {type(held).__name__}"
    return (
        f"{path} holds {what}, not a model: name the callable that makes the model (file.py:callable, "
        f"package.module:callable), and give --weights {path}"
    )
