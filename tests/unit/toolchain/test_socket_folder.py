from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import pytest

from opwright.toolchain.socket_folder import socket_folder


@pytest.mark.parametrize("length", [10, 60, 100, 250])
def test_a_socket_can_be_bound_for_any_length_of_tmpdir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    parent = tmp_path / ("x" * length)
    parent.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(parent))
    with socket_folder("opwright-fork-") as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "channel"))
        assert folder.is_dir()
    assert not folder.exists()


def test_a_folder_with_a_short_path_is_created_in_tmpdir(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as parent:
        monkeypatch.setattr(tempfile, "tempdir", parent)
        with socket_folder("opwright-") as folder:
            assert folder.parent == Path(parent)
