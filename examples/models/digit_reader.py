"""A classifier of handwritten digits with `lltm::sequence`, ready to ship, which is trained on first use.

opwright ship examples/models/digit_reader.py:digit_reader --ops ops/lltm -o build/digit_reader

Nothing is stored: the digits come with scikit-learn, and training takes a second.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from digits import (  # type: ignore[import-not-found]  # on the path since the line above
    COLUMNS,
    ROWS,
    Classifier,
    Digits,
    batches,
    load,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

BATCH = 64
EPOCHS = 15
HIGHEST_RATE = 0.02

# `opwright ship` also reads this.
shapes = {"images": f"float32[1..64,{ROWS},{COLUMNS}]"}


def digit_reader() -> Classifier:
    """A classifier after a second or two of training, with the native kernels and always in the same order."""
    digits, _ = load()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Classifier()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # synchronising threads would take longer than a step of this size
    try:
        _teach(model, digits)
    finally:
        torch.set_num_threads(threads)
    return model.eval()


def samples() -> Iterator[tuple[Tensor]]:
    """Inputs of the model: digits of the test split, as a batch and individually."""
    _, digits = load()
    yield (digits.images[:7],)
    yield (digits.images[7:8],)
    yield (digits.images[8:40],)


def _teach(model: Classifier, digits: Digits) -> None:
    orders = [batch for epoch in range(EPOCHS) for batch in batches(len(digits), BATCH, epoch)]
    optimizer = torch.optim.Adam(model.parameters(), lr=HIGHEST_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, HIGHEST_RATE, total_steps=len(orders))
    for batch in orders:
        optimizer.zero_grad()
        functional.cross_entropy(model(digits.images[batch]), digits.labels[batch]).backward()
        optimizer.step()
        schedule.step()
