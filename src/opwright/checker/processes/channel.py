"""The channel between the process of an operator and its judge, with signed messages that only these two can write."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import math
import socket
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from opwright.checker.cases.case import Layout
from opwright.errors import OpwrightError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SIZE, _SIGNATURE = 8, 32
_LARGEST = 2**36


class ForgedMessageError(OpwrightError):
    """A message was not written by the other end: native code wrote to the channel."""


class Channel:
    """One end of the channel.

    A message contains text, numbers, None, dtypes, devices, tensors, and lists, tuples and dicts of them. Reading it
    runs no code. Each message is numbered, and signed with a key that both ends share.

    Args:
        connection: the connected socket.
        key: the secret that both ends share.
    """

    def __init__(self, connection: socket.socket, key: str) -> None:
        self._socket = connection
        self._key = key.encode()
        self._sent = self._received = 0

    def send(self, message: dict[str, Any]) -> None:
        """Send a message to the other end."""
        tensors: list[Tensor] = []
        text = json.dumps(_encoded(message, tensors)).encode()
        file = io.BytesIO()
        if tensors:
            torch.save(tensors, file)
        payload = b"".join((len(text).to_bytes(_SIZE, "little"), text, file.getbuffer()))
        signature = self._signature(self._sent, payload)
        self._sent += 1
        self._socket.sendall(b"".join((len(payload).to_bytes(_SIZE, "little"), signature, payload)))

    def receive(self) -> dict[str, Any] | None:
        """The next message; None if the other end has closed the channel.

        Raises:
            ForgedMessageError: a message does not come from the other end.
        """
        header = self._read(_SIZE + _SIGNATURE)
        if not header:
            return None
        size = int.from_bytes(header[:_SIZE], "little")
        if len(header) < _SIZE + _SIGNATURE or size > _LARGEST:
            raise ForgedMessageError(_FORGED)
        payload = self._read(size)
        if len(payload) < size:
            return None  # the process ended while it was sending
        if not hmac.compare_digest(header[_SIZE:], self._signature(self._received, payload)):
            raise ForgedMessageError(_FORGED)
        self._received += 1
        try:
            return _message(payload)
        except Exception as error:  # native code that reads the key from memory can sign any message
            raise ForgedMessageError(_FORGED) from error

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def _signature(self, number: int, payload: bytes) -> bytes:
        return hmac.new(self._key, number.to_bytes(_SIZE, "little") + payload, hashlib.sha256).digest()

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            try:
                part = self._socket.recv(min(size, 2**20))
            except ConnectionError:
                break
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


_FORGED = "a message lacks the check's signature: native code wrote to the check's channel"


def listen(path: Path) -> socket.socket:
    """A socket at `path` that listens for the other end."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(1)
    return listener


def connect(path: Path, key: str) -> Channel:
    """Connect to the socket of `listen`, and return this end of the channel."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    return Channel(connection, key)


def _message(payload: bytes) -> dict[str, Any]:
    length = int.from_bytes(payload[:_SIZE], "little")
    text, data = payload[_SIZE : _SIZE + length], payload[_SIZE + length :]
    tensors = torch.load(io.BytesIO(data), weights_only=True) if data else []
    message: dict[str, Any] = _decoded(json.loads(text), tensors)
    return message


def _encoded(value: Any, tensors: list[Tensor]) -> Any:
    """`value` for JSON. Tensors are moved to a list; values that JSON lacks become lists of their kind and text."""
    match value:
        case Tensor():
            found: Any = _encoded_tensor(value.detach(), tensors)
        case list() | tuple():
            found = ["list" if isinstance(value, list) else "tuple", *(_encoded(one, tensors) for one in value)]
        case dict():
            found = {name: _encoded(one, tensors) for name, one in value.items()}
        case float() if not math.isfinite(value):
            found = ["float", str(value)]
        case complex():
            found = ["complex", str(value)]
        case torch.device():
            found = ["device", str(value)]
        case torch.dtype() | torch.layout() | torch.memory_format():
            found = ["torch", str(value).removeprefix("torch.")]
        case None | bool() | int() | float() | str():
            found = value
        case _:
            found = ["other", repr(value)]
    return found


def _encoded_tensor(tensor: Tensor, tensors: list[Tensor]) -> list[Any]:
    """`tensor` as its index in the list, or as a view of an entry that has the same memory in another dtype."""
    memory = _memory(tensor)
    for at, known in enumerate(tensors):
        if memory and memory == _memory(known) and known.dtype != tensor.dtype:
            return ["view", at, *(_encoded(one, tensors) for one in vars(Layout.of(tensor)).values())]
    tensors.append(tensor)
    return ["tensor", len(tensors) - 1]


def _memory(tensor: Tensor) -> int:
    """The address of the tensor's memory; 0 if it has none."""
    return 0 if tensor.layout != torch.strided or tensor.is_meta else tensor.untyped_storage().data_ptr()


def _decoded(value: Any, tensors: list[Tensor]) -> Any:
    if isinstance(value, dict):
        return {name: _decoded(one, tensors) for name, one in value.items()}
    if not isinstance(value, list):
        return value
    kind, *rest = value
    match kind:
        case "list" | "tuple":
            made = [_decoded(one, tensors) for one in rest]
            return made if kind == "list" else tuple(made)
        case "tensor":
            return tensors[rest[0]]
        case "view":
            layout = Layout(*(_decoded(one, tensors) for one in rest[1:]))
            return layout.view(tensors[rest[0]].untyped_storage())
    return _PLAIN[kind](rest[0])


def _named(name: str) -> torch.dtype | torch.layout | torch.memory_format:
    found = getattr(torch, name, None)
    if not isinstance(found, (torch.dtype, torch.layout, torch.memory_format)):
        raise ForgedMessageError(_FORGED)
    return found


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "complex": complex,
    "device": torch.device,
    "torch": _named,
    "other": str,
}
