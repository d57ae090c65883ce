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
    *("format", "opwright", "model", "torch", "device", "cpu", "cuda", "libraries", "inputs", "tied", "outputs"),
    *("tolerance", "goldens", "runtime", "files"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def put(told: Any, way: Sequence[str | int], value: object) -> None:
    """Sets what stands at the end of a way of keys and numbers."""
    for step in way[:-1]:
        told = told[step]
    told[way[-1]] = value


def ways(told: Any) -> list[tuple[str | int, ...]]:
    """Returns the way to everything that is inside."""
    pairs = list(told.items()) if isinstance(told, dict) else list(enumerate(told)) if isinstance(told, list) else []
    return [(key, *rest) for key, value in pairs for rest in [(), *ways(value)]]


def test_a_manifest_is_read_back_as_it_was_written(manifest: Manifest) -> None:
    assert read_manifest(manifest.to_json()) == manifest


def test_the_text_has_the_keys_in_the_order_of_the_page_and_ends_with_a_line(manifest: Manifest) -> None:
    text = manifest.to_json()
    assert list(json.loads(text)) == KEYS
    assert text.startswith('{\n  "format": 1,\n')
    assert text.endswith("}\n")


def test_the_files_are_listed_by_name_whatever_order_they_came_in(manifest: Manifest) -> None:
    assert list(json.loads(manifest.to_json())["files"]) == ["goldens/0.pt", "lib/mine.so", "model.pt"]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("format", 2, "has format 2, and this opwright reads format 1"),
        ("format", "1", "'format' must be a whole number, got '1'"),
        ("format", True, "'format' must be a whole number, got True"),
        ("opwright", None, "'opwright' must be text, got None"),
        ("device", "tpu", "'device' must be 'cpu' or 'cuda', got 'tpu'"),
        ("model.kind", "onnx", "'model.kind' must be 'torchscript' or 'aoti', got 'onnx'"),
        ("model.file", "../model.pt", "the path '../model.pt' cannot be in a bundle"),
        ("model.file", "other.pt", "the file 'other.pt' is named, and is not in 'files'"),
        ("runtime", "/bin/sh", "the path '/bin/sh' cannot be in a bundle"),
        ("cuda", [], "'cuda' must be an object, got []"),
        ("tied.0.1.dimension", 2, "'tied[0]' must be a dimension of an input"),
        ("tied.0.1.input", "nobody", "'tied[0]' must be a dimension of an input"),
        ("inputs.0.dims.0", {"min": 1}, "the key 'inputs[0].dims[0].max' is missing"),
        ("inputs.0.dims.0", {"min": 2, "max": 1}, "'inputs[0].dims[0]' must be 0 or more, and min no larger than max"),
        ("inputs.0.dims.1", None, "'inputs[0].dims[1]' must be a whole number, got None"),
        ("inputs.0.dims.1", -3, "'inputs[0].dims[1]' must be 0 or more"),
        ("inputs.0.image.crop", [1], "'inputs[0].image.crop' must be a list of 2, got [1]"),
        ("inputs.0.image.mean.1", "0", "'inputs[0].image.mean[1]' must be a number, got '0'"),
        ("inputs.1.name", "image", "'inputs[1].name' must be a name of its own, got 'image'"),
        ("inputs.1.name", "", "'inputs[1].name' is '': expected 1 to 255 bytes"),
        ("outputs.0.name", "a\nb", "expected 1 to 255 bytes of text without control characters"),
        ("libraries.0.operators.0.called", 1, "'libraries[0].operators[0].called' must be true or false, got 1"),
        ("libraries.0.newest", 2.13, "'libraries[0].newest' must be text, got 2.13"),
        ("tolerance", -1, "'tolerance' must be 0 or more, got -1"),
        ("files", [], "'files' must be an object, got []"),
        ("more", 1, "the key 'more' is unknown: expected format, opwright"),
        ("cpu.model", "x", "the key 'cpu.model' is unknown: expected architecture, features"),
    ],
)
def test_what_is_not_as_the_page_says_is_refused_with_its_place(
    manifest: Manifest, place: str, value: object, message: str
) -> None:
    told = json.loads(manifest.to_json())
    put(told, [int(part) if part.isdigit() else part for part in place.split(".")], value)
    with pytest.raises(BundleError) as refused:
        read_manifest(json.dumps(told))
    assert message in str(refused.value)


@pytest.mark.parametrize("key", KEYS)
def test_a_missing_key_is_named(manifest: Manifest, key: str) -> None:
    told = json.loads(manifest.to_json())
    del told[key]
    with pytest.raises(BundleError, match=f"the key '{key}' is missing"):
        read_manifest(json.dumps(told))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 1, "format": 1}', "the key 'format' comes twice"),
        ('{"tolerance": NaN}', "NaN is no number there"),
        ("[]", "the whole must be an object"),
        ("{", "is not JSON in UTF-8"),
        (b"\xff\xfe", "is not JSON in UTF-8"),
        ("[" * 100_000, "is not JSON in UTF-8"),
        (b" " * (4 * 2**20 + 1), "has 4194305 bytes: expected at most 4194304"),
    ],
)
def test_what_is_no_manifest_at_all_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(BundleError) as refused:
        read_manifest(text)
    assert message in str(refused.value)


@pytest.mark.parametrize("facts", [{"bytes": -1, "sha256": "0" * 64}, {"bytes": 1, "sha256": "0" * 63 + "G"}])
def test_a_size_and_a_digest_have_to_be_such(manifest: Manifest, facts: dict[str, object]) -> None:
    told = json.loads(manifest.to_json())
    told["files"]["model.pt"] = facts
    with pytest.raises(BundleError, match=r"'files\.model\.pt\.(bytes|sha256)' must be"):
        read_manifest(json.dumps(told))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # nobody changes the manifest
@given(data=st.data(), value=JSON)
def test_anything_anywhere_is_either_read_or_refused_in_words(
    manifest: Manifest, data: st.DataObject, value: object
) -> None:
    told = json.loads(manifest.to_json())
    put(told, data.draw(st.sampled_from(ways(told))), value)
    with contextlib.suppress(BundleError):
        read_manifest(json.dumps(told))
