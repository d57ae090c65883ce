from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from opwright.storage.lock import has_no_locks, locked

if TYPE_CHECKING:
    from pathlib import Path


def test_shared_holders_exclude_an_exclusive_one_and_the_reverse(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path, shared=True) as first, locked(path, shared=True, patience_s=0) as second:
        assert first
        assert second
        with locked(path, patience_s=0.02) as alone:
            assert not alone
    with locked(path) as alone, locked(path, shared=True, patience_s=0) as shared:
        assert alone
        assert not shared


def test_a_lock_is_free_after_an_exception(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "lock"):
        raise ZeroDivisionError
    with locked(tmp_path / "lock", patience_s=0) as alone:
        assert alone


def test_a_path_that_is_not_a_file_is_an_error_and_never_blocks(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "folder").mkdir()
    for name in ("link", "folder"):
        with pytest.raises(OSError, match=name), locked(tmp_path / name):
            pass
    assert not (tmp_path / "elsewhere").exists()
    os.mkfifo(tmp_path / "pipe")
    with locked(tmp_path / "pipe", patience_s=0):
        pass


@pytest.mark.parametrize(("code", "has_none"), [(errno.ENOLCK, True), (errno.ENOSYS, True), (errno.EACCES, False)])
def test_an_error_shows_whether_the_file_system_has_locks(code: int, has_none: bool) -> None:
    assert has_no_locks(OSError(code, os.strerror(code))) == has_none
