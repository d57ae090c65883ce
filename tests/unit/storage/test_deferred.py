from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from opwright.storage.deferred import deferring_errors

if TYPE_CHECKING:
    from typing import IO


def test_written_data_is_in_the_file(tmp_path: Path) -> None:
    with deferring_errors(tmp_path / "a.pt") as file:
        torch.save(torch.ones(3), file)
    assert torch.load(tmp_path / "a.pt").tolist() == [1, 1, 1]


def test_an_error_is_raised_on_exit(tmp_path: Path) -> None:
    link = tmp_path / "full"
    link.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"), deferring_errors(link) as file:
        assert [file.write(b"x" * 2**20), file.write(b"x")] == [2**20, 1]


def _write_half(writer: Any) -> None:
    writer.write_record("one", b"1", 1)
    raise ZeroDivisionError


def test_a_cpp_writer_that_is_left_by_an_exception_does_not_end_the_process(tmp_path: Path) -> None:
    def write(file: IO[bytes]) -> None:
        _write_half(torch._C.PyTorchFileWriter(file))

    with pytest.raises(ZeroDivisionError), deferring_errors(tmp_path / "a.pt") as file:
        write(file)
    gc.collect()  # destroys the writer, which writes the end of the archive
