"""What the author of an operator claims: calls that work, calls that raise an error, and calls that are undefined."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

from opwright.errors import SpecError
from opwright.spec.domain import Domain, make_domain
from opwright.spec.samples import Make, Sample, SampleFunction, as_sample, draw_samples
from opwright.spec.timed import TimedOp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

F = TypeVar("F", bound="Callable[..., Any]")


class ClaimedOp(TimedOp):
    """The part of an operator that describes its calls."""

    def __init__(self) -> None:
        super().__init__()
        self._samples: SampleFunction | None = None
        self._dtypes: tuple[torch.dtype, ...] = ()
        self._errors: SampleFunction | None = None
        self._domain: Domain | None = None

    @overload
    def samples(self, function: SampleFunction, /) -> SampleFunction: ...
    @overload
    def samples(self, /, *, dtypes: Sequence[torch.dtype]) -> Callable[[SampleFunction], SampleFunction]: ...
    def samples(
        self, function: SampleFunction | None = None, /, *, dtypes: Sequence[torch.dtype] = ()
    ) -> SampleFunction | Callable[[SampleFunction], SampleFunction]:
        """Claim calls that work: decorates a generator of calls.

        Args:
            function: accepts a `Make`, and yields a tuple of arguments, or `make.call(...)`, for each call.
            dtypes: dtypes that the samples claim, in addition to float32, for floating-point tensors from `make`.

        Example:
            @scale.samples
            def _(make):
                yield make.randn(16, 33), 2.5
        """

        def keep(function: SampleFunction) -> SampleFunction:
            self._samples = function
            self._dtypes = tuple(dtypes)
            return function

        return keep if function is None else keep(function)

    def errors(self, function: SampleFunction, /) -> SampleFunction:
        """Claim calls that raise an error: decorates a generator of messages and calls.

        An operator must always reject what its reference rejects. Use this for errors that the reference does not
        raise, such as one that depends on values, and for the text of a message.

        Args:
            function: accepts a `Make`, and yields part of the error message and the call, for each call.

        Example:
            @inverse.errors
            def _(make):
                yield "is singular", make.call(torch.zeros(3, 3))
        """
        self._errors = function
        return function

    def domain(self, function: F) -> F:
        """State the domain: decorates a function with the operator's parameters that returns whether a call is inside.

        Outside the domain, the operator's behavior is undefined, and `check` and `bench` do not call it. Samples must
        be inside. A call for which the function raises is outside.

        Raises:
            SpecError: the function has different parameters.

        Example:
            @gather_rows.domain
            def _(x, index):  # indices are trusted
                return bool(((index >= 0) & (index < x.shape[0])).all())
        """
        self._domain = make_domain(self.qualified_name, self.reference, function)
        return function

    # -- used by check --------------------------------------------------------------------------------

    @property
    def has_samples(self) -> bool:
        """Whether it has samples: its own, or those of the operator whose gradient it computes."""
        return self._samples is not None

    @property
    def dtypes(self) -> tuple[torch.dtype, ...]:
        """The additional dtypes that its samples claim; the operator must not reject its samples in these dtypes."""
        return self._dtypes

    def draw(self, make: Make) -> Iterator[Sample]:
        """The sample calls, made with `make`.

        Raises:
            SpecError: there are none, or they are not valid.
        """
        if self._samples is None:
            name = self.qualified_name.rpartition(":")[2]
            msg = (
                f"{self.qualified_name} has no samples: add them below it:\n\n"
                f"@{name}.samples\ndef _(make):\n    yield make.randn(16, 33), ..."
            )
            raise SpecError(msg)
        return draw_samples(self._samples, make, self.qualified_name)

    def draw_errors(self, make: Make) -> Iterator[tuple[str, Sample]]:
        """The calls that raise an error, made with `make`, each with part of its message.

        Raises:
            SpecError: they are not valid.
        """
        if self._errors is None:
            return
        made = self._errors(make)
        for given in made if isinstance(made, Iterator) else [made]:
            if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], str):
                msg = (
                    f"the errors of {self.qualified_name} must be a generator of messages and calls: write "
                    '`yield "must be positive", make.call(make.randn(3), -1)` for each call'
                )
                raise SpecError(msg)
            yield given[0], as_sample(given[1])

    @property
    def has_domain(self) -> bool:
        """Whether the operator is undefined for some calls."""
        return self._domain is not None

    @abc.abstractmethod
    def spread(self, bound: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments `bound` as positional and keyword arguments of a call."""

    def why_outside(self, bound: dict[str, Any]) -> str:
        """Why the call with the arguments `bound` is outside the domain; empty if it is inside.

        The author's function may write to the arguments.
        """
        if self._domain is None:
            return ""
        positional, keywords = self.spread(bound)
        return self._domain.why_outside(positional, keywords)
