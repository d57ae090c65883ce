"""Sample calls of an operator: what its author claims to work, made so that a check can vary them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opwright.errors import SpecError, ToolchainError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# Of a larger tensor so many numbers are drawn, and then repeated: to draw them all would take minutes, and eight bytes
# each. A prime, so that an index which was cut to 32 bits meets other numbers.
_BLOCK = 2**24 - 3


@dataclass(frozen=True)
class Sample:
    """The arguments of one call."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


class Make:
    """Makes the tensors of samples. A check hands out variants that make other dtypes and sizes.

    Args:
        seed: what the random numbers are made from.
        dtype: the dtype of floating tensors whose author names none; float32 by default.
        device: where the tensors lie; on `meta` they have shapes and no numbers.
        sizes: sizes to give in place of those that `size` is asked for, by the order of asking.
        literals: sizes to use in place of those that are written down, wherever they occur in a shape.
        most_elements: a tensor with more is refused; any number by default.

    Attributes:
        sizes_asked: the default of each `size` that was asked for so far.
        literals_seen: each number that occurred in a shape so far, in order.
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
        # On the CPU in any case: the same numbers for every device.
        self._generator = torch.Generator().manual_seed(seed)
        self._dtype = dtype or torch.float32
        self._device = device
        self._sizes = dict(sizes or {})
        self._literals = dict(literals or {})
        self._most_elements = most_elements
        self.sizes_asked: list[int] = []
        self.literals_seen: list[int] = []

    def size(self, default: int) -> int:
        """A size that a check may vary. Whatever is computed from it varies with it."""
        asked = len(self.sizes_asked)
        self.sizes_asked.append(default)
        return self._sizes.get(asked, default)

    def randn(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Normally distributed numbers."""
        return self._made(
            shape,
            dtype or self._dtype,
            lambda shape: self._torch.randn(shape, generator=self._generator, dtype=self._torch.float64),
        )

    def rand(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Numbers from [0, 1)."""
        return self._made(
            shape,
            dtype or self._dtype,
            lambda shape: self._torch.rand(shape, generator=self._generator, dtype=self._torch.float64),
        )

    def randint(self, low: int, high: int, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Whole numbers from [low, high); int64 unless said."""
        return self._made(
            shape,
            dtype or self._torch.int64,
            lambda shape: self._torch.randint(low, high, shape, generator=self._generator),
        )

    def photograph(self, name: str) -> Tensor:
        """A photograph that comes with scikit-image, such as "astronaut" or "camera": (H, W) or (H, W, C), uint8.

        Raises:
            ToolchainError: scikit-image is not installed, or has no such picture on this machine.
        """
        try:
            from skimage import data
        except ImportError as error:
            msg = f"the photograph {name!r} comes with scikit-image, which is not installed: install scikit-image"
            raise ToolchainError(msg) from error
        try:
            pixels = getattr(data, name)()
        except (AttributeError, OSError) as error:
            msg = f"scikit-image has no photograph {name!r} on this machine; astronaut, camera and coffee come with it"
            raise ToolchainError(msg) from error
        return self._torch.from_numpy(pixels.copy()).to(self._device)

    def call(self, *args: Any, **kwargs: Any) -> Sample:
        """A call with keyword arguments; without any, a tuple says the same."""
        return Sample(args, kwargs)

    def _made(self, written: tuple[int, ...], dtype: torch.dtype, draw: Callable[[tuple[int, ...]], Tensor]) -> Tensor:
        self.literals_seen += [size for size in written if size not in self.literals_seen]
        shape = tuple(self._literals.get(size, size) for size in written)
        count = math.prod(shape)
        if self._most_elements is not None and count > self._most_elements:
            msg = f"a tensor of shape {shape} has more than {self._most_elements} elements"
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
    """The samples that `function` makes with `make`.

    Raises:
        SpecError: it is no generator of calls.
    """
    made = function(make)
    if not isinstance(made, Iterator):
        msg = f"the samples of {op} must be a generator: write `yield make.randn(16, 33), 2.5` for each call"
        raise SpecError(msg)
    yield from map(as_sample, made)


def as_sample(given: Any) -> Sample:
    """A call as an author yields it: a `Sample`, a tuple of arguments, or the one argument that there is."""
    if isinstance(given, Sample):
        return given
    return Sample(given if isinstance(given, tuple) else (given,))
