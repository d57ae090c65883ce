"""Which kind of file system a path is on."""

from __future__ import annotations

import os
import re
from pathlib import Path

_REMOTE = re.compile(
    r"nfs\d?|cifs|smb\w*|9p|fuse\..*|afs|ceph|lustre|gpfs|glusterfs|beegfs\w*|vboxsf|vmhgfs|prl_fs|virtiofs"
)


def file_system_of(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """The type of the file system that holds `path`, such as `ext4` or `nfs4`; empty where the system does not say."""
    real = os.path.realpath(path)
    longest, kind = "", ""
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        # 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
        mount, _, rest = line.partition(" - ")
        place = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), mount.split(" ")[4])
        inside = place in {"/", real} or real.startswith(f"{place}/")
        if inside and len(place) >= len(longest):  # a later mount hides an earlier one
            longest, kind = place, rest.split(" ")[0]
    return kind


def is_remote(path: Path) -> bool:
    """Whether other machines, or the host of a virtual one, can change `path` without this system's knowledge."""
    return _REMOTE.fullmatch(file_system_of(path)) is not None
