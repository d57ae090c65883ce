"""Compares the bytecode of Python sources."""

from __future__ import annotations

import types


def is_same_bytecode(one: bytes, other: bytes) -> bool:
    """Whether two sources compile to the same instructions, regardless of line and column numbers.

    Raises:
        SyntaxError: one does not compile.
    """
    return _instructions(compile(one, "op.py", "exec")) == _instructions(compile(other, "op.py", "exec"))


def _instructions(code: types.CodeType) -> tuple[object, ...]:
    constants = tuple(
        _instructions(constant) if isinstance(constant, types.CodeType) else (type(constant), constant)
        for constant in code.co_consts
    )
    return (code.co_name, code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
