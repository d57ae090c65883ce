from __future__ import annotations

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

UNKNOWN = """\
a.cpp:11:37:   in 'constexpr' expansion of 'opwright::detail::ImplementedName<text<5>{"mine"}, kernel<f> >("scal")'
/x/op.h:79:107: error: call to non-'constexpr' function 'void opwright::detail::no_such_operator_is_defined() \
[with What = {the_namespace<text<5>{"mine"}>, defines<text<14>{"g() -> Tensor"}>}]'
"""


def test_a_difference_is_one_sentence_at_the_authors_place() -> None:
    assert first_error(DIFFER).text.splitlines() == [
        (
            "a.cpp:11:37: error: the schema and the kernel differ: parameter 1, the schema says float, "
            "the kernel takes int64_t, use double"
        ),
        "  written: scale",
        "  kernel:  scale_cpu",
        '  schema:  scale(Tensor x, str mode="a") -> Tensor',
    ]


def test_an_unknown_name_lists_what_is_defined() -> None:
    assert first_error(UNKNOWN).text.splitlines() == [
        "a.cpp:11:37: error: no operator of this name is defined: the namespace mine, defines g() -> Tensor",
        "  written: scal",
        "  kernel:  f",
    ]


def test_only_a_difference_between_schema_and_kernel_is_about_a_signature() -> None:
    assert first_error(DIFFER).is_signature
    assert not first_error(UNKNOWN).is_signature
    # The words alone are not enough: an author's own message may hold them.
    assert not first_error("a.cpp:1:2: error: the schema and the kernel differ").is_signature


def test_a_failed_build_says_by_its_class_whether_a_signature_differs() -> None:
    assert type(failure(Completed("g++ a.cpp", DIFFER, 1))) is SignatureError
    assert type(failure(Completed("g++ a.cpp", UNKNOWN, 1))) is BuildError
