"""Loads the library that an `op.py` describes."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.errors import OpwrightError, SpecError
from opwright.spec.library import Library

if TYPE_CHECKING:
    from types import CodeType


class UncachedLoader(SourceFileLoader):
    """Runs a Python file without Python's cache in `__pycache__`.

    Python takes compiled code from there for a file that was changed within a second and kept its size.
    """

    def get_code(self, fullname: str) -> CodeType:
        """The compiled file."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def op_file(path: str | Path) -> Path:
    """The file that describes a library.

    Args:
        path: the folder of an `op.py`, or the file itself.

    Raises:
        SpecError: there is no `op.py`.
    """
    given = Path(path)
    file = (given / "op.py" if given.is_dir() else given).resolve()
    if not file.is_file():
        msg = f"{given} does not contain an operator library: expected an op.py at {file}"
        raise SpecError(msg)
    return file


def library_at(path: str | Path) -> Library:
    """Load the library that `path` describes.

    Args:
        path: the folder of an `op.py`, or the file itself.

    Raises:
        SpecError: there is no `op.py`, it raises, or it does not create exactly one library.
    """
    file = op_file(path)
    module_name = f"opwright_library_{hashlib.sha256(os.fsencode(file)).hexdigest()[:12]}"
    loader = UncachedLoader(module_name, str(file))
    spec = importlib.util.spec_from_file_location(module_name, file, loader=loader)
    if spec is None or spec.loader is None or file.suffix != ".py":
        msg = f"{file} is not a Python file: an operator library is described in an op.py"
        raise SpecError(msg)
    module = importlib.util.module_from_spec(spec)
    # Registered before it runs, so that string annotations can be resolved.
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except OpwrightError:
        del sys.modules[module_name]
        raise
    except Exception as error:
        del sys.modules[module_name]
        msg = f"{file} raises {type(error).__name__}: {error}"
        raise SpecError(msg) from error
    libraries = [value for value in vars(module).values() if isinstance(value, Library)]
    if len(libraries) != 1:
        found = "none" if not libraries else ", ".join(repr(library.namespace) for library in libraries)
        msg = f"{file} must create one opwright.Library, but creates {found}; a library is one namespace in one folder"
        raise SpecError(msg)
    return libraries[0]
