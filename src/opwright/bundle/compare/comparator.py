"""Runs the goldens again after each transform of a model, and refuses a transform that changes results."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from opwright.bundle.compare.outputs import flat
from opwright.bundle.compare.tolerance import difference, figure, largest_difference, why_infinite
from opwright.errors import BundleError
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from opwright.bundle.compare.goldens import Golden
    from opwright.bundle.progress import ShipProgress


@dataclass
class Judge:
    """What a model is compared with, and what was found.

    Attributes:
        goldens: the calls.
        tolerance: how far results may lie from them.
        progress: where steps are shown.
        truth: what the goldens' outputs come from.
        by_output: the largest difference of each output after each transform, by the transform's name.
        notes: what the user should know.
    """

    goldens: Sequence[Golden]
    tolerance: float
    progress: ShipProgress
    truth: str = "eager PyTorch"
    by_output: dict[str, list[float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def differences(self) -> dict[str, float]:
        """The largest difference of all outputs after each transform, by its name."""
        return {transform: max(found, default=0.0) for transform, found in self.by_output.items()}

    def step(self, what: str) -> None:
        """Say what is being done."""
        self.progress.step(what)

    def note(self, text: str) -> None:
        """Keep something that the user should know."""
        self.notes.append(text)

    def examine(self, transform: str, model: Callable[..., Any], *, runs: int = 1, advice: str = "") -> None:
        """Run the goldens through what `transform` made.

        Args:
            transform: its name.
            model: what it made.
            runs: how often each call is made: an engine may rewrite a model after it has watched some calls.
            advice: what to do where the results are others.

        Raises:
            BundleError: a result lies too far from its golden.
        """
        self.progress.step(f"{transform}: compared with {self.truth}")
        largest = [0.0] * len(self.goldens[0].outputs)
        for golden in self.goldens:
            for _ in range(runs):
                outputs = self._run(transform, model, golden, advice)
                found = largest_difference(outputs, golden.outputs)
                if not found <= self.tolerance:
                    told = f"by {figure(found)} of the largest magnitude, where {self.tolerance:g} is allowed"
                    why = why_infinite(outputs, golden.outputs) if math.isinf(found) else told
                    msg = f"{transform} changes the results ({golden.what}): {why}. {self._advice(found, advice)}"
                    raise BundleError(msg)
                pairs = zip(largest, outputs, golden.outputs, strict=True)
                largest = [max(before, difference(*pair)) for before, *pair in pairs]
        self.by_output[transform] = largest

    @staticmethod
    def _advice(found: float, advice: str) -> str:
        if math.isinf(found):
            return advice or "Nothing was written"
        if advice:
            return f"{advice}; or say with --tolerance how much is right for this model"
        return "Nothing was written; --tolerance says how much is right for this model"

    @staticmethod
    def _run(transform: str, model: Callable[..., Any], golden: Golden, advice: str) -> Sequence[Tensor]:
        try:
            with torch.no_grad():
                return flat(model(*golden.fresh()))
        except BundleError:
            raise
        except Exception as error:
            msg = f"after {transform} the model does not run ({golden.what}): {first_line(error)}. {advice}".rstrip()
            raise BundleError(msg) from error
