"""The native code of the op libraries under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("opencv")

FOLDER = Path(__file__).parents[2] / "ops" / "warp_perspective"
COMPILER = shutil.which("g++") or "g++"
FLAGS = '["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g", "-O1"]'

# Every dtype, interpolation and border, for shapes near the widths of vectors, contiguous and not.
SWEEP = """
import sys
import torch
import opwright
ops = opwright.open(sys.argv[1]).ops
generator = torch.Generator().manual_seed(0)
calls = 0
for dtype in (torch.uint8, torch.uint16, torch.int16, torch.float32, torch.float64):
    for interpolation in ("nearest", "linear", "cubic", "lanczos"):
        for border in ("constant", "replicate", "reflect", "wrap", "reflect_101"):
            for shape in ((1, 1), (7, 5), (33, 17, 3), (2, 9, 31, 4), (1, 65, 3, 1)):
                image = (torch.rand(shape, generator=generator) * 200).to(dtype)
                warp = torch.eye(3) + torch.rand(3, 3, generator=generator) * 0.3
                for view in (image, image.transpose(-2, -1) if image.dim() == 2 else image.transpose(-3, -2)):
                    ops.warp_perspective(view, warp, 13, 29, interpolation, True, border, [3.0])
                    calls += 1
image, eye = torch.rand(3, 3), torch.eye(3)
for wrong in ((image[0], eye, 1, 1), (image, eye[:2], 1, 1), (image, eye, 0, 1)):
    try:
        ops.warp_perspective(*wrong)
    except RuntimeError:
        calls += 1
print("calls", calls)
"""
OVERRUN = """
import opwright, torch
from torch import Tensor
library = opwright.Library("overrun", sources=["cpu.cpp"], cflags=FLAGS, ldflags=["-fsanitize=address,undefined"])
@library.op
def last(x: Tensor) -> float:
    return 0.0
"""
OVERRUN_CPP = """
#include <opwright/op.h>
double last(const opwright::Tensor& x) { return x.const_data_ptr<float>()[x.numel()]; }
OPWRIGHT_IMPL(overrun, CPU, m) { m.impl("last", OPWRIGHT_FN(last)); }
"""


def _runtime(name: str) -> str:
    return subprocess.check_output([COMPILER, f"-print-file-name={name}"], text=True).strip()


def _sanitized(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "LD_PRELOAD": f"{_runtime('libasan.so')} {_runtime('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0",
        "CXX": COMPILER,
    }
    return subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.sample(of="long", by="file")
def test_warp_perspective_accesses_only_its_own_memory(tmp_path: Path) -> None:
    (tmp_path / "cpu.cpp").write_bytes((FOLDER / "cpu.cpp").read_bytes())
    original = (FOLDER / "op.py").read_text()
    flags = f'packages=["opencv4"], cflags={FLAGS}, ldflags=["-fsanitize=address,undefined"]'
    sanitized = original.replace('packages=["opencv4"]', flags)
    assert sanitized != original
    (tmp_path / "op.py").write_text(sanitized)
    ran = _sanitized(SWEEP, tmp_path)
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert ran.stdout == "calls 1003\n"


@pytest.mark.sample(of="long", by="file")
def test_an_access_one_element_past_the_end_is_found(tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text(OVERRUN.replace("FLAGS", FLAGS))
    (tmp_path / "cpu.cpp").write_text(OVERRUN_CPP)
    ran = _sanitized("import sys, torch, opwright; opwright.open(sys.argv[1]).ops.last(torch.ones(1000))", tmp_path)
    assert ran.returncode != 0
    assert "heap-buffer-overflow" in ran.stderr
    assert "cpu.cpp:3" in ran.stderr
