"""Programs that are forked from a process that has imported their modules."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opwright.toolchain.fork_server import PLAIN, fork_server
from opwright.toolchain.run import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PREPARED = "import os, tempfile\nby = os.getpid()\nnumbers = []\ntempfile.gettempdir()\n"
PROGRAM = """
import atexit, ctypes, os, signal, sys, tempfile, threading, time
import prepared

def main():
    match sys.argv[1:]:
        case ["where"]:
            prepared.numbers.append(1)
            print(prepared.by == os.getppid(), len(prepared.numbers), os.getcwd(), os.environ.get("A_VARIABLE"))
            print("aside", file=sys.stderr)
        case ["temporary"]:
            print(tempfile.gettempdir())
        case ["import", name]:
            print(__import__(name).ANSWER)
        case ["exit"]:
            sys.exit(3)
        case ["message"]:
            sys.exit("what went wrong")
        case ["finish"]:
            atexit.register(print, "at exit")
            threading.Thread(target=lambda: (time.sleep(0.05), print("in a thread"))).start()
            ctypes.CDLL(None).printf(b"in native code\\n")
            print("in Python")
        case ["raise"]:
            raise ValueError("what went wrong")
        case ["die", number]:
            os.kill(os.getpid(), int(number))
        case ["wait", path]:
            open(path, "w").write(str(os.getpid()))
            time.sleep(600)

if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("programs")
    (folder / "prepared.py").write_text(PREPARED)
    (folder / "program.py").write_text(PROGRAM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        patch.setattr("opwright.toolchain.fork_server._shared", [])  # other tests may have opened one
        yield folder


@pytest.fixture(scope="module")
def python(folder: Path) -> Iterator[Sequence[str]]:
    with fork_server(["prepared", "no_such_module"]) as python:
        yield python


def test_a_program_runs_in_a_separate_process_that_has_imported_its_modules(
    python: Sequence[str], tmp_path: Path
) -> None:
    for value in ("1", "2"):
        done = run([*python, "program", "where"], cwd=tmp_path, env={"A_VARIABLE": value})
        assert sorted(done.output.splitlines()) == [f"True 1 {tmp_path} {value}", "aside"]
        assert done.exit_code == 0


def test_its_temporary_folder_is_that_of_its_environment(python: Sequence[str], tmp_path: Path) -> None:
    assert run([*python, "program", "temporary"], env={"TMPDIR": str(tmp_path)}).output == f"{tmp_path}\n"


def test_it_imports_from_the_folders_of_its_environment(
    python: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "added_later.py").write_text("ANSWER = 42\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    for words in (PLAIN, python):
        assert run([*words, "program", "import", "added_later"]).output == "42\n"


def test_it_exits_as_it_would_without_a_server(python: Sequence[str]) -> None:
    for words in (PLAIN, python):
        assert run([*words, "program", "exit"], check=False).exit_code == 3
        for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL):
            assert run([*words, "program", "die", str(int(number))], check=False).exit_code == -number
        done = run([*words, "program", "raise"], check=False)
        assert (done.exit_code, done.output.splitlines()[-1]) == (1, "ValueError: what went wrong")


def test_it_joins_threads_and_runs_exit_handlers(python: Sequence[str]) -> None:
    for words in (PLAIN, python):
        printed = run([*words, "program", "finish"]).output.splitlines()
        assert sorted(printed) == ["at exit", "in Python", "in a thread", "in native code"]
        assert printed.index("in a thread") < printed.index("at exit")
        done = run([*words, "program", "message"], check=False)
        assert (done.exit_code, done.output) == (1, "what went wrong\n")


def test_it_is_killed_with_its_client(python: Sequence[str], tmp_path: Path) -> None:
    written = tmp_path / "pid"
    done = run([*python, "program", "wait", written], check=False, timeout_s=3)
    while not written.exists():  # on a busy machine, it may not have started yet
        done = run([*python, "program", "wait", written], check=False, timeout_s=30)
    assert done.timed_out
    process = Path("/proc") / written.read_text()
    while process.exists() and "State:\tZ" not in (process / "status").read_text():
        time.sleep(0.01)


@pytest.mark.parametrize("sent", [b"", b"\x09", (9).to_bytes(8, "little"), (9).to_bytes(8, "little") + b"{}"])
def test_a_client_that_dies_during_its_request_does_not_stop_the_server(python: Sequence[str], sent: bytes) -> None:
    run([*python, "program", "exit"], check=False)  # the server has started
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"{python[-1]}/socket")
        client.sendall(sent)
    assert run([*python, "program", "exit"], check=False, timeout_s=300).exit_code == 3


def test_a_program_whose_folder_is_gone_does_not_affect_the_others(python: Sequence[str], tmp_path: Path) -> None:
    waiting = subprocess.Popen([*python, "program", "wait", tmp_path / "pid"])
    while not (tmp_path / "pid").exists():
        time.sleep(0.01)
    job = {"module": "program", "arguments": ["exit"], "folder": str(tmp_path / "gone"), "environment": {}}
    text = json.dumps(job).encode()
    with socket.socket(socket.AF_UNIX) as client, (tmp_path / "printed").open("w+") as printed:
        client.connect(f"{python[-1]}/socket")
        socket.send_fds(client, [len(text).to_bytes(8, "little")], [printed.fileno()] * 3)
        client.sendall(text)
        assert client.recv(16) == b"1"
        assert "FileNotFoundError" in (tmp_path / "printed").read_text()
    assert run([*python, "program", "exit"], check=False).exit_code == 3
    assert waiting.poll() is None
    waiting.kill()
    waiting.wait()


def test_nested_servers_share_one_process(python: Sequence[str]) -> None:
    with fork_server(["prepared"]) as inner:
        assert inner == python


def test_without_a_server_the_program_starts_directly(python: Sequence[str], folder: Path, tmp_path: Path) -> None:
    gone = [*python[:-1], str(tmp_path / "gone")]
    first = run([*gone, "program", "where"], cwd=tmp_path).output.splitlines()
    assert sorted(first) == [f"False 1 {tmp_path} None", "aside"]


def test_programs_run_even_if_the_server_cannot_start(folder: Path, tmp_path: Path) -> None:
    long = tmp_path / ("a" * 120)  # longer than the path of a socket may be
    long.mkdir()
    program = """
import sys
from opwright.toolchain.fork_server import fork_server
from opwright.toolchain.run import run
with fork_server(["prepared"]) as python:
    print(run([*python, "program", "exit"], check=False).exit_code)
"""
    done = run([sys.executable, "-c", program], env={"TMPDIR": str(long)})
    assert done.output.splitlines()[-1] == "3"
