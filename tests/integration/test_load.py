"""Just-in-time builds that are loaded into a process: from files, from strings, as operators, modules and programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import opwright
from opwright.builder.symbols import defined_namespaces, module_names, needs_python
from opwright.cache.cache import Cache
from opwright.errors import LoadError, ToolchainError

OPERATOR = """
#include <opwright/op.h>
int64_t answer(int64_t x) { return x + %d; }
OPWRIGHT_LIBRARY(%s, m) { m.def("answer(int x) -> int", OPWRIGHT_FN(answer)); }
"""
TUTORIAL = """
#include <torch/library.h>
#include <ATen/core/Tensor.h>
at::Tensor same(at::Tensor x) { return x; }
TORCH_LIBRARY(%s, m) { m.def("same", &same); }
"""


BOUND = """
#include <Python.h>
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "bound", "", -1, nullptr, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit_%s() { return PyModule_Create(&module); }
"""


def test_files_become_operators_and_load_returns_the_path(tmp_path: Path) -> None:
    source = tmp_path / "op.cpp"
    source.write_text(OPERATOR % (1, "from_files"))
    path = opwright.load("from_files", [str(source)], build_directory=tmp_path / "build")
    assert path == str(tmp_path / "build" / "from_files.so")
    assert torch.ops.from_files.answer(41) == 42
    assert defined_namespaces(Path(str(path))) == {"from_files": 1}


def test_strings_become_operators_and_the_same_string_is_loaded_once() -> None:
    first = opwright.load_inline("from_strings", OPERATOR % (2, "from_strings"))
    assert torch.ops.from_strings.answer(40) == 42
    assert opwright.load_inline("from_strings", OPERATOR % (2, "from_strings")) == first


def test_a_namespace_that_python_defined_is_taken_too() -> None:
    library = torch.library.Library("taken_by_python", "DEF")
    with pytest.raises(LoadError, match=r"'taken_by_python' .* already taken in this process, at .*test_load\.py:\d+"):
        opwright.load_inline("taken", OPERATOR % (1, "taken_by_python"))
    library._destroy()


@pytest.mark.sample(of="PyTorch's headers")
def test_a_tutorials_source_loads_unchanged_and_a_second_definition_is_rejected() -> None:
    opwright.load_inline("tutorial", TUTORIAL % "tutorial_ops", no_implicit_headers=True)
    x = torch.ones(2)
    assert torch.equal(torch.ops.tutorial_ops.same(x), x)
    with pytest.raises(LoadError, match="the namespace 'tutorial_ops'"):
        opwright.load_inline("tutorial_again", OPERATOR % (1, "tutorial_ops"))


@pytest.mark.sample(of="PyTorch's headers")
def test_functions_are_bound_into_a_module_as_in_torchs_load_inline() -> None:
    source = "at::Tensor twice(at::Tensor x) { return x + x; }\n"
    # -O0: it compiles faster, and nothing here is timed.
    module = opwright.load_inline("bound", source, functions={"twice": "Twice x."}, extra_cflags=["-O0"])
    assert torch.equal(module.twice(torch.ones(2)), torch.full((2,), 2.0))  # type: ignore[union-attr]
    assert "Twice x." in module.twice.__doc__  # type: ignore[union-attr]


def test_the_exported_symbols_determine_whether_it_is_a_module(tmp_path: Path) -> None:
    assert isinstance(opwright.load_inline("exported", BOUND % "exported", no_implicit_headers=True), ModuleType)
    # A binding only for the Windows linker, as many projects have next to their operators.
    source = f"#ifdef _WIN32\n{BOUND % 'bound_on_windows'}#endif\n" + OPERATOR % (3, "bound_on_windows")
    path = opwright.load_inline("bound_on_windows", source)
    assert str(path).endswith("bound_on_windows.so")
    assert torch.ops.bound_on_windows.answer(1) == 4


def test_operators_are_registered_from_a_module_that_is_not_imported() -> None:
    # The Python bindings are omitted, so that a process without Python could open the object.
    both = BOUND % "both_kinds" + OPERATOR % (4, "both_kinds")
    path = Path(str(opwright.load_inline("both_kinds", both, is_python_module=False)))
    assert torch.ops.both_kinds.answer(1) == 5
    assert not needs_python(path)
    assert module_names(path) == []


def test_flags_are_split_into_words_as_in_a_shell(tmp_path: Path) -> None:
    for folder, name in (("the folder", "PLUS"), ("folder", "MINUS"), ("folder", "TIMES")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{name.lower()}.h").write_text(f"#define {name} 2\n")
    source = (
        "#include <plus.h>\n#include <minus.h>\n"
        f"static_assert(sizeof(TEXT) == 4 && PLUS + MINUS + TIMES == ONE + 5);\n{OPERATOR % (5, 'split_flags')}"
    )
    flags = [
        "-DONE=1 -O0",
        r"-DTEXT=\"abc\"",
        f"-I{tmp_path / 'the folder'}",
        f"-isystem {tmp_path / 'folder'} -include times.h",
        f"-D{'LONG' * 100}=1",
    ]
    opwright.load_inline("split_flags", source, extra_cflags=flags)
    assert torch.ops.split_flags.answer(1) == 6


def test_a_c_source_is_compiled_as_by_pytorchs_builder(tmp_path: Path) -> None:
    source = tmp_path / "op.c"
    source.write_text(OPERATOR % (6, "from_c"))
    opwright.load("from_c", [source])
    assert torch.ops.from_c.answer(1) == 7


def test_a_program_is_built_and_runs() -> None:
    # At most one source in this file compiles against the whole C++ API; the others use the stable ABI.
    source = '#include <torch/headeronly/core/ScalarType.h>\n#include <cstdio>\nint main() { std::puts("hello"); }\n'
    path = opwright.load("hello", [Cache().keep_source(source, "hello.cpp")], is_standalone=True)
    assert subprocess.run([str(path)], capture_output=True, text=True, check=True).stdout == "hello\n"


def test_errors_of_the_dynamic_loader_are_explained(tmp_path: Path) -> None:
    source = (
        'int missing_thing();\nextern "C" __attribute__((visibility("default"))) int f() { return missing_thing(); }\n'
    )
    with pytest.raises(
        LoadError, match=r"cannot be loaded: .*undefined symbol.*\nLikely causes:\n  1\. it calls _Z13missing_thingv"
    ):
        opwright.load_inline(
            "unresolved",
            source,
            no_implicit_headers=True,
            is_python_module=False,
            extra_ldflags=["-Wl,--unresolved-symbols=ignore-all"],
        )
    with pytest.raises(LoadError, match=r"is not a Python module named no_module, and registers no operators: define"):
        opwright.load_inline("no_module", "int f() { return 1; }\n", no_implicit_headers=True)
    with pytest.raises(
        LoadError, match=r"Likely causes:\n  1\. it is a Python module with another name \(other\): define"
    ):
        opwright.load_inline("this_name", BOUND % "other", no_implicit_headers=True)
    text = tmp_path / "text.so"
    text.write_text("not a library")
    with pytest.raises(LoadError, match=r"text\.so is not a shared object: expected an ELF file"):
        defined_namespaces(text)


def test_sycl_is_rejected() -> None:
    with pytest.raises(ToolchainError, match="not SYCL"):
        opwright.load("sycl", ["a.cpp"], with_sycl=True)
    with pytest.raises(ToolchainError, match="not SYCL"):
        opwright.load_inline("sycl", "", sycl_sources="int a;")


@pytest.mark.skipif(torch.version.cuda is not None, reason="this PyTorch can load CUDA code")
def test_cuda_code_for_a_cpu_build_of_pytorch_is_rejected_before_compilation() -> None:
    with pytest.raises(LoadError, match=r"contains CUDA code, but this PyTorch \(.*\) is a CPU build"):
        opwright.load_inline("cuda_here", OPERATOR % (1, "cuda_here"), cuda_sources="__global__ void k() {}")


def test_importing_opwright_and_loading_prints_nothing(tmp_path: Path) -> None:
    source = tmp_path / "op.cpp"
    source.write_text(OPERATOR % (1, "quiet"))
    program = f"import opwright\nopwright.load('quiet', [{str(source)!r}])\n"
    ended = subprocess.run([sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("", "")
