"""What can be chosen when a model is shipped; to know it costs no import of torch."""

from __future__ import annotations

from typing import get_args, get_type_hints

from opwright.bundle.format.manifest import ModelFile

_HINTS = get_type_hints(ModelFile)
FORMATS: tuple[str, ...] = get_args(_HINTS["kind"])
PRECISIONS: tuple[str, ...] = get_args(_HINTS["precision"])
# The processors that a package is compiled for, and how many bits wide the vectors are that AOTInductor writes itself:
# with more it would use instructions beyond the level, with None all that this machine has.
LEVELS = {"native": None, "x86-64": 1, "x86-64-v2": 1, "x86-64-v3": 256, "x86-64-v4": 256}
