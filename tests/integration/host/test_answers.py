"""Each request gets an answer: its outputs, or an error line; the first error sets the exit code."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.integration.host.conftest import IMAGE, REQUEST, SHIFT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.integration.host.conftest import Host, Refused


def test_nan_and_infinities_are_passed_through(
    host: Host, any_bundle: Path, files: Path, fitting: list[str], tmp_path: Path
) -> None:
    image = IMAGE.copy()
    image[0, :, 2, 3:6] = (np.nan, np.inf, -np.inf)
    np.save(files / "image.npy", image)
    done = host(any_bundle, *fitting, "--output", tmp_path / "out.npz")
    assert (done.returncode, done.stderr) == (0, "")
    with np.load(tmp_path / "out.npz") as outputs:
        expected = image * np.float32(0.5) + np.float32(0.25) + SHIFT[:, None, None]
        np.testing.assert_array_equal(outputs["output_0"], expected)
        assert np.isnan(outputs["output_1"]).all()


def test_unwritable_outputs_are_reported_and_leave_no_partial_files(
    refused: Refused, torchscript: Path, fitting: list[str], tmp_path: Path
) -> None:
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    not_writable = "cannot be written: does its folder exist, and is it writable?"
    for name, code, message in (
        *((name, "output_unwritable", not_writable) for name in ("missing/out.npz", "file/out.npz", "folder.npz")),
        ("out.npy", "output_unwritable", "can hold only one array, but the model returns 2: pass an .npz file"),
        ("out.txt", "usage", "must end in .npz or .npy"),
    ):
        refusal = refused(torchscript, *fitting, "--output", tmp_path / name)
        assert (refusal.code, refusal.message) == (code, f"the output {tmp_path / name} {message}")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_disk_on_standard_output_is_reported(torchscript: Path, fitting: list[str], program: Path) -> None:
    for words in (fitting, ["--verify"], [*fitting, "--json", "/dev/full"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run([program, torchscript, *words], stdout=full, stderr=subprocess.PIPE, check=False)
        assert done.stderr.decode().endswith(" cannot be written: is the disk full?\n")


# A line, and the kind of error that answers it. The first bad line takes longer than those after it.
LINES = [
    (REQUEST, ""),
    (" ", None),
    ('{"inputs": {"image": "image.npy", "shift": "shift.npy"}, "output": "missing/out.npz"}', "output_unwritable"),
    ("{", "input_unreadable"),
    ("[1, 2]", "input_unreadable"),
    ('{"inputs": ["image.npy", "shift.npy"]}', "input_unreadable"),
    ('{"inputs": {"image": 1}}', "input_unreadable"),
    ('{"inputs": {}, "priority": 1}', "input_unreadable"),
    ('{"inputs": {"image": "nowhere.npy", "shift": "shift.npy"}}', "input_unreadable"),
    ('{"inputs": {"image": "shift.npy", "shift": "shift.npy"}}', "input_rank"),
    ('{"inputs": {"image": "image.npy", "shift": "shift.npy"}, "output": "out.npz"}', ""),
]


@pytest.mark.parametrize("runners", [1, 8])
def test_each_line_of_a_list_is_answered_and_the_first_error_sets_the_exit_code(
    host: Host, torchscript: Path, files: Path, codes: Mapping[str, int], runners: int
) -> None:
    requests = files / "list"
    requests.write_text("\n".join(line for line, _ in LINES))
    done = host(torchscript, "--requests", requests, "--json", "-", "--runners", str(runners))
    *answers, _ = map(json.loads, done.stdout.splitlines())
    kinds = {answer["request"]: answer["error"]["kind"] if "error" in answer else "" for answer in answers}
    assert kinds == {
        f"line {number} of {requests}": kind for number, (_, kind) in enumerate(LINES, start=1) if kind is not None
    }
    assert sorted(done.stderr.splitlines()) == sorted(
        f"host: {answer['request']}: {answer['error']['message']}" for answer in answers if "error" in answer
    )
    assert done.returncode == codes["output_unwritable"]
    assert (files / "out.npz").is_file()


def test_a_list_is_read_from_standard_input(
    host: Host, torchscript: Path, files: Path, codes: Mapping[str, int]
) -> None:
    good = REQUEST.replace(': "', f': "{files}/')
    done = host(torchscript, "--requests", "-", stdin=f"{good}\n{{}}\n")
    assert done.returncode == codes["input_unreadable"]
    assert done.stderr == (
        'host: line 2 of -: the request has no inputs; expected {"inputs": {"name": "file"}, "output": "file"}, where '
        "the output is optional\n"
    )
    for nothing in ("", "\n \n"):
        done = host(torchscript, "--requests", "-", stdin=nothing)
        assert done.returncode == codes["input_unreadable"]
        assert done.stderr == "host: the list of requests - is empty\n"


USAGE = {
    "nothing": ([], "bundle is required"),
    "only a bundle": (["x"], "expected one of --input, --requests, --stream and --verify"),
    "two tasks": (["x", "--input", "y", "--verify"], "expected one of --input, --requests, --stream and --verify"),
    "an unknown option": (["x", "--inptu", "y"], "--inptu"),
    "not a number": (["x", "--input", "y", "--repeat", "many"], "--repeat"),
    "no runs": (["x", "--input", "y", "--repeat", "0"], "--repeat"),
    "no runner": (["x", "--input", "y", "--runners", "-1"], "--runners"),
    "one output of many requests": (["x", "--requests", "y", "--output", "z.npz"], "--output is for a single request"),
}


@pytest.mark.parametrize("what", USAGE)
def test_wrong_usage_is_reported_before_any_file_is_read(host: Host, what: str) -> None:
    words, message = USAGE[what]
    done = host(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"host: [^\n]+; `opwright-host --help` shows the usage[^\n]*\n|host: --output [^\n]+\n", done.stderr
    )
    assert message in done.stderr


def test_the_error_of_a_single_request_is_also_json(
    host: Host, torchscript: Path, files: Path, fitting: list[str], codes: Mapping[str, int]
) -> None:
    np.save(files / "image.npy", SHIFT)
    done = host(torchscript, *fitting, "--json", "-")
    message = "the input image has 1 dimensions, (3); expected 4, (1..4, 3, 8..32, 8..32)"
    assert done.returncode == codes["input_rank"]
    assert done.stderr == f"host: {message}\n"
    answer, figures = map(json.loads, done.stdout.splitlines())
    assert answer == {"error": {"code": codes["input_rank"], "kind": "input_rank", "message": message}}
    assert figures["runs"] == 0
