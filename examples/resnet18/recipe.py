"""Writes ResNet-18 to a TorchScript file, after comparing the scripted model with eager PyTorch.

    python examples/resnet18/recipe.py build/resnet18.pt

Exits with 1 and saves nothing if the logits or the top five classes differ from those of the model.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from pickle import UnpicklingError

import torch
from resnet18 import resnet18, samples  # type: ignore[import-not-found]  # beside this script
from torch import Tensor, nn

TOP = 5
TOLERANCE = 1e-5  # relative to the largest logit
CALLS = 3  # TorchScript profiles the first calls, then rewrites the graph


def compared(expected: Tensor, logits: Tensor) -> float:
    """The largest difference of logits (N, C) from the expected ones, relative to the largest expected one.

    Raises:
        ValueError: the difference is too large, or the top classes or their order differ.
    """
    difference = float((logits - expected).abs().max() / expected.abs().max())
    if not difference <= TOLERANCE:
        msg = f"the logits differ by {difference:.1e} of the largest one; expected at most {TOLERANCE:g}"
        raise ValueError(msg)
    got, wanted = (each.topk(TOP).indices.tolist() for each in (logits, expected))
    if got != wanted:
        msg = f"the top {TOP} classes of the scripted model are {got}; expected {wanted}, as in the model"
        raise ValueError(msg)
    return difference


def load_weights(model: nn.Module, path: Path) -> None:
    """Load the weights of a file into a model, without executing code from the file."""
    try:
        model.load_state_dict(torch.load(path, weights_only=True))
    except (OSError, RuntimeError, UnpicklingError) as error:
        sys.exit(f"recipe.py: {path} does not contain weights of ResNet-18: {' '.join(str(error).split())}")


def main() -> None:
    """Script, compare, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("saved", type=Path, metavar="MODEL.pt", help="the file to write")
    parser.add_argument("--weights", type=Path, metavar="FILE", help="a state dict, such as torchvision's")
    asked = parser.parse_args()
    asked.saved.parent.mkdir(parents=True, exist_ok=True)

    model = resnet18()
    if asked.weights is not None:
        load_weights(model, asked.weights)
    saved = torch.jit.script(model).save_to_buffer()
    scripted = torch.jit.load(io.BytesIO(saved))
    with torch.no_grad():
        for (image,) in samples():
            expected = model(image)
            try:
                difference = max(compared(expected, scripted(image)) for _ in range(CALLS))
            except ValueError as error:
                sys.exit(f"recipe.py: {error}")
            for scores, classes in zip(*expected.softmax(dim=1).topk(TOP), strict=True):
                columns = (
                    f"{number}: {score:.1%}" for number, score in zip(classes.tolist(), scores.tolist(), strict=True)
                )
                print("   ".join(columns))
            print(f"the scripted model differs by {difference:.1e}")
    asked.saved.write_bytes(saved)
    weights = f" --weights {asked.weights}" if asked.weights else ""
    print(f"saved {asked.saved}")
    print(f"next: opwright ship examples/resnet18/resnet18.py:resnet18{weights} -o build/resnet18")


if __name__ == "__main__":
    main()
