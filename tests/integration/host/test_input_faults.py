"""Inputs are checked against the bundle, and unreadable ones are reported: one line per request."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from tests.integration.host.conftest import IMAGE, SHIFT
from tests.integration.host.streams import npy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.integration.host.conftest import Bundle, Host, Refused

SHAPE = "(1..4, 3, 8..32, 8..32)"


def npy_that_says(header: str, data: bytes = b"", version: bytes = b"\1\0") -> bytes:
    text = header.encode()
    size = len(text).to_bytes(2 if version == b"\1\0" else 4, "little")
    return b"\x93NUMPY" + version + size + text + data


def npz(*entries: tuple[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return file.getvalue()


BOTH = (("image.npy", npy(IMAGE)), ("shift.npy", npy(SHIFT)))


def picture(form: str, size: tuple[int, int] = (24, 20), mode: str = "RGB") -> bytes:
    file = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert(mode).save(file, form)
    return file.getvalue()


@dataclass(frozen=True)
class Asked:
    """The answers to a list of requests, one per line, and how the program exited."""

    answers: list[Any]
    errors: list[str]
    exit_code: int


@pytest.fixture
def ask(host: Host, torchscript: Path, tmp_path: Path) -> Callable[..., Asked]:
    """Write the inputs of requests to files, and run all requests in one process."""

    def ask(requests: list[dict[str, bytes]]) -> Asked:
        texts = []
        for number, request in enumerate(requests):
            files = {name: f"{number}-{place}" for place, name in enumerate(request)}
            for name, file in files.items():
                (tmp_path / file).write_bytes(request[name])
            texts.append(json.dumps({"inputs": files}))
        (tmp_path / "list").write_text("\n".join(texts))
        done = host(torchscript, "--requests", tmp_path / "list", "--json", "-", "--warm-up", "0")
        *answers, figures = map(json.loads, done.stdout.splitlines())
        assert figures["runs"] == sum("outputs" in answer for answer in answers)
        return Asked(answers, done.stderr.splitlines(), done.returncode)

    return ask


def given(image: Any = IMAGE, shift: Any = SHIFT) -> dict[str, bytes]:
    return {"image": npy(image), "shift": npy(shift)}


def of_zeros(*shape: int) -> Any:
    return np.zeros(shape, dtype=np.float32)


# The request, the code, and the message.
UNFIT: dict[str, tuple[dict[str, bytes], str, str]] = {
    "another name": (
        {"picture": npy(IMAGE), "shift": npy(SHIFT)},
        "input_unknown",
        "the input picture is unknown; expected image, shift",
    ),
    "one too many": ({**given(), "more": npy(SHIFT)}, "input_unknown", "the input more is unknown"),
    "one too few": ({"image": npy(IMAGE)}, "input_unknown", "the input shift is missing; expected image, shift"),
    "none": ({}, "input_unknown", "the input image is missing; expected image, shift"),
    "float64": (
        given(IMAGE.astype(np.float64)),
        "input_dtype",
        "the input image has the dtype float64; expected float32",
    ),
    "int64": (given(shift=np.arange(3)), "input_dtype", "the input shift has the dtype int64; expected float32"),
    "bool": (given(IMAGE > 0), "input_dtype", "the input image has the dtype bool; expected float32"),
    "no batch": (given(IMAGE[0]), "input_rank", f"the input image has 3 dimensions, (3, 8, 8); expected 4, {SHAPE}"),
    "a number": (given(shift=of_zeros()), "input_rank", "the input shift has 0 dimensions, (); expected 1, (3)"),
    "an empty batch": (
        given(of_zeros(0, 3, 8, 8)),
        "input_size",
        f"the input image has the size 0 in dimension 0, in (0, 3, 8, 8); expected 1..4, in {SHAPE}",
    ),
    "a batch too large": (given(of_zeros(5, 3, 8, 8)), "input_size", "the size 5 in dimension 0"),
    "too small": (given(of_zeros(1, 3, 7, 8)), "input_size", "the size 7 in dimension 2"),
    "too large": (
        given(of_zeros(1, 3, 8, 33)),
        "input_size",
        f"the input image has the size 33 in dimension 3, in (1, 3, 8, 33); expected 8..32, in {SHAPE}",
    ),
    "another fixed size": (
        given(of_zeros(1, 4, 8, 8)),
        "input_size",
        f"the input image has the size 4 in dimension 1, in (1, 4, 8, 8); expected 3, in {SHAPE}",
    ),
    "a shift of two": (given(shift=SHIFT[:2]), "input_size", "the size 2 in dimension 0, in (2); expected 3, in (3)"),
}


def test_inputs_that_do_not_fit_are_refused_and_those_at_the_limits_are_accepted(
    ask: Callable[..., Asked], codes: Mapping[str, int]
) -> None:
    borders = [given(of_zeros(*shape)) for shape in ((1, 3, 8, 8), (4, 3, 32, 32), (1, 3, 32, 8))]
    asked = ask([*(request for request, _, _ in UNFIT.values()), *borders])
    for (what, (_, code, message)), answer in zip(UNFIT.items(), asked.answers, strict=False):
        assert answer["error"]["kind"] == code, what
        assert answer["error"]["code"] == codes[code]
        assert message in answer["error"]["message"]
    assert all("outputs" in answer for answer in asked.answers[len(UNFIT) :])
    assert len(asked.errors) == len(UNFIT)
    assert asked.exit_code == codes["input_unknown"]


def test_dimensions_listed_as_equal_must_have_the_same_size(refused: Refused, bundle: Bundle, tmp_path: Path) -> None:
    sides = [{"input": "image", "dim": 2}, {"input": "image", "dim": 3}]
    bundle.say(lambda manifest: manifest.update(equal_dims=[sides]))
    for name, content in given(of_zeros(1, 3, 8, 9)).items():
        (tmp_path / name).write_bytes(content)
    refusal = refused(bundle, *(f"--input={name}={tmp_path}/{name}" for name in given()))
    assert refusal.code == "input_size"
    assert refusal.message == (
        "the input image has the size 9 in dimension 3; expected 8, the size of dimension 2 of the input image"
    )


CUT = "its data has 767 bytes; expected 768 for its shape"
WHOLE = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
UNREADABLE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "it is not an .npy, JPEG or PNG file"),
    "garbage": (bytes(range(256)), "it is not an .npy, JPEG or PNG file"),
    "only the beginning": (b"\x93NUMPY\1\0", "it ends inside its header"),
    "cut within its header": (npy(IMAGE)[:40], "it ends inside its header"),
    "cut by a byte": (npy(IMAGE)[:-1], CUT),
    "a byte too many": (npy(IMAGE) + b"\0", "its data has 769 bytes; expected 768"),
    "big-endian": (npy(IMAGE.astype(">f4")), "it contains an array of '>f4'; expected numbers in little-endian order"),
    "bytes for a dtype": (npy_that_says(WHOLE).replace(b"<f4", b"\xc3\n\xff"), "it contains an array of '? ?'"),
    "objects": (npy(np.array([{}], dtype=object)), "it contains an array of '|O'"),
    "text": (npy(np.array(["a"])), "it contains an array of '<U1'"),
    "a record": (npy(np.zeros(3, dtype=[("a", "<f4")])), "it does not contain a plain array of numbers"),
    "dates": (npy(np.zeros(3, dtype="datetime64[s]")), "it contains an array of '<M8[s]'"),
    "a future version": (npy_that_says(WHOLE, bytes(12), b"\x09\0"), "its format version is 9"),
    "a header that never ends": (b"\x93NUMPY\2\0\xff\xff\xff\xff" + bytes(100), "it ends inside its header"),
    "no dtype": (npy_that_says(WHOLE.replace("descr", "dtype")), "its header has no 'descr'"),
    "no order": (npy_that_says(WHOLE.replace("False", "Maybe")), "its header has no order"),
    "no shape": (npy_that_says(WHOLE.replace("(3,)", "3")), "its header has no shape"),
    "a shape that never ends": (npy_that_says(WHOLE.replace(")", "")), "its header has no shape"),
    "a negative size": (npy_that_says(WHOLE.replace("3,", "-3,")), "its shape is malformed"),
    "a size that is no number": (npy_that_says(WHOLE.replace("3,", "x,")), "its shape is malformed"),
    "a size beyond 64 bits": (npy_that_says(WHOLE.replace("3,", f"{2**64},")), "its shape is malformed"),
    "too many dimensions": (npy_that_says(WHOLE.replace("3,", "1," * 65)), "its shape is malformed"),
    "more than memory": (
        npy_that_says(WHOLE.replace("3,", f"{2**62}, {2**62}"), bytes(12)),
        "its data has 12 bytes; expected more than memory holds for its shape",
    ),
    "nothing, of huge sides": (
        npy_that_says(WHOLE.replace("3,", f"0, {2**62}, {2**62}")),
        "its data has 0 bytes; expected more than memory holds for its shape",
    ),
    "a terabyte": (npy_that_says(WHOLE.replace("3,", f"{2**38},"), bytes(12)), f"expected {2**40} for its shape"),
    "a JPEG without its first bytes": (picture("JPEG")[2:], "it is not an .npy, JPEG or PNG file"),
    "a cut JPEG": (picture("JPEG")[:-40], "remature end of JPEG"),
    "the beginning of a JPEG": (picture("JPEG")[:20], "cannot be read"),
    "JPEG in name only": (b"\xff\xd8\xff" + bytes(100), "cannot be read"),
    "a cut PNG": (picture("PNG")[:-40], "cannot be read"),
    "a PNG with a flipped bit": (picture("PNG").replace(b"IDAT", b"IDAU"), "cannot be read"),
    "a PNG of 2^31 pixels a side": (
        picture("PNG").replace((24).to_bytes(4, "big") + (20).to_bytes(4, "big"), b"\x7f\xff\xff\xff" * 2),
        "cannot be read",
    ),
}


def test_unreadable_files_are_refused(ask: Callable[..., Asked]) -> None:
    asked = ask([{"image": content, "shift": npy(SHIFT)} for content, _ in UNREADABLE.values()])
    for (what, (_, message)), answer in zip(UNREADABLE.items(), asked.answers, strict=True):
        assert "error" in answer, what
        assert answer["error"]["kind"] == "input_unreadable", (what, answer)
        assert message in answer["error"]["message"], what
        assert answer["error"]["message"].startswith("the input file ")
    assert len(asked.errors) == len(UNREADABLE)


ARCHIVES: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "input_unreadable", "it is not an .npz file"),
    "no archive": (npy(IMAGE), "input_unreadable", "it is not an .npz file"),
    "cut": (npz(*BOTH)[:-10], "input_unreadable", "its archive is damaged"),
    "of nothing": (npz(), "input_unreadable", "cannot be read"),
    "of something else": (
        npz(("read.me", b"")),
        "input_unreadable",
        "it contains 'read.me', which is not an .npy file",
    ),
    "of garbage": (npz(("image.npy", b"x" * 50)), "input_unreadable", "it is not an .npy file"),
    "with a flipped bit": (npz(*BOTH).replace(b"\x80?", b"\x80>", 1), "input_unreadable", "its archive is damaged"),
    "with an array twice": (
        npz(*BOTH, ("imagf.npy", b"")).replace(b"imagf", b"image"),
        "input_unreadable",
        "it contains 'image' twice",
    ),
    "with a NUL": (npz(*BOTH).replace(b"image.npy", b"image\0npy"), "input_unreadable", "a name in it contains a NUL"),
    "of one too many": (
        npz(*BOTH, ("more.npy", npy(SHIFT))),
        "input_unknown",
        "the input more is unknown; expected image, shift",
    ),
}


@pytest.mark.parametrize("what", ARCHIVES)
def test_archives_that_do_not_fit_are_refused(refused: Refused, torchscript: Path, tmp_path: Path, what: str) -> None:
    content, code, message = ARCHIVES[what]
    (tmp_path / "all.npz").write_bytes(content)
    refusal = refused(torchscript, "--input", tmp_path / "all.npz")
    assert refusal.code == code
    assert message in refusal.message


def test_duplicate_and_excess_input_files_are_refused(refused: Refused, torchscript: Path, files: Path) -> None:
    image, shift = f"{files}/image.npy", f"{files}/shift.npy"
    for words, message in (
        ([image, shift, shift], "more files are given than the 2 inputs of the model"),
        ([image, shift, f"image={image}"], "the input image is given twice"),
        ([f"{files}/both.npz", f"shift={shift}"], "the input shift is given twice"),
    ):
        refusal = refused(torchscript, *(f"--input={word}" for word in words))
        assert (refusal.code, refusal.message) == ("input_unknown", message)


def test_a_picture_is_accepted_only_for_an_input_with_an_image_recipe(
    host: Host, refused: Refused, bundle: Bundle, files: Path
) -> None:
    words = [f"--input=image={files}/photo.jpg", f"--input=shift={files}/shift.npy"]
    assert host(bundle.path, *words).returncode == 0
    refusal = refused(bundle, f"--input=image={files}/image.npy", f"--input=shift={files}/photo.jpg")
    assert refusal.code == "input_unreadable"
    assert "is a picture, but the bundle does not specify how one becomes the input shift" in refusal.message
    bundle.say(lambda manifest: manifest["inputs"][0]["image"].update(resize=65536))
    refusal = refused(bundle, *words)
    assert refusal.code == "input_unreadable"
    assert refusal.message.endswith("it has too many pixels once its shorter side is resized to 65536")
