"""What every test relies on: tools and hardware that a test needs, and the switch that makes them mandatory.

`@pytest.mark.needs("cuda", "nvcc")` skips a test if one of them is missing. `OPWRIGHT_REQUIRE=cuda,nvcc` in the
environment turns those skips into failures, for a machine that is supposed to have them.

`@pytest.mark.compiles` marks a test that starts a compiler; all of tests/integration is marked.

`@pytest.mark.slow` marks a test that runs only with `--runslow`.

`@pytest.mark.sample(3)` marks a test whose parameters all show the same feature: without `--runslow`, 3 of them run,
others in each commit. `@pytest.mark.sample(of="long")` does the same for all tests with that name, whose number is in
SAMPLE_SIZES, and `by="file"` for their files. The first lines of pytest's output show how to run the same ones again.
"""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Tests must depend neither on the load of the machine nor on randomly drawn inputs.
settings.register_profile("opwright", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("opwright")

# A seed that no test passes to the code under test, which would then draw the same numbers.
_SEED = 20261125

SWITCH = "OPWRIGHT_REQUIRE"
SAMPLE = "OPWRIGHT_SAMPLE"
# How many of the tests with each name run; of those with other names, one.
SAMPLE_SIZES = {"long": 2, "reloads": 2}
INTEGRATION = Path(__file__).parent / "integration"


def _a_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _nvcc() -> bool:
    homes = (os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH"))
    return bool(shutil.which("nvcc")) or any(
        (Path(home) / "bin/nvcc").is_file() for home in (*homes, "/usr/local/cuda")
    )


def _compute_sanitizer() -> bool:
    homes = filter(None, (*map(os.environ.get, ("CUDA_HOME", "CUDA_PATH")), "/usr/local/cuda"))
    folders = [Path(home) / name for home in homes for name in ("bin", "compute-sanitizer")]
    return bool(shutil.which("compute-sanitizer")) or any((one / "compute-sanitizer").is_file() for one in folders)


def clang() -> str | None:
    """The path of clang++, under any versioned name."""
    names = ("clang++", *(f"clang++-{version}" for version in range(30, 13, -1)))
    return next(filter(None, map(shutil.which, names)), None)


def _opencv() -> bool:
    pkg_config = shutil.which("pkg-config")
    if pkg_config is None:
        return False
    return subprocess.run([pkg_config, "--exists", "opencv4"], check=False).returncode == 0


def _change_root() -> list[str]:
    """The command that starts a program with another root folder: as root, or else in a new user namespace."""
    chroot = shutil.which("chroot", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
    return [*([] if os.geteuid() == 0 else ["unshare", "--map-root-user"]), chroot or "chroot"]


def _chroot() -> bool:
    try:
        return subprocess.run([*_change_root(), "/", "/bin/true"], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def _ray() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("ray", "starlette", "aiohttp"))


def _mount() -> bool:
    """Whether a small file system can be mounted, which root can do in most containers, but not in all."""
    if not shutil.which("mount"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
        mounted = subprocess.run(command, check=False, capture_output=True)
        return mounted.returncode == 0 and subprocess.run(["umount", folder], check=False).returncode == 0


def _sshfs() -> bool:
    """Whether a folder of this machine can be mounted as if from another machine."""
    if not (shutil.which("sshfs") and shutil.which("fusermount3") and os.access("/dev/fuse", os.W_OK)):
        return False
    return Path("/usr/lib/openssh/sftp-server").exists()


def _arm() -> bool:
    return all(map(shutil.which, ("aarch64-linux-gnu-g++", "qemu-aarch64")))


def _another_user() -> bool:
    return os.geteuid() != 0 or bool(shutil.which("setpriv"))


def _memory() -> bool:
    found = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return found is not None and int(found[1]) > 14 * 2**20


# Each test queries the machine directly, not with opwright's finders, which are under test themselves.
REAL_THINGS: dict[str, tuple[str, Callable[[], bool]]] = {
    "arm": ("aarch64-linux-gnu-g++ and qemu-aarch64 on PATH", _arm),
    "chroot": ("chroot, as root or in a user namespace", _chroot),
    "clang": ("clang++ on PATH", lambda: bool(shutil.which("clang++"))),
    "cmake": ("cmake on PATH", lambda: bool(shutil.which("cmake"))),
    "cuda": ("a GPU that this torch can use", _a_gpu),
    "memory": ("14 GiB of free memory", _memory),
    "nvcc": ("nvcc on PATH, under CUDA_HOME or in /usr/local/cuda", _nvcc),
    "opencv": ("opencv4 through pkg-config", _opencv),
    "ray": ("Ray with ray.data and ray.serve installed", _ray),
    "shellcheck": ("shellcheck on PATH", lambda: bool(shutil.which("shellcheck"))),
    "torchvision": ("torchvision installed", lambda: importlib.util.find_spec("torchvision") is not None),
    "any_clang": ("clang++, or clang++-14 or another version's, on PATH", lambda: bool(clang())),
    "another_user": ("setpriv, as root, or a user that is not root", _another_user),
    "ccache": ("ccache on PATH", lambda: bool(shutil.which("ccache"))),
    "compute_sanitizer": ("compute-sanitizer on PATH, under CUDA_HOME or in /usr/local/cuda", _compute_sanitizer),
    "gdb": ("gdb on PATH", lambda: bool(shutil.which("gdb"))),
    "gold": ("the linker gold on PATH", lambda: bool(shutil.which("ld.gold"))),
    "mount": ("the right to mount a file system", _mount),
    "sshfs": ("sshfs, sftp-server and the right to use /dev/fuse", _sshfs),
}


@cache
def _is_here(name: str) -> bool:
    return REAL_THINGS[name][1]()


def _known(names: tuple[str, ...], source: str) -> tuple[str, ...]:
    if unknown := [name for name in names if name not in REAL_THINGS]:
        msg = f"{source} names {', '.join(unknown)}; expected some of {', '.join(REAL_THINGS)}"
        raise pytest.UsageError(msg)
    return names


def required() -> tuple[str, ...]:
    """Returns the names that the switch requires on this machine."""
    names = os.environ.get(SWITCH, "").replace(",", " ").split()
    return _known(tuple(names), f"the environment variable {SWITCH}")


@pytest.fixture
def forked() -> None:
    """Forks the processes of `opwright.check` from one that has imported PyTorch."""
    from tests.interpreter import server

    server()


@pytest.fixture(autouse=True)
def _same_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes checks without a seed try the same variations in every test run."""
    monkeypatch.setattr("secrets.randbelow", lambda _: 0)


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    """Gives each test the same random numbers in every run, independent of the tests before it."""
    random.seed(_SEED)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(_SEED)


def pytest_sessionfinish() -> None:
    if (used := sys.modules.get("tests.interpreter")) is not None:
        used.close()


@pytest.fixture(scope="session")
def change_root() -> list[str]:
    """The command prefix that starts a program in a folder as its root; the folder and the program follow."""
    return _change_root()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--runslow", action="store_true", help="also run the tests that are marked as slow")


def pytest_configure() -> None:
    # Most machines do not set these: the first hides lost output, and the second makes each program start more slowly.
    for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)
    # Next to the other build output, so that tests find earlier builds and do not touch the user's cache.
    os.environ.setdefault("OPWRIGHT_CACHE", str(Path(__file__).parents[1] / "build" / "test-cache"))
    # Assume that vector instructions work: Inductor tries each kind in every process, which takes seconds.
    os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
    # Let waiting threads sleep: parallel test processes have more threads than there are cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    required()  # a typo in the switch stops the run before the first test
    # Workers of xdist inherit it.
    os.environ.setdefault(SAMPLE, _commit())


def pytest_report_header() -> str:
    return f"sampled parameters: {SAMPLE}={os.environ[SAMPLE]} (all with --runslow)"


def _commit() -> str:
    """The start of the commit's hash; 0 outside of a clone."""
    command = ["git", "-c", "safe.directory=*", "-C", str(INTEGRATION), "rev-parse", "--short=8", "HEAD"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "0"


@pytest.hookimpl(hookwrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    for item in items:
        if INTEGRATION in item.path.parents:
            item.add_marker(pytest.mark.compiles)
        for mark in item.iter_markers("needs"):
            _known(mark.args, f"the mark of {item.nodeid}")
    if not config.getoption("--runslow"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("slow")])
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
    # Run the quick tests first.
    items.sort(key=lambda item: item.get_closest_marker("compiles") is not None)
    yield
    if not config.getoption("--runslow"):
        left_out = set(_not_in_the_sample(items))
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    # Checks collect garbage often. Without this, each collection visits PyTorch and all tests, which takes 0.2 s.
    gc.collect()
    gc.freeze()


def _not_in_the_sample(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """The members of samples that do not run, of those that the command line has selected."""
    samples = defaultdict[str, dict[str, list[pytest.Item]]](lambda: defaultdict(list))
    counts: dict[str, int] = {}
    for item in items:
        for mark in item.iter_markers("sample"):
            # Tests of one file with the same parameters, or of a whole file, share what they build.
            unit = item.callspec.id if hasattr(item, "callspec") else item.nodeid
            unit = item.nodeid.partition("::")[0] if mark.kwargs.get("by") == "file" else unit
            name = mark.kwargs.get("of", item.nodeid.partition("[")[0])
            samples[name][unit].append(item)
            counts[name] = mark.args[0] if mark.args else SAMPLE_SIZES.get(name, 1)
    for name, units in samples.items():
        # Not random: all of xdist's workers must choose the same.
        drawn = sorted(units, key=lambda unit: hashlib.sha256(f"{os.environ[SAMPLE]} {unit}".encode()).digest())
        for unit in drawn[counts[name] :]:
            yield from units[unit]


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            if _is_here(name):
                continue
            reason = f"needs {REAL_THINGS[name][0]}"
            if name in required():
                pytest.fail(f"{reason}, which is missing, but {SWITCH} requires {name}", pytrace=False)
            pytest.skip(reason)
