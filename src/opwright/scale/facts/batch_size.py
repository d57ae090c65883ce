"""The number of rows of a bundle that can run together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.errors import MapError

if TYPE_CHECKING:
    from opwright.scale.facts.bundle_facts import BundleFacts

_MOST_ROWS = 65536


def check_batch(facts: BundleFacts, batch: int) -> None:
    """Raise MapError unless `batch` rows of the bundle can run together."""
    if batch < 1:
        msg = f"batch is {batch}: expected at least 1"
        raise MapError(msg)
    if not facts.inputs:
        msg = "the bundle has no inputs: there is nothing to map"
        raise MapError(msg)
    if batch > _MOST_ROWS:
        msg = f"batch is {batch}, but a host runs at most {_MOST_ROWS} inputs together: use a smaller batch"
        raise MapError(msg)
    if facts.most_rows is not None and batch > facts.most_rows:
        msg = f"batch is {batch}, but the bundle runs at most {facts.most_rows} of these inputs together: " + (
            "expected 1, because not every input and output of the model has a dynamic first dimension for rows. "
            'Ship it with a shape such as "float32[1..16,3,224,224]"'
            if facts.most_rows == 1
            else "use a smaller batch, or ship the model with a larger range"
        )
        raise MapError(msg)
