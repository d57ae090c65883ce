"""TorchScript that writes files, or contains another kind of pickle."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tests.integration.bundle.hostile.archive import read, write
from tests.integration.bundle.hostile.kind import Code, Kind, python


def load_script(path: Path) -> None:
    load: Any = torch.jit.load
    load(str(path))(torch.ones(2))


def _code(lines: Callable[[Path], str], name: str, *, where: str = "  def __setstate__") -> Kind:
    """A kind that changes the code of the TorchScript model: lines are added to a method."""

    def make(path: Path, canary: Path, _program: Path, script: Path) -> None:
        records = read(script)
        (code,) = (name for name in records if name.endswith(".py"))
        text = records[code].decode()
        begin = text.index(":\n", text.index("->", text.index(where))) + 2
        records[code] = (text[:begin] + f"    {lines(canary)}\n" + text[begin:]).encode()
        write(path, records)

    return Kind(name, make, load_script, ".pt")


def _data(path: Path, canary: Path, _program: Path, script: Path) -> None:
    """A Python pickle instead of TorchScript's, which only Python would run."""
    write(path, read(script) | {"data.pkl": pickle.dumps(Code(python(canary)), protocol=2)})


def _load_data(path: Path) -> None:
    pickle.loads(read(path)["data.pkl"])


SCRIPTS = [
    _code(lambda canary: f'_9 = torch.save(state, "{canary}")', "TorchScript that saves while it is loaded"),
    _code(lambda canary: f'_9 = torch.save(x, "{canary}")', "TorchScript that saves", where="  def forward"),
    _code(lambda canary: f'_9 = ops.aten.save(x, "{canary}")', "TorchScript by another name", where="  def forward"),
    _code(
        lambda canary: f'x = torch.add(x, torch.from_file("{canary}", True, 2))',
        "TorchScript that maps a file",
        where="  def forward",
    ),
    _code(lambda canary: f'_9 = getattr(torch, "sa" "ve")(state, "{canary}")', "TorchScript with a name in two parts"),
    _code(lambda canary: f'_9 = getattr(torch, "\\163ave")(state, "{canary}")', "TorchScript with a name in numbers"),
    Kind("a pickle instead of TorchScript's", _data, _load_data, ".pt"),
]
