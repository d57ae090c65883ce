"""An invalid or inconsistent manifest, or one for another machine, is refused with one clear line."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.host.conftest import Bundle, Loads

NOT_MANIFESTS = {
    "not JSON": (b"{", "parse error at line 1, column 2"),
    "two values": (b"{}{}", "unexpected '{'; expected end of input"),
    "not text": (b'{"format": "\xff"}', "invalid string: ill-formed UTF-8 byte"),
    "not an object": (b"[]", "it is []; expected an object"),
    "nothing in it": (b"{}", '"format" is missing'),
    "a key twice": (b'{"device": 1, "device": 1}', 'the key "device" occurs twice in one object'),
    "lines in a key": (b'{"a\\nb": 1, "a\\nb": 1}', 'the key "a b" occurs twice'),
    "very deep": (b"[" * 100_000, "it nests deeper than 8 levels"),
    "a long word": (b"[" + b"x" * 100_000, "invalid literal"),
    "large": (b" " * (4 * 2**20 + 1), "is larger than 4 MiB"),
}


@pytest.mark.parametrize("what", NOT_MANIFESTS)
def test_a_file_that_is_not_a_manifest_is_refused(loads: Loads, bundle: Bundle, what: str) -> None:
    text, why = NOT_MANIFESTS[what]
    bundle.write(text)
    refusal = loads(bundle.path)
    assert refusal.code == "manifest_invalid"
    assert why in refusal.message
    assert len(refusal.message) < 400


GONE = object()
OF_A_NAME = "expected text of 1 to 255 bytes without control characters"


@pytest.mark.parametrize(
    ("place", "value", "why"),
    [
        ("author", "x", '"author" is unknown'),
        ("model kind", GONE, '"kind" is missing in model'),
        ("model kind", "onnx", 'model.kind is "onnx"; expected "torchscript" or "aoti"'),
        ("torch oldest", "2", 'torch.oldest is "2"; expected a release such as "2.13"'),
        (
            "cuda",
            {"architectures": ["9.0", "9.0+PTX", "90"]},
            'cuda.architectures[2] is "90"; expected a compute capability such as "9.0" or "9.0+PTX"',
        ),
        ("torch newest", "1.0", 'torch.newest is "1.0"; expected null, or a release no older than oldest'),
        ("inputs 1 dims", [-3], "inputs[1].dims[0] is -3; expected an integer of at least 0"),
        ("inputs 1 dims", [2**63], "inputs[1].dims[0] is 9223372036854775808; expected an integer of at least 0"),
        ("inputs 1 dims", [{"min": 3, "max": 2}], "inputs[1].dims[0].max is 2; expected an integer of at least 3"),
        ("inputs 1 dtype", "float31", 'the input shift has the dtype "float31", which this PyTorch does not support'),
        ("inputs 1 name", "image", "expected entries with distinct names"),
        ("inputs 1 name", "a\nb", f'inputs[1].name is "a\\nb"; {OF_A_NAME}'),
        ("inputs 1 name", "a\x9b2J", OF_A_NAME),
        (
            "equal_dims",
            [[{"input": "picture", "dim": 0}]],
            'equal_dims[0][0].input is "picture"; expected the name of an input',
        ),
        (
            "equal_dims",
            [[{"input": "shift", "dim": 1}]],
            "equal_dims[0][0].dim is 1; expected a dimension of that input",
        ),
        (
            "outputs 0 dims",
            [{"min": 1, "max": 2}],
            'outputs[0].dims[0] is {"max":2,"min":1}; expected an integer of at least 0',
        ),
        ("host_program", "model.pt", 'host_program is "model.pt"; expected null, or a file in host/'),
        ("inputs 0 image crop", [17, 1], "expected a crop no larger than resize"),
        ("tolerance", -1e-9, "tolerance is -1e-09; expected a non-negative number"),
        ("files lib/blended.so", GONE, "lib/blended.so is not in files"),
        ("files model.pt sha256", "A" * 64, "expected 64 lowercase hexadecimal digits"),
    ],
)
def test_an_inconsistent_manifest_is_refused(loads: Loads, bundle: Bundle, place: str, value: object, why: str) -> None:
    *path, key = place.split()

    def change(manifest: Any) -> None:
        for step in path:
            manifest = manifest[int(step) if step.isdigit() else step]
        if value is GONE:
            del manifest[key]
        else:
            manifest[key] = value

    bundle.say(change)
    refusal = loads(bundle.path)
    assert refusal.code == "manifest_invalid"
    assert refusal.message.startswith("manifest.json is invalid: ")
    assert why in refusal.message


def test_another_format_is_refused_even_if_the_rest_is_unknown(loads: Loads, bundle: Bundle) -> None:
    bundle.write(b'{"format": 4, "whatever": "comes"}')
    refusal = loads(bundle.path)
    assert refusal.code == "format_unknown"
    assert refusal.message.startswith("the bundle has the format 4, but this host reads format 3: ")


ABSENT = ("sse4a", "xop", "fma4", "tbm", "amx_fp16", "avx512_vp2intersect")  # no processor has all of them


def _elsewhere() -> dict[str, tuple[Callable[[Any], object], str, str]]:
    """Return changes for another machine, each with the code and the message."""
    here = set(Path("/proc/cpuinfo").read_text().split())
    lacking = next(feature for feature in ABSENT if feature not in here)
    own = ".".join(torch.__version__.split(".")[:2])
    return {
        "an older torch": (
            lambda manifest: manifest["torch"].update(oldest="1.13", newest="2.0"),
            "torch_unsupported",
            f"requires PyTorch 1.13 to 2.0, but this host has {own}",
        ),
        "a newer torch": (
            lambda manifest: manifest["torch"].update(oldest="99.0"),
            "torch_unsupported",
            f"requires PyTorch 99.0 or newer, but this host has {own}",
        ),
        "a library's torch": (
            lambda manifest: manifest["libraries"][0].update(oldest="2.0", newest="2.0"),
            "torch_unsupported",
            f"the library lib/blended.so requires PyTorch 2.0, but this host has {own}",
        ),
        "features of other processors": (
            lambda manifest: manifest["cpu"].update(features=["quantum", lacking]),
            "cpu_unsupported",
            f"requires a processor with quantum, {lacking}, which this one lacks",
        ),
        "another architecture": (
            lambda manifest: manifest["cpu"].update(architecture="riscv64"),
            "cpu_unsupported",
            f"was made for riscv64, but this machine is {platform.machine()}",
        ),
        "a GPU": (
            lambda manifest: manifest.update(device="cuda", cuda={"architectures": ["1.0", "99.0+PTX"]}),
            "device_unavailable",
            "of compute capability 1.0, 99.0+PTX" if torch.cuda.is_available() else "PyTorch finds no GPU: run it",
        ),
    }


ELSEWHERE = _elsewhere()


@pytest.mark.parametrize("what", ELSEWHERE)
def test_a_bundle_for_another_machine_is_refused(loads: Loads, bundle: Bundle, what: str) -> None:
    change, code, why = ELSEWHERE[what]
    bundle.say(change)
    refusal = loads(bundle.path)
    assert refusal.code == code
    assert why in refusal.message


def test_every_known_feature_of_this_processor_is_detected(loads: Loads, bundle: Bundle) -> None:
    needed = ["avx2", "fma", "f16c", "bmi2", "movbe"]
    here = set(Path("/proc/cpuinfo").read_text().split())
    bundle.say(lambda manifest: manifest["cpu"].update(features=[name for name in needed if name in here]))
    assert loads(bundle.path).code == "loaded"
