"""What a cache lists of a build: what it was made from, and for which PyTorch and compiler."""

from __future__ import annotations

import shutil
from pathlib import Path

from opwright.toolchain.compiler import find_cxx
from opwright.toolchain.pytorch import find_pytorch


def provenance(name: str, source: Path | str) -> dict[str, str]:
    """The `name`, `source`, `torch` and `compiler` of what was just built from `source` under `name`.

    Raises:
        ToolchainError: the compiler or PyTorch is missing.
    """
    host = find_cxx().host
    # Without its version, for which it would have to be started: distributions have it in the name behind the link.
    compiler = Path(shutil.which(host) or host).resolve()
    return {"name": name, "source": str(source), "torch": find_pytorch().version, "compiler": str(compiler)}
