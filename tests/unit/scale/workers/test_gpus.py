from __future__ import annotations

import pytest

from opwright.scale.workers.gpus import gpus


@pytest.mark.parametrize("library", ["libopwright_no_such_driver.so.1", "libc.so.6"])
def test_there_is_no_gpu_without_a_driver(library: str) -> None:
    assert gpus(library) == ()


@pytest.mark.parametrize(
    ("count", "visible", "names"),
    [
        (2, None, ("0", "1")),
        (2, "", ("0", "1")),
        (2, "3, 1", ("3", "1")),
        (1, "1,-1,0", ("1",)),
        (1, "GPU-8f4a,", ("GPU-8f4a",)),
        (0, "0", ()),
    ],
)
def test_gpus_have_the_names_in_the_variable(
    monkeypatch: pytest.MonkeyPatch, count: int, visible: str | None, names: tuple[str, ...]
) -> None:
    monkeypatch.setattr("opwright.scale.workers.gpus._count", lambda _: count)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus() == names
