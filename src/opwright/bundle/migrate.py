"""The road from TorchScript: a module is given a saved model's weights, to be held against its results."""

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


def migrated(source: Source, path: Path, *, weights_too: bool) -> torch.jit.ScriptModule:
    """The TorchScript model at `path`, whose weights the module of `source` then has as well.

    Args:
        source: the module.
        path: the saved model.
        weights_too: whether its weights are wanted.

    Raises:
        BundleError: it is no TorchScript model, or has other weights or inputs than the source.
    """
    if not path.is_file():
        msg = f"the model {path} is not there: expected a TorchScript model, as torch.jit.save writes one"
        raise BundleError(msg)
    if (kind := saved.kind_of(path)) != "torchscript":
        what = {"exported": "an exported program", "aoti": "a package of AOTInductor's"}[kind]
        msg = f"{path} is {what}, and not TorchScript: `opwright ship` takes it as it is"
        raise BundleError(msg)
    old = saved.load_torchscript(path)
    if weights_too:
        held = dict(old.state_dict())
        if not held and source.model.state_dict():
            msg = f"{path} is frozen, and has no weights that have names any more: give them with --weights"
            raise BundleError(msg)
        give_weights(source.model, held, path)
    return old
