from __future__ import annotations

import ctypes

import pytest
import torch
from torch import Tensor

from opwright.checker.behavior.memory import (
    address_range,
    bytes_in_use,
    is_freed,
    same_bytes,
    shares_memory,
)
from opwright.checker.behavior.poison import poisoned

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


def over(address: int, count: int) -> Tensor:
    """A tensor in memory that it does not own."""
    return torch.frombuffer((ctypes.c_float * count).from_address(address), dtype=torch.float32)


def test_the_address_range_spans_the_first_to_the_last_element() -> None:
    tensor = torch.zeros(4, 5)
    start = tensor.data_ptr()
    assert address_range(tensor) == range(start, start + 80)
    assert address_range(tensor[1:3, 2]) == range(start + 28, start + 52)
    assert address_range(tensor.t()) == address_range(tensor)
    assert len(address_range(torch.zeros(3, 0))) == 0
    assert len(address_range(torch.zeros(3, device="meta"))) == 0


def test_a_view_shares_memory_and_a_copy_does_not() -> None:
    x, y = torch.zeros(6), torch.zeros(6)
    assert shares_memory([y, x[2:4]], {"x": x})
    assert shares_memory([[x]], {"xs": [y, x]})
    assert not shares_memory([x.clone(), 3, None], {"x": x, "y": y, "factor": 2.0})


def test_two_halves_of_a_storage_do_not_overlap() -> None:
    whole = torch.zeros(6)
    assert not shares_memory([whole[:3]], [whole[3:]])
    assert not shares_memory([whole[3:3]], [whole])


@pytest.mark.parametrize("count", [4, 33, 1000, 100_000])
@pytest.mark.parametrize("grain", [0, 16])
def test_a_result_in_freed_memory_is_found(count: int, grain: int) -> None:
    # Free chunks are allocated first, so that the allocator must reuse this one.
    taken = [libc.malloc(4 * count + extra) for extra in (0, 16) for _ in range(2000)]
    address = libc.malloc(4 * count + grain)
    freed = over(address, count)
    libc.free(address)
    found = is_freed([3, freed])
    for other in taken:
        libc.free(other)
    assert found


@pytest.mark.parametrize("count", [1, 33, 100_000])
def test_a_result_that_owns_its_memory_is_not_freed(count: int) -> None:
    assert not is_freed([torch.zeros(count), [torch.zeros(count)], None, torch.zeros(0)])


def test_bytes_are_compared_instead_of_values() -> None:
    nan = torch.tensor([float("nan"), 1.0])
    assert same_bytes(nan, nan.clone())
    assert not same_bytes(torch.tensor([0.0]), torch.tensor([-0.0]))
    assert not same_bytes(nan, torch.tensor([float("nan"), 2.0]))
    assert same_bytes(torch.zeros(2, device="meta"), torch.ones(2, device="meta"))


def test_bytes_between_the_elements_are_compared_too() -> None:
    wide = torch.zeros(8)
    other = wide.clone()
    assert same_bytes(wide[::2], other[::2])
    other[3] = 1
    assert torch.equal(wide[::2], other[::2])
    assert not same_bytes(wide[::2], other[::2])


@pytest.mark.parametrize("size", [3000, 2**22])
def test_memory_in_use_grows_and_shrinks_with_malloc(size: int) -> None:
    before = bytes_in_use()
    taken = [libc.malloc(size) for _ in range(10)]
    grown = bytes_in_use()
    for address in taken:
        libc.free(address)
    after = bytes_in_use()
    assert before is not None
    assert grown is not None
    assert after is not None
    # Other threads allocate a little memory in the meantime.
    assert grown - before == pytest.approx(10 * size, rel=0.3)
    assert after - before < 3 * size


@pytest.mark.parametrize(
    ("dtype", "filling"), [(torch.float32, None), (torch.int32, 2**31 - 1), (torch.uint8, 255), (torch.bool, True)]
)
def test_new_memory_is_poisoned_only_in_the_context(dtype: torch.dtype, filling: int | None) -> None:
    with poisoned():
        fresh = torch.empty(1000, dtype=dtype)
    assert bool((fresh.isnan() if filling is None else fresh == filling).all())
    with poisoned(), poisoned(on=False):
        assert not torch.are_deterministic_algorithms_enabled()
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_settings_are_restored_after_an_exception() -> None:
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    try:
        with pytest.raises(ValueError, match="a kernel"), poisoned(on=False):
            raise ValueError("a kernel")  # noqa: EM101, TRY003  the least that raises
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(mode=False)
