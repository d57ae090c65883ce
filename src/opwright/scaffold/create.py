"""Creates the folder of a new operator library, in one step or not at all."""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.errors import OpwrightError, SpecError
from opwright.scaffold.external import external_files
from opwright.scaffold.flavour import Flavour
from opwright.spec.library import Library
from opwright.storage.draft import drafting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opwright.scaffold.external import Registered


@dataclass(frozen=True)
class Created:
    """A new operator library.

    Attributes:
        folder: its absolute path.
        namespace: the part before `::` in the names of its operators.
        operators: the names of its operators, without the namespace.
        files: the names of its files.
        flavour: the languages that it is written in; None if it describes existing operators.
    """

    folder: Path
    namespace: str
    operators: tuple[str, ...]
    files: tuple[str, ...]
    flavour: Flavour | None


def create(path: Path, flavour: Flavour = Flavour.CPU) -> Created:
    """Create the folder `path` with an operator library whose namespace is the name of the folder.

    Args:
        path: a folder that does not exist or is empty. Missing parent folders are created too.
        flavour: the languages that the library is written in.

    Raises:
        SpecError: its name is not a valid namespace, or `path` is not empty.
        OpwrightError: the folder cannot be written.
    """
    folder = path.resolve()
    namespace = _checked_name(folder.name)
    files = flavour.files(namespace)
    _write(path, folder, files)
    return Created(folder, namespace, (flavour.operator,), tuple(files), flavour)


def create_external(path: Path, namespace: str, imports: list[str], operators: list[Registered]) -> Created:
    """Create the folder `path` with a library that describes existing operators.

    Args:
        path: as for `create`; its name does not matter.
        namespace: the namespace of the operators.
        imports: the modules to import to register the operators.
        operators: the operators.

    Raises:
        SpecError: `path` is not empty.
        OpwrightError: the folder cannot be written.
    """
    folder = path.resolve()
    files = external_files(namespace, imports, operators)
    _write(path, folder, files)
    return Created(folder, namespace, tuple(operator.name for operator in operators), tuple(files), None)


def _write(path: Path, folder: Path, files: Mapping[str, str]) -> None:
    try:
        _check_free(path, folder)
        top = _topmost_new(folder)
        # Written next to the target, then renamed: the complete folder appears in one step.
        with drafting(top, "new") as draft:
            (draft / folder.relative_to(top)).mkdir(parents=True)
            for name, text in files.items():
                (draft / folder.relative_to(top) / name).write_text(text, encoding="utf-8")
            draft.rename(top)
    except OSError as error:
        msg = f"{path} cannot be created: {error.strerror}. Name a folder where you have write permission"
        raise OpwrightError(msg) from error


def _checked_name(name: str) -> str:
    if keyword.iskeyword(name):
        msg = f"{name!r} is a Python keyword: torch.ops.{name} is a syntax error. Choose a name such as my_{name}"
        raise SpecError(msg)
    return Library(name).namespace  # raises if the name is not valid for a library


def _check_free(path: Path, folder: Path) -> None:
    if folder == Path.cwd():
        msg = f"{path} is the current folder: name a new folder in it, or run this from the parent folder"
        raise SpecError(msg)
    if folder.is_dir():
        if inside := sorted(entry.name for entry in folder.iterdir()):
            msg = f"{path} exists and contains {_some(inside)}: name a new or empty folder"
            raise SpecError(msg)
    elif folder.exists():
        msg = f"{path} exists and is not a folder: choose another name"
        raise SpecError(msg)


def _topmost_new(folder: Path) -> Path:
    """The topmost missing folder on the path to `folder`; `folder` itself if none is missing."""
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    return new[-1] if new else folder


def _some(names: list[str]) -> str:
    shown = 3
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")
