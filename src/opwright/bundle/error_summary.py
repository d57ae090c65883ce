"""What an exception of the user's own code says, and what to do where an operator is missing."""

from __future__ import annotations

import re

from opwright.spec.difference import first_line

_NO_OPERATOR = re.compile(
    r"'_OpNamespace' '(\w+)' object has no attribute '(\w+)'"  # Python's torch.ops
    r"|Unknown builtin op: (\w+)::(\w+)"  # TorchScript
    r"|Could not find schema for (\w+)::(\w+)"  # packages
)


def cause(error: BaseException) -> str:
    """The first line of what `error` says; where it misses an operator, with the way to name its library."""
    missing = _NO_OPERATOR.search(str(error))
    if missing is None:
        return first_line(error)
    namespace, name = (part for part in missing.groups() if part is not None)
    return f"the operator {namespace}::{name} is not here: name the library that defines it with --ops"
