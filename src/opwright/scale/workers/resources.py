"""What this process may use of its machine: processors and memory, of which a container may have a part."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def processors(cgroup: Path = _CGROUP) -> int:
    """How many processors this process may keep busy, at least 1.

    Args:
        cgroup: where Linux describes the limits of a container.
    """
    allowed = len(os.sched_getaffinity(0))
    quota, _, period = _first_line(cgroup / "cpu.max").partition(" ")
    if quota.isdigit() and period.isdigit() and int(period):
        allowed = min(allowed, int(quota) // int(period))
    return max(allowed, 1)


def memory_bytes(cgroup: Path = _CGROUP) -> int:
    """How much memory this process may use.

    Args:
        cgroup: where Linux describes the limits of a container.
    """
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _first_line(cgroup / "memory.max")
    return min(whole, int(limit)) if limit.isdigit() else whole


def _first_line(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace").strip()
    return ""
