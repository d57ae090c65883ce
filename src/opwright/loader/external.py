"""Opens operators that opwright does not register, and compares their schemas with the description."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from opwright.builder.symbols import has_definitions, has_torch_library, mentions
from opwright.errors import LoadError
from opwright.loader.kernels import registered_schema
from opwright.loader.registered import import_operators, registered_instead
from opwright.loader.shared_object import open_operators
from opwright.spec.schema import schema_of_text

if TYPE_CHECKING:
    from opwright.spec import Op
    from opwright.spec.op import OpLibrary

# TorchScript's name of a type that accepts any number.
_NUMBERS = {"int", "float", "bool", "complex"}


def is_external(library: OpLibrary, path: Path | None) -> bool:
    """Whether the operators of `library` are registered by a package, or by their sources themselves.

    Args:
        library: the library.
        path: its shared object, if it has sources.
    """
    return library.is_external or (path is not None and not has_definitions(path, library.namespace))


def open_external(library: OpLibrary) -> None:
    """Import the modules and open the shared objects that register the operators of `library`.

    Raises:
        LoadError: a module cannot be imported, or a shared object cannot be opened.
    """
    for path in library.objects:
        open_operators(path)
    for module in library.imports:
        import_operators(module, str(library.root / "op.py"))


def native_objects(library: OpLibrary) -> list[Path]:
    """The shared objects in this process that register the operators of an external library, except PyTorch's own."""
    if library.objects:
        return library.objects
    pytorch = Path(torch.__file__).resolve().parent
    mapped = {Path(line.split(maxsplit=5)[5].strip()) for line in _maps() if ".so" in line}
    others = sorted(path for path in mapped if pytorch not in path.parents and path.is_file())
    return [
        path
        for path in others
        if mentions(path, f"{library.namespace}::") or has_torch_library(path, library.namespace)
    ]


def _maps() -> list[str]:
    return [line for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line]


def check_description(library: OpLibrary) -> None:
    """Check that the operators that op.py describes are registered, with schemas that match the references.

    Raises:
        LoadError: one is not registered, its schema does not match, or op.py describes something that opwright would
            have to register.
    """
    for op in library.ops.values():
        _check_nothing_to_register(op)
        _check_schema(op)


def _check_nothing_to_register(op: Op) -> None:
    added = {
        "a backward": op.own_gradient,
        "a training form": op.training_form,
        "a fake kernel": op.hand_written_fake,
        "a kernel": op.python_kernels or None,
        "a rule for vmap": op.hand_written_vmap,
    }
    described = [what for what, given in added.items() if given is not None]
    if described:
        msg = (
            f"op.py describes {' and '.join(described)} for {op.qualified_name}, which is registered by a "
            "package, a shared object, or a TORCH_LIBRARY in the sources: opwright registers nothing for it. Register "
            "it where the operator is registered"
        )
        raise LoadError(msg)


def _check_schema(op: Op) -> None:
    registered = registered_schema(op)
    if registered is None:
        msg = f"{op.qualified_name} is not registered. {registered_instead(op.qualified_name)}"
        raise LoadError(msg)
    if why := _disagreement(registered, schema_of_text(f"{op.library.namespace}::{op.schema}")):
        msg = (
            f"the reference of {op.qualified_name} does not match the registered schema: {why}\n"
            f"  registered: {registered}\n  op.py:      {op.library.namespace}::{op.schema}\n"
            "Change the annotations of the reference"
        )
        raise LoadError(msg)


def _disagreement(registered: Any, described: Any) -> str:
    """Why a description does not match the registered schema; empty if it does.

    The description may omit trailing arguments that have a default, and have narrower types: `float` for a Scalar,
    `Tensor` for an optional tensor.
    """
    theirs, ours = list(registered.arguments), list(described.arguments)
    if len(ours) > len(theirs):
        return f"it accepts {len(ours)} arguments, but the operator accepts {len(theirs)}"
    by_keyword = {argument.name: argument for argument in theirs if argument.kwarg_only}
    by_place = dict(enumerate(argument for argument in theirs if not argument.kwarg_only))
    given = set()
    for at, argument in enumerate(ours):
        their = by_keyword.get(argument.name) if argument.kwarg_only else by_place.get(at)
        if their is None:
            how = "by keyword only" if argument.kwarg_only else f"at position {at}"
            return f"the operator accepts no argument {argument.name!r} {how}"
        if not _is_same_name(their.name, argument.name):
            return f"argument {at} is {argument.name!r}, but the operator's is {their.name!r}"
        if why := _argument_disagreement(their, argument):
            return why
        given.add(their.name)
    for argument in theirs:
        if argument.name not in given and not argument.has_default_value():
            return f"the operator requires {argument.name!r}, which the reference does not accept"
    return _results_disagreement(registered, described)


def has_argument_names(op: Op) -> bool:
    """Whether the registered operator accepts the argument names of the reference as keywords."""
    registered = registered_schema(op)
    names = {argument.name for argument in registered.arguments} if registered is not None else set()
    return names >= {parameter.name for parameter in op.parameters}


def _is_same_name(registered: str, described: str) -> bool:
    """Whether the names are equal, or the registered one is not possible in a reference.

    PyTorch numbers the arguments of schemas that it infers from C++, and a Python keyword gets an underscore.
    """
    if keyword.iskeyword(registered):
        return described == f"{registered}_"
    return registered == described or re.fullmatch(r"_\d+", registered) is not None


def _argument_disagreement(their: Any, argument: Any) -> str:
    name = argument.name
    registered, described = str(their.real_type), str(argument.real_type)
    if not _takes(registered, described):
        return f"{name!r} is {described}, but the operator's is {registered}"
    if _is_written(their) != _is_written(argument):
        fix = f"add it to mutates=[{name!r}]" if _is_written(their) else f"remove {name!r} from mutates"
        return f"the operator {'mutates' if _is_written(their) else 'does not mutate'} {name!r}: {fix}"
    if argument.has_default_value() and (
        not their.has_default_value() or their.default_value != argument.default_value
    ):
        default = repr(their.default_value) if their.has_default_value() else "none"
        return f"the default of {name!r} is {argument.default_value!r}, but the operator's is {default}"
    return ""


def _results_disagreement(registered: Any, described: Any) -> str:
    theirs, ours = [str(one.real_type) for one in registered.returns], [str(one.real_type) for one in described.returns]
    if any(one.alias_info is not None and not _is_written(one) for one in registered.returns):
        return "the operator returns views of its arguments, which a check does not support"
    if ours == [] and all(map(_is_written, registered.returns)):
        return ""  # it returns the mutated argument
    if theirs != ours:
        return f"it returns ({', '.join(ours)}), but the operator returns ({', '.join(theirs)})"
    if any(map(_is_written, registered.returns)):
        return "the operator returns its mutated argument: return None from the reference"
    return ""


def _takes(registered: str, described: str) -> bool:
    """Whether an argument of the registered type accepts every value of the described type."""
    if registered == described:
        return True
    if registered == "number":
        return described in _NUMBERS
    if inner := re.fullmatch(r"Optional\[(.*)\]", registered):
        own = re.fullmatch(r"Optional\[(.*)\]", described)
        return _takes(inner[1], own[1] if own else described)
    if inner := re.fullmatch(r"List\[(.*)\]", registered):
        own = re.fullmatch(r"List\[(.*)\]", described)
        return own is not None and _takes(inner[1], own[1])
    return False


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write
