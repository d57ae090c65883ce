"""The programs that the demonstration runs, one by one and in parallel."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rich.console import Console


def run(command: list[str | Path], **variables: str) -> str:
    """Run a program; if it fails, print its output and exit."""
    ended = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nfailed with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


class Paused:
    """A Python program that prepares its work, reports that in one line, and continues on request."""

    def __init__(self, command: list[str | Path], **variables: str) -> None:
        self.command = command
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if not (self.process.stdout and self.process.stdout.readline()):
            self.go_on()  # it has already failed

    def go_on(self) -> None:
        """Let it continue, and wait until it exits."""
        out, err = self.process.communicate("\n")
        if self.process.returncode != 0:
            sys.exit(f"{' '.join(map(str, self.command))}\nfailed with {self.process.returncode}:\n{out}{err}")


def side_by_side(tasks: dict[str, Callable[[], Any]], at_once: int, progress: Console) -> dict[str, Any]:
    """Run tasks in threads, at most `at_once` at a time, in order; print each when it is done.

    Returns:
        The result of each task, by name.
    """
    results: dict[str, Any] = {}
    started = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool, progress.status("") as status:
        futures = {pool.submit(task): name for name, task in tasks.items()}
        try:
            for future in as_completed(futures):
                results[futures[future]] = future.result()
                seconds = time.perf_counter() - started
                progress.print(f"    {seconds:4.0f} s  {futures[future]}", markup=False, highlight=False)
                status.update(f"still running: {', '.join(name for name in tasks if name not in results)}")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return results
