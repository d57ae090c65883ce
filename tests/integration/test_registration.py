"""Tests of registered operators in torch: every supported type, errors, leaks, and taken namespaces."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.interpreter import python

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = "#include <opwright/op.h>\nusing namespace opwright;\n"


@dataclass(frozen=True)
class Base:
    """A type of the schema language, its C++ type, its TorchScript type, and some values."""

    schema: str
    cpp: str
    script: str
    values: tuple[Any, ...]


BASES = (
    Base("Tensor", "Tensor", "Tensor", (torch.arange(3.0), torch.ones(2, 0, dtype=torch.bool))),
    Base("int", "int64_t", "int", (7, -(2**63), 2**63 - 1)),
    Base("SymInt", "int64_t", "int", (7, 0)),
    Base("float", "double", "float", (2.5, float("-inf"), 5e-324)),
    Base("bool", "bool", "bool", (True, False)),
    Base("str", "std::string", "str", ("", "a\0é", "long enough to be on the heap " * 3)),
    Base("ScalarType", "ScalarType", "int", (torch.float16, torch.uint8, torch.complex128)),
    Base("Device", "Device", "Device", (torch.device("cpu"), torch.device("cuda", 1), torch.device("meta"))),
    Base("Layout", "Layout", "int", (torch.strided, torch.sparse_coo)),
    Base("MemoryFormat", "MemoryFormat", "int", (torch.contiguous_format, torch.channels_last)),
)

# Types by schema, C++ and TorchScript, and a function that makes their values from those of a base.
SHAPES: tuple[tuple[str, str, str, Callable[[tuple[Any, ...]], list[Any]]], ...] = (
    ("{}", "{}", "{}", list),
    ("{}?", "std::optional<{}>", "Optional[{}]", lambda values: [*values, None]),
    ("{}[]", "std::vector<{}>", "List[{}]", lambda values: [list(values), []]),
    ("{}[]?", "std::optional<std::vector<{}>>", "Optional[List[{}]]", lambda values: [list(values), [], None]),
    ("{}?[]", "std::vector<std::optional<{}>>", "List[Optional[{}]]", lambda values: [[*values, None], []]),
    (
        "{}?[]?",
        "std::optional<std::vector<std::optional<{}>>>",
        "Optional[List[Optional[{}]]]",
        lambda values: [[None, *values], None],
    ),
)

SUPPORTED = [
    pytest.param(base, index, id=shape[0].format(base.schema)) for base in BASES for index, shape in enumerate(SHAPES)
]


def number(value: Any) -> Any:
    """Returns the value that an operator returns for an enumerator, also in lists: its number."""
    if isinstance(value, list):
        return [number(one) for one in value]
    if isinstance(value, torch.dtype):
        return {torch.float16: 5, torch.uint8: 0, torch.complex128: 10}[value]
    if isinstance(value, torch.layout):
        return {torch.strided: 0, torch.sparse_coo: 1}[value]
    if isinstance(value, torch.memory_format):
        return {torch.contiguous_format: 0, torch.channels_last: 2}[value]
    return value


@pytest.fixture(scope="module")
def echoes(compile_library: Callable[..., Path]) -> None:
    """Loads operators that return their argument, passed by value or const reference, for each supported type."""
    functions = []
    definitions = []
    for base in BASES:
        for index, (schema, cpp, _, _) in enumerate(SHAPES):
            kind = cpp.format(base.cpp)
            type_ = schema.format(base.schema)
            name = f"{base.schema}_{index}"
            parameter = f"const {kind}&" if index % 2 else kind
            functions.append(f"{kind} {name}({parameter} x) {{ return x; }}")
            definitions.append(
                f'm.def("{name}({type_} x) -> {type_}", OPWRIGHT_FN({name}), "CompositeExplicitAutograd");'
            )
    views = """
    std::string view(std::string_view a, const std::optional<std::string_view>& b) {
        return std::string(a) + "|" + std::string(b.value_or("none"));
    }
    std::vector<int64_t> array(HeaderOnlyArrayRef<int64_t> a, std::optional<HeaderOnlyArrayRef<int64_t>> b) {
        std::vector<int64_t> all(a.begin(), a.end());
        if (b) all.insert(all.end(), b->begin(), b->end());
        return all;
    }
    std::tuple<Tensor, int64_t, std::string, std::vector<bool>> many(const Tensor& x) { return {x, 3, "s", {true}}; }
    std::tuple<int64_t> one(int64_t n) { return {n}; }
    void nothing() {}
    void written(Tensor& x) { torch::stable::fill_(x, 4.0); }
    bool is_none(std::optional<Tensor> x) { return !x; }
    bool undefined_is_none() {  // through the dispatcher, like an undefined gradient in C++ autograd
        StableIValue stack[] = {torch::stable::detail::from(std::optional(Tensor()))};
        torch_call_dispatcher("echo::is_none", "", stack, TORCH_ABI_VERSION);
        return torch::stable::detail::to<bool>(stack[0]);
    }
    """
    library = compile_library(
        f"""#include <torch/csrc/stable/ops.h>
        {HEAD}
        {chr(10).join(functions)}
        {views}
        OPWRIGHT_LIBRARY(echo, m) {{
            {chr(10).join(definitions)}
            m.def("view", OPWRIGHT_FN(view));
            m.def("array", OPWRIGHT_FN(array));
            m.def("many", OPWRIGHT_FN(many));
            m.def("one", OPWRIGHT_FN(one));
            m.def("nothing", OPWRIGHT_FN(nothing));
            m.def("written", OPWRIGHT_FN(written));
            m.def("is_none(Tensor? x) -> bool", OPWRIGHT_FN(is_none), "CompositeExplicitAutograd");
            m.def("undefined_is_none", OPWRIGHT_FN(undefined_is_none));
        }}"""
    )
    torch.ops.load_library(library)


def same(one: object, other: object) -> bool:
    return repr(one) == repr(other)  # distinguishes 1 from True and 1.0, also in tensors and lists


@pytest.mark.usefixtures("echoes")
@pytest.mark.parametrize(("base", "shape"), SUPPORTED)
def test_every_supported_type_round_trips(base: Base, shape: int) -> None:
    for value in SHAPES[shape][3](base.values):
        assert same(getattr(torch.ops.echo, f"{base.schema}_{shape}")(value), number(value))


@pytest.mark.usefixtures("echoes")
@pytest.mark.parametrize(("base", "shape"), SUPPORTED)
def test_every_supported_type_round_trips_in_torchscript(base: Base, shape: int) -> None:
    kind = SHAPES[shape][2].format(base.script)
    unit = torch.jit.CompilationUnit(
        f"def f(x: {kind}) -> {kind}:\n    return torch.ops.echo.{base.schema}_{shape}(x)\n"
    )
    for value in SHAPES[shape][3](base.values):
        # In TorchScript, a dtype is its number.
        given = number(value)
        assert same(unit.f(given), given)


@pytest.mark.usefixtures("echoes")
def test_views_receive_the_contents_of_their_arguments() -> None:
    assert torch.ops.echo.view("a" * 40, "b") == "a" * 40 + "|b"
    assert torch.ops.echo.view("", None) == "|none"
    assert torch.ops.echo.array([1, 2], [3]) == [1, 2, 3]
    assert torch.ops.echo.array([], None) == []


@pytest.mark.usefixtures("echoes")
def test_operators_return_several_results_or_none() -> None:
    tensor, n, text, flags = torch.ops.echo.many(torch.ones(2))
    assert (tensor.tolist(), n, text, flags) == ([1.0, 1.0], 3, "s", [True])
    assert torch.ops.echo.one(5) == 5
    assert torch.ops.echo.nothing() is None


@pytest.mark.usefixtures("echoes")
def test_a_tensor_passed_by_reference_is_written_in_place() -> None:
    tensor = torch.zeros(2)
    torch.ops.echo.written(tensor)
    assert tensor.tolist() == [4.0, 4.0]


@pytest.mark.usefixtures("echoes")
def test_an_undefined_tensor_is_none() -> None:
    assert torch.ops.echo.is_none(None)
    assert not torch.ops.echo.is_none(torch.ones(1))
    assert torch.ops.echo.undefined_is_none()


@pytest.mark.usefixtures("echoes")
@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("view", "echo::view(str arg0, str? arg1) -> str"),
        ("array", "echo::array(int[] arg0, int[]? arg1) -> int[]"),
        ("many", "echo::many(Tensor arg0) -> (Tensor, int, str, bool[])"),
        ("nothing", "echo::nothing() -> ()"),
        ("written", "echo::written(Tensor(a!) arg0) -> ()"),
    ],
)
def test_a_definition_by_name_derives_its_schema_from_the_signature(name: str, schema: str) -> None:
    assert str(getattr(torch.ops.echo, name).default._schema) == schema


@pytest.mark.usefixtures("echoes")
def test_a_kernel_with_a_tensor_is_for_the_cpu_and_one_without_for_every_device() -> None:
    registered = torch._C._dispatch_has_kernel_for_dispatch_key
    assert registered("echo::many", "CPU")
    assert not registered("echo::many", "CompositeExplicitAutograd")
    assert registered("echo::one", "CompositeExplicitAutograd")
    with pytest.raises(NotImplementedError, match="no fake impl or Meta kernel registered"):
        torch.ops.echo.many(torch.ones(2, device="meta"))


LEAKS = """
Tensor text(const Tensor& x, const std::string&, std::optional<std::string>, std::vector<std::string>) { return x; }
Tensor view(const Tensor& x, std::string_view) { return x; }
Tensor tensors(const Tensor& x, std::vector<Tensor>, std::optional<Tensor>) { return x; }
Tensor throws(const Tensor&, std::string, std::vector<Tensor>) { throw std::runtime_error("on purpose"); }
Tensor stops(ScalarType, const std::string&, const Tensor& x, std::vector<std::string>) { return x; }
StableIValue string() {
    StringHandle handle = nullptr;
    torch_new_string_handle(std::string(1000, 's').c_str(), 1000, &handle);
    return torch::stable::detail::from(handle);
}
// A stack with an invalid dtype, which cannot be read, followed by a string, a tensor and a list.
void unreadable(const Tensor& x) {
    StableIValue stack[] = {torch::stable::detail::from(int32_t{12345}), string(), torch::stable::detail::from(x),
                            torch::stable::detail::from(std::vector<StableIValue>{string(), string()})};
    OPWRIGHT_FN(stops).call(stack, 4, 1);
}
OPWRIGHT_LIBRARY(leaks, m) {
    m.def("text", OPWRIGHT_FN(text));
    m.def("view", OPWRIGHT_FN(view));
    m.def("tensors", OPWRIGHT_FN(tensors));
    m.def("throws", OPWRIGHT_FN(throws));
    m.def("unreadable", OPWRIGHT_FN(unreadable));
}
"""


def resident() -> int:
    """Returns the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("name", ["text", "view", "tensors", "throws", "unreadable"])
def test_arguments_are_released_whether_the_kernel_returns_or_throws(
    name: str, compile_library: Callable[..., Path]
) -> None:
    torch.ops.load_library(compile_library(HEAD + LEAKS))
    tensor = torch.ones(1)
    text = "s" * 1000
    arguments: tuple[Any, ...] = {
        "text": (tensor, text, text, [text, text]),
        "view": (tensor, text),
        "tensors": (tensor, [tensor, tensor], tensor),
        "throws": (tensor, text, [tensor]),
        "unreadable": (tensor,),
    }[name]
    op = getattr(torch.ops.leaks, name)

    def call(times: int) -> None:
        for _ in range(times):
            with suppress(RuntimeError):
                op(*arguments)

    call(1000)
    before = resident()
    references = sys.getrefcount(tensor)
    call(20_000)
    assert resident() - before < 4 << 20  # one leaked string per call would be 20 MB
    assert sys.getrefcount(tensor) == references


def test_an_exception_of_a_kernel_reaches_python_with_its_message(compile_library: Callable[..., Path]) -> None:
    torch.ops.load_library(compile_library(HEAD + LEAKS))
    with pytest.raises(RuntimeError, match=r"^on purpose$"):
        torch.ops.leaks.throws(torch.ones(1), "", [])
    with pytest.raises(RuntimeError, match="Not yet supported ScalarType"):
        torch.ops.leaks.unreadable(torch.ones(1))


def load_in_a_fresh_process(script: str, *libraries: Path) -> tuple[dict[str, Any], str]:
    """Runs a script after a prologue that defines `load`; returns the contents of `seen`, and stderr."""
    prologue = """
import ctypes, json, sys, torch
libraries = sys.argv[1:]
seen = {}
def load(path):
    torch.ops.load_library(path)
    message = ctypes.CDLL(path).opwright_load_error
    message.restype = ctypes.c_char_p
    return message() and message().decode()
def kernels(*names):
    return [name for name in names if torch._C._dispatch_has_kernel(name)]
"""
    done = subprocess.run(
        [*python(), "-c", prologue + script + "\nprint(json.dumps(seen))", *map(str, libraries)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


FIRST = """
Tensor f(const Tensor& x) { return x; }
OPWRIGHT_LIBRARY(taken, m) { m.def("f", OPWRIGHT_FN(f)); }
"""
SECOND = """
static Tensor g(const Tensor&) { throw std::runtime_error("the second"); }
OPWRIGHT_IMPL(taken, CPU, m) { m.impl("f", OPWRIGHT_FN(g)); }
OPWRIGHT_LIBRARY(taken, m) { m.def("f(Tensor x) -> Tensor"); m.def("g", OPWRIGHT_FN(g)); }
OPWRIGHT_LIBRARY(free, m) { m.def("h", OPWRIGHT_FN(g)); }
"""


def test_a_taken_namespace_is_one_clear_error_and_the_first_library_still_works(
    compile_library: Callable[..., Path],
) -> None:
    first, second = compile_library(HEAD + FIRST), compile_library(HEAD + SECOND)
    seen, stderr = load_in_a_fresh_process(
        """
seen["errors"] = [load(path) for path in libraries]
seen["f"] = torch.ops.taken.f(torch.ones(2)).tolist()
seen["kernels"] = kernels("taken::f", "taken::g", "free::h")
""",
        first,
        second,
    )
    (none, error) = seen["errors"]
    assert none is None
    assert "the namespace 'taken'" in error
    assert "is taken" in error
    assert "rename one of the two, or load only one of them" in error
    assert f"opwright: {error}\n" in stderr
    assert stderr.count("opwright: ") == 1
    assert seen["f"] == [1.0, 1.0]
    # Nothing of the second is registered in this namespace, but its other namespace works.
    assert seen["kernels"] == ["taken::f", "free::h"]


def test_a_taken_namespace_is_free_again_when_its_library_is_unloaded(compile_library: Callable[..., Path]) -> None:
    first, second = compile_library(HEAD + FIRST), compile_library(HEAD + SECOND)
    seen, _ = load_in_a_fresh_process(
        """
import _ctypes
handle = ctypes.CDLL(libraries[0])
seen["before"] = kernels("taken::f", "taken::g")
_ctypes.dlclose(handle._handle)
seen["between"] = kernels("taken::f", "taken::g")
seen["error"] = load(libraries[1])
seen["after"] = kernels("taken::f", "taken::g")
""",
        first,
        second,
    )
    assert seen == {"before": ["taken::f"], "between": [], "error": None, "after": ["taken::f", "taken::g"]}


def test_two_libraries_of_one_namespace_in_one_shared_object_are_an_error_that_names_both_places(
    compile_library: Callable[..., Path],
) -> None:
    one, both = compile_library(HEAD + FIRST), compile_library(HEAD + FIRST, HEAD + SECOND)
    seen, stderr = load_in_a_fresh_process(
        """
seen["error"] = load(libraries[0])
seen["kernels"] = kernels("taken::f", "taken::g", "free::h")
seen["other"] = load(libraries[1])
seen["f"] = torch.ops.taken.f(torch.ones(1)).tolist()
""",
        both,
        one,
    )
    assert "'taken' is defined twice in one shared object" in seen["error"]
    assert len(re.findall(r"/\w+\.cpp:\d+ ?", seen["error"])) == 2
    assert "keep one OPWRIGHT_LIBRARY" in seen["error"]
    assert stderr.count("opwright: ") == 1
    assert seen["kernels"] == ["free::h"]
    assert seen["other"] is None
    assert seen["f"] == [1.0]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("block", "messages"),
    [
        (
            'OPWRIGHT_LIBRARY(late, m) { m.def("f(Tensor x, int n) -> Tensor"); }',
            ["the kernel of late::f for CPU", "'n'", "the schema says int, the kernel takes double: use int64_t"],
        ),
        (
            'OPWRIGHT_LIBRARY(late, m) { m.def("f(Tensor x) -> Tensor"); }',
            ["the schema has 1 parameters, the kernel 2"],
        ),
        (
            'OPWRIGHT_LIBRARY(late, m) { m.def("f(Tensor x, float n) -> Tensor[]"); }',
            ["result 0: the schema says Tensor[], the kernel returns Tensor: use std::vector<Tensor>"],
        ),
        (
            'OPWRIGHT_LIBRARY(late, m) { m.def("g(Tensor x) -> Tensor"); }',
            ["the kernel of late::f for CPU", "has no definition: add m.def, or fix its name"],
        ),
        (
            'OPWRIGHT_LIBRARY(late, m) { m.def("f(Tensor x, float n) -> Tensor"); m.def("g(Nonsense x) -> ()"); }',
            ['torch rejects "g(Nonsense x) -> ()"', "Nonsense"],
        ),
        (
            """OPWRIGHT_LIBRARY(late, m) { m.def("f(Tensor x, float n) -> Tensor"); }
            OPWRIGHT_IMPL(late, NoSuchKey, m) { m.impl("f", OPWRIGHT_FN(other)); }""",
            ["late::f for NoSuchKey", "is rejected by torch"],
        ),
    ],
    ids=["type", "count", "result", "no definition", "schema", "key"],
)
def test_a_disagreement_between_two_sources_is_an_error_at_load_time(
    block: str, messages: list[str], compile_library: Callable[..., Path]
) -> None:
    kernel = """
    static Tensor f(const Tensor& x, double) { return x; }
    OPWRIGHT_IMPL(late, CPU, m) { m.impl("f", OPWRIGHT_FN(f)); }
    """
    other = "[[maybe_unused]] static Tensor other(const Tensor& x, double) { return x; }\n"
    seen, stderr = load_in_a_fresh_process(
        'seen["error"] = load(libraries[0]); seen["kernels"] = kernels("late::f", "late::g")',
        compile_library(HEAD + kernel, HEAD + other + block),
    )
    for message in messages:
        assert message in seen["error"]
    assert "nothing from this shared object was registered in 'late'" in seen["error"]
    assert seen["kernels"] == []
    assert "opwright: " in stderr


def test_a_kernel_that_differs_from_an_external_definition_in_its_parameter_count_raises(
    compile_library: Callable[..., Path],
) -> None:
    library = compile_library(
        HEAD
        + """
        static Tensor f(const Tensor& x, double) { return x; }
        OPWRIGHT_IMPL(elsewhere, CPU, m) { m.impl("f", OPWRIGHT_FN(f)); }
        """
    )
    elsewhere = torch.library.Library("elsewhere", "DEF")
    elsewhere.define("f(Tensor x) -> Tensor")
    torch.ops.load_library(library)
    with pytest.raises(RuntimeError, match="schema has 1 arguments, but its kernel has 2"):
        torch.ops.elsewhere.f(torch.ones(1))


def test_an_object_lists_the_namespaces_that_it_defines(compile_library: Callable[..., Path]) -> None:
    handle = ctypes.CDLL(str(compile_library(HEAD + "OPWRIGHT_LIBRARY(looked_at, m) {}")))
    assert ctypes.c_char.in_dll(handle, "opwright_defines_looked_at")
    assert handle.opwright_load_error() == 0


def test_objects_with_shared_symbols_have_separate_registries(compile_library: Callable[..., Path]) -> None:
    first, second = compile_library(HEAD + FIRST), compile_library(HEAD + SECOND)
    seen, _ = load_in_a_fresh_process(
        """
handles = [ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL) for path in libraries]
seen["errors"] = [load(path) for path in libraries]
seen["kernels"] = kernels("taken::f", "taken::g", "free::h")
""",
        first,
        second,
    )
    assert seen["errors"][0] is None
    assert "is taken" in seen["errors"][1]
    assert seen["kernels"] == ["taken::f", "free::h"]
