"""Composes the command lines that build a plan on this machine, and their cache keys."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder.ninja import Unit
from opwright.cache.cache import digest
from opwright.cache.file_state import state_of
from opwright.toolchain import flags
from opwright.toolchain.compiler import cuda_home, find_cxx, find_nvcc
from opwright.toolchain.linker import find_fast_linker
from opwright.toolchain.packages import find_package
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opwright.builder.plan import Commands, Plan
    from opwright.toolchain.compiler import Compiler
    from opwright.toolchain.pytorch import PyTorch

# Variables that compilers and linkers read: folders of headers, libraries and their own programs, and flags.
_VARIABLES = (
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "GCC_COMPARE_DEBUG",
    "LD_RUN_PATH",
    "LDEMULATION",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "SOURCE_DATE_EPOCH",
)
# Defines the functions that opwright's headers only declare.
COMMON_SOURCE = flags.include_path() / "opwright" / "common" / "common.cpp"
_PATH_IN_WORD = re.compile(r"/[^=,]*")


@dataclass(frozen=True)
class Recipes:
    """The command lines of a plan on this machine.

    Attributes:
        units: one for each source, including those that opwright adds.
        linker: the program that links, with the arguments that always come first.
        link_flags: what follows the objects.
        fast_linker: a flag that selects a faster linker, to try first.
        identity: what else the result depends on: the versions of the compilers, PyTorch and packages, and variables.
        device_link: nvcc's command line that links device code between objects, without objects; usually empty.
    """

    units: tuple[Unit, ...]
    linker: tuple[str, ...]
    link_flags: tuple[str, ...]
    fast_linker: tuple[str, ...]
    identity: tuple[str, ...]
    device_link: tuple[str, ...] = ()

    def units_of(self, plan: Plan) -> list[Unit]:
        """The units of the author's own sources."""
        generated = plan.definitions.source if plan.definitions else None
        return [unit for unit in self.units if unit.source not in (COMMON_SOURCE, generated)]

    def object_key(self, unit: Unit, content: str) -> str:
        """The cache key of the object of `unit`; `content` is the digest of its source."""
        return digest([*self.identity, *unit.command, *self._contents(unit.command), str(unit.source), content])

    def headers_key(self, names: Iterable[str], command: Iterable[str]) -> str:
        """The cache key of precompiled headers."""
        return digest(["headers", *self.identity, *command, *names])

    def library_key(self, objects: Iterable[Path], folder: Path) -> str:
        """The cache key of the product that is linked from `objects`, whose file names are hashes of their content.

        Args:
            objects: the objects, in order.
            folder: the folder that the linker runs in, to which names in flags are relative.
        """
        command = [*self.linker, *self.fast_linker, *self.link_flags, *self.device_link]
        return digest(
            [*self.identity, *command, *self._contents(command), str(folder), *(path.name for path in objects)]
        )

    def _contents(self, words: Sequence[str]) -> list[str]:
        """The digests of the files that flags name: a linker script, a response file, a profile."""
        named = {path for word in words for path in _PATH_IN_WORD.findall(word)}
        known = set(self.identity)  # among others, the compilers
        found = []
        for path in sorted(named):
            with contextlib.suppress(OSError):  # only part of a flag, or in an inaccessible folder
                if known.isdisjoint([path, os.path.realpath(path)]) and Path(path).is_file():
                    found.append(f"{path} {state_of(path).content}")
        return found


def compose(plan: Plan) -> Recipes:
    """The command lines that build `plan` on this machine.

    Raises:
        ToolchainError: a compiler, PyTorch or a package is missing.
    """
    torch = find_pytorch()
    if plan.commands is not None:
        return _given(plan.commands, torch)
    packages = [find_package(name) for name in plan.packages]
    cxx = find_cxx()
    nvcc = find_nvcc() if plan.cuda else None
    toolkit = cuda_home(nvcc) if nvcc else None
    python = _python_of(plan)
    common = [flags.COMMON_ELSEWHERE] if plan.includes_opwright else []
    debug = flags.DEBUG if plan.debug else ()
    own = [f"-I{folder}" for folder in plan.include_dirs]
    forced = ["-include", str(plan.forced_include)] if plan.forced_include else []
    cxx_command = [
        *cxx.command,
        *flags.cxx_flags(plan.abi, torch, plan.name, packages=packages, python=python, cuda_home=toolkit),
        *common,
        *own,
        *forced,
        *plan.cflags,
        *debug,
    ]
    # opwright's own sources use fewer flags, so that the command is the same for most libraries.
    reads_authors = any(word.startswith(("-include", "-imacros")) for word in plan.cflags)
    opwrights_command = [
        *cxx.command,
        *flags.cxx_flags(plan.abi, torch, plan.name, packages=packages if reads_authors else (), python=python),
        *common,
        *(own if reads_authors else ()),
        flags.QUICK,
        *plan.cflags,
        *debug,
    ]
    units = [Unit(COMMON_SOURCE, tuple(opwrights_command))] if plan.includes_opwright else []
    for source in plan.sources:
        if plan.definitions and source == plan.definitions.source:
            units.append(Unit(source, tuple(opwrights_command)))
            continue
        if source.suffix == ".cu" and nvcc is not None:
            command = [
                *nvcc.command,
                f"-ccbin={cxx.host}",
                *flags.cuda_flags(
                    plan.abi,
                    torch,
                    plan.name,
                    packages=packages,
                    python=python,
                    given=plan.cuda_cflags,
                    debug=plan.debug,
                ),
                *common,
                *own,
                *forced,
                *plan.cuda_cflags,
            ]
            units.append(Unit(source, tuple(command)))
        elif source.suffix != ".cu":
            units.append(Unit(source, tuple(cxx_command)))
    link = flags.link_flags(plan.abi, torch, packages=packages, python=python, cuda_home=toolkit)
    if plan.product == "program":
        link = [f"-Wl,-rpath,{torch.lib_dir}", *(flag for flag in link if flag != "-shared")]
    versions = [f"{package.name} {package.version}" for package in packages]
    link = [*link, *plan.ldflags]
    # mold keeps the names of symbols that it drops, and the dynamic loader then looks for them.
    fast = None if python == "dropped" else find_fast_linker([*cxx.command, *link], plan.ldflags)
    compilers = [cxx, *([nvcc] if nvcc else [])]
    identity = (*torch.identity, *versions, *_identity(compilers), *(fast.identity if fast else ()))
    return Recipes(tuple(units), tuple(cxx.command), tuple(link), (fast.flag,) if fast else (), identity)


def _python_of(plan: Plan) -> flags.Python:
    if plan.product == "python_module":
        return "module"
    return "dropped" if plan.product == "operators" and plan.uses_python else "none"


def _given(commands: Commands, torch: PyTorch) -> Recipes:
    """The command lines that another build system composed."""
    fast = find_fast_linker(commands.linker, commands.link_flags)
    identity = (*torch.identity, *_identity(commands.compilers), *(fast.identity if fast else ()))
    flag = (fast.flag,) if fast else ()
    return Recipes(commands.units, commands.linker, commands.link_flags, flag, identity, commands.device_link)


def _identity(compilers: Iterable[Compiler]) -> list[str]:
    programs = [word for compiler in compilers for word in compiler.identity]
    return [*programs, *(f"{name}={os.environ[name]}" for name in _VARIABLES if name in os.environ)]
