"""Fills fresh memory with values that show, so that an element which nobody wrote is seen."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def poisoned(*, on: bool = True) -> Iterator[None]:
    """Within it, every fresh tensor, also one that native code makes, is filled with NaN or the largest integer."""
    # A module whose class has the setting for a property, which a type checker cannot see.
    settings: Any = torch.utils.deterministic
    mode = torch.get_deterministic_debug_mode()
    fill = settings.fill_uninitialized_memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # operators that are not deterministic warn, and are not meant
        # Not torch.use_deterministic_algorithms: that imports the compiler, to set it too, and takes most of a second.
        torch.set_deterministic_debug_mode("warn" if on else "default")
        settings.fill_uninitialized_memory = on
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(mode)
            settings.fill_uninitialized_memory = fill
