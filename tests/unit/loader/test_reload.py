"""Libraries without native code that are edited while they are open."""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.compiler import config

import opwright
from opwright.errors import LoadError, SpecError
from opwright.loader import quiet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

X = torch.arange(3.0)
TEXT = """
import opwright
from torch import Tensor
{imports}

library = opwright.Library("{namespace}")


@library.op
def f(x: Tensor{parameter}) -> Tensor:
    return {body}
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes an op.py with one operator, `f`, and returns its folder."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def write(namespace: str, body: str, parameter: str = "", imports: str = "") -> Path:
        text = TEXT.format(namespace=namespace, body=body, parameter=parameter, imports=imports)
        (tmp_path / "op.py").write_text(text)
        return tmp_path

    return write


def test_a_changed_reference_replaces_the_kernel_fake_kernel_and_gradient(write: Callable[..., Path]) -> None:
    mine = opwright.open(write("only_python", "x * 2"))
    handle = torch.ops.only_python.f
    leaf = X.clone().requires_grad_()
    # Same length as the earlier text, and written within the same second: the old bytecode looks up to date.
    write("only_python", "x * 3")
    mine.reload()
    assert torch.equal(handle(X), 3 * X)
    assert torch.equal(torch.autograd.grad(handle(leaf).sum(), leaf)[0], torch.full((3,), 3.0))
    write("only_python", "x.double() * y", parameter=", y: float = 4.0")
    mine.reload()
    assert torch.equal(handle(X, y=5.0), 5 * X.double())
    assert handle(X.to("meta")).dtype == torch.float64


def test_opening_again_reloads_only_what_has_changed(write: Callable[..., Path]) -> None:
    folder = write("opened_again", "x * 2")
    mine = opwright.open(folder)
    library = mine.library
    assert opwright.open(folder) is mine
    assert mine.library is library
    write("opened_again", "x * 3")
    assert opwright.open(folder / "op.py") is mine
    assert mine.library is not library
    assert torch.equal(mine.ops.f(X), 3 * X)


def test_the_modules_of_an_op_py_are_imported_again(write: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "reloaded_beside.py").write_text("FACTOR = 2\n")
    mine = opwright.open(write("with_modules", "x * FACTOR", imports="from reloaded_beside import FACTOR"))
    module = sys.modules["reloaded_beside"]
    (tmp_path / "reloaded_beside.py").write_text("FACTOR = 3\n")
    opwright.open(tmp_path)
    assert torch.equal(mine.ops.f(X), 3 * X)
    assert sys.modules["reloaded_beside"] is not module
    # A failure keeps the modules of the current operators.
    module = sys.modules["reloaded_beside"]
    (tmp_path / "reloaded_beside.py").write_text("FACTOR = 4 / 0\n")
    with pytest.raises(SpecError, match="ZeroDivisionError"):
        mine.reload()
    assert sys.modules.pop("reloaded_beside") is module
    assert torch.equal(mine.ops.f(X), 3 * X)


def test_a_new_namespace_replaces_the_former_one(write: Callable[..., Path]) -> None:
    mine = opwright.open(write("called_one", "x * 2"))
    handle = mine.ops.f
    write("called_two", "x * 3")
    mine.reload()
    assert mine.ops is torch.ops.called_two
    assert torch.equal(mine.ops.f(X), 3 * X)
    with pytest.raises(LoadError, match="called_one::f is not registered any more"):
        handle(X)
    assert opwright.open(write("called_one", "x * 4")) is mine
    assert torch.equal(handle(X), 4 * X)


def test_a_library_that_cannot_be_registered_keeps_the_former_one(write: Callable[..., Path]) -> None:
    mine = opwright.open(write("kept_as_it_was", "x * 2"))
    taken = torch.library.Library("taken_elsewhere", "DEF")
    write("taken_elsewhere", "x * 3")
    with pytest.raises(LoadError, match=r"the namespace 'taken_elsewhere' .* is already taken"):
        mine.reload()
    taken._destroy()
    assert torch.equal(torch.ops.kept_as_it_was.f(X), 2 * X)
    mine.reload()
    assert torch.equal(mine.ops.f(X), 3 * X)


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module whose function `act` a reference calls."""
    module = ModuleType("reload_hooks")
    monkeypatch.setitem(sys.modules, "reload_hooks", module)
    return module


def test_an_operator_cannot_be_replaced_from_inside_itself(write: Callable[..., Path], hooks: ModuleType) -> None:
    mine = opwright.open(write("from_inside", "hooks.act(x)", imports="import reload_hooks as hooks"))
    hooks.act = lambda x: mine.reload() and x  # type: ignore[attr-defined]
    with pytest.raises(LoadError, match="'from_inside' cannot be replaced from inside one of them"):
        mine.ops.f(X)
    leaf = X.clone().requires_grad_()
    leaf.register_hook(lambda _: mine.reload() and None)
    with pytest.raises(LoadError, match="a backward or a scripted function: reload after the call has returned"):
        leaf.sum().backward()


def test_a_thread_that_does_not_leave_an_operator_is_named(
    write: Callable[..., Path], hooks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, leave = threading.Event(), threading.Event()

    def act(x: torch.Tensor) -> torch.Tensor:
        inside.set()
        leave.wait()
        return x.clone()

    hooks.act = act  # type: ignore[attr-defined]
    mine = opwright.open(write("stayed_inside", "hooks.act(x)", imports="import reload_hooks as hooks"))
    monkeypatch.setattr(quiet, "_LONGEST_S", 0.05)
    thread = threading.Thread(target=mine.ops.f, args=(X,), name="the busy one")
    thread.start()
    inside.wait()
    write("stayed_inside", "x * 3")
    try:
        with pytest.raises(
            LoadError, match="'stayed_inside' were not replaced, because the thread the busy one has been"
        ):
            mine.reload()
    finally:
        leave.set()
        thread.join()
    mine.reload()
    assert torch.equal(mine.ops.f(X), 3 * X)


def test_cache_keys_of_compiled_graphs_include_the_replaced_contents(write: Callable[..., Path]) -> None:
    tags = []
    settings: Any = config
    # Not monkeypatch, which deletes the setting on undo.
    with settings.patch("cache_key_tag", "the user's"):
        mine = opwright.open(write("in_caches", "x * 2"))
        for factor in (3, 4, 3):
            write("in_caches", f"x * {factor}")
            mine.reload()
            tags.append(config.cache_key_tag)
    assert tags[0] == tags[2] != tags[1]
    assert all(tag.startswith("the user's opwright ") for tag in tags)


def test_only_a_library_from_open_can_be_reloaded(write: Callable[..., Path]) -> None:
    library = opwright.library_at(write("not_opened", "x * 2"))
    with pytest.raises(LoadError, match=r"was not created by opwright\.open: open its op.py, and reload the result"):
        opwright.Loaded(library, None, None).reload()
