from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.checker.mutants.bytecode import is_same_bytecode
from opwright.checker.mutants.python import python_mutants

if TYPE_CHECKING:
    from tests.unit.conftest import Describe

KERNEL = """
@library.op
def scale(x: Tensor, factor: float) -> Tensor:
    return shared(x) * factor

def shared(x):
    return x + 1 - 1

def helper(x, count):
    {line}
    return x

@scale.kernel(device="cpu")
def _(x, factor):
    return helper(shared(x), 3) * factor
"""


def changes(describe: Describe, line: str) -> set[str]:
    library = describe(KERNEL.format(line=line))
    return {mutant.name.partition(": ")[2] for mutant in python_mutants(library)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("y = x < count", "comparison: < -> <="),
        ("y = x + count", "arithmetic: + -> -"),
        ("x += 1", "arithmetic: += -> -="),
        ("x += 1", "dropped statement: x += 1 -> pass"),
        ("x[0] = 1", "dropped statement: x[0] = 1 -> pass"),
        ("y = -x", "arithmetic: -x -> x"),
        ("y = x and count", "logic: and -> or"),
        ("y = not x", "logic: not x -> x"),
        ("y = 1 if x else 2", "condition: 1 if x else 2 -> 2 if x else 1"),
        ("y = x[count, 0]", "index order: count, 0 -> 0, count"),
        ("y = max(x, count)", "swapped arguments: x, count -> count, x"),
        ("y = True", "constant: True -> False"),
        ("y = 1.5", "constant: 1.5 -> 1.515"),
        ("if x: raise ValueError(1 + 1)", "removed check: if x: raise ValueError(1 + 1) -> pass"),
        ("print(x)", "dropped statement: print(x) -> pass"),
    ],
)
def test_expressions_and_statements_are_changed(describe: Describe, line: str, expected: str) -> None:
    assert expected in changes(describe, line)


def test_an_error_message_is_left_unchanged(describe: Describe) -> None:
    assert "arithmetic: + -> -" not in changes(describe, "if x: raise ValueError(1 + 1)")


def test_the_reference_and_functions_that_it_shares_with_the_kernel_are_left_unchanged(describe: Describe) -> None:
    library = describe(KERNEL.format(line="pass"))
    lines = {mutant.line for mutant in python_mutants(library)}
    text = (library.root / "op.py").read_text().splitlines()
    assert {text[line - 1].strip() for line in lines} == {"return helper(shared(x), 3) * factor"}


def test_a_library_without_python_kernels_has_no_such_mutants(describe: Describe) -> None:
    assert python_mutants(describe("@library.op\ndef f(x: Tensor) -> Tensor:\n    return x + 1\n")) == []


def test_equal_bytecode_is_detected() -> None:
    assert is_same_bytecode(b"x = 1 + 1", b"x   =   2")
    assert is_same_bytecode(b"def f():\n    return 1 + 1", b"def f():\n    return   2")
    assert not is_same_bytecode(b"x = 1", b"x = 1.0")
    assert not is_same_bytecode(b"x = 1", b"x = True")
    assert not is_same_bytecode(b"x = 0.0", b"x = -0.0")
    assert not is_same_bytecode(b"def f(a, b): pass", b"def f(a, *, b): pass")
