"""Tests of a bridge that cannot be built, or that was built before."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
import torch

import opwright
from opwright.errors import BridgeError
from opwright.loader import bridge
from tests.interpreter import python

if TYPE_CHECKING:
    from pathlib import Path

# The operator library has been built, but there is no compiler and the cache is empty.
SCRIPT = """
import sys
import warnings
from pathlib import Path
import torch
from torch.utils import _pytree as pytree
from opwright.loader.register import register
from opwright.loader.shared_object import open_operators
from opwright.spec import Make, library_at

library = library_at(sys.argv[1])
open_operators(Path(sys.argv[2]))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    register(library)
print(*(f"{one.category.__name__}: {one.message}" for one in caught), sep="\\n")

make = Make(dtype=torch.float64)
compared = 0
for op in library.ops.values():
    for sample in op.draw(make) if op.has_samples and op.differentiable else ():
        inputs = [leaf for leaf in pytree.tree_leaves(sample.args) if isinstance(leaf, torch.Tensor)]
        inputs = [leaf.requires_grad_() for leaf in inputs if leaf.is_floating_point()]
        found = []
        for function in (getattr(getattr(torch.ops, library.namespace), op.name), op.reference):
            results = pytree.tree_leaves(function(*sample.args, **sample.kwargs))
            total = sum((one**2).sum() for one in results if isinstance(one, torch.Tensor) and one.requires_grad)
            first = torch.autograd.grad(total, inputs, create_graph=True, materialize_grads=True)
            norm = sum((one**2).sum() for one in first)
            found.append((first, torch.autograd.grad(norm, inputs, materialize_grads=True)))
        torch.testing.assert_close(*found)
        compared += 1
print("compared", compared)
"""


def test_without_a_compiler_the_gradients_are_registered_in_python(package: Path, tmp_path: Path) -> None:
    path = opwright.build(package)
    environment = {**os.environ, "CXX": "/nonexistent/c++", "OPWRIGHT_CACHE": str(tmp_path)}
    command: list[str | Path] = [*python(), "-c", SCRIPT, package, path]
    ran = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    warning, compared = ran.stdout.splitlines()
    assert warning.startswith("RuntimeWarning: the C++ autograd bridge cannot be built (")
    assert "/nonexistent/c++" in warning
    assert warning.endswith(
        "native gradients are registered in Python, which is slower, and a process without Python has none"
    )
    assert int(compared.split()[1]) > 20


def test_a_built_bridge_is_reused(package: Path) -> None:
    opwright.open(package)
    assert bridge.attach()
    assert "CppFunction" in repr(torch.ops.gradients.mul(*torch.ones(2, 3, requires_grad=True)).grad_fn)


def test_a_bridge_that_the_compiler_rejects_is_reported_as_such(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = tmp_path / "bridge.cpp"
    source.write_text("int bridge() { return not_declared; }\n")
    monkeypatch.setattr(bridge, "SOURCE", source)
    monkeypatch.setattr(bridge, "_bridges", {})
    with pytest.raises(BridgeError) as caught:
        bridge.build_bridge()
    assert str(caught.value).startswith(
        "opwright's C++ autograd bridge does not build; your library is not the cause. "
    )
    assert re.search(r"bridge\.cpp:1:\d+: error: .not_declared. was not declared in this scope", str(caught.value))
    assert "not_declared" in caught.value.output
    with pytest.warns(
        RuntimeWarning, match=r"^the C\+\+ autograd bridge cannot be built \(\S+/bridge.cpp does not compile"
    ):
        assert not bridge.attach()


UNREADABLE = """
import sys
import opwright
import torch
opwright.load_inline("unreadable", sys.argv[2], abi="full", no_implicit_headers=True, is_python_module=False)
try:
    opwright.open(sys.argv[1])
except opwright.errors.LoadError as error:
    print(error)
print(torch.ops.gradients.mul(*torch.ones(2, 3, requires_grad=True)).grad_fn)
"""
TABLE = 'extern "C" const char* opwright_gradients() { return "unreadable::f unreadable::g x - 1\\n"; }'


def test_an_unreadable_table_is_an_error_and_does_not_affect_others(package: Path) -> None:
    command: list[str | Path] = [*python(), "-c", UNREADABLE, package, TABLE]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    message, node = ran.stdout.splitlines()
    assert message == (
        "the gradients of an operator library cannot be used: "
        'the gradient "unreadable::f unreadable::g x - 1" cannot be parsed: rebuild its library'
    )
    assert "CppFunction" in node
