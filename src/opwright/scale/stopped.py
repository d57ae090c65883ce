"""The exception of a worker that another thread has stopped."""

from __future__ import annotations


class StoppedError(Exception):
    """The worker was stopped before it finished."""
