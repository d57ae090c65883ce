"""Saves the model and data for the C++ training program, and the losses of the same training in Python.

Writes to the folder: model.pt, a classifier of handwritten digits on the native kernels of ops/lltm, scripted before
its first step; data.pt, the digits, the batch of each step, and the settings of SGD; losses.json, one loss per step.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path

import torch
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from digits import Classifier, batches, load  # type: ignore[import-not-found]  # on the path since the line above

BATCH = 64
RATE = 0.1
MOMENTUM = 0.9


def main() -> None:
    """Save the model and the data, and train in Python."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder to write to, created if necessary")
    parser.add_argument("--steps", type=int, default=200, metavar="N", help="number of steps (200)")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)

    torch.set_num_threads(1)  # a step of this size is shorter than synchronizing threads
    digits, _ = load()
    epochs = (batches(len(digits), BATCH, epoch) for epoch in itertools.count())
    order = torch.stack(list(itertools.islice(itertools.chain.from_iterable(epochs), asked.steps)))
    torch.manual_seed(0)
    model = Classifier()
    torch.jit.script(model).save(str(asked.folder / "model.pt"))
    torch.save([digits.images, digits.labels, order, RATE, MOMENTUM], asked.folder / "data.pt")

    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    losses = []
    for batch in order:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(digits.images[batch]), digits.labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    (asked.folder / "losses.json").write_text(json.dumps(losses) + "\n")


if __name__ == "__main__":
    main()
