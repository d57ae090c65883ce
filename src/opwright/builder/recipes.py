"""The command lines that build a plan on this machine, and their names in the cache."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder.cache import digest
from opwright.builder.file_state import state_of
from opwright.builder.ninja import Unit
from opwright.toolchain import flags
from opwright.toolchain.compiler import Compiler, cuda_home, find_cxx, find_nvcc
from opwright.toolchain.packages import find_package
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opwright.builder.plan import Plan

# Variables that compilers and linkers read: folders of headers, of libraries and of their own programs, and flags.
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
_PATH_IN_WORD = re.compile(r"/[^=,]*")


@dataclass(frozen=True)
class Recipes:
    """The command lines of a plan on this machine.

    Attributes:
        units: one for each source.
        linker: the program that links, with what always comes first.
        link_flags: what follows the objects.
        identity: what else the result depends on: the versions of the compilers, PyTorch and packages, and variables.
    """

    units: tuple[Unit, ...]
    linker: tuple[str, ...]
    link_flags: tuple[str, ...]
    identity: tuple[str, ...]

    def object_key(self, unit: Unit, content: str) -> str:
        """The name in the cache of the object of `unit`; `content` is the digest of its source."""
        return digest([*self.identity, *unit.command, *self._contents(unit.command), str(unit.source), content])

    def library_key(self, objects: Iterable[Path], folder: Path) -> str:
        """The name in the cache of what is linked from `objects`, whose file names are hashes of their content.

        Args:
            objects: the objects, in order.
            folder: the folder that the linker runs in, to which relative names in flags belong.
        """
        command = [*self.linker, *self.link_flags]
        return digest(
            [*self.identity, *command, *self._contents(command), str(folder), *(path.name for path in objects)]
        )

    def _contents(self, words: Sequence[str]) -> list[str]:
        """The digests of the files that flags name: a linker script, a file of further flags, a profile."""
        named = {path for word in words for path in _PATH_IN_WORD.findall(word)}
        named.difference_update(self.identity)  # the compilers
        found = []
        for path in sorted(named):
            with contextlib.suppress(OSError):  # only a part of a flag, or in a folder that may not be entered
                if Path(path).is_file():
                    found.append(f"{path} {state_of(path).content}")
        return found


def compose(plan: Plan) -> Recipes:
    """The command lines that build `plan` on this machine.

    Raises:
        ToolchainError: a compiler, PyTorch or a package is missing.
    """
    torch = find_pytorch()
    packages = [find_package(name) for name in plan.packages]
    cxx = find_cxx()
    nvcc = find_nvcc() if plan.cuda else None
    toolkit = cuda_home(nvcc) if nvcc else None
    python_module = plan.product == "python_module"
    own = [f"-I{folder}" for folder in plan.include_dirs]
    forced = ["-include", str(plan.forced_include)] if plan.forced_include else []
    cxx_command = [
        *cxx.command,
        *flags.cxx_flags(plan.abi, torch, plan.name, packages=packages, python_module=python_module, cuda_home=toolkit),
        *own,
        *forced,
        *plan.cflags,
    ]
    units = []
    for source in plan.sources:
        if source.suffix == ".cu" and nvcc is not None:
            command = [
                *nvcc.command,
                f"-ccbin={cxx.host}",
                *flags.cuda_flags(plan.abi, torch, plan.name, packages=packages, python_module=python_module),
                *own,
                *forced,
                *plan.cuda_cflags,
            ]
            units.append(Unit(source, tuple(command)))
        elif source.suffix != ".cu":
            units.append(Unit(source, tuple(cxx_command)))
    link = flags.link_flags(plan.abi, torch, packages=packages, python_module=python_module, cuda_home=toolkit)
    if plan.product == "program":
        link = [f"-Wl,-rpath,{torch.lib_dir}", *(flag for flag in link if flag != "-shared")]
    versions = [f"{package.name} {package.version}" for package in packages]
    compilers: list[Compiler] = [cxx, *([nvcc] if nvcc else [])]
    variables = [f"{name}={os.environ[name]}" for name in _VARIABLES if name in os.environ]
    programs = [word for compiler in compilers for word in compiler.identity]
    identity = (*torch.identity, *versions, *programs, *variables)
    return Recipes(tuple(units), tuple(cxx.command), (*link, *plan.ldflags), identity)
