from __future__ import annotations

import sys
import zipfile
from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from opwright.bundle.source.find import find_source
from opwright.errors import BundleError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.bundle.conftest import Written

NET = """
class Net(nn.Module):
    def forward(self, image, factor=None):
        return image + 1

class Deep:
    inner = Net

net = Net
made = Net().train()
number = 7
"""


def test_the_callable_of_a_file_returns_the_model_in_eval_mode_with_the_files_declarations(written: Written) -> None:
    path = written(f"{NET}\nshapes = {{'image': '3'}}\nimages = {{}}\ndef samples(): yield torch.ones(3)")
    source = find_source(f"{path}:net")
    assert source.name == f"{path}:net"
    assert source.kind == "module"
    assert not source.model.training
    assert source.parameters == ("image", "factor")
    assert source.shapes == {"image": "3"}
    assert source.samples is not None
    assert [tensor.tolist() for tensor in source.samples()] == [[1, 1, 1]]


@pytest.mark.parametrize("attribute", ["Net", "Deep.inner", "made"])
def test_a_class_and_a_module_are_accepted(written: Written, attribute: str) -> None:
    source = find_source(f"{written(NET)}:{attribute}")
    assert not source.model.training
    assert source.model(torch.ones(1)) == 2


def test_a_file_imports_its_neighbours_and_sys_path_is_restored(written: Written) -> None:
    written("def half(x): return x / 2", "beside_a_model.py")
    before = list(sys.path)
    path = written("from beside_a_model import half\nclass Net(nn.Module):\n    def forward(self, x): return half(x)")
    assert find_source(f"{path}:Net").model(torch.ones(1)) == 0.5
    assert sys.path == before


def test_a_module_of_the_current_folder_is_found(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(written(NET, "model_of_this_folder.py").parent)
    assert find_source("model_of_this_folder:net").model(torch.ones(1)) == 2


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("resnet", "'resnet' does not name a model: expected file.py:callable, package.module:callable, or a"),
        ("missing.pt", "the model missing.pt does not exist: expected file.py:callable"),
        ("missing.py:net", "missing.py does not exist: expected file.py:callable"),
        ("no_such_package.models:net", "no module 'no_such_package.models' is in this folder or installed"),
        ("{path}", "is Python source: name the callable in it that creates the model, as in {path}:model"),
        ("{path}:nett", "{path}:nett: it has no 'nett'; its callables: Net, Deep, net, made"),
        ("{path}:number", "{path}:number is a int: expected a callable without parameters that returns a module"),
        ("{path}:Deep", "{path}:Deep returns a Deep: expected a torch.nn.Module"),
        ("{path}:fails", "{path}:fails failed: ValueError: no luck"),
        (
            "{path}:op",
            "{path}:op failed: the operator nowhere::f is not defined: name the library that defines it with",
        ),
    ],
)
def test_a_name_without_a_model_is_rejected(written: Written, model: str, message: str) -> None:
    more = "def fails(): raise ValueError('no luck')\ndef op(): return torch.ops.nowhere.f"
    path = written(f"{NET}\n{more}")
    with pytest.raises(BundleError) as refused:
        find_source(model.format(path=path))
    assert message.format(path=path) in str(refused.value)


@pytest.mark.parametrize("text", ["import no_such_module_at_all", "1 / 0", "def f(:"])
def test_a_file_that_fails_is_rejected_with_its_error(written: Written, text: str) -> None:
    path = written(text)
    with pytest.raises(BundleError, match=r"model\.py failed: \w+Error: "):
        find_source(f"{path}:net")


@pytest.mark.parametrize("what", ["shapes", "images"])
def test_a_declaration_next_to_the_model_must_be_a_dict(written: Written, what: str) -> None:
    path = written(f"{NET}\n{what} = ['3']")
    with pytest.raises(
        BundleError, match=rf"{what} in .* is \['3'\]: expected a dict keyed by the names of the inputs"
    ):
        find_source(f"{path}:net")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.linear(x)
        return result


def test_a_saved_torchscript_model_is_recognized_by_its_contents(tmp_path: Path) -> None:
    path = tmp_path / "saved.pt"
    torch.jit.script(Net()).save(str(path))
    source = find_source(path)
    assert (source.kind, source.parameters) == ("torchscript", ("x",))
    assert not source.model.training


def test_a_saved_exported_program_is_recognized_by_its_contents(tmp_path: Path) -> None:
    path = tmp_path / "saved.pt2"
    torch.export.save(torch.export.export(Net(), (torch.ones(3, 2),)), path)
    source = find_source(path)
    assert (source.kind, source.parameters) == ("exported", ("x",))


def test_weights_are_not_a_model(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save(Net().state_dict(), path)
    with pytest.raises(BundleError) as refused:
        find_source(path)
    assert "contains weights, not a model: name the callable that creates the model" in str(refused.value)
    assert f"and pass --weights {path}" in str(refused.value)


class Vandal:
    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return (open, (self.marker, "w"))


@pytest.mark.parametrize("in_zip", [True, False])
def test_a_pickled_model_is_rejected_without_running_any_of_it(tmp_path: Path, in_zip: bool) -> None:
    path, marker = tmp_path / "pickled.pt", tmp_path / "ran"
    torch.save([Net(), Vandal(str(marker))], path, _use_new_zipfile_serialization=in_zip)
    with pytest.raises(BundleError, match="is rejected: it is pickled, and reading it could run arbitrary code"):
        find_source(path)
    assert not marker.exists()


def test_a_file_that_is_not_an_archive_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "text.pt2").write_text("hello")
    with pytest.raises(
        BundleError, match="is rejected: it is pickled, and reading it could run arbitrary code, or it is no"
    ):
        find_source(tmp_path / "text.pt2")


def test_a_damaged_archive_is_rejected_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "saved.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("saved/constants.pkl", b"no pickle")
    with pytest.raises(BundleError, match=r"saved\.pt cannot be loaded: .+") as refused:
        find_source(path)
    assert "\n" not in str(refused.value)


def test_a_model_is_moved_to_the_device_that_it_will_run_on(written: Written) -> None:
    path = written("net = nn.Linear(2, 2)\ndef made():\n    return nn.Linear(2, 2)\n")
    for model in (nn.Linear(2, 2), f"{path}:net", f"{path}:made"):
        moved = find_source(model, device="meta").model
        assert {parameter.device.type for parameter in moved.parameters()} == {"meta"}


def test_a_model_that_cannot_be_moved_is_rejected(written: Written) -> None:
    path = written("def made():\n    return nn.Linear(2, 2, device='meta')\n")
    with pytest.raises(BundleError, match="made failed: NotImplementedError: Cannot copy out of meta tensor"):
        find_source(f"{path}:made")
