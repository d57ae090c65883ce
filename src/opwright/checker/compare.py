"""Compares results with the expected ones, and derives the kind of a fault from what its case varies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opwright.checker.cases.case import Case, Family
from opwright.checker.cases.code import call_code
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.spec import derive
from opwright.spec.difference import described

if TYPE_CHECKING:
    from opwright.spec import Op
    from opwright.spec.difference import Difference
    from opwright.spec.expected import Expected

_KINDS = {
    Family.SAMPLE: Kind.WRONG_RESULT,
    Family.DTYPE: Kind.WRONG_DTYPE,
    Family.BAD_DTYPE: Kind.WRONG_DTYPE,
    Family.STRIDES: Kind.STRIDES,
    Family.OFFSET: Kind.OFFSET,
    Family.SIZE: Kind.SIZE,
    Family.EMPTY: Kind.SIZE,
    Family.UNEQUAL: Kind.SIZE,
    Family.RANK: Kind.RANK,
    Family.MAGNITUDE: Kind.MAGNITUDE,
    Family.EDGE: Kind.EDGE_VALUES,
    Family.NUMBER: Kind.EDGE_VALUES,
    Family.SPECIAL: Kind.SPECIAL_VALUES,
    Family.INTEGER: Kind.INTEGER_VALUES,
    Family.OPTION: Kind.OPTION,
    Family.SHARED: Kind.SHARED,
    Family.PAIR: Kind.WRONG_RESULT,
    Family.FAR: Kind.INDEX_OVERFLOW,
    Family.BAD_RANK: Kind.BAD_INPUT,
    Family.BAD_DEVICE: Kind.BAD_INPUT,
}

_BAD = (Family.BAD_RANK, Family.BAD_DEVICE)

# Smaller relative errors are attributed to rounding, larger ones to a wrong dtype, an overflow or a wrong index.
_ROUNDED = 0.25


def fault_of(op: Op, case: Case, wanted: Expected, results: list[Any]) -> Failure | None:
    """The fault in the `results` of calling `op` with `case`; None if they match `wanted`."""
    if wanted.refusal:
        return Failure(
            Kind.BAD_INPUT,
            case.name,
            call_code(op, case),
            got=", ".join(described(result) for result in results),
            expected=f"an error, as raised by the reference: {wanted.refusal}",
        )
    found = wanted.difference(results, op.tolerance)
    if found is None:
        return None
    if found.sort != "type" and found.relative < _ROUNDED and _is_rounding_unknown(case, wanted, results):
        return None
    return Failure(_kind(case, found), case.name, call_code(op, case), got=found.got, expected=found.expected)


def _is_rounding_unknown(case: Case, wanted: Expected, results: list[Any]) -> bool:
    """Whether the permitted rounding is unknown: on a GPU, the reference of a large call is its own oracle.

    Its threads accumulate in a different order from a kernel's. A wrong index causes errors far larger than rounding.
    """
    of_reals = [one.is_cuda and derive.has_gradient(one) for one in derive.tensors(results)]
    return case.family is Family.FAR and wanted.nearby is None and any(of_reals)


def _kind(case: Case, found: Difference) -> Kind:
    """The kind of fault that a difference indicates, given what the case varies."""
    if found.sort == "type" and case.family not in _BAD:
        return Kind.RESULT_TYPE
    if case.family is Family.DTYPE and case.claimed:
        return Kind.WRONG_RESULT  # the kernel reads the dtype correctly, but computes wrongly with it
    if case.family in (Family.DTYPE, Family.BAD_DTYPE, Family.MAGNITUDE) and found.relative < _ROUNDED:
        # Bytes that are read as another dtype, and overflows, produce numbers of another magnitude.
        return Kind.PRECISION
    if found.sort == "tail" and case.family in (Family.SAMPLE, Family.SIZE, Family.UNEQUAL):
        return Kind.TAIL
    return _KINDS[case.family]
