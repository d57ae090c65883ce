"""What every worker of a map has to know, wherever it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opwright.scale.facts.bundle_facts import BundleFacts
    from opwright.scale.results.destination import Destination
    from opwright.scale.results.job import Job


@dataclass(frozen=True)
class Limits:
    """What a worker may use, and what stops a map. It decides no results.

    Attributes:
        memory_bytes: memory of a host; None for its part of the machine's.
        timeout_s: longest time between two answers of a host; None for no limit.
        strict: stop at the first row that fails.
        gpu: the GPU of a host, as the environment variable CUDA_VISIBLE_DEVICES names it; None for the first one.
    """

    memory_bytes: int | None = None
    timeout_s: float | None = None
    strict: bool = False
    gpu: str | None = None


@dataclass(frozen=True)
class Work:
    """A map, as its workers have it.

    Attributes:
        facts: the bundle.
        job: the map.
        destination: where results go.
        limits: what each worker may use.
    """

    facts: BundleFacts
    job: Job
    destination: Destination
    limits: Limits
