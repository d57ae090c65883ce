"""LLTM and LLTMCell: nn.LSTM's conventions, the operators' results, scripting, export, pickling and copying."""

from __future__ import annotations

import copy
import importlib
import io
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.interpreter import python

if TYPE_CHECKING:
    from collections.abc import Callable

OPS = Path(__file__).parents[2] / "ops"
sys.path.insert(0, str(OPS))
MODULES: Any = importlib.import_module("lltm.modules")
LLTM, LLTMCell = MODULES.LLTM, MODULES.LLTMCell

# In a separate process, which has not opened the operators.
IMPORTED = """
import pickle, sys, torch
from lltm.modules import LLTM
LLTM(4, 5, native=False)(torch.zeros(3, 4))
print(hasattr(torch.ops.lltm, "sequence"))
given = pickle.loads(open(sys.argv[1], "rb").read())
print(hasattr(torch.ops.lltm, "sequence"), torch.equal(given["module"](given["input"])[0], given["output"]))
"""


def leaves(results: Any) -> list[Tensor]:
    return [results] if isinstance(results, Tensor) else [leaf for result in results for leaf in leaves(result)]


def assert_same(got: Any, expected: Any) -> None:
    assert [leaf.shape for leaf in leaves(got)] == [leaf.shape for leaf in leaves(expected)]
    assert all(map(torch.equal, leaves(got), leaves(expected)))


def gradients(module: Any, *given: Any) -> list[Tensor]:
    """The results, and the gradients of a loss that depends on each of them."""
    results = leaves(module(*given))
    parts = [(result * (at + result).sin()).sum() for at, result in enumerate(results)]
    return [*results, *torch.autograd.grad(torch.stack(parts).sum(), list(module.parameters()))]


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 5), st.integers(1, 9)),
    layers=st.integers(1, 3),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    seed=st.integers(0, 2**32),
)
def test_native_and_reference_agree_and_have_the_shapes_of_nn_lstm(
    sizes: tuple[int, int, int, int], layers: int, flags: tuple[bool, bool, bool, bool], seed: int
) -> None:
    torch.manual_seed(seed)
    steps, batch, features, state = sizes
    has_bias, batch_first, has_batch, has_state = flags
    arguments = (features, state, layers, has_bias, batch_first)
    native = LLTM(*arguments, dtype=torch.float64)
    reference = LLTM(*arguments, dtype=torch.float64, native=False)
    reference.load_state_dict(native.state_dict())
    shape = ((batch, steps) if batch_first else (steps, batch)) if has_batch else (steps,)
    x = torch.randn(*shape, features, dtype=torch.float64)
    h, cell = (torch.randn(layers, *([batch] if has_batch else []), state, dtype=torch.float64) for _ in range(2))
    given_state = [(h, cell)] if has_state else []
    results = gradients(native, x, *given_state)
    for ours, theirs in zip(results, gradients(reference, x, *given_state), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-11)
    lstm = nn.LSTM(*arguments, dtype=torch.float64)
    assert [leaf.shape for leaf in results[:3]] == [leaf.shape for leaf in leaves(lstm(x, *given_state))]


@pytest.mark.parametrize("native", [True, False])
def test_a_sequence_equals_its_steps_layer_by_layer(*, native: bool) -> None:
    lltm = LLTM(3, 4, num_layers=2, dtype=torch.float64, native=native)
    cells = [LLTMCell(features, 4, dtype=torch.float64, native=native) for features in (3, 4)]
    for layer, cell in enumerate(cells):
        names = {"weights": f"weights_l{layer}", "bias": f"bias_l{layer}"}
        cell.load_state_dict({name: lltm.state_dict()[full] for name, full in names.items()})
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    output, (h_n, c_n) = lltm(x)
    states: list[Any] = [None, None]
    for step, row in enumerate(x):
        given_row = row
        for layer, cell in enumerate(cells):
            states[layer] = cell(given_row, states[layer])
            given_row = states[layer][0]
        assert torch.allclose(output[step], given_row, rtol=1e-12)
    for layer, (h, c) in enumerate(states):
        assert torch.allclose(h_n[layer], h, rtol=1e-12)
        assert torch.allclose(c_n[layer], c, rtol=1e-12)


@pytest.mark.parametrize("native", [True, False])
def test_a_cell_accepts_the_same_inputs_as_nn_lstmcell(*, native: bool) -> None:
    cell, lstm = LLTMCell(3, 4, native=native), nn.LSTMCell(3, 4)
    for shape in ((2,), ()):
        x, h, c = torch.randn(*shape, 3), torch.randn(*shape, 4), torch.randn(*shape, 4)
        for given_state in ([], [(h, c)]):
            new_h, new_cell = cell(x, *given_state)
            assert new_h.shape == new_cell.shape == lstm(x, *given_state)[0].shape
        assert_same(cell(x), cell(x, (torch.zeros_like(h), torch.zeros_like(c))))


MADE: dict[str, Callable[[], tuple[nn.Module, Tensor]]] = {
    "layer": lambda: (LLTM(3, 4), torch.randn(5, 2, 3)),
    "layers": lambda: (LLTM(3, 4, num_layers=3, bias=False, batch_first=True), torch.randn(2, 5, 3)),
    "unbatched": lambda: (LLTM(3, 4), torch.randn(5, 3)),
    "cell": lambda: (LLTMCell(3, 4), torch.randn(2, 3)),
}


@pytest.fixture(params=MADE)
def made(request: pytest.FixtureRequest) -> tuple[nn.Module, Tensor]:
    return MADE[request.param]()


def test_a_module_can_be_scripted_saved_and_trained(made: tuple[nn.Module, Tensor]) -> None:
    module, x = made
    scripted = torch.jit.script(nn.Sequential(module))
    loaded = torch.jit.load(io.BytesIO(scripted.save_to_buffer()))
    assert [name for name, _ in loaded.named_parameters()] == [f"0.{name}" for name, _ in module.named_parameters()]
    for _ in range(3):  # TorchScript profiles the first calls, and then rewrites the graph
        assert_same(gradients(loaded, x), gradients(module, x))
    with torch.no_grad():
        for changed in (loaded, module):
            for parameter in changed.parameters():
                parameter.mul_(0.5)
    assert_same(loaded(x), module(x))


def test_a_module_compiles_as_one_graph(made: tuple[nn.Module, Tensor]) -> None:
    module, x = made
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for given_x in (x, torch.cat([x, x])):
        assert_same(gradients(compiled, given_x), gradients(module, given_x))


def test_a_module_is_exported_with_dynamic_sizes(made: tuple[nn.Module, Tensor]) -> None:
    module, x = made
    open_sizes = tuple(torch.export.Dim.AUTO if at < x.dim() - 1 else None for at in range(x.dim()))
    exported = torch.export.export(module, (x,), dynamic_shapes=(open_sizes,))
    called = [str(node.target) for node in exported.graph.nodes if str(node.target).startswith("lltm.")]
    name = "lltm.sequence.default" if isinstance(module, LLTM) else "lltm.cell.default"
    assert called == [name] * getattr(module, "num_layers", 1)
    for given_x in (x, torch.cat([x, x])):
        assert_same(exported.module()(given_x), module(given_x))


@pytest.mark.parametrize("native", [True, False])
def test_copies_compute_the_same_with_separate_parameters(*, native: bool) -> None:
    module = LLTM(3, 4, num_layers=2, bias=False, native=native)
    x = torch.randn(5, 2, 3)
    expected = [leaf.clone() for leaf in leaves(module(x))]
    copies = [copy.deepcopy(module), pickle.loads(pickle.dumps(module))]
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    for copied in copies:
        assert_same(copied(x), expected)
        assert copied.native == native


def test_a_module_can_be_moved_to_another_dtype_and_to_shared_memory(made: tuple[nn.Module, Tensor]) -> None:
    module, x = made
    doubled = copy.deepcopy(module).double()
    for ours, exact in zip(leaves(module(x)), leaves(doubled(x.double())), strict=True):
        assert torch.allclose(ours.double(), exact, atol=1e-5)
    empty = copy.deepcopy(module).to("meta").to_empty(device="cpu")
    empty.load_state_dict(module.state_dict())
    empty.reset_parameters()  # type: ignore[operator]  # mypy infers a tensor
    for name, tensor in [*empty.named_parameters(), *empty.named_buffers()]:
        is_bias_left_out = name.startswith("bias") and name not in module.state_dict()
        assert torch.all(tensor == 0) if is_bias_left_out else tensor.unique().numel() > tensor.numel() / 2
        assert tensor.abs().max() <= 4**-0.5


def test_the_library_is_opened_only_when_a_native_module_is_created_or_unpickled(tmp_path: Path) -> None:
    module, x = LLTM(4, 5), torch.randn(3, 2, 4)
    (tmp_path / "given.pickle").write_bytes(
        pickle.dumps({"module": module, "input": x, "output": module(x)[0].detach()})
    )
    command = [*python(), "-c", IMPORTED, str(tmp_path / "given.pickle")]
    ran = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(OPS)}, capture_output=True, text=True, check=False
    )
    assert ran.stdout == "False\nTrue True\n", ran.stderr


def test_dropout_applies_only_between_layers_and_in_training() -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 2, 3)
    kept, dropped = LLTM(3, 8, num_layers=2), LLTM(3, 8, num_layers=2, dropout=0.5)
    dropped.load_state_dict(kept.state_dict())
    assert not torch.equal(dropped(x)[0], kept(x)[0])
    assert torch.equal(dropped(x)[1][0][0], kept(x)[1][0][0])
    assert_same(dropped.eval()(x), kept(x))
    with pytest.warns(UserWarning, match="dropout applies only between layers, .* it has no effect"):
        LLTM(3, 8, dropout=0.5)


def test_the_repr_of_a_module_shows_its_options() -> None:
    assert repr(LLTMCell(3, 4)) == "LLTMCell(3, 4)"
    assert repr(LLTMCell(3, 4, bias=False, native=False)) == "LLTMCell(3, 4, bias=False, native=False)"
    assert repr(LLTM(3, 4)) == "LLTM(3, 4)"
    said = "LLTM(3, 4, bias=False, num_layers=2, batch_first=True, dropout=0.1)"
    assert repr(LLTM(3, 4, 2, bias=False, batch_first=True, dropout=0.1)) == said


WRONG: list[tuple[Callable[[], object], str]] = [
    (
        lambda: LLTM(3, 4)(torch.zeros(5, 2, 7)),
        "input must have shape (steps, batch, input_size) or (steps, input_size), with input_size 3, got [5, 2, 7]",
    ),
    (
        lambda: LLTM(3, 4, batch_first=True)(torch.zeros(3)),
        "input must have shape (batch, steps, input_size) or (steps, input_size), with input_size 3, got [3]",
    ),
    (
        lambda: LLTM(3, 4)(torch.zeros(5, 2, 3), (torch.zeros(2, 4), torch.zeros(1, 2, 4))),
        "hx[0] must have shape [1, 2, 4], (num_layers, batch, hidden_size), got [2, 4]",
    ),
    (
        lambda: LLTM(3, 4, 2)(torch.zeros(5, 3), (torch.zeros(2, 4), torch.zeros(1, 4))),
        "hx[1] must have shape [2, 4], (num_layers, hidden_size), got [1, 4]",
    ),
    (
        lambda: LLTMCell(3, 4)(torch.zeros(2, 2, 3)),
        "input must have shape (batch, input_size) or (input_size), with input_size 3, got [2, 2, 3]",
    ),
    (
        lambda: LLTMCell(3, 4)(torch.zeros(())),
        "input must have shape (batch, input_size) or (input_size), with input_size 3, got []",
    ),
    (
        lambda: LLTMCell(3, 4)(torch.zeros(2, 3), (torch.zeros(1, 4), torch.zeros(2, 4))),
        "hx[0] must have shape [2, 4], (batch, hidden_size), got [1, 4]",
    ),
    (
        lambda: LLTMCell(3, 4)(torch.zeros(3), (torch.zeros(4), torch.zeros(1, 4))),
        "hx[1] must have shape [4], (hidden_size), got [1, 4]",
    ),
    (lambda: LLTM(0, 4), "input_size must be 1 or more, got 0"),
    (lambda: LLTMCell(3, -4), "hidden_size must be 1 or more, got -4"),
    (lambda: LLTM(3, 4, 0), "num_layers must be 1 or more, got 0"),
    (lambda: LLTM(3, 4, 2, dropout=1.5), "dropout must be a probability, from 0 to 1, got 1.5"),
    (
        lambda: torch.jit.script(LLTM(3, 4, native=False)),
        (
            "LLTM with native=False is plain Python, which torch.jit.script does not support: "
            "script one with native=True, whose load_state_dict accepts the parameters of this one"
        ),
    ),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message[:40] for _, message in WRONG])
def test_errors_name_the_expected_value(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


def test_a_scripted_module_raises_the_same_errors() -> None:
    scripted = torch.jit.script(LLTM(3, 4))
    with pytest.raises(torch.jit.Error, match=r"with input_size 3, got \[5, 2, 7\]"):
        scripted(torch.zeros(5, 2, 7))
    with pytest.raises(torch.jit.Error, match=r"hx\[0\] must have shape \[1, 2, 4\], .*, got \[2, 4\]"):
        scripted(torch.zeros(5, 2, 3), (torch.zeros(2, 4), torch.zeros(1, 2, 4)))


def test_errors_of_the_operator_are_passed_through() -> None:
    with pytest.raises(RuntimeError, match=r"weights must .*float64"):
        LLTM(3, 4)(torch.zeros(5, 2, 3, dtype=torch.float64))


@pytest.mark.needs("cuda", "nvcc")
def test_a_module_moves_to_a_gpu_and_back() -> None:
    module, x = LLTM(3, 4, num_layers=2), torch.randn(5, 2, 3)
    expected = leaves(module(x))
    there = copy.deepcopy(module).cuda()
    for ours, theirs in zip(leaves(there(x.cuda())), expected, strict=True):
        assert ours.is_cuda
        assert torch.allclose(ours.cpu(), theirs, atol=1e-5)
    assert_same(there.cpu()(x), expected)
