"""Builds for a debugger, which gdb steps through in a Python process."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import opwright

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.needs("gdb")

OP = """
import opwright
from torch import Tensor
library = opwright.Library("stepped", sources=["kernel.cpp"], cflags=["-O2"])
@library.op
def scale(x: Tensor, factor: float) -> Tensor:
    return factor * x
"""
KERNEL = """\
#include <opwright/op.h>
#include <opwright/parallel.h>

opwright::Tensor scale(const opwright::Tensor& x, double factor) {
    const int64_t count = x.numel();
    const double doubled = 2 * factor;
    return opwright::elementwise<float>(
        [=](auto element) OPWRIGHT_INLINE {
            return element * static_cast<float>(factor);
        },
        x);
}

OPWRIGHT_IMPL(stepped, CPU, m) { m.impl("scale", OPWRIGHT_FN(scale)); }
"""
CALL = """
import torch
torch.ops.load_library({path!r})
print(torch.ops.stepped.scale(torch.tensor([1.25, 2.5]), 3.0))
"""
INLINE = """\
#include <opwright/op.h>
int64_t twice(int64_t number) {
    const int64_t result = 2 * number;
    return result;
}
OPWRIGHT_LIBRARY(stepped_inline, m) { m.def("twice", OPWRIGHT_FN(twice)); }
"""


def gdb(program: Path, commands: Sequence[str]) -> str:
    """The output of gdb while it runs a Python program."""
    settings = ("set pagination off", "set breakpoint pending on", "set auto-load off", "set debuginfod enabled off")
    words = [word for command in (*settings, *commands) for word in ("-ex", command)]
    done = subprocess.run(
        ["gdb", "-nx", "-batch", *words, "--args", sys.executable, str(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.stdout + done.stderr


@pytest.mark.sample(of="long")
def test_gdb_stops_in_a_kernel_steps_and_prints_its_variables(tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text(OP)
    (tmp_path / "kernel.cpp").write_text(KERNEL)
    optimized, built = opwright.build(tmp_path), opwright.build(tmp_path, debug=True)
    assert built != optimized
    assert opwright.build(tmp_path, debug=True) == built
    program = tmp_path / "call.py"
    program.write_text(CALL.format(path=str(built)))
    printed = gdb(
        program,
        [
            *("break scale", "run", "print factor", "next", "next", "print doubled", "print count"),
            # Inside the formula, where an element is a SIMD vector.
            *("break kernel.cpp:9", "continue", "print element", "info source", "delete", "continue"),
        ],
    )
    assert "scale (x=..., factor=3) at" in printed, printed
    assert "$1 = 3\n" in printed
    assert "$2 = 6\n" in printed
    assert "$3 = 2\n" in printed
    assert "$4 = {lanes_ = {1.25, 2.5" in printed
    assert f"Located in {tmp_path}/kernel.cpp" in printed
    assert "tensor([3.7500, 7.5000])" in printed


@pytest.mark.sample(of="long")
def test_gdb_shows_the_lines_of_an_inline_source(tmp_path: Path) -> None:
    program = tmp_path / "call.py"
    program.write_text(
        "import opwright, torch\n"
        f"opwright.load_inline('stepped_inline', {INLINE!r}, extra_cflags=['-O0', '-g'])\n"
        "print(torch.ops.stepped_inline.twice(21))\n"
    )
    printed = gdb(program, ["break twice", "run", "next", "print result", "step", "list 2,5"])
    assert "twice (number=21) at" in printed, printed
    assert "main.cpp:3\n3\t    const int64_t result = 2 * number;" in printed
    assert "4\t    return result;\n$1 = 42\n" in printed
    assert "2\tint64_t twice(int64_t number) {\n3\t" in printed
