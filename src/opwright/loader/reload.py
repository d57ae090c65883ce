"""Replaces the registrations of a library in this process with those of its changed sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opwright.loader.compiled import forget_compiled
from opwright.loader.entries import keep_entries
from opwright.loader.handles import hold_handles, refresh_handles
from opwright.loader.kernels import schema_named
from opwright.loader.quiet import no_calls
from opwright.loader.register import unregister as unregister_derived
from opwright.loader.rehearsal import rehearse
from opwright.loader.scripted import refuse_scripted, watch_scripted_calls
from opwright.loader.shared_object import LOADING, unregister
from opwright.loader.signatures import forget_signatures, prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from opwright.loader.shared_object import SharedObject


@dataclass
class Registration:
    """The registrations of one library in this process.

    Attributes:
        operators: the names of its operators, such as `mine::scale`.
        shared_object: its native code; None if it has none.
        derived: the namespace in which op.py's definitions, kernels and gradients are registered; None without op.py.
        module: the Python module in the shared object; None if there is none.
        again: registers the library again.
    """

    operators: frozenset[str]
    shared_object: SharedObject | None
    derived: str | None
    module: ModuleType | None
    again: Callable[[], Registration]


def replace_registration(
    former: Registration,
    register: Callable[[], Registration],
    open_native: Callable[[], object],
    content: tuple[str, str],
) -> Registration:
    """Replace `former` with the registrations that `register` makes.

    Handles of the operators, such as `torch.ops.mine.scale`, stay valid and call the new code. Other threads that call
    an operator at the same time wait.

    Args:
        former: the current registrations.
        register: registers the new code.
        open_native: the part of `register` that opens native code, which may terminate the process: a forked copy tries
            it first.
        content: a name of the library, and a text that identifies its new state.

    Returns:
        The new registrations.

    Raises:
        LoadError: the new code cannot be registered, and the former is registered again; or a thread does not leave an
            operator.
    """
    with LOADING:
        names = former.operators
        if former.shared_object is not None and former.shared_object.registers_itself:
            prepare()
        rehearse(lambda: _try(former, open_native), f"replacing {_named(names)}", must_succeed=True)
        watch_scripted_calls()
        with no_calls({name.partition("::")[0] for name in names}):
            hold_handles(names)
            before = _schemas(names)
            try:
                new = _swap(former, register)
                names |= new.operators
            finally:
                refresh_handles(names)
                refuse_scripted([name for name, schema in before.items() if schema != str(schema_named(name))])
        forget_compiled(*content)
        return new


def withdraw(registration: Registration) -> None:
    """Remove the registrations. Handles of the operators raise LoadError from then on."""
    keep_entries(registration.operators)
    hold_handles(registration.operators)
    _remove(registration)
    refresh_handles(registration.operators)


def _try(former: Registration, open_native: Callable[[], object]) -> None:
    keep_entries(former.operators)
    _remove(former)
    open_native()


def _swap(former: Registration, register: Callable[[], Registration]) -> Registration:
    keep_entries(former.operators)
    _remove(former)
    try:
        return register()
    except BaseException:
        former.shared_object = former.again().shared_object
        raise


def _remove(registration: Registration) -> None:
    if registration.derived is not None:
        unregister_derived(registration.derived)
    if registration.shared_object is not None:
        unregister(registration.shared_object)
        if registration.shared_object.registers_itself:
            forget_signatures(registration.operators)


def _schemas(names: Iterable[str]) -> dict[str, str]:
    return {name: str(schema_named(name)) for name in names}


def _named(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "a library without operators"
