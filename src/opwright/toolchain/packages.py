"""Finds C and C++ packages through pkg-config."""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from opwright.errors import ToolchainError
from opwright.toolchain.run import run


@dataclass(frozen=True)
class Package:
    """An installed package.

    Attributes:
        name: its pkg-config name.
        version: its version.
        cflags: what a compile needs, headers taken in as system headers.
        ldflags: what a link needs.
    """

    name: str
    version: str
    cflags: tuple[str, ...]
    ldflags: tuple[str, ...]


def find_package(name: str) -> Package:
    """The pkg-config package `name`.

    Raises:
        ToolchainError: pkg-config, or the package, is not there.
    """
    program = os.environ.get("PKG_CONFIG") or shutil.which("pkg-config") or shutil.which("pkgconf")
    if program is None:
        msg = f"pkg-config is missing, and the package {name!r} is found through it: install the package pkg-config"
        raise ToolchainError(msg)
    answer = run([program, "--print-errors", "--modversion", name], check=False)
    if answer.exit_code != 0:
        msg = (
            f"the package {name!r} is not installed, or pkg-config cannot see it: looked for {name}.pc. "
            f"Install its development files (for opencv4: libopencv-dev), or add their folder to PKG_CONFIG_PATH"
        )
        raise ToolchainError(msg)
    cflags = shlex.split(run([program, "--cflags", name]).output)
    ldflags = shlex.split(run([program, "--libs", name]).output)
    return Package(name, answer.output.strip(), tuple(_as_system(cflags)), tuple(ldflags))


def _as_system(cflags: list[str]) -> list[str]:
    """`-I` as `-isystem`: what third-party headers warn of is not the author's to fix."""
    flags: list[str] = []
    for flag in cflags:
        if not flag.startswith("-I"):
            flags.append(flag)
        elif Path(flag[2:]) != Path("/usr/include"):  # there already; naming it breaks #include_next
            flags += ["-isystem", flag[2:]]
    return flags
