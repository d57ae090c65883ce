"""Builds the row for a host from values that are named after columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.scale.rows import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from opwright.scale.facts.bundle_facts import InputFacts
    from opwright.scale.rows import Row


def columns_of(inputs: Sequence[InputFacts], names: Collection[str]) -> dict[str, str]:
    """The column of each input, keyed by the input's name: the one with its name, or the only one for a single input.

    Inputs without a column are omitted.
    """
    if len(inputs) == len(names) == 1:
        return {inputs[0].name: next(iter(names))}
    return {one.name: one.name for one in inputs if one.name in names}


def asked_row(
    inputs: Sequence[InputFacts], columns: dict[str, str], content: Callable[[str, InputFacts], str | bytes]
) -> Row | Failure:
    """The row for the host, or why there is none.

    Args:
        inputs: the inputs of the model.
        columns: the column of each input, as returned by `columns_of`.
        content: returns the value in a column as the path of a file, or the bytes of one; raises ValueError if it is
            neither.
    """
    row: dict[str, str | bytes] = {}
    try:
        for one in inputs:
            column = columns[one.name]
            value = content(column, one)
            # An `.npz` names its own arrays, so it has no name unless the user gives it one.
            is_nameless = column != one.name and isinstance(value, str) and value.endswith(".npz")
            row["" if is_nameless else one.name] = value
    except ValueError as error:
        return Failure("input_unreadable", str(error))
    return row
