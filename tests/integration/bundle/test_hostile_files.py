"""Code in a data file never runs, whichever option names the file."""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from opwright.cli import main
from tests.integration.bundle.hostile import plain as plain_models
from tests.integration.bundle.hostile.archives import ARCHIVES
from tests.integration.bundle.hostile.pickles import PICKLES
from tests.integration.bundle.hostile.programs import MODULE, PROGRAMS
from tests.integration.bundle.hostile.scripts import SCRIPTS

if TYPE_CHECKING:
    from tests.integration.bundle.hostile.kind import Kind

KINDS = [*PROGRAMS, *ARCHIVES, *SCRIPTS, *PICKLES]
SOURCE = """
import torch
from torch import nn

def net():
    return nn.Linear(3, 2)

def samples():
    yield (torch.ones(4, 3),)
"""
Command = Callable[[Path], list[str]]
# The shapes of the inputs of `plain_models.exported`.
OF_A_PROGRAM = ("--shape", "x=4,3", "--shape", "scale=2")
# Every option of every command that reads a data file. Other inputs are code: op.py, sources, libraries,
# file.py:callable; bundles are code for the host.
OPTIONS: dict[str, Command] = {
    "ship": lambda file: ["ship", str(file), *shapes(file)],
    "ship --format aoti": lambda file: ["ship", str(file), "--format", "aoti", *OF_A_PROGRAM],
    "ship --weights": lambda file: ["ship", "model.py:net", "--weights", str(file)],
    "ship --samples": lambda file: ["ship", "model.py:net", "--samples", str(file)],
    "migrate": lambda file: ["migrate", str(file), "--source", "model.py:net"],
    "migrate --weights": lambda file: ["migrate", "net.pt", "--source", "model.py:net", "--weights", str(file)],
    "migrate --samples": lambda file: ["migrate", "net.pt", "--source", "model.py:net", "--samples", str(file)],
}


def shapes(file: Path) -> list[str]:
    """Shapes of the inputs, without which no model would run."""
    return [*OF_A_PROGRAM] if file.suffix == ".pt2" else ["--shape", "x=2"]


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An exported program and a TorchScript model."""
    folder = tmp_path_factory.mktemp("plain")
    return plain_models.exported(folder / "plain.pt2"), plain_models.scripted(folder / "plain.pt")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and its source, which is the command's current folder."""
    (tmp_path / "model.py").write_text(SOURCE)
    script: Any = torch.jit.script
    script(nn.Linear(3, 2)).save(str(tmp_path / "net.pt"))
    (tmp_path / f"{MODULE}.py").write_text(
        f"import enum, pathlib\npathlib.Path({str(tmp_path / 'canary')!r}).touch()\n"
        "Kind = enum.Enum('Kind', {'A': 1})\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    return tmp_path


def made(kind: Kind, folder: Path, plain: tuple[Path, Path]) -> Path:
    path = folder / f"hostile{kind.suffix}"
    kind.make(path, folder / "canary", *plain)
    return path


def command(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["opwright", *arguments, "-o", "bundle"])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")  # PyTorch 2.11 reads weights like this
@pytest.mark.filterwarnings("ignore:Python 3.14 will, by default, filter extracted tar")  # in Python 3.12 and 3.13
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_code_in_a_hostile_file_runs_when_pytorch_loads_it(
    kind: Kind, folder: Path, plain: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kind.runs_here:
        pytest.skip(f"PyTorch {torch.__version__} does not load {kind.name}")
    path = made(kind, folder, plain)
    assert not (folder / "canary").exists()
    with contextlib.suppress(Exception):  # errors after the code has run do not matter
        kind.load(path)
    assert (folder / "canary").exists()


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_code_in_a_hostile_file_never_runs_and_the_file_is_rejected_in_one_line(
    kind: Kind,
    option: str,
    folder: Path,
    plain: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = made(kind, folder, plain)
    assert command(OPTIONS[option](path), monkeypatch) == 8
    out, said = capsys.readouterr()
    assert not (folder / "canary").exists()
    assert (out, said[:7], said.count("\n")) == ("", "error: ", 1), said
    assert str(path) in said
    assert not (folder / "bundle").exists()


def without_contents(folder: Path) -> dict[str, Path]:
    """Paths without a regular file that has contents; reading any of them must neither block nor run forever."""
    os.mkfifo(folder / "pipe.pt")
    (folder / "folder.pt").mkdir()
    (folder / "empty.pt").touch()
    (folder / "nowhere.pt").symlink_to(folder / "missing")
    with (folder / "huge.pt").open("wb") as file:
        file.truncate(2**40)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }".ljust(117) + b"\n"
    (folder / "huge.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    names = ("pipe.pt", "folder.pt", "empty.pt", "nowhere.pt", "huge.pt", "huge.npy")
    return {"a device": Path("/dev/zero"), **{name: folder / name for name in names}}


@pytest.mark.parametrize("option", OPTIONS)
def test_a_path_without_a_file_that_has_contents_is_rejected_immediately_in_one_line(
    option: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, path in without_contents(folder).items():
        assert command(OPTIONS[option](path), monkeypatch) == 8, name
        out, said = capsys.readouterr()
        assert (out, said[:7], said.count("\n")) == ("", "error: ", 1), said
        assert str(path) in said


@pytest.mark.parametrize("option", ["ship", "migrate"])
def test_trust_runs_code_that_is_otherwise_rejected(
    option: str, folder: Path, plain: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(next(kind for kind in KINDS if kind.name == "TorchScript that saves while it is loaded"), folder, plain)
    command([*OPTIONS[option](path), "--trust"], monkeypatch)
    assert (folder / "canary").exists()


def test_the_error_names_the_problem_the_risk_and_the_fix(
    folder: Path, plain: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made(next(kind for kind in KINDS if kind.name == "an operator that writes files"), folder, plain)
    command(OPTIONS["ship"](path), monkeypatch)
    assert capsys.readouterr().err == (
        f"error: {path} is rejected: it calls aten::from_file, which can read or write files, or reach other "
        "processes. Loading it could run arbitrary code on this machine as you: pass --trust if it comes from you, or "
        "from people whom you trust\n"
    )


def test_a_name_in_a_file_cannot_move_the_cursor_of_the_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({"weight": torch.ones(2, 3), "\x1b[2Jbias\n": torch.ones(2)}, folder / "weights.pt")
    assert command(OPTIONS["ship --weights"](folder / "weights.pt"), monkeypatch) == 8
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "'\\x1b[2Jbias\\n' is unknown to the model" in said
