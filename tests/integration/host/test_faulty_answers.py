"""A failure while answering a request affects only that request: the others are answered."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from torch import Tensor, nn

from tests.integration.host.conftest import REQUEST
from tests.integration.host.shims import FEW_THREADS, compile_c

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.host.conftest import Bundle, Host, Refused


class Odd(nn.Module):
    """Returns an output selected by shift[0]: sparse, compressed, larger than memory, of another rank, or valid."""

    def forward(self, image: Tensor, shift: Tensor) -> Tensor:
        """Return a tensor of shape (3, 8), or an invalid one."""
        kind = int(shift[0].item())
        result = image[0, :, 0] + shift[1]
        if kind == 1:
            result = result.to_sparse()
        elif kind == 2:
            result = result.to_sparse_csr()
        elif kind == 3:
            result = result[:, :1].expand(3, 1 << 50)
        elif kind == 4:
            result = result.flatten()
        elif kind == 5:
            result = result.double()
        elif kind == 6:
            result = result[:2]
        return result


KINDS = ("plain", "sparse", "compressed", "expanded", "flat", "double", "short")


@pytest.fixture
def odd(bundle: Bundle) -> Bundle:
    bundle.put_model(Odd())
    bundle.say(lambda manifest: manifest.update(outputs=[{"name": "odd", "dtype": "float32", "dims": [3, None]}]))
    return bundle


@pytest.fixture
def ask(host: Host, odd: Bundle, files: Path) -> Callable[..., tuple[dict[str, Any], int]]:
    """Return the answers to two requests of each kind, by kind, and write them."""
    for number, kind in enumerate(KINDS):
        np.save(files / f"{kind}.npy", np.array([number, 0, 0], dtype=np.float32))
    lines = [
        {"inputs": {"image": "image.npy", "shift": f"{kind}.npy"}, "output": f"{kind}-{turn}.npz"}
        for turn in range(2)
        for kind in KINDS
    ]

    def ask(*words: str, is_written: bool = True) -> tuple[dict[str, Any], int]:
        wanted = [line if is_written else {"inputs": line["inputs"]} for line in lines]
        (files / "list").write_text("\n".join(map(json.dumps, wanted)))
        done = host(odd.path, "--requests", files / "list", "--json", "--warm-up", "0", *words)
        *answers, _figures = map(json.loads, done.stdout.splitlines())
        assert len(answers) == len(lines)
        answers.sort(key=lambda answer: int(answer["request"].split()[1]))
        by_kind = dict(zip(KINDS, answers, strict=False))
        for kind, again in zip(KINDS, answers[len(KINDS) :], strict=True):
            assert ("error" in again) == ("error" in by_kind[kind])
        return by_kind, done.returncode

    return ask


@pytest.mark.parametrize("runners", ["1", "4"])
def test_an_unwritable_answer_is_an_error_of_its_request_only(
    ask: Callable[..., tuple[dict[str, Any], int]], codes: dict[str, int], files: Path, runners: str
) -> None:
    answers, code = ask("--runners", runners, "--top-k", "2")
    assert [place["index"] for place in answers.pop("plain")["outputs"][0]["top"][0]] == [7, 6]
    assert code == codes["output_unwritable"]
    sparse = ("output_unwritable", "a sparse output cannot be written: NumPy has no sparse arrays")
    expected = {
        "sparse": sparse,
        "compressed": sparse,
        "expanded": ("output_unwritable", "expanded-0.npz cannot be written: "),
        "flat": ("run_failed", "the output odd has the shape (24); expected (3, 0..), as in the manifest"),
        "double": ("run_failed", "the output odd has the dtype float64; expected float32"),
        "short": ("run_failed", "the output odd has the shape (2, 8); expected (3, 0..), as in the manifest"),
    }
    for kind, (name, message) in expected.items():
        assert answers[kind]["error"]["kind"] == name
        assert message in answers[kind]["error"]["message"]
    written = {path.name for path in files.iterdir() if path.suffix == ".npz"}
    assert written == {"both.npz", "plain-0.npz", "plain-1.npz"}


def test_an_unprintable_or_incomparable_answer_is_an_error_of_its_request_only(
    ask: Callable[..., tuple[dict[str, Any], int]],
) -> None:
    answers, _ = ask("--top-k", "2", "--repeat", "2", is_written=False)
    assert answers["plain"]["repeats"]
    assert answers["sparse"]["repeats"]
    assert answers["compressed"]["repeats"]
    assert answers["expanded"]["error"]["kind"] == "run_failed"
    assert "the outputs cannot be compared: " in answers["expanded"]["error"]["message"]
    answers, _ = ask("--top-k", "2", is_written=False)
    assert answers["expanded"]["error"]["kind"] == "internal"
    assert "the answer cannot be printed: " in answers["expanded"]["error"]["message"]
    assert "outputs" in answers["sparse"]


def test_outputs_whose_shape_differs_from_the_manifest_also_fail_the_goldens(refused: Refused, bundle: Bundle) -> None:
    bundle.say(lambda manifest: manifest["outputs"][1].update(dims=[None, 5]))
    refusal = refused(bundle)
    assert refusal.code == "run_failed"
    assert refusal.message == "the output output_1 has the shape (1, 4); expected (0.., 5), as in the manifest"


def test_a_bundle_without_goldens_fails_verification(refused: Refused, bundle: Bundle) -> None:
    goldens = bundle.manifest["goldens"]
    bundle.say(lambda manifest: manifest.update(goldens=[]))
    for name in goldens:
        bundle.remove(name)
    refusal = refused(bundle)
    assert refusal.code == "golden_differs"
    assert refusal.message.startswith(
        f"the bundle {bundle.path} has no goldens, so there is nothing to compare its model"
    )


@pytest.fixture(scope="session")
def few_threads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("shim") / "few_threads.so", FEW_THREADS)


@pytest.mark.parametrize("given", [0, 1, 5])
def test_every_request_is_answered_if_the_system_is_out_of_threads(
    program: Path, torchscript: Path, files: Path, few_threads: Path, given: int
) -> None:
    (files / "list").write_text(f"{REQUEST}\n" * 40)
    words = ("--json", "--runners", "4096", "--threads", "1")
    command: list[str | Path] = [program, torchscript, "--requests", files / "list", *words]
    environment = {**os.environ, "LD_PRELOAD": str(few_threads), "SHIM_THREADS": str(given)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    *answers, figures = map(json.loads, done.stdout.splitlines())
    assert [sorted(answer) for answer in answers] == [["outputs", "request"]] * 40
    assert figures["runs"] == 40
    assert done.stderr == (
        f"host: {given + 1} of 40 runners ran, because the system provided no more threads; pass a smaller --runners, "
        "or raise the system's limit\n"
    )


# A line, and the message of the error that answers it.
LINES = {
    "a NUL in an input": (
        r'{"inputs": {"image": "image.npy\u0000.txt", "shift": "shift.npy"}}',
        "has an input with a NUL",
    ),
    "a NUL in an output": (r'{"inputs": {"": "both.npz"}, "output": "x.npz\u0000.npz"}', "has an output with a NUL"),
    "an empty output": ('{"inputs": {"": "both.npz"}, "output": ""}', "has an output without a file name"),
    "an empty input": ('{"inputs": {"image": "", "shift": "shift.npy"}}', "has an input without a file name"),
    "an empty name": (
        '{"inputs": {"": "image.npy", "shift": "shift.npy"}}',
        "has an unnamed input, which only an .npz can be",
    ),
    "an input twice": (
        '{"inputs": {"image": "image.npy", "image": "image.npy", "shift": "shift.npy"}}',
        'has the key "image" twice',
    ),
    "an output twice": (
        '{"inputs": {"": "both.npz"}, "output": "a.npz", "output": "b.npz"}',
        'has the key "output" twice',
    ),
    "the output of an earlier line": (
        '{"inputs": {"": "both.npz"}, "output": "../inputs/./first.npz"}',
        "which line 1 already has",
    ),
    "lists in lists": ('{"inputs": ' + "[" * 9 + "]" * 9 + "}", "nests deeper than 8 levels"),
    "lists in lists without end": ('{"inputs": ' + "[" * 100_000, "nests deeper than 8 levels"),
    "an output that is not text": (
        '{"inputs": {"": "both.npz"}, "output": 1}',
        "has an output that is not a file name",
    ),
}


def test_empty_and_ambiguous_names_are_refused(host: Host, torchscript: Path, files: Path) -> None:
    first = '{"inputs": {"": "both.npz"}, "output": "first.npz"}'
    (files / "list").write_text("\n".join([first, *(line for line, _ in LINES.values())]))
    done = host(torchscript, "--requests", files / "list", "--json", "--warm-up", "0")
    answered, *answers, _figures = map(json.loads, done.stdout.splitlines())
    assert "outputs" in answered
    for (what, (_, message)), answer in zip(LINES.items(), answers, strict=True):
        assert answer["error"]["kind"] == "input_unreadable", what
        assert message in answer["error"]["message"], what
    assert {path.name for path in files.glob("*.npz")} == {"both.npz", "first.npz"}


CONTROLS = "a\x1b[2Jb\x9b2Jc\x85d\u202ee\u2028f\u2066g\u200fh\x7f"


def _controls(text: str) -> set[str]:
    return {letter for letter in CONTROLS if not letter.isprintable()} & set(text)


def test_no_control_character_in_a_list_reaches_the_terminal(host: Host, torchscript: Path, files: Path) -> None:
    name = f"{CONTROLS}.npz"
    lines = [
        {"inputs": {"": "both.npz"}, "output": name},
        {"inputs": {"": f"missing{name}"}},
        {"inputs": {"": "both.npz", CONTROLS: "image.npy"}},
        {"inputs": {"": "both.npz"}, CONTROLS: 1},
    ]
    (files / "list").write_text("\n".join(map(json.dumps, lines)))
    for words in ([], ["--json"]):
        done = host(torchscript, "--requests", files / "list", *words)
        assert _controls(done.stdout + done.stderr) == set()
    assert (files / name).is_file()
    assert json.loads(done.stdout.splitlines()[0])["written"] == str(files / name)


def test_the_largest_manifest_is_read(refused: Refused, bundle: Bundle) -> None:
    facts = bundle.manifest["files"]["model.pt"]
    bundle.say(lambda manifest: manifest["files"].update({f"{number:05}": facts for number in range(25_000)}))
    assert (bundle.path / "manifest.json").stat().st_size > 3 * 2**20
    refusal = refused(bundle)
    assert refusal.code == "file_missing"
    assert refusal.message.startswith("00000 of the bundle")
