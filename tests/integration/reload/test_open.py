"""An op library that is edited while it is open: the results of its operators and of objects created before."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
import torch

import opwright
from opwright.errors import BuildError, LoadError, SpecError
from opwright.loader import scripted

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.reload.conftest import Edited

X = torch.arange(3.0)


def grad_of(output: torch.Tensor, leaf: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(output, leaf, torch.ones(3))[0]


@pytest.mark.sample(of="reloads")
def test_objects_created_before_a_reload_call_the_new_code(edited: Callable[[str], Edited]) -> None:
    library = edited("followed")
    mine = library.open()
    packet, overload = torch.ops.followed.scale, torch.ops.followed.scale.default
    leaf = X.clone().requires_grad_()
    recorded = packet(leaf)
    script = torch.jit.script(_scripted)
    traced = torch.jit.trace(lambda x: torch.ops.followed.scale(x, 3.0), (X,))
    compiled = torch.compile(lambda x: torch.ops.followed.scale(x) + 1, backend="aot_eager")
    assert torch.equal(compiled(X), script(X) + 1)

    library.edit(5.0)
    assert mine.reload() is mine
    assert library.open() is mine
    assert torch.ops.followed.scale is packet
    assert packet.default is overload
    for call in (packet, overload, script, mine.ops.scale):
        assert torch.equal(call(X), 10 * X)
    assert torch.equal(traced(X), 15 * X)
    assert torch.equal(compiled(X), 10 * X + 1)
    assert torch.equal(torch.ops.followed.shifted(X), X + 5)
    assert torch.equal(grad_of(recorded, leaf), torch.full((3,), 10.0))
    assert torch.equal(grad_of(packet(leaf), leaf), torch.full((3,), 10.0))
    assert torch.equal(torch.func.jvp(packet, (X,), (torch.ones(3),))[1], torch.full((3,), 10.0))

    # The first build again, from the cache: a file that the dynamic loader has already opened.
    library.edit()
    mine.reload()
    assert torch.equal(packet(X), 2 * X)
    assert torch.equal(grad_of(packet(leaf), leaf), torch.full((3,), 2.0))


def _scripted(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.followed.scale(x)  # type: ignore[no-any-return]


@pytest.mark.sample(of="reloads")
def test_objects_that_depend_on_a_changed_schema_raise_and_handles_are_updated(edited: Callable[[str], Edited]) -> None:
    library = edited("extended")
    mine = library.open()
    packet, overload = torch.ops.extended.scale, torch.ops.extended.scale.default
    leaf = X.clone().requires_grad_()
    recorded, recorded_in_python = packet(leaf), torch.ops.extended.shifted(leaf)
    traced = torch.jit.trace(lambda x: torch.ops.extended.scale(x, 3.0), (X,))
    compiled = torch.compile(lambda x: torch.ops.extended.scale(x) + 1, backend="aot_eager")
    compiled(X)
    exported = torch.export.export(_Exported(), (X,)).module()

    library.edit(5.0, has_more=True)
    mine.reload()
    assert str(overload._schema) == "extended::scale(Tensor x, float factor=2., float more=0.) -> Tensor"
    for call in (packet, overload):
        assert torch.equal(call(X, more=1.0), 10 * X + 1)
    assert torch.equal(compiled(X), 10 * X + 1)
    assert torch.equal(exported(X), 10 * X)
    with pytest.raises(LoadError, match="before extended::scale got a new schema: script, trace or load it again"):
        traced(X)
    assert torch.equal(torch.jit.script(_scripted_anew)(X), 10 * X + 3)
    with pytest.raises(
        RuntimeError, match=r"extended::scale was reloaded with a different schema .* run the forward again"
    ):
        recorded.backward(torch.ones(3))
    assert torch.equal(grad_of(packet(leaf), leaf), torch.full((3,), 10.0))
    assert torch.equal(
        grad_of(recorded_in_python, leaf), torch.ones(3)
    )  # the derivative of a reference, which the graph keeps


class _Exported(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.extended.scale(x)  # type: ignore[no-any-return]


def _scripted_anew(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.extended.scale(x, 2.0, 3.0)  # type: ignore[no-any-return]


@pytest.mark.sample(of="reloads")
def test_a_handle_of_a_removed_operator_raises_until_the_operator_is_added_again(
    edited: Callable[[str], Edited],
) -> None:
    library = edited("renamed")
    library.open()
    handle = torch.ops.renamed.negated
    assert torch.equal(handle.default(X), -X)
    library.edit(other="opposite")
    library.open()
    assert torch.equal(torch.ops.renamed.opposite(X), -X)
    assert not hasattr(torch.ops.renamed, "negated")
    for call in (handle, handle.default):
        with pytest.raises(LoadError, match=r"renamed::negated is not registered any more: .*that do not define it"):
            call(X)
    library.edit()
    library.open()
    assert torch.ops.renamed.negated is handle
    for call in (handle, handle.default):
        assert torch.equal(call(X), -X)


@pytest.mark.sample(of="reloads")
def test_a_library_that_cannot_be_loaded_keeps_the_former_operators(edited: Callable[[str], Edited]) -> None:
    library = edited("spared")
    mine = library.open()
    former = mine.path

    def refused(error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            mine.reload()
        assert (mine.path, mine.library.namespace) == (former, "spared")
        assert torch.equal(torch.ops.spared.scale(X), 2 * X)
        assert torch.equal(torch.ops.spared.shifted(X), X + 1)
        leaf = X.clone().requires_grad_()
        assert torch.equal(grad_of(torch.ops.spared.scale(leaf), leaf), torch.full((3,), 2.0))

    library.edit(3.0)
    library.append("op.py", "1 / 0\n")
    refused(SpecError, "raises ZeroDivisionError")
    library.edit(3.0)
    library.append("cpu.cpp", "int broken = missing;\n")
    refused(BuildError, "missing.* was not declared")
    # Detected after the build: a constructor that terminates the process, which is a forked copy.
    library.edit(3.0)
    library.append("cpu.cpp", "__attribute__((constructor)) void end() { throw 1; }\n")
    refused(
        LoadError,
        r"replacing spared::.* would terminate this process \(SIGABRT\), so it was not done: terminate called",
    )
    library.edit(3.0)
    library.append("cpu.cpp", "OPWRIGHT_IMPL(spared, Nonsense, m) {}\n")
    library.append("cpu.cpp", 'OPWRIGHT_IMPL(spared, Nothing, m) { m.impl("scale", OPWRIGHT_FN(scale)); }\n')
    refused(LoadError, "could not parse dispatch key: Nothing")
    # Detected by Python, after the former operators were removed: they are restored.
    library.edit(3.0)
    library.append("op.py", '@scale.kernel(device="cpu")\ndef _(x: Tensor, factor: float) -> Tensor:\n    return x\n')
    refused(LoadError, "has a kernel for cpu in its sources and one in op.py")
    library.edit(3.0)
    mine.reload()
    assert torch.equal(torch.ops.spared.scale(X), 6 * X)


@pytest.mark.sample(of="reloads")
def test_concurrent_calls_return_old_or_new_results(edited: Callable[[str], Edited]) -> None:
    library = edited("hammered")
    edits: list[Callable[[], None]] = [
        lambda: library.edit(1.0),
        lambda: library.edit(2.0),
        lambda: library.edit(3.0, has_more=True),
    ]
    for edit in [*edits, edits[0]]:
        edit()
        opwright.build(library.folder)
    mine = library.open()
    packet, shifted = torch.ops.hammered.scale, torch.ops.hammered.shifted
    script = torch.jit.script(_scripted_shift)
    recorded_from = torch.ones(8, requires_grad=True)
    recorded = packet(recorded_from)
    right = {"call": {2.0, 4.0, 6.0}, "shift": {2.0, 3.0, 4.0}}

    def forward_and_backward() -> set[float]:
        leaf = torch.ones(8, requires_grad=True)
        return set(torch.autograd.grad(packet(leaf), leaf, torch.ones(8))[0].tolist()) - right["call"]

    def backward() -> set[float]:
        grads = torch.autograd.grad(recorded, recorded_from, torch.ones(8), retain_graph=True)
        return set(grads[0].tolist()) - right["call"]

    acts: dict[str, Callable[[], set[float]]] = {
        "call": lambda: set(packet(torch.ones(8)).tolist()) - right["call"],
        "in Python": lambda: set(shifted(torch.ones(8)).tolist()) - right["shift"],
        "scripted": lambda: set(script(torch.ones(8)).tolist()) - right["shift"],
        "forward and backward": forward_and_backward,
        "backward": backward,
    }
    outcomes: Counter[str] = Counter()
    ended = threading.Event()

    def outcome(name: str) -> str:
        try:
            return f"{name}: {acts[name]() or 'right'}"
        except RuntimeError as error:
            return "refused" if "run the forward again" in str(error) else str(error)

    def hammer(name: str) -> None:
        while not ended.is_set():
            outcomes[outcome(name)] += 1

    with ThreadPoolExecutor(len(acts)) as threads:
        running = [threads.submit(hammer, name) for name in acts]
        try:
            for at in range(12):
                edits[at % 3]()
                mine.reload()
        finally:
            ended.set()
        assert [one.result() for one in running] == [None] * len(acts)
    assert set(outcomes) <= {*(f"{name}: right" for name in acts), "refused"}
    assert all(outcomes[f"{name}: right"] for name in acts)


def _scripted_shift(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.hammered.shifted(x)  # type: ignore[no-any-return]


@pytest.mark.sample(of="reloads")
def test_scripted_modules_are_rejected_wherever_they_call_the_operator(edited: Callable[[str], Edited]) -> None:
    library = edited("nested")
    mine = library.open()
    script = torch.jit.script
    functions = {
        "module": script(_Module()),
        "frozen": torch.jit.freeze(script(_Module()).eval()),
        "caller": script(_calls),
        "forks": script(_forks),
        "loop": script(_loops),
    }
    functions["module"].save(str(library.folder / "module.pt"))
    functions["loaded"] = torch.jit.load(str(library.folder / "module.pt"))
    other = script(_other)
    for function in functions.values():
        function(X)
    library.edit(has_more=True)
    mine.reload()
    for function in functions.values():
        with pytest.raises(LoadError, match="before nested::scale got a new schema"):
            function(X)
    assert torch.equal(other(X), -X)
    assert torch.equal(torch.jit.load(str(library.folder / "module.pt"))(X), 2 * X)
    assert scripted._verdicts[other] is None


class _Module(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)

    def inner(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.nested.scale(x)  # type: ignore[no-any-return]


def _callee(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.nested.scale(x)  # type: ignore[no-any-return]


def _calls(x: torch.Tensor) -> torch.Tensor:
    return _callee(x)


def _forks(x: torch.Tensor) -> torch.Tensor:
    return torch.jit.wait(torch.jit.fork(_callee, x))  # type: ignore[no-any-return]


def _loops(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        if x.sum() > 0:
            x = _callee(x)
    return x


def _other(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.nested.negated(x)  # type: ignore[no-any-return]
