"""A predictor accepts every kind of batch: results equal those of a map, and a bad row is reported or kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import opwright
from opwright import BundleError, MapError

IMAGES = np.random.default_rng(1).random((5, 3, 8, 8), dtype=np.float32)
WRONG = "the input image has the dtype float64; expected float32"


@pytest.fixture(scope="module")
def predictor(fragile: Path) -> opwright.Predictor:
    return opwright.Predictor(fragile, batch=4)


@pytest.fixture(scope="module")
def keeping(fragile: Path) -> opwright.Predictor:
    return opwright.Predictor(fragile, batch=4, on_error="keep")


@pytest.fixture(scope="module")
def expected(predictor: opwright.Predictor) -> np.ndarray[Any, Any]:
    """The outputs for IMAGES."""
    found = predictor({"image": IMAGES})["output"]
    assert np.allclose(found, 2 * IMAGES.mean((2, 3)))
    return np.asarray(found)


def test_results_are_bitwise_identical_to_those_of_a_map(
    fragile: Path, predictor: opwright.Predictor, pictures: list[str], tmp_path: Path
) -> None:
    opwright.map(fragile, pictures, output=tmp_path / "results", batch=4)
    column = pq.read_table(tmp_path / "results").column("output").combine_chunks()
    mapped = column.to_numpy_ndarray() if hasattr(column, "to_numpy_ndarray") else np.array(column.to_pylist())
    found = predictor({"image": np.array(pictures, dtype=object)})["output"]
    assert found.dtype == np.float32
    assert found.tobytes() == np.asarray(mapped, np.float32).tobytes()


def test_a_dict_of_arrays_keeps_its_columns_and_receives_stacked_outputs(
    predictor: opwright.Predictor, expected: np.ndarray[Any, Any]
) -> None:
    labels = np.arange(5)
    found = predictor({"image": IMAGES, "label": labels})
    assert list(found) == ["image", "label", "output"]
    assert found["image"] is IMAGES
    assert found["label"] is labels
    assert (found["output"].dtype, found["output"].shape) == (np.float32, (5, 3))
    assert np.array_equal(found["output"], expected)


def test_a_dataframe_keeps_its_index_and_columns(predictor: opwright.Predictor, expected: np.ndarray[Any, Any]) -> None:
    frame = pd.DataFrame({"image": [*IMAGES], "label": range(5)}, index=[*"abcde"])
    found = predictor(frame)
    assert list(frame.columns) == ["image", "label"]
    assert list(found.columns) == ["image", "label", "output"]
    assert list(found.index) == [*"abcde"]
    assert np.array_equal(np.stack(found["output"]), expected)


def test_a_table_receives_columns_with_a_maps_types(
    predictor: opwright.Predictor, expected: np.ndarray[Any, Any]
) -> None:
    images = pa.FixedShapeTensorArray.from_numpy_ndarray(IMAGES)
    found = predictor(pa.table({"image": images, "label": pa.array(range(5))}))
    assert found.column_names == ["image", "label", "output"]
    assert found.schema.field("output").type == pa.list_(pa.float32(), 3)
    assert np.array_equal(np.array(found.column("output").to_pylist(), np.float32), expected)


def test_paths_bytes_and_arrays_return_the_same_results(predictor: opwright.Predictor, pictures: list[str]) -> None:
    by_path = predictor.rows([{"image": path} for path in pictures])
    by_bytes = predictor.rows([{"image": Path(path).read_bytes(), "label": 1} for path in pictures])
    without_name = predictor.rows(pictures)
    table = pa.table({"picture": pa.array([Path(path).read_bytes() for path in pictures])})
    in_table = predictor(table).column("output").to_pylist()
    assert [list(row) for row in by_path] == [["output"]] * 6
    for one, other, third, fourth in zip(by_path, by_bytes, without_name, in_table, strict=True):
        assert one["output"].shape == (3,)
        assert one["output"].tolist() == other["output"].tolist() == third["output"].tolist() == fourth


def test_relative_paths_start_where_the_predictor_was_created(
    fragile: Path, pictures: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with opwright.Predictor(fragile) as predictor:
        monkeypatch.chdir("/")
        assert len(predictor.rows(["0.png"])) == 1


def test_several_inputs_and_outputs_of_different_sizes_are_supported(blended: Path) -> None:
    sizes = [(8, 8), (9, 12), (8, 8)]
    random = np.random.default_rng(0)
    images = np.empty(3, dtype=object)
    for place, size in enumerate(sizes):
        images[place] = random.random((3, *size), dtype=np.float32)
    batch = {"image": images, "shift": np.zeros((3, 3), np.float32)}
    with opwright.Predictor(blended) as predictor:
        found = predictor(batch)
        (row,) = predictor.rows([{"image": images[1], "shift": batch["shift"][1]}])
    pixels, features = (name for name in found if name not in batch)
    assert found[pixels].dtype == object
    assert [one.shape for one in found[pixels]] == [(3, *size) for size in sizes]
    assert np.allclose(found[pixels][1], images[1] * 0.5 + 0.25)
    assert found[features].shape == (3, 4)
    assert np.array_equal(row[features], found[features][1])


def test_a_batch_without_rows_receives_empty_columns_and_starts_no_host(fragile: Path) -> None:
    predictor = opwright.Predictor(fragile, threads=2)
    assert predictor({"image": IMAGES[:0]})["output"].shape == (0, 3)
    assert predictor.rows([]) == []
    assert predictor.pid is None


def test_an_error_names_the_row_and_how_to_keep_it(predictor: opwright.Predictor) -> None:
    images = [IMAGES[0], IMAGES[1].astype(np.float64), IMAGES[2]]
    message = f"row 1: {WRONG} (input_dtype). Pass on_error='keep' to write a row with its error instead"
    with pytest.raises(MapError, match=re.escape(message)):
        predictor.rows(images)
    assert len(predictor.rows(images[::2])) == 2


BAD = [IMAGES[0], IMAGES[1].astype(np.float64), None, b"no picture", "no/such.png", IMAGES[0]]
CODES = ["ok", "input_dtype", *["input_unreadable"] * 3, "ok"]
MESSAGES = [
    WRONG,
    "the input image has no value: expected a path, the bytes of a file, or an array of numbers",
    "the content of the input image cannot be read: it is not an .npy, JPEG or PNG file",
    "no/such.png",
]


def test_failed_rows_are_kept_in_a_dict(keeping: opwright.Predictor) -> None:
    images = np.empty(6, dtype=object)
    images[:] = BAD
    found = keeping({"image": images})
    assert list(found) == ["image", "status", "error", "output"]
    assert found["status"].tolist() == CODES
    assert found["error"][0] is None
    for message, said in zip(MESSAGES, found["error"][1:5], strict=True):
        assert message in said
    assert np.isnan(found["output"][1:5]).all()
    assert np.array_equal(found["output"][0], found["output"][5])
    assert not np.isnan(found["output"][0]).any()


def test_failed_rows_are_kept_in_every_kind_of_batch(keeping: opwright.Predictor) -> None:
    frame = keeping(pd.DataFrame({"image": BAD}))
    assert frame["status"].tolist() == CODES
    assert [one is None for one in frame["output"]] == [code != "ok" for code in CODES]
    table = keeping(pa.table({"image": [b"no picture", b"nor this"]}))
    assert table.column("status").to_pylist() == ["input_unreadable"] * 2
    assert table.column("output").to_pylist() == [None, None]
    first, second, *_ = keeping.rows(BAD)
    assert (first["status"], first["error"]) == ("ok", None)
    assert (second["status"], second["error"], second["output"]) == ("input_dtype", WRONG, None)


def test_a_row_without_an_input_is_an_error_that_names_the_input(blended: Path) -> None:
    with opwright.Predictor(blended, on_error="keep") as predictor:
        found = predictor.rows([{"image": IMAGES[0]}, {}, IMAGES[0]])
    assert [row["status"] for row in found] == ["input_unknown"] * 3
    assert [row["error"] for row in found] == [
        "the input shift is missing: the row has image",
        "the input image is missing: the row has nothing",
        "the input image is missing: the row has one value without a name",
    ]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ([IMAGES[0]], "the batch is of type list: expected a dict of arrays, a pandas.DataFrame or a pyarrow.Table"),
        ({"a": [1], "b": [2]}, "the batch has no column image: expected one for each input of the model. It has a, b"),
        ({"image": IMAGES, "b": [2]}, "different numbers of rows: image has 5, b has 1"),
        ({"image": IMAGES[:1], "status": ["new"]}, "the batch already has a column status, which on_error='keep' adds"),
    ],
)
def test_a_batch_that_does_not_match_is_rejected(keeping: opwright.Predictor, batch: Any, message: str) -> None:
    with pytest.raises(MapError, match=re.escape(message)):
        keeping(batch)


def test_a_column_with_the_name_of_an_output_is_kept(predictor: opwright.Predictor) -> None:
    found = predictor({"image": IMAGES[:1], "output": ["mine"]})
    assert list(found) == ["image", "output", "output_output"]
    assert found["output"] == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on_error": "skip"}, "on_error is 'skip': expected 'raise' or 'keep'"),
        ({"threads": 0}, "threads is 0: expected at least 1"),
        ({"batch": 0}, "batch is 0: expected at least 1"),
        ({"batch": 9}, "batch is 9, but the bundle runs at most 8 of these inputs together: use a smaller batch"),
    ],
)
def test_an_invalid_argument_is_rejected_immediately(fragile: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(MapError, match=re.escape(message)):
        opwright.Predictor(fragile, **arguments)


def test_a_folder_that_is_not_a_bundle_is_rejected_immediately(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is not a bundle"):
        opwright.Predictor(tmp_path)
