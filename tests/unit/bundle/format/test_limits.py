from __future__ import annotations

import re
from pathlib import Path

from opwright.bundle.format import limits

HEADER = Path(limits.__file__).parents[2] / "host/cpp/bundle/limits.h"


def test_the_host_has_the_same_limits_under_the_same_names() -> None:
    told = re.findall(r"^constexpr \w+ (\w+) = (\d+);$", HEADER.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(told) == HEADER.read_text(encoding="utf-8").count("constexpr")
    assert {name.upper(): int(number) for name, number in told} == {
        name: value for name, value in vars(limits).items() if name.isupper()
    }
