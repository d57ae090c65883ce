"""Compares the sizes that a fake kernel leaves open, because they depend on values, with the real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import SymInt, Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

if TYPE_CHECKING:
    from collections.abc import Iterable

# The code of `fake_mode` in a repro.
FAKE_MODE_CODE = (
    "torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True, static_shapes=True, "
    "shape_env=torch.fx.experimental.symbolic_shapes.ShapeEnv(allow_scalar_outputs=False))"
)


def fake_mode() -> FakeTensorMode:
    """Return a mode in which the sizes of arguments are integers and those of results may depend on values."""
    # Reading a number from a tensor is still an error, as it is by default in torch.compile.
    return FakeTensorMode(static_shapes=True, shape_env=ShapeEnv(allow_scalar_outputs=False))


class OpenSizes:
    """The real values of the sizes that the results of a fake kernel leave open.

    Args:
        pairs: the real and the fake results. The first dimension with an open size determines its value.
    """

    def __init__(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        self._known: dict[Any, int] = {}
        self._bounds: dict[Any, str] = {}
        for real, fake in pairs:
            if isinstance(real, Tensor) and isinstance(fake, Tensor) and real.dim() == fake.dim():
                for size, open_size in zip(real.shape, fake.shape, strict=True):
                    if isinstance(open_size, SymInt) and open_size.node.expr.is_Symbol:
                        symbol = open_size.node.expr
                        self._known.setdefault(symbol, size)
                        bounds = open_size.node.shape_env.bound_sympy(symbol)
                        if not bounds.lower <= self._known[symbol] <= bounds.upper:
                            self._bounds[symbol] = f"{bounds.lower} to {bounds.upper}"

    def agree(self, fake: Iterable[int | SymInt], real: Iterable[int]) -> bool:
        """Return whether the sizes or strides `fake` equal `real`, given the values of the open sizes."""
        return all(map(self._agrees, fake, real))

    def _agrees(self, fake: int | SymInt, real: int) -> bool:
        if not isinstance(fake, SymInt):
            return fake == real
        expression = fake.node.expr
        bounds = fake.node.shape_env.bound_sympy(expression)
        value = expression.subs(self._known)
        return bool(bounds.lower <= real <= bounds.upper) and (not value.is_number or int(value) == real)

    def __str__(self) -> str:
        known = [
            f"{symbol} = {size}" + (f", which the fake kernel allows only from {bounds}" if bounds else "")
            for symbol, size in self._known.items()
            for bounds in [self._bounds.get(symbol, "")]
        ]
        return f", with {', '.join(known)}" if known else ""
