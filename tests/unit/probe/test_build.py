from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.errors import BuildError
from opwright.probe.build import probe_plan

if TYPE_CHECKING:
    from pathlib import Path


def test_without_libraries_there_are_no_additional_linker_flags() -> None:
    plan = probe_plan()
    assert plan.ldflags == ()
    assert (plan.product, plan.abi) == ("program", "full")
    assert {"libraries.cpp", "main.cpp"} <= {source.name for source in plan.sources}


def test_libraries_change_only_the_link_and_the_linker_drops_none(tmp_path: Path) -> None:
    first, second = tmp_path / "a, b.so", tmp_path / "deep" / "second.so"
    second.parent.mkdir()
    first.touch()
    second.touch()
    plan = probe_plan([first, second])
    assert (plan.sources, plan.cflags) == (probe_plan().sources, probe_plan().cflags)
    assert plan.ldflags == (
        "-Wl,--disable-new-dtags",
        "-Wl,--push-state,--no-as-needed",
        # The second one first, because the loader runs constructors in reverse order.
        *(str(second), "-Xlinker", "-rpath", "-Xlinker", str(second.parent)),
        *(str(first), "-Xlinker", "-rpath", "-Xlinker", str(tmp_path)),
        "-Wl,--pop-state",
    )


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.so").touch()
    monkeypatch.chdir(tmp_path)
    assert str(tmp_path / "mine.so") in probe_plan([(tmp_path / "mine.so").relative_to(tmp_path)]).ldflags


def test_a_missing_library_is_reported_before_the_build(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"the library .*/nowhere\.so does not exist, so it cannot be linked .*"):
        probe_plan([tmp_path / "nowhere.so"])


def test_no_source_of_the_probe_includes_python() -> None:
    runtime = probe_plan().sources[0].parents[1]
    texts = [path.read_text() for path in runtime.rglob("*") if path.is_file()]
    assert len(texts) > len(probe_plan().sources)
    assert not [text for text in texts if "Python.h" in text or "torch/extension.h" in text or "pybind11" in text]
