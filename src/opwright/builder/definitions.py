"""The C++ that defines a library's operators, from the schemas that its op.py gives them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opwright.spec import Library

HEADER_NAME = "definitions.h"
SOURCE_NAME = "definitions.cpp"


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


def _head(library: Library) -> str:
    return f"// Written by opwright from {library.root / 'op.py'}: edit that file, not this one.\n"
