"""Operators of external libraries: PyTorch's own, and those of sources that register their operators themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import opwright
from opwright.checker.kinds import Kind
from opwright.errors import LoadError

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.checker.verdict import Report

pytestmark = pytest.mark.usefixtures("forked")

ATEN = """
import opwright
import torch
from torch import Tensor

library = opwright.Library("aten", imports=["torch"])

@library.op(vmap=True)
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    return self + value * tensor1 * tensor2

@addcmul.samples(dtypes=[torch.float64])
def _(make):
    yield make.call(make.randn(5, 7), make.randn(5, 7), make.randn(5, 7), value=0.5)

@addcmul.domain
def _(self, tensor1, tensor2, *, value):  # other dtypes are promoted by rules of their own
    return self.dtype == tensor1.dtype == tensor2.dtype and self.is_floating_point()
"""

QUICK = ("eager", "autograd", "compile", "vmap", "trace", "script")
COMPILED = ("export", "host-linked", "host-script")


@pytest.mark.sample(of="long")
@pytest.mark.parametrize("runtimes", [QUICK, COMPILED])
def test_an_operator_of_pytorch_can_be_checked(tmp_path: Path, runtimes: tuple[str, ...]) -> None:
    (tmp_path / "op.py").write_text(ATEN)
    report = opwright.check(tmp_path, runtimes=runtimes, quick=runtimes == QUICK)
    assert report.kinds == set(), report.to_json()
    assert {cell.runtime: cell.status for cell in report.cells} == dict.fromkeys(runtimes, "passed")


def test_a_wrong_reference_is_reported_with_a_repro_without_opwright(tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text(ATEN.replace("value * tensor1", "value + tensor1"))
    report = opwright.check(tmp_path, runtimes=["eager"], quick=True)
    assert report.kinds == {Kind.WRONG_RESULT}
    (failure,) = report.cells[0].failures
    assert failure.repro.splitlines()[0] == "import torch"
    assert failure.repro.splitlines()[-1] == "torch.ops.aten.addcmul(self_, tensor1, tensor2, value=0.5)"


OWN = """
import opwright
from torch import Tensor

library = opwright.Library({namespace!r}, sources=["cpu.cpp"])

@library.op
def scale(x: Tensor, factor: float) -> Tensor:
    return x * factor

@scale.samples
def _(make):
    yield make.randn(5, 7), 2.5
"""
KERNEL = """
#include <ATen/Functions.h>
#include <torch/library.h>
static at::Tensor scale(const at::Tensor& x, double factor) { return at::mul(x, factor); }
"""
REGISTRATIONS = {
    "library": """
TORCH_LIBRARY(NAMESPACE, m) { m.def("scale(Tensor x, float factor) -> Tensor"); }
TORCH_LIBRARY_IMPL(NAMESPACE, CPU, m) { m.impl("scale", &scale); }
""",
    "fragment": """
TORCH_LIBRARY_FRAGMENT(NAMESPACE, m) { m.def("scale(Tensor x, float factor) -> Tensor", &scale); }
""",
    "registry": """
#include <torch/csrc/api/include/torch/types.h>
#include <ATen/core/op_registration/op_registration.h>
static auto registry = c10::RegisterOperators().op("NAMESPACE::scale", &scale);
""",
}


def own(folder: Path, registration: str) -> Path:
    namespace = f"own_{registration}"
    (folder / "op.py").write_text(OWN.format(namespace=namespace))
    (folder / "cpu.cpp").write_text((KERNEL + REGISTRATIONS[registration]).replace("NAMESPACE", namespace))
    return folder


def statuses(report: Report) -> dict[str, str]:
    assert report.failures == ()
    return {cell.runtime: cell.status for cell in report.cells}


@pytest.mark.sample(of="PyTorch's headers")
@pytest.mark.parametrize("registration", REGISTRATIONS)
def test_sources_that_register_their_operators_themselves_can_be_checked(tmp_path: Path, registration: str) -> None:
    report = opwright.check(own(tmp_path, registration), runtimes=["eager", "autograd", "compile"], quick=True)
    assert report.kinds == set(), report.to_json()
    # A kernel for every device is composed of other operators, so it has a gradient and runs on fake tensors.
    lacks = "lacking" if registration == "library" else "passed"
    assert statuses(report) == {"eager": "passed", "autograd": lacks, "compile": lacks}


@pytest.mark.sample(of="PyTorch's headers")
def test_features_that_an_external_operator_lacks_are_named(tmp_path: Path) -> None:
    report = opwright.check(own(tmp_path, "library"), runtimes=["autograd", "export", "host-linked"])
    reasons = {cell.runtime: cell.reason for cell in report.cells}
    assert "no gradient: nothing is registered for autograd" in reasons["autograd"]
    assert "no fake kernel, which computes shapes without data" in reasons["export"]
    assert statuses(report)["host-linked"] == "passed"
    assert report.passed


CUSTOM_OP = """
import torch
from torch import Tensor

@torch.library.custom_op("own_custom_op::scale", mutates_args=())
def scale(x: Tensor, factor: float) -> Tensor:
    return torch.from_numpy(x.numpy() * factor)
"""
REGISTERED = """
scale.register_fake(lambda x, factor: torch.empty_like(x))
scale.register_autograd(
    lambda ctx, grad: (grad * ctx.factor, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]),
)
"""


@pytest.mark.parametrize("lacks", [True, False])
def test_a_custom_op_lacks_what_its_author_has_not_registered(tmp_path: Path, *, lacks: bool) -> None:
    (tmp_path / "own_custom_op.py").write_text(CUSTOM_OP + ("" if lacks else REGISTERED))
    described = OWN.format(namespace="own_custom_op").replace('sources=["cpu.cpp"]', 'imports=["own_custom_op"]')
    path = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n"
    domain = "\n@scale.domain\ndef _(x, factor):\n    return x.is_contiguous() and x.is_floating_point()\n"
    (tmp_path / "op.py").write_text(path + described + domain)
    report = opwright.check(tmp_path, runtimes=["eager", "autograd", "compile", "script"], quick=True, seed=0)
    lacking = "lacking" if lacks else "passed"
    assert report.kinds == set(), report.to_json()
    assert statuses(report) == {"eager": "passed", "autograd": lacking, "compile": lacking, "script": "passed"}


@pytest.mark.sample(of="PyTorch's headers")
def test_nothing_can_be_added_to_an_external_operator(tmp_path: Path) -> None:
    own(tmp_path, "library")
    with (tmp_path / "op.py").open("a") as file:
        file.write("\nscale.backward()\n")
    report = opwright.check(tmp_path, runtimes=["eager"])
    (failure,) = report.failures
    assert failure.kind is Kind.LOAD
    assert "op.py describes a backward for own_library::scale, which is registered by a package" in failure.got


@pytest.mark.sample(of="PyTorch's headers")
def test_an_object_with_two_definitions_is_rejected_before_it_ends_the_process(tmp_path: Path) -> None:
    source = tmp_path / "twice.cpp"
    source.write_text(
        "#include <torch/library.h>\n"
        'namespace one { TORCH_LIBRARY(twice_defined, m) { m.def("f() -> ()"); } }\n'
        'namespace two { TORCH_LIBRARY(twice_defined, m) { m.def("g() -> ()"); } }\n'
    )
    with pytest.raises(LoadError, match="defines the namespace 'twice_defined' 2 times, but only one definition"):
        opwright.load("twice_defined", [source], is_python_module=False)
