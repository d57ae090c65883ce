"""The repository contains no host names of package registries and no folders of a developer's machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Assembled from parts, so that this file passes its own test.
HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("download", "pytorch", "org"),
        ("anaconda", "org"),
        ("registry", "npmjs", "org"),
        ("crates", "io"),
        ("deb", "debian", "org"),
        ("archive", "ubuntu", "com"),
    )
]
# An absolute path into a home or workplace folder, not the end of a longer relative path.
HOMES = r"(?:(?<![\w.})~])|(?<=-[IL]))/(?:home/[a-z]|Users/[A-Za-z]|root/|work/|tmp/lab)"
FORBIDDEN = re.compile("|".join([*(re.escape(host) for host in HOSTS), HOMES]))


def own_files() -> list[Path]:
    """Returns the files that git tracks, and the new ones that it does not ignore."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a clone: only git can list the project's own files")
    command = [git, "-c", "safe.directory=*", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [path for name in answer.split("\0") if name and (path := ROOT / name).is_file()]


def faults(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []  # a picture, or another binary file
    return [
        f"{path}:{number}: {found[0]}"
        for number, line in enumerate(lines, start=1)
        if (found := FORBIDDEN.search(line))
    ]


def test_no_file_names_a_registry_or_a_developers_folder() -> None:
    files = own_files()
    assert ROOT / "pyproject.toml" in files
    assert [fault for path in files for fault in faults(path)] == []


@pytest.mark.parametrize("host", HOSTS)
def test_the_law_detects_a_registry(tmp_path: Path, host: str) -> None:
    (tmp_path / "a").write_text(f"fine\nget it from https://{host}/simple\n", encoding="utf-8")
    assert faults(tmp_path / "a") == [f"{tmp_path / 'a'}:2: {host}"]


@pytest.mark.parametrize("folder", ["home/ada/src", "Users/Ada", "root/x", "work/main", "tmp/lab/v"])
@pytest.mark.parametrize("before", ["", "see ", "-I", "'", '"', "path=", "file://"])
def test_the_law_detects_a_folder(tmp_path: Path, before: str, folder: str) -> None:
    (tmp_path / "a").write_text(f"{before}/{folder}\n", encoding="utf-8")
    assert len(faults(tmp_path / "a")) == 1


@pytest.mark.parametrize("text", ["docs/work/a.md", "$(CURDIR)/build", "~/home", "/usr/local/cuda", "network/work/"])
def test_the_law_accepts_other_paths(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_text(text, encoding="utf-8")
    assert faults(tmp_path / "a") == []
