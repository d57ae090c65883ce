"""The functions of vectors are as accurate over all numbers as their header says."""

from __future__ import annotations

import math
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import pytest
import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor
    from torch._ops import _OpNamespace as Ops

pytestmark = pytest.mark.sample(of="vectors", by="file")

# The largest errors in simd/functions.h, in units in the last place, and the increase without fma.
UNITS = {"exp": 1.1, "expm1": 1.6, "log": 0.8, "sigmoid": 2.4, "tanh": 2.6, "erf": 2.4, "sqrt": 0.5}
WITHOUT_FMA = 0.5
EXACT: dict[str, Callable[[Any], Any]] = {
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "tanh": mpmath.tanh,
    "erf": mpmath.erf,
    "sqrt": mpmath.sqrt,
}
IN_FLOAT64: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log": torch.log,
    "sigmoid": lambda x: torch.where(
        x < 0, x.exp() / (1 + x.exp()), 1 / (1 + (-x).exp())
    ),  # including subnormal results
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sqrt": torch.sqrt,
}
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e-45, 1e-39, -1e-39, 1e-310, -1e-310]
SPECIAL += [88.7, 88.73, 89.0, -87.4, -103.9, -104.1, 709.7, 709.79, 711.0, -708.5, -744.0, -750.0, 3.4e38, -3.4e38]


def units_off(got: Tensor, exact: Tensor) -> float:
    """Returns the largest error in units in the last place, which is constant for subnormal numbers."""
    limits = torch.finfo(got.dtype)
    assert torch.equal(got.isinf(), exact.to(got.dtype).isinf())
    assert torch.equal(got.isnan(), exact.isnan())
    finite = got.isfinite()
    exact, off = exact[finite], (got[finite].double() - exact[finite]).abs()
    _, exponent = np.frexp(exact.abs().clamp_min(limits.tiny).numpy())
    return float((off.numpy() / np.ldexp(limits.eps, exponent - 1)).max())


def apply(ops: Ops, function: str, x: Tensor, instruction_set: str) -> Tensor:
    result: Tensor = ops.apply(function, x, x, x, instruction_set)
    return result


@pytest.mark.parametrize("function", UNITS)
def test_float_is_as_accurate_as_stated_over_all_exponents(ops: Ops, instruction_set: str, function: str) -> None:
    # Every 4093rd number, with every exponent and sign, and more between -110 and 110.
    bits = torch.arange(0, 2**32, 4093).to(torch.uint32).view(torch.float32)
    x = torch.cat([bits[bits.isfinite()], torch.linspace(-110, 110, 300_007), torch.linspace(-6, 6, 300_007)])
    allowed = UNITS[function] + WITHOUT_FMA * (instruction_set == "baseline")
    assert units_off(apply(ops, function, x, instruction_set), IN_FLOAT64[function](x.double())) <= allowed


@cache
def doubles_and_results(function: str) -> tuple[Tensor, list[mpmath.mpf]]:
    """Returns numbers with every exponent and sign, and the function of each."""
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**63), 2**63 - 1, (2000,), generator=generator).view(torch.float64)
    powers = torch.ldexp(torch.ones(2098, dtype=torch.float64), torch.arange(-1074, 1024))
    x = torch.cat([bits[bits.isfinite()], powers, -powers, torch.linspace(-750, 712, 1501, dtype=torch.float64)])
    x = torch.cat([x, torch.linspace(-7, 7, 3001, dtype=torch.float64), torch.linspace(0.5, 1.5, 1001).double()])
    if function in {"log", "sqrt"}:
        x = x[x > 0]
    with mpmath.workprec(150):
        return x, [EXACT[function](mpmath.mpf(number)) for number in x.tolist()]


@pytest.mark.parametrize("function", UNITS)
def test_double_is_as_accurate_as_stated_over_all_exponents(ops: Ops, instruction_set: str, function: str) -> None:
    x, exact = doubles_and_results(function)
    worst = 0.0
    for number, result in zip(exact, apply(ops, function, x, instruction_set).tolist(), strict=True):
        if math.isinf(result):
            assert number > sys.float_info.max
            continue
        unit = math.ulp(max(abs(float(number)), sys.float_info.min))
        worst = max(worst, float(abs(number - result) / unit))
    assert worst <= UNITS[function] + WITHOUT_FMA * (instruction_set == "baseline")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("function", UNITS)
def test_special_values_match_pytorch(ops: Ops, instruction_set: str, function: str, dtype: torch.dtype) -> None:
    x = torch.tensor(SPECIAL, dtype=torch.float64).to(dtype)
    got, exact = apply(ops, function, x, instruction_set), IN_FLOAT64[function](x.double()).to(dtype)
    assert torch.equal(got.isnan(), exact.isnan())
    torch.testing.assert_close(got, exact, rtol=4 * torch.finfo(dtype).eps, atol=4 * 5e-324, equal_nan=True)
    zeros = exact == 0
    assert torch.equal(got == 0, zeros)
    assert torch.equal(torch.signbit(got[zeros]), torch.signbit(exact[zeros]))
