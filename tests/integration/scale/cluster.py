"""Maps inputs on a Ray cluster of three nodes on one machine, and kills a process during each map; prints JSON.

    python cluster.py BUNDLE INPUTS OUT

Runs as a separate process, because Ray starts many processes, prints freely, and runs as long as its process.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil  # type: ignore[import-untyped]  # it has no types
import ray
from ray.cluster_utils import Cluster

import opwright

if TYPE_CHECKING:
    from collections.abc import Callable

_TRIES = 5


class Killer:
    """Kills a process once, after the first files of results are written."""

    def __init__(self, output: Path, kill: Callable[[], bool]) -> None:
        self._output = output
        self._kill = kill
        self._is_over = threading.Event()
        self.killed = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.is_set():
            if len(list(self._output.glob("part-*"))) >= 2:
                self.killed = self._kill()
                return
            time.sleep(0.01)


def kill_process(named: str) -> bool:
    """Kill one process whose command line contains this text; return whether there was one."""
    for process in psutil.process_iter(["cmdline"]):
        if named in " ".join(process.info["cmdline"] or ()) and os.getpid() in map(_pid, process.parents()):
            process.send_signal(signal.SIGKILL)
            return True
    return False


def _pid(process: psutil.Process) -> int:
    return int(process.pid)


def main() -> None:
    """Map without disturbance, and with a host, an actor and a raylet killed."""
    bundle, inputs, output = map(Path, sys.argv[1:])
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)

    def kill_raylet() -> bool:
        cluster.remove_node(nodes[-1], allow_graceful=False)
        return True

    results = {}
    kills: dict[str, Callable[[], bool] | None] = {
        "nothing": None,
        "host": lambda: kill_process("opwright-host"),
        "actor": lambda: kill_process("ShardActor"),
        "raylet": kill_raylet,
    }
    for name, kill in kills.items():
        for tries in range(_TRIES):
            out = output / f"{name}{tries}"
            killer = None if kill is None else Killer(out, kill)
            summary = opwright.map(bundle, inputs, output=out, on="ray")
            if killer is not None:
                killer.stop()
            results[name] = {"output": str(out), **summary.to_builtins()}
            if killer is None or killer.killed:
                break
    ray.shutdown()
    cluster.shutdown()
    sys.stdout.write(f"{json.dumps(results)}\n")


if __name__ == "__main__":
    main()
