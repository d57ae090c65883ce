"""The limits of a manifest; the host has the same numbers in bundle/limits.h, and a test compares the two."""

from __future__ import annotations

FORMAT = 3
MANIFEST_BYTES = 4194304
TEXT_BYTES = 255
# The schema of an operator with many arguments is longer than any name.
SCHEMA_BYTES = 65536
LIST_LENGTH = 4096
RANK = 64
RESIZE = 65536
