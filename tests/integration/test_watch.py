"""`opwright build --watch` and `opwright check --watch`: one run per save, until Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

OPWRIGHT = Path(sys.executable).with_name("opwright")
LONGEST_S = 120.0
# Without PyTorch's headers, so that builds are quick.
OP = """
import opwright
from ranges import HIGHEST
library = opwright.Library("watched", sources=["kernel.cpp"], cflags=["-I{common}"])
@library.op
def limit(x: int) -> int:
    return min(x, HIGHEST)
"""
RANGES = "HIGHEST = 9\n"
PATH = "import pathlib, sys\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\n"
KERNEL = "#include <shared.h>\nint answer() { return ANSWER; }\n"
PYTHON_ONLY = """
import opwright, torch
library = opwright.Library("watched_check")
@library.op
def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x
@double.samples
def _(make: opwright.Make):
    yield (make.randn(3),)
"""


class Watch:
    """A watch in a separate process, as in a terminal."""

    def __init__(self, *arguments: str | Path, log: Path) -> None:
        self.log = log
        # Programs inherit an ignored Ctrl-C from the process that runs the tests.
        old = signal.signal(signal.SIGINT, signal.default_int_handler)
        with log.open("w") as file:
            self.process = subprocess.Popen(
                [OPWRIGHT, *arguments, "--watch"], stdout=file, stderr=subprocess.STDOUT, start_new_session=True
            )
        signal.signal(signal.SIGINT, old)

    def runs(self, count: int) -> list[str]:
        """The lines about the runs, as soon as there are `count`."""
        end = time.monotonic() + LONGEST_S
        while time.monotonic() < end:
            found = re.findall(r"^\d\d:\d\d:\d\d (.*); watching \d+ files$", self.log.read_text(), flags=re.MULTILINE)
            if len(found) >= count:
                return [re.sub(r"\d[\d.]* (?:s|min)", "N s", line) for line in found]
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def end(self, number: int = signal.SIGINT) -> int:
        os.killpg(self.process.pid, number)
        return self.process.wait(LONGEST_S)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    library = tmp_path / "watched"
    library.mkdir()
    common = tmp_path / "common"
    common.mkdir()
    (common / "shared.h").write_text("#define ANSWER 42\n")
    (library / "op.py").write_text(PATH + OP.format(common=common))
    (library / "ranges.py").write_text(RANGES)
    (library / "kernel.cpp").write_text(KERNEL)
    return library


@pytest.fixture
def watch(folder: Path) -> Iterator[Watch]:
    one = Watch("build", folder, "--json", folder.parent / "log.jsonl", log=folder.parent / "log.txt")
    yield one
    if one.process.poll() is None:
        one.end(signal.SIGKILL)


def children(process: int) -> list[int]:
    """The running child processes of a process, and their children."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process and fields[0] != "Z":
            child = int(status.parent.name)
            found += [child, *children(child)]
    return found


@pytest.mark.sample(of="watches")
def test_each_save_of_a_file_that_was_read_starts_one_build(folder: Path, watch: Watch) -> None:
    assert watch.runs(1) == ["built in N s"]
    (folder.parent / "common/shared.h").write_text("#define ANSWER 43\n")
    assert watch.runs(2)[1] == "built in N s (shared.h changed)"
    draft = folder / "kernel.cpp~"
    draft.write_text(KERNEL + "int second = nowhere;\n")
    draft.replace(folder / "kernel.cpp")
    assert watch.runs(3)[2] == "failed in N s (kernel.cpp changed)"
    assert re.search(r"kernel\.cpp:3:14: error: .nowhere. was not declared", watch.log.read_text())
    # Files that the last successful build read are still watched although the new content does not compile.
    (folder.parent / "common/shared.h").write_text("#define ANSWER 44\nint nowhere = 1;\n")
    assert watch.runs(4)[3] == "built in N s (shared.h changed)"
    for name, text in (("kernel.cpp", KERNEL), ("ranges.py", "HIGHEST = 8\n")):
        (folder / name).write_text(text)
    assert watch.runs(5)[4].startswith("built in N s (")
    (folder / "op.py").write_text("library = none\n")
    assert watch.runs(6)[5] == "failed in N s (op.py changed)"
    assert f"error: {folder}/op.py raises NameError: name 'none' is not defined" in watch.log.read_text()
    assert watch.end() == 0
    assert len(watch.runs(6)) == 6
    lines = [json.loads(line) for line in (folder.parent / "log.jsonl").read_text().splitlines()]
    assert [line["exit_code"] for line in lines] == [0, 0, 5, 0, 0, 3]
    assert lines[0]["result"]["operators"] == ["watched::limit(SymInt x) -> SymInt"]
    assert lines[2]["result"] is None
    assert lines[1]["changed"] == [str(folder.parent / "common/shared.h")]
    assert "Traceback" not in watch.log.read_text()
    assert "Aborted" not in watch.log.read_text()


@pytest.mark.sample(of="watches")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_a_watch_that_is_stopped_during_a_check_leaves_no_process(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    (tmp_path / "op.py").write_text(PYTHON_ONLY)
    watch = Watch("check", tmp_path, "--quick", "--runtime", "eager", "--json", "-", log=tmp_path / "log.txt")
    assert watch.runs(1) == ["passed in N s"]
    first = json.loads(watch.log.read_text().splitlines()[0])
    assert first["result"]["passed"] is True
    # A change stops a run and starts another, which checks the new content.
    (tmp_path / "op.py").write_text(PYTHON_ONLY.replace("return 2 * x", "return 3 * x"))
    started = _started(watch)
    (tmp_path / "op.py").write_text(PYTHON_ONLY.replace("return 2 * x", "return x.nowhere"))
    assert watch.runs(2)[1:] == ["failed in N s (op.py changed)"]
    assert not any(map(_is_running, started))
    (tmp_path / "op.py").write_text(PYTHON_ONLY)
    started = _started(watch)
    assert watch.end(number) == code
    assert not any(map(_is_running, started))
    assert "Traceback" not in watch.log.read_text()


def _started(watch: Watch) -> list[int]:
    """The processes of a check, once it has started several."""
    end = time.monotonic() + LONGEST_S
    while time.monotonic() < end:
        if len(found := children(watch.process.pid)) > 2:
            return found
        time.sleep(0.02)
    raise AssertionError(watch.log.read_text())


def _is_running(process: int) -> bool:
    return (Path("/proc") / str(process)).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere/op.py"], "nowhere is not a folder: --watch requires an existing folder"),
        (["--setup", "."], "--watch watches an operator library: it does not support --setup"),
    ],
)
def test_what_cannot_be_watched_is_a_usage_error(tmp_path: Path, arguments: list[str], message: str) -> None:
    command: list[str | Path] = [OPWRIGHT, "build", *arguments, "--watch"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr
