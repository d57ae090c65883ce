"""Sample calls of an operator: what its author claims to work, made so that a check can vary them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opwright.errors import SpecError, ToolchainError

if TYPE_CHECKING:
    import torch
    from torch import Tensor


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
        device: where the tensors lie.
        sizes: sizes to give in place of those that `size` is asked for, by the order of asking.
        literals: sizes to use in place of those that are written down, wherever they occur in a shape.

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
    ) -> None:
        import torch  # noqa: PLC0415  describing operators must not cost the import of torch

        self._torch = torch
        # On the CPU in any case: the same numbers for every device.
        self._generator = torch.Generator().manual_seed(seed)
        self._dtype = dtype or torch.float32
        self._device = device
        self._sizes = dict(sizes or {})
        self._literals = dict(literals or {})
        self.sizes_asked: list[int] = []
        self.literals_seen: list[int] = []

    def size(self, default: int) -> int:
        """A size that a check may vary. Whatever is computed from it varies with it."""
        asked = len(self.sizes_asked)
        self.sizes_asked.append(default)
        return self._sizes.get(asked, default)

    def randn(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Normally distributed numbers."""
        drawn = self._torch.randn(self._shape(shape), generator=self._generator, dtype=self._torch.float64)
        return drawn.to(self._device, dtype or self._dtype)

    def rand(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Numbers from [0, 1)."""
        drawn = self._torch.rand(self._shape(shape), generator=self._generator, dtype=self._torch.float64)
        return drawn.to(self._device, dtype or self._dtype)

    def randint(self, low: int, high: int, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Whole numbers from [low, high); int64 unless said."""
        drawn = self._torch.randint(low, high, self._shape(shape), generator=self._generator)
        return drawn.to(self._device, dtype or self._torch.int64)

    def photograph(self, name: str) -> Tensor:
        """A photograph that comes with scikit-image, such as "astronaut" or "camera": (H, W) or (H, W, C), uint8.

        Raises:
            ToolchainError: scikit-image is not installed, or has no such picture on this machine.
        """
        try:
            from skimage import data  # noqa: PLC0415  wanted by samples with photographs alone
        except ImportError as error:
            msg = f"the photograph {name!r} comes with scikit-image, which is not installed: install scikit-image"
            raise ToolchainError(msg) from error
        try:
            pixels = getattr(data, name)()
        except (AttributeError, OSError) as error:
            msg = f"scikit-image has no photograph {name!r} on this machine; astronaut, camera and coffee come with it"
            raise ToolchainError(msg) from error
        return self._torch.from_numpy(pixels.copy()).to(self._device)

    def call(self, *args: Any, **kwargs: Any) -> Sample:  # noqa: ANN401  whatever the operator takes
        """A call with keyword arguments; without any, a tuple says the same."""
        return Sample(args, kwargs)

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        self.literals_seen += [size for size in shape if size not in self.literals_seen]
        return tuple(self._literals.get(size, size) for size in shape)


SampleFunction = Callable[[Make], Iterator[Any]]


def drawn(function: SampleFunction, make: Make, op: str) -> Iterator[Sample]:
    """The samples that `function` makes with `make`.

    Raises:
        SpecError: it is no generator of calls.
    """
    made = function(make)
    if not isinstance(made, Iterator):
        msg = f"the samples of {op} must be a generator: write `yield make.randn(16, 33), 2.5` for each call"
        raise SpecError(msg)
    for sample in made:
        if isinstance(sample, Sample):
            yield sample
        else:
            yield Sample(sample if isinstance(sample, tuple) else (sample,))
