"""Damaged and malicious goldens are refused."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.host.conftest import Bundle, Refused

HOLDS_ITSELF = b"]q\0h\0a"
# Each level contains the previous one twice, so that the last one contains the first 2 ** 60 times.
DOUBLED = b")" + b"".join(b"q%ch%c\x86" % (level, level) for level in range(60)) + b"q\x3c"


def _archive(pickle: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + pickle + b".")
        archive.writestr("archive/version", b"3")
    return file.getvalue()


def test_files_that_are_not_goldens_are_refused(refused: Refused, bundle: Bundle) -> None:
    whole = (bundle.path / "goldens/0.pt").read_bytes()
    for content in (b"", b"no archive", whole[: len(whole) // 2], whole[:-30] + bytes(30)):
        bundle.put("goldens/0.pt", content)
        refusal = refused(bundle)
        assert refusal.code == "golden_differs"
        assert "goldens/0.pt" in refusal.message


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (HOLDS_ITSELF + b"h\0h\0\x87", "a value nests deeper than 100 levels, or contains itself"),
        (DOUBLED + b"h\x3ch\x3c\x87", "a value contains more than 1,048,576 tuples, lists and dicts"),
    ],
    ids=["itself", "doubled"],
)
def test_an_endless_golden_is_refused(refused: Refused, bundle: Bundle, value: bytes, why: str) -> None:
    bundle.put("goldens/0.pt", _archive(value))
    refusal = refused(bundle)
    assert refusal.code == "golden_differs"
    assert refusal.message == f"goldens/0.pt cannot be compared: {why}"
