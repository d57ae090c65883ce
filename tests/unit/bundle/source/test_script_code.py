from __future__ import annotations

import pytest

from opwright.bundle.source.script_code import check_class, check_code

METHOD = """class M(Module):
  __parameters__ = ["weight", ]
  training : bool
  inf : Final[float] = inf
  __annotations__["0"] = __torch__.torch.nn.modules.linear.Linear
  def forward(self: __torch__.M,
    x: Tensor,
    m: Optional[Dict[str, int]]=None) -> Tuple[Tensor, Device]:
    {line}
    return (x, torch.device("cpu"))
"""


@pytest.mark.parametrize(
    "line",
    [
        'ops.prim.RaiseException(torch.add("no \\"such\\" file\\n", "\\303\\251"))',
        "y = torch.add(torch.full([3], nan), -inf)",
        "y = torch.mul(x, 9.9999999999999995e-08)",
        '_0 = getattr(self.layers, "0")',
        'y = ops.mine.f(self.ops, {"a": x, }, [1, 2,], x[...,::2])',
        "p = unchecked_cast(__torch__.torch.classes.quantized.LinearPackedParamsBase, q)",
        "_1 = __torch__.torch.nn.functional.relu(x, )",
        "_1 = __torch__.M.f(x, )",
        's = "save the model"',
    ],
)
def test_code_that_computes_is_accepted(line: str) -> None:
    check_code(METHOD.replace("{line}", line).encode(), "code/__torch__.py")


@pytest.mark.parametrize(
    "line",
    [
        'torch.save(x, "f")',
        'torch . save(x, "f")',
        'ops.aten.save(x, "f")',
        'getattr(torch, "save")(x, "f")',
        'f = torch.from_file("f", True, 4)',
        'aten = torch\n    aten.save(x, "f")',
        "ops.c10d.send([x], g, 0, 0)",
        "o = ops",
        "o = ops.c10d",
        'getattr(ops, "c10d")',
        "ops.prim.rpc_sync(to, name, (x,))",
        "c = __torch__",
        "c = __torch__.torch",
        "c = __torch__.torch.classes",
        "c = __torch__.torch.classes.c10d",
        "c = __torch__.torch.classes.dist_c10d.ProcessGroup",
        'c = getattr(__torch__.torch, "classes")',
    ],
)
def test_code_that_accesses_files_or_other_processes_is_rejected(line: str) -> None:
    with pytest.raises(ValueError, match=r"^it (calls|uses|holds)"):
        check_code(METHOD.replace("{line}", line).encode(), "code/__torch__.py")


@pytest.mark.parametrize(
    "line",
    [
        'getattr(torch, "sa" "ve")',
        'getattr(torch, "\\163ave")',
        'getattr(torch, "\\x73ave")',
        "getattr(torch, 'save')",
        'getattr(torch, "sa\\\nve")',
        's = """text"""',
        "# a comment",
        "x = y \\\n",
        "x\ty",
        "é = 1",
        "x = $",
        'x = "no end',
    ],
)
def test_text_that_pytorch_does_not_write_is_rejected(line: str) -> None:
    with pytest.raises(ValueError, match=r"code/__torch__\.py inside it is not code as PyTorch writes it$"):
        check_code(METHOD.replace("{line}", line).encode(), "code/__torch__.py")


def test_classes_of_packed_weights_and_of_libraries_are_accepted_and_those_for_other_processes_rejected() -> None:
    check_class("__torch__.torch.classes.quantized.LinearPackedParamsBase")
    check_class("__torch__.torch.classes.mine.Handle")
    check_class("__torch__.M")
    check_class("__torch__.torch.nn.modules.container.Sequential")
    with pytest.raises(ValueError, match=r"an object of the class c10d\.ProcessGroup, which holds more than data"):
        check_class("__torch__.torch.classes.c10d.ProcessGroup")
