"""Sample calls of an operator: calls that its author claims to work, built so that a check can vary them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwright.errors import SpecError, ToolchainError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# A larger tensor repeats a block of this many random numbers, because drawing all of them would take minutes and eight
# bytes each. The number is prime, so that an index that overflowed 32 bits reads different numbers.
_BLOCK = 2**24 - 3


@dataclass(frozen=True)
class Sample:
    """The arguments of one call."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


class Make:
    """Creates the tensors of samples. A check passes variants that create other dtypes and sizes.

    Args:
        seed: the seed of the random numbers.
        dtype: the dtype of floating-point tensors for which the author specifies none; float32 by default.
        device: the device of the tensors; `meta` for shapes without data.
        sizes: replacements for the sizes that `size` returns, by the index of the call.
        literals: replacements for literal sizes, wherever they occur in a shape.
        most_elements: the maximum number of elements of a tensor; no limit by default.

    Attributes:
        sizes_asked: the default of each call of `size` so far.
        literals_seen: the distinct sizes that occurred in shapes so far, in order.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        dtype: torch.dtype | None = None,
        device: str = "cpu",
        sizes: Mapping[int, int] | None = None,
        literals: Mapping[int, int] | None = None,
        most_elements: int | None = None,
    ) -> None:
        import torch

        self._torch = torch
        # Always on the CPU, so that every device gets the same numbers.
        self._generator = torch.Generator().manual_seed(seed)
        self._dtype = dtype or torch.float32
        self._device = device
        self._sizes = dict(sizes or {})
        self._literals = dict(literals or {})
        self._most_elements = most_elements
        self.sizes_asked: list[int] = []
        self.literals_seen: list[int] = []

    def size(self, default: int) -> int:
        """A size that a check may vary. Sizes computed from it vary with it."""
        asked = len(self.sizes_asked)
        self.sizes_asked.append(default)
        return self._sizes.get(asked, default)

    def randn(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Normally distributed numbers (of complex dtypes, both parts); `dtype` defaults to the dtype of the check."""
        asked = dtype or self._dtype

        def draw(shape: tuple[int, ...]) -> Tensor:
            real: Tensor = self._torch.randn(shape, generator=self._generator, dtype=self._torch.float64)
            if not asked.is_complex:
                return real
            imaginary = self._torch.randn(shape, generator=self._generator, dtype=self._torch.float64)
            made: Tensor = self._torch.complex(real, imaginary)
            return made

        return self._make(shape, asked, draw)

    def rand(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Uniformly distributed numbers in [0, 1); `dtype` defaults to the dtype of the check."""
        return self._make(
            shape,
            dtype or self._dtype,
            lambda shape: self._torch.rand(shape, generator=self._generator, dtype=self._torch.float64),
        )

    def randint(self, low: int, high: int, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Integers in [low, high), int64 by default."""
        return self._make(
            shape,
            dtype or self._torch.int64,
            lambda shape: self._torch.randint(low, high, shape, generator=self._generator),
        )

    def photograph(self, name: str) -> Tensor:
        """A photograph from scikit-image, such as "astronaut" or "camera": (H, W) or (H, W, C), uint8.

        Raises:
            ToolchainError: scikit-image is not installed, or has no such photograph on this machine.
        """
        try:
            from skimage import data
        except ImportError as error:
            msg = f"the photograph {name!r} is part of scikit-image, which is not installed: install scikit-image"
            raise ToolchainError(msg) from error
        try:
            pixels = getattr(data, name)()
        except (AttributeError, OSError) as error:
            msg = f"scikit-image has no photograph {name!r} on this machine: use astronaut, camera or coffee"
            raise ToolchainError(msg) from error
        return self._torch.from_numpy(pixels.copy()).to(self._device)

    def recorded(self, path: str | Path) -> Iterator[Sample]:
        """The calls that `opwright.record` wrote to `path`, which is relative to the folder of the op.py.

        Tensors that were float32 get the dtype of the check; others keep their dtype. Sizes are not varied.

        Raises:
            SpecError: the file cannot be read, or does not contain recorded calls.

        Example:
            @roi_align.samples
            def _(make):
                yield from make.recorded("recorded/roi_align.pt")
        """
        from opwright.spec.recorded import recorded_calls

        folder = Path(sys._getframe(1).f_globals.get("__file__") or "").resolve().parent  # noqa: SLF001  as in Library
        calls = recorded_calls(folder / path, self._dtype, self._device)
        return (Sample(args, kwargs) for args, kwargs in calls)

    def call(self, *args: Any, **kwargs: Any) -> Sample:
        """A call with keyword arguments; for a call with only positional arguments, yield a tuple."""
        return Sample(args, kwargs)

    def _make(self, sizes: tuple[int, ...], dtype: torch.dtype, draw: Callable[[tuple[int, ...]], Tensor]) -> Tensor:
        self.literals_seen += [size for size in sizes if size not in self.literals_seen]
        shape = tuple(self._literals.get(size, size) for size in sizes)
        count = math.prod(shape)
        if self._most_elements is not None and count > self._most_elements:
            msg = f"a tensor of shape {shape} has more than {self._most_elements} elements: make it smaller"
            raise SpecError(msg)
        if self._device == "meta":
            return self._torch.empty(shape, dtype=dtype, device="meta")
        if count <= _BLOCK:
            return draw(shape).to(self._device, dtype)
        numbers = draw((_BLOCK,)).to(self._device, dtype)
        made = self._torch.empty(shape, dtype=dtype, device=self._device)
        for part in made.view(-1).split(_BLOCK):
            part.copy_(numbers[: part.numel()])
        return made


SampleFunction = Callable[[Make], Iterator[Any]]


def draw_samples(function: SampleFunction, make: Make, op: str) -> Iterator[Sample]:
    """The samples that the generator `function` yields with `make`.

    Raises:
        SpecError: it is not a generator.
    """
    made = function(make)
    if not isinstance(made, Iterator):
        msg = f"the samples of {op} must be a generator: write `yield make.randn(16, 33), 2.5` for each call"
        raise SpecError(msg)
    yield from map(as_sample, made)


def as_sample(given: Any) -> Sample:
    """The call that an author yielded as a `Sample`, a tuple of arguments or a single argument."""
    if isinstance(given, Sample):
        return given
    return Sample(given if isinstance(given, tuple) else (given,))
