"""The schema of an operator, read from the annotations of its reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opwright.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def schema_of(reference: Callable[..., Any], name: str, mutates: Sequence[str] = ()) -> str:
    """The operator schema of `reference`, in the syntax of `native_functions.yaml`.

    Args:
        reference: a function whose parameters and result are all annotated.
        name: the operator's name, without its namespace.
        mutates: the names of the tensors that the operator writes to.

    Raises:
        SpecError: an annotation is missing, or has no counterpart among the schema types.
    """
    # Imported here: describing operators must not cost the import of torch.
    from torch.library import infer_schema  # noqa: PLC0415

    try:
        return infer_schema(reference, mutates_args=tuple(mutates), op_name=name)
    except (ValueError, TypeError) as error:
        code = reference.__code__
        reason = str(error).removeprefix("infer_schema(func): ").split(" The valid types are:")[0]
        msg = (
            f"operator {name!r} ({code.co_filename}:{code.co_firstlineno}) has no schema: {reason} "
            "Annotate each parameter and the result with Tensor, int, float, bool, str, torch.dtype, "
            "torch.device, a Sequence of these, or Optional of these."
        )
        raise SpecError(msg) from error
