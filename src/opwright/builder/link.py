"""Links objects into a shared object or a program."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from opwright.builder.depfile import read_depfile
from opwright.cache.file_state import FileState, state_of
from opwright.toolchain.run import failure, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opwright.builder.recipes import Recipes

_LISTING = "-Wl,--dependency-file="


def link(recipes: Recipes, objects: Sequence[Path], output: Path) -> dict[str, FileState] | None:
    """Link `objects` into `output`.

    Returns:
        The other files that the linker read, each with its state; None if the linker does not list them.

    Raises:
        BuildError: the linker rejects them.
    """
    depfile = output.with_name("link.d")
    # The linker's temporary files are removed with the folder, even if it is killed. Its errors are read in English.
    environment = {"TMPDIR": str(output.parent), "LC_ALL": "C"}
    linked = list(objects)
    if recipes.device_link:
        linked.append(output.with_name("dlink.o"))
        device_link = run([*recipes.device_link, *objects, "-o", linked[-1]], env=environment, check=False)
        if device_link.exit_code != 0:
            raise failure(device_link, f"the device code of {output.name} does not link")
    listing = (f"{_LISTING}{depfile}",)
    # The default linker supports what others do not, such as linker scripts, and gold cannot list the files it reads.
    ways: dict[tuple[str, ...], None] = dict.fromkeys([(*recipes.fast_linker, *listing), listing, ()])
    for way in ways:
        command: list[str | Path] = [*recipes.linker, *linked, *recipes.link_flags, *way, "-o", output]
        completed = run(command, env=environment, check=False)
        if completed.exit_code == 0:
            break
        if way == listing and "dependency-file" not in completed.output.replace(str(depfile), ""):
            raise failure(completed, f"{output.name} does not link")
    else:
        raise failure(completed, f"{output.name} does not link")
    if not depfile.is_file():
        return None
    read = {}
    for path in read_depfile(depfile, Path.cwd()):
        if path not in linked:
            with contextlib.suppress(FileNotFoundError):  # the linker's own temporary file
                read[str(path)] = state_of(path)
    return read
