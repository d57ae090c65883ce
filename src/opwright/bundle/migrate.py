"""Migrates from TorchScript: loads the weights of a saved model into a module, which must then compute the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.bundle.source import saved
from opwright.bundle.source.weights import give_weights
from opwright.errors import BundleError

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from opwright.bundle.source.find import Source

SAME_MODEL = "The source does not compute the same as the saved model: name the source that it was saved from"


def migrated(
    source: Source, path: Path, *, weights_too: bool, trust: bool = False, device: str = "cpu"
) -> torch.jit.ScriptModule:
    """Load the TorchScript model at `path`, and load its weights into the module of `source`.

    Args:
        source: the module.
        path: the saved model.
        weights_too: whether to load its weights into the module.
        trust: whether to run code in the saved model that may do more than compute.
        device: the device that both will run on: `cpu` or `cuda`.

    Raises:
        BundleError: the file is not a TorchScript model, or its weights do not match the source.
    """
    if not path.exists():
        msg = f"the model {path} does not exist: expected a TorchScript model, as torch.jit.save writes it"
        raise BundleError(msg)
    if (kind := saved.kind_of(path)) != "torchscript":
        what = {"exported": "an exported program", "aoti": "an AOTInductor package"}[kind]
        msg = f"{path} is {what}, not TorchScript: `opwright ship` ships it without migration"
        raise BundleError(msg)
    old: torch.jit.ScriptModule = saved.load_saved(path, kind, trust=trust, device=device)
    if weights_too:
        held = dict(old.state_dict())
        if not held and source.model.state_dict():
            msg = f"{path} is frozen, so its weights have no names: pass them with --weights"
            raise BundleError(msg)
        give_weights(source.model, held, path)
    return old
