"""The C++ that defines a library's operators, from the schemas that its op.py gives them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opwright.spec import Library, Op
    from opwright.spec.op import Backward

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
{_gradients(library)}"""


def _gradients(library: Library) -> str:
    """C++ that tells the autograd bridge (autograd/bridge.cpp reads it) which operator computes whose gradient."""
    lines = [_gradient(op, op.gradient) for op in library.ops.values() if op.gradient is not None]
    if not lines:
        return ""
    text = "\n    ".join(json.dumps(f"{line}\n") for line in lines)
    return f"""
extern "C" __attribute__((visibility("default"))) const char* opwright_gradients() {{
    return {text};
}}
"""


def _gradient(op: Op, gradient: Backward) -> str:
    forward = gradient.forward  # the operator itself, or its training form
    places = {parameter.name: str(at) for at, parameter in enumerate(forward.parameters)}
    results = {name: f"r{at}" for at, name in enumerate(gradient.result_names)}
    differentiable = ",".join(places[name] for name in forward.differentiable)
    saves = ",".join({**results, **places}[name] for name in gradient.saves) or "-"
    said = "1" if gradient.takes_wanted else "0"
    return f"{op.qualified_name} {forward.qualified_name} {gradient.op.qualified_name} {differentiable} {saves} {said}"


def _head(library: Library) -> str:
    return f"// Written by opwright from {library.root / 'op.py'}: edit that file, not this one.\n"
