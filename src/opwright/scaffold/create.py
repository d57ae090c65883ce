"""Makes the folder of a new operator library: whole, or not at all."""

from __future__ import annotations

import keyword
import tempfile
from dataclasses import dataclass
from pathlib import Path

from opwright.errors import OpwrightError, SpecError
from opwright.scaffold.flavour import Flavour
from opwright.spec import Library


@dataclass(frozen=True)
class Created:
    """A new operator library.

    Attributes:
        folder: where it is.
        namespace: the part before `::` in its operators' names.
        flavour: what it is written in.
        files: the names of its files.
    """

    folder: Path
    namespace: str
    flavour: Flavour
    files: tuple[str, ...]


def create(path: Path, flavour: Flavour = Flavour.CPU) -> Created:
    """Make the folder `path`, with an operator library whose namespace is the folder's name.

    Args:
        path: a folder that is not there yet, or is empty. Folders above it are made too.
        flavour: what the library is written in.

    Raises:
        SpecError: its name cannot be a namespace, or there is something already.
        OpwrightError: the system refuses to make it.
    """
    folder = path.resolve()
    namespace = _checked_name(folder.name)
    files = flavour.files(namespace)
    try:
        _check_free(path, folder)
        top = _topmost_new(folder)
        # Beside it, so that a rename, which is one step, brings everything into place.
        with tempfile.TemporaryDirectory(dir=top.parent, prefix=f".{top.name}-") as beside:
            draft = Path(beside) / top.name
            (draft / folder.relative_to(top)).mkdir(parents=True)
            for name, text in files.items():
                (draft / folder.relative_to(top) / name).write_text(text, encoding="utf-8")
            draft.rename(top)
    except OSError as error:
        msg = f"{path} cannot be made: {error.strerror}. Name a folder in one that you may write to"
        raise OpwrightError(msg) from error
    return Created(folder, namespace, flavour, tuple(files))


def _checked_name(name: str) -> str:
    if keyword.iskeyword(name):
        msg = f"the name {name!r} is a word of Python's: torch.ops.{name} cannot be written. Choose 'my_{name}', say"
        raise SpecError(msg)
    return Library(name).namespace  # which refuses every name that no library may have


def _check_free(path: Path, folder: Path) -> None:
    if folder == Path.cwd():
        msg = f"{path} is the folder that you are in: name a new one in it, or call from the folder above"
        raise SpecError(msg)
    if folder.is_dir():
        if inside := sorted(entry.name for entry in folder.iterdir()):
            msg = f"{path} is there already, and holds {_some(inside)}: name a folder that is new or empty"
            raise SpecError(msg)
    elif folder.exists():
        msg = f"{path} is there already, and is no folder: choose another name"
        raise SpecError(msg)


def _topmost_new(folder: Path) -> Path:
    """The first of the folders on the way to `folder` that is to be made; `folder` itself where all are there."""
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    return new[-1] if new else folder


def _some(names: list[str]) -> str:
    shown = 3
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")
