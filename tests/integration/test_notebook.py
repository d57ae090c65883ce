"""`%%opwright` in real Jupyter kernels, driven as by programs that run notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbclient import NotebookClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

OPERATOR = """\
%%opwright mine
#include <opwright/op.h>
int64_t answer(int64_t x{parameter}) {{ return x + {value}; }}
OPWRIGHT_LIBRARY(mine, m) {{ m.def("answer(int x{argument}) -> int", OPWRIGHT_FN(answer)); }}"""
SHORT = """\
#include <opwright/op.h>
OPWRIGHT_LIBRARY({namespace}, m) {{ m.def("f(int x) -> int", OPWRIGHT_FN(f)); }}
"""
BOUND = """\
%%opwright bound --functions answer,twice --cflags "-O0 -DANSWER=42"
int answer(int x) {
    TORCH_CHECK(x > 0, "x is ", x, "; expected a positive number");
    return x + ANSWER;
}
at::Tensor twice(const at::Tensor& x) { return x + x; }
"""
DESCRIBED = """\
import opwright
from torch import Tensor

library = opwright.Library("saved", sources=["cpu.cpp"])


@library.op
def plus(x: Tensor) -> Tensor:
    return x + 1
"""
KERNEL = """\
#include <opwright/empty.h>
#include <opwright/op.h>
opwright::Tensor plus(const opwright::Tensor& x) {{
    opwright::Tensor result = opwright::empty_like(x);
    result.mutable_data_ptr<float>()[0] = x.const_data_ptr<float>()[0] + {value};
    return result;
}}
OPWRIGHT_IMPL(saved, CPU, m) {{ m.impl("plus", OPWRIGHT_FN(plus)); }}
"""


class Kernel:
    """A kernel, and the notebook whose cells it runs."""

    def __init__(self) -> None:
        self.notebook = nbformat.v4.new_notebook()
        self.client = NotebookClient(self.notebook, timeout=600, kernel_name="python3", allow_errors=True)

    def run(self, source: str) -> list[Any]:
        """The outputs of a cell."""
        cell = nbformat.v4.new_code_cell(source)
        self.notebook.cells.append(cell)
        self.client.execute_cell(cell, len(self.notebook.cells) - 1)
        return list(cell.outputs)

    def result(self, source: str) -> str:
        """The value of the last line of a cell."""
        (output,) = self.run(source)
        return str(output["data"]["text/plain"]) if "data" in output else str(output)

    def error(self, source: str) -> tuple[str, str]:
        """The name of the error that a cell raises, and the text that is shown."""
        (output,) = [one for one in self.run(source) if one["output_type"] == "error"]
        return output["ename"], "\n".join(output["traceback"])


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    one = Kernel()
    with one.client.setup_kernel():
        assert one.run("%load_ext opwright") == []
        yield one


def operator(value: int, **more: str) -> str:
    return OPERATOR.format(value=value, **{"parameter": "", "argument": "", **more})


@pytest.mark.sample(of="reloads")
def test_a_cell_that_registers_an_operator_can_be_changed_and_run_twenty_times(kernel: Kernel) -> None:
    for run in range(20):
        value = run % 6  # found in the cache from the seventh time on
        has_second = value % 3 == 2
        more = {"parameter": ", int64_t y", "argument": ", int y=100"} if has_second else {}
        assert kernel.run(operator(value, **more)) == []
        if run == 0:
            assert kernel.run("handle = mine.answer") == []
        names = "[argument.name for argument in mine.answer.default._schema.arguments]"
        schema = "['x', 'y']" if has_second else "['x']"
        answer = "torch.ops.mine.answer(1)" if value % 2 else "mine.answer(1)"
        shown = kernel.result(f"import torch\n({answer}, handle(1), {names})")
        assert shown == f"({value + 1}, {value + 1}, {schema})"
    assert kernel.run(operator(1)) == []  # unchanged
    assert kernel.result("handle(1)") == "2"


def test_a_compiler_error_names_only_the_line_of_the_cell(kernel: Kernel) -> None:
    source = "%%opwright broken\n" + SHORT.format(namespace="broken") + "int64_t f(int64_t x) {\n    return nowhere;\n}"
    name, shown = kernel.error(source)
    number = kernel.notebook.cells[-1]["execution_count"]
    assert name == "BuildError"
    assert shown.startswith(f"BuildError: cell [{number}], line 3: error: ")
    assert "    3 | OPWRIGHT_LIBRARY(broken, m)" in shown
    assert "main.cpp" not in shown
    assert "Traceback" not in shown
    assert "The command" not in shown
    assert kernel.result("'broken' in globals()") == "False"


def test_an_error_in_a_cell_stops_a_program_that_runs_the_notebook(kernel: Kernel) -> None:
    from nbclient.exceptions import CellExecutionError

    kernel.client.allow_errors = False
    try:
        for source, message in (
            ("%%opwright wrong\n#include <opwright/op.h>\nint f() { return }", r"cell \[\d+\], line 3: error: "),
            ("%%opwright wrong --package no_such_package\nint a;", "the package 'no_such_package' is not installed"),
        ):
            with pytest.raises(CellExecutionError, match=message):
                kernel.run(source)
    finally:
        kernel.client.allow_errors = True


def test_a_saved_cell_is_a_source_of_the_library_that_it_implements(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text(DESCRIBED)
    line = f"%%opwright saved --definitions {tmp_path} --save {tmp_path}/cpu.cpp"
    for value in (1, 2):
        body = KERNEL.format(value=value)
        assert kernel.run(f"{line}\n{body}") == []
        assert (tmp_path / "cpu.cpp").read_text().strip() == body.strip()
        assert kernel.result("import torch\nsaved.plus(torch.zeros(1))") == f"tensor([{value}.])"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cpu.cpp", "op.py"]


def test_a_cell_that_cannot_be_saved_is_not_built(kernel: Kernel, tmp_path: Path) -> None:
    (output,) = kernel.run(f"%%opwright lost --save {tmp_path}/missing/cpu.cpp\nint a;")
    assert output["text"].startswith(f"UsageError: %%opwright: --save cannot write {tmp_path}/missing/cpu.cpp: No such")
    assert kernel.result("'lost' in globals()") == "False"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "the following arguments are required: NAME"),
        ("my-ops", "'my-ops' cannot be the name of a variable"),
        ("mine --abi stale", "argument --abi: invalid choice: 'stale'"),
        ("mine --cflags '-O2", "No closing quotation"),
        ("mine --cuda --functions f", "--functions binds C++: bind CUDA with PYBIND11_MODULE"),
        ("mine --func f", "unrecognized arguments: --func f"),
    ],
)
def test_an_invalid_option_is_reported_in_one_line(kernel: Kernel, line: str, message: str) -> None:
    (output,) = kernel.run(f"%%opwright {line}\nint a;")
    assert output["name"] == "stderr"
    assert output["text"].startswith(f"UsageError: %%opwright: {message}")
    assert output["text"].strip().endswith("(%%opwright? shows its options)")


def test_the_help_lists_every_option_with_examples(kernel: Kernel) -> None:
    shown = kernel.result("print(get_ipython().find_cell_magic('opwright').__doc__)")
    for option in ("functions", "cuda", "cflags", "ldflags", "include", "package", "definitions", "save", "abi"):
        assert f"--{option}" in shown
    assert "%%opwright mine" in shown


@pytest.mark.sample(of="PyTorch's headers")
def test_functions_of_a_cell_are_bound_and_raise_ordinary_errors(kernel: Kernel) -> None:
    for _ in range(2):
        assert kernel.run(BOUND) == []
        assert kernel.result("import torch\n(bound.answer(1), bound.twice(torch.ones(1)))") == "(43, tensor([2.]))"
    name, shown = kernel.error("bound.answer(-1)")
    assert name == "RuntimeError"
    assert "x is -1; expected a positive number" in shown
    assert "Traceback" in shown


def test_cells_with_two_namespaces_or_definitions_set_the_right_variables(kernel: Kernel, tmp_path: Path) -> None:
    twice = "int64_t f(int64_t x) { return 2 * x; }\n"
    first, second = (
        SHORT.format(namespace="one"),
        SHORT.format(namespace="two").replace("#include <opwright/op.h>\n", ""),
    )
    head, _, rest = first.partition("\n")
    assert kernel.run(f"%%opwright both\n{head}\n{twice}{rest}{second}") == []
    assert kernel.result("(one.f(1), two.f(1), 'both' in globals())") == "(2, 2, False)"
    (tmp_path / "op.py").write_text(
        'import opwright\nlibrary = opwright.Library("given")\n@library.op\ndef f(x: int) -> int:\n    return 2 * x\n'
    )
    impl = 'OPWRIGHT_IMPL(given, CompositeExplicitAutograd, m) { m.impl("f", OPWRIGHT_FN(f)); }'
    assert kernel.run(f"%%opwright mine_too --definitions '{tmp_path}'\n{head}\n{twice}{impl}") == []
    assert kernel.result("mine_too.f(4)") == "8"
