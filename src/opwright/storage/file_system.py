"""The file system of a path, and whether its locks are effective across machines."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_TABLE = Path("/proc/self/mountinfo")
_LINE = re.compile(r"\S+ \S+ \S+ \S+ (?P<point>\S+) (?P<flags>\S+).*? - (?P<kind>\S+) \S* (?P<options>\S*)")
_ESCAPED = re.compile(r"\\([0-7]{3})")
# File systems whose files other machines can use at the same time, each with the options that restrict its locks to one
# machine. None: its locks are always restricted to one machine, or nothing more is guaranteed.
_NETWORK: dict[str, frozenset[str] | None] = {
    "nfs": frozenset({"nolock", "local_lock=all", "local_lock=flock"}),
    "nfs4": frozenset({"nolock", "local_lock=all", "local_lock=flock"}),
    "cifs": frozenset({"nobrl"}),
    "smb3": frozenset({"nobrl"}),
    "lustre": frozenset({"localflock"}),
    "ceph": frozenset(),
    "gpfs": frozenset(),
    "beegfs": None,
    "afs": None,
    "9p": None,
    "virtiofs": None,
    "glusterfs": None,
    "vboxsf": None,
    "vmhgfs": None,
    "prl_fs": None,
}


@dataclass(frozen=True)
class Mount:
    """A mounted file system.

    Attributes:
        point: the folder at which it is mounted.
        kind: its type, such as `ext4` or `nfs4`.
        options: its own options and those of the mount.
    """

    point: Path
    kind: str
    options: frozenset[str]

    @property
    def is_network(self) -> bool:
        """Whether other machines can use its files at the same time, judged by its type."""
        return self.kind in _NETWORK or self.kind.partition(".")[0] == "fuse"

    @property
    def locks_reach_other_machines(self) -> bool:
        """Whether every machine that can use a file sees the locks on it."""
        if not self.is_network:
            return True
        local = _NETWORK.get(self.kind)
        return local is not None and not local & self.options


def mount_of(folder: Path, table: Path = _TABLE) -> Mount | None:
    """The mount that contains `folder`, or the nearest existing folder above it; None if unknown."""
    try:
        lines = table.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    path = Path(os.path.realpath(folder))
    # The last of several mounts at one place hides the others.
    mounts = [mount for line in lines if (mount := _mount(line)) and mount.point in (path, *path.parents)]
    return max(reversed(mounts), key=lambda mount: len(mount.point.parts), default=None)


def _mount(line: str) -> Mount | None:
    """Parse a line such as `36 35 98:0 / /mnt rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue`."""
    if (found := _LINE.match(line)) is None:
        return None
    point, kind = (_ESCAPED.sub(lambda code: chr(int(code[1], 8)), found[name]) for name in ("point", "kind"))
    return Mount(Path(point), kind, frozenset([*found["flags"].split(","), *found["options"].split(",")]))
