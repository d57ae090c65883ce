from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from opwright.errors import BuildError
from opwright.storage.full_disk import full_disk

if TYPE_CHECKING:
    from pathlib import Path


def _raised_from(cause: BaseException) -> BaseException:
    error = RuntimeError("the writer failed")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out"), "No space left on device (out)"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), "Disk quota exceeded"),
        (RuntimeError("write failed: No space left on device"), "No space left on device"),
        (
            BuildError("does not link", output="ld: failed: No space left on device"),
            "No space left on device",
        ),
        (_raised_from(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))), "No space left on device"),
        (OSError(errno.EACCES, os.strerror(errno.EACCES)), None),
        (RuntimeError("a bad model"), None),
    ],
    ids=str,
)
def test_a_full_disk_is_recognized_by_its_code_or_its_message(
    tmp_path: Path, error: BaseException, reason: str | None
) -> None:
    assert full_disk(error, [tmp_path]) == reason
