"""Which file system a path is on."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwright.storage.file_system import file_system_of, is_remote

MOUNTS = r"""22 1 0:21 / / rw,relatime - ext4 /dev/vda1 rw
30 22 0:30 / /net rw,relatime shared:1 - nfs4 server:/home rw,vers=4.2
31 30 0:31 / /net/me/a\040b rw - tmpfs tmpfs rw
32 22 0:32 / /nets rw master:2 propagate_from:3 - fuse.sshfs me@host: rw
33 22 0:33 / /twice rw - ext4 /dev/vdb rw
34 22 0:34 / /twice rw - 9p host rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/net2/x", "ext4"),
        ("/net", "nfs4"),
        ("/net/me/ops/mine", "nfs4"),
        ("/net/me/a b/mine", "tmpfs"),
        ("/nets/x", "fuse.sshfs"),
        ("/twice/x", "9p"),
    ],
)
def test_the_last_of_the_longest_mounts_holds_a_path(tmp_path: Path, path: str, kind: str) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTS)
    assert file_system_of(Path(path), tmp_path / "mountinfo") == kind


def test_a_system_that_does_not_say_is_taken_for_a_local_one(tmp_path: Path) -> None:
    assert file_system_of(tmp_path, tmp_path / "missing") == ""
    assert file_system_of(Path("/proc/self")) == "proc"
    assert not is_remote(Path("/proc/self"))
