"""Writes the C++ that defines a library's operators, from the schemas that op.py gives them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.spec import Library

HEADER_NAME = "definitions.h"
SOURCE_NAME = "definitions.cpp"


@dataclass(frozen=True)
class Definitions:
    """The generated files of one library.

    Attributes:
        header: tells kernels, when they compile, what the schemas say; included before every source.
        source: defines the operators when the library is loaded.
    """

    header: Path
    source: Path


def header_text(library: Library) -> str:
    """C++ that tells kernels, when they compile, what the schemas of `library` say.

    Raises:
        SpecError: a reference's annotations do not make a schema.
    """
    table = ",\n    ".join(json.dumps(schema) for schema in library.schemas())
    return f"""{_head(library)}#pragma once
#include <opwright/schema.h>

template <>
inline constexpr auto opwright::definitions<"{library.namespace}"> = opwright::schemas(
    {table});
"""


def source_text(library: Library) -> str:
    """C++ that defines the operators of `library` when it is loaded.

    Raises:
        SpecError: a reference's annotations do not make a schema.
    """
    defs = "\n".join(f"    m.def({json.dumps(schema)});" for schema in library.schemas())
    return f"""{_head(library)}#include <opwright/op.h>

OPWRIGHT_LIBRARY({library.namespace}, m) {{
{defs}
}}
"""


def write_definitions(library: Library, folder: Path) -> Definitions:
    """Write `definitions.h` and `definitions.cpp` for `library` into `folder`.

    A file whose content would not change is left alone, so that build systems that compare times
    have nothing to do.

    Raises:
        SpecError: a reference's annotations do not make a schema.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return Definitions(
        _written(folder / HEADER_NAME, header_text(library)),
        _written(folder / SOURCE_NAME, source_text(library)),
    )


def _head(library: Library) -> str:
    return f"// Written by opwright from {library.root / 'op.py'}: edit that file, not this one.\n"


def _written(path: Path, text: str) -> Path:
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)
    return path
