"""Bundles for a GPU, in both formats: shipped, verified, run in the host, and rejected on other devices."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pytest
import torch

import opwright
from opwright.bundle.format.read import read_manifest
from opwright.errors import BundleError
from opwright.host.install import host_program
from tests.integration.bundle import gpu_models
from tests.integration.bundle.conftest import MODELS, PACKAGES
from tests.integration.host.conftest import Bundle

if TYPE_CHECKING:
    from collections.abc import Callable

    from opwright.bundle.format.manifest import Manifest
    from tests.integration.conftest import BuildOnce

pytestmark = pytest.mark.needs("cuda", "nvcc")

LLTM = Path(__file__).parents[3] / "ops" / "lltm"
NAMES, FORMATS = ("convolutions", "sequences"), ("torchscript", "aoti")
# For two engines that compute in float32, in sums of some hundred numbers with a magnitude of 1.
RELATIVE, ABSOLUTE = 1e-4, 1e-5


class ShipGpu(Protocol):
    """Ships one of the models of gpu_models.py for the GPU, once per session."""

    def __call__(self, name: str, format: str, *more: str) -> Path: ...


@pytest.fixture(scope="session")
def ship_gpu(build_once: BuildOnce) -> ShipGpu:
    def ship_gpu(name: str, format: str, *more: str) -> Path:
        def make(folder: Path) -> None:
            torch.save(list(gpu_models.samples_of(name)), folder / "samples.pt")
            shape = {"convolutions": "1..16,3,16,16", "sequences": "1..16,6,32"}.get(name, "1..16")
            words = ["--samples", str(folder / "samples.pt"), "--shape", f"rows={_dtype(name)}[{shape}]", *more]
            libraries = ["--ops", str(LLTM)] if name == "sequences" else []
            _ship(f"{gpu_models.__file__}:{name}", folder / "bundle", "--format", format, *libraries, *words)

        return build_once("-".join(["gpu", name, format, *more]).replace("--", ""), make) / "bundle"

    return ship_gpu


def _dtype(name: str) -> str:
    return "int64" if name == "lookup" else "float32"


# A new process: a forked one could not use a GPU that its parent has used.
def _ship(model: str, output: Path, *words: str) -> None:
    command = [sys.executable, "-m", "opwright", "ship", model, "-o", str(output), "--device", "cuda", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _manifest(bundle: Path) -> Manifest:
    return read_manifest((bundle / "manifest.json").read_bytes())


def _changed(bundle: Path, folder: Path, change: Callable[[Any], object]) -> Path:
    """A copy with a changed manifest and its digest."""
    copied = Bundle(Path(shutil.copytree(bundle, folder / "changed")))
    copied.say(change)
    return copied.path


def _host(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [host_program(), *words], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def _capability() -> str:
    major, minor = torch.cuda.get_device_capability()
    return f"{major}.{minor}"


def _expected(name: str, rows: torch.Tensor) -> np.ndarray[Any, Any]:
    """The output of the model on the CPU."""
    if name == "sequences":
        opwright.open(LLTM)
    model = getattr(gpu_models, name)().eval()
    with torch.no_grad():
        found: np.ndarray[Any, Any] = model(rows).numpy()
    return found


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_the_manifest_lists_the_gpus_and_goldens_are_on_the_cpu(ship_gpu: ShipGpu, name: str, format: str) -> None:
    bundle = ship_gpu(name, format)
    manifest = _manifest(bundle)
    assert manifest.device == "cuda"
    listed = list(manifest.cuda.architectures) if manifest.cuda else []
    if format == "aoti":
        assert listed == [_capability()]
    elif name == "convolutions":
        assert listed == []
    else:
        assert listed
    for golden in manifest.goldens:
        tensors = [tensor for part in torch.load(bundle / golden, weights_only=True) for tensor in part]
        assert {tensor.device.type for tensor in tensors} == {"cpu"}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_the_host_verifies_the_bundle_and_prints_nothing_else(ship_gpu: ShipGpu, name: str, format: str) -> None:
    bundle = ship_gpu(name, format)
    done = _host(bundle, "--verify", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["device"] == "cuda"
    # With TF32 on only one side, the deviation would be about ten times as large.
    assert said["farthest"] <= _manifest(bundle).tolerance


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_repeated_runs_on_several_runners_of_the_host_match_python(
    ship_gpu: ShipGpu, tmp_path: Path, name: str, format: str
) -> None:
    rows = gpu_models.rows_of(name, 4)
    np.save(tmp_path / "rows.npy", rows.numpy())
    words = ("--input", tmp_path / "rows.npy", "--output", tmp_path / "out.npy", "--repeat", "40", "--runners", "4")
    done = _host(ship_gpu(name, format), *words, "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["runs"] == 40
    assert figures["python_mapped"] is False
    assert np.allclose(np.load(tmp_path / "out.npy"), _expected(name, rows), RELATIVE, ABSOLUTE)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_a_batch_on_the_stream_is_correct_row_by_row(ship_gpu: ShipGpu, name: str, format: str) -> None:
    rows = gpu_models.rows_of(name, 7)
    found = opwright.Predictor(ship_gpu(name, format), batch=3)({"rows": rows.numpy()})
    (output,) = (found[key] for key in found if key != "rows")
    assert np.allclose(output, _expected(name, rows), RELATIVE, ABSOLUTE)


@pytest.mark.parametrize("format", FORMATS)
def test_a_map_runs_on_the_gpu(ship_gpu: ShipGpu, tmp_path: Path, format: str) -> None:
    for number in range(5):
        np.save(tmp_path / f"{number}.npy", gpu_models.rows_of("convolutions", 1).numpy())
    summary = opwright.map(ship_gpu("convolutions", format), tmp_path / "*.npy", output=tmp_path / "results")
    assert (summary.inputs, summary.failed, summary.workers) == (5, 0, torch.cuda.device_count())


@pytest.mark.parametrize("format", FORMATS)
def test_bfloat16_inside_is_within_its_tolerance(ship_gpu: ShipGpu, format: str) -> None:
    bundle = ship_gpu("convolutions", format, "--precision", "bfloat16")
    done = _host(bundle, "--verify")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("suffix", [".pt", ".pt2"])
def test_a_model_saved_on_the_cpu_moves_to_the_gpu(tmp_path: Path, suffix: str) -> None:
    model, (sample, *_) = gpu_models.convolutions().eval(), gpu_models.samples_of("convolutions")
    path = tmp_path / f"model{suffix}"
    if suffix == ".pt":
        torch.jit.freeze(torch.jit.trace(model, sample)).save(str(path))
    else:
        torch.export.save(torch.export.export(model, (sample,)), path)
    torch.save([sample], tmp_path / "samples.pt")
    format = "torchscript" if suffix == ".pt" else "aoti"
    _ship(str(path), tmp_path / "bundle", "--format", format, "--samples", str(tmp_path / "samples.pt"))
    done = _host(tmp_path / "bundle", "--verify")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_module_and_samples_on_the_gpu_are_accepted_and_stay_there(tmp_path: Path) -> None:
    model = gpu_models.convolutions().cuda()
    allowed = torch.backends.cudnn.allow_tf32
    opwright.ship(model, output=tmp_path / "b", device="cuda", samples=[gpu_models.rows_of("convolutions", 2).cuda()])
    assert {parameter.device.type for parameter in model.parameters()} == {"cuda"}
    assert torch.backends.cudnn.allow_tf32 == allowed
    opwright.ship(model, output=tmp_path / "c", device="cpu", samples=[gpu_models.rows_of("convolutions", 2).cuda()])
    assert {parameter.device.type for parameter in model.parameters()} == {"cuda"}
    for bundle in (tmp_path / "b", tmp_path / "c"):
        assert _host(bundle, "--verify").returncode == 0


def test_an_operator_without_a_cuda_kernel_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="the model calls timed::mixed, which has no native kernel for the CUDA in"):
        opwright.ship(f"{MODELS}:net", [PACKAGES / "timed"], output=tmp_path / "b", device="cuda")


def test_a_library_for_other_gpus_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opwright.bundle.ship.capability", lambda: (7, 5))
    with pytest.raises(BundleError, match=r"compiled for GPUs of compute capability .*, but this GPU has 7\.5: add"):
        opwright.ship(f"{gpu_models.__file__}:sequences", [LLTM], output=tmp_path / "b", device="cuda")


@pytest.mark.parametrize(
    ("architectures", "code"), [(["1.0"], 29), (["99.0+PTX"], 29), (["1.0+PTX"], 0), (["1.0", "5.0+PTX"], 0)]
)
def test_the_generation_of_the_gpu_is_checked(
    ship_gpu: ShipGpu, tmp_path: Path, architectures: list[str], code: int
) -> None:
    bundle = ship_gpu("convolutions", "torchscript")
    changed = _changed(bundle, tmp_path, lambda manifest: manifest.update(cuda={"architectures": architectures}))
    done = _host(changed, "--verify")
    assert done.returncode == code, done.stderr
    if code:
        listed = ", ".join(architectures)
        assert f"GPUs of compute capability {listed}, and this one has {_capability()}: ship the model" in done.stderr


def test_a_bundle_for_a_gpu_is_rejected_if_no_gpu_is_visible(ship_gpu: ShipGpu) -> None:
    done = _host(ship_gpu("convolutions", "torchscript"), "--verify", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 29
    assert "the bundle was made for cuda, but PyTorch finds no GPU" in done.stderr


def test_a_package_for_the_gpu_is_not_run_on_the_cpu(ship_gpu: ShipGpu, tmp_path: Path) -> None:
    changed = _changed(ship_gpu("convolutions", "aoti"), tmp_path, lambda manifest: manifest.update(device="cpu"))
    done = _host(changed, "--verify")
    assert done.returncode == 35
    assert "was compiled for cuda; expected one for cpu: ship the model again" in done.stderr


def test_a_failed_assertion_of_a_kernel_is_an_error_with_an_exit_code(ship_gpu: ShipGpu, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.array([1, 4]))
    done = _host(ship_gpu("lookup", "torchscript"), "--input", tmp_path / "rows.npy")
    assert done.returncode == 42
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("host: "))
    assert line.startswith("host: the model failed on these inputs: ")
    assert "CUDA error: device-side assert triggered" in line


def test_a_row_that_loses_the_gpu_does_not_affect_other_rows(ship_gpu: ShipGpu) -> None:
    predictor = opwright.Predictor(ship_gpu("lookup", "torchscript"), batch=2, on_error="keep")
    found = predictor({"rows": np.array([0, 1, 2, 4, 3, 1])})
    assert list(found["status"]) == ["ok", "ok", "ok", "run_failed", "ok", "ok"]
    assert "each time it ran this input" in found["error"][3]
    (output,) = (value for key, value in found.items() if key not in {"rows", "status", "error"})
    assert output[4].tolist() == [18.0, 20.0, 22.0]


def test_running_out_of_memory_is_an_error_and_the_next_request_succeeds(ship_gpu: ShipGpu, tmp_path: Path) -> None:
    many = 2**18  # all pairs need 256 GiB
    changed = _changed(ship_gpu("pairs", "torchscript"), tmp_path, lambda manifest: _allow(manifest, many))
    np.save(tmp_path / "large.npy", np.zeros(many, np.float32))
    np.save(tmp_path / "rows.npy", gpu_models.rows_of("pairs", 2).numpy())
    lines = [json.dumps({"inputs": {"rows": name}}) + "\n" for name in ("large.npy", "rows.npy")]
    (tmp_path / "list.jsonl").write_text("".join(lines))
    done = _host(changed, "--requests", tmp_path / "list.jsonl", "--warm-up", "0", "--json", "-")
    assert done.returncode == 42, done.stderr
    assert "CUDA out of memory" in done.stderr
    assert "error" not in json.loads(done.stdout.splitlines()[1])


def _allow(manifest: Any, rows: int) -> None:
    manifest["inputs"][0]["dims"][0]["max"] = rows
