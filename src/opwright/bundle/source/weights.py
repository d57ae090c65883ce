"""Loads the weights of a file into a model, without executing anything in the file."""

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
    """Load the state dict at `path`, or the one under the key `state_dict` of a checkpoint there, into `model`.

    Raises:
        BundleError: the file does not contain exactly the weights of the model.
    """
    require_plain_file(path, "the weights")
    try:
        held: Any = torch.load(path, weights_only=True, map_location="cpu")
    except OSError as error:
        msg = f"the weights {path} cannot be read: {error.strerror or error}"
        raise BundleError(msg) from error
    except Exception as error:
        msg = (
            f"the weights {path} are rejected: {why_not_plain(error)}. Only tensors and plain containers are read, "
            "because anything else in such a file could run arbitrary code: save model.state_dict() with torch.save"
        )
        raise BundleError(msg) from error
    if isinstance(held, dict) and isinstance(held.get("state_dict"), dict):
        held = held["state_dict"]
    if not isinstance(held, dict) or not held or not all(isinstance(key, str) for key in held):
        got = type(held).__name__
        msg = f"{path} contains no weights: expected a file from torch.save(model.state_dict(), ...), got a {got}"
        raise BundleError(msg)
    give_weights(model, held, path)


def give_weights(model: nn.Module, held: dict[str, Any], path: Path) -> None:
    """Load the weights `held`, which were read from `path`, into `model`.

    Raises:
        BundleError: they are not exactly the weights of the model.
    """
    wrong = _differences(model.state_dict(), held)
    if wrong:
        more = f"\n  and {len(wrong) - _MOST_SHOWN} more" if len(wrong) > _MOST_SHOWN else ""
        listed = "\n  ".join(wrong[:_MOST_SHOWN])
        msg = f"the weights {path} do not match the model:\n  {listed}{more}"
        raise BundleError(msg)
    model.load_state_dict(held, strict=True)


def _differences(wanted: dict[str, Any], held: dict[str, Any]) -> list[str]:
    missing = [f"{_shown(name)} is missing" for name in wanted if name not in held]
    unexpected = [f"{_shown(name)} is unknown to the model" for name in held if name not in wanted]
    others = [
        f"{_shown(name)} is {described(held[name])}, but the model has {described(value)}"
        for name, value in wanted.items()
        if name in held and not _same_shape(held[name], value)
    ]
    return missing + unexpected + others


def _shown(name: str) -> str:
    return name if name.isprintable() else repr(name)


def _same_shape(held: object, wanted: object) -> bool:
    if not isinstance(wanted, Tensor):
        return True  # the module itself handles its extra state
    return isinstance(held, Tensor) and held.shape == wanted.shape
