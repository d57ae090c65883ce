"""Which sources are compiled without PyTorch's C++ frontend, and which errors may be due to that."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwright.builder.frontend import may_need_frontend, without_frontend
from opwright.builder.ninja import Unit
from opwright.toolchain.pytorch import find_pytorch

HEADERS = str(find_pytorch().include_dirs[0])
COMMAND = ("g++", "-O2", "-I/opwright", "-isystem", HEADERS)


def quick(folder: Path, text: str) -> tuple[str, ...] | None:
    source = folder / "a.cpp"
    source.write_text(text)
    return without_frontend(Unit(source, COMMAND), [folder])


@pytest.mark.parametrize("header", ["extension.h", "torch.h", "all.h", "python.h", "script.h"])
def test_the_folder_comes_before_all_others(tmp_path: Path, header: str) -> None:
    command = quick(tmp_path, f"#include <torch/{header}>\n")
    assert command is not None
    assert command[:2] == COMMAND[:2]
    assert command[3:] == COMMAND[2:]
    folder = Path(command[2].removeprefix("-I"))
    assert (folder / "torch" / header).is_file()


@pytest.mark.parametrize("before", [("g++", "-isystem", "/elsewhere"), ("g++", "-iquote", "/elsewhere")])
def test_other_folders_do_not_hide_what_the_frontend_defines(tmp_path: Path, before: tuple[str, ...]) -> None:
    source = tmp_path / "a.cpp"
    source.write_text("#include <torch/extension.h>\n")
    command = without_frontend(Unit(source, (*before, *COMMAND[1:])), [])
    assert command is not None
    assert command[1].startswith("-I")
    assert command[2:] == (*before, *COMMAND[1:])[1:]
    source.write_text("#include <torch/extension.h>\n#ifdef TORCH_MODULE\n#endif\n")
    assert without_frontend(Unit(source, (*before, *COMMAND[1:])), []) is None


def test_the_frontend_is_found_in_the_authors_header(tmp_path: Path) -> None:
    (tmp_path / "mine.h").write_text("#include <torch/extension.h>\n")
    assert quick(tmp_path, '#include "mine.h"\n') is not None


@pytest.mark.parametrize(
    "text",
    [
        "#include <torch/types.h>\n",
        "#include <torch/script.h>\ntorch::jit::Module module;\n",
        "#include <torch/script.h>\nvoid f(torch::jit::Stack&);\n",
        "// #include <torch/extension.h>\n",
        "#include <torch/extension.h>\ntorch::nn::Linear linear(1, 2);\n",
        "#include <torch/extension.h>\nusing namespace torch;\nnn::Linear linear(1, 2);\n",
        "#include <torch/extension.h>\nvoid f(at::Tensor x) { torch::save(x, std::cout); }\n",
        "#include <torch/extension.h>\n#ifdef TORCH_MODULE\n#endif\n",
    ],
)
def test_a_source_that_uses_the_frontend_or_does_not_include_it_keeps_its_command(tmp_path: Path, text: str) -> None:
    assert quick(tmp_path, text) is None


@pytest.mark.parametrize(
    ("text", "macro"),
    [
        ("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}", "PYBIND11"),
        ("void f(py::object x);", "PYBIND11"),
        ("PyObject* f(at::Tensor x) { return THPVariable_Wrap(x); }", "PYBIND11"),
        ("struct F : torch::autograd::Function<F> {};", "AUTOGRAD"),
        ("auto registered = torch::RegisterOperators();", "OPERATORS"),
    ],
)
def test_parts_that_a_source_names_are_included(tmp_path: Path, text: str, macro: str) -> None:
    command = quick(tmp_path, f"#include <torch/extension.h>\n{text}\n")
    assert command is not None
    assert [word for word in command if word.startswith("-DOPWRIGHT_NAMES_")] == [f"-DOPWRIGHT_NAMES_{macro}"]


@pytest.mark.parametrize(
    ("output", "may"),
    [
        ("a.cpp:3:5: error: 'tensr' was not declared in this scope", False),
        ("a.cpp:3:5: error: \u2018tensr\u2019 was not declared in this scope", False),
        ("a.cpp:3:5: error: 'OrderedDict' is not a member of 'torch'", True),
        ("a.cpp:3:5: error: 'SavedVariable' does not name a type", True),
        ("a.cpp:3:5: error: 'CompilationUnit' was not declared in this scope", True),
        ("a.cpp:3:5: error: 'tensr' was not declared\na.cpp:9:1: error: 'deque' is not a member of 'std'", True),
        ("a.cpp:3:5: error: expected primary-expression", True),
        ("Killed", True),
    ],
)
def test_an_error_may_be_due_to_the_missing_frontend_unless_it_names_only_other_identifiers(
    output: str, may: bool
) -> None:
    assert may_need_frontend(output) == may
