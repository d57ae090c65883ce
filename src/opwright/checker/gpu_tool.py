"""Runs the process of an operator under a tool of NVIDIA's compute-sanitizer.

A process runs under one tool, which checks the kernels of the library and writes its reports to a file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opwright.toolchain.compute_sanitizer import find_compute_sanitizer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from opwright.builder.plan import Plan

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")

# Gives each tensor a separate allocation. Otherwise an access past its end may hit another part of the same block of
# PyTorch's allocator, and reused memory counts as initialized.
ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
# Bytes between two allocations, which would otherwise often be adjacent.
PADDING = 512
# The maximum number of reports. A fault is reported once per thread, so a low limit would hide faults in other places.
_MOST_REPORTS = 1000
# The tool waits for the first CUDA call, which follows the import of PyTorch: slow on a busy machine.
_LONGEST_START_S = 600
# Frames of the host, which show whether the library itself made a CUDA call that failed.
_MOST_FRAMES = 12
# With more names, the command line would become too long, so the tool checks all kernels.
_MOST_KERNELS = 1000


def with_lines(plan: Plan) -> Plan:
    """`plan` with line information in its CUDA code, which is still optimized."""
    return replace(plan, cuda_cflags=(*plan.cuda_cflags, "-lineinfo"))


def command(tool: str, log: Path, kernels: Sequence[str]) -> list[str]:
    """The prefix of the command line of a process that runs under `tool`.

    Args:
        tool: one of `TOOLS`.
        log: the file for its reports.
        kernels: the mangled names of the library's kernels.

    Raises:
        ToolchainError: compute-sanitizer is missing.
    """
    # initcheck must see every write to memory, so it checks PyTorch's kernels as well.
    watched = () if tool == "initcheck" or len(kernels) > _MOST_KERNELS else kernels
    is_memcheck = tool == "memcheck"
    return [
        *(str(find_compute_sanitizer()), "--tool", tool, "--log-file", str(log).replace("%", "%%")),
        *("--target-processes", "application-only", "--launch-timeout", str(_LONGEST_START_S)),
        *("--require-cuda-init", "no", "--check-exit-code", "no", "--print-limit", str(_MOST_REPORTS)),
        *("--demangle", "no", "--strip-paths", "no", "--num-callers-host", str(_MOST_FRAMES)),
        *("--show-backtrace", "yes" if is_memcheck else "device"),
        *(("--padding", str(PADDING), "--report-api-errors", "explicit") if is_memcheck else ()),
        # The check itself copies whole tensors to the CPU, including memory that the operator may leave uninitialized.
        *(("--check-api-memory-access", "no") if tool == "initcheck" else ()),
        *(word for name in watched for word in ("--kernel-name", f"kne={name}")),
    ]


def again(tool: str, code: str) -> str:
    """A repro, with a comment that shows how to run it under `tool`."""
    padding = f" --padding {PADDING}" if tool == "memcheck" else ""
    setting = " ".join(f"{name}={value}" for name, value in ENVIRONMENT.items())
    return f"# save to a file and run: {setting} compute-sanitizer --tool {tool}{padding} python FILE\n{code}"
