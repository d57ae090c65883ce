"""Opens operator libraries that an op.py describes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch

from opwright.builder.library import build_library
from opwright.errors import LoadError
from opwright.loader.bridge import prepare
from opwright.loader.description import describe
from opwright.loader.external import check_description, is_external, open_external
from opwright.loader.register import define, register
from opwright.loader.reload import Registration, replace_registration, withdraw
from opwright.loader.shared_object import LOADING, open_object
from opwright.spec.find import op_file

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.loader.description import Description
    from opwright.spec import Library


@dataclass(eq=False)
class Loaded:
    """An operator library in this process.

    Attributes:
        library: the library that its op.py describes.
        path: the shared object that was built and opened; None if the library has no native sources.
        ops: its operators, `torch.ops.<namespace>`.
    """

    library: Library
    path: Path | None
    ops: Any = field(repr=False)

    def reload(self, *, verbose: bool = False) -> Loaded:
        """Run op.py again, build what has changed, and replace the operators in this process.

        Handles of the operators, such as `torch.ops.mine.scale`, stay valid and call the new code, with the new schema.
        If any step fails, the former operators remain.

        Args:
            verbose: print each step.

        Returns:
            This object, updated.

        Raises:
            OpwrightError: the description, the toolchain, a source or the load failed; the class shows which.

        Example:
            mine = opwright.open("ops/mine")
            ...  # edit ops/mine/cpu.cpp
            mine.reload()
        """
        for file, session in _sessions.items():
            if session.loaded is self:
                return _open_again(file, verbose=verbose, always=True)
        msg = f"{self!r} was not created by opwright.open: open its op.py, and reload the result"
        raise LoadError(msg)


@dataclass
class _Session:
    """The open state of an op.py."""

    loaded: Loaded
    description: Description
    registration: Registration
    debug: bool


# By op.py.
_sessions: dict[Path, _Session] = {}


def open(path: str | Path, *, verbose: bool = False, debug: bool = False) -> Loaded:
    """Build the library at `path` if needed, and load it.

    A library that is already open is reloaded if its op.py, the modules next to it, its sources, or `debug` have
    changed since.

    Args:
        path: the folder of an op.py, or the file itself.
        verbose: print each step.
        debug: build for a debugger: without optimization, with the lines, variables and macros of the sources.

    Returns:
        The library; the same object each time the same op.py is opened.

    Raises:
        OpwrightError: the description, the toolchain, a source or the load failed; the class shows which.

    Example:
        mine = opwright.open("ops/mine")
        mine.ops.scale(torch.ones(3), factor=4)
    """
    file = op_file(path)
    with LOADING:
        if file in _sessions:
            _sessions[file].debug = debug
            return _open_again(file, verbose=verbose, always=False)
        description = describe(file)
        library = description.library
        built = _build(library, verbose=verbose, debug=debug)
        registration = _open_native(library, built)
        session = _Session(Loaded(library, built, _ops(library)), replace(description, content=""), registration, debug)
        _sessions[file] = session  # even if the next step fails: it is then reloaded when opened again
        _derive(library, built)
        session.description = description
        return session.loaded


def _open_again(file: Path, *, verbose: bool, always: bool) -> Loaded:
    with LOADING:
        session = _sessions[file]
        loaded = session.loaded
        description = describe(file, session.description)
        library = description.library
        built = _build(library, verbose=verbose, debug=session.debug)
        if not always and (description.content, built) == (session.description.content, loaded.path):
            return loaded
        if library.sources and any(op.gradient is not None for op in library.ops.values()):
            prepare()
        session.registration = replace_registration(
            session.registration,
            lambda: _register(library, built),
            lambda: built and open_object(built),
            (str(file), f"{description.content} {built}"),
        )
        session.description = description
        loaded.library, loaded.path, loaded.ops = library, built, _ops(library)
        return loaded


def open_library(library: Library, *, verbose: bool = False, built: Path | None = None) -> Loaded:
    """Build `library` if needed, load it, and register what is derived from its references.

    For operators that opwright does not register, nothing is derived: their schemas are compared with the references.

    Args:
        library: the library.
        verbose: print each step.
        built: its shared object, if it is already built.

    Raises:
        OpwrightError: as for `open`.
    """
    path = built or _build(library, verbose=verbose)
    _open_native(library, path)
    _derive(library, path)
    return Loaded(library, path, _ops(library))


def _build(library: Library, *, verbose: bool, debug: bool = False) -> Path | None:
    return build_library(library, verbose=verbose, debug=debug).path if library.sources else None


def _ops(library: Library) -> Any:
    return getattr(torch.ops, library.namespace)


def _register(library: Library, path: Path | None) -> Registration:
    registration = _open_native(library, path)
    try:
        _derive(library, path)
    except BaseException:
        withdraw(registration)
        raise
    return registration


def _open_native(library: Library, path: Path | None) -> Registration:
    opened = None
    if library.is_external:
        open_external(library)
    elif path is not None:
        opened = open_object(path)
    else:
        define(library)
    described = () if library.is_external else (op.qualified_name for op in library.ops.values())
    return Registration(
        frozenset(described) | (opened.operators if opened is not None else frozenset()),
        opened,
        None if is_external(library, path) else library.namespace,
        None,
        lambda: _register(library, path),
    )


def _derive(library: Library, path: Path | None) -> None:
    if is_external(library, path):
        check_description(library)
    else:
        register(library)
