"""The messages between a driver and a host, which docs/reference/host.md describes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opwright.scale.rows import Answer, Array, Failure

if TYPE_CHECKING:
    from opwright.scale.rows import Unit


def request(unit: Unit) -> list[bytes]:
    """Encode a unit for the host: a line of JSON, and the bytes that it announces."""
    pieces: list[bytes] = []
    rows: list[Any] = []
    for row in unit:
        inputs: dict[str, Any] = {}
        for name, value in row.items():
            if isinstance(value, bytes):
                pieces.append(value)
                inputs[name] = {"bytes": len(value)}
            else:
                inputs[name] = value
        rows.append({"inputs": inputs})
    line = json.dumps(rows[0] if len(rows) == 1 else {"batch": rows})
    return [line.encode() + b"\n", *filter(None, pieces)]


def take_line(received: bytearray) -> dict[str, Any] | None:
    """Remove a line of JSON from the received data; return None until it is complete."""
    end = received.find(b"\n")
    if end < 0:
        return None
    header: dict[str, Any] = json.loads(bytes(received[:end]))
    del received[: end + 1]
    return header


def take_answer(received: bytearray) -> Answer | None:
    """Remove the answer to a row from the received data; return None until it is complete."""
    end = received.find(b"\n")
    if end < 0:
        return None
    header = json.loads(bytes(received[:end]))
    if error := header.get("error"):
        del received[: end + 1]
        return Answer(failure=Failure(error["kind"], error["message"]))
    place = end + 1
    if len(received) < place + sum(output["bytes"] for output in header["outputs"]):
        return None
    outputs = []
    for output in header["outputs"]:
        data = bytes(received[place : place + output["bytes"]])
        outputs.append(Array(output["dtype"], tuple(output["shape"]), data))
        place += output["bytes"]
    del received[:place]
    return Answer(tuple(outputs), None, header["seconds"])
