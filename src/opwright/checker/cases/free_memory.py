"""Finds how much memory a case may use."""

from __future__ import annotations

import re
from pathlib import Path

import torch


def bytes_free(device: str) -> int:
    """The number of bytes that can be allocated on `device`; 0 if the system does not report it."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    try:
        found = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0
