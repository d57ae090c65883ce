from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

import opwright
from opwright.toolchain import devices
from opwright.toolchain.compiler import NVCC_VARIABLES
from opwright.toolchain.devices import DEVICES, devices_of
from opwright.toolchain.pytorch import find_pytorch

if TYPE_CHECKING:
    from pathlib import Path


def test_a_library_without_cuda_sources_is_checked_only_on_the_cpu() -> None:
    assert devices_of(opwright.Library("mine")) == ["cpu"]
    assert DEVICES[0] == "cpu"


@pytest.mark.parametrize(
    ("built_for", "nvcc", "gpu", "why"),
    [
        (None, True, True, "this PyTorch is a CPU build; --cuda compiles them anyway"),
        ("13.0", True, False, ""),
        ("13.0", False, True, ""),  # an error then names the missing nvcc
        ("13.0", False, False, "this machine has neither nvcc nor a GPU; --cuda requires nvcc"),
    ],
)
def test_cuda_sources_are_left_out_only_where_they_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built_for: str | None, nvcc: bool, gpu: bool, why: str
) -> None:
    for name in NVCC_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    program, driver = tmp_path / "nvcc", tmp_path / "driver"
    for path in (program, driver):
        path.touch(mode=0o755)
    monkeypatch.setattr("shutil.which", lambda *_, **__: str(program) if nvcc else None)
    monkeypatch.setattr(devices, "_DRIVER", (driver if gpu else tmp_path / "missing",))
    pytorch = dataclasses.replace(find_pytorch(), cuda=built_for)
    monkeypatch.setattr(devices, "find_pytorch", lambda: pytorch)
    assert devices.why_no_cuda() == why
