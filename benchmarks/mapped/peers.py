"""The job of benchmarks/map_throughput.py, written without opwright except for the operator.

python benchmarks/mapped/peers.py script SCRIPTED
python benchmarks/mapped/peers.py ray PICTURES OUT SCRIPTED BATCH
python benchmarks/mapped/peers.py loader PICTURES OUT SCRIPTED BATCH WORKERS THREADS
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

import opwright

if TYPE_CHECKING:
    from torch import Tensor

ROOT = Path(__file__).resolve().parents[2]
OPS = ROOT / "ops" / "geometry"
CORES = len(os.sched_getaffinity(0))
MEAN = torch.tensor((0.485, 0.456, 0.406)).view(3, 1, 1)
STD = torch.tensor((0.229, 0.224, 0.225)).view(3, 1, 1)
SIDE = 224


def decoded(path: str) -> Tensor:
    """A picture in the format that the model expects, (3, 224, 224)."""
    pixels = torch.from_numpy(np.array(Image.open(path).convert("RGB"))).permute(2, 0, 1).float().div(255)
    height, width = pixels.shape[1:]
    scale = SIDE / min(height, width)
    size = [int(height * scale), int(width * scale)]
    resized = torch.nn.functional.interpolate(pixels[None], size, mode="bilinear", antialias=True)[0]
    top, left = (size[0] - SIDE) // 2, (size[1] - SIDE) // 2
    return (resized[:, top : top + SIDE, left : left + SIDE] - MEAN) / STD


class Model:
    """The scripted model in an actor."""

    def __init__(self, scripted: str) -> None:
        torch.set_num_threads(1)
        opwright.open(OPS)
        self._model = torch.jit.load(scripted).eval()

    def __call__(self, batch: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
        """The scores of a batch of pictures, by their paths."""
        with torch.inference_mode():
            scores = self._model(torch.from_numpy(batch["image"]))
        return {"input": batch["input"], "scores": scores.numpy()}


def decode_batch(batch: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    """The pictures of a batch of paths."""
    torch.set_num_threads(1)
    return {"input": batch["input"], "image": np.stack([decoded(path).numpy() for path in batch["input"]])}


def with_ray(pictures: Path, output: Path, scripted: Path, batch: int) -> None:
    """The job with Ray Data."""
    import ray
    import ray.data

    ray.init(address="local", log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    paths = sorted(map(str, pictures.iterdir()))
    named = ray.data.from_items([{"input": path} for path in paths], override_num_blocks=max(len(paths) // 64, 1))
    dataset = named.map_batches(decode_batch, batch_size=batch, num_cpus=0.1)
    dataset = dataset.map_batches(
        Model,
        fn_constructor_args=(str(scripted),),
        batch_size=batch,
        compute=ray.data.ActorPoolStrategy(size=CORES),
        num_cpus=0.8,
    )
    dataset.write_parquet(str(output))


class Pictures(Dataset["tuple[str, Tensor]"]):
    """Pictures, decoded."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, place: int) -> tuple[str, Tensor]:
        return self._paths[place], decoded(self._paths[place])


def with_loader(pictures: Path, output: Path, scripted: Path, batch: int, workers: int, threads: int) -> None:
    """The job with a DataLoader and a loop."""
    torch.set_num_threads(threads)
    opwright.open(OPS)
    model = torch.jit.load(str(scripted)).eval()
    output.mkdir()
    loader = DataLoader(Pictures(sorted(map(str, pictures.iterdir()))), batch_size=batch, num_workers=workers)
    inputs: list[str] = []
    scores: list[Tensor] = []
    with torch.inference_mode():
        for paths, images in loader:
            inputs += paths
            scores.append(model(images))
    flat = torch.cat(scores)
    values = pa.FixedSizeListArray.from_arrays(pa.array(flat.flatten().numpy()), flat.shape[1])
    pq.write_table(pa.table({"input": inputs, "scores": values}), output / "part.parquet")


def script(scripted: Path) -> None:
    """Save the scripted model."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    opwright.open(OPS)
    model = importlib.import_module("model")
    torch.jit.script(model.rectified_resnet18()).save(str(scripted))


def main() -> None:
    """Run the job that the arguments name."""
    kind, *words = sys.argv[1:]
    if kind == "script":
        script(Path(words[0]))
        return
    pictures, output, scripted = map(Path, words[:3])
    if kind == "ray":
        with_ray(pictures, output, scripted, int(words[3]))
    else:
        with_loader(pictures, output, scripted, *map(int, words[3:]))


if __name__ == "__main__":
    main()
