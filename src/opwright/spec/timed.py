"""The part of an operator that describes its timing: the sizes, the gradients and the floors."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, TypeVar, overload

from opwright.errors import SpecError
from opwright.spec.sweep import Floor, FloorDirection, Size, check_floor, draw_sizes, make_floor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opwright.spec.samples import Make, Sample, SampleFunction

F = TypeVar("F", bound="Callable[..., Any]")


class TimedOp(abc.ABC):
    """The part of an operator that `opwright bench` uses.

    Attributes:
        reference: the plain PyTorch function that specifies what the operator computes.
        floors: the author's floors (the work that no implementation can avoid), by direction.
    """

    reference: Callable[..., Any]

    def __init__(self) -> None:
        self.floors: dict[FloorDirection, Floor] = {}
        self._sweep: SampleFunction | None = None
        self._swept_gradients: tuple[str, ...] | None = None

    @property
    @abc.abstractmethod
    def qualified_name(self) -> str:
        """`namespace::name`, as graphs and the dispatcher write it."""

    @property
    @abc.abstractmethod
    def differentiable(self) -> tuple[str, ...]:
        """The names of the arguments that have a gradient if they are floating-point."""

    @abc.abstractmethod
    def draw(self, make: Make) -> Iterator[Sample]:
        """The sample calls, made with `make`."""

    @overload
    def sweep(self, function: SampleFunction, /) -> SampleFunction: ...
    @overload
    def sweep(self, /, *, gradients: Sequence[str]) -> Callable[[SampleFunction], SampleFunction]: ...
    def sweep(
        self, function: SampleFunction | None = None, /, *, gradients: Sequence[str] | None = None
    ) -> SampleFunction | Callable[[SampleFunction], SampleFunction]:
        """Choose the sizes at which `opwright bench` times the operator: decorates a generator of labels and calls.

        Args:
            function: accepts a `Make`, and yields a label and a call (in the form of a sample) for each size.
            gradients: the names of the arguments whose gradients are timed; by default all differentiable ones.

        Example:
            @scale.sweep
            def _(make):
                for size in (2**10, 2**20):
                    yield f"{size} elements", (make.randn(size), 2.5)
        """

        def keep(function: SampleFunction) -> SampleFunction:
            self._sweep = function
            self._swept_gradients = None if gradients is None else tuple(gradients)
            return function

        return keep if function is None else keep(function)

    def floor(self, what: str, /, *, direction: FloorDirection = "forward") -> Callable[[F], F]:
        """Set the floor: decorates a function with the operator's parameters that does only the unavoidable work.

        By default, the floor is a copy of the same number of bytes as the arguments and results have.

        Args:
            what: a description, such as "the bare GEMMs".
            direction: whether it is the floor of the call or of its gradient.

        Raises:
            SpecError: the description is empty, the direction is unknown, or the function has different parameters.
        """
        check_floor(self.qualified_name, what, direction)

        def keep(function: F) -> F:
            self.floors[direction] = make_floor(self.qualified_name, self.reference, what, function)
            return function

        return keep

    @property
    def has_sweep(self) -> bool:
        """Whether it has a sweep."""
        return self._sweep is not None

    def sizes(self, make: Make) -> Iterator[Size]:
        """The sizes at which it is timed, made with `make`: those of its sweep, or its samples without one.

        Raises:
            SpecError: it has neither, or they are not valid.
        """
        if self._sweep is None:
            return (Size(f"sample {number}", sample) for number, sample in enumerate(self.draw(make), 1))
        return draw_sizes(self._sweep, make, self.qualified_name)

    @property
    def timed_gradients(self) -> tuple[str, ...]:
        """The names of the arguments whose gradients are timed.

        Raises:
            SpecError: the sweep names one that has no gradient.
        """
        if self._swept_gradients is None:
            return self.differentiable
        for name in self._swept_gradients:
            if name not in self.differentiable:
                msg = (
                    f"the sweep of {self.qualified_name} times the gradient of {name!r}, which has none: expected "
                    f"some of {', '.join(self.differentiable) or 'none'}"
                )
                raise SpecError(msg)
        return self._swept_gradients
