from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opwright.bundle.format.read import read_manifest
from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.bundle.format.manifest import Manifest

KEYS = [
    *("format", "opwright", "model", "torch", "device", "cpu", "cuda", "libraries", "inputs", "equal_dims", "outputs"),
    *("tolerance", "goldens", "host_program", "files"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def put(told: Any, way: Sequence[str | int], value: object) -> None:
    """Set the value at the end of a path of keys and indices."""
    for step in way[:-1]:
        told = told[step]
    told[way[-1]] = value


def ways(told: Any) -> list[tuple[str | int, ...]]:
    """Return the path to every value."""
    pairs = list(told.items()) if isinstance(told, dict) else list(enumerate(told)) if isinstance(told, list) else []
    return [(key, *rest) for key, value in pairs for rest in [(), *ways(value)]]


def test_a_written_manifest_is_read_unchanged(manifest: Manifest) -> None:
    assert read_manifest(manifest.to_json()) == manifest


def test_the_text_has_the_keys_in_the_documented_order_and_ends_with_a_newline(manifest: Manifest) -> None:
    text = manifest.to_json()
    assert list(json.loads(text)) == KEYS
    assert text.startswith('{\n  "format": 3,\n')
    assert text.endswith("}\n")


def test_the_files_are_sorted_by_name_in_whatever_order_they_were_added(manifest: Manifest) -> None:
    assert list(json.loads(manifest.to_json())["files"]) == ["goldens/0.pt", "lib/mine.so", "model.pt"]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("format", 1, "has format 1, and this opwright reads format 3: ship the model again"),
        ("format", "1", "'format' must be a whole number, got '1'"),
        ("format", True, "'format' must be a whole number, got True"),
        ("opwright", None, "'opwright' must be text, got None"),
        ("device", "tpu", "'device' must be 'cpu' or 'cuda', got 'tpu'"),
        ("model.kind", "onnx", "'model.kind' must be 'torchscript' or 'aoti', got 'onnx'"),
        (
            "model.file",
            "../model.pt",
            "'model.file' must be a path inside the bundle: at most 255 bytes",
        ),
        ("model.file", "other.pt", "the file 'other.pt' is referenced, but is not listed in 'files'"),
        ("host_program", "/bin/sh", "'host_program' must be a path inside the bundle"),
        ("host_program", "model.pt", "'host_program' must be null, or a file in host/, got 'model.pt'"),
        ("torch.oldest", "2", "'torch.oldest' must be a release such as 2.13, got '2'"),
        ("torch.newest", "2.9", "'torch' must be a newest release that is null, or not before oldest, got {"),
        (
            "torch.version",
            "x" * 256,
            "'torch.version' must be 1 to 255 bytes of text without control characters",
        ),
        ("torch.version", "ß" * 128, "'torch.version' must be at most 255 bytes of text, got 'ßß"),
        (
            "cuda",
            {"architectures": ["9.0", "9.0+ptx"]},
            "'cuda.architectures[1]' must be a compute capability such as 9.0 or 9.0+PTX, got '9.0+ptx'",
        ),
        ("cuda", [], "'cuda' must be an object or null, got []"),
        (
            "equal_dims.0.1.dim",
            2,
            "'equal_dims[0][1]' must be a dimension of an input, got {'input': 'warp'",
        ),
        (
            "equal_dims.0.1.input",
            "nobody",
            "'equal_dims[0][1]' must be a dimension of an input, got {'input'",
        ),
        ("inputs.0.dims.0", {"min": 1}, "the key 'inputs[0].dims[0].max' is missing"),
        ("inputs.0.dims.0", {"min": 2, "max": 1}, "'inputs[0].dims[0]' must be a min no larger than max, got {'min'"),
        ("inputs.0.dims.1", None, "'inputs[0].dims[1]' must be a whole number or an object, got None"),
        ("inputs.0.dims.1", -3, "'inputs[0].dims[1]' must be a whole number of at least 0, got -3"),
        ("inputs.0.dims.1", 2**63, f"'inputs[0].dims[1]' must be a whole number of at most {2**63 - 1}, got {2**63}"),
        ("inputs.0.dims", [1] * 65, "'inputs[0].dims' must be a list of at most 64, got [1, 1"),
        ("inputs.0.image.resize", 65537, "'inputs[0].image.resize' must be a whole number of at most 65536, got 65537"),
        ("inputs.0.image.crop", [257, 1], "'inputs[0].image' must be a crop no larger than resize, got {'resize': 256"),
        (
            "inputs.0.image.std.2",
            0,
            "'inputs[0].image' must be a mean and an std of finite numbers, with no std",
        ),
        ("inputs.0.image.std.2", 10**400, "'inputs[0].image' must be a mean and an std of finite numbers, with no std"),
        ("inputs.0.dims.1", 10**4000, "'inputs[0].dims[1]' must be a whole number or an object, got inf"),
        ("inputs.0.image.crop", [1], "'inputs[0].image.crop' must be a list of length 2, got [1]"),
        ("inputs.0.image.mean.1", "0", "'inputs[0].image.mean[1]' must be a number, got '0'"),
        ("inputs.1.name", "image", "'inputs[1].name' must be a unique name, got 'image'"),
        ("inputs.1.name", "", "'inputs[1].name' must be 1 to 255 bytes of text without control characters, got ''"),
        ("outputs.0.name", "a\nb", "'outputs[0].name' must be 1 to 255 bytes of text without control characters"),
        (
            "outputs.0.name",
            "\ud800",
            "'outputs[0].name' must be 1 to 255 bytes of text without control characters",
        ),
        ("outputs.0.dims", [{"min": 1, "max": 2}], "'outputs[0].dims[0]' must be a whole number or null, got {'min'"),
        ("goldens", ["model.pt"] * 4097, "'goldens' must be a list of at most 4096, got ["),
        ("libraries.0.operators.0.called", 1, "'libraries[0].operators[0].called' must be true or false, got 1"),
        ("libraries.0.newest", 2.13, "'libraries[0].newest' must be text or null, got 2.13"),
        ("tolerance", -1, "'tolerance' must be a number of at least 0"),
        ("files", [], "'files' must be an object, got []"),
        ("more", 1, "the key 'more' is unknown"),
        ("device", "\ud800", "manifest.json holds text that UTF-8 cannot encode: '\\ud800'"),
        ("\ud800", "x", "manifest.json holds text that UTF-8 cannot encode: '\\ud800'"),
        ("cpu.model", "x", "the key 'cpu.model' is unknown"),
    ],
)
def test_a_manifest_that_does_not_match_the_documentation_is_rejected_with_the_place(
    manifest: Manifest, place: str, value: object, message: str
) -> None:
    told = json.loads(manifest.to_json())
    put(told, [int(part) if part.isdigit() else part for part in place.split(".")], value)
    with pytest.raises(BundleError) as refused:
        read_manifest(json.dumps(told))
    assert message in str(refused.value)


@pytest.mark.parametrize("key", KEYS)
def test_a_missing_key_is_reported(manifest: Manifest, key: str) -> None:
    told = json.loads(manifest.to_json())
    del told[key]
    with pytest.raises(BundleError, match=f"the key '{key}' is missing"):
        read_manifest(json.dumps(told))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 3, "format": 3}', "the key 'format' occurs twice"),
        ('{"tolerance": NaN}', "NaN is not a number in JSON"),
        ("[]", "manifest.json must be an object, got []"),
        ("{", "is not JSON in UTF-8"),
        (b"\xff\xfe", "is not JSON in UTF-8"),
        ("[" * 100_000, "is not JSON in UTF-8"),
        (b" " * (4 * 2**20 + 1), "has 4194305 bytes: expected at most 4194304"),
    ],
)
def test_text_that_is_not_a_manifest_is_rejected(text: str | bytes, message: str) -> None:
    with pytest.raises(BundleError) as refused:
        read_manifest(text)
    assert message in str(refused.value)


@pytest.mark.parametrize("facts", [{"bytes": -1, "sha256": "0" * 64}, {"bytes": 1, "sha256": "0" * 63 + "G"}])
def test_sizes_and_digests_are_validated(manifest: Manifest, facts: dict[str, object]) -> None:
    told = json.loads(manifest.to_json())
    told["files"]["model.pt"] = facts
    with pytest.raises(BundleError, match=r"'files\.model\.pt\.(bytes|sha256)' must be"):
        read_manifest(json.dumps(told))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the manifest is not changed
@given(data=st.data(), value=JSON)
def test_any_change_is_either_read_or_rejected_with_an_error(
    manifest: Manifest, data: st.DataObject, value: object
) -> None:
    told = json.loads(manifest.to_json())
    put(told, data.draw(st.sampled_from(ways(told))), value)
    with contextlib.suppress(BundleError):
        read_manifest(json.dumps(told))
