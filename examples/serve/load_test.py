"""Sends pictures to the application of app.py at a steady rate, regardless of the answers, and prints statistics.

    python examples/serve/load_test.py http://127.0.0.1:8000/predict --times 2 --seconds 120

Without --rate, it first measures the capacity with a fixed number of concurrent clients.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import numpy as np
from PIL import Image
from skimage import data

PICTURES = 64
SIDE = 256
CAPACITY_SECONDS = 20.0
PERCENTILES = (50, 90, 99, 100)


@dataclass
class Outcome:
    """The answers to all requests.

    Attributes:
        seconds: the time from when each request was due until its answer, for answers with status 200.
        codes: the number of answers with each status; 0 for failed connections.
        hints: the number of 503 answers with a Retry-After header.
        memory: the resident bytes of the replicas and their hosts, once a second.
    """

    seconds: list[float] = field(default_factory=list)
    codes: Counter[int] = field(default_factory=Counter)
    hints: int = 0
    memory: list[int] = field(default_factory=list)


async def ask(session: aiohttp.ClientSession, url: str, body: bytes, due: float, outcome: Outcome) -> int:
    """Send one request, count its answer, and return its status."""
    try:
        async with session.post(url, data=body) as answer:
            await answer.read()
            code = answer.status
            outcome.hints += code == 503 and "Retry-After" in answer.headers
    except aiohttp.ClientError:
        code = 0
    outcome.codes[code] += 1
    if code == 200:
        outcome.seconds.append(time.monotonic() - due)
    return code


async def capacity(session: aiohttp.ClientSession, url: str, bodies: list[bytes], at_a_time: int) -> float:
    """The number of requests answered per second if each client waits for its previous one."""
    outcome = Outcome()
    end = time.monotonic() + CAPACITY_SECONDS

    async def one_after_the_other(place: int) -> None:
        while time.monotonic() < end:
            code = await ask(session, url, bodies[place % len(bodies)], time.monotonic(), outcome)
            if code != 200:
                await asyncio.sleep(0.1)
            place += at_a_time

    began = time.monotonic()
    await asyncio.gather(*(one_after_the_other(place) for place in range(at_a_time)))
    return outcome.codes[200] / (time.monotonic() - began)


async def load(session: aiohttp.ClientSession, url: str, bodies: list[bytes], rate: float, seconds: float) -> Outcome:
    """Send `rate` requests per second, each when it is due, whether or not earlier ones have been answered."""
    outcome = Outcome()
    watching = asyncio.create_task(_watch_memory(outcome))
    began = time.monotonic()
    asked = []
    for number in range(int(rate * seconds)):
        due = began + number / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        asked.append(asyncio.create_task(ask(session, url, bodies[number % len(bodies)], due, outcome)))
    await asyncio.gather(*asked)
    watching.cancel()
    return outcome


async def _watch_memory(outcome: Outcome) -> None:
    while True:
        outcome.memory.append(replica_memory())
        await asyncio.sleep(1)


def replica_memory() -> int:
    """The resident bytes of the replicas on this machine and of the processes that they started."""
    parents, names, sizes = {}, {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = dict(
                line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line
            )
            names[folder.name] = (folder / "cmdline").read_bytes()
        except OSError:  # it has exited
            continue
        parents[folder.name] = status["PPid"].strip()
        sizes[folder.name] = int(status.get("VmRSS", "0").split()[0]) * 1024
    replicas = {number for number, name in names.items() if name.startswith(b"ray::ServeReplica")}
    return sum(size for number, size in sizes.items() if number in replicas or parents[number] in replicas)


def pictures() -> list[bytes]:
    """JPEG files: crops of photographs, at random positions from a fixed seed."""
    random = np.random.default_rng(0)
    photos = [data.astronaut(), data.coffee(), data.chelsea()]
    found = []
    for number in range(PICTURES):
        photo = photos[number % len(photos)]
        top, left = (random.integers(0, size - SIDE + 1) for size in photo.shape[:2])
        file = io.BytesIO()
        Image.fromarray(photo[top : top + SIDE, left : left + SIDE]).save(file, "JPEG", quality=90)
        found.append(file.getvalue())
    return found


def report(outcome: Outcome, rate: float, seconds: float) -> None:
    """Print the statistics."""
    print(f"sent: {sum(outcome.codes.values())} in {seconds:g} s, {rate:.1f}/s")
    for code, count in sorted(outcome.codes.items()):
        hint = f", {outcome.hints} with Retry-After" if code == 503 else ""
        print(f"  {code or 'no answer'}: {count}{hint}")
    print(f"accepted: {len(outcome.seconds) / seconds:.1f}/s")
    if outcome.seconds:
        found = np.percentile(outcome.seconds, PERCENTILES)
        print("  ".join(f"p{name} {value * 1000:.0f} ms" for name, value in zip(PERCENTILES, found, strict=True)))
    # The first seconds fill buffers.
    if memory := [size / 2**20 for size in outcome.memory[5:]]:
        print(f"memory of the replicas: {memory[0]:.0f} MiB first, {memory[-1]:.0f} last, {max(memory):.0f} at most")


async def run(arguments: argparse.Namespace) -> None:
    """Measure the capacity, unless a rate is given, and send the requests."""
    bodies = pictures()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as session:
        rate = arguments.rate
        if rate is None:
            most = await capacity(session, arguments.url, bodies, arguments.at_a_time)
            print(f"capacity: {most:.1f}/s with {arguments.at_a_time} at a time", flush=True)
            rate = arguments.times * most
        report(await load(session, arguments.url, bodies, rate, arguments.seconds), rate, arguments.seconds)


def main() -> None:
    """Parse the arguments, and run."""
    parser = argparse.ArgumentParser(description="Send pictures at a steady rate.")
    parser.add_argument("url")
    parser.add_argument("--rate", type=float, help="requests per second")
    parser.add_argument("--times", type=float, default=2.0, help="without --rate: multiple of the measured capacity")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--at-a-time", type=int, default=32, help="concurrent requests that measure the capacity")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
