"""A stream of requests: each is answered as it arrives, in order, with its outputs as bytes."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.integration.host.conftest import IMAGE, SHIFT
from tests.integration.host.streams import Given, Streamed, driven, npy, request, stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.host.conftest import Bundle, Host

BOTH: Given = {"image": npy(IMAGE), "shift": npy(SHIFT)}
PIXELS = IMAGE * np.float32(0.5) + np.float32(0.25) + SHIFT[:, None, None]


class Counts(nn.Module):
    """Returns x and the number of rows that ran together; x[0, 0] selects a different behavior."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = nn.Parameter(torch.zeros(1, 2), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, ...) for x of shape (B, 2)."""
        kind = int(x[0, 0].item())
        assert kind != 1 or x.size(0) == 1, "one at a time"
        result = x + x.size(0)
        if kind == 2:
            result = result[:1]
        elif kind == 3:
            result = result.to_sparse()
        elif kind == 4:
            self.calls.add_(1)
            result = self.calls
        elif kind == 5:
            result = x.repeat(1, 1 << 20)
        elif kind == 6:
            result = x.repeat(1, 2).t().contiguous().t()
        elif kind == 7:
            result = x.repeat(1, 1 << 32)
        return result


def put_model(bundle: Bundle, model: nn.Module, dtype: str = "float32", input_dtype: str = "float32") -> Bundle:
    bundle.put_model(model)
    inputs = [{"name": "x", "dtype": input_dtype, "dims": [{"min": 0, "max": None}, 2], "image": None}]
    outputs = [{"name": "y", "dtype": dtype, "dims": [None, None]}]
    bundle.say(lambda manifest: manifest.update(inputs=inputs, outputs=outputs, equal_dims=[]))
    return bundle


@pytest.fixture
def counts(bundle: Bundle) -> Path:
    return put_model(bundle, Counts()).path


@pytest.fixture
def ask(program: Path, torchscript: Path) -> Callable[..., Streamed]:
    def ask(*requests: bytes, bundle: Path = torchscript, words: tuple[str, ...] = (), **more: Any) -> Streamed:
        return stream(program, bundle, requests, *words, **more)

    return ask


def x(*rows: list[float]) -> Given:
    return {"x": npy(np.array(rows, dtype=np.float32))}


def require_whole(said: Streamed, count: int) -> None:
    assert (said.exit_code, said.stderr, said.fatal) == (0, "", None)
    assert [answer.place for answer in said.answers] == [(number, 0) for number in range(count)]


def test_a_host_reports_that_it_is_ready_and_answers_with_raw_tensors(ask: Callable[..., Streamed]) -> None:
    said = ask(request(BOTH), request(BOTH))
    require_whole(said, 2)
    assert said.ready["ready"]["device"] == "cpu"
    assert said.ready["ready"]["load_seconds"] > 0
    first, second = said.answers
    assert list(first.line) == ["request", "row", "outputs", "seconds"]
    assert first.line["outputs"] == [
        {"name": "output_0", "dtype": "float32", "shape": [1, 3, 8, 8], "bytes": 768},
        {"name": "output_1", "dtype": "float32", "shape": [1, 4], "bytes": 16},
    ]
    assert first.line["seconds"] > 0
    np.testing.assert_array_equal(first.outputs["output_0"], PIXELS)
    np.testing.assert_array_equal(first.outputs["output_1"], second.outputs["output_1"])


def test_an_empty_stream_ends_normally(ask: Callable[..., Streamed]) -> None:
    require_whole(ask(), 0)


def test_a_package_answers_a_stream(ask: Callable[..., Streamed], aoti: Path) -> None:
    said = ask(request(BOTH), bundle=aoti)
    require_whole(said, 1)
    np.testing.assert_array_equal(said.answers[0].outputs["output_0"], PIXELS)


def test_files_and_bytes_are_read_like_the_inputs_of_a_list(
    ask: Callable[..., Streamed], host: Host, torchscript: Path, files: Path
) -> None:
    photo, both = (files / "photo.jpg").read_bytes(), (files / "both.npz").read_bytes()
    said = ask(
        request({"image": "image.npy", "shift": "shift.npy"}),
        request({"": "both.npz"}),
        request({"": both}),
        request({"shift": npy(SHIFT), "image": "photo.jpg"}),
        request({"shift": npy(SHIFT), "image": photo}),
        cwd=files,
    )
    require_whole(said, 5)
    for answer in said.answers[:3]:
        np.testing.assert_array_equal(answer.outputs["output_0"], PIXELS)
    words = (f"--input=image={files}/photo.jpg", f"--input=shift={files}/shift.npy", f"--output={files}/out.npz")
    assert host(torchscript, *words).returncode == 0
    with np.load(files / "out.npz") as outputs:
        for answer in said.answers[3:]:
            np.testing.assert_array_equal(answer.outputs["output_0"], outputs["output_0"])


def test_an_error_of_a_request_is_its_answer_and_the_stream_continues(ask: Callable[..., Streamed]) -> None:
    bad: list[tuple[Given, str, str]] = [
        (
            {"image": b"garbage", "shift": npy(SHIFT)},
            "input_unreadable",
            "the content of the input image cannot be read: it is not an .npy, JPEG or PNG file",
        ),
        (
            {"image": "nowhere.npy", "shift": npy(SHIFT)},
            "input_unreadable",
            "the input file nowhere.npy cannot be read: No such file or directory",
        ),
        ({"": b"garbage"}, "input_unreadable", "the content of the .npz cannot be read: it is not an .npz file"),
        ({"": "x.npy", "image": npy(IMAGE)}, "input_unreadable", "has an unnamed input"),
        ({"image": "", "shift": npy(SHIFT)}, "input_unreadable", "request 4 has an input without a file name"),
        ({"image": "a\0b", "shift": npy(SHIFT)}, "input_unreadable", "request 5 has an input with a NUL"),
        ({"picture": npy(IMAGE)}, "input_unknown", "the input picture is unknown; expected image, shift"),
        ({"image": npy(IMAGE)}, "input_unknown", "the input shift is missing; expected image, shift"),
        ({"image": npy(SHIFT), "shift": npy(SHIFT)}, "input_rank", "the input image has 1 dimensions, (3)"),
    ]
    said = ask(*(request(given) for given, _, _ in bad), request(BOTH))
    require_whole(said, len(bad) + 1)
    for answer, (_, kind, message) in zip(said.answers, bad, strict=False):
        assert list(answer.line) == ["request", "row", "error"]
        assert answer.error
        assert answer.error[0] == kind
        assert message in answer.error[1]
    np.testing.assert_array_equal(said.answers[-1].outputs["output_0"], PIXELS)


def test_rows_of_a_batch_run_together_and_get_the_same_bits_as_alone(
    ask: Callable[..., Streamed], counts: Path
) -> None:
    rows = [x([0, number]) for number in range(5)]
    said = ask(request(*rows), *map(request, rows), request(rows[0], batch=True), bundle=counts)
    assert [answer.place for answer in said.answers] == [(0, n) for n in range(5)] + [(n + 1, 0) for n in range(6)]
    for number, answer in enumerate(said.answers[:5]):
        np.testing.assert_array_equal(answer.outputs["y"], [[5, number + 5]])
    for number, answer in enumerate(said.answers[5:10]):
        np.testing.assert_array_equal(answer.outputs["y"], [[1, number + 1]])
    np.testing.assert_array_equal(said.answers[10].outputs["y"], [[1, 1]])
    assert len({answer.line["seconds"] for answer in said.answers[:5]}) == 1


def test_rows_run_together_if_their_inputs_have_the_same_form(ask: Callable[..., Streamed], counts: Path) -> None:
    one, two = x([0, 7]), x([0, 7], [0, 8])
    double: Given = {"x": npy(np.zeros((1, 2)))}
    said = ask(request(one, {"x": b"garbage"}, one, two, two, one, double, double), bundle=counts)
    assert [answer.place for answer in said.answers] == [(0, row) for row in range(8)]
    ran = [answer.outputs["y"][:, 1].tolist() if answer.outputs else answer.error for answer in said.answers]
    dtype = ("input_dtype", "the input x has the dtype float64; expected float32")
    unreadable = ("input_unreadable", "the content of the input x cannot be read: it is not an .npy, JPEG or PNG file")
    assert ran == [[9], unreadable, [9], [11, 12], [11, 12], [8], dtype, dtype]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(1, [[2, 2]]), (2, [[3, 2]]), (3, ("output_unwritable", "a sparse output cannot be written"))],
)
def test_rows_that_cannot_run_together_run_alone(
    ask: Callable[..., Streamed], counts: Path, kind: int, expected: Any
) -> None:
    said = ask(request(*[x([kind, 1])] * 3), bundle=counts)
    assert [answer.place for answer in said.answers] == [(0, 0), (0, 1), (0, 2)]
    for answer in said.answers:
        if isinstance(expected, list):
            np.testing.assert_array_equal(answer.outputs["y"], expected)
        else:
            assert answer.error
            assert answer.error[0] == expected[0]
            assert answer.error[1].startswith(expected[1])


def test_rows_whose_inputs_have_different_leading_sizes_run_alone(ask: Callable[..., Streamed]) -> None:
    three: Given = {"image": npy(np.concatenate([IMAGE] * 3)), "shift": npy(SHIFT)}  # rejected as a batch
    said = ask(request(BOTH, BOTH), request(three, three))
    assert (said.exit_code, said.stderr) == (0, "")
    assert [answer.line["outputs"][0]["shape"][0] for answer in said.answers] == [1, 1, 3, 3]
    for answer in said.answers:
        for pixels in answer.outputs["output_0"]:
            np.testing.assert_array_equal(pixels, PIXELS[0])


def test_outputs_that_share_memory_with_the_model_or_have_other_strides_are_correct(
    ask: Callable[..., Streamed], counts: Path
) -> None:
    count = 200
    said = ask(*[request(x([4, 0]))] * count, request(x([6, 1])), request(x([6, 1]), x([6, 2])), bundle=counts)
    for number, answer in enumerate(said.answers[:count]):
        np.testing.assert_array_equal(answer.outputs["y"], [[number + 1, number + 1]])
    rest = [answer.outputs["y"].tolist() for answer in said.answers[count:]]
    assert rest == [[[6, 1, 6, 1]], [[6, 1, 6, 1]], [[6, 2, 6, 2]]]


class Cast(nn.Module):
    """Returns x in another dtype, and conjugates complex values, which PyTorch does lazily."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, 2)."""
        result = x.to(self.dtype)
        return torch.conj(result) if result.is_complex() else result


@pytest.mark.parametrize(
    ("dtype", "told"),
    [
        *(("bfloat16", "float32"), ("float8_e5m2", "float32"), ("float16", "float16"), ("int64", "int64")),
        *(("bool", "bool"), ("complex64", "complex64"), ("complex128", "complex128"), ("uint8", "uint8")),
        ("complex32", None),
    ],
)
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_dtypes_that_numpy_lacks_are_float32(
    ask: Callable[..., Streamed], bundle: Bundle, dtype: str, told: str | None
) -> None:
    put_model(bundle, Cast(getattr(torch, dtype)), dtype, "complex64" if dtype.startswith("complex") else "float32")
    values = np.array([[1 + 2j, 0]]) if dtype.startswith("complex") else np.array([[1.5, 0]])
    given = values.astype("complex64" if dtype.startswith("complex") else "float32")
    said = ask(request({"x": npy(given)}), request({"x": npy(given)}, {"x": npy(given)}), bundle=bundle.path)
    for answer in said.answers:
        if told is None:
            assert answer.error == (
                "output_unwritable",
                "an output of the dtype complex32 cannot be written: NumPy does not support this dtype",
            )
            continue
        assert answer.line["outputs"][0]["dtype"] == told
        np.testing.assert_array_equal(answer.outputs["y"], values.conj().astype(told))


class Sums(nn.Module):
    """Returns a sum of products, which PyTorch's executor fuses into one product after a run."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(8, 64, 64))

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (64, 64) for x of shape (64, 2)."""
        y = x.repeat(1, 32)
        w = self.weights
        return (
            ((y.mm(w[0]) + y.mm(w[1])) + (y.mm(w[2]) + y.mm(w[3])))
            + ((y.mm(w[4]) + y.mm(w[5])) + (y.mm(w[6]) + y.mm(w[7])))
        )  # fmt: skip


def test_the_first_answers_have_the_same_bits_as_later_ones(
    ask: Callable[..., Streamed], host: Host, bundle: Bundle, tmp_path: Path
) -> None:
    put_model(bundle, Sums())
    given = npy(np.random.default_rng(0).standard_normal((64, 2), dtype=np.float32))
    said = ask(*[request({"x": given})] * 5, bundle=bundle.path)
    require_whole(said, 5)
    assert len({answer.outputs["y"].tobytes() for answer in said.answers}) == 1
    # Outside a stream the first run differs, so the model is a valid test.
    (tmp_path / "x.npy").write_bytes(given)
    words = ("--input", tmp_path / "x.npy", "--repeat", "5", "--warm-up", "0", "--json")
    assert json.loads(host(bundle.path, *words).stdout.splitlines()[0])["repeats"] is False


def test_large_answers_do_not_block_large_requests(ask: Callable[..., Streamed], counts: Path) -> None:
    rows = [x([5, number]) for number in range(4)]
    large: Given = {"x": npy(np.full((1 << 20, 2), 0.5, dtype=np.float32))}  # 8 MiB
    said = ask(*(part for row in rows for part in (request(row), request(large), request(row, row))), bundle=counts)
    assert (said.exit_code, said.stderr) == (0, "")
    for number in range(4):
        alone, echoed, *together = said.answers[4 * number : 4 * number + 4]
        for answer in (alone, *together):
            assert answer.line["outputs"][0]["bytes"] == 1 << 23
            assert (answer.outputs["y"] == np.tile(np.array([5, number], dtype=np.float32), 1 << 20)).all()
        assert (echoed.outputs["y"] == 0.5 + (1 << 20)).all()


def test_many_small_requests_are_answered_in_order(ask: Callable[..., Streamed], counts: Path) -> None:
    count = 5000
    said = ask(*(request(x([0, number])) for number in range(count)), bundle=counts)
    require_whole(said, count)
    assert [answer.outputs["y"][0, 1] for answer in said.answers] == [number + 1 for number in range(count)]


def test_the_largest_batch_is_answered_and_a_larger_one_is_refused(
    ask: Callable[..., Streamed], torchscript: Path
) -> None:
    most = 65536
    said = ask(json.dumps({"batch": [{"inputs": {}}] * most}).encode() + b"\n")
    assert [answer.place for answer in said.answers] == [(0, row) for row in range(most)]
    assert {answer.error for answer in said.answers} == {
        ("input_unknown", "the input image is missing; expected image, shift")
    }
    said = ask(json.dumps({"batch": [{"inputs": {}}] * (most + 1)}).encode() + b"\n")
    assert said.fatal["message"].startswith("request 0 has a batch that is not a list of 1 to 65536 rows; expected ")


def test_an_answer_is_written_before_the_next_request_arrives(program: Path, counts: Path) -> None:
    with driven(program, counts) as host:
        for number in range(3):
            host.ask(request(x([0, number])))
            assert host.answer().place == (number, 0)
        host.stdin.close()
        assert host.stdout.read() == b""
        assert host.end() == (0, "")


@pytest.mark.parametrize(
    "option",
    [
        *("--input=x", "--requests=x", "--verify", "--output=x.npz", "--repeat=2"),
        *("--top-k=2", "--json", "--runners=2", "--warm-up=1"),
    ],
)
def test_a_stream_excludes_options_of_other_requests(host: Host, option: str) -> None:
    done = host("nowhere", "--stream", option)
    name = option.split("=", maxsplit=1)[0]
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"host: --stream excludes {name}: its requests come from standard input, one at a time, and its answers go to "
        "standard output; `opwright-host --help` shows how\n"
    )


def test_a_bundle_that_does_not_load_is_a_line_of_json(program: Path, tmp_path: Path, codes: dict[str, int]) -> None:
    done = subprocess.run([program, tmp_path, "--stream"], input=b"", capture_output=True, check=False)
    error = json.loads(done.stdout)["error"]
    assert done.returncode == error["code"] == codes["bundle_missing"]
    assert done.stderr.decode() == f"host: {error['message']}\n"
    assert os.fspath(tmp_path) in error["message"]
