"""The manifest of a bundle and its text, as docs/reference/format.md describes them."""

from __future__ import annotations

import json
import math
import sys
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from opwright.bundle.format.limits import LIST_LENGTH, RANK, RESIZE
from opwright.bundle.format.names import Architecture, Digest, FilePath, Release, Schema, Text

FILE_NAME = "manifest.json"
DIGEST_NAME = "manifest.sha256"

_LARGEST = 2**63 - 1
_Size = Annotated[int, Meta(ge=0, le=_LARGEST)]
_Length = Annotated[int, Meta(ge=1, le=RESIZE)]
_Listed = Meta(max_length=LIST_LENGTH)
_Dims = Meta(max_length=RANK)


class ModelFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model: its file, the kind of that file, and the precision that the model computes in."""

    file: FilePath
    kind: Literal["torchscript", "aoti"]
    precision: Literal["float32", "bfloat16"]


class TorchVersions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The PyTorch release that the bundle was made with, and the releases that may run it, such as `2.13`."""

    version: Text
    oldest: Release
    newest: Release | None

    def __post_init__(self) -> None:
        """Check that the releases are in order."""
        _check_order(self.oldest, self.newest)


class Cpu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The processor that the machine code needs, with its features as Linux names them."""

    architecture: Text
    features: Annotated[tuple[Text, ...], _Listed]


class Cuda(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The GPU generations that the machine code supports: `9.0`, or `9.0+PTX` if it supports all newer ones too."""

    architectures: Annotated[tuple[Architecture, ...], _Listed]


class Operator(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operator of a library: its schema as PyTorch prints it, and whether the model calls it."""

    schema: Schema
    called: bool


class LibraryFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operator library, and the releases of PyTorch that may load it."""

    file: FilePath
    namespaces: Annotated[tuple[Text, ...], _Listed]
    oldest: Release
    newest: Release | None
    operators: Annotated[tuple[Operator, ...], _Listed]

    def __post_init__(self) -> None:
        """Check that the releases are in order."""
        _check_order(self.oldest, self.newest)


class Dimension(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The range of sizes of a dimension; `max` is None if there is no upper limit."""

    min: _Size
    max: _Size | None

    def __post_init__(self) -> None:
        """Check that the range is not empty."""
        if self.max is not None and self.max < self.min:
            msg = "Expected a min no larger than max"
            raise ValueError(msg)


class ImageRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a picture becomes an input: the length of its shorter side, the center crop, and the normalization."""

    resize: _Length
    crop: tuple[_Length, _Length]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    def __post_init__(self) -> None:
        """Check that the crop fits, and that pictures can be normalized with these numbers."""
        if max(self.crop) > self.resize:
            msg = "Expected a crop no larger than resize"
            raise ValueError(msg)
        if not all(map(math.isfinite, self.mean + self.std)) or not all(self.std):
            msg = "Expected a mean and an std of finite numbers, with no std of 0"
            raise ValueError(msg)


class Input(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An input, named like its parameter of `forward`."""

    name: Text
    dtype: Text
    dims: Annotated[tuple[_Size | Dimension, ...], _Dims]
    image: ImageRecipe | None


class InputDim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A dimension of an input: the input's name and the dimension's number."""

    input: Text
    dim: _Size


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An output; a dimension is None where its size depends on the inputs."""

    name: Text
    dtype: Text
    dims: Annotated[tuple[_Size | None, ...], _Dims]


class FileFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file's size, and its digest in hexadecimal digits."""

    bytes: _Size
    sha256: Digest


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of a manifest, in the order of its text; docs/reference/format.md describes each field."""

    format: int
    opwright: Text
    model: ModelFile
    torch: TorchVersions
    device: Literal["cpu", "cuda"]
    cpu: Cpu
    cuda: Cuda | None
    libraries: Annotated[tuple[LibraryFile, ...], _Listed]
    inputs: Annotated[tuple[Input, ...], _Listed]
    equal_dims: Annotated[tuple[Annotated[tuple[InputDim, ...], _Listed], ...], _Listed]
    outputs: Annotated[tuple[Output, ...], _Listed]
    tolerance: Annotated[float, Meta(ge=0, le=sys.float_info.max)]
    goldens: Annotated[tuple[FilePath, ...], _Listed]
    host_program: FilePath | None
    files: dict[FilePath, FileFacts]

    def to_builtins(self) -> dict[str, Any]:
        """The manifest as JSON has it: dicts, lists, strings and numbers, with the files sorted by name."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return {**plain, "files": dict(sorted(plain["files"].items()))}

    def to_json(self) -> str:
        """The text of the manifest: the same for equal manifests."""
        return json.dumps(self.to_builtins(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _check_order(oldest: str, newest: str | None) -> None:
    if newest is not None and _numbers(newest) < _numbers(oldest):
        msg = "Expected a newest release that is null, or not before oldest"
        raise ValueError(msg)


def _numbers(release: str) -> list[int]:
    return [int(number) for number in release.split(".")]
