"""Makes a package of AOTInductor's of a model: exported with the sizes that may vary, and compiled ahead of time."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.export import Dim

from opwright.builder.cache import Cache
from opwright.bundle.choices import LEVELS
from opwright.bundle.compare.outputs import Flat
from opwright.bundle.compile.archive import write_again
from opwright.bundle.compile.guards import broken_guard
from opwright.bundle.compile.precision import channels_last, for_bfloat16
from opwright.bundle.compile.processor import features_needed
from opwright.bundle.error_summary import cause
from opwright.bundle.format.manifest import Dimension, Place
from opwright.bundle.source import shape
from opwright.bundle.source.saved import load_package
from opwright.bundle.suppress_output import quiet
from opwright.errors import BundleError
from opwright.toolchain.compiler import find_cxx

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torch.export import ExportedProgram

    from opwright.bundle.compare.comparator import Judge
    from opwright.bundle.source.find import Source
    from opwright.bundle.source.samples import Inputs
    from opwright.bundle.source.shape import Size

_METADATA = "opwright.precision"
# What torch.export says of a size that it was told to leave open.
_FIXED = re.compile(r"L\['inputs'\]\[(\d+)\]\.size\(\)\[(\d+)\] as dynamic but your code specialized it")


@dataclass(frozen=True)
class Package:
    """What is to be known of a package that was written.

    Attributes:
        called: the names of the operators that it calls; None where they cannot be known.
        features: what it needs of a processor.
        tied: dimensions that have to be of one size, which its code does not look at.
    """

    called: list[str] | None
    features: tuple[str, ...] = ()
    tied: tuple[tuple[Place, ...], ...] = ()


def write_package(source: Source, inputs: Inputs, path: Path, judge: Judge, *, precision: str, cpu: str) -> Package:
    """Write the model to `path`, compared with its goldens.

    Raises:
        BundleError: it cannot be exported or compiled, or its results change.
    """
    with torch.no_grad():
        if source.kind == "aoti" and source.path is not None:
            return _taken(source, path, judge, precision)
        program = _exported(source, inputs, judge, precision)
        features = _compiled(program, path, judge, precision, cpu)
        judge.examine("AOTInductor", load_package(path))
        return Package(_called(program), features, _tied(program, inputs))


def _taken(source: Source, path: Path, judge: Judge, precision: str) -> Package:
    if precision != "float32":
        msg = (
            f"{source.name} is compiled already, and its precision cannot be changed: leave --precision {precision} out"
        )
        raise BundleError(msg)
    judge.examine("the package as it was given", source.model)
    shutil.copyfile(str(source.path), path)
    judge.note(f"{source.name} was compiled elsewhere: which features it needs of a processor is not known")
    return Package(None)


def _exported(source: Source, inputs: Inputs, judge: Judge, precision: str) -> ExportedProgram:
    if source.kind == "torchscript":
        msg = (
            f"{source.name} is TorchScript, of which no package can be compiled as it stands: name the callable that "
            "makes the model, use --format torchscript, or see `opwright migrate`"
        )
        raise BundleError(msg)
    if source.program is not None:
        if precision != "float32":
            msg = (
                f"{source.name} is exported already, and its precision cannot be changed: name the callable that makes "
                f"the model, or leave --precision {precision} out"
            )
            raise BundleError(msg)
        judge.examine("the exported program as it was given", source.model)
        return source.program
    model: Any = source.model
    inside = for_bfloat16(model, judge) if precision == "bfloat16" else Flat(channels_last(model)).eval()
    return _export(inside, inputs, judge)


def _export(model: nn.Module, inputs: Inputs, judge: Judge) -> ExportedProgram:
    judge.step("exporting")
    given, sizes = judge.goldens[0].fresh(), shape.middle(inputs.shapes)
    if any(one.varies for one in inputs.shapes):
        # At a size of 0 or 1 the export would take a dimension for fixed.
        given = tuple(shape.stretched(tensor, size) for tensor, size in zip(given, sizes, strict=True))
    free = tuple(
        {at: _free(dim) for at, dim in enumerate(one.dims) if isinstance(dim, Dimension)} for one in inputs.shapes
    )
    try:
        with quiet():
            program = torch.export.export(model, given, dynamic_shapes={"inputs": free}, strict=False)
    except Exception as error:
        raise BundleError(_why_not_exported(error, inputs)) from error
    _check_ranges(program, inputs)
    if condition := broken_guard(program, inputs):
        msg = (
            f"the model as it is exported is right where {condition}: what it does depends on that. Narrow the sizes "
            "with --shape, or change the model"
        )
        raise BundleError(msg)
    return program


def _free(dim: Dimension) -> Any:
    return Dim.DYNAMIC(min=dim.min, max=dim.max)


def _check_ranges(program: ExportedProgram, inputs: Inputs) -> None:
    """Check that the program takes the sizes that are claimed: the export narrows them without a word."""
    for name, one, sizes in zip(inputs.names, inputs.shapes, _sizes(program), strict=True):
        for at, dim in enumerate(one.dims):
            if not isinstance(dim, Dimension):
                continue
            size = sizes[at]
            if isinstance(size, int):
                raise BundleError(_narrowed(name, one.dims, at, size))
            if not size.node.expr.is_Symbol:
                msg = (
                    f"dimension {at} of {name!r} has to be {size.node.expr}, computed from another size, which a "
                    "bundle cannot say: let the model take one of the two sizes alone, or give --shape with one size"
                )
                raise BundleError(msg)
            found = program.range_constraints[size.node.expr]
            # 0 and 1 are sizes that the export never looks at.
            least = dim.min if found.lower <= 2 else max(dim.min, int(found.lower))
            most = None if not found.upper.is_Integer or found.upper > shape.LARGEST else int(found.upper)
            if least > dim.min or (most is not None and (dim.max is None or most < dim.max)):
                raise BundleError(_narrowed(name, one.dims, at, Dimension(least, most)))


def _tied(program: ExportedProgram, inputs: Inputs) -> tuple[tuple[Place, ...], ...]:
    """The dimensions that the export found to be equal whatever their size."""
    places: dict[str, list[Place]] = {}
    for name, sizes in zip(inputs.names, _sizes(program), strict=True):
        for at, size in enumerate(sizes):
            if not isinstance(size, int):
                places.setdefault(str(size.node.expr), []).append(Place(name, at))
    return tuple(tuple(equal) for equal in places.values() if len(equal) > 1)


def _sizes(program: ExportedProgram) -> list[Any]:
    """The shapes of the inputs as the export has them: a size that may vary is a symbol."""
    users = set(program.graph_signature.user_inputs)
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in users]
    return [node.meta["val"].shape for node in nodes]


def _narrowed(name: str, dims: tuple[Size, ...], at: int, taken: Size) -> str:
    wanted = ",".join(shape.written(taken if place == at else dim) for place, dim in enumerate(dims))
    return (
        f"dimension {at} of {name!r} is to take {shape.written(dims[at])}, and the model as it is exported takes "
        f"{shape.written(taken)} alone: what it does depends on that size. Give --shape {name}={wanted}, or change the "
        "model"
    )


def _why_not_exported(error: Exception, inputs: Inputs) -> str:
    fixed = _FIXED.search(str(error))
    if fixed is None:
        return f"the model cannot be exported: {cause(error)}. Try --format torchscript"
    number, at = int(fixed[1]), int(fixed[2])
    name, dims = inputs.names[number], inputs.shapes[number].dims
    sizes = ",".join("N" if place == at else shape.written(dim) for place, dim in enumerate(dims))
    return (
        f"dimension {at} of {name!r} is to take {shape.written(dims[at])}, and the export fixes it: the model uses "
        f"this size as a number, as range({name}.shape[{at}]) does. Give --shape {name}={sizes} with one size N, or "
        "change the model"
    )


def _compiled(program: ExportedProgram, path: Path, judge: Judge, precision: str, cpu: str) -> tuple[str, ...]:
    judge.step("compiling (AOTInductor)")
    level = {} if cpu == "native" else {"cpp.march": cpu, "cpp.simdlen": LEVELS[cpu]}
    settings = {
        "freezing": True,
        # What it writes of lines and folders of this machine is of no use on another one; and the names in these
        # assertions, which only a debugging variable enables, are addresses in this process.
        "aot_inductor.enable_line_tables": False,
        "size_asserts": False,
        "aot_inductor.metadata": {_METADATA: precision},
        **level,
    }
    with _cache_folder():
        try:
            compile_and_package = torch._inductor.aoti_compile_and_package
            with quiet():
                compile_and_package(program, package_path=str(path), inductor_configs=settings)
        except Exception as error:
            msg = f"AOTInductor cannot compile the model: {cause(error)}"
            raise BundleError(msg) from error
        write_again(path)
        return features_needed(_flags(level), judge.note)


def _flags(level: dict[str, Any]) -> list[str]:
    """The compiler's flags that choose a processor, as AOTInductor composes them."""
    from torch._inductor import config, cpp_builder, cpu_vec_isa

    with config.patch(level):
        chosen = cpp_builder._get_cpu_arch_cflags(str(find_cxx().path))  # noqa: SLF001  it has no public name
        return [*(f"-{flag}" for flag in chosen), *cpu_vec_isa.pick_vec_isa().build_arch_flags().split()]


@contextlib.contextmanager
def _cache_folder() -> Iterator[None]:
    """A folder of opwright's own for what Inductor keeps: its name goes into what is compiled."""
    name = "TORCHINDUCTOR_CACHE_DIR"
    before = os.environ.get(name)
    os.environ[name] = str(Cache().root / "inductor")
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
