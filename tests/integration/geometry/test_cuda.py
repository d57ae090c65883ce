"""The CUDA source of ops/geometry: compiled if nvcc is installed, and run on a GPU if there is one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import torch

import opwright
from tests.integration.geometry.conftest import FOLDER
from tests.integration.geometry.test_operators import DTYPES, INTERPOLATIONS, PADDINGS, Call

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.loader.open import Loaded


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of only the CUDA source: the CPU source takes as long, and other tests compile it."""
    folder = tmp_path_factory.mktemp("geometry_cuda")
    source = f"sources=[{str(FOLDER / 'cuda.cu')!r}], include_dirs=[{str(FOLDER)!r}]"
    text, count = re.subn(r"sources=\[.*?\]", source, (FOLDER / "op.py").read_text(), count=1)
    assert count == 1
    (folder / "op.py").write_text(text)
    return opwright.build(folder, cuda=True)


@pytest.mark.sample(of="long", by="file")
@pytest.mark.needs("nvcc")
def test_every_operator_has_a_cuda_kernel(built: Path) -> None:
    # Compiling checks that each one matches its schema.
    names = re.findall(r'm\.impl\("(\w+)"', (FOLDER / "cuda.cu").read_text())
    assert sorted(names) == sorted(opwright.spec.library_at(FOLDER).ops)
    assert all(name.encode() + b"\0" in built.read_bytes() for name in names)


@pytest.mark.needs("cuda", "nvcc")
def test_every_runtime_passes_on_the_gpu() -> None:
    report = opwright.check(FOLDER, devices=["cuda"], seed=0)
    assert report.passed, [(cell.op, cell.runtime, cell.failures) for cell in report.cells if cell.failures]


@pytest.mark.needs("cuda", "nvcc")
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_gpu_matches_the_reference(geometry: Loaded, interpolation: str, padding: str, dtype: torch.dtype) -> None:
    call = Call(interpolation=interpolation, padding=padding, dtype=dtype, device="cuda")
    call.compare(geometry)
