from __future__ import annotations

import os
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.errors import BundleError
from opwright.scale.facts.golden_sizes import golden_sizes


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A golden as `opwright ship` writes it."""
    path = tmp_path_factory.mktemp("golden") / "0.pt"
    inputs = [torch.zeros(2, 3), torch.zeros((), dtype=torch.int64), torch.zeros(4, 1)[:, 0], torch.zeros(0, 2)]
    torch.save((inputs, [torch.zeros(2, 5, dtype=torch.bfloat16)], {}), path)
    return path


def archive(path: Path, content: bytes, name: str = "a/data.pkl") -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(name, content)
    return path


def refused(path: Path) -> None:
    page = r"docs/reference/format\.md"
    text = rf"^{re.escape(str(path))} is not a golden as {page} describes it \(.*\): ship the model again$"
    with pytest.raises(BundleError, match=text):
        golden_sizes(path)


def test_sizes_are_those_of_inputs_and_outputs(golden: Path) -> None:
    assert golden_sizes(golden) == ([(2, 3), (), (4,), (0, 2)], [(2, 5)])


class _Runs:
    """Creates a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._path),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_would_run_code_does_not(tmp_path: Path, protocol: int) -> None:
    harmful = pickle.dumps(([_Runs(tmp_path / "made")], [], {}), protocol)
    pickle.loads(harmful)
    (tmp_path / "made").rmdir()
    refused(archive(tmp_path / "0.pt", harmful))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b".",
        b"no pickle",
        pickle.dumps(7),
        pickle.dumps(([], [])),
        pickle.dumps(([1], [], {})),
        pickle.dumps((None, [], {})),
        b"\x80\x02]" * 10,
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x80\x05\x95\xff\xff\xff\xff\xff\xff\xff\xff.",
        b"I" + b"9" * 10_000 + b"\n.",
    ],
)
def test_content_that_is_not_a_golden_is_rejected(tmp_path: Path, content: bytes) -> None:
    refused(archive(tmp_path / "0.pt", content))


def test_an_archive_with_no_pickle_or_several_is_rejected(tmp_path: Path) -> None:
    refused(archive(tmp_path / "0.pt", b"", "a/other"))
    archive(tmp_path / "1.pt", pickle.dumps(([], [], {})))
    with zipfile.ZipFile(tmp_path / "1.pt", "a") as file:
        file.writestr("b/data.pkl", b"")
    refused(tmp_path / "1.pt")
    refused(tmp_path / "missing.pt")
    (tmp_path / "2.pt").write_bytes(b"no archive")
    refused(tmp_path / "2.pt")


def test_a_truncated_golden_is_rejected(golden: Path, tmp_path: Path) -> None:
    whole = golden.read_bytes()
    for length in range(0, len(whole), 101):
        (tmp_path / "0.pt").write_bytes(whole[:length])
        refused(tmp_path / "0.pt")


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_golden_is_rejected_or_has_sizes(golden: Path, data: st.DataObject) -> None:
    content = bytearray(golden.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = golden.parent / "damaged.pt"
    path.write_bytes(content)
    try:
        inputs, outputs = golden_sizes(path)
    except BundleError:
        return
    assert all(isinstance(size, int) for sizes in (*inputs, *outputs) for size in sizes)


@pytest.mark.parametrize(("field", "number"), [(6, 1), (8, 77)], ids=["flags", "compression"])
def test_an_archive_with_a_password_or_an_unknown_compression_is_rejected(
    tmp_path: Path, field: int, number: int
) -> None:
    path = archive(tmp_path / "0.pt", pickle.dumps(([], [], {})))
    content = bytearray(path.read_bytes())
    for signature, place in ((b"PK\x03\x04", field), (b"PK\x01\x02", field + 2)):
        content[content.index(signature) + place] = number
    path.write_bytes(content)
    refused(path)
