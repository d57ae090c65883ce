"""Fills fresh memory with conspicuous values, so that an element that was never written is visible."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any

import torch

from opwright.checker.behavior.fresh_memory import fill_new_tensors

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def poisoned(*, on: bool = True) -> Iterator[None]:
    """Fill every fresh tensor, also those of native code, with NaN or the largest integer while this is active."""
    # A module whose class has the setting as a property, which a type checker cannot see.
    settings: Any = torch.utils.deterministic
    mode = torch.get_deterministic_debug_mode()
    fill = settings.fill_uninitialized_memory
    with warnings.catch_warnings(), fill_new_tensors(on=on):
        warnings.simplefilter("ignore")  # operators that are not deterministic would warn
        # Not torch.use_deterministic_algorithms, which takes most of a second: it imports the compiler, to set it too.
        torch.set_deterministic_debug_mode("warn" if on else "default")
        settings.fill_uninitialized_memory = on
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(mode)
            settings.fill_uninitialized_memory = fill
