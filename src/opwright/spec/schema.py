"""The schema of an operator, read from the annotations of its reference."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opwright.errors import SpecError
from opwright.spec.annotations import arguments_from_text, results_from_text, schema_from_annotations
from opwright.spec.stand_in import require_pytorch, standing_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class Parameter:
    """One argument of a schema.

    Attributes:
        name: its name.
        type: its type as TorchScript annotates it: `Tensor`, `Optional[Tensor]`, `List[int]`, `ScalarType`.
        keyword_only: whether it follows a `*`.
        mutated: whether the operator mutates it.
    """

    name: str
    type: str
    keyword_only: bool = False
    mutated: bool = False

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return self.type.startswith("List[")

    @property
    def holds_tensors(self) -> bool:
        """Whether it is a tensor, an optional tensor or a list of tensors."""
        return "Tensor" in self.type

    @property
    def schema_type(self) -> str:
        """Its type in schema syntax, without alias annotations: `Tensor?`, `SymInt[]`."""
        return schema_type(self.type)


def schema_of(reference: Callable[..., Any], name: str, mutates: Sequence[str] = ()) -> str:
    """The operator schema of `reference`, in the syntax of `native_functions.yaml`.

    Args:
        reference: a function whose parameters and result are all annotated.
        name: the operator's name, without its namespace.
        mutates: the names of the tensors that the operator mutates.

    Raises:
        SpecError: an annotation is missing, or has no schema type.
    """
    if (types := standing_in()) is not None:
        known = schema_from_annotations(reference, name, mutates, types)
        return known if known is not None else require_pytorch()
    # Imported here, so that describing operators does not import torch.
    from torch.library import infer_schema

    try:
        return infer_schema(reference, mutates_args=tuple(mutates), op_name=name)
    except (ValueError, TypeError) as error:
        code = reference.__code__
        text = str(error).removeprefix("infer_schema(func): ")
        reason = re.split(r" The valid types are:| Please file an issue| Got func with", text)[0]
        msg = (
            f"operator {name!r} ({code.co_filename}:{code.co_firstlineno}) has no schema: {reason} "
            "Annotate each parameter and the result with Tensor, int, float, bool, str, torch.dtype, "
            "torch.device, or a Sequence or Optional of these; defaults must be numbers, strings, dtypes or None."
        )
        raise SpecError(msg) from error


def schema_of_overload(overload: Any) -> Any:
    """PyTorch's `FunctionSchema` of an overload."""
    return overload._schema  # noqa: SLF001  it has no public name


def schema_of_text(schema: str) -> Any:
    """PyTorch's `FunctionSchema`, parsed from its text."""
    import torch

    return torch._C.parse_schema(schema)


def parameters_of(schema: str) -> tuple[Parameter, ...]:
    """The arguments of `schema`, in order."""
    if standing_in() is not None:
        known = arguments_from_text(schema)
        return tuple(Parameter(*one) for one in known) if known is not None else require_pytorch()
    return tuple(
        Parameter(
            argument.name,
            str(argument.real_type),
            argument.kwarg_only,
            argument.alias_info is not None and argument.alias_info.is_write,
        )
        for argument in schema_of_text(schema).arguments
    )


def results_of(schema: str) -> tuple[str, ...]:
    """The types of the results of `schema`, as TorchScript annotates them: `("Tensor", "List[Tensor]")`."""
    if standing_in() is not None:
        known = results_from_text(schema)
        return tuple(known) if known is not None else require_pytorch()
    return tuple(str(result.type) for result in schema_of_text(schema).returns)


def schema_type(annotation: str) -> str:
    """A TorchScript type, such as `List[Optional[Tensor]]`, in schema syntax: `Tensor?[]`."""
    if inner := re.fullmatch(r"Optional\[(.*)\]", annotation):
        return f"{schema_type(inner[1])}?"
    if inner := re.fullmatch(r"List\[(.*)\]", annotation):
        return f"{schema_type(inner[1])}[]"
    return "SymInt" if annotation == "int" else annotation


def require_same_parameters(what: str, function: Callable[..., Any], reference: Callable[..., Any]) -> None:
    """Check that a function has the same parameters as a reference.

    Raises:
        SpecError: they differ; the message starts with `what`.
    """
    takes, expected = (list(inspect.signature(one).parameters) for one in (function, reference))
    if takes != expected:
        msg = f"{what} must have the operator's parameters, ({', '.join(expected)}), but has ({', '.join(takes)})"
        raise SpecError(msg)
