from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opwright.scale.facts.bundle_facts import OutputFacts
from opwright.scale.results.columns import Columns
from opwright.scale.rows import Answer, Array, Failure

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
FAILED = Answer(failure=Failure("input_unreadable", "it cannot be read"))


def array(values: np.ndarray[Any, Any]) -> Array:
    return Array(str(values.dtype), values.shape, values.tobytes())


def drawn(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    numbers = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
    return np.asarray(numbers * (1 - 2j) if dtype.startswith("complex") else numbers, dtype)


def expected(values: np.ndarray[Any, Any]) -> Any:
    """An array as its column stores it: complex numbers as two numbers, and booleans as 0 or 1."""
    if values.dtype.kind == "c":
        return np.stack([values.real, values.imag], -1).tolist()
    return values.astype(np.uint8).tolist() if values.dtype == bool else values.tolist()


def nested(cell: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """A cell with its shape."""
    if isinstance(cell, dict):
        return np.reshape(cell["data"], cell["shape"]).tolist()
    parts = (2,) if dtype.startswith("complex") else ()
    return np.asarray(cell).reshape((*shape, *parts)).tolist()


def written(folder: Path, output: OutputFacts, answers: list[Answer]) -> Path:
    columns = Columns([output])
    table = columns.table(10, [f"file {row}" for row in range(len(answers))], answers)
    table.validate(full=True)
    pq.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (2, 1, 2), (0,), (1, 0), (0, 3)])
def test_outputs_of_one_shape_are_read_back_unchanged(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    values = [drawn(dtype, shape, seed) for seed in range(3)]
    answers = [FAILED, Answer((array(values[0]),)), FAILED, Answer((array(values[1]),)), Answer((array(values[2]),))]
    path = written(tmp_path, OutputFacts("y", dtype, shape, len(shape)), answers)
    table = pq.read_table(path)
    assert table["id"].to_pylist() == [10, 11, 12, 13, 14]
    assert table["status"].to_pylist() == ["input_unreadable", "ok", "input_unreadable", "ok", "ok"]
    assert table["error"].to_pylist() == ["it cannot be read", None, "it cannot be read", None, None]
    cells = table["y"].to_pylist()
    assert cells[0] is cells[2] is None
    assert [nested(cell, shape, dtype) for cell in (cells[1], cells[3], cells[4])] == [expected(one) for one in values]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_outputs_of_any_shape_are_read_back_with_their_shape(tmp_path: Path, dtype: str, rank: int) -> None:
    shapes = [(size,) * rank for size in (2, 0, 3)]
    values = [drawn(dtype, shape, seed) for seed, shape in enumerate(shapes)]
    answers = [FAILED, *(Answer((array(one),)) for one in values), FAILED]
    cells = pq.read_table(written(tmp_path, OutputFacts("y", dtype, None, rank), answers))["y"].to_pylist()
    assert cells[0] is cells[4] is None
    for cell, one in zip(cells[1:4], values, strict=True):
        assert np.reshape(cell["data"], cell["shape"]).tolist() == expected(one)


@pytest.mark.parametrize("shape", [(), (2,), (1, 2), None])
def test_a_table_in_which_every_row_failed_is_valid(tmp_path: Path, shape: tuple[int, ...] | None) -> None:
    path = written(tmp_path, OutputFacts("y", "float32", shape, 2), [FAILED, FAILED])
    assert pq.read_table(path)["y"].to_pylist() == [None, None]


@pytest.mark.parametrize(("dtype", "kind"), [("bfloat16", "float"), ("float8_e4m3fn", "float")])
def test_dtypes_that_numpy_lacks_become_float32(dtype: str, kind: str) -> None:
    assert str(Columns([OutputFacts("y", dtype, (), 0)]).schema.field("y").type) == kind


def test_columns_have_the_documented_types() -> None:
    outputs = [
        OutputFacts("number", "int64", (), 0),
        OutputFacts("list", "float16", (3,), 1),
        OutputFacts("tensor", "float32", (1, 3), 2),
        OutputFacts("ragged", "complex64", None, 2),
    ]
    schema = Columns(outputs).schema
    assert [(field.name, field.nullable) for field in schema][:4] == [
        ("id", False),
        ("input", False),
        ("status", False),
        ("error", True),
    ]
    assert schema.field("number").type == pa.int64()
    assert schema.field("list").type == pa.list_(pa.float16(), 3)
    assert schema.field("tensor").type == pa.fixed_shape_tensor(pa.float32(), (1, 3))
    assert schema.field("ragged").type == pa.struct(
        [("shape", pa.list_(pa.int64(), 3)), ("data", pa.large_list(pa.float32()))]
    )


def test_outputs_with_names_of_other_columns_are_renamed() -> None:
    names = ["id", "id_output", "status", "error", "input", "y", "y_output"]
    outputs = [OutputFacts(name, "float32", (), 0) for name in names]
    assert Columns(outputs).schema.names[4:] == [
        *("id_output", "id_output_output", "status_output", "error_output", "input_output", "y", "y_output"),
    ]


def test_the_row_dimension_is_removed_and_must_be_one() -> None:
    columns = Columns([OutputFacts("y", "float32", (1, 2), 2, has_row=True), OutputFacts("z", "float32", None, 1)])
    fits = Answer((Array("float32", (1, 2), bytes(8)), Array("float32", (5,), bytes(20))), None, 0.5)
    assert columns.fitted(fits) == Answer((Array("float32", (2,), bytes(8)), fits.outputs[1]), None, 0.5)
    assert columns.fitted(FAILED) == FAILED
    wide = Answer((Array("float32", (3, 2), bytes(24)), Array("float32", (5,), bytes(20))))
    assert columns.fitted(wide).failure == (
        "output_unwritable",
        "the output y has the shape (3, 2), for 3 rows: pass each row as a separate input",
    )


def test_pandas_reads_the_columns(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    for shape in ((), (3,), (2, 3), None):
        one = np.asarray(drawn("float32", () if shape == () else shape or (2, 2), 1))
        path = written(tmp_path, OutputFacts("y", "float32", shape, one.ndim), [Answer((array(one),)), FAILED])
        frame = pandas.read_parquet(path)
        assert list(frame["status"]) == ["ok", "input_unreadable"]
        cell = frame["y"][0]["data"] if shape is None else frame["y"][0]
        assert np.array_equal(np.ravel(np.asarray(cell, dtype=np.float32)), one.ravel())
        assert np.all(pandas.isna(frame["y"][1]))


def test_large_arrays_are_stored_without_padding(tmp_path: Path) -> None:
    one = np.random.default_rng(0).random((100, 100), dtype=np.float32)
    path = written(tmp_path, OutputFacts("y", "float32", one.shape, 2), [Answer((array(one),))] * 3)
    assert pq.read_metadata(path).row_group(0).column(4).num_values == 3 * math.prod(one.shape)
