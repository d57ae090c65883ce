"""Networks of plain PyTorch, with an OpenCV operator, and with a recurrent cell, in both formats, in the host."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from opwright.host.install import host_program
from tests.interpreter import python

if TYPE_CHECKING:
    from tests.integration.bundle.conftest import Bundle, ShipOnce

ROOT = Path(__file__).parents[3]
MODELS = {
    "resnet18": ("examples/resnet18/resnet18.py:resnet18", ""),
    "surface": ("examples/models/surface.py:surface", "ops/warp_perspective"),
    "digit_reader": ("examples/models/digit_reader.py:digit_reader", "ops/lltm"),
}
FORMATS = ("torchscript", "aoti")
# The same file in Python, in a new process, because a process never releases its namespaces.
PYTHON = """
import sys
import numpy as np
import torch
from torch._inductor import aoti_load_package
bundle, model, *libraries = sys.argv[1:]
for library in libraries:
    torch.ops.load_library(f"{bundle}/{library}")
run = torch.jit.load(f"{bundle}/{model}") if model.endswith(".pt") else aoti_load_package(f"{bundle}/{model}")
with torch.no_grad():
    for line in sys.stdin:
        inputs, output = line.split()
        arrays = np.load(inputs)
        result = run(*(torch.from_numpy(arrays[name]) for name in arrays.files))
        np.save(output, (result if isinstance(result, torch.Tensor) else result[0]).numpy())
"""


@pytest.fixture(
    params=[
        pytest.param(
            (name, form), id=f"{name}-{form}", marks=[pytest.mark.needs("opencv")] if "surface" in name else []
        )
        for name in MODELS
        for form in FORMATS
    ]
)
def bundle(request: pytest.FixtureRequest, ship_once: ShipOnce) -> Bundle:
    name, form = request.param
    model, ops = MODELS[name]
    libraries = ["--ops", str(ROOT / ops)] if ops else []
    return ship_once(f"three-{name}-{form}", f"{ROOT / model}", *libraries, "--format", form)


@pytest.mark.sample(of="long")
def test_the_host_returns_what_python_returns_for_each_input(bundle: Bundle, tmp_path: Path) -> None:
    manifest = bundle.manifest
    names = [one.name for one in manifest.inputs]
    expected, requests, asked = [], [], []
    for at, golden in enumerate(manifest.goldens):
        inputs, outputs, _ = torch.load(bundle.path / golden, weights_only=True)
        arrays = tmp_path / f"{at}.npz"
        np.savez(arrays, **dict(zip(names, (tensor.numpy() for tensor in inputs), strict=True)))
        expected.append(outputs[0].numpy())
        requests.append(["--input", str(arrays), "--output", str(tmp_path / f"host{at}.npy")])
        asked.append(f"{arrays} {tmp_path / f'python{at}.npy'}")
    files = [str(bundle.path), manifest.model.file, *(library.file for library in manifest.libraries)]
    subprocess.run([*python(), "-c", PYTHON, *files], input="\n".join(asked), text=True, check=True)
    assert len(requests) > 1
    for at, request in enumerate(requests):
        done = subprocess.run(
            [host_program(), bundle.path, *request, "--json", "-"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["python_mapped"] is False
        in_host, in_python = (np.load(tmp_path / f"{who}{at}.npy") for who in ("host", "python"))
        assert np.array_equal(in_host, in_python)  # to the last bit, in both formats
        assert np.abs(in_host - expected[at]).max() <= manifest.tolerance * np.abs(expected[at]).max()


@pytest.mark.sample(of="long")
def test_the_host_verifies_the_bundle(bundle: Bundle) -> None:
    done = subprocess.run(
        [host_program(), bundle.path, "--verify", "--json", "-"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said: Any = json.loads(done.stdout)
    assert 0 <= said["farthest"] <= bundle.manifest.tolerance
