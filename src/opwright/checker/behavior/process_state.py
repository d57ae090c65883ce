"""Checks that a call does not change the state of the process: floating-point modes, threads, signals, files."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from opwright.checker.cases.case import Family
from opwright.checker.cases.code import opening_code
from opwright.checker.kinds import Kind
from opwright.checker.verdict import Failure
from opwright.toolchain.signals import signal_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opwright.checker.cases.case import Case
    from opwright.checker.recorder import Recorder
    from opwright.checker.subject import Subject

_libc = ctypes.CDLL(None)
_libm = ctypes.CDLL("libm.so.6") if sys.platform == "linux" else _libc
_libc.setlocale.restype = ctypes.c_char_p
_LC_ALL = 6
_SIGNALS = {number: signal_name(number) for number in range(1, 32) if number not in (signal.SIGKILL, signal.SIGSTOP)}
_SIGACTION_BYTES = 256  # larger than the structure on any platform; the handler is its first field
# Loading opens the library's file, and op.py and its samples may draw random numbers.
_RANDOM = "PyTorch's random number generator"
_MAY_CHANGE_IN_LOADING = ("open files", _RANDOM, "Python's random number generator")
_SMALLEST = torch.tensor(sys.float_info.min, dtype=torch.float64)
_CALLS = 4
_BAD_CALLS = 3
_MOST_SHOWN = 4
_LONGEST_SHOWN = 100


def check_process_state(subject: Subject, recorder: Recorder) -> None:
    """Compare the state of the process before and after the first calls of the operator in it.

    The calls are the samples, and calls that should be rejected. Loading the library must not change the state either.
    """
    subject.draws_random_numbers(subject.samples[0])  # PyTorch starts its threads at the first parallel work
    torch.ones(2**20).sum()
    before = subject.state_before_loading or state()
    changes = differences(before, state())
    for what in _MAY_CHANGE_IN_LOADING:
        changes.pop(what, None)
    _report(recorder, "loading the library", changes, "\n".join(opening_code(subject.op)))
    restore(before)
    # It runs the reference, which may take time.
    recorder.begin("search for variations of the samples", crash=Kind.REFERENCE)
    bad = [case for case in subject.varied if case.family in (Family.BAD_RANK, Family.BAD_DTYPE)][:_BAD_CALLS]
    for case in (*subject.samples, *bad):
        code = subject.code(case)
        if not recorder.died_of(case.name, case.group) and recorder.begin(
            f"{case.name}: the state of the process", code
        ):
            _report(recorder, case.name, _changes(subject, case), code)


@contextlib.contextmanager
def unchanged_state(subject: Subject, recorder: Recorder, case: Case) -> Iterator[None]:
    """Check that the call of a variation in this context, which may raise, does not change the state of the process."""
    before, threads = state(), _threads()
    try:
        yield
    finally:
        if differences(before, state()) or _threads() > threads:
            restore(before)
            if not recorder.has(Kind.PROCESS_STATE):
                # Repeated: another thread may have changed it, and first calls may open files and start thread pools.
                _report(recorder, case.name, _changes(subject, case), subject.code(case))


def _report(recorder: Recorder, case: str, changes: dict[str, tuple[str, str]], code: str) -> None:
    for what, (was, now) in changes.items():
        recorder.fail(Failure(Kind.PROCESS_STATE, case, code, f"{what}: {now} afterwards", f"{what}: {was}, as before"))


def _changes(subject: Subject, case: Case) -> dict[str, tuple[str, str]]:
    """Return what calls change in this process: the old and the new state, by description."""
    draws = subject.draws_random_numbers(case)
    before = state()
    printed = _call(subject, case)
    changes = differences(before, state())
    if _RANDOM in changes and (draws or any(map(subject.draws_random_numbers, subject.samples))):
        del changes[_RANDOM]
    threads = [_threads()]
    for _ in range(_CALLS):
        _call(subject, case)
        threads.append(_threads())
    if threads == sorted(set(threads)):
        changes["the number of threads"] = (str(threads[0]), str(threads[-1]))
    if printed:
        changes["standard output"] = ("nothing", repr(printed[:_LONGEST_SHOWN]))
    if changes:
        restore(before)
    return changes


def state() -> dict[str, Any]:
    """The state of this process that a call may change, by description."""
    found: dict[str, Any] = {}
    for what, ask in _QUESTIONS.items():
        with contextlib.suppress(OSError, AttributeError, RuntimeError):
            found[what] = ask()
    return found


def differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return what changed: the old and the new state as text, by description."""
    changed = {}
    for what, was in before.items():
        now = after.get(what)
        if now != was:
            changed[what] = _shown(was, now)
    return changed


def restore(before: dict[str, Any]) -> None:
    """Restore as much as possible: a changed state would invalidate further results and hide later changes."""
    torch.set_flush_denormal(before["flushing of denormals to zero"])
    with contextlib.suppress(AttributeError, OSError):
        _libm.fesetround(before["the rounding mode"])
        _libm.fedisableexcept(~before["trapping of floating-point exceptions"])
    torch.set_num_threads(before["the number of PyTorch's threads"])
    torch.set_grad_enabled(before["grad mode"])
    torch.set_default_dtype(before["the default dtype"])
    torch.set_deterministic_debug_mode(before["deterministic mode"])
    os.chdir(before["the working directory"])
    _libc.setlocale(_LC_ALL, before["the locale"])
    signal.pthread_sigmask(signal.SIG_SETMASK, before["blocked signals"])
    for action in before["signal handlers"].values():
        _libc.sigaction(action.number, action.structure, None)
    environment = _environment()
    for name in {*environment, *before["environment variables"]}:
        value = before["environment variables"].get(name)
        if value is None:
            _libc.unsetenv(name.encode())
        elif environment.get(name) != value:
            _libc.setenv(name.encode(), value.encode(), 1)


def _shown(was: Any, now: Any) -> tuple[str, str]:
    """Return both states as text; long ones are reduced to the differences."""
    if isinstance(was, dict) and isinstance(now, dict):
        names = [name for name in {**was, **now} if was.get(name) != now.get(name)]
        words = [", ".join(_entry(name, one) for name in names[:_MOST_SHOWN]) for one in (was, now)]
        return words[0], words[1]
    texts = str(was), str(now)
    return texts if max(map(len, texts)) <= _LONGEST_SHOWN else ("the earlier state", "changed")


def _entry(name: str, state: dict[str, Any]) -> str:
    value = state.get(name)
    if value is None:
        return f"{name} unset"
    return f"{name}={value}" if isinstance(value, str) else f"{name} {value}"


def _call(subject: Subject, case: Case) -> str:
    """Call the operator with `case`, which it may reject, and return what it prints to standard output."""
    with _standard_output() as read:
        with contextlib.suppress(Exception):
            subject.call(case.fresh())
        return read()


@contextlib.contextmanager
def _standard_output() -> Iterator[Callable[[], str]]:
    """Redirect standard output to a file in this context, and yield a function that reads it."""
    kept = os.dup(1)
    with tempfile.TemporaryFile() as file:
        _flush()  # what was printed before
        os.dup2(file.fileno(), 1)

        def read() -> str:
            _flush()
            file.seek(0)
            return file.read().decode(errors="replace")

        try:
            yield read
        finally:
            _libc.fflush(None)
            os.dup2(kept, 1)
            os.close(kept)


def _flush() -> None:
    sys.stdout.flush()
    _libc.fflush(None)


def _threads() -> int:
    return len(list(os.scandir("/proc/self/task")))


def _rounding_mode() -> int:
    return int(_libm.fegetround())


def _trapped_exceptions() -> int:
    return int(_libm.fegetexcept())


def _flushes_denormals() -> bool:
    return sys.float_info.min / 2 == 0 or bool(_SMALLEST / 2 == 0)


@dataclass(frozen=True)
class _Action:
    """The action for a signal; two actions are equal if their handlers are."""

    number: int
    handler: bytes
    structure: bytes = field(compare=False)

    def __str__(self) -> str:
        address = int.from_bytes(self.handler, sys.byteorder)
        return {0: "by default", 1: "ignored"}.get(address, f"handled at {address:#x}")


def _actions() -> dict[str, _Action]:
    found = {}
    structure = ctypes.create_string_buffer(_SIGACTION_BYTES)
    for number, name in _SIGNALS.items():
        if _libc.sigaction(number, None, structure) == 0:
            raw = structure.raw
            found[name] = _Action(number, raw[: ctypes.sizeof(ctypes.c_void_p)], raw)
    return found


def _environment() -> dict[str, str]:
    """The environment that native code sees; os.environ does not reflect changes by native code."""
    entries = ctypes.POINTER(ctypes.c_char_p).in_dll(_libc, "environ")
    found = {}
    at = 0
    while entries[at]:
        name, _, value = entries[at].decode(errors="replace").partition("=")
        found[name] = value
        at += 1
    return found


def _files() -> dict[str, str]:
    found = {}
    own = f"/proc/{os.getpid()}/fd"
    with os.scandir(own) as files:
        for file in files:
            with contextlib.suppress(OSError):  # the folder itself is open during the listing
                target = str(Path(file.path).readlink())
                if target != own:
                    found[file.name] = target
    return found


_QUESTIONS: dict[str, Callable[[], Any]] = {
    "the rounding mode": _rounding_mode,
    "flushing of denormals to zero": _flushes_denormals,
    "trapping of floating-point exceptions": _trapped_exceptions,
    "the number of PyTorch's threads": torch.get_num_threads,
    "the number of threads between operators": torch.get_num_interop_threads,
    "grad mode": torch.is_grad_enabled,
    "inference mode": torch.is_inference_mode_enabled,
    "autocast": lambda: torch.is_autocast_enabled("cpu"),
    "the default dtype": torch.get_default_dtype,
    "deterministic mode": torch.get_deterministic_debug_mode,
    _RANDOM: lambda: torch.get_rng_state().numpy().tobytes(),
    "Python's random number generator": random.getstate,
    "signal handlers": _actions,
    "blocked signals": lambda: sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "the working directory": os.getcwd,
    "environment variables": _environment,
    "the locale": lambda: _libc.setlocale(_LC_ALL, None),
    "open files": _files,
}
