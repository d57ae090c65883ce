"""The limits of a cache: its size, and the age of its entries."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from opwright.errors import CacheError

VARIABLE = "OPWRIGHT_CACHE_SIZE"
UNLIMITED = "unlimited"
_DAY_S = 86_400.0
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?", flags=re.IGNORECASE)


@dataclass(frozen=True)
class Bound:
    """The limits of a cache.

    Attributes:
        size: the maximum size in bytes; None for no limit.
        age_s: the maximum time since an entry was last used, in seconds; None for no limit.
    """

    size: int | None = 10 * 10**9
    age_s: float | None = 90 * _DAY_S

    @staticmethod
    def chosen() -> Bound:
        """The limits that `$OPWRIGHT_CACHE_SIZE` sets, or the default ones.

        Raises:
            CacheError: its value is not a size.
        """
        text = os.environ.get(VARIABLE, "")
        if not text:
            return Bound()
        if text == UNLIMITED:
            return Bound(None, None)
        try:
            return Bound(size=bytes_of(text))
        except ValueError as error:
            msg = f"{VARIABLE} is {text!r}: expected a size such as 5GB or 500MB, or {UNLIMITED}"
            raise CacheError(msg) from error


def bytes_of(text: str) -> int:
    """The number of bytes in a size such as `5GB`, `1.5 GiB` or `100000`.

    Raises:
        ValueError: it is not a size.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None or found[2].upper() not in _UNITS:
        raise ValueError(text)
    return int(float(found[1]) * _UNITS[found[2].upper()])
