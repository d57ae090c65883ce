from __future__ import annotations

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from opwright.cli.main import app
from opwright.loader.kernels import names_in, schema_named
from opwright.loader.open import open_library
from opwright.scaffold.external import Registered, external_files, why_not
from opwright.spec import library_at


def new(folder: Path, *arguments: str) -> str:
    ended = CliRunner().invoke(app, ["new", str(folder), *arguments])
    assert ended.exit_code == 0, ended.output
    return ended.output


# With overloads, lists, Scalars, optional and keyword-only arguments, several results, and a mutated argument.
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
def test_the_skeleton_matches_the_schema(tmp_path: Path, name: str) -> None:
    text = new(tmp_path / "mine", "--from", f"aten::{name}")
    assert f"with the operator aten::{name}" in text
    library = library_at(tmp_path / "mine")
    assert list(library.ops) == [name]
    open_library(library)  # which compares the schemas


def test_several_operators_and_patterns_become_one_library(tmp_path: Path) -> None:
    new(tmp_path / "mine", "--from", "aten::addcmul", "--from", "aten::tanh*")
    assert {"addcmul", "tanh", "tanh_backward"} <= set(library_at(tmp_path / "mine").ops)


def test_an_operator_without_a_gradient_is_declared_as_not_differentiable() -> None:
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
        (("--from", "aten::relu", "--cuda"), "--cuda and --from are mutually exclusive: choose one."),
        (
            ("--import", "torchvision"),
            "--import names the module that registers operators: name the operators with --from.",
        ),
        (("--from", "relu"), "expected operators of one namespace, as in torchvision::nms, got relu"),
    ],
)
def test_usage_errors_are_reported(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    ended = CliRunner().invoke(app, ["new", str(tmp_path / "mine"), *arguments])
    assert ended.exit_code != 0
    assert message in ended.output + str(ended.exception)
    assert not (tmp_path / "mine").exists()


def refused(folder: Path, *names: str) -> str:
    ended = CliRunner().invoke(app, ["new", str(folder), *(f"--from={name}" for name in names)])
    assert ended.exit_code != 0
    assert not folder.exists()
    return " ".join(str(ended.exception).split())


def test_an_argument_named_like_a_python_keyword_gets_an_underscore(tmp_path: Path) -> None:
    new(tmp_path / "mine", "--from", "aten::random_.from")
    text = (tmp_path / "mine" / "op.py").read_text()
    assert "    from_: int,\n" in text
    open_library(library_at(tmp_path / "mine"))  # which compares the schemas


def test_arguments_after_an_unsupported_one_are_omitted() -> None:
    schema = torch._C.parse_schema("mine::f(Tensor x, Layout layout=0, int y=1, *, MemoryFormat? z=None) -> Tensor")
    text = external_files("mine", ["mine"], [Registered("f", schema, True)])["op.py"]
    assert "\ndef f(\n    x: Tensor,\n) -> Tensor:\n" in text


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("set_.source_Storage", "its argument 'source' has the type Storage, which opwright does not support"),
        ("record_stream", "its argument 's' has the type Stream, which opwright does not support"),
        ("qscheme", "it returns a result of the type QScheme, which opwright does not support"),
        ("get_gradients", "it returns a result of the type Dict[Tensor, Tensor], which opwright does not support"),
        ("transpose.int", "it returns a view of an argument"),
    ],
)
def test_an_operator_that_python_cannot_describe_is_rejected(tmp_path: Path, name: str, why: str) -> None:
    expected = f"aten::{name} cannot be described in Python: {why}"
    assert refused(tmp_path / "mine", f"aten::{name}") == expected
    assert refused(tmp_path / "mine", "aten::addcmul", f"aten::{name}") == expected


def test_a_keyword_only_argument_named_like_a_python_keyword_is_rejected() -> None:
    schema = torch._C.parse_schema("mine::f(Tensor x, *, int from) -> Tensor")
    assert why_not(schema) == "its keyword-only argument 'from' has the name of a Python keyword"
    assert not why_not(torch._C.parse_schema("mine::f(Tensor x, *, int from=0) -> Tensor"))


def test_every_operator_of_pytorch_is_described_or_rejected(tmp_path: Path) -> None:
    schemas = {name: schema_named(f"aten::{name}") for name in names_in("aten")[::7]}
    operators = [Registered(name, schema, False) for name, schema in schemas.items() if not why_not(schema)]
    assert len(operators) > 300
    for one in operators:
        (tmp_path / "op.py").write_text(external_files("aten", ["torch"], [one])["op.py"])
        assert list(library_at(tmp_path).ops) == [one.name]


def test_a_pattern_omits_operators_that_cannot_be_described(tmp_path: Path) -> None:
    ended = CliRunner().invoke(app, ["new", str(tmp_path / "mine"), "--from", "aten::set*"])
    assert ended.exit_code == 0, ended.output
    assert "left out: aten::set_.source_Storage, because its argument 'source' has the type Storage" in ended.stderr
    assert "set_.source_Tensor" in library_at(tmp_path / "mine").ops
