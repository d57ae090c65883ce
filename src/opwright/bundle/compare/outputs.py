"""The tensors that a model returns, and their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.utils import _pytree as pytree

from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_OF_SEQUENCES = (pytree.SequenceKey,)


def flat(result: Any) -> tuple[Tensor, ...]:
    """The tensors of a result, with tuples, lists and dicts flattened.

    Raises:
        BundleError: the result contains something other than tensors.
    """
    return tuple(tensor for _, tensor in _named(result))


def names_of(result: Any) -> tuple[str, ...]:
    """The names of the tensors of a result: `output`, `output_0` and so on, or the keys of the dicts that hold them.

    Raises:
        BundleError: the result contains something other than tensors.
    """
    paths = [path for path, _ in _named(result)]
    if paths == [()]:
        return ("output",)
    return tuple(_name(path) or f"output_{at}" for at, path in enumerate(paths))


class Flat(nn.Module):
    """A model whose result is flattened into a tuple of tensors.

    Args:
        model: the model to call.
    """

    def __init__(self, model: Callable[..., Any]) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The tensors that the model returns."""
        return flat(self.model(*inputs))


def _named(result: Any) -> Sequence[tuple[tuple[Any, ...], Tensor]]:
    leaves, _ = pytree.tree_flatten_with_path(result)
    for path, leaf in leaves:
        if not isinstance(leaf, Tensor):
            where = pytree.keystr(path) or "the result"
            msg = (
                f"the model returns a {type(leaf).__name__} ({where}): a bundle's outputs are tensors, alone or in "
                "tuples, lists and dicts"
            )
            raise BundleError(msg)
    if not leaves:
        msg = "the model returns nothing: a bundle's outputs are tensors, alone or in tuples, lists and dicts"
        raise BundleError(msg)
    return [(tuple(path), leaf) for path, leaf in leaves]


def _name(path: tuple[Any, ...]) -> str:
    """The keys on the path to a tensor; empty if the path only has positions in tuples and lists."""
    if all(isinstance(key, _OF_SEQUENCES) for key in path):
        return ""
    return ".".join(str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path)
