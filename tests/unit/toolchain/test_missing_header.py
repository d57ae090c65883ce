from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from opwright.toolchain.packages import missing_header

if TYPE_CHECKING:
    from pathlib import Path

RELEASE = f"{sys.version_info.major}.{sys.version_info.minor}"
GXX = "a.cpp:1:10: fatal error: {0}: No such file or directory\n    1 | #include <{0}>\n      |          ^~~~~~\n"
CLANG = "a.cpp:1:10: fatal error: '{0}' file not found\n#include <{0}>\n         ^~~~~~\n1 error generated.\n"


@pytest.mark.parametrize(
    ("output", "header", "fix"),
    [
        (GXX, "mine/a.h", 'an installed package contains it: add packages=["mine"], or the flags that `pkg-config --'),
        (
            CLANG,
            "nowhere.h",
            "add the folder that contains it to include_dirs= (extra_include_paths= in opwright.load)",
        ),
        (
            GXX,
            "Python.h",
            f"install the headers of Python {RELEASE}: on Debian and Ubuntu, the package python{RELEASE}",
        ),
        (GXX, "torch/none.h", "the installed PyTorch does not contain it: include a header that this release of "),
    ],
)
def test_the_fix_for_a_missing_header_names_what_contains_it(
    output: str, header: str, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PKG_CONFIG_PATH", str(tmp_path))
    (tmp_path / "mine.pc").write_text(f"Name: mine\nDescription: mine\nVersion: 1\nCflags: -I{tmp_path}/include\n")
    (tmp_path / "include" / "mine").mkdir(parents=True)
    (tmp_path / "include" / "mine" / "a.h").touch()
    assert missing_header(output.format(header)).startswith(f"\n  fix: {fix}")


def test_a_header_in_quotes_is_the_authors_own_and_other_errors_get_no_advice() -> None:
    own = GXX.replace("<{0}>", '"{0}"').format("mine/a.h")
    assert missing_header(own).startswith(
        "\n  fix: correct its path, or add the folder that contains it to include_dirs="
    )
    assert missing_header("a.cpp:1:10: error: 'f' was not declared in this scope") == ""
