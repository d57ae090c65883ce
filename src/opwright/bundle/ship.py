"""Ships a model: builds a bundle from it, its operators and its goldens."""

from __future__ import annotations

import contextlib
import copy
import platform
import shutil
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from opwright.bundle.choices import FORMATS, LEVELS, PRECISIONS
from opwright.bundle.compare.comparator import Comparator
from opwright.bundle.compare.deviation import TOLERANCES
from opwright.bundle.compare.golden import write_golden
from opwright.bundle.compare.goldens import run_goldens
from opwright.bundle.compile.aoti import Package, write_package
from opwright.bundle.compile.compilation import Compilation
from opwright.bundle.compile.processor import features_needed
from opwright.bundle.compile.torchscript import write_torchscript
from opwright.bundle.format.limits import FORMAT
from opwright.bundle.format.manifest import Cpu, Cuda, Input, Manifest, ModelFile, TorchVersions
from opwright.bundle.format.write import writing
from opwright.bundle.gpu import capability, require_gpu, whole_float32
from opwright.bundle.migrate import SAME_MODEL, migrated
from opwright.bundle.pack.architectures import Served, in_common
from opwright.bundle.pack.libraries import described, open_libraries, this_release
from opwright.bundle.pack.self_contained import add_host
from opwright.bundle.source import shape
from opwright.bundle.source.find import find_source
from opwright.bundle.source.samples import find_inputs, read_samples
from opwright.bundle.source.weights import load_weights
from opwright.errors import BundleError
from opwright.report.progress import Progress
from opwright.toolchain.devices import DEVICES
from opwright.toolchain.machine import processor_features

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opwright.bundle.compare.goldens import Goldens
    from opwright.bundle.pack.architectures import Capability
    from opwright.bundle.pack.libraries import Opened
    from opwright.bundle.source.find import Source
    from opwright.bundle.source.samples import Inputs

_MODEL_FILES = {"torchscript": "model.pt", "aoti": "model.pt2"}


@dataclass(frozen=True)
class Shipped:
    """A bundle that was written.

    Attributes:
        path: its folder.
        manifest: its manifest.
        notes: remarks for the user.
        differences: the deviation from the results of eager PyTorch, or of the migrated model, after each transform:
            the largest difference of an element, relative to its scale.
        by_output: the same, keyed by the output's name.
    """

    path: Path
    manifest: Manifest
    notes: tuple[str, ...]
    differences: dict[str, float]
    by_output: dict[str, dict[str, float]]


def ship(
    model: str | Path | torch.nn.Module,
    ops: Iterable[str | Path] = (),
    *,
    output: str | Path,
    format: str = "torchscript",
    cpu: str = "native",
    precision: str = "float32",
    device: str = "cpu",
    weights: str | Path | None = None,
    like: str | Path | None = None,
    shapes: Mapping[str, str] | None = None,
    samples: str | Path | Iterable[Any] | None = None,
    tolerance: float | None = None,
    self_contained: bool = False,
    trust: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> Shipped:
    """Write a bundle: a folder from which a process without Python runs a model.

    After each transform the samples run again, and a transform that changes results is rejected. The bundle is written
    completely or not at all.

    Args:
        model: `file.py:callable` or `package.module:callable`, where the callable has no parameters and returns a
            module; a saved model (`.pt`, `.pt2`); or a module. The file of the callable may also define `samples()`,
            which yields inputs (tuples of tensors, single tensors, or dicts by name), `shapes` and `images`.
        ops: the operator libraries that it calls: folders with an op.py, or shared objects.
        output: the folder to write.
        format: `"torchscript"`, or `"aoti"` for a package that AOTInductor compiles.
        cpu: the processors that a package is compiled for: `"native"`, or a level such as `"x86-64-v3"`.
        precision: the dtype that the model computes in; inputs and outputs keep their dtypes.
        device: the device that the model will run on: `"cpu"`, or `"cuda"` for a GPU like this machine's. The samples
            may be on any device.
        weights: a file with the model's state dict.
        like: a TorchScript model to migrate from: the module receives its weights, and must return its results.
        shapes: the shape of each input, such as `float32[1..64,3,224,224]`, keyed by the input's name.
        samples: sample inputs, or a file with them: `.pt`, `.npz`, `.npy`.
        tolerance: the largest allowed difference of an element from eager PyTorch, relative to its scale
            (docs/reference/format.md).
        self_contained: add the host program and PyTorch's libraries; not supported for a GPU.
        trust: load saved models (`model`, `like`) that can run arbitrary code on this machine as you. Only for files
            from you, or from people whom you trust.
        force: replace an existing bundle.
        progress: where steps are shown; by default, a line on a terminal.

    Raises:
        BundleError: the model cannot be shipped with these arguments; the message contains a fix.
        OpwrightError: a library cannot be built or loaded; the class names the step.
    """
    _check_choices(format=format, cpu=cpu, precision=precision, device=device, tolerance=tolerance)
    gpu = _gpu(self_contained=self_contained) if device == "cuda" else None
    with (
        progress or Progress(Path(output).name) as shown,
        writing(Path(output), force=force) as folder,
        contextlib.ExitStack() as settings,
    ):
        shown.step("operator libraries")
        libraries = open_libraries(ops, gpu)
        shown.step("model")
        # Do not change the caller's module.
        own = copy.deepcopy(model) if isinstance(model, torch.nn.Module) else model
        source = find_source(own, trust=trust, device=device)
        _check_takes_weights(source, weights or like)
        if weights is not None:
            load_weights(source.model, Path(weights))
        old = None
        if like is not None:
            old = migrated(source, Path(like), weights_too=weights is None, trust=trust, device=device)
        given = read_samples(Path(samples)) if isinstance(samples, (str, Path)) else samples
        inputs = find_inputs(source, given, shapes or {}).on(device)
        if gpu is not None:  # after the author's file has run, which may set it too
            settings.enter_context(whole_float32())
        truth = "eager PyTorch" if like is None else Path(like).name
        shown.step(f"samples in {truth}")
        goldens = run_goldens(old or source.model, inputs)
        allowed = TOLERANCES[precision] if tolerance is None else float(tolerance)
        comparator = Comparator(goldens.all, allowed, truth, on_compare=shown.step)
        work = Compilation(source, folder.path / _MODEL_FILES[format], precision, device, comparator, shown)
        if inputs.made_up:
            work.notes.append("there are no samples: the goldens use random inputs of the given shapes")
        if old is not None:
            comparator.compare("the source", source.model, advice=SAME_MODEL)
        package = Package(write_torchscript(work)) if format == "torchscript" else write_package(work, inputs, cpu)
        listed = described(libraries, package.called, device)
        features = _features(package.features, libraries, work.notes)
        shown.step("files")
        _copy_libraries(libraries, folder.path)
        names = _write_goldens(goldens, folder.path)
        if self_contained:
            shown.step("the host and the libraries that it needs")
        host_program = add_host(folder.path) if self_contained else None
        manifest = Manifest(
            format=FORMAT,
            opwright=version("opwright"),
            # `_check_choices` has validated the choices.
            model=ModelFile(work.path.name, cast("Any", format), cast("Any", precision)),
            torch=_torch_versions(format),
            device=cast("Any", device),
            cpu=Cpu(platform.machine(), features),
            cuda=None if gpu is None else _cuda(gpu, format, libraries, work.notes),
            libraries=listed,
            inputs=_inputs(inputs),
            equal_dims=package.equal_dims,
            outputs=goldens.outputs,
            tolerance=allowed,
            goldens=names,
            host_program=host_program,
            files={},
        )
        whole = folder.finish(manifest)
    outputs = [output.name for output in goldens.outputs]
    by_output = {step: dict(zip(outputs, found, strict=True)) for step, found in comparator.by_output.items()}
    return Shipped(folder.target, whole, tuple(work.notes), comparator.differences, by_output)


def _check_choices(*, format: str, cpu: str, precision: str, device: str, tolerance: float | None) -> None:
    for what, value, known in (
        ("format", format, FORMATS),
        ("cpu", cpu, tuple(LEVELS)),
        ("precision", precision, PRECISIONS),
        ("device", device, DEVICES),
    ):
        if value not in known:
            msg = f"{what}={value!r} is not supported; expected {' or '.join(map(repr, known))}"
            raise BundleError(msg)
    if format == "torchscript" and cpu != "native":
        msg = f"TorchScript contains no machine code, so cpu={cpu!r} has no effect: omit --cpu, or use --format aoti"
        raise BundleError(msg)
    if tolerance is not None and not 0 <= tolerance < 1:
        msg = f"tolerance={tolerance!r} is not supported; expected a relative difference: 0 or more, and less than 1"
        raise BundleError(msg)


def _gpu(*, self_contained: bool) -> Capability:
    """The compute capability of this machine's GPU."""
    if self_contained:
        msg = (
            "a self-contained bundle for a GPU is not supported: PyTorch's CUDA libraries depend on the driver of the "
            "machine. Omit --self-contained, and run the bundle where a CUDA build of PyTorch is installed"
        )
        raise BundleError(msg)
    require_gpu()
    return capability()


def _cuda(gpu: Capability, format: str, libraries: list[Opened], notes: list[str]) -> Cuda | None:
    notes.extend(
        f"{library.given} was built elsewhere, so the GPUs that it supports are unknown"
        for library in libraries
        if library.flags is None
    )
    served = [library.served for library in libraries if library.served is not None]
    if format == "aoti":
        served.append(Served(frozenset({gpu})))
    listed = in_common(served)
    return Cuda(listed) if listed else None


def _check_takes_weights(source: Source, given: str | Path | None) -> None:
    if given is not None and (source.kind != "module" or not isinstance(source.model, torch.nn.Module)):
        msg = f"{source.name} is a saved model, which contains its weights: omit --weights, or name the callable"
        raise BundleError(msg)


def _features(needed: tuple[str, ...], libraries: list[Opened], notes: list[str]) -> tuple[str, ...]:
    features = set(needed)
    for library in libraries:
        if library.flags is None:
            notes.append(f"{library.given} was built elsewhere, so the processor features that it needs are unknown")
        else:
            features.update(features_needed(library.flags, notes.append))
    if beyond := sorted(features - processor_features()):
        notes.append(f"this machine cannot run the bundle: its processor lacks {', '.join(beyond)}")
    return tuple(sorted(features))


def _copy_libraries(libraries: list[Opened], folder: Path) -> None:
    for library in libraries:
        (folder / "lib").mkdir(exist_ok=True)
        shutil.copyfile(library.path, folder / library.file)


def _write_goldens(goldens: Goldens, folder: Path) -> tuple[str, ...]:
    (folder / "goldens").mkdir()
    names = tuple(f"goldens/{at}.pt" for at in range(len(goldens.kept)))
    for name, golden in zip(names, goldens.kept, strict=True):
        write_golden(golden, folder / name)
    return names


def _torch_versions(format: str) -> TorchVersions:
    this = this_release()
    # AOTInductor's code calls into the PyTorch release that compiled it.
    return TorchVersions(str(torch.__version__), this, this if format == "aoti" else None)


def _inputs(inputs: Inputs) -> tuple[Input, ...]:
    return tuple(
        Input(name, shape.dtype_name(one.dtype), one.dims, image)
        for name, one, image in zip(inputs.names, inputs.shapes, inputs.images, strict=True)
    )
