"""The approach of PyTorch's tutorial: a pybind11 module with a forward and a backward, built in each possible way."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright
from opwright.builder.compile import build_plan
from opwright.builder.plan import plan_sources
from opwright.toolchain.compiler import cuda_home, find_nvcc
from tests.interpreter import python

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

pytestmark = pytest.mark.sample(of="long", by="file")

FOLDER = Path(__file__).parents[2] / "examples" / "lltm_extension"
CUDA_SOURCES = [FOLDER / "lltm_cuda.cpp", FOLDER / "lltm_cuda_kernel.cu"]
LLTM = SimpleNamespace(**runpy.run_path(str(FOLDER / "lltm.py")))
# The maximum deviation of a result from the one in float64.
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 2e-1}
NAMES = ["input", "weights", "bias", "old_h", "old_cell"]

# In a separate process: the module that it imports is called with CPU tensors.
CALL = """
import sys, torch
sys.path.insert(0, sys.argv[1])
extension = __import__(sys.argv[2])
from lltm import LLTM, cell_of
try:
    new_h, _ = LLTM(3, 4, cell_of(extension))(torch.rand(2, 3), (torch.rand(2, 4), torch.rand(2, 4)))
    new_h.sum().backward()
    print(tuple(new_h.shape))
except RuntimeError as error:
    print(error)
"""
ON_CPU = "input must be on a CUDA device, got cpu: move it with .to('cuda'), or use the extension built from lltm.cpp\n"


@cache
def composed() -> ModuleType:
    return cast("ModuleType", opwright.load("lltm_cpp", [FOLDER / "lltm.cpp"]))


@cache
def fused() -> ModuleType:
    return cast("ModuleType", opwright.load("lltm_cuda", CUDA_SOURCES))


@dataclass(frozen=True)
class Built:
    """An extension, and the device to test it on."""

    extension: ModuleType
    device: str

    def step(self, arguments: list[Tensor]) -> list[Tensor]:
        return results_of(LLTM.cell_of(self.extension), [argument.to(self.device) for argument in arguments])


GPU = pytest.mark.needs("cuda", "nvcc")


@pytest.fixture(
    params=[(composed, "cpu"), pytest.param((composed, "cuda"), marks=GPU), pytest.param((fused, "cuda"), marks=GPU)],
    ids=["composed-cpu", "composed-cuda", "fused-cuda"],
    scope="module",
)
def built(request: pytest.FixtureRequest) -> Built:
    load, device = request.param
    return Built(load(), device)


def arguments_of(batch: int, features: int, state: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    shapes = [(batch, features), (3 * state, state + features), (3 * state,), (batch, state), (batch, state)]
    return [torch.randn(shape, dtype=dtype) for shape in shapes]


def results_of(cell: Callable[..., tuple[Tensor, Tensor]], arguments: list[Tensor]) -> list[Tensor]:
    """Both results, and the five gradients of a loss that depends on both."""
    leaves = [argument.detach().requires_grad_() for argument in arguments]
    new_h, new_cell = cell(*leaves)
    loss = (new_h.sin() + new_cell.cos()).sum()
    return [new_h.detach().cpu(), new_cell.detach().cpu(), *(t.cpu() for t in torch.autograd.grad(loss, leaves))]


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.tuples(st.integers(0, 6), st.integers(0, 5), st.integers(1, 40)),
    dtype=st.sampled_from(list(TOLERANCES)),
    transposed=st.lists(st.booleans(), min_size=5, max_size=5),
    seed=st.integers(0, 2**32),
)
def test_a_step_and_its_gradients_match_plain_pytorch(
    built: Built, sizes: tuple[int, int, int], dtype: torch.dtype, transposed: list[bool], seed: int
) -> None:
    torch.manual_seed(seed)
    arguments = arguments_of(*sizes, dtype=dtype)
    # The same values, in column-major order.
    laid_out = [x.mT.contiguous().mT if t and x.dim() == 2 else x for x, t in zip(arguments, transposed, strict=True)]
    expected = results_of(LLTM.plain_cell, [argument.double() for argument in arguments])
    for got, wanted in zip(built.step(laid_out), expected, strict=True):
        assert got.dtype == dtype
        assert got.shape == wanted.shape
        scale = max(1.0, float(wanted.abs().max())) if wanted.numel() else 1.0
        torch.testing.assert_close(got.double(), wanted, rtol=0, atol=TOLERANCES[dtype] * scale)


def test_the_gradients_match_finite_differences(built: Built) -> None:
    torch.manual_seed(0)
    leaves = [argument.to(built.device).requires_grad_() for argument in arguments_of(3, 2, 4)]
    assert torch.autograd.gradcheck(LLTM.cell_of(built.extension), leaves)


@given(wanted=st.lists(st.booleans(), min_size=5, max_size=5))
@settings(max_examples=32, deadline=None)
def test_gradients_that_are_not_needed_are_none_and_the_others_do_not_change(built: Built, wanted: list[bool]) -> None:
    torch.manual_seed(0)
    arguments = [argument.to(built.device) for argument in arguments_of(3, 2, 4)]
    new_h, new_cell, gates, joined = built.extension.forward(*arguments)
    saved = (new_h, new_cell, new_cell, gates, joined, arguments[1])
    every = built.extension.backward(*saved, [True] * 5)
    some = built.extension.backward(*saved, wanted)
    assert [gradient is not None for gradient in some] == wanted
    for one, of_all in zip(some, every, strict=True):
        assert one is None or torch.allclose(one, of_all, rtol=1e-12)


def test_a_second_derivative_is_rejected(built: Built) -> None:
    leaves = [argument.to(built.device).requires_grad_() for argument in arguments_of(3, 2, 4)]
    new_h, _ = LLTM.cell_of(built.extension)(*leaves)
    with pytest.raises(
        RuntimeError, match=r"cannot be differentiated again, .* use plain_cell, or omit create_graph=True"
    ):
        torch.autograd.grad(new_h.sum(), leaves[0], create_graph=True)


def test_autocast_does_not_affect_the_cell(built: Built) -> None:
    arguments = arguments_of(3, 2, 4, torch.float32)
    expected = built.step(arguments)
    with torch.autocast(built.device, torch.bfloat16):
        got = built.step(arguments)
    assert all(map(torch.equal, got, expected))


def test_a_module_trains_like_one_in_plain_pytorch(built: Built) -> None:
    torch.manual_seed(0)
    inputs = torch.rand(12, 8, 3, device=built.device)
    target = inputs.sum(dim=0).tanh()

    def losses_of(cell: Callable[..., tuple[Tensor, Tensor]]) -> list[float]:
        torch.manual_seed(1)
        lltm = LLTM.LLTM(3, 3, cell).to(built.device)
        optimizer = torch.optim.Adam(lltm.parameters(), lr=0.05)
        losses = []
        for _ in range(20):
            state = (torch.zeros_like(target), torch.zeros_like(target))
            for one in inputs:
                state = lltm(one, state)
            loss = (state[0] - target).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    losses = losses_of(LLTM.cell_of(built.extension))
    assert losses[-1] < losses[0] / 2
    assert losses == pytest.approx(losses_of(LLTM.plain_cell), rel=1e-3)


FROM = "batch and features are those of input, state is that of old_h"
BAD = [
    ("input", lambda t: t.int(), "be Float, Double, Half or BFloat16, got Int: convert it with .to(torch.float32)"),
    ("input", lambda t: t[0], "have 2 dimensions, (batch, features), got shape [3]"),
    ("old_h", lambda t: t[None], "have 2 dimensions, (batch, state), got shape [1, 2, 4]"),
    ("old_h", lambda t: t[:1], f"have shape [2, 4], (batch, state), got [1, 4]: {FROM}"),
    ("old_cell", lambda t: t[:, :3], f"have shape [2, 4], (batch, state), got [2, 3]: {FROM}"),
    ("old_cell", lambda t: t.to("meta"), "be on the device of input, *, got meta: move it with .to(input.device)"),
    ("weights", lambda t: t[:, :6], f"have shape [12, 7], (3 * state, state + features), got [12, 6]: {FROM}"),
    ("weights", lambda t: t.half(), "have the dtype of input, Double, got Half: convert it with .to(input.dtype)"),
    ("bias", lambda t: t[None], f"have shape [12], (3 * state), got [1, 12]: {FROM}"),
]


@pytest.mark.parametrize(("name", "spoil", "rule"), BAD)
def test_an_invalid_argument_is_named_with_the_expected_value(
    built: Built, name: str, spoil: Callable[[Tensor], Tensor], rule: str
) -> None:
    arguments = dict(zip(NAMES, [t.to(built.device) for t in arguments_of(2, 3, 4)], strict=True))
    rule = rule.replace("input, *,", f"input, {arguments['input'].device},")
    arguments[name] = spoil(arguments[name])
    # Up to the end: no C++ backtrace follows.
    with pytest.raises(RuntimeError, match=f"^{re.escape(f'{name} must {rule}')}$"):
        built.extension.forward(**arguments)


def test_the_backward_names_invalid_arguments(built: Built) -> None:
    arguments = [argument.to(built.device) for argument in arguments_of(2, 3, 4)]
    new_h, new_cell, gates, joined = built.extension.forward(*arguments)
    fine = {"grad_h": new_h, "grad_cell": new_h, "new_cell": new_cell, "gates": gates, "joined": joined}
    fine |= {"weights": arguments[1], "wanted": (True,) * 5}
    assert len(built.extension.backward(**fine)) == 5
    origin = "batch and state are those of new_cell, features are the rest of joined"
    for name, wrong, rule in [
        ("grad_h", new_h.half(), "have the dtype of new_cell, Double, got Half: convert it with .to(new_cell.dtype)"),
        ("grad_cell", new_h[:, 0], f"have shape [2, 4], (batch, state), got [2]: {origin}"),
        ("new_cell", new_h[0], "have 2 dimensions, (batch, state), got shape [4]"),
        ("gates", gates[:, :4], f"have shape [2, 12], (batch, 3 * state), got [2, 4]: {origin}"),
        ("joined", joined[:, :3], "have a column for each of the 4 of new_cell, got 3: pass what forward returned"),
        ("joined", joined[:1], f"have shape [2, 7], (batch, state + features), got [1, 7]: {origin}"),
        ("weights", joined, f"have shape [12, 7], (3 * state, state + features), got [2, 7]: {origin}"),
    ]:
        with pytest.raises(RuntimeError, match=f"^{re.escape(f'{name} must {rule}')}$"):
            built.extension.backward(**{**fine, name: wrong})
    with pytest.raises(TypeError, match=r"incompatible function arguments(?s:.*)wanted: .*FixedSize\(5\)"):
        built.extension.backward(**{**fine, "wanted": [True]})


def test_help_shows_the_names_of_the_arguments(built: Built) -> None:
    assert "forward(input: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor," in built.extension.forward.__doc__
    assert "old_cell: (B, H)" in built.extension.forward.__doc__
    assert "backward(grad_h: torch.Tensor, grad_cell: torch.Tensor," in built.extension.backward.__doc__


def test_the_script_builds_runs_and_compares() -> None:
    composed()  # the script finds it in the cache
    command = [*python(), str(FOLDER / "just_in_time.py")]
    ended = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    said = r"files: built and loaded in \d+\.\d s; differs from plain PyTorch by at most [\d.]+e-1\d\n"
    assert re.fullmatch(said, ended.stdout), ended.stdout + ended.stderr


def test_setuptools_builds_it_as_in_pytorchs_tutorial(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    project = tmp_path / "project"
    shutil.copytree(FOLDER, project, ignore=shutil.ignore_patterns("*.so", "build", "__pycache__"))
    modules = ["lltm_cpp"]
    variables = {"CFLAGS": "-O0"}  # the build only needs to succeed
    if torch.version.cuda is not None and shutil.which("nvcc"):
        modules.append("lltm_cuda")
        variables["CUDA_HOME"] = str(cuda_home(find_nvcc()))
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    ended = subprocess.run(
        command, cwd=project, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert sorted(path.name.partition(".")[0] for path in project.glob("*.so")) == modules
    for module in modules:
        assert called(project, module) == ("(2, 4)\n" if module == "lltm_cpp" else ON_CPU)


@pytest.mark.needs("nvcc")
def test_the_mixed_extension_builds_without_a_gpu_and_reports_that_it_requires_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    artefact = build_plan(plan_sources("lltm_cuda", CUDA_SOURCES, cflags=["-O0"]))
    shutil.copy(artefact.path, tmp_path / "lltm_cuda.so")
    shutil.copy(FOLDER / "lltm.py", tmp_path)
    libraries = [str(cuda_home(find_nvcc()) / "lib64"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    monkeypatch.setenv("LD_LIBRARY_PATH", ":".join(libraries))
    assert called(tmp_path, "lltm_cuda") == ON_CPU


def called(folder: Path, module: str) -> str:
    """The output of the program CALL, with a module and lltm.py from `folder`."""
    ended = subprocess.run(
        [*python(), "-c", CALL, str(folder), module], cwd="/", capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
