"""Operators that exist in Python alone, described in an op.py of their own: a check needs no compiler for them."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Protocol

import pytest

from opwright.checker.subject import Options, Subject
from opwright.loader.open import open_library
from opwright.spec import library_at

if TYPE_CHECKING:
    from pathlib import Path

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


class MakeSubject(Protocol):
    """Describes an operator, registers it with PyTorch, and gives it as a check has it."""

    def __call__(self, text: str, *, quick: bool = False, large: bool = False, seed: int = 0) -> Subject: ...


@pytest.fixture(scope="session")
def describe(tmp_path_factory: pytest.TempPathFactory) -> Describe:
    def describe(text: str) -> Library:
        namespace = f"described_{os.getpid()}_{next(_numbers)}"
        folder = tmp_path_factory.mktemp(namespace, numbered=False)
        (folder / "op.py").write_text(HEAD.format(namespace=namespace) + text)
        return library_at(folder)

    return describe


@pytest.fixture(scope="session")
def make_subject(describe: Describe, tmp_path_factory: pytest.TempPathFactory) -> MakeSubject:
    def make_subject(text: str, *, quick: bool = False, large: bool = False, seed: int = 0) -> Subject:
        library = describe(text)
        open_library(library)
        op = next(iter(library.ops.values()))
        work: Path = tmp_path_factory.mktemp("work")
        return Subject(op, None, "cpu", Options(seed, quick, large), work)

    return make_subject
