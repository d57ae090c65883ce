"""The manifest of a bundle, as docs/format.md describes it, and its text."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

FORMAT = 1
FILE_NAME = "manifest.json"
DIGEST_NAME = "manifest.sha256"
MOST_BYTES = 4 * 2**20


@dataclass(frozen=True)
class ModelFile:
    """The model: its file, what kind of file that is, and the precision inside."""

    file: str
    kind: Literal["torchscript", "aoti"]
    precision: Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class TorchVersions:
    """The PyTorch that the bundle was made with, and the releases that may run it, as `2.13`."""

    version: str
    oldest: str
    newest: str | None


@dataclass(frozen=True)
class Cpu:
    """The processor that the machine code needs; its features as Linux names them."""

    architecture: str
    features: tuple[str, ...]


@dataclass(frozen=True)
class Cuda:
    """The GPU generations that the machine code serves, as `9.0`."""

    architectures: tuple[str, ...]


@dataclass(frozen=True)
class Operator:
    """An operator of a library: its schema as PyTorch prints it, and whether the model calls it."""

    schema: str
    called: bool


@dataclass(frozen=True)
class LibraryFile:
    """An operator library, and the releases of PyTorch that may open it."""

    file: str
    namespaces: tuple[str, ...]
    oldest: str
    newest: str | None
    operators: tuple[Operator, ...]


@dataclass(frozen=True)
class Dimension:
    """How many elements a dimension may have; `max` is None where there is no end."""

    min: int
    max: int | None


@dataclass(frozen=True)
class ImageRecipe:
    """How a picture becomes an input: the shorter side, what is cut out of the middle, and how values are scaled."""

    resize: int
    crop: tuple[int, int]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]


@dataclass(frozen=True)
class Input:
    """An input, under the name of its parameter of `forward`."""

    name: str
    dtype: str
    dims: tuple[int | Dimension, ...]
    image: ImageRecipe | None = None


@dataclass(frozen=True)
class Place:
    """A dimension of an input."""

    input: str
    dimension: int


@dataclass(frozen=True)
class Output:
    """An output; a dimension is None where its size depends on the inputs."""

    name: str
    dtype: str
    dims: tuple[int | None, ...]


@dataclass(frozen=True)
class FileFacts:
    """A file's size, and its digest in hexadecimal digits."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """All that a bundle says of itself, in the order of its text; docs/format.md says what each means."""

    format: int
    opwright: str
    model: ModelFile
    torch: TorchVersions
    device: Literal["cpu", "cuda"]
    cpu: Cpu
    cuda: Cuda | None
    libraries: tuple[LibraryFile, ...]
    inputs: tuple[Input, ...]
    tied: tuple[tuple[Place, ...], ...]
    outputs: tuple[Output, ...]
    tolerance: float
    goldens: tuple[str, ...]
    runtime: str | None
    files: dict[str, FileFacts]

    def to_json(self) -> str:
        """The text of the manifest: the same for equal manifests."""
        told = {**asdict(self), "files": {path: asdict(self.files[path]) for path in sorted(self.files)}}
        return json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
