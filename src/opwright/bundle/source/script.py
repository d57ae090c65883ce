"""Extracts the plain part of a TorchScript file: tensors, and code that only computes.

PyTorch compiles the code in the file, and runs `__setstate__` of its classes while it loads. All code is therefore
checked first, and PyTorch loads a new archive that contains only the checked records.
"""

from __future__ import annotations

import pickletools
import re
import zipfile
from typing import TYPE_CHECKING

from opwright.bundle.source.records import open_records, write_records
from opwright.bundle.source.script_code import check_class, check_code

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opwright.bundle.source.records import Records

_PICKLES = frozenset({"data.pkl", "constants.pkl"})
_TENSOR = re.compile(r"(data|constants)/[0-9]+")
_CODE = re.compile(r"code/__torch__[A-Za-z0-9_/]*\.py")
# The objects that the C++ unpickler creates: tensors, and typed lists.
_MADE = re.compile(
    r"torch\._utils _rebuild_\w+|torch\.jit\._pickle (build|restore)_\w+|torch \w+"
    r"|collections OrderedDict|(builtins|__builtin__) complex|__torch__(\.\w+)* \w+"
)
_VERSION = re.compile(rb"[0-9]{1,4}\n?")


def rewrite_script(path: Path, plain: Path) -> None:
    """Rewrite the TorchScript model at `path`, if it does nothing but compute.

    Args:
        path: the file.
        plain: the file to write, for `torch.jit.load`.

    Raises:
        ValueError: the file does more than compute; the message describes it as "it".
        BadZipFile: the file is damaged.
        OSError: a file cannot be read or written.
    """
    with open_records(path) as records:
        version = records.read("version" if "version" in records.entries else ".data/version")
        if _VERSION.fullmatch(version) is None:
            msg = f"its version is {version!r:.40}, which is not a number"
            raise ValueError(msg)
        write_records(plain, _accepted(records), int(version))


def _accepted(records: Records) -> Iterator[tuple[str, bytes]]:
    """The records that the model needs, without those for debuggers and mobile runtimes."""
    for name in records.entries:
        if name in _PICKLES:
            data = records.read(name)
            _check_pickle(data, name)
        elif _CODE.fullmatch(name):
            data = records.read(name)
            check_code(data, name)
        elif _TENSOR.fullmatch(name):
            data = records.read(name)
        else:
            continue
        yield name, data


def _check_pickle(data: bytes, name: str) -> None:
    try:
        opcodes = [(opcode.name, argument) for opcode, argument, _ in pickletools.genops(data)]
    except (ValueError, IndexError, OverflowError, TypeError) as error:
        msg = f"{name} inside it is damaged ({error})"
        raise zipfile.BadZipFile(msg) from error
    for opcode, argument in opcodes:
        if opcode in {"GLOBAL", "INST"}:
            if _MADE.fullmatch(str(argument)) is None:
                msg = f"{name} inside it creates an object of {argument!r:.100}"
                raise ValueError(msg)
            if str(argument).startswith("__torch__"):
                check_class(str(argument).replace(" ", "."))
        elif opcode in {"STACK_GLOBAL", "EXT1", "EXT2", "EXT4"}:
            msg = f"{name} inside it is not a pickle as PyTorch writes it"
            raise ValueError(msg)
