"""Operators in a library of their own, and the error that an invalid description raises."""

from __future__ import annotations

import re
from typing import Any

import pytest

import opwright
from opwright.errors import SpecError


def described(reference: Any, **options: Any) -> opwright.Op:
    return opwright.Library("mine").op(**options)(reference)


def raises(message: str) -> Any:
    return pytest.raises(SpecError, match=re.escape(message))
