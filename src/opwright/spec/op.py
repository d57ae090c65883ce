"""One operator: a name, a reference in plain PyTorch, and the schema that follows from it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from opwright.spec.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Op:
    """An operator as its author describes it. Made by `Library.op`; calling it runs the reference.

    Attributes:
        namespace: the library's namespace, the part before `::`.
        name: the operator's name, the part after `::`.
        reference: the plain PyTorch function that says what the operator computes.
        mutates: the names of the tensors that the operator writes to.
    """

    def __init__(self, namespace: str, reference: Callable[..., Any], *, mutates: Sequence[str] = ()) -> None:
        self.namespace = namespace
        self.name = reference.__name__
        self.reference = reference
        self.mutates = tuple(mutates)
        functools.update_wrapper(self, reference)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  the reference decides
        """Run the reference."""
        return self.reference(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Op {self.qualified_name}>"

    @property
    def qualified_name(self) -> str:
        """`namespace::name`, as graphs and the dispatcher write it."""
        return f"{self.namespace}::{self.name}"

    @functools.cached_property
    def schema(self) -> str:
        """The schema without the namespace: `name(Tensor x, float a=1.0) -> Tensor`.

        Raises:
            SpecError: the reference's annotations do not make a schema.
        """
        return schema_of(self.reference, self.name, self.mutates)
