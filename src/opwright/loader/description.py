"""Runs an op.py and the modules in its folder that it imports, and runs them again after a change."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.spec.find import library_at, op_file

if TYPE_CHECKING:
    from opwright.spec import Library


@dataclass(frozen=True)
class Description:
    """What an op.py describes.

    Attributes:
        library: its library.
        modules: the names of the modules in its folder that only it has imported.
        content: the digest of the file and of these modules.
    """

    library: Library
    modules: tuple[str, ...]
    content: str


def describe(path: str | Path, former: Description | None = None) -> Description:
    """Run the op.py at `path`.

    Args:
        path: the folder of an op.py, or the file itself.
        former: the result of an earlier run; its modules are imported again.

    Raises:
        SpecError: there is no `op.py`, it raises, or it does not create exactly one library.
    """
    file = op_file(path)
    earlier = {name: sys.modules.pop(name) for name in (former.modules if former else ()) if name in sys.modules}
    if former is not None:
        # Bytecode records the source's time in seconds: after two changes within one second it may be stale.
        for source in [str(file), *(module.__file__ for module in earlier.values() if module.__file__)]:
            with contextlib.suppress(OSError):
                Path(importlib.util.cache_from_source(source)).unlink(missing_ok=True)
    importlib.invalidate_caches()
    before = set(sys.modules)
    try:
        library = library_at(path)
    except BaseException:
        for name in set(sys.modules) - before:
            if _own_file(name, file.parent):
                del sys.modules[name]
        sys.modules.update(earlier)
        raise
    found = {name: _own_file(name, file.parent) for name in sorted(set(sys.modules) - before)}
    own = {name: source for name, source in found.items() if source not in {None, file}}
    digest = hashlib.sha256()
    for read in [file, *own.values()]:
        digest.update(hashlib.sha256(read.read_bytes() if read else b"").digest())
    return Description(library, tuple(own), digest.hexdigest())


def _own_file(name: str, folder: Path) -> Path | None:
    """The file of a module, if it is in `folder`."""
    source = getattr(sys.modules[name], "__file__", None)
    return Path(source) if source is not None and folder in Path(source).resolve().parents else None
