"""Ships a model: makes a bundle of it, its operators, and what it gives for its samples."""

from __future__ import annotations

import copy
import platform
import shutil
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from opwright.bundle.choices import FORMATS, LEVELS, PRECISIONS
from opwright.bundle.compare.comparator import Judge
from opwright.bundle.compare.goldens import run_goldens, write_golden
from opwright.bundle.compare.tolerance import TOLERANCES
from opwright.bundle.compile.aoti import Package, write_package
from opwright.bundle.compile.processor import features_here, features_needed
from opwright.bundle.compile.torchscript import write_torchscript
from opwright.bundle.format.manifest import FORMAT, Cpu, Input, Manifest, ModelFile, TorchVersions
from opwright.bundle.format.write import writing
from opwright.bundle.migrate import SAME_MODEL, migrated
from opwright.bundle.pack.libraries import described, open_libraries, this_release
from opwright.bundle.pack.self_contained import add_runtime
from opwright.bundle.progress import ShipProgress
from opwright.bundle.source import shape
from opwright.bundle.source.find import find_source
from opwright.bundle.source.samples import find_inputs, read_samples
from opwright.bundle.source.weights import load_weights
from opwright.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opwright.bundle.compare.goldens import Goldens
    from opwright.bundle.pack.libraries import Opened
    from opwright.bundle.source.find import Source
    from opwright.bundle.source.samples import Inputs

_MODEL_FILES = {"torchscript": "model.pt", "aoti": "model.pt2"}


@dataclass(frozen=True)
class Shipped:
    """A bundle that was written.

    Attributes:
        path: its folder.
        manifest: what it says of itself.
        notes: what the user should know.
        differences: how far results lay from eager PyTorch's, or the migrated model's, after each transform, as a part
            of the largest magnitude.
        by_output: the same by the output's name.
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
    force: bool = False,
    progress: ShipProgress | None = None,
) -> Shipped:
    """Write a bundle: a folder from which a process without Python runs a model.

    After each transform the samples are run again, and one that changes results is refused. Either the whole bundle is
    written or none.

    Args:
        model: `file.py:callable` or `package.module:callable`, where the callable takes nothing and returns a module; a
            saved model (`.pt`, `.pt2`); or a module. Beside the callable there may be `samples()`, which yields inputs
            (tuples of tensors, lone tensors, or dicts by name), `shapes` and `images`.
        ops: the operator libraries that it calls: folders of an op.py, or shared objects.
        output: the folder to write.
        format: `"torchscript"`, or `"aoti"` for a package that AOTInductor compiles.
        cpu: for which processors a package is compiled: `"native"`, or a level such as `"x86-64-v3"`.
        precision: what is computed in inside; inputs and outputs keep their dtypes.
        device: where the model is to run: `"cpu"`.
        weights: a file with the state dict of the model.
        like: a TorchScript model to migrate from: the module is given its weights, and has to give its results.
        shapes: by the name of an input its shape, such as `float32[1..64,3,224,224]`.
        samples: sample inputs, or a file with them: `.pt`, `.npz`, `.npy`.
        tolerance: how far a result may lie from eager PyTorch's, as a part of the largest magnitude.
        self_contained: put the host program and PyTorch's libraries in as well.
        force: take the place of a bundle that is there.
        progress: where steps are shown.

    Raises:
        BundleError: the model cannot be shipped so; the message says what to do.
        OpwrightError: a library cannot be built or opened; the class says which.
    """
    _check_choices(format=format, cpu=cpu, precision=precision, device=device, tolerance=tolerance)
    with progress or ShipProgress() as shown, writing(Path(output), force=force) as folder:
        shown.step("operator libraries")
        libraries = open_libraries(ops)
        shown.step("model")
        # A module that was handed in stays as it is.
        source = find_source(copy.deepcopy(model) if isinstance(model, torch.nn.Module) else model)
        _check_takes_weights(source, weights or like)
        if weights is not None:
            load_weights(source.model, Path(weights))
        old = migrated(source, Path(like), weights_too=weights is None) if like is not None else None
        given = read_samples(Path(samples)) if isinstance(samples, (str, Path)) else samples
        inputs = find_inputs(source, given, shapes or {})
        truth = "eager PyTorch" if like is None else Path(like).name
        shown.step(f"samples in {truth}")
        goldens = run_goldens(old or source.model, inputs)
        allowed = TOLERANCES[precision] if tolerance is None else tolerance
        judge = Judge(goldens.all, allowed, shown, truth)
        if inputs.made_up:
            judge.note("there are no samples: the goldens are random numbers of the shapes that are said")
        if old is not None:
            judge.examine("the source", source.model, advice=SAME_MODEL)
        file = folder.path / _MODEL_FILES[format]
        if format == "torchscript":
            package = Package(write_torchscript(source, file, judge, precision))
        else:
            package = write_package(source, inputs, file, judge, precision=precision, cpu=cpu)
        listed = described(libraries, package.called, device)
        features = _features(package.features, libraries, judge)
        shown.step("files")
        _copy_libraries(libraries, folder.path)
        names = _write_goldens(goldens, folder.path)
        if self_contained:
            shown.step("the host and the libraries that it needs")
        runtime = add_runtime(folder.path) if self_contained else None
        manifest = Manifest(
            format=FORMAT,
            opwright=version("opwright"),
            # What is chosen among was looked at above.
            model=ModelFile(file.name, cast("Any", format), cast("Any", precision)),
            torch=_torch_versions(format),
            device=cast("Any", device),
            cpu=Cpu(platform.machine(), features),
            cuda=None,
            libraries=listed,
            inputs=_inputs(inputs),
            tied=package.tied,
            outputs=goldens.outputs,
            tolerance=allowed,
            goldens=names,
            runtime=runtime,
            files={},
        )
        whole = folder.finish(manifest)
    outputs = [output.name for output in goldens.outputs]
    by_output = {step: dict(zip(outputs, found, strict=True)) for step, found in judge.by_output.items()}
    return Shipped(folder.target, whole, tuple(judge.notes), judge.differences, by_output)


def _check_choices(*, format: str, cpu: str, precision: str, device: str, tolerance: float | None) -> None:
    for what, value, known in (
        ("format", format, FORMATS),
        ("cpu", cpu, tuple(LEVELS)),
        ("precision", precision, PRECISIONS),
        ("device", device, ("cpu",)),
    ):
        if value not in known:
            msg = f"{what}={value!r} is not to be had: expected {' or '.join(map(repr, known))}"
            raise BundleError(msg)
    if format == "torchscript" and cpu != "native":
        msg = f"TorchScript holds no machine code that cpu={cpu!r} could choose: leave --cpu out, or use --format aoti"
        raise BundleError(msg)
    if tolerance is not None and not 0 <= tolerance < 1:
        msg = f"tolerance={tolerance!r} is no part of the largest magnitude: expected 0 or more, and less than 1"
        raise BundleError(msg)


def _check_takes_weights(source: Source, given: str | Path | None) -> None:
    if given is not None and (source.kind != "module" or not isinstance(source.model, torch.nn.Module)):
        msg = f"{source.name} is a saved model, which has its weights: leave --weights out, or name the callable"
        raise BundleError(msg)


def _features(needed: tuple[str, ...], libraries: list[Opened], judge: Judge) -> tuple[str, ...]:
    features = set(needed)
    for library in libraries:
        if library.flags is None:
            judge.note(f"{library.given} was built elsewhere: which features it needs of a processor is not known")
        else:
            features.update(features_needed(library.flags, judge.note))
    if beyond := sorted(features - features_here()):
        judge.note(f"this machine itself cannot run the bundle: its processor lacks {', '.join(beyond)}")
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
    # What AOTInductor compiles calls into the PyTorch that it was compiled with.
    return TorchVersions(str(torch.__version__), this, this if format == "aoti" else None)


def _inputs(inputs: Inputs) -> tuple[Input, ...]:
    return tuple(
        Input(name, shape.dtype_name(one.dtype), one.dims, image)
        for name, one, image in zip(inputs.names, inputs.shapes, inputs.images, strict=True)
    )
