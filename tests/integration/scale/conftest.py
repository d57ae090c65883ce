"""Maps with a model that does what its inputs instruct: the bundle, inputs, tables, and programs to disturb."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pytest
from PIL import Image

from opwright.host.install import install_host
from tests.interpreter import python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.integration.conftest import Shipped

pq = pytest.importorskip("pyarrow.parquet")

# The instructions to the operator of tests/packages/mapped, as numbers in its input.
SEGFAULT, LEAVE, HANG, EAT_MEMORY, WAIT, REFUSE, KILL = map(float, range(1001, 1008))

# Longer than any operation; a test that hangs then fails.
PATIENCE_S = 600
PROGRESS = re.compile(r"(?!interrupted: |error: ).*: (\d[\d,]* of \d[\d,]* done, .*|\d[\d,]* inputs found)\n")


@dataclass
class Inputs:
    """A folder of small arrays."""

    folder: Path

    def add(self, *numbers: float, height: int = 4) -> list[Path]:
        """Write a file for each number, which becomes its first element; the names are in the order of the numbers."""
        before = len(list(self.folder.iterdir()))
        return [self._write(f"{before + place:05d}.npy", number, height) for place, number in enumerate(numbers)]

    def replace(self, place: int, content: bytes) -> None:
        (self.folder / f"{place:05d}.npy").write_bytes(content)

    def _write(self, name: str, number: float, height: int) -> Path:
        np.save(self.folder / name, image(number, height))
        return self.folder / name


def image(number: float, height: int = 4) -> np.ndarray[Any, Any]:
    """An input of the model whose first element is `number`. Sums of its elements are exact."""
    drawn = np.random.default_rng(int(number)).integers(0, 2**16, (1, 3, height, 4))
    made = (drawn / 2**16).astype(np.float32)
    made[0, 0, 0, 0] = number
    return made


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a table in order, without the pixels, which are output_1."""
    paths = sorted(folder.glob("part-*.parquet"))
    found = [row for path in paths for row in pq.read_table(path).drop_columns(["output_1"]).to_pylist()]
    assert [row["id"] for row in found] == list(range(len(found)))
    return found


def failures(folder: Path) -> dict[int, tuple[str, str]]:
    """The rows that failed: status and error, keyed by id."""
    return {row["id"]: (row["status"], row["error"]) for row in rows(folder) if row["status"] != "ok"}


def state(folder: Path) -> dict[str, str]:
    """Every file of a folder with the digest of its contents, and every subfolder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
    }


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until, f"waited in vain until {what}"
        time.sleep(0.005)


def without_progress(errors: str) -> str:
    """The standard error of a map without its progress lines, which appear on slow machines."""
    return "".join(line for line in errors.splitlines(keepends=True) if not PROGRESS.fullmatch(line))


def children(pid: int) -> list[int]:
    """The running child processes of a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text().rpartition(")")
            if rest.split()[1] == str(pid) and rest.split()[0] != "Z":
                found.append(int(name.split()[0]))
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@dataclass
class MapProgram:
    """A running `opwright map` program."""

    process: subprocess.Popen[str]
    output: Path
    hosts: list[int] = field(default_factory=list)

    def wait_for_files(self, count: int) -> None:
        """Wait for this number of files of results, and record the hosts that run."""
        what = f"{count} files of results are there"
        wait_until(lambda: len(list(self.output.glob("part-*.parquet"))) >= count, what)
        self.wait_for_hosts(1)

    def wait_for_hosts(self, count: int) -> None:
        """Wait for this number of hosts, and record them."""

        def are_running() -> bool:
            assert self.process.poll() is None, self.process.communicate()
            self.hosts = children(self.process.pid)
            return len(self.hosts) >= count

        wait_until(are_running, f"{count} hosts run")

    def end(self, number: signal.Signals | None = None) -> subprocess.CompletedProcess[str]:
        """Send the program a signal, and wait until it and its hosts have exited."""
        if number is not None:
            self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=PATIENCE_S)
        wait_until(lambda: not any(map(is_running, self.hosts)), "its hosts have ended")
        return subprocess.CompletedProcess([], self.process.returncode, output, without_progress(errors))


class StartMap(Protocol):
    """Starts `opwright map` with the bundle and these arguments; results go to `output`."""

    def __call__(self, *words: str | Path, output: str | Path, **environment: str | Path) -> MapProgram: ...


class RunMap(Protocol):
    """Runs `opwright map` with the bundle and these arguments to completion; results go to `output`."""

    def __call__(
        self, *words: str | Path, output: str | Path, **environment: str | Path
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(scope="session")
def bundle(shipped: Shipped) -> Path:
    install_host()
    return shipped("mapped")


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    (tmp_path / "inputs").mkdir()
    return Inputs(tmp_path / "inputs")


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that lets waiting operators continue; tests create it."""
    monkeypatch.setenv("MAPPED_GATE", str(tmp_path / "gate"))
    return tmp_path / "gate"


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> Iterator[None]:
    """Make programs heed SIGINT even if a shell runs the tests in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def start_map(bundle: Path) -> Iterator[StartMap]:
    started: list[MapProgram] = []

    def start_map(*words: str | Path, output: str | Path, **environment: str | Path) -> MapProgram:
        command = [sys.executable, "-m", "opwright", "map", bundle, *words, "--output", output]
        surrounding: dict[str, str | Path] = {**os.environ, **environment}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=surrounding)
        started.append(MapProgram(process, Path(output)))
        return started[-1]

    yield start_map
    for program in started:
        program.process.kill()
        program.process.communicate()


@pytest.fixture
def run_map(bundle: Path) -> RunMap:
    def run_map(*words: str | Path, output: str | Path, **environment: str | Path) -> subprocess.CompletedProcess[str]:
        command = [*python(), "-m", "opwright", "map", bundle, *words, "--output", output]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
        done.stderr = without_progress(done.stderr)
        return done

    return run_map


@pytest.fixture(scope="session")
def fragile(shipped: Shipped) -> Path:
    """The bundle of tests/packages/fragile, which crashes at 13; do not change it."""
    return shipped("fragile")


@pytest.fixture(scope="session")
def blended(shipped: Shipped) -> Path:
    """The bundle of tests/packages/blended: two inputs, and an output of many sizes; do not change it."""
    return shipped("blended")


@pytest.fixture
def pictures(tmp_path: Path) -> list[str]:
    """The paths of six pictures."""
    random = np.random.default_rng(0)
    paths = []
    for number in range(6):
        path = tmp_path / f"{number}.png"
        Image.fromarray(random.integers(0, 256, (12, 10, 3), np.uint8)).save(path)
        paths.append(str(path))
    return paths
