"""The channel between the process of an operator and its judge, with signed messages that only these two can write."""

from __future__ import annotations

import ctypes
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
        payload = _payload(message)
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
        return hmac.digest(self._key, number.to_bytes(_SIZE, "little") + payload, "sha256")

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


class _Sent:
    """The tensors of a message that is being written.

    Attributes:
        memory: the contents of their storages, in order; those that share a storage share its contents.
        others: the tensors that are not a view of a storage on the CPU, such as sparse ones.
    """

    def __init__(self) -> None:
        self.memory: list[bytes] = []
        self.others: list[Tensor] = []
        self._known: dict[tuple[int, int], int] = {}

    def encoded(self, tensor: Tensor) -> list[Any]:
        """`tensor` as the index of its storage and its layout, or as its index among the others."""
        if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
            self.others.append(tensor)
            return ["other tensor", len(self.others) - 1]
        storage = tensor.untyped_storage()
        memory = storage.data_ptr(), storage.nbytes()
        if memory not in self._known:
            self._known[memory] = len(self.memory)
            self.memory.append(ctypes.string_at(*memory) if memory[1] else b"")
        return ["tensor", self._known[memory], *(_encoded(one, self) for one in vars(Layout.of(tensor)).values())]


class _Received:
    """The tensors of a message that is being read.

    Args:
        memory: the contents of their storages.
        others: the other tensors.
    """

    def __init__(self, memory: list[memoryview], others: list[Tensor]) -> None:
        self._storages = [_storage(one) for one in memory]
        self._others = others

    def decoded(self, at: int, layout: Layout) -> Tensor:
        """The tensor with a layout in a storage.

        Raises:
            ForgedMessageError: the tensor exceeds the storage.
        """
        storage = self._storages[at]
        size = storage.nbytes()
        tensor = layout.view(storage)
        if storage.nbytes() != size:  # PyTorch has made it larger
            raise ForgedMessageError(_FORGED)
        return tensor

    def other(self, at: int) -> Tensor:
        """One of the other tensors."""
        return self._others[at]


def _storage(content: memoryview) -> torch.UntypedStorage:
    # Aligned as PyTorch aligns it: the rounding of some products depends on that.
    made = torch.empty(len(content), dtype=torch.uint8)
    if len(content):
        made.copy_(torch.frombuffer(content, dtype=torch.uint8))
    return made.untyped_storage()


def _payload(message: dict[str, Any]) -> bytes:
    sent = _Sent()
    encoded = _encoded(message, sent)
    file = io.BytesIO()
    if sent.others:
        torch.save(sent.others, file)
    sizes = [len(one) for one in sent.memory]
    text = json.dumps([encoded, sizes]).encode()
    return b"".join((len(text).to_bytes(_SIZE, "little"), text, *sent.memory, file.getbuffer()))


def _message(payload: bytes) -> dict[str, Any]:
    at = _SIZE + int.from_bytes(payload[:_SIZE], "little")
    encoded, sizes = json.loads(payload[_SIZE:at])
    data = memoryview(bytearray(payload[at:]))
    memory = []
    for size in sizes:
        memory.append(data[:size])
        data = data[size:]
    others = torch.load(io.BytesIO(data), weights_only=True) if data else []
    message: dict[str, Any] = _decoded(encoded, _Received(memory, others))
    return message


def _encoded(value: Any, sent: _Sent) -> Any:
    """`value` for JSON. Tensors are kept in `sent`; values that JSON lacks become lists of their kind and text."""
    match value:
        case Tensor():
            found: Any = sent.encoded(value.detach())
        case list() | tuple():
            found = ["list" if isinstance(value, list) else "tuple", *(_encoded(one, sent) for one in value)]
        case dict():
            found = {name: _encoded(one, sent) for name, one in value.items()}
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


def _decoded(value: Any, received: _Received) -> Any:
    if isinstance(value, dict):
        return {name: _decoded(one, received) for name, one in value.items()}
    if not isinstance(value, list):
        return value
    kind, *rest = value
    match kind:
        case "list" | "tuple":
            made = [_decoded(one, received) for one in rest]
            return made if kind == "list" else tuple(made)
        case "tensor":
            at, *layout = (_decoded(one, received) for one in rest)
            return received.decoded(at, Layout(*layout))
        case "other tensor":
            return received.other(rest[0])
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
