from __future__ import annotations

import opwright
from opwright.toolchain.devices import DEVICES, devices_of


def test_a_library_without_cuda_sources_is_checked_only_on_the_cpu() -> None:
    assert devices_of(opwright.Library("mine")) == ["cpu"]
    assert DEVICES[0] == "cpu"
