"""The table of a map: one row for each input, with one column for each output."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from opwright.scale.rows import Answer, Array, Failure

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from opwright.scale.facts.bundle_facts import OutputFacts

OK = "ok"
_OWN = (pa.field("id", pa.int64(), nullable=False), pa.field("input", pa.string(), nullable=False))
_OUTCOME = (pa.field("status", pa.string(), nullable=False), pa.field("error", pa.string()))
# Keyed by the dtypes of answers. Arrow has no complex numbers: each becomes two numbers in an extra last dimension.
_TYPES: dict[str, tuple[pa.DataType, int]] = {
    "bool": (pa.uint8(), 1),
    "uint8": (pa.uint8(), 1),
    "int8": (pa.int8(), 1),
    "int16": (pa.int16(), 1),
    "int32": (pa.int32(), 1),
    "int64": (pa.int64(), 1),
    "uint16": (pa.uint16(), 1),
    "uint32": (pa.uint32(), 1),
    "uint64": (pa.uint64(), 1),
    "float16": (pa.float16(), 1),
    "float32": (pa.float32(), 1),
    "float64": (pa.float64(), 1),
    "complex64": (pa.float32(), 2),
    "complex128": (pa.float64(), 2),
}


class Columns:
    """The columns of a map's table.

    The row dimension, which is 1 for one row, is removed. An output with the same sizes for every row becomes a tensor
    column: a list of fixed size for one dimension, and Arrow's `fixed_shape_tensor` over such a list for more. Other
    outputs, and those without elements, become a struct of `shape` and `data`.

    Args:
        outputs: the outputs of the model.
    """

    def __init__(self, outputs: Sequence[OutputFacts]) -> None:
        self._has_row = [output.has_row for output in outputs]
        self.outputs = [_stored(output) for output in outputs]
        taken = {field.name for field in (*_OWN, *_OUTCOME)}
        fields = []
        for output in self.outputs:
            name = free_name(output.name, taken)
            taken.add(name)
            fields.append(pa.field(name, _column_type(output)))
        self.schema = pa.schema([*_OWN, *_OUTCOME, *fields])

    def table(self, first: int, inputs: Sequence[str], answers: Sequence[Answer]) -> pa.Table:
        """Build the rows of consecutive inputs.

        Args:
            first: the id of the first input.
            inputs: the names of the inputs.
            answers: the answer to each input, as returned by `fitted`.
        """
        failures = [answer.failure for answer in answers]
        columns: list[pa.Array] = [
            pa.array(range(first, first + len(inputs)), pa.int64()),
            pa.array(inputs, pa.string()),
            pa.array([OK if failure is None else failure.status for failure in failures], pa.string()),
            pa.array([None if failure is None else failure.message for failure in failures], pa.string()),
        ]
        for place, output in enumerate(self.outputs):
            arrays = [None if answer.failure else answer.outputs[place] for answer in answers]
            columns.append(_column(output, arrays, self.schema.field(len(columns)).type))
        return pa.table(columns, schema=self.schema)

    def fitted(self, answer: Answer) -> Answer:
        """The answer without the row dimension, or a failure if it contains several rows."""
        arrays = []
        for output, has_row, array in zip(self.outputs, self._has_row, answer.outputs, strict=False):
            if has_row and array.shape[:1] != (1,):
                message = (
                    f"the output {output.name} has the shape {array.shape}, for {array.shape[0]} rows: pass each row "
                    "as a separate input"
                )
                return Answer(failure=Failure("output_unwritable", message))
            arrays.append(Array(array.dtype, array.shape[1:], array.data) if has_row else array)
        return Answer(tuple(arrays), answer.failure, answer.seconds)


def free_name(name: str, taken: Container[str]) -> str:
    """The name of an output's column: its own, with `_output` appended as long as it is taken."""
    while name in taken:
        name += "_output"
    return name


def _stored(output: OutputFacts) -> OutputFacts:
    """The output as its column stores it."""
    shape, rank = output.shape, output.rank
    if output.has_row:
        shape, rank = None if shape is None else shape[1:], rank - 1
    # Arrow has no lists of fixed size 0: such an output is stored like one whose sizes differ.
    return replace(output, shape=None if shape and 0 in shape else shape, rank=rank)


def _column_type(output: OutputFacts) -> pa.DataType:
    numbers, parts = _number_type(output.dtype)
    if output.shape is None:
        rank = output.rank + (parts > 1)
        return pa.struct([pa.field("shape", pa.list_(pa.int64(), rank)), pa.field("data", pa.large_list(numbers))])
    shape = (*output.shape, *([parts] if parts > 1 else []))
    if len(shape) == 0:
        return numbers
    if len(shape) == 1:
        return pa.list_(numbers, shape[0])
    return pa.fixed_shape_tensor(numbers, shape)


def _number_type(dtype: str) -> tuple[pa.DataType, int]:
    return _TYPES.get(dtype, _TYPES["float32"])  # bfloat16 and float8 arrive as float32


def _column(output: OutputFacts, arrays: Sequence[Array | None], kind: Any) -> pa.Array:
    numbers, parts = _number_type(output.dtype)
    missing = pa.array([array is None for array in arrays], pa.bool_())
    width = numbers.bit_width // 8
    if output.shape is None:
        return _ragged(arrays, kind, numbers, parts)
    count = math.prod(output.shape) * parts
    blank = bytes(count * width)
    data = b"".join(blank if array is None else array.data for array in arrays)
    flat = pa.Array.from_buffers(numbers, len(arrays) * count, [None, pa.py_buffer(data)])
    if kind == numbers:
        return pa.compute.if_else(missing, pa.scalar(None, numbers), flat)
    is_tensor = isinstance(kind, pa.FixedShapeTensorType)
    storage = kind.storage_type if is_tensor else kind
    listed = pa.FixedSizeListArray.from_arrays(flat, type=storage, mask=missing)
    return pa.ExtensionArray.from_storage(kind, listed) if is_tensor else listed


def _ragged(arrays: Sequence[Array | None], kind: Any, numbers: pa.DataType, parts: int) -> pa.Array:
    width = numbers.bit_width // 8
    missing = pa.array([array is None for array in arrays], pa.bool_())
    offsets = [0]
    for array in arrays:
        offsets.append(offsets[-1] + (0 if array is None else len(array.data) // width))
    data = b"".join(array.data for array in arrays if array is not None)
    flat = pa.Array.from_buffers(numbers, offsets[-1], [None, pa.py_buffer(data)])
    rank = kind.field("shape").type.list_size
    sizes = [[0] * rank if array is None else [*array.shape, *([parts] if parts > 1 else [])] for array in arrays]
    shapes = pa.FixedSizeListArray.from_arrays(pa.array([size for one in sizes for size in one], pa.int64()), rank)
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), flat)
    return pa.StructArray.from_arrays([shapes, lists], fields=list(kind), mask=missing)
