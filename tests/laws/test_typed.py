"""The types of opwright in users' code, as mypy checks them in strict mode."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from opwright.scaffold.create import create
from opwright.scaffold.flavour import Flavour

WHOLE = """
from collections.abc import Iterator

import opwright
import torch
from torch import Tensor

library = opwright.Library("mine")


@library.op(differentiable=("x",), tolerance={torch.uint8: 1})
def scale(x: Tensor, factor: float = 2.0) -> Tensor:
    return x * factor


@scale.samples(dtypes=(torch.float64,))
def _(make: opwright.Make) -> Iterator[tuple[Tensor, float] | opwright.Sample]:
    yield make.randn(make.size(16), 33), 2.5
    yield make.call(make.rand(3), factor=2.0)


@scale.sweep(gradients=("x",))
def _(make: opwright.Make) -> Iterator[tuple[str, tuple[Tensor, float]]]:
    yield "1024", (make.randn(1024), 2.5)


@scale.floor("one copy")
def copied(x: Tensor, factor: float = 2.0) -> Tensor:
    return x.clone()


@scale.fake
def scale_fake(x: Tensor, factor: float = 2.0) -> Tensor:
    return torch.empty_like(x)


@scale.oracle
def scale_oracle(x: Tensor, factor: float = 2.0) -> Tensor:
    return x.double() * factor


@scale.backward(saves=("factor",))
def scale_backward(grad: Tensor, factor: float) -> Tensor:
    return grad * factor


@library.op
def norm(x: Tensor) -> Tensor:
    return x * x.square().mean(-1, keepdim=True).rsqrt()


@norm.for_training
def norm_with_scale(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = x.square().mean(-1, keepdim=True).rsqrt()
    return x * scale, scale


described: opwright.Op = norm_with_scale
copy: Tensor = copied(torch.ones(2))


def use(folder: str) -> None:
    loaded = opwright.open(folder)
    loaded.ops.scale(torch.ones(2))
    if not opwright.check(folder, runtimes=["eager"]).passed:
        opwright.build(folder)
    timings = opwright.measure({"eager": lambda: torch.ones(2)}, rule=opwright.SpreadRule(seconds=1))
    print(timings["eager"].median)
"""
SETUP = """
from opwright.cpp_extension import BuildExtension, CppExtension, OpExtension, load
from setuptools import setup

setup(
    ext_modules=[OpExtension("mine.ops", library="ops"), CppExtension("mine._C", ["c.cpp"], libraries=["z"])],
    cmdclass={"build_ext": BuildExtension.with_options(no_python_abi_suffix=True)},
)
load("name", ["a.cpp"], extra_cflags=["-O2"])
"""
WRONG = """
import opwright
from opwright.cpp_extension import CppExtenson
from torch import Tensor

library = opwright.Libary("mine")
other = opwright.Library("mine", sources=3)


@other.op(vmap="yes")
def negate(x: Tensor) -> Tensor:
    return -x


@other.op
def scale(x: Tensor) -> Tensor:
    return x


@scale.samples
def _(make: int) -> int:
    return make
"""


@pytest.mark.sample(of="long")
def test_mypy_in_strict_mode_accepts_correct_code_and_rejects_errors(tmp_path: Path) -> None:
    for flavour in Flavour:
        create(tmp_path / flavour.name.lower(), flavour)
    for name, text in (("whole/op.py", WHOLE), ("package/setup.py", SETUP), ("wrong/op.py", WRONG)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    options = ["--strict", "--explicit-package-bases", "--no-error-summary", "--no-color-output", "--config-file="]
    # A single run: reading PyTorch's types takes most of its time.
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "."], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (1, "")
    assert [line for line in ended.stdout.splitlines() if not line.startswith("wrong/op.py:")] == []
    for fault in (
        'Module "opwright.cpp_extension" has no attribute "CppExtenson"',
        'Module has no attribute "Libary"',
        'Argument "sources" to "Library" has incompatible type "int"',
        'No overload variant of "op" of "Library"',
        'Argument 1 to "samples" of "ClaimedOp" has incompatible type',
    ):
        assert fault in ended.stdout
