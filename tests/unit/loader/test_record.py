from __future__ import annotations

import enum
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

import opwright
from opwright.errors import OpwrightError, SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.conftest import Describe


class Value(enum.IntEnum):
    THREE = 3


def calls_in(path: Path) -> list[dict[str, Any]]:
    content: dict[str, Any] = torch.load(path, weights_only=True)
    calls: list[dict[str, Any]] = content["calls"]
    return calls


def test_calls_are_recorded_once_for_each_shape_and_number(tmp_path: Path) -> None:
    with opwright.record("aten::addcmul", into=tmp_path / "recorded"):
        for size in (3, 3, 4):
            x = torch.randn(size)
            torch.addcmul(x, x, x)
        torch.addcmul(x, x, x, value=2)
        torch.addcmul(x, x, x, value=1)  # the default value: the same call
    calls = calls_in(tmp_path / "recorded/addcmul.pt")
    assert [[one.shape[0] for one in call["args"]] for call in calls] == [[3, 3, 3], [4, 4, 4], [4, 4, 4]]
    assert [call["kwargs"] for call in calls] == [{}, {}, {"value": 2}]


def test_strides_are_recorded_but_not_memory_outside_a_view(tmp_path: Path) -> None:
    with opwright.record("aten::relu", into=tmp_path):
        torch.randn(1000, 8).t()[:, 5:7].relu()
    (call,) = calls_in(tmp_path / "relu.pt")
    (x,) = call["args"]
    assert (x.shape, x.stride()) == ((8, 2), (1, 8))
    assert x.untyped_storage().nbytes() <= 64


def recorded_and_drawn(tensor: torch.Tensor, folder: Path) -> torch.Tensor:
    with opwright.record("aten::sin", into=folder):
        tensor.sin()
    (sample,) = opwright.Make().recorded(folder / "sin.pt")
    made: torch.Tensor = sample.args[0]
    assert (made.shape, made.stride(), made.dtype) == (tensor.shape, tensor.stride(), tensor.dtype)
    return made


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[:3].expand(2, 3),
        lambda x: x.unfold(0, 3, 1),
        lambda x: x.as_strided((2, 2, 2), (1, 2, 1)),
        lambda x: x[0].expand(0, 4),
        lambda x: x[:4].view(2, 2).t()[:, None].expand(2, 3, 2),
    ],
)
def test_small_tensors_whose_elements_share_memory_are_recorded(tmp_path: Path, view: Any) -> None:
    tensor = view(torch.randn(10))
    made = recorded_and_drawn(tensor, tmp_path)
    assert torch.equal(made, tensor)
    assert made.untyped_storage().nbytes() <= 40


def test_large_tensors_whose_elements_share_memory_are_drawn_again(tmp_path: Path) -> None:
    rows = recorded_and_drawn(torch.randn(1000).expand(10, 1000), tmp_path)
    assert torch.equal(rows[0], rows[9])
    assert len(rows[0].unique()) > 900
    windows = recorded_and_drawn(torch.randn(10000).unfold(0, 300, 1), tmp_path)
    assert torch.equal(windows[1, 0], windows[0, 1])
    assert len(windows[0].unique()) > 250


def untouched() -> list[torch.Tensor]:
    """A program with tensors that cannot be recorded, and one that can."""
    with FakeTensorMode():
        torch.ones(2).sin()
    torch.ones(2, device="meta").sin()
    torch.eye(2).to_sparse().sin()
    torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged).sin()
    lazy = torch.nn.LazyLinear(2)
    results = [
        torch.vmap(torch.sin)(torch.ones(2, 3)),
        torch.func.hessian(lambda x: x.sin().sum())(torch.ones(2)),
        torch.rand(3, generator=torch.Generator().manual_seed(1)),
        lazy(torch.ones(1, 3)).detach() * 0,
    ]
    return [*results, torch.ones(4).sin()]


@pytest.mark.filterwarnings("ignore:.*:UserWarning:torch")
def test_recording_never_changes_the_results_of_a_program(tmp_path: Path) -> None:
    with (
        pytest.warns(UserWarning, match=r"opwright.record: calls of aten::\S+ were left out") as warned,
        opwright.record("aten::*", into=tmp_path),
    ):
        found = untouched()
    assert all(map(torch.equal, found, untouched()))
    texts = [str(one.message) for one in warned]
    assert any("aten::sin were left out (TypeError: a tensor of the type FakeTensor cannot" in text for text in texts)
    assert any("an argument of type Generator cannot be recorded" in text for text in texts)
    assert [4] in [list(call["args"][0].shape) for call in calls_in(tmp_path / "sin.pt")]
    for path in tmp_path.iterdir():
        assert list(opwright.Make().recorded(path)) is not None


def test_an_operator_that_is_never_called_is_named(tmp_path: Path) -> None:
    with (
        pytest.warns(UserWarning, match=r"^opwright.record: aten::sim was not called in this thread$"),
        opwright.record("aten::sim", "aten::sin", into=tmp_path),
    ):
        torch.ones(1).sin()


def test_calls_before_an_exception_are_written(tmp_path: Path) -> None:
    with pytest.raises(SystemExit), opwright.record("aten::sin", into=tmp_path):
        sys.exit(int(torch.ones(1).sin()))
    assert len(calls_in(tmp_path / "sin.pt")) == 1


def test_operators_with_the_same_name_in_several_namespaces_have_separate_files(tmp_path: Path) -> None:
    with opwright.record("aten::sin", "prims::sin", into=tmp_path):
        torch.ones(1).sin()
        torch.ops.prims.sin(torch.ones(2))
    assert calls_in(tmp_path / "aten" / "sin.pt")[0]["args"][0].shape == (1,)
    assert calls_in(tmp_path / "prims" / "sin.pt")[0]["args"][0].shape == (2,)


def test_numpy_scalars_and_enum_members_are_recorded_as_numbers(tmp_path: Path) -> None:
    with opwright.record("aten::addcmul", into=tmp_path):
        torch.ops.aten.addcmul.default(*[torch.ones(1)] * 3, value=np.float64(2))
        torch.ops.aten.addcmul.default(*[torch.ones(1)] * 3, value=Value.THREE)
    assert {call["kwargs"]["value"] for call in calls_in(tmp_path / "addcmul.pt")} == {2, 3}


def test_calls_with_gradients_and_calls_inside_other_functions_are_recorded(tmp_path: Path) -> None:
    with opwright.record("aten::addmm", into=tmp_path):
        torch.nn.Linear(4, 2)(torch.randn(3, 4)).sum().backward()
    assert len(calls_in(tmp_path / "addmm.pt")) == 1


def test_every_overload_has_its_file(tmp_path: Path) -> None:
    with opwright.record("aten::sum", into=tmp_path):
        torch.ones(2, 3).sum()
        torch.ones(2, 3).sum(1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sum.dim_IntList.pt", "sum.pt"]


def test_recorded_calls_are_samples(describe: Describe) -> None:
    library = describe(
        "@library.op\ndef gather(x: Tensor, index: Tensor) -> Tensor:\n    return x[index]\n\n"
        "@gather.samples\ndef _(make):\n    yield from make.recorded('recorded/gather.pt')\n"
    )
    opwright.open(library.root)
    operator = getattr(torch.ops, library.namespace).gather
    large = torch.randn(100, 100) * 3 + 7
    with opwright.record(f"{library.namespace}::gather", into=library.root / "recorded"):
        operator(torch.arange(6.0), torch.tensor([3, 1]))
        operator(large, torch.tensor([99]))
    op = library.ops["gather"]
    first, second = op.draw(opwright.Make())
    assert torch.equal(first.args[0], torch.arange(6.0))
    assert torch.equal(first.args[1], torch.tensor([3, 1]))
    # For the larger one, only the distribution of its values.
    assert second.args[0].shape == (100, 100)
    assert abs(float(second.args[0].mean()) - 7) < 0.5
    assert large.min() <= second.args[0].min() < second.args[0].max() <= large.max()
    again = next(op.draw(opwright.Make(dtype=torch.float64)))
    assert (again.args[0].dtype, again.args[1].dtype) == (torch.float64, torch.int64)
    assert next(op.draw(opwright.Make(device="meta"))).args[0].is_meta


def test_names_must_have_a_namespace() -> None:
    with (
        pytest.raises(SpecError, match=r"opwright.record: 'nms' has no namespace; name operators as in"),
        opwright.record("nms", into="."),
    ):
        pass
    with pytest.raises(SpecError, match=r"opwright.record: no operator is named"), opwright.record(into="."):
        pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(OpwrightError, match=r"recorded calls cannot be written to .*file: .*Name a writable folder"),
        opwright.record("aten::relu", into=tmp_path / "file"),
    ):
        torch.ones(1).relu()


def test_a_file_with_code_is_rejected_and_the_code_is_not_run(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Any, tuple[str, str]]:
            return (open, (str(tmp_path / "run"), "w"))

    torch.save({"format": 1, "calls": [{"args": [Hostile()], "kwargs": {}}]}, tmp_path / "f.pt")
    with pytest.raises(SpecError, match=r"is not a file of recorded calls written by opwright.record"):
        list(opwright.Make().recorded(tmp_path / "f.pt"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"format": 2, "calls": []},
        {"format": 1},
        {"format": 1, "calls": [{}]},
        {"format": 1, "calls": [{"args": 1, "kwargs": {}}]},
    ],
)
def test_a_file_in_another_format_is_rejected(tmp_path: Path, content: object) -> None:
    torch.save(content, tmp_path / "f.pt")
    with pytest.raises(SpecError, match=r"is not a file of recorded calls of format 1: record them again"):
        list(opwright.Make().recorded(tmp_path / "f.pt"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"the recorded calls in .*f.pt cannot be read: No such file"):
        list(opwright.Make().recorded(tmp_path / "f.pt"))


def test_a_name_in_a_file_cannot_refer_to_other_objects_of_pytorch(tmp_path: Path) -> None:
    torch.save({"format": 1, "calls": [{"args": [{"torch": "load"}], "kwargs": {}}]}, tmp_path / "f.pt")
    with pytest.raises(SpecError, match="names 'load', which is not a dtype, layout or memory format"):
        list(opwright.Make().recorded(tmp_path / "f.pt"))


@pytest.mark.parametrize("changed", [{"shape": [-1]}, {"seed": "one"}, {"strides": [1, 1]}])
def test_a_tensor_that_cannot_be_created_is_an_error_in_the_file(tmp_path: Path, changed: dict[str, Any]) -> None:
    described = {"dtype": "float32", "shape": [3], "strides": [1], "mean": 0.0, "deviation": 1.0}
    described |= {"low": -1.0, "high": 1.0, "seed": 0, **changed}
    torch.save({"format": 1, "calls": [{"args": [described], "kwargs": {}}]}, tmp_path / "f.pt")
    with pytest.raises(SpecError, match=r"f\.pt describes a tensor that cannot be created \(.*record the calls again"):
        list(opwright.Make().recorded(tmp_path / "f.pt"))
