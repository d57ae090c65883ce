"""The facts about a bundle that a map needs, read once and passed to every worker."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opwright.errors import BundleError
from opwright.scale.facts.golden_sizes import golden_sizes

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.bundle.format.manifest import Input, Manifest
    from opwright.scale.facts.golden_sizes import Sizes


@dataclass(frozen=True)
class InputFacts:
    """An input of the model.

    Attributes:
        name: the name.
        dtype: PyTorch's name of the dtype, without `torch.`.
        dims: the smallest and largest size of each dimension; None if there is no largest.
    """

    name: str
    dtype: str
    dims: tuple[tuple[int, int | None], ...]


@dataclass(frozen=True)
class OutputFacts:
    """An output of the model.

    Attributes:
        name: the name.
        dtype: PyTorch's name of the dtype, without `torch.`.
        shape: its sizes for each row; None if they can differ.
        rank: the number of its dimensions.
        has_row: whether its first dimension is the row dimension, which is 1 for one row.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    rank: int
    has_row: bool = False


@dataclass(frozen=True)
class BundleFacts:
    """The facts about a bundle.

    Attributes:
        digest: the SHA-256 of its manifest, which contains the digests of all its files.
        device: `cpu` or `cuda`.
        is_self_contained: whether it contains its own host.
        model_bytes: the size of the model's file.
        inputs: the inputs of the model, in order.
        outputs: the outputs of the model, in order.
        most_rows: the largest number of rows that can run together; None for no limit.
    """

    digest: str
    device: str
    is_self_contained: bool
    model_bytes: int
    inputs: tuple[InputFacts, ...]
    outputs: tuple[OutputFacts, ...]
    most_rows: int | None


def read_facts(folder: Path) -> BundleFacts:
    """Read the facts about the bundle in `folder`.

    Raises:
        BundleError: the folder is not a bundle.
    """
    from opwright.bundle.format.manifest import FILE_NAME
    from opwright.bundle.format.read import read_manifest

    try:
        text = (folder / FILE_NAME).read_bytes()
    except OSError as error:
        msg = f"{folder} is not a bundle: {FILE_NAME} cannot be read ({error.strerror}). `opwright ship` creates one"
        raise BundleError(msg) from error
    manifest = read_manifest(text)
    inputs = tuple(InputFacts(one.name, one.dtype, tuple(map(_range, one.dims))) for one in manifest.inputs)
    leading = _follow_rows(folder, manifest)
    takes_one_alone = bool(inputs) and inputs[0].dims[:1] == ((1, 1),)
    return BundleFacts(
        digest=hashlib.sha256(text).hexdigest(),
        device=manifest.device,
        is_self_contained=manifest.host_program is not None,
        model_bytes=manifest.files[manifest.model.file].bytes,
        inputs=inputs,
        outputs=tuple(
            OutputFacts(
                one.name,
                one.dtype,
                _shape(one.dims, follows),
                len(one.dims),
                has_row=follows or (takes_one_alone and one.dims[:1] == (1,)),
            )
            for one, follows in zip(manifest.outputs, leading, strict=True)
        ),
        most_rows=_most_rows(inputs, leading),
    )


def _range(dim: object) -> tuple[int, int | None]:
    return (dim, dim) if isinstance(dim, int) else (dim.min, dim.max)  # type: ignore[attr-defined]  # a Dimension


def _follow_rows(folder: Path, manifest: Manifest) -> list[bool]:
    """For each output, whether its first size equals that of the first input in every golden, and may be 1."""
    first = manifest.inputs[0] if manifest.inputs else None
    if first is None or not _takes_one(first):
        return [False] * len(manifest.outputs)
    goldens = [_golden(folder, name, manifest) for name in manifest.goldens]
    return [
        bool(goldens)
        and bool(output.dims)
        and output.dims[0] is None
        and all(outputs[place][:1] == inputs[0][:1] for inputs, outputs in goldens)
        for place, output in enumerate(manifest.outputs)
    ]


def _golden(folder: Path, name: str, manifest: Manifest) -> tuple[list[Sizes], list[Sizes]]:
    """The sizes in a golden, whose digest must match the manifest before it is parsed."""
    path = folder / name
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}. Copy the whole bundle again"
        raise BundleError(msg) from error
    if digest != manifest.files[name].sha256:
        msg = f"{path} has changed since it was shipped: copy the bundle again"
        raise BundleError(msg)
    inputs, outputs = golden_sizes(path)
    if len(inputs) != len(manifest.inputs) or len(outputs) != len(manifest.outputs):
        msg = f"{path} has {len(inputs)} inputs and {len(outputs)} outputs, unlike the model: ship it again"
        raise BundleError(msg)
    return inputs, outputs


def _takes_one(first: Input) -> bool:
    return bool(first.dims) and _range(first.dims[0])[0] <= 1


def _shape(dims: tuple[int | None, ...], follows_rows: bool) -> tuple[int, ...] | None:
    sizes = (1, *dims[1:]) if follows_rows else dims
    return None if None in sizes else tuple(size for size in sizes if size is not None)


def _most_rows(inputs: tuple[InputFacts, ...], leading: list[bool]) -> int | None:
    """The number of rows that fit in one batch: 1 unless every input and output has a dynamic first size."""
    if not inputs or not all(leading) or any(not one.dims or one.dims[0][0] > 1 for one in inputs):
        return 1
    ends = [one.dims[0][1] for one in inputs]
    return min((end for end in ends if end is not None), default=None)
