"""Migrates from TorchScript: gives a module the weights of a saved model, whose results it must then give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.bundle.source import saved
from opwright.bundle.source.weights import give_weights
from opwright.errors import BundleError

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from opwright.bundle.source.find import Source

SAME_MODEL = "The source does not compute what the saved model does: name the source that it was saved from"


def migrated(
    source: Source, path: Path, *, weights_too: bool, trust: bool = False, device: str = "cpu"
) -> torch.jit.ScriptModule:
    """Load the TorchScript model at `path`, and give its weights to the module of `source`.

    Args:
        source: the module.
        path: the saved model.
        weights_too: whether to give its weights to the module.
        trust: whether code in the saved model may do more than compute.
        device: where both will run: `cpu` or `cuda`.

    Raises:
        BundleError: it is not a TorchScript model, or it has other weights than the source.
    """
    if not path.exists():
        msg = f"the model {path} does not exist: expected a TorchScript model, as torch.jit.save writes one"
        raise BundleError(msg)
    if (kind := saved.kind_of(path)) != "torchscript":
        what = {"exported": "an exported program", "aoti": "an AOTInductor package"}[kind]
        msg = f"{path} is {what}, not TorchScript: `opwright ship` ships it without migrating"
        raise BundleError(msg)
    old: torch.jit.ScriptModule = saved.load_saved(path, kind, trust=trust, device=device)
    if weights_too:
        held = dict(old.state_dict())
        if not held and source.model.state_dict():
            msg = f"{path} is frozen, so its weights have lost their names: give them with --weights"
            raise BundleError(msg)
        give_weights(source.model, held, path)
    return old
