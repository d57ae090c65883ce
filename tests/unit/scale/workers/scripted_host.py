"""A program that behaves like a host, as its inputs instruct it: `crash`, `hang`, `kill`, or any text to echo.

Usage: scripted_host.py [WORD] --stream ...; WORD is the instruction to follow before it is ready.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

ACTS = ("crash", "hang", "kill", "leave", "abort")


def say(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def act(word: str) -> None:
    if word == "crash":
        sys.stderr.write("host: the process was ended by SIGSEGV, in the operator a::b, while it computed request 7\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGSEGV)
    if word == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "abort":
        os.kill(os.getpid(), signal.SIGABRT)
    if word == "leave":
        sys.stderr.write("host: first\nhost: it has to leave\nmore\n")
        sys.stderr.flush()
        os._exit(3)
    if word == "hang":
        time.sleep(1000)


def answer(number: int, place: int, row: dict[str, dict[str, object]]) -> bytes:
    said: dict[str, object] = {"request": number, "row": place}
    (value,) = row["inputs"].values()
    content = sys.stdin.buffer.read(int(str(value["bytes"]))) if isinstance(value, dict) else str(value).encode()
    word = content.decode()
    if word in ACTS:
        act(word)
    if word == "chatter":
        sys.stderr.write("x" * 1_000_000)
        sys.stderr.flush()
    if word == "fail":
        said["error"] = {"code": 36, "kind": "input_unreadable", "message": "it cannot be read"}
        return json.dumps(said).encode() + b"\n"
    said["outputs"] = [{"name": "y", "dtype": "uint8", "shape": [len(content)], "bytes": len(content)}]
    said["seconds"] = 0.5
    return json.dumps(said).encode() + b"\n" + content


def main() -> None:
    word = sys.argv[1]
    if word == "refuse":
        say({"error": {"code": 20, "kind": "bundle_missing", "message": "there is none"}})
        return
    act(word)
    say({"ready": True})
    number = 0
    while line := sys.stdin.buffer.readline():
        asked = json.loads(line)
        for place, row in enumerate(asked.get("batch", [asked])):
            sys.stdout.buffer.write(answer(number, place, row))
            sys.stdout.buffer.flush()
        number += 1


main()
