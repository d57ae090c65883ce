"""Hosts that live as long as this process needs them: one for each bundle and its settings, started at first use."""

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
    """What decides which host a predictor uses.

    Attributes:
        bundle: the folder of the bundle.
        digest: the SHA-256 of its manifest.
        threads: how many threads one run computes with.
        memory_bytes: how much memory it may use; None for no limit.
        timeout_s: end it if it gives no answer for so long; None for no limit.
        folder: where relative paths begin.
    """

    bundle: str
    digest: str
    threads: int
    memory_bytes: int | None
    timeout_s: float | None
    folder: str


class ResidentHost:
    """A host that answers one call after the other, from any thread of the process that made it.

    Args:
        settings: of the host.
        facts: the bundle.

    Raises:
        MapError: the bundle has changed since the settings were made.
        ToolchainError: there is no host, and none can be built here.
    """

    def __init__(self, settings: HostSettings, facts: BundleFacts) -> None:
        bundle, folder = Path(settings.bundle), Path(settings.folder)
        _check_same(bundle, settings.digest)
        command = host_command(bundle, facts)
        # On another machine the folder may not exist; a relative path is then one that cannot be read.
        folder = folder if folder.is_dir() else Path("/")
        limits = Limits(settings.memory_bytes, settings.timeout_s)
        self._turn = threading.Lock()
        self._loader = Loader(facts, folder)
        self._isolation = Isolation(lambda: Worker(command, settings.threads, limits, folder))
        self._end = weakref.finalize(self, _end, self._isolation, self._loader)

    @property
    def pid(self) -> int | None:
        """The number of the host's process; None while none runs."""
        return self._isolation.pid

    @property
    def is_usable(self) -> bool:
        """Whether it is neither closed nor another process's, of which this one is a fork."""
        return self._end.alive

    def answers(self, rows: Iterable[Row | Failure], batch: int) -> list[Answer]:
        """The answer to each row, in their order. A failure is its own answer.

        Args:
            rows: what the host is asked.
            batch: how many rows run together; those of failures are left out.

        Raises:
            MapError: the host does not start, or a remote file cannot be read for a reason that is not the row's.
        """
        with self._turn:
            try:
                groups = _batches(self._loader.filled(rows), batch)
                return [answer for answers in self._isolation.answers_to_all(groups) for answer in answers]
            except BaseException:
                # It may still answer what nobody waits for any more.
                self._isolation.close()
                raise

    def start(self) -> None:
        """Start it, if it does not run.

        Raises:
            MapError: it does not start.
        """
        with self._turn:
            for _ in self._isolation.answers(()):
                pass

    def close(self) -> None:
        """End the host, when a call of another thread has its answers."""
        with self._turn:
            self._end()

    def forget(self) -> None:
        """In a forked process: leave the host to the process that started it."""
        self._end.detach()
        self._isolation.forget()


class _Registry:
    """The hosts of this process by what decides them.

    A host ends when the last predictor that uses it is gone, and when the process exits.
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
        """Give back what belongs to the parent process: its hosts, and a lock that one of its threads may hold."""
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
        settings: of the host.
        facts: the bundle.
        keep: until the process exits, even if no predictor is left: another one will come.

    Raises:
        MapError: the bundle has changed since the settings were made.
        ToolchainError: there is no host, and none can be built here.
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
        msg = f"{bundle} has changed since the predictor was made: make a new one"
        raise MapError(msg)


def _end(isolation: Isolation, loader: Loader) -> None:
    isolation.close()
    loader.close()
