from __future__ import annotations

import re

import pytest

from opwright.cache.bound import Bound, bytes_of
from opwright.errors import CacheError


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("100", 100),
        ("7KB", 7000),
        ("20m", 20 * 10**6),
        ("5GB", 5 * 10**9),
        ("2T", 2 * 10**12),
        ("1.5 GiB", 1.5 * 2**30),
    ],
)
def test_a_size_is_a_number_with_or_without_a_unit(text: str, count: float) -> None:
    assert bytes_of(text) == count


@pytest.mark.parametrize("text", ["GB", "-1", "5 apples", "5GBB", "1e9", "iB", "5i"])
def test_an_invalid_size_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        bytes_of(text)


def test_the_variable_sets_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPWRIGHT_CACHE_SIZE", raising=False)
    assert Bound.chosen() == Bound(10 * 10**9, 90 * 86_400)
    monkeypatch.setenv("OPWRIGHT_CACHE_SIZE", "2GB")
    assert Bound.chosen() == Bound(2 * 10**9, 90 * 86_400)
    monkeypatch.setenv("OPWRIGHT_CACHE_SIZE", "unlimited")
    assert Bound.chosen() == Bound(None, None)
    monkeypatch.setenv("OPWRIGHT_CACHE_SIZE", "much")
    with pytest.raises(
        CacheError, match=r"^OPWRIGHT_CACHE_SIZE is 'much': expected a size such as 5GB or 500MB, or unlimited$"
    ):
        Bound.chosen()
