"""Saved models: detects the kind of a file from its contents, without executing any of them."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.export.passes import move_to_device_pass

from opwright.bundle.error_summary import error_summary
from opwright.bundle.source.exported import rewrite_program
from opwright.bundle.source.plain_file import require_plain_file
from opwright.bundle.source.script import rewrite_script
from opwright.bundle.suppress_output import suppress_output
from opwright.errors import BundleError
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from collections.abc import Callable

SavedKind = Literal["torchscript", "exported", "aoti"]

# Functions that rewrite a file without anything that could run.
_REWRITES: dict[SavedKind, Callable[[Path, Path], None]] = {"torchscript": rewrite_script, "exported": rewrite_program}

SUFFIXES = frozenset({".pt", ".pth", ".pt2", ".ts", ".torchscript"})


def kind_of(path: Path) -> SavedKind:
    """The kind of saved model at `path`.

    Raises:
        BundleError: the file is not a model, or reading it could run arbitrary code.
    """
    require_plain_file(path, "the model")
    try:
        with zipfile.ZipFile(path) as archive:
            members = [name.partition("/")[2] for name in archive.namelist()]
    except OSError as error:
        msg = f"the model {path} cannot be read: {error.strerror}"
        raise BundleError(msg) from error
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        members = []  # pickled by a PyTorch before 1.6, or not a model: _refusal finds out
    if "constants.pkl" in members or any(name.startswith("code/") for name in members):
        return "torchscript"
    if any(name.startswith("data/aotinductor/") for name in members):
        return "aoti"
    if any(name.startswith("models/") for name in members):
        return "exported"
    raise BundleError(_refusal(path))


def load_saved(path: Path, kind: SavedKind, *, trust: bool, device: str = "cpu") -> Any:
    """Load the model at `path`: a `ScriptModule`, an `ExportedProgram` or an AOTInductor package.

    Args:
        path: the file.
        kind: the result of `kind_of` for it.
        trust: whether code in the file may run. If not, a file that could run arbitrary code is rejected.
        device: the device that it will run on: `cpu` or `cuda`.

    Raises:
        BundleError: the file cannot be loaded, is rejected, or was compiled for another device.
    """
    if trust:
        return _loaded(path, kind, path, device)
    if kind == "aoti":
        raise BundleError(_not_trusted(path, "an AOTInductor package is machine code"))
    with tempfile.TemporaryDirectory(prefix="opwright-") as folder:
        plain = Path(folder) / f"model{path.suffix}"
        try:
            _REWRITES[kind](path, plain)
        except ValueError as error:
            raise BundleError(_not_trusted(path, str(error))) from error
        except OSError as error:
            msg = f"the model {path} cannot be read: {error.strerror}"
            raise BundleError(msg) from error
        except (zipfile.BadZipFile, RuntimeError, MemoryError) as error:
            msg = f"{path} cannot be loaded: {first_line(error)}"
            raise BundleError(msg) from error
        return _loaded(plain, kind, path, device)


def load_torchscript(path: Path, device: str = "cpu") -> torch.jit.ScriptModule:
    """Load the TorchScript model at `path`, which opwright has written, onto the device.

    Raises:
        BundleError: it cannot be loaded.
    """
    model: torch.jit.ScriptModule = _loaded(path, "torchscript", path, device)
    return model


def load_package(path: Path, device: str = "cpu") -> Any:
    """Load the AOTInductor package at `path`, which opwright has written for the device: it is machine code.

    Raises:
        BundleError: it cannot be loaded.
    """
    return _loaded(path, "aoti", path, device)


def _loaded(file: Path, kind: SavedKind, path: Path, device: str) -> Any:
    """Load the model in `file`, which messages call `path`."""
    load_script: Any = torch.jit.load
    try:
        with suppress_output():
            if kind == "torchscript":
                return load_script(str(file), map_location=device).eval()
            if kind == "exported":
                program = torch.export.load(file)
                return program if device == "cpu" else move_to_device_pass(program, device)
            package: Any = torch._inductor.aoti_load_package(str(file))
            compiled_for = package.get_metadata().get("AOTI_DEVICE_KEY", device)
    except Exception as error:
        msg = f"{path} cannot be loaded: {error_summary(error)}"
        raise BundleError(msg) from error
    if compiled_for != device:
        msg = f"{path} was compiled for {compiled_for}: pass --device {compiled_for}, or compile it for {device}"
        raise BundleError(msg)
    return package


def _not_trusted(path: Path, why: str) -> str:
    return (
        f"{path} is rejected: {why}. Loading it could run arbitrary code on this machine as you: pass --trust if it "
        "comes from you, or from people whom you trust"
    )


def _refusal(path: Path) -> str:
    """Why a file without a saved model is rejected, and what to do."""
    try:
        held = torch.load(path, weights_only=True, map_location="cpu")
    except Exception:  # noqa: BLE001  the file is rejected whatever the error is
        return (
            f"{path} is rejected: it is pickled, and reading it could run arbitrary code, or it is not a model. Name "
            "the callable that creates the model (file.py:callable, package.module:callable), and pass its weights "
            "with --weights"
        )
    what = "weights" if isinstance(held, dict) else f"a {type(held).__name__}"
    return (
        f"{path} contains {what}, not a model: name the callable that creates the model (file.py:callable, "
        f"package.module:callable), and pass --weights {path}"
    )
