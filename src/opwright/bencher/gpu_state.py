"""The state of the GPU around a cell: its clocks, and what throttles them, as nvidia-smi reports them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from opwright.errors import ToolchainError
from opwright.toolchain.run import run

# Drivers before 535 support only the second name.
_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_QUERY = ("clocks.sm", "clocks.max.sm", "clocks.mem", "pstate")
_LIMIT_S = 10.0
# The bits of the reasons, from NVML's header. Its first bit is set if the GPU is idle, which is not throttling.
_BITS = {
    0x2: "clocks set by the user",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clocks",
}


@dataclass(frozen=True)
class GpuState:
    """The state of a GPU at one time.

    Attributes:
        sm_mhz: the clock of its multiprocessors.
        sm_max_mhz: their maximum clock.
        memory_mhz: the clock of its memory.
        power_state: its performance state, from `P0`, the fastest, to `P15`.
        reasons: what throttles the clocks; empty if nothing does.
    """

    sm_mhz: int
    sm_max_mhz: int
    memory_mhz: int
    power_state: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        held = f", throttled by: {', '.join(self.reasons)}" if self.reasons else ""
        return f"SM {self.sm_mhz} of {self.sm_max_mhz} MHz, memory {self.memory_mhz} MHz, {self.power_state}{held}"


def gpu_state() -> GpuState | None:
    """The current state of the current GPU; None without nvidia-smi, or if it does not report the state.

    Starts a program, which takes some tens of milliseconds.
    """
    gpu = f"GPU-{torch.cuda.get_device_properties().uuid}"
    for reasons in _REASONS:
        fields = ",".join((*_QUERY, reasons))
        command = ["nvidia-smi", f"--id={gpu}", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
        try:
            completed = run(command, check=False, timeout_s=_LIMIT_S)
        except ToolchainError:
            return None
        if completed.exit_code == 0:
            return parse_state(completed.output)
    return None


def parse_state(line: str) -> GpuState | None:
    """The state from a line of nvidia-smi; None if this GPU lacks one of its fields."""
    try:
        sm, sm_max, memory, power_state, reasons = (field.strip() for field in line.split(","))
        bits = int(reasons, 16)
        return GpuState(
            int(sm), int(sm_max), int(memory), power_state, tuple(words for bit, words in _BITS.items() if bits & bit)
        )
    except ValueError:
        return None
