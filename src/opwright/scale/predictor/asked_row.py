"""The row that a host is asked, from values that have the names of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.scale.rows import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from opwright.scale.facts.bundle_facts import InputFacts
    from opwright.scale.rows import Row


def columns_of(inputs: Sequence[InputFacts], names: Collection[str]) -> dict[str, str]:
    """The column of each input, by the input's name: the one of its name; or for a lone input, a lone column.

    An input without a column is left out.
    """
    if len(inputs) == len(names) == 1:
        return {inputs[0].name: next(iter(names))}
    return {one.name: one.name for one in inputs if one.name in names}


def asked_row(
    inputs: Sequence[InputFacts], columns: dict[str, str], content: Callable[[str, InputFacts], str | bytes]
) -> Row | Failure:
    """What the host is asked, or why it cannot be asked.

    Args:
        inputs: of the model.
        columns: the column of each input, as `columns_of` has them.
        content: gives the value in a column as the path of a file, or the bytes that one would hold; it raises
            ValueError if it is neither.
    """
    row: dict[str, str | bytes] = {}
    try:
        for one in inputs:
            column = columns[one.name]
            value = content(column, one)
            # An `.npz` has names of its own, so that it has none unless somebody gives it one.
            is_nameless = column != one.name and isinstance(value, str) and value.endswith(".npz")
            row["" if is_nameless else one.name] = value
    except ValueError as error:
        return Failure("input_unreadable", str(error))
    return row
