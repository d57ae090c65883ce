"""A library: one namespace of operators, described in one folder."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from opwright.errors import SpecError
from opwright.spec.backward import describe_backward
from opwright.spec.op import Op
from opwright.spec.training_form import describe_training_form

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch

SOURCE_SUFFIXES = frozenset({".cpp", ".cc", ".cxx", ".c++", ".cu"})
# The namespaces of PyTorch's own operators, and attributes of `torch.ops`: an operator in one of them would shadow a
# built-in one, or be shadowed by it.
RESERVED_NAMESPACES = frozenset(
    {"_C", "aten", "c10d", "debugprims", "export", "higher_order", "import_module", "inductor", "load_library"}
    # opwright's own: references for the autograd bridge.
    | {"opwright_composite"}
    | {"loaded_libraries", "mkl", "mkldnn", "mkldnn_prepacked", "onednn", "onnx", "prim", "prims", "profiler"}
    | {"quantization", "quantized", "quantized_decomposed", "rngprims", "sparse", "static_runtime", "streams"}
    | {"symm_mem", "torch", "torchvision"}
)


class Library:
    """One namespace of operators, built from sources or registered elsewhere.

    A library with `imports` or `objects` is external: it describes operators that exist already, and builds, derives
    and registers nothing for them.

    Args:
        namespace: the part before `::` in the operators' names.
        sources: C++ and CUDA files, relative to the folder of the file that creates the library.
        packages: names of pkg-config packages that the sources require, such as `opencv4`.
        include_dirs: additional include directories, relative to the same folder.
        cflags: additional flags for the C++ compiler.
        cuda_cflags: additional flags for nvcc.
        ldflags: additional flags for the linker.
        abi: `"stable"`, `"full"`, or None to detect it from what the sources include.
        imports: modules that register the operators when they are imported, such as `torchvision`; `torch` for
            PyTorch's own operators.
        objects: shared objects that register the operators when they are opened, relative to the same folder.

    Raises:
        SpecError: the namespace is not an identifier, or is PyTorch's own in a library that is not external; a source
            is missing; or an external library has sources.

    Example:
        library = opwright.Library("opencv", sources=["cpu.cpp"], packages=["opencv4"])

        @library.op
        def invert(image: Tensor) -> Tensor:
            return 255 - image
    """

    def __init__(
        self,
        namespace: str,
        sources: Sequence[str] = (),
        *,
        packages: Sequence[str] = (),
        include_dirs: Sequence[str] = (),
        cflags: Sequence[str] = (),
        cuda_cflags: Sequence[str] = (),
        ldflags: Sequence[str] = (),
        abi: str | None = None,
        imports: Sequence[str] = (),
        objects: Sequence[str | Path] = (),
    ) -> None:
        # The folder of the calling op.py; sources are relative to it.
        caller = sys._getframe(1).f_globals.get("__file__")  # noqa: SLF001  inspect.stack() reads every frame's source
        self.root = Path(caller).resolve().parent if caller else Path.cwd()
        self.imports = _listed(imports, "imports")
        self.objects = [(self.root / path).resolve() for path in _listed(objects, "objects")]
        self.namespace = _checked_namespace(namespace, is_external=self.is_external)
        self.sources = [_checked_source(self.root, source, namespace) for source in _listed(sources, "sources")]
        self.packages = _listed(packages, "packages")
        self.include_dirs = [(self.root / folder).resolve() for folder in _listed(include_dirs, "include_dirs")]
        self.cflags = _listed(cflags, "cflags")
        self.cuda_cflags = _listed(cuda_cflags, "cuda_cflags")
        self.ldflags = _listed(ldflags, "ldflags")
        self.abi = abi
        if self.is_external and self.sources:
            msg = (
                f"library {namespace!r} has both sources, and imports or objects that register its operators: pass "
                "sources to build operators, or imports and objects to describe existing ones"
            )
            raise SpecError(msg)
        self.ops: dict[str, Op] = {}

    def __repr__(self) -> str:
        return f"<Library {self.namespace!r}: {', '.join(self.ops) or 'no operators'}>"

    @property
    def is_external(self) -> bool:
        """Whether the operators are registered elsewhere."""
        return bool(self.imports or self.objects)

    @overload
    def op(self, reference: Callable[..., Any], /) -> Op: ...
    @overload
    def op(
        self,
        /,
        *,
        name: str | None = None,
        mutates: Sequence[str] = (),
        differentiable: Sequence[str] | None = None,
        vmap: bool = False,
        tolerance: Mapping[torch.dtype, float] | None = None,
    ) -> Callable[[Callable[..., Any]], Op]: ...
    def op(
        self,
        reference: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        mutates: Sequence[str] = (),
        differentiable: Sequence[str] | None = None,
        vmap: bool = False,
        tolerance: Mapping[torch.dtype, float] | None = None,
    ) -> Op | Callable[[Callable[..., Any]], Op]:
        """Describe an operator by its reference: a typed, documented, plain PyTorch function.

        Args:
            reference: the function; its name becomes the operator's.
            name: a different name for the operator; in an external library it may have an overload, such as
                `sum.dim_IntList`.
            mutates: the names of the tensors that the operator mutates.
            differentiable: the names of the tensors that have a gradient; by default all floating-point ones.
            vmap: claim that `torch.vmap` over the operator works.
            tolerance: by dtype, the absolute difference from the reference to allow in addition to rounding; for
                example 1 for integers that the kernel rounds from a value that it computes in fewer bits.

        Raises:
            SpecError: an operator with this name exists already, or the name is not valid.
        """

        def describe(reference: Callable[..., Any]) -> Op:
            op = Op(
                self,
                reference,
                name=reference.__name__ if name is None else _checked_name(name, is_external=self.is_external),
                mutates=_listed(mutates, "mutates"),
                differentiable=None if differentiable is None else _listed(differentiable, "differentiable"),
                vmap=vmap,
                tolerance=tolerance,
            )
            self.add(op)
            return op

        return describe if reference is None else describe(reference)

    def add(self, op: Op) -> None:
        """Add an operator to the library.

        Raises:
            SpecError: an operator with this name exists already.
        """
        if op.name in self.ops:
            first = self.ops[op.name].reference.__code__
            msg = (
                f"operator {op.qualified_name} is described twice, first at "
                f"{first.co_filename}:{first.co_firstlineno}; give one of them another name"
            )
            raise SpecError(msg)
        self.ops[op.name] = op

    def describe_backward(
        self,
        forward: Op,
        reference: Callable[..., Any] | None,
        saves: Sequence[str] | None,
        differentiable: Sequence[str] | None,
    ) -> Op | Callable[[Callable[..., Any]], Op]:
        """Implement `Op.backward`."""
        return describe_backward(forward, reference, saves, differentiable)

    def describe_training_form(self, op: Op, reference: Callable[..., Any]) -> Op:
        """Implement `Op.for_training`."""
        return describe_training_form(op, reference)

    def schemas(self) -> list[str]:
        """The schemas of the operators, in definition order."""
        return [op.schema for op in self.ops.values()]


def _checked_namespace(namespace: str, *, is_external: bool) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", namespace):
        msg = f"the namespace {namespace!r} is not an identifier; use letters, digits and underscores, as in 'my_ops'"
        raise SpecError(msg)
    if namespace in RESERVED_NAMESPACES and not is_external:
        msg = (
            f"the namespace {namespace!r} is reserved for PyTorch; choose another one, such as 'my_{namespace}'. To "
            "describe operators that are registered there, pass the module that registers them: imports=[...]"
        )
        raise SpecError(msg)
    return namespace


def _checked_name(name: str, *, is_external: bool) -> str:
    identifier = "[A-Za-z_][A-Za-z0-9_]*"
    if re.fullmatch(rf"{identifier}(\.{identifier})?", name) is None:
        msg = f"the operator name {name!r} is not an identifier; use letters, digits and underscores, as in 'my_op'"
        raise SpecError(msg)
    if "." in name and not is_external:
        msg = f"the operator name {name!r} has an overload, which only external libraries support; use a plain name"
        raise SpecError(msg)
    return name


def _checked_source(root: Path, source: str, namespace: str) -> Path:
    path = (root / source).resolve()
    if path.suffix not in SOURCE_SUFFIXES:
        suffixes = ", ".join(sorted(SOURCE_SUFFIXES))
        msg = f"{source!r}, a source of library {namespace!r}, is neither C++ nor CUDA: expected {suffixes}"
        raise SpecError(msg)
    if not path.is_file():
        msg = f"{source!r}, a source of library {namespace!r}, is missing: {path} does not exist"
        raise SpecError(msg)
    return path


def _listed(values: Sequence[str | Path], what: str) -> list[str]:
    # A string is also a sequence of strings, so passing one is a common mistake with a confusing result.
    if isinstance(values, str):
        msg = f"{what}={values!r} is one string; write a list: {what}=[{values!r}]"
        raise SpecError(msg)
    return [str(value) for value in values]
