"""A cache on a network file system that several machines share, with locks that are local to each machine."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from opwright.builder.compile import build_plan
from opwright.builder.plan import plan_sources
from opwright.cache.cache import Cache
from opwright.storage.file_system import mount_of
from tests.integration.conftest import write_program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.needs("sshfs")

_BUILD = """
import sys
from opwright.builder.compile import build_plan
from opwright.builder.plan import plan_sources
for source in sys.argv[1:]:
    print(build_plan(plan_sources("mine", [source], cflags=["-O0"])).path)
"""


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Path]]:
    """One folder, mounted as on two machines."""
    (tmp_path / "served").mkdir()
    write_program(tmp_path / "ssh", "exec /usr/lib/openssh/sftp-server")
    mounted = [tmp_path / name for name in ("one", "two")]
    for folder in mounted:
        folder.mkdir()
        options = ["-o", f"ssh_command={tmp_path / 'ssh'}"]
        subprocess.run(["sshfs", *options, f"machine:{tmp_path / 'served'}", folder], check=True)
    yield mounted
    for folder in mounted:
        subprocess.run(["fusermount3", "-u", "-z", folder], check=True)


def _start(cache: Path, sources: list[Path]) -> subprocess.Popen[str]:
    environment = {**os.environ, "OPWRIGHT_CACHE": str(cache)}
    command = [sys.executable, "-c", _BUILD, *map(str, sources)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_machines_can_build_the_same_library_concurrently(machines: list[Path], tmp_path: Path) -> None:
    mount = mount_of(machines[0] / "cache")
    assert mount is not None
    assert not mount.locks_reach_other_machines
    sources = [tmp_path / f"{number}.cpp" for number in range(3)]
    for number, source in enumerate(sources):
        source.write_text(f'extern "C" __attribute__((visibility("default"))) int answer() {{ return {number}; }}\n')
    builders = [_start(machine / "cache", sources) for machine in machines for _ in range(2)]
    for builder in builders:
        out, err = builder.communicate(timeout=300)
        assert builder.returncode == 0, err
        assert len(out.split()) == len(sources)
    for machine in machines:
        cache = Cache(machine / "cache")
        for number, source in enumerate(sources):
            artefact = build_plan(plan_sources("mine", [source], cflags=["-O0"]), cache=cache)
            assert artefact.compiled == ()
            assert ctypes.CDLL(str(artefact.path)).answer() == number
