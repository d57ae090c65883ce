from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

from opwright.toolchain.machine import processor_features, this_machine

if TYPE_CHECKING:
    from pathlib import Path

CPUINFO = """\
processor\t: 0
model name\t: A  Processor(R) 9000
flags\t\t: fpu sse2 avx2 avx512f amx_tile fma

processor\t: 1
model name\t: A  Processor(R) 9000
"""


def test_a_machine_has_a_processor_model_and_instruction_sets(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(CPUINFO)
    machine = this_machine(tmp_path / "cpuinfo")
    assert machine.processor == "A Processor(R) 9000"
    assert machine.instruction_sets == ("avx2", "fma", "avx512f", "amx_tile")
    assert str(machine).startswith("A Processor(R) 9000, ")


def test_a_machine_without_cpuinfo_has_an_architecture(tmp_path: Path) -> None:
    machine = this_machine(tmp_path / "nothing")
    assert (machine.processor, machine.instruction_sets) == (platform.machine(), ())


def test_the_features_of_a_processor_are_those_that_the_system_lists(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(CPUINFO)
    assert processor_features(tmp_path / "cpuinfo") == {"fpu", "sse2", "avx2", "avx512f", "amx_tile", "fma"}
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nbugs\t\t: none\n")
    assert processor_features(tmp_path / "cpuinfo") == set()


def test_this_machine_has_processors_and_memory_and_no_name() -> None:
    machine = this_machine()
    assert 1 <= machine.processors <= (os.cpu_count() or 1)
    assert machine.memory_bytes > 2**28
    assert machine.python == platform.python_version()
    assert platform.node() not in str(machine).split()
