from __future__ import annotations

from opwright.toolchain.diagnostics import first_error

GXX = """\
In file included from a.cpp:1:
b.h: In function 'int f()':
b.h:3:9: warning: unused variable 'z' [-Wunused-variable]
b.h:4:12: error: 'x' was not declared in this scope
    4 |     return x;
      |            ^
b.h:2:1: note: 'y' declared here
a.cpp:9:1: error: 'q' does not name a type
a.cpp:10:1: error: 'r' does not name a type
"""


def test_the_first_error_comes_with_its_source_and_notes_and_the_count_of_the_rest() -> None:
    shown = first_error(GXX).text
    assert shown.startswith("b.h:4:12: error: 'x' was not declared in this scope\n    4 |     return x;")
    assert "note: 'y' declared here" in shown
    assert shown.endswith("(and 2 more errors)")
    assert "warning" not in shown


def test_a_missing_header_is_an_error() -> None:
    text = "a.cpp:1:10: fatal error: opencv2/nope.hpp: No such file or directory\n    1 | #include <opencv2/nope.hpp>\n"
    assert first_error(text).text.splitlines()[0].endswith("No such file or directory")


def test_nvccs_errors_are_found() -> None:
    text = 'k.cu(5): error: identifier "y" is undefined\n      y = 1;\n      ^\n\n1 error detected.\n'
    assert first_error(text).text.startswith('k.cu(5): error: identifier "y" is undefined')
    assert first_error("nvcc fatal   : Unsupported gpu architecture 'compute_10'").text != ""


def test_constexpr_expansions_that_lead_to_an_error_are_kept() -> None:
    text = (
        "a.cpp: In function 'void g()':\n"
        "a.cpp:15:47:   in 'constexpr' expansion of 'check(3, Int)'\n"
        "h.h:7:1: error: call to non-'constexpr' function\n"
    )
    assert first_error(text).text.startswith(
        "a.cpp:15:47:   in 'constexpr' expansion of 'check(3, Int)'\nh.h:7:1: error:"
    )


def test_the_output_of_a_successful_build_contains_no_error() -> None:
    assert first_error("[1/2] error.cpp\n[2/2] link\n").text == ""
