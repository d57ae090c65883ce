"""The CUDA half of ops/lltm: compiled for every GPU if nvcc is installed, and run on a GPU if there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
import torch

import opwright
from tests.integration.lltm.conftest import FOLDER
from tests.integration.lltm.test_operators import CUDA_TOLERANCES, LAYOUTS, compare, drawn

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from opwright.loader.open import Loaded
    from tests.integration.conftest import Dynamic

# Parts of the kernels' mangled names: for single elements, and for vectors of 16 bytes.
VARIANTS = ("IfLi1EE", "IfLi4EE", "IdLi1EE", "IdLi2EE")
HALF_VARIANTS = tuple(f"IN3c10{name}ELi{width}EE" for name in ("4Half", "8BFloat16") for width in (1, 8))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of only the CUDA source: the CPU source takes as long, and other tests compile it."""
    folder = tmp_path_factory.mktemp("lltm_cuda")
    source = f"sources=[{str(FOLDER / 'cuda.cu')!r}], include_dirs=[{str(FOLDER)!r}]"
    text, count = re.subn(r"sources=\[.*?\]", source, (FOLDER / "op.py").read_text(), count=1)
    assert count == 1
    (folder / "op.py").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
        return opwright.build(folder, cuda=True)


@pytest.mark.sample(of="long", by="file")
@pytest.mark.needs("nvcc")
def test_it_is_compiled_for_current_gpus_and_later_ones(built: Path, dynamic: Dynamic) -> None:
    assert "libtorch.so" in dynamic(built, "needed")
    cuobjdump = shutil.which("cuobjdump") or shutil.which("cuobjdump", path="/usr/local/cuda/bin")
    if cuobjdump:
        elf, ptx = (
            subprocess.check_output([cuobjdump, kind, built], text=True) for kind in ("--list-elf", "--list-ptx")
        )
        assert re.findall(r"sm_\d+", elf) == ["sm_80", "sm_90"]
        assert re.findall(r"sm_\d+", ptx) == ["sm_90"]


@pytest.mark.sample(of="long", by="file")
@pytest.mark.needs("nvcc")
def test_every_dtype_has_a_scalar_and_a_vector_kernel(built: Path) -> None:
    content = built.read_bytes()
    for kernel in ("7forward", "8backward", "12side_by_side"):
        for variant in (*VARIANTS, *HALF_VARIANTS):
            assert f"_ZN4lltm3gpu{kernel}{variant}".encode() in content
    for number in ("f", "d", "N3c104HalfE", "N3c108BFloat16E"):
        for kernel in ("11sum_of_rowsI{}E", "14small_productsI{}E", "10small_stepI{}Li4EE", "10small_stepI{}Li16EE"):
            assert f"_ZN4lltm3gpu{kernel.format(number)}".encode() in content


@pytest.mark.sample(of="long", by="file")
@pytest.mark.needs("nvcc")
def test_every_operator_has_a_cuda_kernel(built: Path) -> None:
    # Compiling checks that each one matches its schema.
    names = re.findall(r'm\.impl\("(\w+)"', (FOLDER / "cuda.cu").read_text())
    assert sorted(names) == sorted(opwright.spec.library_at(FOLDER).ops)
    assert all(name.encode() + b"\0" in built.read_bytes() for name in names)


@pytest.mark.needs("cuda", "nvcc")
def test_every_runtime_passes_on_the_gpu() -> None:
    report = opwright.check(FOLDER, devices=["cuda"], seed=0)
    assert report.passed, [(cell.op, cell.runtime, cell.failures) for cell in report.cells if cell.failures]


def on_gpu(tensors: list[Tensor], index: int = 0) -> list[Tensor]:
    return [tensor.to(f"cuda:{index}") for tensor in tensors]


@pytest.mark.needs("cuda", "nvcc")
@pytest.mark.parametrize("dtype", CUDA_TOLERANCES, ids=str)
def test_the_gpu_matches_the_reference(lltm: Loaded, name: str, dtype: torch.dtype) -> None:
    for size in ((0, 3, 4), (3, 2, 0), (9, 5, 8), (3, 4, 7), (16, 32, 128), (70, 9, 600), (300, 64, 256)):
        compare(lltm, name, on_gpu(drawn(name, *size, dtype)), CUDA_TOLERANCES)
    for layout in LAYOUTS.values():
        compare(lltm, name, [layout(tensor) for tensor in on_gpu(drawn(name, 70, 16, 264, dtype))], CUDA_TOLERANCES)


@pytest.mark.needs("cuda", "nvcc")
def test_the_gpu_matches_the_cpu(lltm: Loaded, name: str) -> None:
    for size in ((16, 32, 128), (70, 9, 600)):
        found = []
        for arguments in (drawn(name, *size), on_gpu(drawn(name, *size))):
            inputs = [argument.requires_grad_() for argument in arguments]
            results = getattr(lltm.ops, name)(*inputs)
            gradients = torch.autograd.grad(sum(result.sum() for result in results), inputs)
            found.append([tensor.cpu() for tensor in (*results, *gradients)])
        torch.testing.assert_close(*found, rtol=1e-4, atol=1e-3)


@pytest.mark.needs("cuda", "nvcc")
def test_kernels_run_on_the_current_stream(lltm: Loaded, name: str) -> None:
    arguments = on_gpu(drawn(name, 300, 64, 256))
    expected = getattr(lltm.ops, name)(*arguments)
    late = [torch.zeros_like(argument) for argument in arguments]
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(10**8)
        for into, argument in zip(late, arguments, strict=True):
            into.copy_(argument)
        got = getattr(lltm.ops, name)(*late)
    torch.cuda.synchronize()
    torch.testing.assert_close(got, expected, rtol=0, atol=0)


@pytest.mark.needs("cuda", "nvcc")
@pytest.mark.parametrize("size", [(16, 32, 128), (70, 9, 600)])
def test_a_sequence_can_be_captured_in_a_cuda_graph(lltm: Loaded, size: tuple[int, int, int]) -> None:
    arguments = on_gpu(drawn("sequence", *size))
    expected = lltm.ops.sequence(*arguments)  # cuBLAS creates its handle here, not during capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = lltm.ops.sequence(*arguments)
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(got, expected)


@pytest.mark.needs("cuda", "nvcc")
def test_kernels_run_on_the_gpu_of_the_arguments(lltm: Loaded) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("this machine has one GPU")
    arguments = on_gpu(drawn("cell", 16, 32, 128), index=1)
    compare(lltm, "cell", arguments)
    assert torch.cuda.current_device() == 0
    with pytest.raises(RuntimeError, match="weights must be on the device of input, cuda:1, got cuda:0"):
        lltm.ops.cell(arguments[0], arguments[1].to("cuda:0"), *arguments[2:])


@pytest.mark.needs("cuda", "nvcc")
def test_gradients_of_equal_calls_are_bitwise_equal(lltm: Loaded) -> None:
    arguments = [argument.requires_grad_() for argument in on_gpu(drawn("sequence", 300, 64, 256))]
    results = lltm.ops.sequence(*arguments)
    loss = results[0].sum() + results[1].square().sum()
    first, *others = (torch.autograd.grad(loss, arguments[2], retain_graph=True)[0] for _ in range(5))
    assert all(torch.equal(first, other) for other in others)
