from __future__ import annotations

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from opwright.cli.main import app
from opwright.loader.open import open_library
from opwright.scaffold.external import Registered, external_files
from opwright.spec import library_at


def new(folder: Path, *arguments: str) -> str:
    ended = CliRunner().invoke(app, ["new", str(folder), *arguments])
    assert ended.exit_code == 0, ended.output
    return ended.output


# With overloads, lists, Scalars, optional and keyword-only arguments, several results, and an argument that is mutated.
OPERATORS = (
    *(
        "sum.dim_IntList",
        "addcmul",
        "add_.Tensor",
        "max_pool2d_with_indices",
        "native_layer_norm",
        "clamp",
        "index_add",
    ),
    *("sort.stable", "linalg_qr", "bincount", "cumsum", "where.self", "topk"),
)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_skeleton_agrees_with_the_schema(tmp_path: Path, name: str) -> None:
    text = new(tmp_path / "mine", "--from", f"aten::{name}")
    assert f"with the operator aten::{name}" in text
    library = library_at(tmp_path / "mine")
    assert list(library.ops) == [name]
    open_library(library)  # which compares the schemas


def test_several_operators_and_patterns_make_one_library(tmp_path: Path) -> None:
    new(tmp_path / "mine", "--from", "aten::addcmul", "--from", "aten::tanh*")
    assert {"addcmul", "tanh", "tanh_backward"} <= set(library_at(tmp_path / "mine").ops)


def test_an_operator_without_a_gradient_says_so() -> None:
    schema = torch._C._get_schema("aten::relu", "")
    texts = [external_files("aten", ["torch"], [Registered("relu", schema, has)])["op.py"] for has in (True, False)]
    assert ["@library.op\n" in text for text in texts] == [True, False]
    assert "@library.op(differentiable=())\n" in texts[1]


def test_arguments_without_a_name_are_numbered() -> None:
    schema = torch._C.parse_schema("mine::f(Tensor _0, int _1, Tensor? _2) -> Tensor _0")
    text = external_files("mine", ["mine"], [Registered("f", schema, True)])["op.py"]
    assert "    argument_0: Tensor,\n    argument_1: int,\n    argument_2: Tensor | None,\n" in text
    assert "yield make.call(make.randn(4, 5), 1, None)" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "aten::relu", "--cuda"), "--cuda and --from exclude each other: choose one."),
        (("--import", "torchvision"), "--import names the module that registers operators: name those with --from."),
        (("--from", "relu"), "expected operators of one namespace, as in torchvision::nms, and got relu"),
    ],
)
def test_wrong_usage_is_refused(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    ended = CliRunner().invoke(app, ["new", str(tmp_path / "mine"), *arguments])
    assert ended.exit_code != 0
    assert message in ended.output + str(ended.exception)
    assert not (tmp_path / "mine").exists()
