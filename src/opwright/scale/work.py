"""The work of a map as every worker receives it, on any machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opwright.scale.facts.bundle_facts import BundleFacts
    from opwright.scale.results.destination import Destination
    from opwright.scale.results.job import Job


@dataclass(frozen=True)
class Limits:
    """The resources that a worker may use, and when a map stops. They do not affect results.

    Attributes:
        memory_bytes: the memory limit of a host; None for its share of the machine's memory.
        timeout_s: the longest time between two answers of a host; None for no limit.
        strict: whether to stop at the first row that fails.
        gpu: the GPU of a host, as the environment variable CUDA_VISIBLE_DEVICES names it; None for the first one.
    """

    memory_bytes: int | None = None
    timeout_s: float | None = None
    strict: bool = False
    gpu: str | None = None


@dataclass(frozen=True)
class Work:
    """A map, as its workers receive it.

    Attributes:
        facts: the facts about the bundle.
        job: the map.
        destination: the destination of results.
        limits: the resources that each worker may use.
    """

    facts: BundleFacts
    job: Job
    destination: Destination
    limits: Limits
