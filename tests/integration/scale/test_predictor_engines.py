"""A predictor inside Ray Data, PyTorch's DataLoader and, without Java, the calling convention of Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import opwright
from opwright import MapError

# A separate process, because Ray prints and issues warnings.
RAY = """
import sys
import numpy as np
import ray
import opwright

bundle, folder = sys.argv[1:]
ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=folder)
images = np.random.default_rng(1).random((12, 3, 8, 8), dtype=np.float32)
predictor = opwright.Predictor(bundle, batch=4)
expected = np.concatenate([predictor({"image": images[first : first + 4]})["output"] for first in (0, 4, 8)])
rows = ray.data.from_items([{"image": image, "place": place} for place, image in enumerate(images)])

def check(dataset):
    found = sorted(dataset.take_all(), key=lambda row: row["place"])
    assert [row["place"] for row in found] == [*range(12)], found
    assert np.array_equal(np.stack([row["output"] for row in found]), expected)

check(rows.map_batches(predictor, batch_size=4))
actor = {"fn_constructor_args": (bundle,), "fn_constructor_kwargs": {"batch": 4}, "concurrency": 1}
check(rows.map_batches(opwright.Predictor, batch_size=4, **actor))
for form in ("pandas", "pyarrow"):
    check(rows.map_batches(predictor, batch_size=4, batch_format=form))
ray.shutdown()
"""


@pytest.mark.sample(of="long")
@pytest.mark.needs("ray")
def test_ray_data_accepts_a_predictor_as_a_function_and_as_a_class(fragile: Path) -> None:
    # Ray creates sockets in this folder, and a socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        done = subprocess.run([sys.executable, "-c", RAY, fragile, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Pictures(Dataset[Any]):
    """Pictures of one color each, in the form that a test requires."""

    def __init__(self, form: str) -> None:
        self._form = form

    def __len__(self) -> int:
        return 8

    def __getitem__(self, place: int) -> Any:
        picture = torch.full((3, 8, 8), float(place))
        if self._form == "tuple":
            return picture, place
        if self._form == "dict":
            return {"image": picture.numpy(), "label": place, "process": os.getpid()}
        return picture if place != 5 else None


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")  # about forks, since Python 3.12
@pytest.mark.parametrize("form", ["tuple", "dict"])
def test_a_data_loader_with_two_workers_returns_tensors(fragile: Path, form: str) -> None:
    with opwright.Predictor(fragile, batch=4) as predictor:
        predictor.start()  # before the workers, which use their own hosts, are forked
        loader = DataLoader(Pictures(form), batch_size=4, collate_fn=predictor.collate, num_workers=2)
        found = [*loader]
        assert len(predictor.rows([np.ones((3, 8, 8), np.float32)])) == 1
    if form == "tuple":
        outputs = [outputs["output"] for outputs, _ in found]
        labels = [labels for _, labels in found]
    else:
        assert [list(batch) for batch in found] == [["label", "process", "output"]] * 2
        outputs, labels = [batch["output"] for batch in found], [batch["label"] for batch in found]
        assert len({int(batch["process"][0]) for batch in found} | {os.getpid()}) == 3
    assert torch.cat(labels).tolist() == [*range(8)]
    assert torch.equal(torch.cat(outputs), 2 * torch.arange(8.0)[:, None].expand(8, 3))


def test_a_data_loader_keeps_a_failed_sample(fragile: Path) -> None:
    with opwright.Predictor(fragile, batch=4, on_error="keep") as predictor:
        loader = DataLoader(Pictures("value"), batch_size=8, collate_fn=predictor.collate)
        (found,) = loader
    assert found["status"] == [*["ok"] * 5, "input_unreadable", "ok", "ok"]
    assert found["error"][5].startswith("the input image has no value")
    assert found["output"][5].isnan().all()
    assert found["output"][6].tolist() == [12, 12, 12]


def test_a_data_loader_raises_the_error_of_a_sample(fragile: Path) -> None:
    with opwright.Predictor(fragile) as predictor:
        loader = DataLoader(Pictures("value"), batch_size=8, collate_fn=predictor.collate)
        with pytest.raises(MapError, match="row 5: the input image has no value"):
            next(iter(loader))


def test_map_pandas_accepts_and_returns_an_iterator_of_frames_like_spark(fragile: Path, blended: Path) -> None:
    """Spark requires Java: this test uses its calling convention, and its conversion of each frame."""
    picture = np.ones((3, 8, 8), np.float32)
    frames = [pd.DataFrame({"image": [picture] * rows, "place": range(rows)}) for rows in (2, 0, 3)]
    with opwright.Predictor(fragile, batch=4) as predictor:
        found = predictor.map_pandas(iter(frames))
        assert next(found)["output"].iloc[0].tolist() == [2, 2, 2]  # before the other frames exist
        assert [len(frame) for frame in found] == [0, 3]
    frame = pd.DataFrame({"image": [picture], "shift": [np.zeros(3, np.float32)]})
    with opwright.Predictor(blended) as predictor:
        (mapped,) = predictor.map_pandas(iter([frame]))
    pixels = mapped.drop(columns=["image", "shift"]).iloc[:, 0]
    nested = pa.Array.from_pandas(pixels, type=pa.list_(pa.list_(pa.list_(pa.float32()))))
    assert np.allclose(nested.to_pylist(), [picture * 0.5 + 0.25])
