"""Saved models: which kind a file is, found from its contents without executing any of them."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any, Literal

import torch

from opwright.bundle.error_summary import error_summary
from opwright.bundle.suppress_output import suppress_output
from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SavedKind = Literal["torchscript", "exported", "aoti"]

SUFFIXES = frozenset({".pt", ".pth", ".pt2", ".ts", ".torchscript"})


def kind_of(path: Path) -> SavedKind:
    """Which kind of saved model is at `path`.

    Raises:
        BundleError: it is not a model, or reading it could run any code.
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
        pass  # pickled by a PyTorch before 1.6, or not a model at all: _refusal says which
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
    """The AOTInductor package at `path`.

    Raises:
        BundleError: it cannot be loaded.
    """
    load = torch._inductor.aoti_load_package
    return _loaded(path, lambda: load(str(path)))


def _loaded(path: Path, load: Callable[[], Any]) -> Any:
    try:
        with suppress_output():
            return load()
    except Exception as error:
        msg = f"{path} cannot be loaded: {error_summary(error)}"
        raise BundleError(msg) from error


def _refusal(path: Path) -> str:
    """Why a file that holds no saved model is refused, and what to do."""
    try:
        held = torch.load(path, weights_only=True, map_location="cpu")
    except Exception:  # noqa: BLE001  it is refused whatever is wrong with it
        return (
            f"{path} is refused: it is pickled, and reading it could run any code, or it is not a model. Name the "
            "callable that makes the model (file.py:callable, package.module:callable), and give its weights with "
            "--weights"
        )
    what = "weights" if isinstance(held, dict) else f"a {type(held).__name__}"
    return (
        f"{path} holds {what}, not a model: name the callable that makes the model (file.py:callable, "
        f"package.module:callable), and give --weights {path}"
    )
