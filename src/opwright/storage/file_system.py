"""The file system that a path lies on, and whether locks there hold against other machines."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_TABLE = Path("/proc/self/mountinfo")
_LINE = re.compile(r"\S+ \S+ \S+ \S+ (?P<point>\S+) (?P<flags>\S+).*? - (?P<kind>\S+) \S* (?P<options>\S*)")
_ESCAPED = re.compile(r"\\([0-7]{3})")
# File systems whose files other machines can use at the same time, each with the options under which its locks hold on
# one machine alone. None: they always do, or nobody promises more.
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
        """Whether other machines can use its files at the same time, as far as its type tells."""
        return self.kind in _NETWORK or self.kind.partition(".")[0] == "fuse"

    @property
    def locks_reach_other_machines(self) -> bool:
        """Whether a lock on a file is seen by all that can use the file."""
        if not self.is_network:
            return True
        local = _NETWORK.get(self.kind)
        return local is not None and not local & self.options


def mount_of(folder: Path, table: Path = _TABLE) -> Mount | None:
    """The mount that `folder`, or the nearest folder above it that exists, lies on; None if the system does not say."""
    try:
        lines = table.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    path = Path(os.path.realpath(folder))
    # Of several at one place, the last hides the others.
    mounts = [mount for line in lines if (mount := _mount(line)) and mount.point in (path, *path.parents)]
    return max(reversed(mounts), key=lambda mount: len(mount.point.parts), default=None)


def _mount(line: str) -> Mount | None:
    """The mount of one line: `36 35 98:0 / /mnt rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue`."""
    if (found := _LINE.match(line)) is None:
        return None
    point, kind = (_ESCAPED.sub(lambda code: chr(int(code[1], 8)), found[name]) for name in ("point", "kind"))
    return Mount(Path(point), kind, frozenset([*found["flags"].split(","), *found["options"].split(",")]))
