"""Messages between two ends of a channel, and bytes that neither end wrote."""

from __future__ import annotations

import json
import pickle
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from opwright.checker.processes.channel import Channel, ForgedMessageError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning")

DTYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2),
    *(torch.complex128, torch.complex64, torch.complex32),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    torch.bool,
)
FORGED = "a message lacks the check's signature: native code wrote to the check's channel"


class Ends:
    """Both ends of a channel.

    Attributes:
        sender: the end that sends.
        receiver: the end that receives.
        raw: the socket of the sender.
    """

    def __init__(self, key: str = "key", other_key: str = "key") -> None:
        self.raw, other = socket.socketpair()
        self.sender, self.receiver = Channel(self.raw, key), Channel(other, other_key)

    def passed_on(self, message: dict[str, Any]) -> dict[str, Any]:
        """`message` as received, after a thread sent it."""

        def send() -> None:
            try:
                self.sender.send(message)
            finally:
                self.raw.shutdown(socket.SHUT_WR)  # after an error too, so that the receiver does not wait for more

        sending = threading.Thread(target=send)
        sending.start()
        received = self.receiver.receive()
        sending.join()
        assert received is not None
        return received

    def close(self) -> None:
        self.sender.close()
        self.receiver.close()


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.close()


def bytes_of(*messages: dict[str, Any]) -> list[bytes]:
    """The bytes that a sender writes for each message."""
    ends = Ends()
    other = ends.receiver
    written = []
    for message in messages:
        ends.sender.send(message)
        written.append(other._socket.recv(2**20))
    ends.close()
    return written


def received(*parts: bytes) -> list[dict[str, Any]]:
    """The messages that a receiver reads from these bytes, followed by the end of the channel."""
    ends = Ends()
    ends.raw.sendall(b"".join(parts))
    ends.sender.close()
    found = []
    try:
        while (message := ends.receiver.receive()) is not None:
            found.append(message)
    finally:
        ends.close()
    return found


@st.composite
def tensors(draw: st.DrawFn) -> list[Tensor]:
    """One or two views of the same memory, with any layout."""
    dtype = draw(st.sampled_from(DTYPES))
    count = 24
    memory = torch.frombuffer(bytearray(draw(st.binary(min_size=24 * 16, max_size=24 * 16))), dtype=torch.uint8)
    if dtype is torch.bool:
        memory = memory % 2
    elements = memory[: count * dtype.itemsize].clone().view(dtype)
    views = []
    for _ in range(draw(st.integers(1, 2))):
        shape = draw(st.lists(st.integers(0, 3), max_size=3))
        strides = [draw(st.integers(0, 3)) for _ in shape]
        view = elements.as_strided(shape, strides, draw(st.integers(0, 5)))
        if dtype.is_complex and draw(st.booleans()):
            view = view.conj()
            if dtype is not torch.complex32 and draw(st.booleans()):
                view = view.imag  # a view that is negated when it is read
        views.append(view)
    return views


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    st.sampled_from(DTYPES),
    st.sampled_from([torch.device("cpu"), torch.device("meta"), torch.device("cuda", 1)]),
    st.sampled_from([torch.strided, torch.sparse_coo, torch.channels_last, torch.preserve_format]),
)
values = st.recursive(
    st.one_of(plain, tensors(), tensors().map(lambda views: views[0])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(), inner, max_size=3),
    ),
    max_leaves=6,
)


def is_same(one: Any, other: Any) -> bool:
    """Whether a value arrived unchanged: same type, same bits, same layout."""
    if isinstance(one, Tensor):
        return _is_same_tensor(one, other)
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(is_same(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, complex):
        return is_same([one.real, one.imag], [other.real, other.imag])
    # The text of a number distinguishes signed zeros, and is the same for every NaN.
    return repr(one) == repr(other)


def _is_same_tensor(one: Tensor, other: Any) -> bool:
    def layout(tensor: Tensor) -> tuple[Any, ...]:
        numbers = tensor.shape, tensor.stride(), tensor.storage_offset()
        return (*numbers, tensor.dtype, tensor.device, tensor.is_conj(), tensor.is_neg())

    if not isinstance(other, Tensor) or layout(one) != layout(other):
        return False
    return bytes(one.untyped_storage()) == bytes(other.untyped_storage())


@settings(deadline=None, max_examples=150)
@given(values)
def test_arguments_of_every_kind_arrive_unchanged(value: Any) -> None:
    ends = Ends()
    arrived = ends.passed_on({"value": value})
    ends.close()
    assert list(arrived) == ["value"]
    assert is_same(value, arrived["value"]), (value, arrived)


@settings(deadline=None, max_examples=50)
@given(tensors())
def test_tensors_that_share_memory_still_share_it_at_the_other_end(views: list[Tensor]) -> None:
    ends = Ends()
    first, *others = ends.passed_on({"value": views})["value"]
    ends.close()
    assert all(other.untyped_storage().data_ptr() == first.untyped_storage().data_ptr() for other in others)


def test_memory_that_is_viewed_in_two_dtypes_is_shared_at_the_other_end(ends: Ends) -> None:
    x = torch.randn(5, dtype=torch.complex64)
    whole, part, integers = views = ends.passed_on({"value": [x, x.conj().imag[1:], x.view(torch.int64)]})["value"]
    assert is_same([x, x.conj().imag[1:], x.view(torch.int64)], views)
    assert len({view.untyped_storage().data_ptr() for view in (whole, part, integers)}) == 1


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors_of_every_dtype_arrive_with_the_memory_between_their_elements(ends: Ends, dtype: torch.dtype) -> None:
    memory = torch.arange(6 * dtype.itemsize, dtype=torch.uint8).view(dtype) if dtype is not torch.bool else None
    tensor = (torch.tensor([True, False] * 3) if memory is None else memory)[1::2]
    assert is_same([tensor], ends.passed_on({"value": [tensor]})["value"])


def test_a_parameter_arrives_as_a_plain_tensor(ends: Ends) -> None:
    arrived = ends.passed_on({"value": torch.nn.Parameter(torch.ones(2))})["value"]
    assert type(arrived) is Tensor
    assert not arrived.requires_grad


def test_any_other_value_arrives_as_text(ends: Ends) -> None:
    assert ends.passed_on({"value": torch.Generator}) == {"value": repr(torch.Generator)}


def test_a_closed_channel_returns_none_without_an_error(ends: Ends) -> None:
    ends.sender.send({"event": "last"})
    ends.sender.close()
    assert ends.receiver.receive() == {"event": "last"}
    assert ends.receiver.receive() is None


# -- bytes that the other end did not write -----------------------------------------------------------------

MESSAGE, OTHER = {"event": "end", "value": torch.arange(3)}, {"event": "step", "value": 1.5}
WRITTEN, OTHER_WRITTEN = bytes_of(MESSAGE, OTHER)


def is_refused(*parts: bytes) -> bool:
    """Whether these bytes end the channel without a message, or are reported as forged."""
    try:
        return received(*parts) == []
    except ForgedMessageError as error:
        return str(error) == FORGED


def test_a_written_message_is_received() -> None:
    first, second = received(WRITTEN, OTHER_WRITTEN)
    assert is_same([MESSAGE, OTHER], [first, second])


@settings(deadline=None, max_examples=300)
@given(at=st.integers(0, len(WRITTEN) - 1), changed=st.integers(1, 255))
def test_a_changed_byte_is_rejected_at_every_position(at: int, changed: int) -> None:
    assert is_refused(WRITTEN[:at], bytes([WRITTEN[at] ^ changed]), WRITTEN[at + 1 :])


@settings(deadline=None, max_examples=100)
@given(at=st.integers(0, len(WRITTEN) - 1), inserted=st.binary(min_size=1, max_size=64))
def test_bytes_between_messages_are_rejected(at: int, inserted: bytes) -> None:
    if inserted + WRITTEN[at:] != WRITTEN[at : at + len(inserted)] + WRITTEN[at:]:
        assert is_refused(WRITTEN[:at], inserted, WRITTEN[at:])


@settings(deadline=None, max_examples=100)
@given(length=st.integers(0, len(WRITTEN) - 1))
def test_a_truncated_message_is_rejected(length: int) -> None:
    assert is_refused(WRITTEN[:length])


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=200))
def test_any_other_bytes_are_rejected(text: bytes) -> None:
    assert is_refused(text)


@pytest.mark.parametrize(
    "parts",
    [(WRITTEN, WRITTEN), (WRITTEN, OTHER_WRITTEN, OTHER_WRITTEN), (OTHER_WRITTEN,)],
    ids=["once", "later", "left out"],
)
def test_a_repeated_or_missing_message_is_forged(parts: tuple[bytes, ...]) -> None:
    with pytest.raises(ForgedMessageError, match=FORGED):
        received(*parts)


def test_a_message_that_another_key_signed_is_forged() -> None:
    ends = Ends("key", "another key")
    ends.sender.send(OTHER)
    with pytest.raises(ForgedMessageError, match=FORGED):
        ends.receiver.receive()
    ends.close()


class RunsCode:
    """Its pickle creates a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_tensors_that_would_run_code_are_forged_even_if_they_are_signed(
    ends: Ends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "trace"
    pickle.loads(pickle.dumps(RunsCode(trace)))  # to show that it would run
    assert trace.exists()
    trace.unlink()
    monkeypatch.setattr(torch, "save", lambda _, file: pickle.dump([RunsCode(trace)], file))
    ends.sender.send({"value": torch.ones(2).to_sparse()})
    with pytest.raises(ForgedMessageError, match=FORGED):
        ends.receiver.receive()
    assert not trace.exists()


FLOAT32 = ["torch", "float32"]


def view(shape: list[Any], strides: list[Any], offset: int = 0, at: int = 0) -> list[Any]:
    """A tensor of a message: a view of the memory number `at`."""
    return ["tensor", at, FLOAT32, offset, ["tuple", *shape], ["tuple", *strides], False, False]


def signed(ends: Ends, value: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any] | None:
    """The message with this text and eight bytes of memory, as received from an end that knows the key."""
    text = json.dumps([{"value": value}, [8]])
    with monkeypatch.context() as patched:
        patched.setattr(json, "dumps", lambda _: text)
        ends.sender.send({"value": torch.ones(2)})
    return ends.receiver.receive()


def test_a_view_of_the_memory_of_a_message_is_received(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_same([signed(ends, view([2], [1]), monkeypatch)], [{"value": torch.ones(2)}])


@pytest.mark.parametrize(
    "value",
    [
        *(["torch", "save"], ["torch", "_C"], ["eval", "1"], ["device", "nowhere"], [], [1], ["list", []]),
        *(["tensor", 0], ["other tensor", 0], view([3], [1]), view([2], [2]), view([2], [1], 1), view([2], [1], at=1)),
        *(view([-1], [1]), view([2], [-1]), view([2**62], [2**62]), view(["2"], [1]), view([2], [1], -1)),
    ],
    ids=str,
)
def test_text_that_does_not_name_a_value_is_forged_even_if_it_is_signed(
    ends: Ends, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ForgedMessageError, match=FORGED):
        signed(ends, value, monkeypatch)


def test_tensors_without_a_storage_on_the_cpu_arrive_too(ends: Ends) -> None:
    sparse, meta = torch.eye(3).to_sparse(), torch.empty(2, 3, device="meta", dtype=torch.int32)
    received = ends.passed_on({"value": [sparse, torch.ones(2), meta]})["value"]
    assert received[0].is_coalesced() == sparse.is_coalesced()
    assert torch.equal(received[0].to_dense(), torch.eye(3))
    assert torch.equal(received[1], torch.ones(2))
    assert (received[2].shape, received[2].dtype, received[2].is_meta) == ((2, 3), torch.int32, True)
