"""The processors and the memory that this process may use, within the limits of its container."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")
# The memory that a host needs besides its model, and the number of copies of a model: the file, and other layouts.
_PYTORCH_BYTES = 2**29
_COPIES = 3
_UNIFIED = "0::"  # the prefix of the cgroup v2 entry


def processors(cgroups: Path = _CGROUPS, own: Path = _OWN_CGROUP) -> int:
    """The number of processors that this process may keep busy, at least 1.

    Args:
        cgroups: the folder where Linux lists the limits of groups of processes, such as containers.
        own: the file that names the group of this process.
    """
    allowed = len(os.sched_getaffinity(0))
    for text in _settings("cpu.max", cgroups, own):
        quota, _, period = text.partition(" ")
        if quota.isdecimal() and period.isdecimal() and int(period):
            allowed = min(allowed, int(quota) // int(period))
    return max(allowed, 1)


def memory_bytes(cgroups: Path = _CGROUPS, own: Path = _OWN_CGROUP) -> int:
    """The number of bytes of memory that this process may use; arguments as for `processors`."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([whole, *(int(text) for text in _settings("memory.max", cgroups, own) if text.isdecimal())])


def most_workers(threads: int, model_bytes: int) -> int:
    """The number of workers for which this machine has processors and memory; at least 1.

    Args:
        threads: the number of threads of each worker.
        model_bytes: the size of the model, which each worker loads.
    """
    needed = _PYTORCH_BYTES + _COPIES * model_bytes
    return max(1, min(processors() // threads, memory_bytes() // needed))


def _settings(name: str, cgroups: Path, own: Path) -> Iterator[str]:
    """Yield a setting of this process's group, and of each group that contains it."""
    group = next((line.removeprefix(_UNIFIED) for line in _read(own).splitlines() if line.startswith(_UNIFIED)), "/")
    folder = cgroups / group.strip("/")
    for one in (folder, *folder.parents):
        if one.is_relative_to(cgroups):
            yield _read(one / name)


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").strip()
    return ""
