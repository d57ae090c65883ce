"""Gives a model the weights of a file, without executing anything else in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from opwright.bundle.source.plain_file import require_plain_file
from opwright.bundle.source.plain_pickle import why_not_plain
from opwright.errors import BundleError
from opwright.spec.difference import described

if TYPE_CHECKING:
    from pathlib import Path

_MOST_SHOWN = 5


def load_weights(model: nn.Module, path: Path) -> None:
    """Give `model` the state dict at `path`, or the one under the key `state_dict` of the checkpoint there.

    Raises:
        BundleError: the file does not hold exactly the weights that the model has.
    """
    require_plain_file(path, "the weights")
    try:
        held: Any = torch.load(path, weights_only=True, map_location="cpu")
    except OSError as error:
        msg = f"the weights {path} cannot be read: {error.strerror or error}"
        raise BundleError(msg) from error
    except Exception as error:
        msg = (
            f"the weights {path} are refused: {why_not_plain(error)}. Only tensors and plain containers are read, "
            "since anything else in such a file could run any code: save model.state_dict() with torch.save"
        )
        raise BundleError(msg) from error
    if isinstance(held, dict) and isinstance(held.get("state_dict"), dict):
        held = held["state_dict"]
    if not isinstance(held, dict) or not held or not all(isinstance(key, str) for key in held):
        got = type(held).__name__
        msg = f"{path} holds no weights: expected what torch.save wrote of model.state_dict(), got a {got}"
        raise BundleError(msg)
    give_weights(model, held, path)


def give_weights(model: nn.Module, held: dict[str, Any], path: Path) -> None:
    """Give `model` the weights `held`, which were read from `path`.

    Raises:
        BundleError: they are not exactly what the model has.
    """
    wrong = _differences(model.state_dict(), held)
    if wrong:
        more = f"\n  and {len(wrong) - _MOST_SHOWN} more" if len(wrong) > _MOST_SHOWN else ""
        listed = "\n  ".join(wrong[:_MOST_SHOWN])
        msg = f"the weights {path} are not those of the model:\n  {listed}{more}"
        raise BundleError(msg)
    model.load_state_dict(held, strict=True)


def _differences(wanted: dict[str, Any], held: dict[str, Any]) -> list[str]:
    missing = [f"{_shown(name)} is missing" for name in wanted if name not in held]
    unexpected = [f"{_shown(name)} is unknown to the model" for name in held if name not in wanted]
    others = [
        f"{_shown(name)} is {described(held[name])}, and the model has {described(value)}"
        for name, value in wanted.items()
        if name in held and not _same_shape(held[name], value)
    ]
    return missing + unexpected + others


def _shown(name: str) -> str:
    return name if name.isprintable() else repr(name)


def _same_shape(held: object, wanted: object) -> bool:
    if not isinstance(wanted, Tensor):
        return True  # what a module keeps beside tensors is its own matter
    return isinstance(held, Tensor) and held.shape == wanted.shape
