"""The initial inputs of each corpus: some of every form that the host reads."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

import opwright

if TYPE_CHECKING:
    from collections.abc import Callable

Seeds = dict[str, bytes]
FACTS = {"bytes": 1, "sha256": "0123456789abcdef" * 4}
# Contains every kind of entry.
MANIFEST: dict[str, Any] = {
    "format": 3,
    "opwright": "0.1.0",
    "model": {"file": "model.pt2", "kind": "aoti", "precision": "float32"},
    "torch": {"version": "2.13.0", "oldest": "2.13", "newest": "2.13"},
    "device": "cuda",
    "cpu": {"architecture": "x86_64", "features": ["avx2", "fma"]},
    "cuda": {"architectures": ["9.0"]},
    "libraries": [
        {
            "file": "lib/mine.so",
            "namespaces": ["mine"],
            "oldest": "2.11",
            "newest": None,
            "operators": [{"schema": "mine::f(Tensor x) -> Tensor", "called": True}],
        }
    ],
    "inputs": [
        {
            "name": "image",
            "dtype": "float32",
            "dims": [{"min": 1, "max": 64}, 3, {"min": 8, "max": None}],
            "image": {"resize": 256, "crop": [224, 200], "mean": [0.5, 0, -1], "std": [1, 2.5, 3]},
        },
        {"name": "warp", "dtype": "float64", "dims": [3, 3], "image": None},
    ],
    "equal_dims": [[{"input": "warp", "dim": 0}, {"input": "warp", "dim": 1}]],
    "outputs": [{"name": "output", "dtype": "float32", "dims": [None, 1000]}],
    "tolerance": 0.0001,
    "goldens": ["goldens/0.pt"],
    "host_program": "host/bin/opwright-host",
    "files": dict.fromkeys(("model.pt2", "lib/mine.so", "goldens/0.pt", "host/bin/opwright-host", "model.pt"), FACTS),
}
LIST = b"""{"inputs": {"x": "x.npy"}, "output": "first.npz"}
{"inputs": {"": "both.npz"}, "output": "second.npz"}

{"inputs": {"x": "photo.png", "y": "y.npy"}}
not a request
"""


class Small(nn.Module):
    """Multiplies a picture of 2 x 2 pixels by one number per color."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.5, -1.0, 2.0]))

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return (x * self.weight.view(3, 1, 1)).sum((2, 3)) + y, x > 0


def _written(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _npy(array: Any) -> bytes:
    return _written(lambda file: np.save(file, np.asarray(array)))


def _npz(compressed: bool = False, **arrays: Any) -> bytes:
    save = np.savez_compressed if compressed else np.savez
    return _written(lambda file: save(file, **arrays))


def _zip(entries: dict[str, bytes]) -> bytes:
    def write(file: io.BytesIO) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in entries.items():
                archive.writestr(zipfile.ZipInfo(name), content)

    return _written(write)


def _entries(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        return {name: file.read(name) for name in file.namelist()}


def npy_files() -> Seeds:
    image = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)
    seeds = {
        f"{dtype}.npy": _npy(np.arange(6).reshape(2, 3).astype(dtype)) for dtype in ("b1", "u1", "i8", "f2", "c16")
    }
    seeds |= {"image.npy": _npy(image), "fortran.npy": _npy(np.asfortranarray(image)), "scalar.npy": _npy(1.5)}
    seeds |= {"empty.npy": _npy(np.zeros((0, 3))), "text.npy": _npy(["a"]), "big_endian.npy": _npy(image.astype(">f4"))}
    seeds["second.npy"] = _written(lambda file: np.lib.format.write_array(file, image, version=(2, 0)))
    return seeds


def _picture(mode: str, form: str, **options: Any) -> bytes:
    gradient = Image.linear_gradient("L").resize((24, 20)).convert(mode)
    return _written(lambda file: gradient.save(file, form, **options))


def pictures() -> Seeds:
    seeds = {f"{mode}.png": _picture(mode, "PNG") for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")}
    seeds["transparent.png"] = _picture("P", "PNG", transparency=3)
    seeds |= {f"{mode}.jpg": _picture(mode, "JPEG") for mode in ("L", "RGB", "CMYK")}
    seeds["progressive.jpg"] = _picture("RGB", "JPEG", progressive=True)
    seeds["whole_colours.jpg"] = _picture("RGB", "JPEG", subsampling=0)
    return seeds


def streams() -> Seeds:
    rows = [{"inputs": {"x": {"bytes": 3}, "y": "y.npy"}}, {"inputs": {"": {"bytes": 2}}}]
    one, batch = (json.dumps(value).encode() for value in (rows[0], {"batch": rows}))
    seeds = {"one": one + b"\nabc", "batch": batch + b"\nabcde" + one + b"\nabc", "cut": batch + b"\nabcd"}
    seeds["names"] = json.dumps({"batch": [{"inputs": {"": "x", "x": {"bytes": 1}}}, {"inputs": {}}]}).encode() + b"\na"
    seeds["large"] = b'{"inputs": {"x": {"bytes": 9000000000000000000}}}\nabc'
    return seeds


def archives() -> tuple[Seeds, Seeds, Seeds, Seeds]:
    """Return goldens, models, packages and whole bundles."""
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder) / "bundle"
        samples = [(torch.linspace(-1, 1, 12).reshape(1, 3, 2, 2), torch.ones(3))]
        opwright.ship(Small().eval(), samples=samples, output=bundle)
        golden, model = (bundle / "goldens/0.pt").read_bytes(), (bundle / "model.pt").read_bytes()
        manifest = json.loads((bundle / "manifest.json").read_text())
    mixed = [{"a": torch.ones(2, dtype=dtype)} for dtype in (torch.bfloat16, torch.int64, torch.complex64)]
    goldens = {"shipped.pt": golden, "mixed.pt": _written(lambda file: torch.save((mixed, 1, "text"), file))}
    scripted = torch.jit.script(Small().eval())
    models = {"shipped.pt": model, "scripted.pt": _written(lambda file: torch.jit.save(scripted, file))}
    metadata = {"AOTI_DEVICE_KEY": "cpu", "AOTI_PLATFORM": "linux", "AOTI_MACHINE": "x86_64", "AOTI_CPU_ISA": "AVX2"}
    weights = {"use_pickle": False, "is_param": True, "path_name": "weight_0", "tensor_meta": {"dtype": 7, "sizes": []}}
    at = "m/data/aotinductor/model/"
    package = {
        f"{at}x.wrapper_metadata.json": json.dumps(metadata).encode(),
        f"{at}x.wrapper.so": b"\x7fELF, which it is not",
        f"{at}weights_config.json": json.dumps({"config": {"weight": weights}}).encode(),
        "m/data/weights/weight_0": b"\0\0\x80\x3f",
        "m/archive_format": b"pt2",
        "m/archive_version": b"0",
        "m/byteorder": b"little",
        "m/.data/version": b"3\n",
        "m/.data/serialization_id": b"0" * 40,
    }
    # The program fills in the size and digest of a file where they are 0.
    manifest["files"] = {name: {"bytes": 0, "sha256": "0" * 64} for name in manifest["files"]}
    recipe = {"resize": 3, "crop": [2, 2], "mean": [0.5, 0, -1], "std": [1, 2.5, 3]}
    manifest["inputs"][0] |= {"image": recipe, "dims": [{"min": 1, "max": 4}, 3, 2, 2]}
    manifest["outputs"][0]["dims"] = manifest["outputs"][1]["dims"] = [None, 3]
    manifest["outputs"][1]["dims"] = [None, 3, 2, 2]
    x, y = np.linspace(-1, 1, 12, dtype=np.float32).reshape(1, 3, 2, 2), np.ones(3, np.float32)
    content = {
        "bundle/goldens/0.pt": golden,
        "bundle/model.pt": model,
        "bundle/manifest.json": json.dumps(manifest, indent=1).encode(),
    }
    inputs = {"x.npy": _npy(x), "y.npy": _npy(y), "both.npz": _npz(x=x, y=y), "photo.png": pictures()["RGB.png"]}
    asked = {
        "verify": "--verify\n--json",
        "one": "-i\nx.npy\n-i\ny=y.npy\n-o\nout.npz\n--top-k\n2",
        "repeated": "-i\nboth.npz\n--repeat\n2\n--json\n-",
        "picture": "--input\nx=photo.png\n--input\ny=y.npy\n--json\nanswers",
        "list": "--requests\nlist.jsonl\n--runners\n2\n--json",
    }
    bundles = {
        f"{name}.zip": _zip({**content, **inputs, "list.jsonl": LIST, "options": words.encode()})
        for name, words in asked.items()
    }
    return goldens, models, {"cpu.pt2": _zip(package)}, bundles


def seeds() -> dict[str, Seeds]:
    """Return the seeds of each target, by name."""
    goldens, models, packages, bundles = archives()
    shipped = {name: _entries(content)["bundle/manifest.json"] for name, content in bundles.items()}
    x, y = np.ones((2, 3), np.float32), np.arange(3)
    commands = (
        "b -i x.npy -o y.npz --top-k 3",
        "b --requests - --json --runners 2 --warm-up 0",
        "b --verify",
        "b --stream --threads 2 --memory-limit 1000000000",
        "--help",
    )
    return {
        "manifest": {"whole.json": json.dumps(MANIFEST, indent=2).encode(), "shipped.json": shipped["verify.zip"]},
        "npy": npy_files(),
        "npz": {"stored.npz": _npz(x=x, y=y), "packed.npz": _npz(compressed=True, x=x, **{"ü/é": y})},
        "picture": pictures(),
        "request_list": {"list.jsonl": LIST, "one.jsonl": b'{"inputs": {"x": "x.npy"}}'},
        "stream": streams(),
        "options": {f"{number}": words.replace(" ", "\n").encode() for number, words in enumerate(commands)},
        "golden": goldens,
        "model": models,
        "package": packages,
        "bundle": bundles,
    }
