"""The tables that a predictor accepts and returns: dicts of arrays, pandas DataFrames, Arrow tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from opwright.errors import MapError
from opwright.scale.inputs.tables import content_at
from opwright.scale.predictor.outputs import ERROR, STATUS, statuses
from opwright.scale.predictor.values import content_of

if TYPE_CHECKING:
    from opwright.scale.facts.bundle_facts import InputFacts
    from opwright.scale.predictor.outputs import Outputs
    from opwright.scale.rows import Answer


class Batch(Protocol):
    """A batch of rows."""

    @property
    def names(self) -> Sequence[str]:
        """The names of its columns."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def content(self, row: int, name: str, facts: InputFacts) -> str | bytes:
        """A value as the path of a file, or the bytes of one.

        Raises:
            ValueError: the value cannot be an input; the message describes it.
        """

    def extended(self, names: Sequence[str], results: Outputs, answers: Sequence[Answer], *, with_status: bool) -> Any:
        """A table of the same type, with columns for the outputs and, if requested, for the status before them."""


class ArraysBatch:
    """A dict of arrays (B, ...), or of lists of B values.

    Args:
        columns: the columns by name.

    Raises:
        MapError: their lengths differ.
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        lengths = {str(name): len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            msg = f"the columns of the batch have different numbers of rows: {counts}"
            raise MapError(msg)
        self._columns = columns
        self.names = list(columns)
        self.rows = next(iter(lengths.values()), 0)

    def content(self, row: int, name: str, facts: InputFacts) -> str | bytes:
        """See Batch."""
        return content_of(self._columns[name][row], facts)

    def extended(
        self, names: Sequence[str], results: Outputs, answers: Sequence[Answer], *, with_status: bool
    ) -> dict[str, Any]:
        """See Batch."""
        added: dict[str, Any] = {}
        if with_status:
            added = {
                name: np.array(values, dtype=object)
                for name, values in zip((STATUS, ERROR), statuses(answers), strict=True)
            }
        return {**self._columns, **added, **dict(zip(names, results.arrays(answers), strict=True))}


class FrameBatch:
    """A pandas.DataFrame, in which outputs that are arrays become objects.

    Args:
        frame: the rows.
        are_nested: whether to convert arrays of two or more dimensions to lists of arrays, as Spark expects.
    """

    def __init__(self, frame: Any, *, are_nested: bool = False) -> None:
        self._frame = frame
        self._are_nested = are_nested
        # Iterating over a pandas column returns Python numbers, which have lost their dtype.
        self._values: dict[str, Sequence[Any]] = {}
        self.names = list(frame.columns)
        self.rows = len(frame)

    def content(self, row: int, name: str, facts: InputFacts) -> str | bytes:
        """See Batch."""
        if name not in self._values:
            series = self._frame[name]
            self._values[name] = series.to_numpy() if isinstance(series.dtype, np.dtype) else list(series)
        return content_of(self._values[name][row], facts)

    def extended(self, names: Sequence[str], results: Outputs, answers: Sequence[Answer], *, with_status: bool) -> Any:
        """See Batch."""
        import pandas as pd

        index = self._frame.index
        added: dict[str, Any] = {}
        if with_status:
            added = dict(zip((STATUS, ERROR), statuses(answers), strict=True))
        for name, array in zip(names, results.arrays(answers), strict=True):
            if array.dtype != object and array.ndim == 1:
                added[name] = array
                continue
            values: list[Any] = [None if answer.failure else one for one, answer in zip(array, answers, strict=True)]
            added[name] = [_nested(one) for one in values] if self._are_nested else values
        columns = {
            name: values if isinstance(values, np.ndarray) else pd.Series(values, index=index, dtype=object)
            for name, values in added.items()
        }
        return self._frame.assign(**columns)


class TableBatch:
    """A pyarrow.Table.

    Args:
        table: the rows.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.names = table.column_names
        self.rows = table.num_rows

    def content(self, row: int, name: str, facts: InputFacts) -> str | bytes:
        """See Batch."""
        return content_at(self._table.column(name), row, facts, "")

    def extended(
        self, names: Sequence[str], results: Outputs, answers: Sequence[Answer], *, with_status: bool
    ) -> pa.Table:
        """See Batch."""
        table = self._table
        if with_status:
            for name, values in zip((STATUS, ERROR), statuses(answers), strict=True):
                table = table.append_column(name, pa.array(values, pa.string()))
        for name, column in zip(names, results.arrow(answers), strict=True):
            table = table.append_column(name, column)
        return table


def batch_of(given: object) -> Batch:
    """Wrap a table of any supported type.

    Raises:
        MapError: the type is not supported.
    """
    if isinstance(given, pa.Table):
        return TableBatch(given)
    # Without pandas there are no DataFrames.
    if (pandas := sys.modules.get("pandas")) is not None and isinstance(given, pandas.DataFrame):
        return FrameBatch(given)
    if isinstance(given, Mapping):
        return ArraysBatch(given)
    msg = (
        f"the batch is of type {type(given).__name__}: expected a dict of arrays, a pandas.DataFrame or a "
        "pyarrow.Table; pass a list of rows to `rows`"
    )
    raise MapError(msg)


def _nested(array: np.ndarray[Any, Any] | None) -> Any:
    return array if array is None or array.ndim < 2 else [_nested(one) for one in array]
