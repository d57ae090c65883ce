"""Extracts the plain part of an exported program's file: its computation and its tensors.

`torch.export.load` unpickles, evaluates text from the file as Python, and executes guards and generated functions. The
file is therefore never passed to it. The parts that PyTorch's schema describes are read, validated, and written to a
new archive, which is then loaded.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import torch

from opwright.bundle.source.plain_pickle import read_plain, written
from opwright.bundle.source.program import check_path, checked_payloads, checked_program
from opwright.bundle.source.records import open_records, write_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opwright.bundle.source.records import Records

_FORMAT = {"archive_format": b"pt2", "archive_version": b"0"}
_MODEL = "models/model.json"
_INPUTS = "data/sample_inputs/model.pt"
# The folders of weights and constants, and the names of files in them.
_TENSORS = {
    "data/weights/": ("weights", re.compile(r"weight_[0-9]+")),
    "data/constants/": ("constants", re.compile(r"tensor_[0-9]+")),
}
_FILE_VERSION = 6


def rewrite_program(path: Path, plain: Path) -> None:
    """Rewrite the exported program at `path` without anything that could run.

    Args:
        path: the file.
        plain: the file to write, for `torch.export.load`.

    Raises:
        ValueError: the file contains more than a program and its tensors; the message describes it as "it".
        BadZipFile: the file is damaged.
        OSError: a file cannot be read or written.
    """
    with open_records(path) as records:
        write_records(plain, _accepted(records), _FILE_VERSION)


def _accepted(records: Records) -> Iterator[tuple[str, bytes]]:
    for name, expected in _FORMAT.items():
        if (found := records.read(name)) != expected:
            msg = f"its {name} is {found!r:.40}, but this release supports {expected.decode()!r}"
            raise ValueError(msg)
        yield name, expected
    if more := sorted(name for name in records.entries if name.startswith("models/") and name != _MODEL):
        msg = f"it holds more than one program ({more[0]})"
        raise ValueError(msg)
    yield _MODEL, checked_program(records.read(_MODEL))
    for folder, (what, file) in _TENSORS.items():
        yield from _tensors(records, folder, what, file)
    inputs = records.read(_INPUTS)
    yield _INPUTS, written(read_plain(inputs)) if inputs else b""


def _tensors(records: Records, folder: str, what: str, file: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    """The weights or the constants: their list, and the bytes of each."""
    in_one = f"{folder}model.pt"  # the format of PyTorch 2.8 and older
    if in_one in records.entries:
        yield in_one, written(_named(read_plain(records.read(in_one))))
        return
    listed = f"{folder}model_{what}_config.json"
    payloads = checked_payloads(records.read(listed))
    yield listed, json.dumps({"config": payloads}).encode()
    done: set[str] = set()
    for name, payload in payloads.items():
        path, pickled = payload["path_name"], payload["use_pickle"]
        if file.fullmatch(path) is None:
            msg = f"its {name} is not a tensor ({path})"
            raise ValueError(msg)
        if path not in done:
            done.add(path)
            data = records.read(folder + path)
            yield folder + path, written(_tensor(name, read_plain(data))) if pickled else data


def _named(held: Any) -> dict[str, torch.Tensor]:
    _require(isinstance(held, dict), "its weights are not listed by name")
    for name, value in held.items():
        check_path(name)
        _tensor(name, value)
    named: dict[str, torch.Tensor] = held
    return named


def _tensor(name: str, held: Any) -> torch.Tensor:
    _require(isinstance(held, torch.Tensor), f"its {name} is not a tensor")
    tensor: torch.Tensor = held
    return tensor


def _require(right: bool, why_not: str) -> None:
    # Raise ValueError, not TypeError, for anything wrong in a file.
    if not right:
        raise ValueError(why_not)
