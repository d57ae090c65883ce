"""An operator that exits or crashes: a line names it and its request, and the host never reports success."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.integration.host.conftest import REQUEST
from tests.integration.host.shims import compile_c

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.host.conftest import Bundle, Refused, Run

# An environment variable selects what the operator does, so that one library serves all tests.
SOURCE = """
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
using opwright::Tensor;
namespace {
volatile int zero = 0;
int deeper(int depth) {
    volatile char stack[4096];
    stack[0] = (char)depth;
    return depth < 0 ? 0 : deeper(depth + 1) + stack[0];
}
void act(const std::string& how) {
    if (how == "exit") std::exit(0);
    if (how == "_exit") ::_exit(0);
    if (how == "_Exit") std::_Exit(0);
    if (how == "quick_exit") std::quick_exit(0);
    if (how == "segfault") *reinterpret_cast<volatile int*>(zero) = 1;
    if (how == "divide") zero = 7 / zero;
    if (how == "abort") std::abort();
    if (how == "overflow") deeper(0);
    if (how == "throw") std::thread([] { throw 1; }).join();
    if (how == "thread") std::thread([] { *reinterpret_cast<volatile int*>(zero) = 1; }).join();
    if (how == "print") {
        std::puts("printed by an operator");
        std::fflush(stdout);
        (void)!write(1, "written\\n", 8);
    }
    if (how == "fork") {
        const pid_t child = fork();
        if (child == 0) std::exit(0);
        waitpid(child, nullptr, 0);
    }
}
Tensor blend(Tensor x, double, double) {
    Tensor result = torch::stable::clone(x);
    if (const char* how = getenv("TEST_END")) act(how);
    return result;
}
struct Opened { Opened() { if (const char* how = getenv("TEST_OPEN")) act(how); } } opened;
}
OPWRIGHT_LIBRARY(blended, m) { m.def("blend(Tensor x, float scale=2.0, float offset=1.0) -> Tensor"); }
OPWRIGHT_IMPL(blended, CPU, m) { m.impl("blend", OPWRIGHT_FN(blend)); }
"""
OPERATOR = "in the operator blended::blend, while it computed "


@pytest.fixture
def ending(bundle: Bundle, compile_library: Callable[..., Path]) -> Bundle:
    bundle.put("lib/blended.so", compile_library(SOURCE).read_bytes())
    return bundle


@pytest.fixture
def run(program: Path, ending: Bundle, files: Path) -> Run:
    """Run a list of two requests; its first line is computed first."""
    (files / "list").write_text(f"{REQUEST}\n" * 2)

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command: list[str | Path] = [program, ending.path, "--requests", files / "list", "--warm-up", "0", *words]
        environment = {**os.environ, **variables}
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)

    return run


@pytest.mark.parametrize("how", ["exit", "_exit", "_Exit", "quick_exit"])
def test_an_operator_that_calls_exit_is_reported_by_name(
    run: Run, files: Path, codes: dict[str, int], how: str
) -> None:
    done = run("--json", TEST_END=how)
    called = "_exit" if how.startswith("_") else "exit"
    message = f"the process was ended by a call to {called}, {OPERATOR}line 1 of {files}/list"
    assert (done.returncode, done.stderr) == (codes["run_failed"], f"host: {message}\n")
    error = {"code": codes["run_failed"], "kind": "run_failed", "message": message}
    assert json.loads(done.stdout) == {"request": f"line 1 of {files}/list", "error": error}


@pytest.mark.parametrize("how", ["exit", "_exit"])
def test_a_library_that_calls_exit_while_being_opened_is_refused(
    run: Run, ending: Bundle, codes: dict[str, int], how: str
) -> None:
    done = run("--json", TEST_OPEN=how)
    assert done.returncode == codes["library_refused"]
    library = f"{ending.path}/lib/blended.so"
    assert done.stderr == f"host: the process was ended by a call to {how}, while it opened the library {library}\n"
    assert json.loads(done.stdout)["error"]["kind"] == "library_refused"


@pytest.mark.parametrize(
    ("how", "number", "words"),
    [
        ("segfault", signal.SIGSEGV, "SIGSEGV, an invalid memory access"),
        ("overflow", signal.SIGSEGV, "SIGSEGV, an invalid memory access"),
        ("divide", signal.SIGFPE, "SIGFPE, a division by zero"),
        ("abort", signal.SIGABRT, "SIGABRT, a call to abort"),
    ],
)
@pytest.mark.parametrize("runners", ["1", "2"])
def test_a_crashing_operator_is_named_and_the_exit_status_is_the_signal(
    run: Run, how: str, number: int, words: str, runners: str
) -> None:
    done = run("--json", "--runners", runners, TEST_END=how)
    assert done.returncode == -number
    lines = done.stderr.splitlines()  # the second runner may also crash before the process exits
    assert lines[0].startswith(f"host: the process was ended by {words}, {OPERATOR}line ")
    assert json.loads(done.stdout.splitlines()[0])["error"]["kind"] == "run_failed"


@pytest.mark.parametrize(("how", "number"), [("thread", signal.SIGSEGV), ("throw", signal.SIGABRT)])
def test_a_crash_in_a_thread_of_an_operator_is_attributed_to_the_operator(
    run: Run, files: Path, how: str, number: int
) -> None:
    done = run(TEST_END=how)
    assert done.returncode == -number
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("host: ")]
    assert line.endswith(f", in a separate thread, {OPERATOR}line 1 of {files}/list")


def test_a_crash_while_opening_a_library_names_the_library(run: Run, ending: Bundle) -> None:
    done = run(TEST_OPEN="segfault")
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.endswith(f", while it opened the library {ending.path}/lib/blended.so\n")


def test_a_crash_while_verifying_a_bundle_is_attributed_to_its_goldens(
    program: Path, ending: Bundle, codes: dict[str, int]
) -> None:
    command: list[str | Path] = [program, ending.path, "--verify", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TEST_END": "exit"}, check=False)
    message = "the process was ended by a call to exit, in the operator blended::blend, while it computed the goldens"
    assert (done.returncode, done.stderr) == (codes["run_failed"], f"host: {message}\n")
    error = {"code": codes["run_failed"], "kind": "run_failed", "message": message}
    assert json.loads(done.stdout) == {"error": error}


def test_a_forked_child_of_an_operator_may_exit_silently(run: Run) -> None:
    done = run("--json", TEST_END="fork")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 3


def test_the_output_of_an_operator_is_not_mixed_into_json(run: Run) -> None:
    done = run("--json", TEST_END="print")
    keys = [min(json.loads(line)) for line in done.stdout.splitlines()]
    assert keys == ["outputs", "outputs", "first_result_seconds"]
    assert done.stderr.count("printed by an operator\nwritten\n") == 4


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_files_do_not_replace_a_closed_standard_stream(
    program: Path, torchscript: Path, files: Path, fitting: list[str], closed: str, codes: dict[str, int]
) -> None:
    words = [*fitting, "--json", f"{files}/out.json", "--output", f"{files}/out.npz"]
    command: list[str | Path] = ["sh", "-c", f'"$@" {closed}', "sh", program, torchscript, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    answer, figures = (files / "out.json").read_text().splitlines()[:2]
    assert (min(json.loads(answer)), min(json.loads(figures))) == ("outputs", "first_result_seconds")
    assert (files / "out.npz").read_bytes().startswith(b"PK")
    assert done.returncode == (codes["output_unwritable"] if ">&-" in closed.replace("2>&-", "") else 0)


def test_json_to_a_closed_standard_output_is_an_error(program: Path, torchscript: Path, codes: dict[str, int]) -> None:
    command: list[str | Path] = ["sh", "-c", '"$@" >&-', "sh", program, torchscript, "--verify", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == codes["output_unwritable"]
    assert done.stderr == "host: standard output cannot be written: is the disk full?\n"


def test_a_constructor_does_not_run_if_a_digest_is_wrong(refused: Refused, bundle: Bundle, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    source = f'#include <stdio.h>\n__attribute__((constructor)) void run(void) {{ fclose(fopen("{canary}", "w")); }}'
    compile_c(tmp_path / "evil.so", source)
    evil = (tmp_path / "evil.so").read_bytes()
    for place in ("host/lib/second.so", "lib/second.so"):
        bundle.add_library(place, bytes(len(evil)), namespaces=["second"], operators=[])
        (bundle.path / place).write_bytes(evil)
        for words in (["--verify"], ["-i", "nothing.npy"]):
            refusal = refused(bundle, *words)
            assert refusal.code == "file_changed"
            assert refusal.message.startswith(f"{place} of the bundle {bundle.path} has the SHA-256 ")
            assert not canary.exists()
        bundle.remove(place)
        bundle.say(lambda manifest: manifest["libraries"].pop())


@pytest.mark.parametrize("place", ["host/model.pt", "host/lib/libneeded.so"])
def test_files_in_host_are_checked_before_a_library_may_need_them(refused: Refused, bundle: Bundle, place: str) -> None:
    content = (bundle.path / "model.pt").read_bytes()
    bundle.put(place, content)
    if place.endswith(".pt"):
        bundle.say(lambda manifest: manifest["model"].update(file=place))
    (bundle.path / place).write_bytes(content[:-1] + b"\1")
    refusal = refused(bundle, "-i", "nothing.npy")
    assert refusal.code == "file_changed"
    assert refusal.message.startswith(f"{place} of the bundle {bundle.path} has the SHA-256 ")
