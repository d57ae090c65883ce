"""A Python value is converted to a path, or to the bytes of a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from opwright.scale.facts.bundle_facts import InputFacts
from opwright.scale.predictor.asked_row import asked_row, columns_of
from opwright.scale.predictor.values import content_of
from opwright.scale.rows import Failure

IMAGE = InputFacts("image", "float32", ((1, 4), (2, 2), (3, 3)))
SHIFT = InputFacts("shift", "int16", ((1, None),))
NUMBERS = np.arange(6, dtype=np.float32).reshape(2, 3)


def array_of(value: object, facts: InputFacts = IMAGE) -> np.ndarray[Any, Any]:
    content = content_of(value, facts)
    assert isinstance(content, bytes)
    found: np.ndarray[Any, Any] = np.load(io.BytesIO(content))
    return found


@pytest.mark.parametrize("value", ["a.jpg", Path("a.jpg"), np.str_("a.jpg"), {"bytes": None, "path": "a.jpg"}])
def test_a_path_remains_a_path(value: object) -> None:
    assert content_of(value, IMAGE) == "a.jpg"


@pytest.mark.parametrize(
    "value", [b"jpeg\0", bytearray(b"jpeg\0"), memoryview(b"jpeg\0"), {"bytes": b"jpeg\0", "path": "a.jpg"}]
)
def test_the_bytes_of_a_file_remain_bytes(value: object) -> None:
    assert content_of(value, IMAGE) == b"jpeg\0"


@pytest.mark.parametrize(
    "value",
    [
        NUMBERS,
        NUMBERS[None],
        np.asfortranarray(NUMBERS),
        torch.from_numpy(NUMBERS),
        torch.from_numpy(NUMBERS).requires_grad_(),
        NUMBERS.tolist(),
        [*NUMBERS],
        np.array([None, *NUMBERS], dtype=object)[1:],
    ],
)
def test_an_array_receives_a_row_dimension_and_keeps_its_dtype(value: object) -> None:
    found = array_of(value)
    assert found.dtype == np.float32
    assert np.array_equal(found, NUMBERS[None])


def test_only_python_numbers_are_converted_to_the_dtype_of_the_input() -> None:
    assert array_of([1, 2], SHIFT).dtype == np.int16
    assert array_of(np.array([1, 2]), SHIFT).dtype == np.int64
    assert array_of([np.int64(1)], SHIFT).dtype == np.int64


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "the input image has no value: expected a path, the bytes of a file, or an array of numbers"),
        (float("nan"), "the input image has no value"),
        (np.bytes_(b"jpeg"), "has NumPy's dtype S, which drops trailing zero bytes: use dtype=object"),
        (np.array(["a", "b"]), "is an array of dtype <U1: expected a path"),
        ([[1.0], [1.0, 2.0]], "the input image has type list: expected a path"),
        (object(), "the input image has type object: expected a path"),
    ],
)
def test_a_value_that_cannot_be_an_input_is_reported(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        content_of(value, IMAGE)


def test_a_single_column_is_used_for_a_single_input_whatever_its_name() -> None:
    assert columns_of([IMAGE], ["picture"]) == {"image": "picture"}
    assert columns_of([IMAGE], ["image", "label"]) == {"image": "image"}
    assert columns_of([IMAGE], ["picture", "label"]) == {}
    assert columns_of([IMAGE, SHIFT], ["shift"]) == {"shift": "shift"}


def test_an_npz_without_a_name_provides_the_names_of_its_arrays() -> None:
    assert asked_row([IMAGE], {"image": ""}, lambda name, facts: "both.npz") == {"": "both.npz"}
    assert asked_row([IMAGE], {"image": "image"}, lambda name, facts: "both.npz") == {"image": "both.npz"}


def test_a_value_that_cannot_be_an_input_fails_its_row() -> None:
    failure = asked_row([IMAGE], {"image": "image"}, lambda name, facts: content_of(None, facts))
    assert isinstance(failure, Failure)
    assert failure.status == "input_unreadable"
    assert failure.message.startswith("the input image has no value")
