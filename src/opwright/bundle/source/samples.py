"""Sample inputs: their sources, their names, and their dynamic sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.bundle.error_summary import error_summary
from opwright.bundle.format.limits import LIST_LENGTH
from opwright.bundle.format.manifest import ImageRecipe
from opwright.bundle.format.names import check_name
from opwright.bundle.format.read import read_as
from opwright.bundle.source import shape
from opwright.bundle.source.plain_file import require_plain_file
from opwright.bundle.source.plain_pickle import why_not_plain
from opwright.errors import BundleError, OpwrightError
from opwright.spec.difference import described

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from opwright.bundle.source.find import Source
    from opwright.bundle.source.shape import Shape

_EXPECTED = "Expected .npy, .npz, or what torch.save wrote"


@dataclass(frozen=True)
class Inputs:
    """The inputs of a model, in the order of its `forward`.

    Attributes:
        names: the name of each input.
        shapes: the dtype and dimensions of each input.
        images: how a picture becomes each input; None if the author does not specify it.
        samples: calls, each with a tensor for each input.
        made_up: whether the samples are random numbers of these shapes.
    """

    names: tuple[str, ...]
    shapes: tuple[Shape, ...]
    images: tuple[ImageRecipe | None, ...]
    samples: tuple[tuple[Tensor, ...], ...]
    made_up: bool = False

    def on(self, device: str) -> Inputs:
        """These inputs with the samples on `device`."""
        return replace(self, samples=tuple(tuple(tensor.to(device) for tensor in call) for call in self.samples))


def find_inputs(source: Source, given: Iterable[Any] | None, given_shapes: Mapping[str, str]) -> Inputs:
    """Find the inputs of a model.

    Args:
        source: the model.
        given: samples that replace the author's: tuples of tensors, tensors, or dicts by name.
        given_shapes: shapes that replace the author's, keyed by the input's name.

    Raises:
        BundleError: there are neither samples nor shapes, or they do not match the model or each other.
    """
    texts = {**source.shapes, **given_shapes}
    calls = list(_drawn(source, given))
    names = _names(source, calls, texts)
    for name in names:
        check_name(name, "the name of an input")
    for what, wrong in (("shape", texts), ("image recipe", source.images)):
        for name in wrong:
            if name not in names:
                msg = f"there is a {what} for {name!r}, which is not an input: the inputs are {', '.join(names)}"
                raise BundleError(msg)
    if not calls:
        shapes = tuple(shape.parse_shape(texts[name]) for name in names)
        sizes = [shape.smallest(shapes), shape.middle(shapes)]
        distinct = [size for at, size in enumerate(sizes) if size not in sizes[:at]]
        made = tuple(shape.random_inputs(shapes, size, seed) for seed, size in enumerate(distinct))
        return _checked(Inputs(names, shapes, _images(source, names), made, made_up=True))
    samples = tuple(_in_order(call, names, at) for at, call in enumerate(calls))
    shapes = tuple(_shape(name, [call[at] for call in samples], texts) for at, name in enumerate(names))
    return _checked(Inputs(names, shapes, _images(source, names), samples))


def read_samples(path: Path) -> list[Any]:
    """Read the samples in a file: `.npy` (one input), `.npz` (inputs by name), `.pt` (tensor, tuple, dict, or list).

    Raises:
        BundleError: the file contains no samples.
    """
    require_plain_file(path, "the samples", _EXPECTED)
    try:
        if path.suffix in {".npy", ".npz"}:
            import numpy as np

            loaded = np.load(path, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                return [torch.from_numpy(loaded)]
            with loaded:
                return [{name: torch.from_numpy(loaded[name]) for name in loaded.files}]
        held: Any = torch.load(path, weights_only=True, map_location="cpu")
    except ImportError as error:
        msg = f"the samples {path} require numpy, which is not installed: install it, or use torch.save"
        raise BundleError(msg) from error
    except Exception as error:
        msg = f"the samples {path} cannot be read: {why_not_plain(error)}. {_EXPECTED}"
        raise BundleError(msg) from error
    return held if isinstance(held, list) else [held]


def _drawn(source: Source, given: Iterable[Any] | None) -> Iterable[Any]:
    if given is not None:
        return given
    if source.samples is None:
        return ()
    try:
        return list(source.samples())
    except OpwrightError:
        raise
    except Exception as error:
        msg = f"samples() of {source.name} failed: {error_summary(error)}"
        raise BundleError(msg) from error


def _names(source: Source, calls: Sequence[Any], texts: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the inputs: the parameters with a value in the first sample, or else those with a shape."""
    given = calls[0] if calls else texts
    if not calls and not texts:
        name = source.parameters[0] if source.parameters else "NAME"
        msg = (
            f"the inputs of {source.name} are unknown: define a function samples() next to it that yields them, or "
            f"pass --samples FILE, or --shape {name}=float32[1..64,3,224,224] for each input"
        )
        raise BundleError(msg)
    count = len(given) if isinstance(given, (dict, tuple, list)) else 1
    if not source.parameters:
        named = given if isinstance(given, dict) else texts
        return tuple(named) if len(named) == count else tuple(f"input_{at}" for at in range(count))
    names = source.parameters[:count]
    if len(names) < count or (isinstance(given, dict) and set(given) != set(names)):
        whom = f"for {', '.join(map(str, given))}" if isinstance(given, dict) else f"for {count} inputs"
        what = "a sample is" if calls else "shapes are"
        msg = (
            f"{what} given {whom}, but forward accepts {', '.join(source.parameters)}: expected the first of these, "
            "without gaps"
        )
        raise BundleError(msg)
    return names


def _in_order(call: Any, names: Sequence[str], number: int) -> tuple[Tensor, ...]:
    where, listed = f"sample {number}", ", ".join(names)
    if isinstance(call, dict):
        if set(call) != set(names):
            msg = f"{where} names {', '.join(map(str, call))}: expected {listed}, as in the first sample"
            raise BundleError(msg)
        call = tuple(call[name] for name in names)
    values = tuple(call) if isinstance(call, (tuple, list)) else (call,)
    if len(values) != len(names):
        msg = f"{where} has {len(values)} inputs: expected {len(names)} ({listed}), as in the first sample"
        raise BundleError(msg)
    return tuple(_tensor(value, name, where) for name, value in zip(names, values, strict=True))


def _tensor(value: object, name: str, where: str) -> Tensor:
    if not isinstance(value, Tensor):
        msg = (
            f"the input {name!r} of {where} is a {type(value).__name__}: a bundle's inputs are tensors. Store "
            "constants in the model, and pass numbers as tensors"
        )
        raise BundleError(msg)
    if value.layout != torch.strided or value.is_quantized:
        msg = f"the input {name!r} of {where}, {described(value)}, is not dense: a bundle accepts only dense tensors"
        raise BundleError(msg)
    return value.detach().cpu().contiguous()


def _shape(name: str, tensors: Sequence[Tensor], texts: Mapping[str, str]) -> Shape:
    first = tensors[0]
    for tensor in tensors:
        if tensor.dtype != first.dtype or tensor.dim() != first.dim():
            msg = f"the samples of {name!r} differ in more than their sizes: {described(first)} and {described(tensor)}"
            raise BundleError(msg)
    if name not in texts:
        return shape.shape_of(tensors)
    expected = shape.parse_shape(texts[name])
    for at, tensor in enumerate(tensors):
        if wrong := shape.why_not(tensor, expected):
            msg = f"sample {at} of {name!r} does not have the given shape: {wrong}"
            raise BundleError(msg)
    return expected


def _images(source: Source, names: Sequence[str]) -> tuple[ImageRecipe | None, ...]:
    return tuple(_image(name, source.images[name]) if name in source.images else None for name in names)


def _image(name: str, given: Any) -> ImageRecipe:
    what = f"the image recipe of {name!r}"
    if not isinstance(given, dict):
        msg = f"{what} is {given!r:.200}: expected a dict with resize, crop, mean and std"
        raise BundleError(msg)
    plain = dict(given)
    if isinstance(plain.get("crop"), int):
        plain["crop"] = [plain["crop"], plain["crop"]]
    try:
        # Elements of tensors and arrays are not Python floats.
        plain |= {key: list(map(float, plain[key])) for key in ("mean", "std") if key in plain}
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"{what} is {given!r:.200}: expected mean and std of three numbers each"
        raise BundleError(msg) from error
    recipe: ImageRecipe = read_as(ImageRecipe, plain, "", what)
    return recipe


def _checked(inputs: Inputs) -> Inputs:
    if not inputs.samples:
        msg = "there are no samples: samples() must yield at least one"
        raise BundleError(msg)
    if len(inputs.samples) > LIST_LENGTH:
        msg = f"there are {len(inputs.samples)} samples, but a bundle holds at most {LIST_LENGTH}: yield fewer"
        raise BundleError(msg)
    return inputs
