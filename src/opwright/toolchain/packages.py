"""Finds C and C++ packages through pkg-config, and says which one a missing header belongs to."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.errors import ToolchainError
from opwright.toolchain.run import run

if TYPE_CHECKING:
    from collections.abc import Iterable

# The messages of g++, which nvcc also prints, and of clang++.
_MISSING = re.compile(
    r"^\S.*:\d+:\d+: fatal error: (?:(?P<gcc>[^\n']+): No such file or directory|'(?P<clang>.+)' file not found)$",
    flags=re.MULTILINE,
)
_MOST_PACKAGES = 3


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
        ToolchainError: pkg-config, the package, or one that it requires is not installed.
    """
    program = _pkg_config(name)
    options = ("--modversion", "--cflags", "--libs")
    answers = [run([program, "--print-errors", option, name], check=False) for option in options]
    for answer in answers:
        if answer.exit_code != 0:
            raise ToolchainError(_why_not(name, answer.output))
    version, cflags, ldflags = (answer.output for answer in answers)
    return Package(name, version.strip(), tuple(_as_system(shlex.split(cflags))), tuple(shlex.split(ldflags)))


def missing_header(error: str) -> str:
    """A line with what to do about the missing header that `error` reports; empty if it reports another error."""
    found = _MISSING.search(error)
    if found is None:
        return ""
    header = found["gcc"] or found["clang"]
    if header == "Python.h":
        release = f"{sys.version_info.major}.{sys.version_info.minor}"
        return (
            f"\n  fix: install the headers of Python {release}: on Debian and Ubuntu, the package python{release}-dev"
        )
    if re.match(r"(?:ATen|c10|torch)/", header):
        return "\n  fix: the installed PyTorch does not contain it: include a header that this release of PyTorch has"
    folder = "add the folder that contains it to include_dirs= (extra_include_paths= in opwright.load)"
    if f'"{header}"' in error:
        return f"\n  fix: correct its path, or {folder}"
    if names := _packages_with(header)[:_MOST_PACKAGES]:
        each = " or ".join(f'packages=["{name}"]' for name in names)
        flags = f"`pkg-config --cflags --libs {names[0]}`"
        return f"\n  fix: an installed package contains it: add {each}, or the flags that {flags} prints"
    return (
        f"\n  fix: {folder}, or install the library that it belongs to: on Debian and Ubuntu, "
        f"`apt-file search /{header}` prints the package"
    )


def _packages_with(header: str) -> list[str]:
    """The installed pkg-config packages with a folder that contains `header`; empty if pkg-config is not installed."""
    try:
        program = _pkg_config(header)
    except ToolchainError:
        return []
    names = [line.split()[0] for line in run([program, "--list-all"], check=False).output.splitlines() if line.strip()]
    folders = {name: run([program, "--cflags-only-I", name], check=False).output.split() for name in names}
    return [name for name in names if any((Path(word[2:]) / header).is_file() for word in folders[name])]


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


def _why_not(name: str, printed: str) -> str:
    """Why pkg-config, which printed this, does not find the package `name` or one that it requires."""
    required = re.search(r"Package '(.+?)', required by '(.+?)', not found", printed)
    if required is None and "not found" not in printed and "No package" not in printed:
        return f"pkg-config rejects the package {name!r}: {printed.strip()}"
    missing = required[1] if required else name
    subject = f"the package {name!r}" + (f" requires the package {missing!r}, which" if missing != name else "")
    return (
        f"{subject} is not installed, or pkg-config cannot find it: looked for {missing}.pc. Install its development "
        f"files (for opencv4: libopencv-dev; on Debian, `apt-file search /{missing}.pc` prints their package), "
        "or add their folder to PKG_CONFIG_PATH"
    )


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
