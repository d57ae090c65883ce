"""Fills new memory with conspicuous values, so that elements that were never written are visible."""

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
    """Fill every new tensor, including those of native code, with NaN or the largest integer in this context."""
    # The module's class defines the setting as a property, which type checkers cannot see.
    settings: Any = torch.utils.deterministic
    mode = torch.get_deterministic_debug_mode()
    fill = settings.fill_uninitialized_memory
    with warnings.catch_warnings(), fill_new_tensors(on=on):
        warnings.simplefilter("ignore")  # nondeterministic operators would warn
        # Not torch.use_deterministic_algorithms, which imports the compiler and takes most of a second.
        torch.set_deterministic_debug_mode("warn" if on else "default")
        settings.fill_uninitialized_memory = on
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(mode)
            settings.fill_uninitialized_memory = fill
