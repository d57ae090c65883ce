"""Paths without a regular file that has contents."""

from __future__ import annotations

import os
import struct
from pathlib import Path


def without_contents(folder: Path) -> dict[str, Path]:
    """Paths without a regular file that has contents; reading any of them must neither block nor run forever."""
    os.mkfifo(folder / "pipe.pt")
    (folder / "folder.pt").mkdir()
    (folder / "empty.pt").touch()
    (folder / "nowhere.pt").symlink_to(folder / "missing")
    with (folder / "huge.pt").open("wb") as file:
        file.truncate(2**40)
    with (folder / "huge.npy").open("wb") as file:
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }".ljust(117) + b"\n"
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    names = ("pipe.pt", "folder.pt", "empty.pt", "nowhere.pt", "huge.pt", "huge.npy")
    return {"a device": Path("/dev/zero"), **{name: folder / name for name in names}}
