from __future__ import annotations

import io
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.scale.inputs.item import Item
from opwright.scale.results import plan as module

pytest.importorskip("pyarrow")

NAMES = st.binary(min_size=1, max_size=8).filter(lambda name: b"\0" not in name).map(os.fsdecode)
ITEMS = st.one_of(
    st.builds(Item, NAMES, st.none(), st.none(), st.none()),
    st.builds(Item, NAMES, st.text(max_size=8), st.none(), st.none()),
    st.builds(Item, NAMES, st.none(), NAMES, st.integers(0, 2**62)),
)


@settings(max_examples=40)
@given(st.lists(ITEMS, max_size=12), st.data())
def test_a_plan_returns_every_input(
    tmp_path_factory: pytest.TempPathFactory, items: list[Item], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("plan") / "inputs.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_GROUP_ROWS", 3)
        counts: list[int] = []
        assert module.write_plan(iter(items), path, counts.append) == len(items)
        plan = module.Plan(io.BytesIO(path.read_bytes()))
        assert list(plan) == items
        if items:
            first = data.draw(st.integers(0, len(items) - 1))
            count = data.draw(st.integers(1, len(items) - first))
            assert plan.items(first, count) == items[first : first + count]


@given(st.lists(ITEMS, min_size=1, max_size=8, unique=True), st.integers(1, 4))
def test_digests_depend_on_the_inputs_and_their_order(items: list[Item], rows: int) -> None:
    digests = list(module.shard_digests(items, rows))
    assert len(digests) == -(-len(items) // rows)
    assert digests == list(module.shard_digests(iter(items), rows))
    assert all(len(digest) == 16 and int(digest, 16) >= 0 for digest in digests)
    for place in range(len(items)):
        others = list(module.shard_digests([*items[:place], Item("another\0"), *items[place + 1 :]], rows))
        changed = [number for number, (one, other) in enumerate(zip(digests, others, strict=True)) if one != other]
        assert changed == [place // rows]


def test_names_with_the_same_concatenation_have_different_digests() -> None:
    some = [
        [Item("a\nb")],
        [Item("a"), Item("b")],
        [Item("a", "b")],
        [Item("a", None, "b", 1)],
        [Item("a", "None")],
        [Item("a")],
    ]
    assert len({digest for items in some for digest in module.shard_digests(items, 2)}) == len(some)


def test_digests_are_stable_across_releases() -> None:
    items = [
        Item("a.npy"),
        Item("\udcff.npy"),
        Item("a, b", '{"x": "a", "y": "b"}'),
        Item("t.parquet#1", None, "t.parquet", 1),
    ]
    assert list(module.shard_digests(items, 3)) == ["00603b185a30f598", "c48f6b1fe5eeaa5a"]
