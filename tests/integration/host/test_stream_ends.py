"""How a stream of requests ends if the stream, the host or its driver fails."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.integration.host.conftest import IMAGE, SHIFT
from tests.integration.host.shims import compile_c
from tests.integration.host.streams import Given, driven, npy, request, stream
from tests.integration.host.test_stream import BOTH, Counts, put_model, x

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.host.conftest import Bundle

EXPECTED = (
    '; expected {"inputs": {"name": "file"}}, or {"batch": [...]} of such rows; {"bytes": N} replaces a file whose N '
    "bytes follow the line. The number of bytes that follow this line is unknown, so the stream ends here"
)
# A line that does not determine what follows it, and why it is refused.
LINES = {
    "nothing": (b"", "is not JSON"),
    "not JSON": (b"{", "is not JSON"),
    "not an object": (b"[1, 2]", "has no inputs"),
    "no inputs": (b"{}", "has no inputs"),
    "an unknown key": (b'{"inputs": {}, "priority": 1}', 'has an unknown "priority"'),
    "an output": (b'{"inputs": {}, "output": "a.npz"}', 'has an unknown "output"'),
    "a key twice": (b'{"inputs": {"x": "a", "x": "b"}}', 'has the key "x" twice'),
    "too deep": (b'{"inputs": ' + b"[" * 100_000, "nests deeper than 8 levels"),
    "too wide": (
        b'{"inputs": {%s}}' % b",".join(b'"%d": "a"' % number for number in range(4097)),
        "has more than 4096 keys in one object",
    ),
    "a number": (b'{"inputs": {"x": 1}}', 'has an input that is neither a file name nor {"bytes": N}'),
    "another object": (
        b'{"inputs": {"x": {"bytes": 1, "at": 2}}}',
        'has an input that is neither a file name nor {"bytes": N}',
    ),
    "bytes below 0": (b'{"inputs": {"x": {"bytes": -1}}}', "has an input of -1 bytes"),
    "half a byte": (b'{"inputs": {"x": {"bytes": 0.5}}}', "has an input of 0.5 bytes"),
    "too many bytes": (
        b'{"inputs": {"x": {"bytes": 9223372036854775808}}}',
        "has an input of 9223372036854775808 bytes",
    ),
    "an empty batch": (b'{"batch": []}', "has a batch that is not a list of 1 to 65536 rows"),
    "a batch of nothing": (b'{"batch": {}}', "has a batch that is not a list of 1 to 65536 rows"),
    "a batch in a batch": (b'{"batch": [{"batch": []}]}', "has no inputs"),
    "a batch and inputs": (b'{"batch": [{"inputs": {}}], "inputs": {}}', 'has an unknown "inputs"'),
    "an output in a batch": (b'{"batch": [{"inputs": {}, "output": "a"}]}', 'has an unknown "output"'),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("what", LINES)
def test_a_line_that_is_not_a_request_ends_the_stream_after_the_earlier_answers(
    program: Path, torchscript: Path, codes: dict[str, int], what: str
) -> None:
    line, message = LINES[what]
    said = stream(program, torchscript, [request(BOTH), request({}), line, b"\n", request(BOTH)])
    assert [answer.place for answer in said.answers] == [(0, 0), (1, 0)]
    text = f"request 2 {message}{EXPECTED}"
    assert said.fatal == {"code": codes["input_unreadable"], "kind": "input_unreadable", "message": text}
    assert (said.exit_code, said.stderr) == (codes["input_unreadable"], f"host: {text}\n")


CUT_OFF = "; expected it to end after a request: the program that writes it may have been killed"
# What follows a complete request, and the message.
ENDS = {
    "within a line": (b'{"inputs"', f"ends inside a line{CUT_OFF}"),
    "after a line": (b'{"inputs": {}}', f"ends inside a line{CUT_OFF}"),
    "before bytes": (b'{"inputs": {"image": {"bytes": 7}}}\n', f"ends inside the bytes of an input{CUT_OFF}"),
    "within bytes": (request(BOTH)[:-1], f"ends inside the bytes of an input{CUT_OFF}"),
    "within a batch": (request(BOTH, BOTH)[:-1], f"ends inside the bytes of an input{CUT_OFF}"),
    "within dropped bytes": (
        b'{"inputs": {"image": {"bytes": 9000000000000000000}}}\n1234',
        f"ends inside the bytes of an input{CUT_OFF}",
    ),
    "a line that is too long": (
        b'{"inputs": {"image": "%s"}}\n' % (b"a" * (1 << 24)),
        "has a line that is longer than 16 MiB; expected one request per line, and large inputs as bytes after it",
    ),
}


@pytest.mark.parametrize("what", ENDS)
def test_a_stream_that_ends_inside_a_request_answers_the_complete_ones(
    program: Path, torchscript: Path, codes: dict[str, int], what: str
) -> None:
    rest, message = ENDS[what]
    said = stream(program, torchscript, [request(BOTH), rest])
    assert [answer.place for answer in said.answers] == [(0, 0)]
    assert said.answers[0].outputs
    assert said.fatal["message"] == f"the stream of requests {message}"
    assert said.stderr == f"host: the stream of requests {message}\n"
    assert said.exit_code == said.fatal["code"] == codes["input_unreadable"]


# The first number of the image selects what the operator does.
SOURCE = """
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>
using opwright::Tensor;
namespace {
volatile int zero = 0;
Tensor blend(Tensor x, double, double) {
    const float how = x.const_data_ptr<float>()[0];
    if (how == 1000) *reinterpret_cast<volatile int*>(zero) = 1;
    if (how == 1001) while (true) pause();
    if (how == 1002) {
        std::puts("printed by an operator");
        std::fflush(stdout);
        (void)!write(1, "written\\n", 8);
    }
    if (how == 1003) std::exit(0);
    if (how == 1004) {
        char letter = 0;
        while (read(0, &letter, 1) > 0) {}
    }
    return torch::stable::clone(x);
}
}
OPWRIGHT_LIBRARY(blended, m) { m.def("blend(Tensor x, float scale=2.0, float offset=1.0) -> Tensor"); }
OPWRIGHT_IMPL(blended, CPU, m) { m.impl("blend", OPWRIGHT_FN(blend)); }
"""
CRASH, HANG, PRINT, EXIT, READ = range(1000, 1005)


def that(what: int) -> Given:
    image = IMAGE.copy()
    image[0, 0, 0, 0] = what
    return {"image": npy(image), "shift": npy(SHIFT)}


@pytest.fixture
def odd(bundle: Bundle, compile_library: Callable[..., Path]) -> Path:
    bundle.put("lib/blended.so", compile_library(SOURCE).read_bytes())
    return bundle.path


SIGSEGV = "host: the process was ended by SIGSEGV, an invalid memory access"


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_crash_names_the_request_and_prints_no_json(program: Path, odd: Path, is_batch: bool) -> None:
    crashing = request(BOTH, BOTH, that(CRASH), BOTH) if is_batch else request(that(CRASH))
    said = stream(program, odd, [request(BOTH), request(BOTH), crashing, request(BOTH)])
    name = "row 2 of request 2" if is_batch else "request 2"
    assert said.exit_code == -signal.SIGSEGV
    assert said.stderr == f"{SIGSEGV}, in the operator blended::blend, while it computed {name}\n"
    assert said.fatal is None
    places = [answer.place for answer in said.answers]  # those written before the crash
    assert places == [(0, 0), (1, 0), (2, 0), (2, 1)][: len(places)]


def test_an_operator_that_calls_exit_is_reported_with_its_request(
    program: Path, odd: Path, codes: dict[str, int]
) -> None:
    said = stream(program, odd, [request(BOTH), request(that(EXIT))])
    message = "the process was ended by a call to exit, in the operator blended::blend, while it computed request 1"
    assert (said.exit_code, said.stderr) == (codes["run_failed"], f"host: {message}\n")
    assert said.fatal is None


CRASHING_DECODER = """
int tjDecompressHeader3(void* decoder, const unsigned char* bytes, unsigned long size, int* a, int* b, int* c, int* d) {
    *(volatile int*)0 = 1;
    return 0;
}
"""


@pytest.fixture(scope="session")
def crashing_decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("shim") / "crashing_decoder.so", CRASHING_DECODER)


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_crash_while_reading_a_request_names_it(
    program: Path, torchscript: Path, files: Path, crashing_decoder: Path, is_batch: bool
) -> None:
    photo: Given = {"image": (files / "photo.jpg").read_bytes(), "shift": npy(SHIFT)}
    crashing = request(BOTH, photo) if is_batch else request(photo)
    said = stream(
        program, torchscript, [request(BOTH), crashing], env={**os.environ, "LD_PRELOAD": str(crashing_decoder)}
    )
    assert said.exit_code == -signal.SIGSEGV
    assert said.stderr == f"{SIGSEGV}, while it read {'row 1 of request 1' if is_batch else 'request 1'}\n"


def test_the_output_of_an_operator_is_not_part_of_the_stream(program: Path, odd: Path) -> None:
    said = stream(program, odd, [request(that(PRINT)), request(BOTH)])
    assert [answer.place for answer in said.answers] == [(0, 0), (1, 0)]
    assert (said.exit_code, said.stderr) == (0, "printed by an operator\nwritten\n")


def test_an_operator_finds_standard_input_empty_and_the_stream_continues(program: Path, odd: Path) -> None:
    with driven(program, odd) as host:
        for number, what in enumerate((that(READ), BOTH)):
            host.ask(request(what))
            assert host.answer().place == (number, 0)
        host.stdin.close()
        assert host.end() == (0, "")


GONE = "host: standard output is closed: the program that reads the answers has exited\n"


@pytest.mark.parametrize("requests", [1, 20])
def test_a_host_exits_with_its_driver_even_if_an_operator_hangs(
    program: Path, odd: Path, codes: dict[str, int], requests: int
) -> None:
    with driven(program, odd) as host:
        host.ask(request(BOTH), *[request(that(HANG))] * requests)
        assert host.answer().place == (0, 0)
        host.stdin.close()
        host.stdout.close()
        assert host.end() == (codes["output_unwritable"], GONE)


@pytest.mark.parametrize("turn", range(5))
def test_a_driver_that_has_all_answers_may_close_both_streams(program: Path, odd: Path, turn: int) -> None:
    with driven(program, odd) as host:
        for number in range(turn):
            host.ask(request(BOTH))
            assert host.answer().place == (number, 0)
        host.stdin.close()
        host.stdout.close()
        assert host.end() == (0, "")


def test_a_host_exits_if_no_process_reads_its_answers(program: Path, odd: Path, codes: dict[str, int]) -> None:
    with driven(program, odd) as host:
        host.stdout.close()  # standard input is still open
        assert host.end() == (codes["output_unwritable"], GONE)


def test_a_full_disk_on_standard_output_ends_the_host(
    program: Path, torchscript: Path, codes: dict[str, int], tmp_path: Path
) -> None:
    script = 'ulimit -f 8; exec "$@" >answers'
    command: list[str | Path] = ["sh", "-c", script, "sh", program, torchscript, "--stream"]
    done = subprocess.run(command, input=request(BOTH) * 1000, capture_output=True, check=False, cwd=tmp_path)
    assert done.returncode == codes["output_unwritable"]
    assert done.stderr.decode().startswith("host: standard output cannot be written: ")


@pytest.mark.parametrize(
    ("closed", "message"),
    [
        ("<&-", "the stream of requests cannot be read: Bad file descriptor"),
        (">&-", "standard output cannot be written"),
    ],
)
def test_a_closed_standard_stream_is_an_error(
    program: Path, torchscript: Path, codes: dict[str, int], closed: str, message: str
) -> None:
    command: list[str | Path] = ["sh", "-c", f'"$@" {closed}', "sh", program, torchscript, "--stream"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == codes["input_unreadable" if closed == "<&-" else "output_unwritable"]
    assert message in done.stderr


LIMIT = 1 << 30


def test_exceeding_the_memory_limit_is_an_error_of_its_request_only(
    program: Path, bundle: Bundle, tmp_path: Path
) -> None:
    path = put_model(bundle, Counts()).path
    large = b'{"inputs": {"x": {"bytes": %d}}}\n' % LIMIT + bytes(LIMIT)
    between = request(x([0, 1]))
    said = stream(program, path, [between, request(x([7, 1])), between, large, between], f"--memory-limit={LIMIT}")
    assert (said.exit_code, said.fatal) == (0, None)
    errors = [answer.error for answer in said.answers]
    assert errors[0] == errors[2] == errors[4] is None
    assert errors[1]
    assert errors[1][0] == "run_failed"
    assert "can't allocate memory" in errors[1][1]
    assert errors[3] == ("input_unreadable", "the content of the input x cannot be read: it is larger than memory")
    np.save(tmp_path / "x.npy", np.array([[7, 1]], dtype=np.float32))
    command: list[str | Path] = [program, path, "--input", tmp_path / "x.npy", f"--memory-limit={LIMIT}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "can't allocate memory" in done.stderr


@pytest.mark.parametrize("limit", ["0", "-1", "many", "9223372036854775808"])
def test_an_invalid_memory_limit_is_wrong_usage(
    program: Path, torchscript: Path, codes: dict[str, int], limit: str
) -> None:
    command: list[str | Path] = [program, torchscript, "--stream", f"--memory-limit={limit}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == codes["usage"]
    assert "--memory-limit" in done.stderr
