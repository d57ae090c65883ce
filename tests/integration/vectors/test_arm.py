"""The vectors on an ARM processor, in an emulator."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

INCLUDE = Path(__file__).parents[3] / "src/opwright/include"
SOURCE = r"""
#include <opwright/simd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

namespace simd = opwright::simd;

template <class Number, class Formula>
struct Apply {
    const Number* from;
    Number* into;
    Formula formula;

    template <int bytes>
    OPWRIGHT_INLINE void run(int64_t begin, int64_t end) const {
        using V = simd::Vector<Number, bytes>;
        for (int64_t i = begin; i < end; i += V::lanes) {
            const int64_t count = std::min<int64_t>(V::lanes, end - i);
            V(formula(V::load(from + i, count))).store(into + i, count);
        }
    }
};

template <class Number, class Formula>
void compare(const char* name, const Formula& formula, double (*exact)(double)) {
    std::vector<Number> from;
    for (int i = 1; i < 10000; ++i) from.push_back(Number(0.0013 * i));
    std::vector<Number> into(from.size());
    simd::run(Apply<Number, Formula>{from.data(), into.data(), formula}, 0, from.size());
    double worst = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        worst = std::max(worst, std::abs(into[i] / exact(from[i]) - 1) / std::numeric_limits<Number>::epsilon());
    }
    std::printf("%s %s\n", name, worst < 3 ? "right" : "wrong");
}

double one_and_floor(double x) {
    return 1 + std::floor(x);
}

template <class Number>
void compare_all() {
    compare<Number>("exp", [](auto x) OPWRIGHT_INLINE { return exp(x); }, std::exp);
    compare<Number>("expm1", [](auto x) OPWRIGHT_INLINE { return expm1(x); }, std::expm1);
    compare<Number>("log", [](auto x) OPWRIGHT_INLINE { return log(x); }, std::log);
    compare<Number>("tanh", [](auto x) OPWRIGHT_INLINE { return tanh(x); }, std::tanh);
    compare<Number>("erf", [](auto x) OPWRIGHT_INLINE { return erf(x); }, std::erf);
    compare<Number>("sqrt", [](auto x) OPWRIGHT_INLINE { return sqrt(x); }, std::sqrt);
    compare<Number>("floor", [](auto x) OPWRIGHT_INLINE { return 1 + floor(x); }, one_and_floor);
}

int main() {
    compare_all<float>();
    compare_all<double>();
}
"""


@pytest.mark.needs("arm")
def test_vectors_are_correct_with_neon(tmp_path: Path) -> None:
    (tmp_path / "neon.cpp").write_text(SOURCE)
    compiler = ("aarch64-linux-gnu-g++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-static", f"-I{INCLUDE}")
    subprocess.run([*compiler, "-o", tmp_path / "neon", tmp_path / "neon.cpp"], check=True)
    ran = subprocess.run(["qemu-aarch64", tmp_path / "neon"], capture_output=True, text=True, check=True)
    assert len(ran.stdout.splitlines()) == 14
    assert {line.split()[1] for line in ran.stdout.splitlines()} == {"right"}, ran.stdout
