"""Links objects into a shared object or a program."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder.depfile import read_depfile
from opwright.builder.file_state import FileState, state_of
from opwright.toolchain.run import failure, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.builder.recipes import Recipes

_LISTING = "-Wl,--dependency-file="


def link(recipes: Recipes, objects: Sequence[Path], output: Path) -> dict[str, FileState] | None:
    """Link `objects` into `output`.

    Returns:
        What else the linker read, each with its state; None from a linker that does not say.

    Raises:
        BuildError: the linker rejects them.
    """
    depfile = output.with_name("link.d")
    command: list[str | Path] = [*recipes.linker, *objects, *recipes.link_flags, "-o", output]
    # Its own temporary files go with the folder, also where it is killed.
    environment = {"TMPDIR": str(output.parent)}
    completed = run([*command, f"{_LISTING}{depfile}"], env=environment, check=False)
    if completed.exit_code != 0 and "dependency-file" in completed.output.replace(str(depfile), ""):
        completed = run(command, env=environment, check=False)  # gold, which has no such option
    if completed.exit_code != 0:
        raise failure(completed, f"{output.name} does not link")
    if not depfile.is_file():
        return None
    read = {}
    for path in read_depfile(depfile, Path.cwd()):
        if path not in objects:
            with contextlib.suppress(FileNotFoundError):  # a temporary file of the linker's own
                read[str(path)] = state_of(path)
    return read
