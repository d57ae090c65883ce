from __future__ import annotations

import pytest

from opwright.errors import BuildError, SignatureError
from opwright.toolchain.diagnostics import first_error
from opwright.toolchain.run import Completed, failure

DIFFER = """\
a.cpp: In function 'void body(opwright::ImplBlock<opwright::detail::text<5>{"mine"}>&)':
a.cpp:11:37:   in 'constexpr' expansion of 'opwright::detail::ImplementedName<opwright::detail::text<5>{"mine"}, \
opwright::detail::kernel<scale_cpu> >("scale")'
/x/op.h:79:65:   in 'constexpr' expansion of 'opwright::detail::check_against<text<44>\
{"scale(Tensor x, str mode=\\"a\\") -> Tensor"}, kernel<scale_cpu> >((& f))'
/x/refuse.h:76:102: error: call to non-'constexpr' function 'void opwright::detail::the_schema_and_the_kernel_differ() \
[with What = at<parameter<1>, the_schema_says<text<6>{"float"}>, the_kernel_takes<text<8>{"int64_t"}>, \
use<text<7>{"double"}> >]'
   76 | #define OPWRIGHT_CASE(n)
"""

# The same from g++ 16, which first reports the consequence, and prints source lines between the expansions.
DIFFER_IN_16 = """\
a.cpp:11:38: error: call to consteval function 'opwright::detail::ImplementedName<opwright::detail::text<5>{"mine"}, \
opwright::detail::kernel<scale_cpu> >("scale")' is not a constant expression
   11 | OPWRIGHT_IMPL(mine, CPU, m) { m.impl("scale", OPWRIGHT_FN(scale_cpu)); }
      |                                      ^~~~~~~
In file included from /x/op.h:18,
                 from a.cpp:1:
""" + DIFFER.partition("\n")[2].replace("\n/x/", "\n   11 | m.impl\n      |   ~~~^~~" * 8 + "\n/x/")

UNKNOWN = """\
a.cpp:11:37:   in 'constexpr' expansion of 'opwright::detail::ImplementedName<text<5>{"mine"}, kernel<f> >("scal")'
/x/op.h:79:107: error: call to non-'constexpr' function 'void opwright::detail::no_such_operator_is_defined() \
[with What = {the_namespace<text<5>{"mine"}>, defines<text<14>{"g() -> Tensor"}>}]'
"""

# clang++ 14 prints the first ten characters of a text, as numbers; clang++ 19 prints the first 32.
OF_CLANG_14 = """\
a.cpp:11:37: error: call to consteval function 'opwright::detail::ImplementedName<{{109, 105, 110, 101, 0}}, \
opwright::detail::kernel<&(anonymous namespace)::scale_cpu>>::ImplementedName<7UL>' is not a constant expression
    m.impl("scale", OPWRIGHT_FN(scale_cpu));
           ^
/x/refuse.h:82:24: note: non-constexpr function 'the_schema_and_the_kernel_differ<opwright::detail::at<\
opwright::detail::parameter<1>, opwright::detail::the_schema_says<{{97, 32, 116, 121, 112, 101, 32, 116, 104, 97, \
...}}>, opwright::detail::the_kernel_takes<{{105, 110, 116, 54, 52, 95, 116, 0}}>, opwright::detail::use<{{97, 0}}>>>' \
cannot be used in a constant expression
        OPWRIGHT_TEN() OPWRIGHT_TEN(1)
/x/refuse.h:146:36: note: in call to 'refuse(63, &"scale(Tensor x, str mode=\\"a\\") -> Tensor"[0], &"a type that"[0], \
&"int64_t"[0], &"another schema"[0])'
/x/op.h:94:16: note: in call to 'check_against(&"scale(Tensor x, str mode=\\"a\\") -> Tensor"[0])'
a.cpp:11:37: note: in call to 'ImplementedName("scale")'
/x/refuse.h:50:6: note: declared here
1 error generated.
"""
OF_CLANG_19 = """\
a.cpp:11:37: error: call to consteval function 'opwright::detail::ImplementedName<detail::text<5>{"mine"}, \
opwright::detail::kernel<&f>>::ImplementedName<8UL>' is not a constant expression
   11 | m.impl("scal", OPWRIGHT_FN(f));
/x/op.h:96:21: note: non-constexpr function 'no_such_operator_is_defined<opwright::detail::the_namespace<\
detail::text<5>{"mine"}>, opwright::detail::defines<text<44>{"swiglu(Tensor gate, Tensor value) [...]"}>>' cannot be \
used in a constant expression
a.cpp:11:37: note: in call to 'ImplementedName<8UL>("scal")'
/x/refuse.h:53:6: note: declared here
"""


@pytest.mark.parametrize("printed", [DIFFER, DIFFER_IN_16])
def test_a_difference_is_reported_in_one_sentence_at_the_authors_line(printed: str) -> None:
    assert first_error(printed).text.splitlines() == [
        (
            "a.cpp:11:37: error: the schema and the kernel differ: parameter 1, the schema says float, "
            "the kernel takes int64_t, use double"
        ),
        "  written: scale",
        "  kernel:  scale_cpu",
        '  schema:  scale(Tensor x, str mode="a") -> Tensor',
    ]


def test_a_difference_that_clang_prints_is_reported_in_the_same_way() -> None:
    assert first_error(OF_CLANG_14).text.splitlines() == [
        (
            "a.cpp:11:37: error: the schema and the kernel differ: parameter 1, the schema says a type that, "
            "the kernel takes int64_t, use another schema"
        ),
        "  written: scale",
        "  kernel:  (anonymous namespace)::scale_cpu",
        '  schema:  scale(Tensor x, str mode="a") -> Tensor',
    ]
    assert first_error(OF_CLANG_14).is_signature


def test_an_unknown_name_that_clang_prints_lists_the_defined_operators() -> None:
    lines = first_error(OF_CLANG_19).text.splitlines()
    assert lines == [
        (
            "a.cpp:11:37: error: no operator of this name is defined: the namespace mine, "
            "defines swiglu(Tensor gate, Tensor value) [...]"
        ),
        "  written: scal",
        "  kernel:  f",
    ]
    in_numbers = OF_CLANG_19.replace('detail::text<5>{"mine"}', "{{109, 105, 110, 101, 0}}")
    assert first_error(in_numbers).text.splitlines() == lines


def test_a_consequence_without_a_cause_is_the_error() -> None:
    first = DIFFER_IN_16.splitlines()[0]
    assert first_error(f"{first}\n").text == first


def test_an_unknown_name_lists_the_defined_operators() -> None:
    assert first_error(UNKNOWN).text.splitlines() == [
        "a.cpp:11:37: error: no operator of this name is defined: the namespace mine, defines g() -> Tensor",
        "  written: scal",
        "  kernel:  f",
    ]


def test_only_a_difference_between_schema_and_kernel_is_a_signature_error() -> None:
    assert type(failure(Completed("g++ a.cpp", DIFFER, 1))) is SignatureError
    # The words are not enough: an author's own message may contain them.
    for printed in (UNKNOWN, "a.cpp:1:2: error: the schema and the kernel differ"):
        assert type(failure(Completed("g++ a.cpp", printed, 1))) is BuildError


TORCH = "/venv/torch/include/ATen/core"
VECTOR_OF_BOOL = f"""\
{TORCH}/boxing/impl/make_boxed_from_unboxed_functor.h: In instantiation of 'struct assert_is_valid_input_type\
<std::vector<bool>, false, void>':
{TORCH}/../../torch/library.h:120:66:   required from 'torch::CppFunction::CppFunction(Func*, nullptr_t) \
[with Func = at::Tensor(const at::Tensor&, std::vector<bool>); nullptr_t = std::nullptr_t]'
a.cpp:6:31:   required from here
{TORCH}/boxing/impl/make_boxed_from_unboxed_functor.h:231:25: error: static assertion failed: You tried to register a \
kernel with an unsupported input type: vector<bool>. Please use List<bool> instead.
  231 |       guts::false_t<T>::value,
"""
FLOAT = f"""\
{TORCH}/../../torch/library.h:695:17:   required from 'torch::Library& torch::Library::impl(Name, Func&&) & \
[with Name = const char*; Func = c10::CompileTimeFunctionPointer<float(const at::Tensor&), scale>]'
a.cpp:5:42:   required from here
{TORCH}/op_registration/infer_schema.h:41:21: error: static assertion failed: INVALID TYPE: float is not supported as \
an argument type, use double instead
"""
OF_CLANG = f"""\
{TORCH}/boxing/impl/make_boxed_from_unboxed_functor.h:221:7: error: static assertion failed due to requirement \
'guts::false_t<const char *>::value': You tried to register a kernel with an unsupported input type: const char*. \
Please use std::string_view instead.
{TORCH}/x.h:1:1: note: in instantiation of template class 'assert_is_valid_input_type<const char *>' requested here
a.cpp:7:31: note: in instantiation of function template specialization 'torch::Library::def<int>' requested here
"""


def test_a_type_that_pytorch_rejects_is_reported_in_one_sentence_at_the_authors_line() -> None:
    assert first_error(VECTOR_OF_BOOL).text.splitlines() == [
        (
            "a.cpp:6:31: error: PyTorch does not support a type in the signature of this kernel: "
            "std::vector<bool>: use c10::List<bool>"
        ),
        "  signature: at::Tensor(const at::Tensor&, std::vector<bool>)",
    ]
    assert first_error(FLOAT).text.splitlines() == [
        (
            "a.cpp:5:42: error: PyTorch does not support a type in the signature of this kernel: "
            "float: use double, which the schema calls float"
        ),
        "  kernel:    scale",
        "  signature: float(const at::Tensor&)",
    ]
    assert first_error(OF_CLANG).text.startswith("a.cpp:7:31: error: ")
    assert "const char*: use std::string_view" in first_error(OF_CLANG).text


def test_an_error_in_pytorchs_headers_that_is_not_about_a_kernel_is_unchanged() -> None:
    text = f"{TORCH}/Tensor.h:3:1: error: static assertion failed: INVALID TYPE: float\n"
    assert first_error(text).text == text.strip()
