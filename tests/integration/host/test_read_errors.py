"""A failing disk, or a file truncated while being read, is an error with a code, never a partial result."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.integration.host.conftest import REQUEST
from tests.integration.host.shims import BROKEN_DISK, compile_c

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.host.conftest import Bundle, Run

LINES = 600


@pytest.fixture(scope="session")
def broken_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("shim") / "broken_disk.so", BROKEN_DISK)


@pytest.fixture
def on_broken_disk(broken_disk: Path, program: Path) -> Run:
    """Run the host on a system that cannot read the file of this name beyond a number of bytes."""

    def run(name: str, count: int, *words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        shim = {"LD_PRELOAD": str(broken_disk), "SHIM_FILE": name, "SHIM_BYTES": str(count)}
        environment = {**os.environ, **shim, **more}
        return subprocess.run([program, *words], capture_output=True, text=True, env=environment, check=False)

    return run


def test_a_list_that_cannot_be_read_completely_is_an_error_and_gets_no_answers(
    on_broken_disk: Run, torchscript: Path, files: Path, codes: dict[str, int]
) -> None:
    line = f"{REQUEST}\n"
    (files / "list").write_text(line * LINES)
    whole = on_broken_disk("/list", len(line) * LINES + 1, torchscript, "--requests", files / "list", "--json", "-")
    assert whole.returncode == 0, whole.stderr
    assert len(whole.stdout.splitlines()) == LINES + 1
    for count in (0, 1, len(line) * LINES // 2, len(line) * LINES - 1, len(line) * LINES):
        done = on_broken_disk("/list", count, torchscript, "--requests", files / "list", "--json", "-")
        message = f"the list of requests {files}/list cannot be read: Input/output error"
        assert (done.returncode, done.stderr) == (codes["input_unreadable"], f"host: {message}\n")
        (answer,) = map(json.loads, done.stdout.splitlines())
        assert answer["error"]["kind"] == "input_unreadable"


def test_a_list_from_a_failing_standard_input_is_an_error(
    torchscript: Path, tmp_path: Path, program: Path, codes: dict[str, int]
) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    done = subprocess.run(
        [program, torchscript, "--requests", "-"], stdin=folder, capture_output=True, text=True, check=False
    )
    os.close(folder)
    assert done.returncode == codes["input_unreadable"]
    assert done.stderr == "host: the list of requests - cannot be read: Is a directory\n"


@pytest.mark.parametrize("name", ["image.npy", "both.npz", "photo.jpg"])
def test_an_input_that_cannot_be_read_completely_is_an_error(
    on_broken_disk: Run, torchscript: Path, files: Path, codes: dict[str, int], name: str
) -> None:
    inputs = [files / name] if name == "both.npz" else [files / name, files / "shift.npy"]
    words = [torchscript, *(f"--input={path}" for path in inputs), "--warm-up", "0"]
    size = (files / name).stat().st_size
    assert on_broken_disk(name, size + 1, *words).returncode == 0
    for count in (0, size // 2, size):
        done = on_broken_disk(name, count, *words)
        assert done.returncode == codes["input_unreadable"]
        assert done.stderr == f"host: the input file {files / name} cannot be read: Input/output error\n"


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["manifest.json", "manifest.sha256", "model.pt", "lib/blended.so", "goldens/0.pt"])
def test_a_bundle_file_that_cannot_be_read_completely_is_an_error(
    on_broken_disk: Run, torchscript: Path, codes: dict[str, int], name: str
) -> None:
    size = (torchscript / name).stat().st_size
    for count in (0, size // 2, size):
        done = on_broken_disk(name, count, torchscript, "--verify")
        assert done.returncode == codes["file_missing"], done.stderr
        assert done.stderr.endswith("cannot be read: Input/output error\n")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["model.pt", "lib/blended.so", "goldens/0.pt"])
def test_a_file_truncated_while_it_is_hashed_counts_as_changed(
    on_broken_disk: Run, bundle: Bundle, codes: dict[str, int], name: str
) -> None:
    size = (bundle.path / name).stat().st_size
    for count in (0, size // 2):
        done = on_broken_disk(name, count, bundle.path, "--verify", SHIM_CUT="1")
        assert done.returncode == codes["file_changed"]
        assert done.stderr.startswith(f"host: {name} of the bundle {bundle.path} has the SHA-256 ")


def test_a_pipe_as_an_input_is_refused_without_waiting(
    torchscript: Path, files: Path, program: Path, codes: dict[str, int]
) -> None:
    os.mkfifo(files / "pipe.npy")
    os.mkfifo(files / "pipe.npz")
    for words in ([files / "pipe.npy", files / "shift.npy"], [files / "pipe.npz"]):
        command: list[str | Path] = [program, torchscript, *(f"--input={path}" for path in words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == codes["input_unreadable"]
        assert done.stderr == f"host: the input file {words[0]} cannot be read: it is not a file\n"
