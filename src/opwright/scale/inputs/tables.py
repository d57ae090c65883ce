"""Reads inputs from the rows of Parquet files."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from opwright.errors import MapError
from opwright.scale.inputs.item import Item
from opwright.scale.parquet import open_parquet
from opwright.scale.urls import file_system, is_url, telling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opwright.scale.facts.bundle_facts import InputFacts

TABLE_ENDING = ".parquet"
_EXPECTED = "expected a path, the bytes of a file, or numbers"


def items_of_table(path: str, columns: Sequence[str]) -> Iterator[Item]:
    """Yield the rows of a Parquet file, in order.

    Args:
        path: its path or URL.
        columns: the columns that it must have, one for each input of the model.

    Raises:
        MapError: the file cannot be read, or lacks a column.
    """
    with _opened(path) as file:
        there = file.schema_arrow.names
        count = file.metadata.num_rows
    if missing := [name for name in columns if name not in there]:
        msg = (
            f"{path} has no column {missing[0]}: expected one for each input of the model. It has {', '.join(there)}. "
            "Map an input to another column with --column INPUT=COLUMN"
        )
        raise MapError(msg)
    for row in range(count):
        yield Item(f"{path}#{row}", table=path, row=row)


class TableReader:
    """Reads rows of Parquet files, and caches the last row group.

    Args:
        inputs: the inputs of the model.
        columns: the column of each input, keyed by the input's name, where the two names differ.
    """

    def __init__(self, inputs: Sequence[InputFacts], columns: Mapping[str, str] | None = None) -> None:
        self._inputs = inputs
        self._columns = {one.name: (columns or {}).get(one.name, one.name) for one in inputs}
        self._path = ""
        self._group: pa.Table | None = None
        self._damage = ""
        self._start = self._end = 0

    def row(self, path: str, row: int) -> dict[str, str | bytes]:
        """The values of a row, keyed by input: the path of a file, or the bytes of one.

        Raises:
            MapError: the file cannot be read.
            ValueError: a value cannot be an input; the message names it.
        """
        if path != self._path or not self._start <= row < self._end:
            self._read(path, row)
        if self._group is None:
            msg = f"its row group of {path} cannot be read: {self._damage}"
            raise ValueError(msg)
        place = row - self._start
        return {
            one.name: content_at(self._group.column(self._columns[one.name]), place, one, path.rpartition("/")[0])
            for one in self._inputs
        }

    def _read(self, path: str, row: int) -> None:
        with _opened(path) as file:
            start = 0
            for group in range(file.num_row_groups):
                size = file.metadata.row_group(group).num_rows
                if row < start + size:
                    self._path, self._start, self._end = path, start, start + size
                    self._read_group(file, group)
                    return
                start += size
        msg = f"{path} has {start} rows, but had more when the map started"
        raise MapError(msg)

    def _read_group(self, file: pq.ParquetFile, group: int) -> None:
        self._group = None
        try:
            self._group = file.read_row_group(group, columns=[*self._columns.values()], use_threads=False)
        except (OSError, pa.ArrowException) as error:
            if getattr(error, "errno", None) is not None:  # the disk or the network failed, not the contents
                raise
            self._damage = " ".join(str(error).split())


@contextlib.contextmanager
def _opened(path: str) -> Iterator[pq.ParquetFile]:
    try:
        if is_url(path):
            files, root = file_system(path)
            with telling(path, "read as Parquet"), files.open(root, "rb") as file, open_parquet(file) as table:
                yield table
        else:
            with pq.ParquetFile(path) as table:
                yield table
    except (OSError, pa.ArrowException) as error:
        msg = f"{path} cannot be read as Parquet: {error}"
        raise MapError(msg) from error


def content_at(column: pa.ChunkedArray, place: int, facts: InputFacts, folder: str) -> str | bytes:
    """A value of a column as the path of a file, or the bytes of one.

    Args:
        column: the column.
        place: the row in it.
        facts: the input that the value is for.
        folder: the folder that relative paths start from; empty to leave them unchanged.

    Raises:
        ValueError: the value cannot be an input; the message describes it.
    """
    value = column[place]
    if isinstance(value, pa.StructScalar) and {"bytes", "path"} <= set(value.type.names):  # how datasets store pictures
        value = value["bytes"] if value["bytes"].is_valid else value["path"]
    if isinstance(value, pa.DictionaryScalar):  # how pandas stores categories
        value = value.value
    if not value.is_valid:
        msg = f"the column {facts.name} has no value"
        raise ValueError(msg)
    kind = value.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        path = str(value.as_py())
        return path if not folder or is_url(path) or path.startswith("/") else f"{folder}/{path}"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return bytes(value.as_py())
    return npy(_array(value, facts), facts)


def _array(value: pa.Scalar, facts: InputFacts) -> np.ndarray[Any, Any]:
    if isinstance(value.type, pa.FixedShapeTensorType):
        return np.asarray(value.to_numpy())
    if isinstance(value.type, pa.BaseExtensionType):  # such as Ray's tensors
        value = value.as_py()
        return np.asarray(value)
    numbers = value.type
    while pa.types.is_list(numbers) or pa.types.is_large_list(numbers) or pa.types.is_fixed_size_list(numbers):
        numbers = numbers.value_type
    listed = value.as_py()
    if isinstance(listed, list) and _has_gaps(listed):
        msg = f"the column {facts.name} holds a list with missing values: {_EXPECTED}"
        raise ValueError(msg)
    try:
        dtype = np.dtype(numbers.to_pandas_dtype())
        return _numbers(listed, dtype)
    except (ValueError, TypeError, NotImplementedError) as error:
        msg = f"the column {facts.name} holds {value.type}: {_EXPECTED}"
        raise ValueError(msg) from error


def _numbers(listed: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype.hasobject:
        raise TypeError
    return np.array(listed, dtype=dtype)


def _has_gaps(listed: list[Any]) -> bool:
    return any(_has_gaps(one) if isinstance(one, list) else one is None for one in listed)


def npy(array: np.ndarray[Any, Any], facts: InputFacts) -> bytes:
    """An array as the bytes of an `.npy` file, with the row dimension added if the input has one that it lacks."""
    if array.ndim == len(facts.dims) - 1:
        array = array[None]
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array, order="C"), allow_pickle=False)
    return file.getvalue()
