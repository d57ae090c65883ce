"""Describes this machine, for the head of a report."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

# The ones that affect computing speed: wider vectors, half precision, matrices.
_INSTRUCTION_SETS = (
    *("avx", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni", "amx_tile", "amx_bf16"),
    *("asimd", "sve", "sve2", "i8mm", "bf16"),
)
_GIB = 2**30
_CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Machine:
    """A machine, without anything that identifies its owner.

    Attributes:
        processor: the model, as the system names it.
        processors: the number of CPUs that this process may use.
        instruction_sets: the processor's instruction sets that affect computing speed.
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


def this_machine(cpuinfo: Path = _CPUINFO) -> Machine:
    """The machine that this process runs on.

    Args:
        cpuinfo: the file in which Linux describes the processors.
    """
    model = _field("model name", cpuinfo)
    known = processor_features(cpuinfo)
    return Machine(
        processor=" ".join(model.split()) or platform.machine(),
        processors=len(os.sched_getaffinity(0)),
        instruction_sets=tuple(name for name in _INSTRUCTION_SETS if name in known),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        python=platform.python_version(),
    )


def processor_features(cpuinfo: Path = _CPUINFO) -> frozenset[str]:
    """The features of this machine's processor, as Linux names them; empty if it lists none.

    Args:
        cpuinfo: the file in which Linux describes the processors.
    """
    return frozenset(_field("(?:flags|Features)", cpuinfo).split())


def _field(name: str, cpuinfo: Path) -> str:
    text = cpuinfo.read_text(encoding="utf-8", errors="replace") if cpuinfo.is_file() else ""
    found = re.search(rf"^{name}\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else ""
