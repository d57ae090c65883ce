"""Builds an AOTInductor package of a model: exports it with its dynamic sizes, and compiles it ahead of time."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.export import Dim

from opwright.bundle.compare.outputs import Flat
from opwright.bundle.compile.archive import write_again
from opwright.bundle.compile.guards import broken_guard
from opwright.bundle.compile.level import level_flags, level_settings
from opwright.bundle.compile.precision import channels_last, for_bfloat16
from opwright.bundle.compile.processor import features_needed
from opwright.bundle.error_summary import error_summary
from opwright.bundle.format.manifest import Dimension, InputDim
from opwright.bundle.source import shape
from opwright.bundle.source.saved import load_package
from opwright.bundle.suppress_output import suppress_output
from opwright.cache.cache import Cache
from opwright.errors import BundleError
from opwright.toolchain.compiler import inductor_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torch.export import ExportedProgram

    from opwright.bundle.compile.compilation import Compilation
    from opwright.bundle.source.samples import Inputs
    from opwright.bundle.source.shape import Size

_METADATA = "opwright.precision"
# How torch.export reports a size that should have stayed dynamic.
_FIXED = re.compile(r"L\['inputs'\]\[(\d+)\]\.size\(\)\[(\d+)\] as dynamic but your code specialized it")


@dataclass(frozen=True)
class Package:
    """The facts about a package that the manifest records.

    Attributes:
        called: the names of the operators that it calls; None if they are unknown.
        features: the processor features that it needs.
        equal_dims: dimensions that must have equal sizes, which the compiled code does not check.
    """

    called: list[str] | None
    features: tuple[str, ...] = ()
    equal_dims: tuple[tuple[InputDim, ...], ...] = ()


def write_package(work: Compilation, inputs: Inputs, cpu: str) -> Package:
    """Write the model as an AOTInductor package, and compare it with its goldens.

    Args:
        work: the model, and the goldens to compare it with.
        inputs: its inputs, with their dynamic sizes.
        cpu: the processor level to compile for.

    Raises:
        BundleError: the model cannot be exported or compiled, or its results change.
    """
    with torch.no_grad():
        if work.source.kind == "aoti" and work.source.path is not None:
            return _copied(work, work.source.path)
        program = _exported(work, inputs)
        features = _compiled(program, work, cpu)
        work.comparator.compare("AOTInductor", load_package(work.path, work.device))
        return Package(_called(program), features, _equal_dims(program, inputs))


def _copied(work: Compilation, package: Path) -> Package:
    source, precision = work.source, work.precision
    if precision != "float32":
        msg = f"{source.name} is already compiled, so its precision cannot be changed: omit --precision {precision}"
        raise BundleError(msg)
    work.comparator.compare("the original package", source.model)
    shutil.copyfile(package, work.path)
    work.notes.append(f"{source.name} was compiled elsewhere, so the processor features that it needs are unknown")
    return Package(None)


def _exported(work: Compilation, inputs: Inputs) -> ExportedProgram:
    source, precision = work.source, work.precision
    if source.kind == "torchscript":
        msg = (
            f"{source.name} is TorchScript, which cannot be compiled into a package: name the callable that "
            "creates the model, use --format torchscript, or see `opwright migrate`"
        )
        raise BundleError(msg)
    if source.program is not None:
        if precision != "float32":
            msg = (
                f"{source.name} is already exported, so its precision cannot be changed: name the callable that "
                f"creates the model, or omit --precision {precision}"
            )
            raise BundleError(msg)
        work.comparator.compare("the original exported program", source.model)
        return source.program
    model: Any = source.model
    if precision == "bfloat16":
        return _export(for_bfloat16(model, work), inputs, work)
    # For a GPU, Inductor chooses the layout.
    return _export(Flat(channels_last(model) if work.device == "cpu" else model).eval(), inputs, work)


def _export(model: nn.Module, inputs: Inputs, work: Compilation) -> ExportedProgram:
    work.progress.step("exporting")
    given, sizes = work.comparator.goldens[0].fresh(), shape.middle(inputs.shapes)
    if any(one.varies for one in inputs.shapes):
        # The export would specialize a size of 0 or 1.
        given = tuple(shape.stretched(tensor, size) for tensor, size in zip(given, sizes, strict=True))
    free = tuple(
        {at: _free(dim) for at, dim in enumerate(one.dims) if isinstance(dim, Dimension)} for one in inputs.shapes
    )
    try:
        with suppress_output():
            program = torch.export.export(model, given, dynamic_shapes={"inputs": free}, strict=False)
    except Exception as error:
        raise BundleError(_why_not_exported(error, inputs)) from error
    _check_ranges(program, inputs)
    if condition := broken_guard(program, inputs):
        msg = (
            f"the exported model is correct only if {condition}: its code depends on that. Narrow the sizes with "
            "--shape, or change the model"
        )
        raise BundleError(msg)
    return program


def _free(dim: Dimension) -> Any:
    return Dim.DYNAMIC(min=dim.min, max=dim.max)


def _check_ranges(program: ExportedProgram, inputs: Inputs) -> None:
    """Check that the program accepts the claimed sizes: the export narrows them silently."""
    for name, one, sizes in zip(inputs.names, inputs.shapes, _sizes(program), strict=True):
        for at, dim in enumerate(one.dims):
            if not isinstance(dim, Dimension):
                continue
            size = sizes[at]
            if isinstance(size, int):
                raise BundleError(_narrowed(name, one.dims, at, size))
            if not size.node.expr.is_Symbol:
                msg = (
                    f"dimension {at} of {name!r} must be {size.node.expr}, computed from another size, which a "
                    "bundle cannot express: make the model depend on one of the two, or fix the size with --shape"
                )
                raise BundleError(msg)
            found = program.range_constraints[size.node.expr]
            # The export assumes nothing about the sizes 0 and 1.
            least = dim.min if found.lower <= 2 else max(dim.min, int(found.lower))
            most = None if not found.upper.is_Integer or found.upper > shape.LARGEST else int(found.upper)
            if least > dim.min or (most is not None and (dim.max is None or most < dim.max)):
                raise BundleError(_narrowed(name, one.dims, at, Dimension(least, most)))


def _equal_dims(program: ExportedProgram, inputs: Inputs) -> tuple[tuple[InputDim, ...], ...]:
    """The dimensions that must have equal sizes, as the export found."""
    dims: dict[str, list[InputDim]] = {}
    for name, sizes in zip(inputs.names, _sizes(program), strict=True):
        for at, size in enumerate(sizes):
            if not isinstance(size, int):
                dims.setdefault(str(size.node.expr), []).append(InputDim(name, at))
    return tuple(tuple(equal) for equal in dims.values() if len(equal) > 1)


def _sizes(program: ExportedProgram) -> list[Any]:
    """The shapes of the inputs in the exported program, where a dynamic size is a symbol."""
    users = set(program.graph_signature.user_inputs)
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in users]
    return [node.meta["val"].shape for node in nodes]


def _narrowed(name: str, dims: tuple[Size, ...], at: int, accepted: Size) -> str:
    wanted = ",".join(shape.written(accepted if place == at else dim) for place, dim in enumerate(dims))
    return (
        f"dimension {at} of {name!r} should accept {shape.written(dims[at])}, but the exported model accepts only "
        f"{shape.written(accepted)}: its code depends on that size. Pass --shape {name}={wanted}, or change the "
        "model"
    )


def _why_not_exported(error: Exception, inputs: Inputs) -> str:
    fixed = _FIXED.search(str(error))
    if fixed is None:
        return f"the model cannot be exported: {error_summary(error)}. Try --format torchscript"
    number, at = int(fixed[1]), int(fixed[2])
    name, dims = inputs.names[number], inputs.shapes[number].dims
    sizes = ",".join("N" if place == at else shape.written(dim) for place, dim in enumerate(dims))
    return (
        f"dimension {at} of {name!r} should accept {shape.written(dims[at])}, but the export fixes it: the model uses "
        f"this size as a number, as range({name}.shape[{at}]) does. Pass --shape {name}={sizes} with one size N, or "
        "change the model"
    )


def _compiled(program: ExportedProgram, work: Compilation, cpu: str) -> tuple[str, ...]:
    from torch._inductor import config

    work.progress.step("compiling (AOTInductor)")
    level = {**level_settings(cpu), **inductor_settings()}
    settings = {
        "freezing": True,
        # The names in these assertions, which only a debugging variable enables, are addresses in this process.
        "size_asserts": False,
        # Precompiling takes longer than one model gains from it, and writes 300 MB of temporary files.
        "aot_inductor.precompile_headers": False,
        "aot_inductor.metadata": {_METADATA: work.precision},
        **level,
    }
    # Line numbers and folders of this machine are useless on another one. PyTorch 2.11 and 2.12 write none.
    if hasattr(config.aot_inductor, "enable_line_tables"):
        settings["aot_inductor.enable_line_tables"] = False
    with _cache_folder():
        try:
            compile_and_package = torch._inductor.aoti_compile_and_package
            saved = io.BytesIO()
            with suppress_output():
                compile_and_package(program, package_path=saved, inductor_configs=settings)
        except Exception as error:
            msg = f"AOTInductor cannot compile the model: {error_summary(error)}"
            raise BundleError(msg) from error
        write_again(saved, work.path)
        return features_needed(level_flags(level), work.notes.append)


@contextlib.contextmanager
def _cache_folder() -> Iterator[None]:
    """A folder of opwright for Inductor's cache, whose name becomes part of the compiled code."""
    name = "TORCHINDUCTOR_CACHE_DIR"
    before = os.environ.get(name)
    with Cache().using_foreign_folder("inductor") as folder:
        os.environ[name] = str(folder)
        try:
            yield
        finally:
            if before is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = before


def _called(program: ExportedProgram) -> list[str]:
    targets = {
        node.target
        for module in program.graph_module.modules()
        if isinstance(module, torch.fx.GraphModule)
        for node in module.graph.nodes
        if node.op == "call_function"
    }
    return sorted({target._schema.name for target in targets if isinstance(target, torch._ops.OpOverload)})  # noqa: SLF001  its name is not public
