"""Describes this machine, for the head of a report."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

# Those that determine how fast numbers are computed: wider vectors, half precision, matrices.
_INSTRUCTION_SETS = (
    *("avx", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni", "amx_tile", "amx_bf16"),
    *("asimd", "sve", "sve2", "i8mm", "bf16"),
)
_GIB = 2**30


@dataclass(frozen=True)
class Machine:
    """A machine, without anything that identifies its owner.

    Attributes:
        processor: the model, as the system names it.
        processors: how many this process may use.
        instruction_sets: those of the processor's instruction sets that matter for computing.
        memory_bytes: its memory.
        python: the version of Python.
    """

    processor: str
    processors: int
    instruction_sets: tuple[str, ...]
    memory_bytes: int
    python: str

    def __str__(self) -> str:
        memory = f"{self.memory_bytes / _GIB:.0f} GiB"
        return f"{self.processor}, {self.processors} CPUs, {memory}, Python {self.python}"


def this_machine(cpuinfo: Path = Path("/proc/cpuinfo")) -> Machine:
    """The machine that this process runs on.

    Args:
        cpuinfo: where the system describes its processors.
    """
    text = cpuinfo.read_text(encoding="utf-8", errors="replace") if cpuinfo.is_file() else ""
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    known = set(flags[1].split()) if flags else set()
    return Machine(
        processor=" ".join(model[1].split()) if model else platform.machine(),
        processors=len(os.sched_getaffinity(0)),
        instruction_sets=tuple(name for name in _INSTRUCTION_SETS if name in known),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        python=platform.python_version(),
    )
