"""Compares the results of each transform of a model with the goldens, and rejects a transform that changes them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from opwright.bundle.compare.deviation import deviations, figure, why_infinite
from opwright.bundle.compare.outputs import flat
from opwright.errors import BundleError
from opwright.spec.difference import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from opwright.bundle.compare.golden import Golden


@dataclass
class Comparator:
    """Runs the goldens through transformed models, and records how much the outputs differ.

    Attributes:
        goldens: the calls to compare.
        tolerance: the largest allowed deviation from the goldens.
        truth: what computed the outputs of the goldens, for messages.
        on_compare: called with a line of text before each comparison.
        by_output: the largest difference of each output after each transform, keyed by the transform's name.
    """

    goldens: Sequence[Golden]
    tolerance: float
    truth: str = "eager PyTorch"
    on_compare: Callable[[str], object] | None = None
    by_output: dict[str, list[float]] = field(default_factory=dict)

    @property
    def differences(self) -> dict[str, float]:
        """The largest difference of any output after each transform, keyed by the transform's name."""
        return {transform: max(found, default=0.0) for transform, found in self.by_output.items()}

    def compare(self, transform: str, model: Callable[..., Any], *, runs: int = 1, advice: str = "") -> None:
        """Run the goldens through the result of `transform`.

        Args:
            transform: its name.
            model: the transformed model.
            runs: how often to make each call: an engine may rewrite a model after it has profiled some calls.
            advice: what to do if the results differ.

        Raises:
            BundleError: a result deviates too much from its golden.
        """
        if self.on_compare is not None:
            self.on_compare(f"{transform}: compared with {self.truth}")
        largest = [0.0] * len(self.goldens[0].outputs)
        for golden in self.goldens:
            for _ in range(runs):
                outputs = self._run(transform, model, golden, advice)
                found = deviations(outputs, golden)
                farthest = max(found, default=0.0)
                if not farthest <= self.tolerance:
                    far = f"an element differs by {figure(farthest)} of its scale (at most {self.tolerance:g} allowed)"
                    why = why_infinite(outputs, golden) if math.isinf(farthest) else far
                    msg = f"{transform} changes the results ({golden.what}): {why}. {self._advice(farthest, advice)}"
                    raise BundleError(msg)
                largest = [max(pair) for pair in zip(largest, found, strict=True)]
        self.by_output[transform] = largest

    def forget(self, transform: str) -> None:
        """Discard the differences of a transform whose result is not used."""
        del self.by_output[transform]

    @staticmethod
    def _advice(found: float, advice: str) -> str:
        if math.isinf(found):
            return advice or "Nothing was written"
        if advice:
            return f"{advice}; or use --tolerance to allow a larger difference"
        return "Nothing was written; use --tolerance to allow a larger difference"

    @staticmethod
    def _run(transform: str, model: Callable[..., Any], golden: Golden, advice: str) -> Sequence[Tensor]:
        try:
            with torch.no_grad():
                return flat(model(*golden.fresh()))
        except BundleError:
            raise
        except Exception as error:
            msg = f"the model fails after {transform} ({golden.what}): {first_line(error)}. {advice}".rstrip()
            raise BundleError(msg) from error
