"""Compiles units in parallel with ninja."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import ninja as ninja_wheel

from opwright.cache.cache import digest
from opwright.errors import BuildError, ToolchainError
from opwright.toolchain.compiler import find_cxx
from opwright.toolchain.flags import COMMON_ELSEWHERE, STANDARD, for_clang
from opwright.toolchain.packages import missing_header
from opwright.toolchain.run import Completed, failure, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.report.progress import Progress

FILE_NAME = "build.ninja"
# Characters that some programs do not accept in file names.
_ODD = re.compile(r"[^A-Za-z0-9._+-]")
_STATUS = "[%f/%t] "
_STEP = re.compile(r"^\[(\d+)/(\d+)\] (.*)$")


@dataclass(frozen=True)
class Unit:
    """One source and the command line that compiles it, without input and output.

    Attributes:
        source: the file.
        command: the command line.
        quick: a command line to try first, which compiles the same object in less time, or fails.
    """

    source: Path
    command: tuple[str, ...]
    quick: tuple[str, ...] | None = None

    @property
    def object_name(self) -> str:
        """The object's file name, which differs for `a/x.cpp`, `b/x.cpp` and `x.cu`."""
        return f"{_ODD.sub('_', self.source.name)}.{digest([str(self.source)])[:8]}.o"

    @property
    def full_command(self) -> str:
        """The shell command line, which writes a depfile next to the object."""
        return self._for_shell(self.command)

    @property
    def first_command(self) -> str:
        """The command line to try first."""
        return self._for_shell(self.quick or self.command)

    def _for_shell(self, command: Sequence[str]) -> str:
        name = self.object_name
        depfile = str(Path(name).with_suffix(".d"))
        return shlex.join([*command, "-MD", "-MF", depfile, "-c", str(self.source), "-o", name])


def compile_units(units: Sequence[Unit], folder: Path, progress: Progress, beside: str | None = None) -> str:
    """Compile `units` into `folder`, in parallel; `$MAX_JOBS` limits the number of processes.

    Args:
        units: what to compile.
        folder: an empty folder.
        progress: reports the steps.
        beside: another command line to run in parallel, whose failure is ignored.

    Returns:
        The output of the compilers: warnings.

    Raises:
        BuildError: a unit does not compile; the message contains its first error and its command line.
        ToolchainError: ninja is missing.
    """
    if not units:
        return ""
    (folder / FILE_NAME).write_bytes(os.fsencode(_build_file(units, beside)))
    jobs = os.environ.get("MAX_JOBS")
    command = [program(), "-C", str(folder), "-f", FILE_NAME, *(["-j", jobs] if jobs else [])]
    if any(unit.quick for unit in units):
        command += ["-k", "0"]  # failed ones are retried
    printed: list[str] = []

    def follow(line: str) -> None:
        if step := _STEP.match(line):
            progress.step("compile", step[3], int(step[1]), int(step[2]))
        elif not line.startswith("ninja: "):
            printed.append(line)

    progress.step("compile", ", ".join(unit.source.name for unit in units), 0, len(units))
    # The compilers' temporary files are removed with the folder, even if a compiler is killed. Colors, which Jupyter's
    # kernel requests from all programs, would be part of the output that is parsed here.
    environment = {"NINJA_STATUS": _STATUS, "TMPDIR": str(folder), "CLICOLOR_FORCE": "0"}
    completed = run(command, env=environment, on_line=follow, check=False)
    if completed.exit_code != 0:
        raise _rejected(units, completed, folder)
    return "\n".join(printed)


def accepted(units: Sequence[Unit]) -> Sequence[Unit]:
    """`units` without flags that this machine's C++ compiler does not support. Runs the compiler to identify it.

    Raises:
        ToolchainError: the compiler is too old.
    """
    cxx = find_cxx()
    if any(STANDARD in unit.command for unit in units):
        cxx.check_release(opwrights=any(COMMON_ELSEWHERE in unit.command for unit in units))
    return [replace(unit, command=for_clang(unit.command)) for unit in units] if cxx.is_clang else units


def program() -> str:
    """The ninja from the Python package, or the system's.

    Raises:
        ToolchainError: neither exists.
    """
    bundled = Path(ninja_wheel.BIN_DIR) / "ninja"
    if found := (shutil.which("ninja", path=str(bundled.parent)) or shutil.which("ninja")):
        return found
    msg = "ninja is missing: install the Python package ninja"
    raise ToolchainError(msg)


def _build_file(units: Sequence[Unit], beside: str | None) -> str:
    lines = ["ninja_required_version = 1.8"]
    if beside is not None:
        lines += ["rule beside", f"  command = {_escaped(beside)} || :", "  description = headers"]
        lines += ["build beside: beside"]
    for at, unit in enumerate(units):
        lines += [
            f"rule r{at}",
            f"  command = {_escaped(unit.first_command)}",
            f"  description = {_escaped(unit.source.name)}",
            # The source is not declared as an input: the folder is new, so that everything is compiled anyway, and
            # ninja's syntax does not support every file name.
            f"build {unit.object_name}: r{at}",
        ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    if "\n" in text or "\r" in text:
        msg = f"{text!r:.300} contains a line break, which ninja does not support: rename the file, or change the flag"
        raise BuildError(msg)
    return text.replace("$", "$$")


def _rejected(units: Sequence[Unit], completed: Completed, folder: Path) -> BuildError:
    failed = re.findall(r"^FAILED: (?:\[code=\d+\] )?(\S+)", completed.output, flags=re.MULTILINE)
    unit = next((unit for unit in units if unit.object_name in failed), None)
    if unit is None:
        return failure(completed, "the build failed")
    # ninja prints the command line first, then the compiler's output for this unit.
    output = completed.output.partition(unit.first_command)[2] or completed.output
    command = f"cd {folder.parent} && {unit.full_command}"
    rejected = Completed(command, output, completed.exit_code)
    return failure(rejected, f"{unit.source} does not compile", advise=missing_header)
