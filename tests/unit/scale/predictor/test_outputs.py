"""Answers are converted to arrays and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from opwright.scale.facts.bundle_facts import OutputFacts
from opwright.scale.predictor.outputs import Outputs, statuses
from opwright.scale.rows import Answer, Array, Failure

SCORES = OutputFacts("scores", "float32", (1, 2), 2, has_row=True)
BOXES = OutputFacts("boxes", "int32", None, 2)
COUNT = OutputFacts("status", "int64", (1,), 1, has_row=True)
RESULTS = Outputs([SCORES, BOXES, COUNT])
FAILED = Answer(failure=Failure("input_size", "too small"))


def answer(scores: list[float], boxes: list[list[int]], count: int) -> Answer:
    arrays: list[tuple[str, np.ndarray[Any, Any]]] = [
        ("float32", np.array([scores], np.float32)),
        ("int32", np.array(boxes, np.int32).reshape(-1, 4)),
        ("int64", np.array([count], np.int64)),
    ]
    return RESULTS.of_one_row(Answer(tuple(Array(dtype, one.shape, one.tobytes()) for dtype, one in arrays)))


ANSWERS = [answer([1, 2], [[1, 2, 3, 4]], 1), FAILED, answer([3, 4], [], 0)]


def test_columns_have_the_names_of_a_maps_table() -> None:
    assert RESULTS.names == ["scores", "boxes", "status_output"]


def test_rows_are_stacked_without_the_row_dimension_and_a_failed_row_is_nan_zero_or_none() -> None:
    scores, boxes, count = RESULTS.arrays(ANSWERS)
    assert scores.dtype == np.float32
    assert np.array_equal(scores, np.array([[1, 2], [np.nan, np.nan], [3, 4]]), equal_nan=True)
    assert boxes.dtype == object
    assert boxes[0].tolist() == [[1, 2, 3, 4]]
    assert boxes[1] is None
    assert count.tolist() == [1, 0, 0]


def test_arrow_columns_have_the_types_of_a_maps_table_and_null_for_a_failed_row() -> None:
    scores, boxes, count = RESULTS.arrow(ANSWERS)
    assert scores.type == pa.list_(pa.float32(), 2)
    assert scores.to_pylist() == [[1, 2], None, [3, 4]]
    assert boxes.to_pylist()[0] == {"shape": [1, 4], "data": [1, 2, 3, 4]}
    assert count.to_pylist() == [1, None, 0]


def test_zero_rows_become_empty_arrays() -> None:
    scores, boxes, count = RESULTS.arrays([])
    assert (scores.shape, boxes.shape, count.shape) == ((0, 2), (0,), (0,))


def test_dtypes_that_numpy_lacks_become_float32() -> None:
    (array,) = Outputs([OutputFacts("x", "bfloat16", (1, 2), 2, has_row=True)]).arrays([FAILED])
    assert array.dtype == np.float32


def test_the_status_of_a_row_is_ok_or_the_name_of_an_exit_code() -> None:
    assert statuses(ANSWERS) == (["ok", "input_size", "ok"], [None, "too small", None])
