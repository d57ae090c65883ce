from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest
import torch

import opwright
from opwright.bencher.replaced import check_replaced
from opwright.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATCHES = {
    "time.perf_counter_ns": "import time; time.perf_counter_ns = lambda: 0",
    "torch.isclose": "torch.isclose = lambda *given, **options: torch.tensor(True)",
    "torch.Tensor.clone": "torch.Tensor.clone = lambda tensor: tensor",
    "torch.cuda.Event.elapsed_time": "torch.cuda.Event.elapsed_time = lambda first, last: 0.0",
    "torch.autograd.grad": "torch.autograd.grad = lambda *given, **options: ()",
}
OP = """
import torch
import opwright
from torch import Tensor

library = opwright.Library("patching")

@library.op
def doubled(x: Tensor) -> Tensor:
    {patch}
    return x * 2

@doubled.samples
def _(make):
    yield make.randn(3)

{at_import}
"""


OWNERS: dict[str, Any] = {
    "time": time,
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.cuda.Event": torch.cuda.Event,
    "torch.autograd": torch.autograd,
}


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Restore all functions of PyTorch and Python after the test."""
    places = [(OWNERS[owner], name) for owner, _, name in (patched.rpartition(".") for patched in PATCHES)]
    before = [vars(owner).get(name) for owner, name in places]
    yield
    for (owner, name), own in zip(places, before, strict=True):
        if own is not None:
            setattr(owner, name, own)
        elif name in vars(owner):
            delattr(owner, name)


def test_functions_that_pytorch_itself_replaces_are_not_reported() -> None:
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    check_replaced("ops/mine")


@pytest.mark.parametrize("name", PATCHES)
def test_a_library_that_replaces_a_clock_or_a_comparison_is_rejected(tmp_path: Path, name: str) -> None:
    (tmp_path / "op.py").write_text(OP.format(patch="", at_import=PATCHES[name]))
    with pytest.raises(SpecError, match=re.escape(f"{name} was replaced, by {tmp_path} or a module that it imports")):
        opwright.bench(tmp_path, rounds=2, compiled=False)


def test_functions_that_a_call_replaces_are_detected_after_the_rounds(tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text(OP.format(patch=PATCHES["torch.isclose"], at_import=""))
    with pytest.raises(SpecError, match=r"torch\.isclose was replaced, by .* remove the assignment"):
        opwright.bench(tmp_path, rounds=2, compiled=False)
