"""Finds NVIDIA's compute-sanitizer."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from opwright.errors import ToolchainError

_NAME = "compute-sanitizer"
_USUAL_HOME = "/usr/local/cuda"


def find_compute_sanitizer() -> Path:
    """The program: in the toolkit that `$CUDA_HOME` or `$CUDA_PATH` names, on the PATH, or in /usr/local/cuda.

    Raises:
        ToolchainError: none is found.
    """
    homes = [home for variable in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(variable))]
    places = [*map(_folders, homes), None, _folders(_USUAL_HOME)]
    for place in places:  # None: the PATH
        if found := shutil.which(_NAME, path=place):
            return Path(found)
    looked = ["the PATH", *(f"{home}/bin and {home}/{_NAME}" for home in (*homes, _USUAL_HOME))]
    msg = (
        f"{_NAME} is missing: it is not on {', nor in '.join(looked)}. It is part of the CUDA toolkit: install the "
        "toolkit's sanitizer, or set CUDA_HOME to the folder of a toolkit that has it"
    )
    raise ToolchainError(msg)


def _folders(home: str) -> str:
    """The folders of a toolkit that may contain it, as a search path."""
    return os.pathsep.join((str(Path(home) / "bin"), str(Path(home) / _NAME)))
