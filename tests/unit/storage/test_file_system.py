from __future__ import annotations

from pathlib import Path

import pytest

from opwright.storage.file_system import mount_of

_TABLE = r"""22 28 0:20 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
28 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw,errors=remount-ro
31 28 0:40 / /users rw,relatime shared:17 - nfs4 filer:/export/users rw,vers=4.2,local_lock=none,addr=10.0.0.3
32 28 0:41 / /old rw - nfs filer:/old rw,vers=3,nolock,local_lock=all
33 28 0:42 / /scratch rw,relatime - lustre mds@tcp:/scratch rw,flock,lazystatfs
34 28 0:43 / /fast rw,relatime - lustre mds@tcp:/fast rw,localflock
35 28 0:44 / /mnt/with\040blank rw - cifs //server/share rw,vers=3.1.1,nobrl,uid=1000
36 28 0:45 / /mnt/share rw - cifs //server/other rw,vers=3.1.1
37 28 0:46 / /mnt/ssh rw,nosuid,nodev - fuse.sshfs me@host:/ rw,user_id=1000,group_id=1000
38 28 0:47 / /mnt/vm rw - 9p host rw,access=client,trans=virtio
39 28 0:48 / /users/local rw - xfs /dev/sdb1 rw,attr2
40 28 0:49 / /twice rw - nfs4 filer:/twice rw,local_lock=none
41 40 8:17 / /twice rw - ext4 /dev/sdb2 rw
42 28 0:50 / /layers rw,relatime - overlay overlay rw,lowerdir=/a:/b,upperdir=/c,workdir=/d
43 28 0:51 / /empty rw - tmpfs  rw,size=1k
a line of another form
"""


@pytest.mark.parametrize(
    ("folder", "point", "kind", "is_network", "reach"),
    [
        ("/usr/lib", "/", "ext4", False, True),
        ("/users/me/.cache/opwright", "/users", "nfs4", True, True),
        ("/userspace", "/", "ext4", False, True),
        ("/users/local/x", "/users/local", "xfs", False, True),
        ("/old/x", "/old", "nfs", True, False),
        ("/scratch/me", "/scratch", "lustre", True, True),
        ("/fast/me", "/fast", "lustre", True, False),
        ("/mnt/with blank/x", "/mnt/with blank", "cifs", True, False),
        ("/mnt/share", "/mnt/share", "cifs", True, True),
        ("/mnt/ssh/x", "/mnt/ssh", "fuse.sshfs", True, False),
        ("/mnt/vm", "/mnt/vm", "9p", True, False),
        ("/twice/x", "/twice", "ext4", False, True),
        ("/layers/x", "/layers", "overlay", False, True),
        ("/empty", "/empty", "tmpfs", False, True),
    ],
)
def test_a_mount_reports_whether_its_locks_reach_other_machines(
    tmp_path: Path, folder: str, point: str, kind: str, is_network: bool, reach: bool
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(_TABLE)
    mount = mount_of(Path(folder), table)
    assert mount is not None
    assert (str(mount.point), mount.kind) == (point, kind)
    assert (mount.is_network, mount.locks_reach_other_machines) == (is_network, reach)


def test_the_mounts_of_this_machine_are_read(tmp_path: Path) -> None:
    mount = mount_of(tmp_path / "missing" / "folder")
    assert mount is not None
    assert mount.point in (tmp_path, *tmp_path.parents)


def test_the_mount_is_unknown_without_a_table(tmp_path: Path) -> None:
    assert mount_of(tmp_path, tmp_path / "missing") is None
