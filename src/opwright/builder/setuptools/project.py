"""Builds an unchanged project with a setup.py or a pyproject.toml, with opwright's builder in place of PyTorch's."""

from __future__ import annotations

import importlib.metadata
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwright.builder.setuptools import report
from opwright.errors import BuildError, SpecError, ToolchainError
from opwright.toolchain.run import run

if TYPE_CHECKING:
    from collections.abc import Callable

_RUN = (sys.executable, "-m", "opwright.cpp_extension")
# A setup.py for a project that has none, as setuptools' own backend assumes.
_SETUP = "import setuptools\nsetuptools.setup()\n"


@dataclass(frozen=True)
class BuiltProject:
    """The result of a build of a project.

    Attributes:
        wheel: the wheel; None if the project was built in place.
        extensions: for each shared object that opwright built: `path`, `compiled`, `seconds`.
        seconds: the duration of the whole build.
    """

    wheel: Path | None
    extensions: list[dict[str, Any]]
    seconds: float


def build_in_place(folder: Path, on_line: Callable[[str], None]) -> BuiltProject:
    """Build the extensions of the project in `folder`, next to its Python files.

    Args:
        folder: the folder of its setup.py, or of a pyproject.toml for setuptools.
        on_line: called with each line that the build prints.

    Raises:
        SpecError: there is no such project.
        BuildError: it does not build; the message ends with its output.
    """
    _check_project(folder)
    with tempfile.TemporaryDirectory() as scratch:
        script = folder / "setup.py"
        if not script.is_file():
            script = Path(scratch) / "setup.py"
            script.write_text(_SETUP)
        return _build(folder, [str(script), "build_ext", "--inplace"], None, on_line)


def build_wheel(folder: Path, output: Path, on_line: Callable[[str], None]) -> BuiltProject:
    """Build a wheel of the project in `folder`, with its own build backend and this Python's packages.

    Args:
        folder: the folder of its setup.py or pyproject.toml.
        output: the folder that receives the wheel.
        on_line: called with each line that the build prints.

    Raises:
        SpecError: there is no such project.
        ToolchainError: pip, which calls the backend, is not installed.
        BuildError: it does not build; the message ends with its output.
    """
    _check_project(folder)
    try:
        importlib.metadata.version("pip")  # importing or searching for it would change how setuptools works
    except importlib.metadata.PackageNotFoundError as error:
        msg = f"pip, which calls the build backend of {folder}, is not installed: install the package pip"
        raise ToolchainError(msg) from error
    output.mkdir(parents=True, exist_ok=True)
    arguments = ["-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--disable-pip-version-check", "-v"]
    return _build(folder, [*arguments, "-w", str(output.absolute()), "."], output, on_line)


def _check_project(folder: Path) -> None:
    if not any((folder / name).is_file() for name in ("setup.py", "pyproject.toml")):
        msg = f"{folder} has neither a setup.py nor a pyproject.toml: name the folder of a project that has one"
        raise SpecError(msg)


def _build(folder: Path, arguments: list[str], wheels: Path | None, on_line: Callable[[str], None]) -> BuiltProject:
    started = time.perf_counter()
    before = set(wheels.glob("*.whl")) if wheels else set()
    with tempfile.TemporaryDirectory() as scratch:
        lines = Path(scratch) / "built"
        lines.touch()
        # Errors are the project's own, and are reported unchanged.
        completed = run(
            [*_RUN, *arguments], cwd=folder, env={report.VARIABLE: str(lines)}, on_line=on_line, check=False
        )
        if completed.exit_code != 0:
            msg = f"the project in {folder} does not build (exit code {completed.exit_code}); it printed:\n" + _end(
                completed.output
            )
            raise BuildError(msg, command=completed.command, output=completed.output)
        extensions = report.read(lines)
    made = sorted(set(wheels.glob("*.whl")) - before) if wheels else []
    named = made or (sorted(wheels.glob("*.whl"), key=lambda path: path.stat().st_mtime)[-1:] if wheels else [])
    return BuiltProject(named[0] if named else None, extensions, time.perf_counter() - started)


def _end(output: str) -> str:
    return "\n".join(output.rstrip().splitlines()[-60:])
