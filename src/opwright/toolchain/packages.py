"""Finds C and C++ packages through pkg-config."""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.errors import ToolchainError
from opwright.toolchain.run import run

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Package:
    """An installed package.

    Attributes:
        name: its pkg-config name.
        version: its version.
        cflags: flags for the compiler, with its headers as system headers.
        ldflags: flags for the linker.
    """

    name: str
    version: str
    cflags: tuple[str, ...]
    ldflags: tuple[str, ...]


def find_package(name: str) -> Package:
    """The pkg-config package `name`.

    Raises:
        ToolchainError: pkg-config or the package is not installed.
    """
    program = _pkg_config(name)
    answer = run([program, "--print-errors", "--modversion", name], check=False)
    if answer.exit_code != 0:
        msg = (
            f"the package {name!r} is not installed, or pkg-config cannot find it: looked for {name}.pc. "
            f"Install its development files (for opencv4: libopencv-dev), or add their folder to PKG_CONFIG_PATH"
        )
        raise ToolchainError(msg)
    cflags = shlex.split(run([program, "--cflags", name]).output)
    ldflags = shlex.split(run([program, "--libs", name]).output)
    return Package(name, answer.output.strip(), tuple(_as_system(cflags)), tuple(ldflags))


def package_versions(names: Iterable[str]) -> dict[str, str]:
    """The versions of those pkg-config packages among `names` that are installed.

    Raises:
        ToolchainError: pkg-config is not installed.
    """
    listed = list(names)
    program = _pkg_config(", ".join(listed))
    # One process for all packages, unless one is missing: pkg-config then prints no version.
    answer = run([program, "--modversion", *listed], check=False)
    versions = answer.output.split()
    if answer.exit_code == 0 and len(versions) == len(listed):
        return dict(zip(listed, versions, strict=True))
    answers = {name: run([program, "--modversion", name], check=False) for name in listed}
    return {name: answer.output.strip() for name, answer in answers.items() if answer.exit_code == 0}


def _pkg_config(wanted: str) -> str:
    program = os.environ.get("PKG_CONFIG") or shutil.which("pkg-config") or shutil.which("pkgconf")
    if program is None:
        msg = f"pkg-config, which finds {wanted}, is not installed: install the package pkg-config"
        raise ToolchainError(msg)
    return program


def _as_system(cflags: list[str]) -> list[str]:
    """`cflags` with `-isystem` for `-I`, because an author cannot fix warnings in third-party headers."""
    flags: list[str] = []
    for flag in cflags:
        if not flag.startswith("-I"):
            flags.append(flag)
        elif Path(flag[2:]) != Path("/usr/include"):  # a default; passing it breaks #include_next
            flags += ["-isystem", flag[2:]]
    return flags
