"""The sizes at which an operator is timed, and the floors of its times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from opwright.errors import SpecError
from opwright.spec.samples import Make, Sample, SampleFunction, as_sample
from opwright.spec.schema import require_same_parameters

FloorDirection = Literal["forward", "backward"]


@dataclass(frozen=True)
class Size:
    """One size at which an operator is timed.

    Attributes:
        label: its label in reports.
        call: the arguments of the call.
    """

    label: str
    call: Sample


@dataclass(frozen=True)
class Floor:
    """The work that no implementation of an operator can avoid.

    Attributes:
        what: its description.
        function: does only that work; accepts the operator's arguments.
    """

    what: str
    function: Callable[..., Any]


def draw_sizes(function: SampleFunction, make: Make, op: str) -> Iterator[Size]:
    """The sizes that the sweep `function` of the operator `op` yields with `make`.

    Raises:
        SpecError: it is not a generator of labels and calls, or yields a label twice.
    """
    made = function(make)
    if not isinstance(made, Iterator):
        msg = f"the sweep of {op} must be a generator: {_EXAMPLE}"
        raise SpecError(msg)
    labels: set[str] = set()
    for given in made:
        match given:
            case (str(label), (Sample() | tuple()) as call):
                pass
            case _:
                msg = f"the sweep of {op} must yield a label and a call: {_EXAMPLE}"
                raise SpecError(msg)
        if label in labels:
            msg = f"the sweep of {op} has two sizes {label!r}: give each a unique label"
            raise SpecError(msg)
        labels.add(label)
        yield Size(label, as_sample(call))


_EXAMPLE = 'write `yield "1024 x 1024", (make.randn(1024, 1024), 2.5)` for each size'


def check_floor(qualified_name: str, what: object, direction: str) -> None:
    """Check the description and the direction of a floor.

    Raises:
        SpecError: the description is empty, or the direction is unknown.
    """
    if not isinstance(what, str) or not what:
        name = qualified_name.rpartition(":")[2]
        msg = f'the floor of {qualified_name} has no description: write @{name}.floor("the bare GEMMs")'
        raise SpecError(msg)
    if direction not in get_args(FloorDirection):
        known = " or ".join(map(repr, get_args(FloorDirection)))
        msg = f"the floor {what!r} of {qualified_name} has direction {direction!r}: expected {known}"
        raise SpecError(msg)


def make_floor(qualified_name: str, reference: Callable[..., Any], what: str, function: Callable[..., Any]) -> Floor:
    """The floor that `Op.floor` decorates.

    Raises:
        SpecError: its parameters differ from the operator's.
    """
    require_same_parameters(f"the floor {what!r} of {qualified_name}", function, reference)
    return Floor(what, function)
