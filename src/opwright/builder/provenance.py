"""Describes builds in listings of the cache: their source, PyTorch and compiler."""

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
    # The compiler is not run to report its version: on most distributions, the link's target has it in its name.
    compiler = Path(shutil.which(host) or host).resolve()
    return {"name": name, "source": str(source), "torch": find_pytorch().version, "compiler": str(compiler)}
