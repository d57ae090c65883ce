"""The exceptions that opwright raises, and the exit code of each.

OpwrightError (1)
├── SpecError (3)          op.py, or an argument that names a part of it, is not valid
├── ToolchainError (4)     a compiler, a header or a package is missing on this machine
├── BuildError (5)         a source was rejected by its compiler or by the linker
│   ├── SignatureError     a kernel's C++ signature differs from its schema
│   └── BridgeError        opwright's own autograd bridge failed to build; the library is not at fault
├── LoadError (6)          a shared object could not be loaded
├── CacheError (7)         the build cache cannot be used
├── BundleError (8)        a bundle cannot be written, or is not valid
└── MapError (9)           a map cannot start, resume or continue

Exit code 2 means wrong usage of the command line.
"""

from __future__ import annotations

from typing import ClassVar


class OpwrightError(Exception):
    """An error that a user can fix: its message says what was wrong, what was expected and what to do."""

    exit_code: ClassVar[int] = 1


class SpecError(OpwrightError):
    """An `op.py`, or an argument that names a part of it, is not valid."""

    exit_code: ClassVar[int] = 3


class ToolchainError(OpwrightError):
    """A tool, a header or a package that a build requires is missing or too old."""

    exit_code: ClassVar[int] = 4


class BuildError(OpwrightError):
    """A compiler or the linker rejected the sources.

    Attributes:
        command: the command line that failed, ready to paste into a shell; empty if no command was run.
        output: the output of the command.
    """

    exit_code: ClassVar[int] = 5

    def __init__(self, message: str, *, command: str = "", output: str = "") -> None:
        super().__init__(message)
        self.command = command
        self.output = output


class SignatureError(BuildError):
    """A kernel's C++ signature differs from the schema that it implements."""


class BridgeError(BuildError):
    """The compiler or the linker rejected opwright's own C++ autograd bridge."""


class LoadError(OpwrightError):
    """A shared object could not be loaded, or its operators could not be registered."""

    exit_code: ClassVar[int] = 6


class CacheError(OpwrightError):
    """The build cache cannot be read or written."""

    exit_code: ClassVar[int] = 7


class BundleError(OpwrightError):
    """A bundle cannot be written, or is not valid."""

    exit_code: ClassVar[int] = 8


class MapError(OpwrightError):
    """A map over many inputs cannot start, resume or continue; finished results are kept."""

    exit_code: ClassVar[int] = 9
