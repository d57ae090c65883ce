"""Moves finished files into a cache atomically."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwright.storage.flush import flush

if TYPE_CHECKING:
    from pathlib import Path


def place_file(made: Path, place: Path, root: Path) -> None:
    """Rename the complete file `made` to `place`, so that it is complete even after a power failure.

    Args:
        made: the file, in its own folder.
        place: its path below `root`.
        root: the folder of the cache; symbolic links below it are not followed.

    Raises:
        OSError: it cannot be moved.
    """
    flush(made)
    for above in place.parents[: len(place.relative_to(root).parts) - 1]:
        if above.is_symlink():
            above.unlink()
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir() and not place.is_symlink():  # damaged: it is removed with the folder of `made`
        place.rename(made.with_name(f"{made.name}.damaged"))
    made.replace(place)
    flush(place.parent)
