"""The options for shipping a model, defined without importing torch."""

from __future__ import annotations

from typing import get_args, get_type_hints

from opwright.bundle.format.manifest import ModelFile

_HINTS = get_type_hints(ModelFile)
FORMATS: tuple[str, ...] = get_args(_HINTS["kind"])
PRECISIONS: tuple[str, ...] = get_args(_HINTS["precision"])
# The processor levels that a package is compiled for, with the width in bits of the vectors that AOTInductor generates:
# wider vectors would need instructions beyond the level. None selects the widest vectors of this machine.
LEVELS = {"native": None, "x86-64": 1, "x86-64-v2": 1, "x86-64-v3": 256, "x86-64-v4": 256}
