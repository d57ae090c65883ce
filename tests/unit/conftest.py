"""Operators that exist in Python alone, described in an op.py of their own: no test of them needs a compiler."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Protocol

import pytest

from opwright.spec import library_at

if TYPE_CHECKING:
    from opwright.spec import Library

HEAD = """\
from __future__ import annotations
from collections.abc import Sequence
import os, signal, time
import torch
from torch import Tensor
import opwright
library = opwright.Library({namespace!r})
"""

# A namespace is registered once in a process.
_numbers = itertools.count()


class Describe(Protocol):
    """Writes an op.py with these operators, and gives the library that it describes."""

    def __call__(self, text: str) -> Library: ...


@pytest.fixture(scope="session")
def describe(tmp_path_factory: pytest.TempPathFactory) -> Describe:
    def describe(text: str) -> Library:
        namespace = f"described_{os.getpid()}_{next(_numbers)}"
        folder = tmp_path_factory.mktemp(namespace, numbered=False)
        (folder / "op.py").write_text(HEAD.format(namespace=namespace) + text)
        return library_at(folder)

    return describe
