from __future__ import annotations

import pytest
import torch

from opwright.bundle.source.operators import check_function, refused_names


@pytest.mark.parametrize(
    "target",
    [
        "torch.ops.aten.add.Tensor",
        "torch.ops.aten.__and__.Scalar",
        "torch.ops.aten._softmax.default",
        "torch.ops.quantized.linear.default",
        "torch.ops.not_yet_loaded.op.default",
        "torch.ops.higher_order.cond",
        "_operator.floordiv",
        "math.trunc",
        "torch.sym_max",
    ],
)
def test_operators_and_arithmetic_are_accepted(target: str) -> None:
    check_function(target)


@pytest.mark.parametrize(
    "target",
    [
        "torch.os.system",
        "torch.load",
        "torch.hub.load",
        "torch.ops.load_library",
        "torch.ops.load_library.__func__.__globals__",
        "torch.ops.aten.name.join",
        "torch.ops.aten.add.__class__",
        "torch.ops.aten.add",
        "torch.ops.aten.add.Tensor.__init__",
        "torch.ops.aten.\uff41dd.Tensor",  # a letter that looks like another one
        "torch.ops.aten.add.Tensor\n",
        "torch.ops.higher_order.call_torchbind",
        "torch.ops.higher_order.triton_kernel_wrapper_functional",
        "torch.ops.higher_order.inductor_compiled_code",
        "_operator.methodcaller",
        "_operator.attrgetter",
        "math.__loader__.load_module",
        "#triton:kernel",
        "os.system",
        "",
    ],
)
def test_anything_but_an_operator_is_rejected(target: str) -> None:
    with pytest.raises(ValueError, match=r"^it calls .*, which is (not an operator|not for models)$"):
        check_function(target)


@pytest.mark.parametrize(
    "target",
    ["torch.ops.aten.save.default", "torch.ops.aten.from_file.default", "torch.ops.prim.rpc_sync.default"],
)
def test_operators_that_access_files_or_other_processes_are_rejected(target: str) -> None:
    with pytest.raises(ValueError, match="which can read or write files, or reach other processes"):
        check_function(target)


@pytest.mark.parametrize("target", ["torch.ops.debugprims.load_tensor.default", "torch.ops.c10d.send.default"])
def test_operators_that_are_not_for_models_are_rejected(target: str) -> None:
    with pytest.raises(ValueError, match="which is not for models"):
        check_function(target)


def test_an_operator_of_a_library_that_accepts_a_file_name_is_rejected_once_it_is_loaded() -> None:
    assert "writes_a_file" not in refused_names()
    library = torch.library.Library("of_a_library", "DEF")
    library.define("writes_a_file(Tensor x, str path) -> ()")
    library.define("computes(Tensor x, str mode) -> ()")
    with pytest.raises(ValueError, match="of_a_library::writes_a_file, which can read or write files"):
        check_function("torch.ops.of_a_library.writes_a_file.default")
    check_function("torch.ops.of_a_library.computes.default")
