"""A failing disk, or a file truncated while being read, is an error with a code, never a partial result."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.integration.host.conftest import CODES
from tests.integration.host.shims import BROKEN_DISK, compile_c

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import BuildOnce
    from tests.integration.host.conftest import Bundle

LINES = 600
CODES_BY_NAME = {name: number for number, name in CODES.items()}


@pytest.fixture(scope="session")
def broken_disk(build_once: BuildOnce) -> Path:
    def make(folder: Path) -> None:
        compile_c(folder / "shim.so", BROKEN_DISK)

    return build_once("broken_disk", make) / "shim.so"


@pytest.fixture
def on_broken_disk(broken_disk: Path, program: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the host on a system that cannot read the file of this name beyond a number of bytes."""

    def run(name: str, count: int, *words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        shim = {"LD_PRELOAD": str(broken_disk), "SHIM_FILE": name, "SHIM_BYTES": str(count)}
        environment = {**os.environ, **shim, **more}
        return subprocess.run([program, *words], capture_output=True, text=True, env=environment, check=False)

    return run


def test_a_list_that_cannot_be_read_completely_is_an_error_and_gets_no_answers(
    on_broken_disk: Callable[..., subprocess.CompletedProcess[str]], torchscript: Path, files: Path
) -> None:
    line = '{"inputs": {"image": "image.npy", "shift": "shift.npy"}}\n'
    (files / "list").write_text(line * LINES)
    whole = on_broken_disk("/list", len(line) * LINES + 1, torchscript, "--requests", files / "list", "--json", "-")
    assert whole.returncode == 0, whole.stderr
    assert len(whole.stdout.splitlines()) == LINES + 1
    for count in (0, 1, len(line) * LINES // 2, len(line) * LINES - 1, len(line) * LINES):
        done = on_broken_disk("/list", count, torchscript, "--requests", files / "list", "--json", "-")
        message = f"the list of requests {files}/list cannot be read: Input/output error"
        assert (done.returncode, done.stderr) == (CODES_BY_NAME["input_unreadable"], f"host: {message}\n")
        (answer,) = map(json.loads, done.stdout.splitlines())
        assert answer["error"]["kind"] == "input_unreadable"


def test_a_list_from_a_failing_standard_input_is_an_error(torchscript: Path, tmp_path: Path, program: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    done = subprocess.run(
        [program, torchscript, "--requests", "-"], stdin=folder, capture_output=True, text=True, check=False
    )
    os.close(folder)
    assert done.returncode == CODES_BY_NAME["input_unreadable"]
    assert done.stderr == "host: the list of requests - cannot be read: Is a directory\n"


@pytest.mark.parametrize("name", ["image.npy", "both.npz", "photo.jpg"])
def test_an_input_that_cannot_be_read_completely_is_an_error(
    on_broken_disk: Callable[..., subprocess.CompletedProcess[str]], torchscript: Path, files: Path, name: str
) -> None:
    inputs = [files / name] if name == "both.npz" else [files / name, files / "shift.npy"]
    words = [torchscript, *(f"--input={path}" for path in inputs), "--warm-up", "0"]
    size = (files / name).stat().st_size
    assert on_broken_disk(name, size + 1, *words).returncode == 0
    for count in (0, size // 2, size):
        done = on_broken_disk(name, count, *words)
        assert done.returncode == CODES_BY_NAME["input_unreadable"]
        assert done.stderr == f"host: the input file {files / name} cannot be read: Input/output error\n"


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["manifest.json", "manifest.sha256", "model.pt", "lib/blended.so", "goldens/0.pt"])
def test_a_bundle_file_that_cannot_be_read_completely_is_an_error(
    on_broken_disk: Callable[..., subprocess.CompletedProcess[str]], torchscript: Path, name: str
) -> None:
    size = (torchscript / name).stat().st_size
    for count in (0, size // 2, size):
        done = on_broken_disk(name, count, torchscript, "--verify")
        assert done.returncode == CODES_BY_NAME["file_missing"], done.stderr
        assert done.stderr.endswith("cannot be read: Input/output error\n")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["model.pt", "lib/blended.so", "goldens/0.pt"])
def test_a_file_truncated_while_it_is_hashed_counts_as_changed(
    on_broken_disk: Callable[..., subprocess.CompletedProcess[str]], bundle: Bundle, name: str
) -> None:
    size = (bundle.path / name).stat().st_size
    for count in (0, size // 2):
        done = on_broken_disk(name, count, bundle.path, "--verify", SHIM_CUT="1")
        assert done.returncode == CODES_BY_NAME["file_changed"]
        assert done.stderr.startswith(f"host: {name} of the bundle {bundle.path} has the SHA-256 ")


def test_a_pipe_as_an_input_is_refused_without_waiting(torchscript: Path, files: Path, program: Path) -> None:
    os.mkfifo(files / "pipe.npy")
    os.mkfifo(files / "pipe.npz")
    for words in ([files / "pipe.npy", files / "shift.npy"], [files / "pipe.npz"]):
        command: list[str | Path] = [program, torchscript, *(f"--input={path}" for path in words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == CODES_BY_NAME["input_unreadable"]
        assert done.stderr == f"host: the input file {words[0]} cannot be read: it is not a file\n"
