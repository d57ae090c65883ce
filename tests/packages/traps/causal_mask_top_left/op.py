"""Causal softmax of attention scores. With more keys than queries (a key-value cache), the last query sees all keys,
but the kernel aligns the mask with the first key."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

import opwright

FAULTY = os.environ.get("OPWRIGHT_TRAP") != "repaired"
library = opwright.Library("trap_causal_mask_top_left", sources=["faulty.cpp" if FAULTY else "cpu.cpp"])


@library.op
def causal_softmax(scores: Tensor) -> Tensor:
    """The softmax over the keys that a query sees; the weights of other keys are zero.

    The last query sees all keys, the query before it all but the last key, and so on.

    Args:
        scores: (heads, queries, keys), float32.

    Returns:
        The same shape, contiguous. A query that sees no key has weights of zero.
    """
    if scores.dim() != 3:
        msg = f"scores must have 3 dimensions, got {tuple(scores.shape)}"
        raise ValueError(msg)
    queries, keys = scores.shape[1:]
    query = torch.arange(queries, device=scores.device)[:, None]
    seen = torch.arange(keys, device=scores.device) <= query + (keys - queries)
    weights = scores.masked_fill(~seen, -torch.inf).softmax(2)
    return weights.masked_fill(~seen, 0).contiguous()


@causal_softmax.samples
def _(make: opwright.Make) -> Iterator[tuple[Tensor]]:
    length = make.size(12)
    yield (make.randn(2, length, length),)
    yield (make.randn(1, 33, 33),)
