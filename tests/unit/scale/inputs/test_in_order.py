from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwright.scale.inputs import in_order as module
from opwright.scale.inputs.in_order import in_order

NAMES = st.lists(st.binary(min_size=1, max_size=6).filter(lambda name: b"\0" not in name))


@pytest.mark.parametrize("in_memory", [2, module._IN_MEMORY])
@given(names=NAMES)
def test_a_few_and_many_names_are_sorted_by_their_bytes(in_memory: int, names: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_IN_MEMORY", in_memory)
        assert [os.fsencode(name) for name in in_order(map(os.fsdecode, names))] == sorted(names)


@pytest.mark.parametrize("count", [19_999, 20_000, 20_001, 50_000])
def test_names_are_sorted_whether_they_fit_in_memory_or_not(count: int) -> None:
    names = [f"{number * 7919 % count:x}-\udcff" for number in range(count)]
    assert list(in_order(iter(names))) == sorted(names, key=os.fsencode)


def test_the_first_names_can_be_read_alone() -> None:
    names = in_order(str(number) for number in range(30_000))
    assert next(names) == "0"
    names.close()  # type: ignore[attr-defined]  # it is a generator
