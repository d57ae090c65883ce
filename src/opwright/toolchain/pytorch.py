"""Finds the installed PyTorch, its headers and libraries, without importing it."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from opwright.errors import ToolchainError

OLDEST = (2, 11)


@dataclass(frozen=True)
class PyTorch:
    """An installed PyTorch.

    Attributes:
        root: the folder of the package `torch`.
        version: such as `2.13.0+cpu`.
        cuda: the CUDA version that it was built with, such as `13.0`; None for a CPU build.
        commit: the commit that it was built from, which distinguishes nightlies.
    """

    root: Path
    version: str
    cuda: str | None
    commit: str

    @property
    def include_dirs(self) -> list[Path]:
        """The folders with its headers."""
        return [self.root / "include", self.root / "include" / "torch" / "csrc" / "api" / "include"]

    @property
    def lib_dir(self) -> Path:
        """The folder with its shared libraries."""
        return self.root / "lib"

    @property
    def identity(self) -> list[str]:
        """What identifies this PyTorch in cache keys."""
        return [str(self.root), self.version, self.commit]


def find_pytorch() -> PyTorch:
    """The PyTorch that this Python would import.

    Raises:
        ToolchainError: it is not installed, is too old, or lacks its headers, or Python is free-threaded.
    """
    if "t" in sys.abiflags:
        msg = (
            f"{sys.executable} is a free-threaded build of Python, which opwright does not support: use a build with "
            "the global interpreter lock"
        )
        raise ToolchainError(msg)
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        msg = f"PyTorch is not installed for this Python: install torch {OLDEST[0]}.{OLDEST[1]} or newer"
        raise ToolchainError(msg)
    root = Path(next(iter(spec.submodule_search_locations)))
    facts = _version_facts(root / "version.py")
    version = facts.get("__version__") or "0"
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST:
        msg = f"PyTorch {version} is too old: opwright requires {OLDEST[0]}.{OLDEST[1]} or newer, for its stable ABI"
        raise ToolchainError(msg)
    if not (root / "include" / "torch" / "csrc" / "stable" / "library.h").is_file():
        msg = f"PyTorch {version} at {root} has no C++ headers: install the complete torch package"
        raise ToolchainError(msg)
    return PyTorch(root, version, facts.get("cuda"), facts.get("git_version") or "")


def _version_facts(file: Path) -> dict[str, str | None]:
    # `torch/version.py` contains only plain assignments; importing torch to read them would take a second.
    try:
        text = file.read_text()
    except OSError as error:
        msg = f"PyTorch at {file.parent} is damaged: {file.name} cannot be read ({error.strerror}); reinstall torch"
        raise ToolchainError(msg) from error
    return dict(re.findall(r"^(\w+)(?:\s*:[^=\n]*)?\s*=\s*'([^']*)'", text, flags=re.MULTILINE))
