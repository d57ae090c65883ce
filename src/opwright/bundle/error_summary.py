"""Summarizes an exception of the user's code in one line, and suggests a fix if an operator is missing."""

from __future__ import annotations

import re

from opwright.spec.difference import first_line

_NO_OPERATOR = re.compile(
    r"'_OpNamespace' '(\w+)' object has no attribute '(\w+)'"  # Python's torch.ops
    r"|Unknown builtin op: (\w+)::(\w+)"  # TorchScript
    r"|Could not find schema for (\w+)::(\w+)"  # packages
)


def error_summary(error: BaseException) -> str:
    """The first line of `error`, or how to name the library of a missing operator."""
    missing = _NO_OPERATOR.search(str(error))
    if missing is None:
        return first_line(error)
    namespace, name = (part for part in missing.groups() if part is not None)
    return f"the operator {namespace}::{name} is not defined: name the library that defines it with --ops"
