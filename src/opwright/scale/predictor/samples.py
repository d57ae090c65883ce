"""The samples of a PyTorch Dataset, split into the model's inputs and the values to collate with its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from opwright.errors import MapError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Samples:
    """The samples of one batch.

    Args:
        samples: each a value or a dict, or a tuple with one of these as its first element.
        inputs: the names of the inputs of the model.

    Attributes:
        rows: the values and dicts.
        other_names: the other keys of the dicts.

    Raises:
        MapError: only some samples are tuples, or one is empty.
    """

    def __init__(self, samples: Sequence[Any], inputs: Sequence[str]) -> None:
        self._are_tuples = any(isinstance(sample, tuple) for sample in samples)
        if self._are_tuples and not all(isinstance(sample, tuple) and sample for sample in samples):
            msg = "some samples of the batch are tuples and some are not, or one is empty: expected all of one form"
            raise MapError(msg)
        self.rows = [sample[0] for sample in samples] if self._are_tuples else list(samples)
        self._rest = [sample[1:] for sample in samples] if self._are_tuples else []
        first = self.rows[0] if self.rows else None
        names = list(first) if isinstance(first, Mapping) else []
        is_lone = len(names) == len(inputs) == 1
        self.other_names = [] if is_lone else [name for name in names if name not in inputs]

    def collated(self, states: Mapping[str, list[Any]], outputs: Mapping[str, np.ndarray[Any, Any]]) -> Any:
        """The batch that the DataLoader yields.

        Args:
            states: the status columns of the rows.
            outputs: an array for each output; an object array if the sizes of rows differ.
        """
        from torch.utils.data import default_collate

        others: dict[str, Any] = {}
        if self.other_names:
            others = default_collate([{name: row[name] for name in self.other_names} for row in self.rows])
        found = {**others, **states, **{name: _tensors(array) for name, array in outputs.items()}}
        return (found, *default_collate(self._rest)) if self._are_tuples else found


def _tensors(array: np.ndarray[Any, Any]) -> Any:
    import torch

    if array.dtype == object:
        return [None if one is None else torch.from_numpy(np.asarray(one)) for one in array]
    return torch.from_numpy(array)
