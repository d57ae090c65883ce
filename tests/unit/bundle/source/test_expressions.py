from __future__ import annotations

import pytest

from opwright.bundle.source.expressions import check_guard, check_size

SIZES = [
    "Symbol('s77', positive=True, integer=True)",
    "Mul(Integer(8), Symbol('s38', positive=True, integer=True))",
    "Add(Pow(Symbol('s0', integer=True), Integer(2)), Rational(-1, 2), Float('0.5', precision=53))",
    "Piecewise((Integer(1), StrictLessThan(Symbol('u0', integer=True), Integer(2))), (Integer(2), true))",
    "FloorDiv(Max(Integer(1), Symbol('u0')), Integer(2))",
    "2*s77",
    "(s0 + 3)//4*4 - 1",
    "u0",
]
GUARDS = [
    "((3*L['x'].size()[0]) % 5) != 1",
    "L['x'].size()[0] > 4",
    "2 <= L['inputs'][0].size()[1] <= 64 and not L['x']['k'].stride()[0] == -1",
    "max(L['x'].size()[0], 3) ** 2 >= math.floor(L['y'].size()[0] / 2)",
    "L['mode'] == 'fast'",
    "L['flag'] == True or math.isnan(L['scale'])",
]
# Each would run code or compute endlessly, as a size, as a guard or as both.
HOSTILE = [
    "__import__('os').system('true')",
    "().__class__.__base__.__subclasses__()",
    "Symbol.__init__.__globals__",
    "Symbol('s0').__class__",
    "Symbol(name='s0')",
    "Symbol('s0; import os')",
    "Symbol('s0', integer=exec('1'))",
    "Float('__import__')",
    "Integer('1')",
    "sympify('1')",
    "Function('f')(s0)",
    "Lambda(s0, s0)",
    "lambda: 0",
    "[s0 for s0 in ()]",
    "(s0 := 1)",
    "s0 if s0 else s0",
    "f's0'",
    "s0, s1, s2",
    "*s0",
    "eval",
    "exec('1')",
    "open('x', 'w')",
    "getattr(L, 'x')",
    "L.x",
    "L['x'].numpy()",
    "L['x'].size(0)",
    "L['__class__'].tofile('x')",
    "L['x'].size().__class__",
    'L["x"].size()[0] > 4',
    "L['x'].size()[0] > 4 # comment",
    "L['x'].size()[0] > 4; 1",
    "L['x'].size()[0] > 4\nexec('1')",
    "L['x'].size()[0] > 4, exec('1')",
    "L['x'].size()[exec('1')]",
    "math.sqrt.__self__",
    "math.prod([1])",
    "torch.ops.load_library('x')",
    "9**9**9",
    "9**(99)",
    "Pow(Integer(9), Pow(Integer(9), Pow(Integer(9), Integer(9))))",
    "PowByNatural(Integer(9), Symbol('s0'))",
    "9" * 100,
    "(" * 1000 + "s0" + ")" * 1000,
    "-" * 20000 + "1",
    "s0\0",
    "\uff530",  # Python reads it as s0
    "",
]


@pytest.mark.parametrize("text", SIZES)
def test_sizes_that_pytorch_writes_are_accepted(text: str) -> None:
    check_size(text)


@pytest.mark.parametrize("text", GUARDS)
def test_guards_that_pytorch_writes_are_accepted(text: str) -> None:
    check_guard(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_expressions_that_would_run_code_or_compute_endlessly_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"^it has .* as a size$"):
        check_size(text)
    with pytest.raises(ValueError, match=r"^it has .* as a guard$"):
        check_guard(text)


@pytest.mark.parametrize("text", SIZES[:4])
def test_a_guard_is_not_a_size_and_a_size_is_not_a_guard(text: str) -> None:
    with pytest.raises(ValueError, match="as a guard"):
        check_guard(text)
    with pytest.raises(ValueError, match="as a size"):
        check_size(GUARDS[1])
