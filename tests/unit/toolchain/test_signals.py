from __future__ import annotations

import signal

import pytest

from opwright.toolchain.signals import signal_name


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_signal_has_its_name(number: signal.Signals) -> None:
    assert signal_name(int(number)) == number.name


@pytest.mark.parametrize("number", [35, 1000])
def test_a_signal_without_a_name_has_its_number(number: int) -> None:
    assert signal_name(number) == f"signal {number}"
