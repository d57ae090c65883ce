from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opwright.errors import MapError
from opwright.scale.facts.bundle_facts import InputFacts
from opwright.scale.inputs.tables import TableReader, items_of_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

X = InputFacts("x", "float32", ((1, 4), (2, 2)))
REFUSED = "expected a path, the bytes of a file, or numbers"


def written(folder: Path, column: object, kind: object = None) -> str:
    path = f"{folder}/t.parquet"
    pq.write_table(pa.table({"x": pa.array(column, kind)}), path)
    return path


def value(folder: Path, one: object, kind: object = None) -> str | bytes:
    return TableReader([X]).row(written(folder, [one], kind), 0)["x"]


def array(folder: Path, one: object, kind: object = None) -> np.ndarray[Any, Any]:
    content = value(folder, one, kind)
    assert isinstance(content, bytes)
    return np.asarray(np.load(io.BytesIO(content)))


def refusal(folder: Path, one: object, kind: object = None) -> str:
    path = written(folder, [one], kind)
    with pytest.raises(ValueError, match=r"^the column x ") as caught:
        TableReader([X]).row(path, 0)
    return str(caught.value)


def test_a_string_is_a_path_relative_to_the_folder_of_the_table(tmp_path: Path) -> None:
    assert value(tmp_path, "a.npy") == f"{tmp_path}/a.npy"
    assert value(tmp_path, "/a.npy") == "/a.npy"
    assert value(tmp_path, "s3://b/a.npy") == "s3://b/a.npy"
    assert value(tmp_path, "a.npy", pa.large_string()) == f"{tmp_path}/a.npy"


def test_a_category_is_the_string_that_it_represents(tmp_path: Path) -> None:
    assert value(tmp_path, "a.npy", pa.dictionary(pa.int8(), pa.string())) == f"{tmp_path}/a.npy"


def test_binary_values_are_the_bytes_of_a_file(tmp_path: Path) -> None:
    assert value(tmp_path, b"\x89PNG\0") == b"\x89PNG\0"
    assert value(tmp_path, b"\x89PNG\0", pa.large_binary()) == b"\x89PNG\0"
    assert value(tmp_path, b"\x89PNG\0", pa.binary(5)) == b"\x89PNG\0"


def test_a_picture_of_datasets_is_its_bytes_or_else_its_path(tmp_path: Path) -> None:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    assert value(tmp_path, {"bytes": b"abc", "path": "a.jpg"}, kind) == b"abc"
    assert value(tmp_path, {"bytes": None, "path": "a.jpg"}, kind) == f"{tmp_path}/a.jpg"
    assert refusal(tmp_path, {"bytes": None, "path": None}, kind) == "the column x has no value"


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, lambda item: pa.list_(item, 2)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int64", "bool"])
def test_a_list_is_an_array_of_its_dtype(tmp_path: Path, kind: Any, dtype: str) -> None:
    expected = np.array([1, 0], dtype)
    numbers = pa.bool_() if dtype == "bool" else pa.from_numpy_dtype(np.dtype(dtype))
    made = array(tmp_path, list(expected), kind(numbers))
    assert made.dtype == expected.dtype
    assert made.tolist() == [expected.tolist()]  # with a row dimension


def test_lists_of_lists_have_the_rank_of_the_input(tmp_path: Path) -> None:
    kind = pa.list_(pa.list_(pa.float32()))
    assert array(tmp_path, [[1, 2], [3, 4]], kind).tolist() == [[1, 2], [3, 4]]


def test_a_tensor_has_its_shape(tmp_path: Path) -> None:
    numbers = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(numbers)
    path = f"{tmp_path}/t.parquet"
    pq.write_table(pa.table({"x": tensors}), path)
    content = TableReader([X]).row(path, 1)["x"]
    assert isinstance(content, bytes)
    assert np.array_equal(np.load(io.BytesIO(content)), numbers[1])


def test_a_number_is_an_array_without_dimensions(tmp_path: Path) -> None:
    scalar = InputFacts("x", "float32", ())
    content = TableReader([scalar]).row(written(tmp_path, [2.5], pa.float32()), 0)["x"]
    assert isinstance(content, bytes)
    assert np.load(io.BytesIO(content)).shape == ()


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.list_(pa.float32()), pa.float32()])
def test_a_row_without_a_value_is_reported(tmp_path: Path, kind: Any) -> None:
    assert refusal(tmp_path, None, kind) == "the column x has no value"


def test_a_missing_value_in_a_list_is_not_converted_to_nan(tmp_path: Path) -> None:
    message = f"the column x holds a list with missing values: {REFUSED}"
    assert refusal(tmp_path, [1.0, None], pa.list_(pa.float32())) == message
    assert refusal(tmp_path, [1.0, None], pa.list_(pa.float32(), 2)) == message
    assert refusal(tmp_path, [[1.0], None], pa.list_(pa.list_(pa.float32()))) == message
    assert refusal(tmp_path, [1, None], pa.list_(pa.int32())) == message


@pytest.mark.parametrize(
    ("one", "kind", "name"),
    [
        (["a"], pa.list_(pa.string()), "list<element: string>"),
        ([[1.0], [1.0, 2.0]], pa.list_(pa.list_(pa.float32())), "list<element: list<element: float>>"),
        ({"a": 1}, pa.struct([("a", pa.int64())]), "struct<a: int64>"),
        ([{"a": 1}], pa.list_(pa.struct([("a", pa.int64())])), "list<element: struct<a: int64>>"),
    ],
)
def test_a_value_that_is_not_an_array_is_rejected(tmp_path: Path, one: object, kind: Any, name: str) -> None:
    assert refusal(tmp_path, one, kind) == f"the column x holds {name}: {REFUSED}"


def test_a_table_has_an_item_for_each_row(tmp_path: Path) -> None:
    path = written(tmp_path, ["a", "b"])
    assert [(item.input, item.table, item.row) for item in items_of_table(path, ["x"])] == [
        (f"{path}#0", path, 0),
        (f"{path}#1", path, 1),
    ]


def test_a_missing_column_is_reported(tmp_path: Path) -> None:
    path = written(tmp_path, ["a"])
    text = (
        f"{path} has no column y: expected one for each input of the model. It has x. Map an input to another column "
        "with --column INPUT=COLUMN"
    )
    with pytest.raises(MapError, match=f"^{re.escape(text)}$"):
        list(items_of_table(path, ["x", "y"]))


def test_a_column_with_another_name_can_be_an_input(tmp_path: Path) -> None:
    path = f"{tmp_path}/t.parquet"
    pq.write_table(pa.table({"x": ["/wrong"], "jpeg": ["/a.jpg"]}), path)
    assert TableReader([X], {"x": "jpeg"}).row(path, 0) == {"x": "/a.jpg"}


def test_a_file_that_is_not_a_table_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"no table")
    with pytest.raises(MapError, match=rf"^{tmp_path}/t.parquet cannot be read as Parquet: .*Parquet"):
        list(items_of_table(f"{tmp_path}/t.parquet", ["x"]))


def test_rows_are_read_in_any_order_from_several_groups(tmp_path: Path) -> None:
    path = f"{tmp_path}/t.parquet"
    pq.write_table(pa.table({"x": [f"/{number}" for number in range(10)], "other": range(10)}), path, row_group_size=3)
    reader = TableReader([X])
    for row in [0, 9, 3, 2, 8, 5, 5, 0]:
        assert reader.row(path, row) == {"x": f"/{row}"}


def test_a_table_that_has_lost_rows_stops_the_map(tmp_path: Path) -> None:
    path = written(tmp_path, ["a"])
    with pytest.raises(MapError, match=rf"^{path} has 1 rows, but had more when the map started$"):
        TableReader([X]).row(path, 1)


def test_a_damaged_row_group_fails_only_its_own_rows(tmp_path: Path) -> None:
    path = Path(tmp_path / "t.parquet")
    table = pa.table({"x": [bytes([number]) * 1000 for number in range(6)]})
    pq.write_table(table, path, row_group_size=2, compression="NONE", use_dictionary=False)
    place = pq.read_metadata(path).row_group(1).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[place : place + 20] = b"\xff" * 20
    path.write_bytes(content)
    reader = TableReader([X])
    assert reader.row(str(path), 1) == {"x": b"\1" * 1000}
    for row in (2, 3):
        with pytest.raises(ValueError, match=rf"^its row group of {path} cannot be read: "):
            reader.row(str(path), row)
    assert reader.row(str(path), 4) == {"x": b"\4" * 1000}
