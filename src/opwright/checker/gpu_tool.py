"""The tools of NVIDIA's compute-sanitizer: how the process of an operator runs under one of them.

A process takes one tool. It watches the kernels of the library, and writes what it finds to a file.
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

# Each tensor is an allocation of its own. Otherwise an access past the end of one lies inside a block of PyTorch's
# allocator, and memory that is used again counts as initialized.
ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
# Bytes between two allocations, which often follow each other without a gap.
PADDING = 512
# More reports are not written: a fault reports once for each thread, and another place must show too.
_MOST_REPORTS = 1000
# An import of PyTorch, on a busy machine, comes before the first call of CUDA, for which the tool waits.
_LONGEST_START_S = 600
# Frames of the host, which tell whether the library itself made a call of CUDA that failed.
_MOST_FRAMES = 12
# With more names, the command line becomes too long: all kernels are watched then.
_MOST_KERNELS = 1000


def with_lines(plan: Plan) -> Plan:
    """`plan`, with line information in its CUDA code, which is still optimized."""
    return replace(plan, cuda_cflags=(*plan.cuda_cflags, "-lineinfo"))


def command(tool: str, log: Path, kernels: Sequence[str]) -> list[str]:
    """The words before the command line of a process that runs under `tool`.

    Args:
        tool: one of `TOOLS`.
        log: the file for its reports.
        kernels: the mangled names of the library's kernels.

    Raises:
        ToolchainError: compute-sanitizer is missing.
    """
    # initcheck has to see who writes memory, and so it watches PyTorch's kernels as well.
    watched = () if tool == "initcheck" or len(kernels) > _MOST_KERNELS else kernels
    is_memcheck = tool == "memcheck"
    return [
        *(str(find_compute_sanitizer()), "--tool", tool, "--log-file", str(log).replace("%", "%%")),
        *("--target-processes", "application-only", "--launch-timeout", str(_LONGEST_START_S)),
        *("--require-cuda-init", "no", "--check-exit-code", "no", "--print-limit", str(_MOST_REPORTS)),
        *("--demangle", "no", "--strip-paths", "no", "--num-callers-host", str(_MOST_FRAMES)),
        *("--show-backtrace", "yes" if is_memcheck else "device"),
        *(("--padding", str(PADDING), "--report-api-errors", "explicit") if is_memcheck else ()),
        # The check itself copies whole tensors to the CPU, with memory that the operator may leave uninitialized.
        *(("--check-api-memory-access", "no") if tool == "initcheck" else ()),
        *(word for name in watched for word in ("--kernel-name", f"kne={name}")),
    ]


def again(tool: str, code: str) -> str:
    """The lines of a repro, with how to run them under `tool`."""
    padding = f" --padding {PADDING}" if tool == "memcheck" else ""
    setting = " ".join(f"{name}={value}" for name, value in ENVIRONMENT.items())
    return f"# in a file, run as: {setting} compute-sanitizer --tool {tool}{padding} python FILE\n{code}"
