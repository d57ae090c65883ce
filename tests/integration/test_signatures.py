"""Tests of the compiler's messages for kernels that torch cannot call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = "#include <opwright/op.h>\nusing namespace opwright;\n"


def errors(log: str) -> list[str]:
    """Returns the errors of g++, without a consequence of the next error that g++ 14 and newer report."""
    found = [line for line in log.splitlines() if "error:" in line]
    return [line for line in found if "error: call to consteval function" not in line]


# The parameter types that a kernel must not have, as the compiler spells them, and what to use instead.
FORBIDDEN = {
    "float": "use double",
    "long double": "use double",
    "int": "use int64_t",
    "short int": "use int64_t",
    "unsigned int": "use int64_t",
    "long unsigned int": "use int64_t",
    "long long int": "use int64_t",
    "char": "use int64_t",
    "const char*": "use std::string",
    "float*": "use opwright::Tensor",
    "void*": "use opwright::Tensor",
    "Color": "use int64_t or std::string",
    "Lookalike": "use opwright::Tensor",
}


@pytest.fixture(scope="module")
def forbidden_type_errors(compiler_refuses: Callable[..., str]) -> str:
    functions = "".join(f"void f{i}(const Tensor&, {kind}) {{}}\n" for i, kind in enumerate(FORBIDDEN))
    definitions = "".join(f'm.def("f{i}", OPWRIGHT_FN(f{i}));' for i in range(len(FORBIDDEN)))
    return compiler_refuses(
        f"""{HEAD}
        enum class Color {{ red }};
        struct Lookalike {{ void* data; }};
        {functions}
        OPWRIGHT_LIBRARY(forbidden, m) {{ {definitions} }}"""
    )


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_an_unsupported_parameter_type_is_an_error_that_names_the_type_to_use(
    kind: str, forbidden_type_errors: str
) -> None:
    about = forbidden_type_errors.split(f"Value<{kind}>'")[1].split("In instantiation of", maxsplit=1)[0]
    (error,) = errors(about)
    assert FORBIDDEN[kind] in error


def test_an_unsupported_type_is_reported_once_even_with_a_schema(compiler_refuses: Callable[..., str]) -> None:
    log = compiler_refuses(
        f"""{HEAD}
        Tensor f(const Tensor& x, float) {{ return x; }}
        OPWRIGHT_LIBRARY(forbidden, m) {{ m.def("f(Tensor x, float y) -> Tensor", OPWRIGHT_FN(f)); }}"""
    )
    (error,) = errors(log)
    assert "use double" in error


@pytest.mark.parametrize(
    ("function", "message"),
    [
        # Lists and optional values.
        ("void f(const Tensor&, std::optional<float>) {}", "use double"),
        ("void f(const Tensor&, std::vector<int>) {}", "use int64_t"),
        ("void f(const Tensor&, std::vector<std::vector<int64_t>>) {}", "use std::vector<T>"),
        ("void f(const Tensor&, std::optional<std::optional<double>>) {}", "use one std::optional"),
        ("void f(const Tensor&, std::vector<std::string_view>) {}", "use std::vector<std::string>"),
        ("void f(const Tensor&, HeaderOnlyArrayRef<bool>) {}", "use std::vector<bool>"),
        # Results.
        ("float f(const Tensor&) { return {}; }", "use double"),
        ("const char* f(const Tensor&) { return {}; }", "use std::string"),
        # References that would dangle, and a functor.
        ("const Tensor& f(const Tensor& x) { return x; }", "return the result by value"),
        ("std::string_view f(const Tensor&) { return {}; }", "a result must own its data"),
        ("void f(std::vector<double>&) {}", "only a Tensor can be passed by non-const reference"),
        ("void f(Tensor&&) {}", "not an rvalue reference"),
        ("struct Functor { void operator()() {} } f;", "the name of a free function"),
    ],
)
def test_an_unsupported_signature_is_an_error_that_names_what_to_use(
    function: str, message: str, compiler_refuses: Callable[..., str]
) -> None:
    log = compiler_refuses(f'{HEAD} {function}\nOPWRIGHT_LIBRARY(bad, m) {{ m.def("f", OPWRIGHT_FN(f)); }}')
    assert message in errors(log)[0]


# The type of parameter 1 in the schema, its C++ type in the kernel, and the C++ type that matches the schema.
DIFFERENT = [
    ("float", "int64_t", "double"),
    ("int", "double", "int64_t"),
    ("SymInt", "double", "int64_t"),
    ("bool", "int64_t", "bool"),
    ("int", "bool", "int64_t"),
    ("str", "bool", "std::string"),
    ("float", "std::string", "double"),
    ("Tensor", "double", "Tensor"),
    ("ScalarType", "int64_t", "ScalarType"),
    ("Device", "ScalarType", "Device"),
    ("Layout", "Device", "Layout"),
    ("MemoryFormat", "Layout", "MemoryFormat"),
    ("float?", "double", "std::optional<double>"),
    ("float", "std::optional<double>", "double"),
    ("int[2]", "int64_t", "std::vector<int64_t>"),
    ("int", "std::vector<int64_t>", "int64_t"),
    ("Tensor?[]", "std::vector<Tensor>", "std::vector<std::optional<Tensor>>"),
    ("str[]?", "std::vector<std::string>", "std::optional<std::vector<std::string>>"),
    ("bool?[]?", "std::vector<bool>", "std::optional<std::vector<std::optional<bool>>>"),
]


@pytest.fixture(scope="module")
def difference_errors(compiler_refuses: Callable[..., str]) -> list[str]:
    """Returns the compiler log of each case in DIFFERENT, each of which is a separate block."""
    blocks = (
        f"""Tensor f{i}(const Tensor& x, {kernel}) {{ return x; }}
        OPWRIGHT_LIBRARY(differ{i}, m) {{ m.def("f{i}.some(Tensor x, {schema} y) -> Tensor", OPWRIGHT_FN(f{i})); }}
        """
        for i, (schema, kernel, _) in enumerate(DIFFERENT)
    )
    log = compiler_refuses(HEAD + "".join(blocks))
    return log.split("In function 'void opwright_body_")[1:]


@pytest.mark.parametrize("case", range(len(DIFFERENT)), ids=[f"{says}-{takes}" for says, takes, _ in DIFFERENT])
def test_a_parameter_that_differs_from_the_schema_is_reported_with_both_types_and_the_fix(
    case: int, difference_errors: list[str]
) -> None:
    schema, kernel, fitting = DIFFERENT[case]
    (log,) = [log for log in difference_errors if f"f{case}.some(" in log]
    (error,) = errors(log)
    says = schema.replace("SymInt", "int").replace("[2]", "[]")
    assert "the_schema_and_the_kernel_differ" in error
    assert "parameter<1>" in error
    assert f'the_schema_says<text<{len(says) + 1}>{{"{says}"}}>' in error
    assert f'the_kernel_takes<text<{len(kernel) + 1}>{{"{kernel}"}}>' in error
    assert f'use<text<{len(fitting) + 1}>{{"{fitting}"}}>' in error
    # The lines above the error name the operator and the function.
    assert f'DefinitionText<opwright::detail::kernel<f{case}> >("f{case}.some(Tensor x, {schema} y) -> Tensor")' in log


WHOLE = [
    ("f0(Tensor x) -> Tensor", "the_schema_has_parameters<1>, the_kernel_has_parameters<2>"),
    ("f1(Tensor x, float y, *, int z=3) -> Tensor", "the_schema_has_parameters<3>"),
    ("f2(Tensor x, float y) -> (Tensor, int)", "the_schema_has_results<2>, the_kernel_has_results<1>"),
    ("f3(Tensor x, float y) -> ()", "the_schema_has_results<0>"),
    ("f4(Tensor x, float y) -> Tensor[]", 'result<0>, the_schema_says<text<9>{"Tensor[]"}>'),
    ("f5(Tensor x, float y) -> int", 'the_kernel_returns<text<7>{"Tensor"}>, use<text<8>{"int64_t"}>'),
    ("f6(Tensor x, Scalar y) -> Tensor", "a type that the stable ABI does not support"),
    ("f7(Tensor x, float y)", "the_schema_is_malformed"),
    ("f8(Tensor x, float y -> Tensor", "the_schema_is_malformed"),
    ("f9(Tensor x, float y) -> ", "the_schema_is_malformed"),
    ("f 10", "the_schema_is_malformed"),
    ("", "the_schema_is_malformed"),
]


@pytest.fixture(scope="module")
def whole_schema_errors(compiler_refuses: Callable[..., str]) -> list[str]:
    blocks = (
        f'OPWRIGHT_LIBRARY(whole{i}, m) {{ m.def("{schema}", OPWRIGHT_FN(f)); }}\n'
        for i, (schema, _) in enumerate(WHOLE)
    )
    log = compiler_refuses(f"{HEAD} Tensor f(const Tensor& x, double) {{ return x; }}\n" + "".join(blocks))
    return log.split("In function 'void opwright_body_")[1:]


@pytest.mark.parametrize(("schema", "message"), WHOLE, ids=[schema or "empty" for schema, _ in WHOLE])
def test_a_schema_that_differs_as_a_whole_is_rejected(
    schema: str, message: str, whole_schema_errors: list[str]
) -> None:
    (log,) = [log for log in whole_schema_errors if f'("{schema}")' in log]
    (error,) = errors(log)
    assert message in error


def test_a_kernel_that_mutates_its_argument_requires_a_schema_that_declares_it(
    compiler_refuses: Callable[..., str],
) -> None:
    log = compiler_refuses(
        f"""{HEAD}
        void f(Tensor&) {{}}
        OPWRIGHT_LIBRARY(writes, m) {{ m.def("f(Tensor x) -> ()", OPWRIGHT_FN(f)); }}"""
    )
    assert "Tensor(a!) in the schema" in errors(log)[0]


DEFINITIONS = """
#include <opwright/schema.h>
template <>
inline constexpr auto opwright::definitions<"known"> =
    opwright::schemas("f(Tensor x, float y=1.0) -> Tensor", "g.over(int n) -> int");
"""


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("h", ["no_such_operator_is_defined", "f(Tensor x, float y=1.0) -> Tensor", "g.over(int n) -> int"]),
        ("g", ["no_such_operator_is_defined"]),
        ("g.over", ["the_schema_has_parameters<1>, the_kernel_has_parameters<2>"]),
        ("f", ["parameter<1>", 'the_schema_says<text<6>{"float"}>', 'use<text<7>{"double"}>']),
    ],
)
def test_an_implementation_is_checked_against_known_definitions(
    name: str, messages: list[str], compiler_refuses: Callable[..., str]
) -> None:
    log = compiler_refuses(
        f"""{DEFINITIONS}{HEAD}
        Tensor f(const Tensor& x, int64_t) {{ return x; }}
        OPWRIGHT_IMPL(known, CPU, m) {{ m.impl("{name}", OPWRIGHT_FN(f)); }}"""
    )
    for message in messages:
        assert message in errors(log)[0]
    if name == "f":
        assert "f(Tensor x, float y=1.0) -> Tensor" in log


def test_implementations_that_match_their_definitions_compile(compile_library: Callable[..., object]) -> None:
    compile_library(
        f"""{DEFINITIONS}{HEAD}
        Tensor f(const Tensor& x, double) {{ return x; }}
        int64_t g(int64_t n) {{ return n; }}
        OPWRIGHT_IMPL(known, CPU, m) {{ m.impl("f", OPWRIGHT_FN(f)); m.impl("g.over", OPWRIGHT_FN(g)); }}"""
    )


def test_schemas_with_every_kind_of_default_are_read(compile_library: Callable[..., object]) -> None:
    schema = (
        "f.out(Tensor(a!) x, *, str s=\\\"a, (b)]'\\\", str t='\\\\'c', int[2] n=[1, -2], float[]? v=None, "
        "float w=-1e-3, ScalarType d=float, bool b=True, Tensor(b)[] more, Tensor(c!)? last=None) "
        "-> (Tensor(a!) y, int)"
    )
    compile_library(
        f"""{HEAD}
        std::tuple<Tensor, int64_t> f(Tensor& x, std::string, std::string_view, std::vector<int64_t>,
                                      std::optional<HeaderOnlyArrayRef<double>>, double, ScalarType, bool,
                                      const std::vector<Tensor>&, const std::optional<Tensor>&) {{ return {{x, 1}}; }}
        OPWRIGHT_LIBRARY(defaults, m) {{ m.def("{schema}", OPWRIGHT_FN(f)); }}"""
    )
