"""Hosts that run as long as this process needs them: one for each bundle and its settings, started at first use."""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from opwright.errors import MapError
from opwright.scale.inputs.loader import Loader
from opwright.scale.work import Limits
from opwright.scale.workers.host_command import host_command
from opwright.scale.workers.isolation import Isolation
from opwright.scale.workers.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opwright.scale.facts.bundle_facts import BundleFacts
    from opwright.scale.rows import Answer, Failure, Row


class HostSettings(NamedTuple):
    """The settings that select the host of a predictor.

    Attributes:
        bundle: the folder of the bundle.
        digest: the SHA-256 of its manifest.
        threads: the number of threads that one run uses.
        memory_bytes: its memory limit; None for no limit.
        timeout_s: stop the host if it does not answer within this time; None for no limit.
        folder: the folder that relative paths start from.
    """

    bundle: str
    digest: str
    threads: int
    memory_bytes: int | None
    timeout_s: float | None
    folder: str


class ResidentHost:
    """A host that answers calls one after the other, from any thread of the process that created it.

    Args:
        settings: the settings of the host.
        facts: the facts about the bundle.

    Raises:
        MapError: the bundle has changed since the settings were created.
        ToolchainError: there is no host, and it cannot be built here.
    """

    def __init__(self, settings: HostSettings, facts: BundleFacts) -> None:
        bundle, folder = Path(settings.bundle), Path(settings.folder)
        _check_same(bundle, settings.digest)
        command = host_command(bundle, facts)
        # On another machine the folder may not exist; a relative path then cannot be read.
        folder = folder if folder.is_dir() else Path("/")
        limits = Limits(settings.memory_bytes, settings.timeout_s)
        self._turn = threading.Lock()
        self._loader = Loader(facts, folder)
        self._isolation = Isolation(lambda: Worker(command, settings.threads, limits, folder))
        self._end = weakref.finalize(self, _end, self._isolation, self._loader)

    @property
    def pid(self) -> int | None:
        """The process ID of the host; None if none runs."""
        return self._isolation.pid

    @property
    def is_usable(self) -> bool:
        """Whether it is not closed, and does not belong to the parent process of this fork."""
        return self._end.alive

    def answers(self, rows: Iterable[Row | Failure], batch: int) -> list[Answer]:
        """The answer to each row, in order. The answer to a failure is the failure itself.

        Args:
            rows: the rows to send to the host.
            batch: the number of rows that run together; failures are not sent.

        Raises:
            MapError: the host does not start, or a remote file cannot be read for a reason unrelated to the row.
        """
        with self._turn:
            try:
                groups = _batches(self._loader.filled(rows), batch)
                return [answer for answers in self._isolation.answers_to_all(groups) for answer in answers]
            except BaseException:
                # It may still be sending answers that no caller expects any more.
                self._isolation.close()
                raise

    def start(self) -> None:
        """Start the host, unless it runs.

        Raises:
            MapError: the host does not start.
        """
        with self._turn:
            for _ in self._isolation.answers(()):
                pass

    def close(self) -> None:
        """Stop the host, after a call of another thread has received its answers."""
        with self._turn:
            self._end()

    def forget(self) -> None:
        """In a forked process: leave the host to the process that started it."""
        self._end.detach()
        self._isolation.forget()


class _Registry:
    """The hosts of this process, keyed by their settings.

    A host exits when the last predictor that uses it is deleted, and when the process exits.
    """

    def __init__(self) -> None:
        self._hosts: weakref.WeakValueDictionary[HostSettings, ResidentHost] = weakref.WeakValueDictionary()
        self._kept: set[ResidentHost] = set()
        self._turn = threading.Lock()

    def host(self, settings: HostSettings, facts: BundleFacts, *, keep: bool) -> ResidentHost:
        with self._turn:
            host = self._hosts.get(settings)
            if host is None or not host.is_usable:
                self._kept.discard(host)
                host = self._hosts[settings] = ResidentHost(settings, facts)
            if keep:
                self._kept.add(host)
            return host

    def after_fork(self) -> None:
        """Drop what belongs to the parent process: its hosts, and a lock that one of its threads may hold."""
        self._turn = threading.Lock()
        for host in self._hosts.values():
            host.forget()
        self._hosts.clear()
        self._kept.clear()


_registry = _Registry()
os.register_at_fork(after_in_child=_registry.after_fork)


def resident_host(settings: HostSettings, facts: BundleFacts, *, keep: bool) -> ResidentHost:
    """The host of this process for these settings.

    Args:
        settings: the settings of the host.
        facts: the facts about the bundle.
        keep: whether to keep it until the process exits, even without predictors, because another one will follow.

    Raises:
        MapError: the bundle has changed since the settings were created.
        ToolchainError: there is no host, and it cannot be built here.
    """
    return _registry.host(settings, facts, keep=keep)


def _batches(rows: Iterator[Row | Failure], batch: int) -> Iterator[list[Row | Failure]]:
    while taken := [*itertools.islice(rows, batch)]:
        yield taken


def _check_same(bundle: Path, digest: str) -> None:
    from opwright.bundle.format.manifest import FILE_NAME

    try:
        found = hashlib.sha256((bundle / FILE_NAME).read_bytes()).hexdigest()
    except OSError as error:
        msg = f"{bundle} cannot be read here ({error.strerror}): expected the bundle at the same path on each machine"
        raise MapError(msg) from error
    if found != digest:
        msg = f"{bundle} has changed since the predictor was created: create a new one"
        raise MapError(msg)


def _end(isolation: Isolation, loader: Loader) -> None:
    isolation.close()
    loader.close()
