"""Suppresses PyTorch's output while it exports, compiles and loads."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def suppress_output() -> Iterator[None]:
    """Suppress warnings, log lines and printed graphs: the exception that follows them contains what matters."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
