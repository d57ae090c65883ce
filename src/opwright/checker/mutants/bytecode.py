"""Compares the bytecode of Python sources."""

from __future__ import annotations

import dis
import types


def is_same_bytecode(one: bytes, other: bytes) -> bool:
    """Whether two sources compile to the same instructions, regardless of line and column numbers.

    Raises:
        SyntaxError: one does not compile.
    """
    return _instructions(compile(one, "op.py", "exec")) == _instructions(compile(other, "op.py", "exec"))


def _instructions(code: types.CodeType) -> tuple[object, ...]:
    # Not `co_consts`: since Python 3.14, it also contains the constants of expressions that were evaluated in advance.
    instructions = [
        (found.opname, _instructions(found.argval) if isinstance(found.argval, types.CodeType) else repr(found.argval))
        for found in dis.get_instructions(code)
    ]
    parameters = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_varnames)
    return (code.co_name, parameters, instructions)
