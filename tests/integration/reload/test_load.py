"""`load_inline` with changed sources under the same name: op.h, PyTorch's macros, Python modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import opwright
from opwright.errors import LoadError

OPERATOR = """
#include <opwright/op.h>
int64_t answer(int64_t x{parameter}) {{ return x + {value}; }}
OPWRIGHT_LIBRARY({namespace}, m) {{ m.def("answer(int x{argument}) -> int", OPWRIGHT_FN(answer)); }}
"""
WITH_MACROS = """
#include <ATen/core/Tensor.h>
#include <torch/library.h>
at::Tensor same(at::Tensor x{parameter}) {{ return x; }}
TORCH_LIBRARY(macros, m) {{ m.def("same(Tensor x{argument}) -> Tensor", &same); }}
"""
STABLE = """
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
torch::stable::Tensor same(torch::stable::Tensor x) {{ return x; }}
STABLE_TORCH_LIBRARY({namespace}, m) {{ m.def("same(Tensor x) -> Tensor"); {more} }}
STABLE_TORCH_LIBRARY_IMPL({namespace}, CPU, m) {{ m.impl("same", TORCH_BOX(&same)); }}
"""
MODULE = """
#include <pybind11/pybind11.h>
struct Number {{ int value = {value}; }};
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{
    m.def("answer", [] {{ return {value}; }});
    {bound}
}}
"""
NUMBER = 'pybind11::class_<Number>(m, "Number"{local}).def(pybind11::init<>()).def_readonly("value", &Number::value);'


def operator(namespace: str, value: int, **more: str) -> str:
    return OPERATOR.format(namespace=namespace, value=value, **{"parameter": "", "argument": "", **more})


@pytest.mark.sample(of="reloads")
def test_changed_sources_replace_the_operators_of_the_same_name() -> None:
    opwright.load_inline("again", operator("again", 1))
    handle = torch.ops.again.answer
    script = torch.jit.script(_scripted)
    assert (handle(0), script(0)) == (1, 1)
    opwright.load_inline("again", operator("again", 2))
    assert (handle(0), handle.default(0), script(0)) == (2, 2, 2)
    opwright.load_inline("again", operator("again", 3, parameter=", int64_t y", argument=", int y=0"))
    assert (handle(0), handle.default(0, y=1)) == (3, 3)
    with pytest.raises(LoadError, match="_scripted was scripted, traced or loaded before again::answer got a new"):
        script(0)
    path = opwright.load_inline("again", operator("again", 1))
    assert handle(0) == 1
    assert opwright.load_inline("again", operator("again", 1)) == path


def _scripted(x: int) -> int:
    return torch.ops.again.answer(x)  # type: ignore[no-any-return]


def test_a_file_that_is_replaced_in_its_build_folder_is_opened_again(tmp_path: Path) -> None:
    for value in (1, 2, 1):
        path = opwright.load_inline("replaced", operator("replaced", value), build_directory=tmp_path)
        assert path == str(tmp_path / "replaced.so")
        assert torch.ops.replaced.answer(0) == value


def test_a_namespace_that_another_name_owns_stays_taken() -> None:
    opwright.load_inline("first_name", operator("one_namespace", 1))
    with pytest.raises(LoadError, match=r"'one_namespace' .* is already taken .* by load under the same name"):
        opwright.load_inline("second_name", operator("one_namespace", 2))
    assert torch.ops.one_namespace.answer(0) == 1


def with_macros(**more: str) -> str:
    return WITH_MACROS.format(**{"parameter": "", "argument": "", **more})


@pytest.mark.sample(of="PyTorch's headers")
def test_operators_of_pytorchs_macros_are_replaced_with_another_cpp_signature() -> None:
    def load(text: str) -> None:
        opwright.load_inline("macros", text, extra_cflags=["-O0"])

    load(with_macros())
    handle, x = torch.ops.macros.same, torch.ones(2)
    assert torch.equal(handle(x), x)
    load(with_macros(parameter=", double y", argument=", float y=1.0"))
    assert torch.equal(handle(x, y=2.0), x)
    # This would terminate the process in a static constructor.
    with pytest.raises(
        LoadError, match=r"(?s)terminate this process \(SIGABRT\), so it was not done: Inferred operator schema"
    ):
        load(with_macros(argument=", int y"))
    assert torch.equal(handle(x, y=2.0), x)
    load(STABLE.format(namespace="macros", more=""))
    assert torch.equal(handle(x), x)


@pytest.mark.sample(of="reloads")
def test_sources_that_would_terminate_the_process_are_rejected(tmp_path: Path) -> None:
    twice = STABLE.format(namespace="fatal", more='m.def("same(Tensor x) -> Tensor");')
    message = r"opening .* would terminate this process \(SIG\w+\), so it was not done: "
    with pytest.raises(LoadError, match=message):
        opwright.load_inline("fatal", twice)
    (tmp_path / "cpu.cpp").write_text(twice)
    (tmp_path / "op.py").write_text(
        "import opwright\nfrom torch import Tensor\n"
        'library = opwright.Library("fatal", sources=["cpu.cpp"])\n'
        "@library.op\ndef same(x: Tensor) -> Tensor:\n    return x\n"
    )
    with pytest.raises(LoadError, match=message):
        opwright.open(tmp_path)
    assert not hasattr(torch.ops.fatal, "same")
    (tmp_path / "cpu.cpp").write_text(STABLE.format(namespace="fatal", more=""))
    opwright.open(tmp_path)
    assert torch.equal(torch.ops.fatal.same(torch.ones(2)), torch.ones(2))


def module(value: int, bound: str = "") -> Any:
    text = MODULE.format(value=value, bound=bound)
    return opwright.load_inline("reloaded_module", text, no_implicit_headers=True, extra_cflags=["-O0"])


@pytest.mark.sample(of="PyTorch's headers")
def test_each_build_creates_a_new_python_module_and_earlier_ones_keep_working() -> None:
    bound = module(1, NUMBER.format(local=""))
    plain = module(2)
    assert (bound.answer(), plain.answer(), plain.__name__) == (1, 2, "reloaded_module")
    assert module(2) is plain
    # A type that pybind11 has already bound.
    with pytest.raises(LoadError, match=r"(?s)is already registered.*Likely causes:\n  1\. .*py::module_local\(\)"):
        module(3, NUMBER.format(local=""))
    assert (bound.Number().value, module(2) is plain) == (1, True)
    assert module(4, NUMBER.format(local=", pybind11::module_local()")).Number().value == 4
