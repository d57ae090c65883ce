"""Computes the coefficients of `opwright/simd/coefficients.h`.

    python benchmarks/vectors/fit.py > src/opwright/include/opwright/simd/coefficients.h

Each polynomial minimizes the largest weighted error over the interval for its degree (Remez, "Sur la détermination des
polynômes d'approximation de degré donnée", 1934), computed with 60 digits. A line for each on stderr has the largest
remaining error, in units in the last place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import mpmath
from mpmath import mpf

Function = Callable[[mpf], mpf]
ROUNDS = 12
POINTS = 40  # between two neighbouring extrema
NOTHING = mpf(10) ** -15  # closer to zero than this, terms cancel, and nothing is fitted

mpmath.mp.dps = 60


@dataclass(frozen=True)
class Polynomial:
    """A polynomial to fit.

    Attributes:
        name: the name of the constant in C++.
        comment: the comment in the header.
        degree: the degree of the polynomial.
        low: the smallest argument.
        high: the largest argument.
        function: the function to approximate.
        weight: the factor of an error of the polynomial: the relative error of the result for an error of 1.
        number: "float" or "double".
    """

    name: str
    comment: str
    degree: int
    low: mpf
    high: mpf
    function: Function
    weight: Function
    number: str


def fit(wanted: Polynomial) -> tuple[list[mpf], mpf]:
    """Returns the coefficients, the constant one first, and the largest weighted error."""
    count = wanted.degree + 2
    middle, half = (wanted.high + wanted.low) / 2, (wanted.high - wanted.low) / 2
    points = [middle - half * mpmath.cos(mpmath.pi * k / (count - 1)) for k in range(count)]
    # Where the weight is zero, there is nothing to fit.
    points = [point + (half / 100 if abs(wanted.weight(point)) < NOTHING else 0) for point in points]
    coefficients: list[mpf] = []
    largest = mpf(0)
    for _ in range(ROUNDS):
        matrix = mpmath.matrix(count, count)
        values = mpmath.matrix(count, 1)
        for row, point in enumerate(points):
            for column in range(count - 1):
                matrix[row, column] = point**column
            matrix[row, count - 1] = (-1) ** row / wanted.weight(point)
            values[row] = wanted.function(point)
        solution = mpmath.lu_solve(matrix, values)
        coefficients = list(solution)[:-1]
        points, largest = extrema(wanted, coefficients, points)
    return coefficients, largest


def extrema(wanted: Polynomial, coefficients: list[mpf], points: list[mpf]) -> tuple[list[mpf], mpf]:
    """Returns the extrema of the weighted error, one between each two changes of its sign."""

    def error(x: mpf) -> mpf:
        return (mpmath.polyval(coefficients[::-1], x) - wanted.function(x)) * wanted.weight(x)

    edges = [wanted.low, *points, wanted.high]
    grid = [a + (b - a) * k / POINTS for a, b in pairwise(edges) if b > a for k in range(POINTS)]
    grid.append(wanted.high)
    errors = [error(x) for x in grid]
    found: list[tuple[mpf, mpf]] = []
    for x, value in zip(grid, errors, strict=True):
        if abs(value) < NOTHING**2:
            continue
        if found and (found[-1][1] > 0) == (value > 0):
            if abs(value) > abs(found[-1][1]):
                found[-1] = (x, value)
        else:
            found.append((x, value))
    while len(found) > len(points):  # drop the smaller end
        found.pop(0 if abs(found[0][1]) < abs(found[-1][1]) else -1)
    largest = max(abs(value) for _, value in found)
    return ([x for x, _ in found] if len(found) == len(points) else points), largest


def tail_of_exp(x: mpf) -> mpf:
    """Returns (exp(x) - 1 - x) / x^2."""
    return (mpmath.expm1(x) - x) / x**2 if abs(x) > NOTHING else mpf(1) / 2


def tail_of_log(x: mpf) -> mpf:
    """Returns (log(1 + x) - x + x^2 / 2) / x^3."""
    return (mpmath.log1p(x) - x + x**2 / 2) / x**3 if abs(x) > NOTHING else mpf(1) / 3


def tail_of_atanh(z: mpf) -> mpf:
    """Returns (2 atanh(s) - 2 s) / s^3 with z = s^2."""
    s = mpmath.sqrt(z)
    return (2 * mpmath.atanh(s) - 2 * s) / s**3 if z > NOTHING else mpf(2) / 3


def tail_of_erf(x: mpf) -> mpf:
    """Returns (-log(1 - erf(x)) - 2 x / sqrt(pi)) / x^2."""
    slope = 2 / mpmath.sqrt(mpmath.pi)
    return (-mpmath.log1p(-mpmath.erf(x)) - slope * x) / x**2 if x > NOTHING else slope**2 / 2


def weight_of_erf(x: mpf) -> mpf:
    """Returns the relative error of erf(x) for an error of 1 in the above, which is scaled by x^2 and subtracted."""
    return x**2 * mpmath.erfc(x) / mpmath.erf(x) if x > NOTHING else mpf(0)


def polynomials() -> list[Polynomial]:
    """Every polynomial of the header."""
    ln2 = mpmath.log(2)
    slack = mpf("1.001")
    found = []
    for number, of_exp, of_erf, most in (("float", 4, 7, mpf(4)), ("double", 9, 22, mpf(6))):
        found.append(
            Polynomial(
                "exp_tail",
                "(exp(x) - 1 - x) / x^2, for |x| <= log(2) / 2",
                of_exp,
                -ln2 / 2 * slack,
                ln2 / 2 * slack,
                tail_of_exp,
                lambda x: x**2 / mpmath.exp(x),
                number,
            )
        )
        found.append(
            Polynomial(
                "erf_tail",
                f"(-log(1 - erf(x)) - 2 x / sqrt(pi)) / x^2, for 0 <= x <= {mpmath.nstr(most, 3)}",
                of_erf,
                mpf(0),
                most,
                tail_of_erf,
                weight_of_erf,
                number,
            )
        )
    root = mpmath.sqrt(2)
    found.append(
        Polynomial(
            "log_tail",
            "(log(1 + x) - x + x^2 / 2) / x^3, for sqrt(1/2) <= 1 + x <= sqrt(2)",
            8,
            1 / root - 1,
            root - 1,
            tail_of_log,
            lambda x: x**3 / mpmath.log1p(x) if abs(x) > NOTHING else mpf(0),
            "float",
        )
    )
    farthest = ((root - 1) / (root + 1)) ** 2
    found.append(
        Polynomial(
            "log_tail",
            "(2 atanh(s) - 2 s) / s^3 by s^2, for s = (m - 1) / (m + 1) and sqrt(1/2) <= m <= sqrt(2)",
            6,
            mpf(0),
            farthest * slack,
            tail_of_atanh,
            lambda z: z / 2,
            "double",
        )
    )
    return found


def written(number: str, coefficient: mpf) -> str:
    """A coefficient, rounded to its type, written exactly."""
    digits = 24 if number == "float" else 53
    scale = mpf(2) ** (digits - 1 - int(mpmath.floor(mpmath.log(abs(coefficient), 2))))
    mantissa, exponent = float(mpmath.nint(coefficient * scale) / scale).hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}{'f' if number == 'float' else ''}"


def main() -> None:
    """Fit and print."""
    print(HEAD, end="")
    for number in ("float", "double"):
        print(f"\ntemplate <>\nstruct Coefficients<{number}> {{")
        for wanted in (one for one in polynomials() if one.number == number):
            coefficients, error = fit(wanted)
            values = ",\n        ".join(written(number, c) for c in coefficients)
            print(f"    // {wanted.comment}")
            print(f"    static constexpr {number} {wanted.name}[] = {{\n        {values},\n    }};")
            unit = mpf(2) ** (-23 if number == "float" else -52)
            print(f"{number} {wanted.name}: {mpmath.nstr(error / unit, 3)} units", file=sys.stderr)
        print("};")
    print(FOOT, end="")


HEAD = """\
// The polynomials of simd/functions.h, the coefficient of the lowest power first. `python benchmarks/vectors/fit.py`
// prints this file.
#pragma once

#include <opwright/visibility.h>

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {
namespace detail {

template <class Number>
struct Coefficients;
"""
FOOT = """
}  // namespace detail
}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN
"""

if __name__ == "__main__":
    main()
