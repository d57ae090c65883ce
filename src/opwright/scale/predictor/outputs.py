"""Converts the answers to several rows to arrays or columns, one for each output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opwright.scale.results.columns import OK, Columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from opwright.scale.facts.bundle_facts import OutputFacts
    from opwright.scale.rows import Answer, Array

STATUS, ERROR = "status", "error"
_BEFORE_OUTPUTS = 4  # id, input, status and error of a map's table


class Outputs:
    """Builds columns from answers.

    Args:
        outputs: the outputs of the model.

    Attributes:
        names: the names of the output columns, as in a map's table.
    """

    def __init__(self, outputs: Sequence[OutputFacts]) -> None:
        self._columns = Columns(outputs)
        self.names: list[str] = self._columns.schema.names[_BEFORE_OUTPUTS:]

    def of_one_row(self, answer: Answer) -> Answer:
        """The answer without the row dimension, or a failure if it contains several rows."""
        return self._columns.fitted(answer)

    def arrays(self, answers: Sequence[Answer]) -> list[np.ndarray[Any, Any]]:
        """An array for each output: stacked (B, ...), or an object array if the sizes of rows differ.

        A row that failed is NaN, or 0 if the dtype has no NaN; in an object array it is None.

        Args:
            answers: the answers to the rows, as returned by `of_one_row`.
        """
        return [self._array(place, answers) for place in range(len(self._columns.outputs))]

    def arrow(self, answers: Sequence[Answer]) -> list[pa.ChunkedArray]:
        """A column for each output, with the types of a map's table. A row that failed is null.

        Args:
            answers: the answers to the rows, as returned by `of_one_row`.
        """
        table = self._columns.table(0, [""] * len(answers), answers)
        columns: list[pa.ChunkedArray] = table.columns[_BEFORE_OUTPUTS:]
        return columns

    def _array(self, place: int, answers: Sequence[Answer]) -> np.ndarray[Any, Any]:
        output = self._columns.outputs[place]
        found = [None if answer.failure else as_array(answer.outputs[place]) for answer in answers]
        if output.shape is None:
            objects = np.empty(len(found), dtype=object)
            for row, array in enumerate(found):
                objects[row] = array
            return objects
        dtype = _numpy_dtype(output.dtype)
        stacked = np.full((len(found), *output.shape), np.nan if dtype.kind in "fc" else 0, dtype)
        for row, array in enumerate(found):
            if array is not None:
                stacked[row] = array
        return stacked


def as_array(array: Array) -> np.ndarray[Any, Any]:
    """An output of a row as a separate, writable array."""
    return np.frombuffer(bytearray(array.data), _numpy_dtype(array.dtype)).reshape(array.shape)


def statuses(answers: Sequence[Answer]) -> tuple[list[str], list[str | None]]:
    """The status of each row, which is `ok` or the name of a host exit code, and its error message or None."""
    failures = [answer.failure for answer in answers]
    return (
        [OK if failure is None else failure.status for failure in failures],
        [None if failure is None else failure.message for failure in failures],
    )


def _numpy_dtype(name: str) -> np.dtype[Any]:
    # NumPy has neither of these dtypes; hosts return them as float32.
    return np.dtype(np.float32 if name.startswith(("bfloat", "float8")) else name)
