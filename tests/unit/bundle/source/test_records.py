from __future__ import annotations

import re
import stat
import struct
import zipfile
from pathlib import Path

import pytest
import torch

from opwright.bundle.source.records import open_records, write_records


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "model.pt"
    write_records(path, [("data.pkl", b"pickle"), ("code/__torch__.py", b"code" * 99)], 3)
    return path


def added(path: Path, name: str, data: bytes = b"", mode: int = 0, method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "a") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        info.compress_type = method
        archive.writestr(info, data)


def refused(path: Path, message: str) -> None:
    with pytest.raises(ValueError, match=message), open_records(path):
        pass


def test_written_records_can_be_read(archive: Path) -> None:
    with open_records(archive) as records:
        assert records.read("data.pkl") == b"pickle"
        assert records.read("code/__torch__.py") == b"code" * 99
        with pytest.raises(zipfile.BadZipFile, match="it has no data/0"):
            records.read("data/0")


def test_a_file_from_torch_save_can_be_read(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(3)}, tmp_path / "a.pt")
    with open_records(tmp_path / "a.pt") as records:
        assert records.read("data/0") == struct.pack("<3f", 1, 1, 1)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x",
        "../x",
        "archive/",
        "archive//x",
        "/model/x",
        "archive/../x",
        "archive/./x",
        "archive/a\\b",
        "archive/c:d",
        "archive/\x1b",
    ],
)
def test_a_name_that_could_mean_another_place_is_rejected(archive: Path, name: str) -> None:
    added(archive, name)
    refused(archive, "its archive has an entry named")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFDIR])
def test_an_entry_that_is_not_a_file_is_rejected(archive: Path, kind: int) -> None:
    added(archive, "archive/x", b"/etc/passwd", kind)
    refused(archive, "x inside its archive is a link or something else")


@pytest.mark.parametrize(("before", "after"), [(b"#!/bin/sh\n", b""), (b"", b"\n"), (b"", b"PK\x05\x06" + bytes(17))])
def test_data_before_or_after_the_archive_is_rejected(archive: Path, before: bytes, after: bytes) -> None:
    archive.write_bytes(before + archive.read_bytes() + after)
    refused(archive, "there is data before or after the archive")


def test_a_comment_is_rejected(archive: Path) -> None:
    with zipfile.ZipFile(archive, "a") as opened:
        opened.comment = b"comment"
    refused(archive, "there is data before or after the archive")


def test_duplicate_records_and_a_second_folder_are_rejected(archive: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.pt"
    copy.write_bytes(archive.read_bytes())
    with pytest.warns(UserWarning, match="Duplicate name"):
        added(archive, "archive/data.pkl")
    refused(archive, r"two entries named data\.pkl")
    added(copy, "other/data")
    refused(copy, "its archive is damaged")


def test_an_archive_that_unpacks_to_too_much_data_is_rejected(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opwright.bundle.source.records._MOST_UNPACKED", 10**6)
    added(archive, "archive/data/0", bytes(10**6), method=zipfile.ZIP_DEFLATED)
    with open_records(archive) as records:
        assert len(records.read("data/0")) == 10**6
    added(archive, "archive/data/1", bytes(1), method=zipfile.ZIP_DEFLATED)
    refused(archive, "would unpack to much more")


def test_overlapping_records_are_rejected(tmp_path: Path) -> None:
    """One million bytes, listed a hundred times."""
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/0", bytes(10**6))
        for at in range(1, 100):
            info = zipfile.ZipInfo(f"archive/{at}")
            info.file_size = info.compress_size = 10**6
            info.header_offset, info.CRC = 0, archive.filelist[0].CRC
            archive.filelist.append(info)
    refused(path, "would unpack to much more")


def test_a_record_with_another_compression_is_rejected(archive: Path) -> None:
    added(archive, "archive/x", b"x", method=zipfile.ZIP_BZIP2)
    refused(archive, "x inside its archive is encrypted, or compressed")


def test_a_record_with_changed_bytes_is_reported_as_damaged(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes().replace(b"pickle", b"pickel"))
    with open_records(archive) as records, pytest.raises(zipfile.BadZipFile, match=r"data\.pkl inside it is damaged"):
        records.read("data.pkl")


def test_every_truncated_archive_is_rejected(archive: Path) -> None:
    whole = archive.read_bytes()
    for length in range(0, len(whole), 7):
        archive.write_bytes(whole[:length])
        with pytest.raises((ValueError, zipfile.BadZipFile)) as refused, open_records(archive):
            pass
        assert re.match(r"it is not an archive|its archive", str(refused.value))
