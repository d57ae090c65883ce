"""What ends a worker that another thread has told to stop."""

from __future__ import annotations


class StoppedError(Exception):
    """The worker had something left to do."""
