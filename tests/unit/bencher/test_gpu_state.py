from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import torch

from opwright.bencher.gpu_state import GpuState, gpu_state, parse_state

if TYPE_CHECKING:
    from pathlib import Path

STATE = GpuState(1755, 1980, 2619, "P0", ("software power cap", "hardware thermal slowdown"))


def test_a_line_of_nvidia_smi_is_parsed_into_clocks_and_throttle_reasons() -> None:
    assert parse_state("1755, 1980, 2619, P0, 0x0000000000000044\n") == STATE
    assert str(STATE) == (
        "SM 1755 of 1980 MHz, memory 2619 MHz, P0, throttled by: software power cap, hardware thermal slowdown"
    )
    idle = parse_state("345, 1980, 2619, P0, 0x0000000000000001\n")
    assert idle is not None
    assert str(idle) == "SM 345 of 1980 MHz, memory 2619 MHz, P0"


@pytest.mark.parametrize("line", ["", "[N/A], 1980, 2619, P0, 0x0\n", "No devices were found\n", "1, 2, 3, P0\n"])
def test_a_line_with_missing_fields_is_an_unknown_state(line: str) -> None:
    assert parse_state(line) is None


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH besides the shell's; the GPU has a simulated identity."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), "/usr/bin", "/bin"]))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda: SimpleNamespace(uuid="12ab"))
    return tmp_path


def write_nvidia_smi(folder: Path, body: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)


def test_nvidia_smi_queries_the_current_gpu_by_its_identity(path: Path) -> None:
    write_nvidia_smi(path, f'echo "$@" > {path}/asked\necho "1755, 1980, 2619, P0, 0x44"')
    assert gpu_state() == STATE
    assert (path / "asked").read_text().split() == [
        "--id=GPU-12ab",
        "--query-gpu=clocks.sm,clocks.max.sm,clocks.mem,pstate,clocks_event_reasons.active",
        "--format=csv,noheader,nounits",
    ]


def test_an_old_driver_is_queried_with_the_old_name_of_the_reasons(path: Path) -> None:
    write_nvidia_smi(path, 'case "$2" in *event*) exit 2;; *) echo "1755, 1980, 2619, P0, 0x44";; esac')
    assert gpu_state() == STATE


def test_without_a_working_nvidia_smi_the_state_is_unknown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_nvidia_smi(path, "exit 9")
    assert gpu_state() is None
    monkeypatch.setenv("PATH", str(path / "nowhere"))
    assert gpu_state() is None
