"""Models are shipped, and the bundles checked with nothing but PyTorch."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from click.testing import CliRunner
from torch._inductor import config

import opwright
from opwright.bundle.compare.deviation import deviation
from opwright.bundle.compare.outputs import flat
from opwright.bundle.pack.libraries import uses_full_abi
from opwright.bundle.source.saved import load_package
from opwright.cli.main import app
from opwright.errors import BundleError
from tests.integration.bundle.conftest import MODELS, OF_PACKAGES, PACKAGES, command

if TYPE_CHECKING:
    from torch import Tensor

    from tests.integration.bundle.conftest import Bundle

TIMED = PACKAGES / "timed"
V3 = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}


@pytest.fixture(scope="session")
def timed() -> Path:
    """The shared object of the operators of `timed`, which stay loaded in this process."""
    path = opwright.open(TIMED).path
    assert path is not None
    return path


def goldens(bundle: Path) -> list[tuple[tuple[Tensor, ...], tuple[Tensor, ...], tuple[Tensor, ...]]]:
    return [torch.load(path, weights_only=True) for path in sorted((bundle / "goldens").iterdir())]


@pytest.mark.usefixtures("timed")
@pytest.mark.parametrize("kind", ["scripted", "packaged"])
def test_a_bundle_returns_in_python_what_eager_pytorch_returned(kind: str, request: pytest.FixtureRequest) -> None:
    bundle: Bundle = request.getfixturevalue(kind)
    load: Any = torch.jit.load if kind == "scripted" else torch._inductor.aoti_load_package
    model = load(str(bundle.path / bundle.manifest.model.file))
    kept = goldens(bundle.path)
    assert [len(inputs[0]) for inputs, _, _ in kept] == [2, 3]
    for inputs, outputs, scales in kept:
        for trio in zip(flat(model(*inputs)), outputs, scales, strict=True):
            assert deviation(*trio) < 1e-5
    for count in (1, 5, 16):  # claimed sizes that no sample has
        scores, mixed = flat(model(torch.ones(count, 3, 8, 8)))
        assert scores.shape == (count, 5)
        assert torch.equal(mixed, torch.full((count, 3, 8, 8), 2.0))


@pytest.mark.parametrize("kind", ["scripted", "packaged"])
def test_the_manifest_describes_the_bundle(kind: str, request: pytest.FixtureRequest) -> None:
    bundle: Bundle = request.getfixturevalue(kind)
    manifest = bundle.manifest
    here = sorted(path.relative_to(bundle.path).as_posix() for path in bundle.path.rglob("*") if path.is_file())
    assert sorted([*manifest.files, "manifest.json", "manifest.sha256"]) == here
    assert [str((one.name, one.dtype, one.dims)) for one in manifest.inputs] == [
        "('image', 'float32', (Dimension(min=1, max=16), 3, 8, 8))"
    ]
    assert manifest.inputs[0].image is not None
    assert manifest.inputs[0].image.crop == (8, 8)
    assert [(one.name, one.dims) for one in manifest.outputs] == [("scores", (None, 5)), ("mixed", (None, 3, 8, 8))]
    (library,) = manifest.libraries
    assert (library.file, library.namespaces, library.oldest, library.newest) == (
        "lib/timed.so",
        ("timed",),
        "2.11",
        None,
    )
    assert {operator.schema: operator.called for operator in library.operators} == {
        "timed::mixed(Tensor x, Tensor y) -> Tensor": True,
        "timed::shifted(Tensor x) -> Tensor": False,
    }
    this = ".".join(torch.__version__.split(".")[:2])
    newest = None if kind == "scripted" else this
    assert (manifest.torch.version, manifest.torch.oldest, manifest.torch.newest) == (torch.__version__, this, newest)


def test_the_command_prints_the_files_and_the_difference_after_each_transform(
    scripted: Bundle, packaged: Bundle
) -> None:
    lines = scripted.out.splitlines()
    assert lines[0].split() == ["file", "size"]
    assert [line.split()[0] for line in lines[1:5]] == ["goldens/0.pt", "goldens/1.pt", "lib/timed.so", "model.pt"]
    assert lines[6].split() == ["difference", "after", "scores", "mixed"]
    steps = [" ".join(line.split()[:-2]) for line in lines[7:10]]
    assert steps == ["script", "freeze", "saved and loaded"]
    assert lines[-1] == str(scripted.path)
    assert "note: optimize_for_inference is skipped: its result for this model cannot be saved" in scripted.said
    assert "AOTInductor" in packaged.out


def test_torchscript_needs_no_features_and_a_package_needs_those_it_was_compiled_with(
    scripted: Bundle, packaged: Bundle
) -> None:
    assert scripted.manifest.cpu.features == ()
    assert V3 <= set(packaged.manifest.cpu.features) <= set(Path("/proc/cpuinfo").read_text().split())


@pytest.mark.usefixtures("timed")
def test_torchscript_has_the_same_bytes_each_time_in_any_process(scripted: Bundle, tmp_path: Path) -> None:
    for name in ("one", "two"):
        opwright.ship(f"{MODELS}:net", [TIMED], output=tmp_path / name)
        assert (tmp_path / name / "manifest.json").read_bytes() == (scripted.path / "manifest.json").read_bytes()


@pytest.mark.sample(of="packages")
def test_a_package_has_the_same_bytes_each_time_even_from_an_empty_cache(packaged: Bundle, tmp_path: Path) -> None:
    folder = packaged.path.parent
    for kept in (folder / "cache").glob("*/inductor"):
        shutil.rmtree(kept)
    variables = {name: value.format(folder=folder) for name, value in OF_PACKAGES.items()}
    arguments = command(f"{MODELS}:net", "--ops", str(TIMED), "--format", "aoti", "-o", str(tmp_path / "again"))
    subprocess.run(arguments, check=True, capture_output=True, env={**os.environ, **variables})
    assert (tmp_path / "again/manifest.json").read_bytes() == (packaged.path / "manifest.json").read_bytes()


def test_no_precompiled_headers_remain(packaged: Bundle) -> None:
    assert list(packaged.path.parent.rglob("*.h"))  # Inductor's own, in opwright's cache
    assert not list(packaged.path.parent.rglob("*.gch"))


def test_a_package_reveals_neither_the_sources_nor_their_folder(packaged: Bundle) -> None:
    content = (packaged.path / "model.pt2").read_bytes()
    assert b"#include" not in content
    assert str(MODELS.parent).encode() not in content
    with zipfile.ZipFile(packaged.path / "model.pt2") as archive:
        sources = [entry for entry in archive.infolist() if entry.filename.endswith(".cpp")]
    assert sources  # PyTorch 2.11 needs their names
    assert not any(entry.file_size for entry in sources)


@pytest.mark.usefixtures("timed")
def test_bfloat16_inside_keeps_float32_outside_and_for_operators_on_the_inputs(tmp_path: Path) -> None:
    shipped = opwright.ship(f"{MODELS}:net", [TIMED], output=tmp_path / "traced", precision="bfloat16")
    assert shipped.manifest.model.precision == "bfloat16"
    assert shipped.manifest.tolerance == 5e-2
    model = torch.jit.load(str(tmp_path / "traced/model.pt"))
    for inputs, outputs, scales in goldens(tmp_path / "traced"):
        scores, mixed = flat(model(*inputs))
        assert torch.equal(mixed, outputs[1])
        assert 1e-4 < deviation(scores, outputs[0], scales[0]) < 5e-2


@pytest.mark.sample(of="packages")
@pytest.mark.skipif(not hasattr(config.cpp, "march"), reason="PyTorch 2.11 and 2.12 compile only for this machine")
@pytest.mark.usefixtures("timed")
def test_a_package_in_bfloat16_for_a_level_needs_no_more_than_the_level(tmp_path: Path) -> None:
    before = dict(os.environ)
    shipped = opwright.ship(
        f"{MODELS}:net", [TIMED], output=tmp_path / "b", format="aoti", precision="bfloat16", cpu="x86-64-v3"
    )
    assert dict(os.environ) == before
    assert set(shipped.manifest.cpu.features) >= V3
    assert not [feature for feature in shipped.manifest.cpu.features if "avx512" in feature or "amx" in feature]
    assert 1e-4 < shipped.differences["AOTInductor"] < 5e-2


def test_a_model_that_cannot_be_scripted_is_traced_and_the_reason_is_reported(tmp_path: Path) -> None:
    shipped = opwright.ship(f"{MODELS}:unscriptable", output=tmp_path / "b")
    assert list(shipped.differences)[:2] == ["trace", "freeze"]
    (told, *_) = shipped.notes
    assert told.startswith("traced, because it cannot be scripted: ")
    assert "\n" not in told


def test_a_branch_that_the_trace_decided_is_reported_even_if_no_sample_differs(tmp_path: Path) -> None:
    shipped = opwright.ship(f"{MODELS}:DecidingOnValues", output=tmp_path / "b")
    (told,) = [
        note for note in shipped.notes if note.startswith("a trace records only the path that the first sample took")
    ]
    assert "Converting a tensor to a Python boolean might cause the trace to be incorrect" in told


def test_a_trace_that_recorded_one_of_two_branches_is_rejected_with_the_difference(tmp_path: Path) -> None:
    with pytest.raises(BundleError) as refused:
        opwright.ship(f"{MODELS}:Branching", output=tmp_path / "b")
    assert "trace changes the results (sample 1): an element differs by " in str(refused.value)
    assert "A trace records only the path that the first sample took" in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_transform_that_changes_results_is_rejected_with_its_name_and_the_difference(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"^freeze changes the results \(sample 0\): an element differs by 0\.\d+ of"):
        opwright.ship(f"{MODELS}:Fragile", output=tmp_path / "b")
    assert opwright.ship(f"{MODELS}:Fragile", output=tmp_path / "b", tolerance=0.9).manifest.tolerance == 0.9


def test_weights_are_loaded_before_anything_is_compared(tmp_path: Path) -> None:
    torch.save({"conv.weight": torch.zeros(8, 3, 3, 3), "conv.bias": torch.full((8,), 0.5)}, tmp_path / "w.pth")
    opwright.ship(f"{MODELS}:plain", output=tmp_path / "b", weights=tmp_path / "w.pth")
    for _, (output,), _ in goldens(tmp_path / "b"):
        assert torch.equal(output, torch.full_like(output, 0.5))


def test_a_module_with_samples_is_shipped_and_not_changed(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 1), torch.nn.BatchNorm2d(4)).train()
    shipped = opwright.ship(module, output=tmp_path / "b", samples=[torch.ones(2, 1, 3, 3)])
    assert module.training
    assert shipped.manifest.inputs[0].name == "input"
    assert shipped.manifest.inputs[0].dims == (2, 1, 3, 3)


def test_a_saved_torchscript_model_is_shipped_with_inputs_of_the_given_shapes(tmp_path: Path) -> None:
    script = torch.jit.trace(torch.nn.Conv2d(3, 4, 3), torch.ones(1, 3, 8, 8))
    script.save(str(tmp_path / "saved.pt"))
    shipped = opwright.ship(tmp_path / "saved.pt", output=tmp_path / "b", shapes={"input": "1..9,3,8,8"})
    assert [len(inputs[0]) for inputs, _, _ in goldens(tmp_path / "b")] == [1, 5]
    assert "there are no samples: the goldens use random inputs of the given shapes" in shipped.notes


@pytest.mark.sample(of="packages")
def test_a_package_for_a_small_range_accepts_all_its_sizes(tmp_path: Path) -> None:
    opwright.ship(torch.nn.Softplus(), output=tmp_path / "b", format="aoti", shapes={"input": "0..3,8"})
    package: Any = torch._inductor.aoti_load_package(str(tmp_path / "b/model.pt2"))
    for size in range(4):
        rows = torch.randn(size, 8)
        torch.testing.assert_close(package(rows)[0], torch.nn.functional.softplus(rows))


@pytest.mark.sample(of="packages")
@pytest.mark.usefixtures("timed")
def test_a_compiled_package_is_copied_unchanged(packaged: Bundle, tmp_path: Path) -> None:
    inputs = [call for call, _, _ in goldens(packaged.path)]
    package = packaged.path / "model.pt2"
    shipped = opwright.ship(package, [TIMED], output=tmp_path / "b", format="aoti", samples=inputs, trust=True)
    assert (tmp_path / "b/model.pt2").read_bytes() == (packaged.path / "model.pt2").read_bytes()
    assert all(operator.called for operator in shipped.manifest.libraries[0].operators)
    assert any("the processor features that it needs are unknown" in note for note in shipped.notes)
    with pytest.raises(
        opwright.BundleError, match=r"model\.pt2 is rejected: an AOTInductor package is machine code\. Load"
    ):
        opwright.ship(package, [TIMED], output=tmp_path / "c", format="aoti", samples=inputs)


@pytest.mark.parametrize(
    ("model", "asked", "message"),
    [
        (
            "net",
            {"ops": [PACKAGES / "traps" / "fake_dtype"]},
            "has no native sources: its operators exist only in Python",
        ),
        ("plain", {"ops": [MODELS.parent]}, "does not contain an operator library: expected an op.py at"),
        (
            "Calls",
            {"ops": [PACKAGES / "half_native"]},
            "half_native::only_described, which has no native kernel for the CPU",
        ),
        (
            "BranchingOnSizes",
            {"format": "aoti"},
            "accepts only 5..16: its code depends on that size. Pass --shape image=5..16,3,8,8, or change",
        ),
        (
            "BranchingOnOneSize",
            {"format": "aoti"},
            "the exported model is correct only if image.shape[0] != 4, which is false for 4: its code",
        ),
        (
            "Counting",
            {"format": "aoti"},
            "dimension 0 of 'image' should accept 1..16, but the export fixes it: the model uses this size as a number",
        ),
        ("BranchingOnValues", {"format": "aoti"}, "the model cannot be exported: GuardOnDataDependentSymNode"),
        ("plain", {"format": "onnx"}, "format='onnx' is not supported; expected 'torchscript' or 'aoti'"),
        ("plain", {"cpu": "x86-64-v3"}, "TorchScript contains no machine code, so cpu='x86-64-v3' has no effect"),
        ("plain", {"device": "tpu"}, "device='tpu' is not supported; expected 'cpu' or 'cuda'"),
        ("plain", {"device": "cuda", "self_contained": True}, "a self-contained bundle for a GPU is not supported: "),
        (
            "plain",
            {"tolerance": 1.5},
            "tolerance=1.5 is not supported; expected a relative difference: 0 or more, and less than 1",
        ),
        (
            "plain",
            {"tolerance": 1e-9, "precision": "bfloat16"},
            "bfloat16 changes the results (sample 0): an element differs by 0.00",
        ),
        ("plain", {"shapes": {"image": "1..4,3,9,9"}}, "sample 0 of 'image' does not have the given shape"),
    ],
)
def test_a_model_that_cannot_be_shipped_is_rejected_and_nothing_is_written(
    tmp_path: Path, model: str, asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(opwright.OpwrightError) as refused:
        opwright.ship(f"{MODELS}:{model}", output=tmp_path / "b", **asked)
    assert message in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_no_bundle_for_a_gpu_is_written_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(BundleError, match="device='cuda' requires a GPU that PyTorch can use: PyTorch "):
        opwright.ship(f"{MODELS}:plain", output=tmp_path / "b", device="cuda")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("timed")
def test_a_package_compiled_for_another_device_is_rejected(packaged: Bundle) -> None:
    package = packaged.path / "model.pt2"
    with pytest.raises(BundleError, match=r"model\.pt2 was compiled for cpu: pass --device cpu, or compile it for"):
        load_package(package, "cuda")


def test_a_saved_model_of_the_other_kind_is_rejected(tmp_path: Path) -> None:
    torch.jit.trace(torch.nn.Identity(), torch.ones(1)).save(str(tmp_path / "saved.pt"))
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), tmp_path / "saved.pt2")
    for name, asked, message in (
        ("saved.pt", {"format": "aoti"}, "is TorchScript, which cannot be compiled into a package"),
        ("saved.pt", {"precision": "bfloat16"}, "is already TorchScript, so its precision cannot be changed"),
        ("saved.pt2", {}, "is an exported program, which cannot become TorchScript: use --format aoti"),
        ("saved.pt2", {"format": "aoti", "precision": "bfloat16"}, "is already exported, so its precision cannot be"),
        (
            "saved.pt",
            {"weights": tmp_path / "saved.pt"},
            "is a saved model, which contains its weights: omit --weights",
        ),
    ):
        with pytest.raises(BundleError) as refused:
            opwright.ship(tmp_path / name, output=tmp_path / "b", samples=[torch.ones(2)], **asked)
        assert message in str(refused.value)


def test_a_library_that_calls_pytorchs_cpp_interface_is_recognized(timed: Path) -> None:
    assert not uses_full_abi(timed)
    assert uses_full_abi(Path(torch.__file__).parent / "lib/libtorch_python.so")


def test_a_built_library_is_copied_unchanged(timed: Path, tmp_path: Path) -> None:
    shipped = opwright.ship(f"{MODELS}:net", [timed], output=tmp_path / "b")
    assert shipped.manifest.libraries[0].oldest == "2.11"
    assert (tmp_path / "b/lib/timed.so").read_bytes() == timed.read_bytes()
    assert f"{timed} was built elsewhere, so the processor features that it needs are unknown" in shipped.notes


def test_a_killed_command_leaves_no_bundle_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    # A separate process, which the signal kills immediately.
    arguments = [sys.executable, "-m", "opwright", "ship", f"{MODELS}:plain", "-o", str(tmp_path / "b"), "--verbose"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as running:
        assert running.stderr is not None
        assert any(line.startswith("b: saved and loaded") for line in running.stderr)
        running.send_signal(signal.SIGKILL)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".b.")
    opwright.ship(f"{MODELS}:plain", output=tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.usefixtures("timed")
def test_a_loaded_but_unlisted_library_is_named_if_the_model_calls_it(tmp_path: Path) -> None:
    with pytest.raises(
        BundleError, match="calls timed::mixed, which none of the given libraries defines: add --ops with"
    ):
        opwright.ship(f"{MODELS}:net", output=tmp_path / "b")


def test_an_error_is_one_message_with_the_exit_code_of_bundles(tmp_path: Path) -> None:
    asked = command(f"{MODELS}:net", "-o", str(tmp_path / "b"))
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 8
    assert done.stdout == ""
    assert done.stderr == (
        "error: the model fails with sample 0 (float32[2,3,8,8]): the operator timed::mixed is not defined: "
        "name the library that defines it with --ops\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "onnx"], "'onnx' is not one of 'torchscript', 'aoti'"),
        (["--cpu", "avx"], "'avx' is not one of 'native', 'x86-64', 'x86-64-v2', 'x86-64-v3', 'x86-64-v4'"),
        (["--precision", "int8"], "'int8' is not one of 'float32', 'bfloat16'"),
        (["--shape", "1,3,8,8"], "'1,3,8,8' is not NAME=SHAPE; expected for example image=float32[1..64,3,224,224]"),
    ],
)
def test_an_unknown_choice_is_a_usage_error(tmp_path: Path, arguments: list[str], message: str) -> None:
    ended = CliRunner().invoke(app, ["ship", f"{MODELS}:plain", "-o", str(tmp_path / "b"), *arguments])
    assert ended.exit_code == 2
    assert message in " ".join(ended.output.replace("│", " ").split())


def test_the_result_is_available_as_json(tmp_path: Path) -> None:
    ended = CliRunner().invoke(app, ["ship", f"{MODELS}:plain", "-o", str(tmp_path / "b"), "--json", "-"])
    told = json.loads(ended.stdout)
    assert told["path"] == str(tmp_path / "b")
    assert told["manifest"] == json.loads((tmp_path / "b/manifest.json").read_text())
    assert 0 <= told["differences"]["freeze"] < 1e-4
