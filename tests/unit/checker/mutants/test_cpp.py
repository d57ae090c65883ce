from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.checker.mutants.cpp import cpp_mutants

if TYPE_CHECKING:
    from pathlib import Path


def changes(folder: Path, text: str) -> set[str]:
    """The changes of a function body: `comparison: < -> <=`."""
    file = folder / "cpu.cpp"
    file.write_text(f"void f() {{\n{text}\n}}\n")
    return {mutant.name.partition(": ")[2] for mutant in cpp_mutants(file)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g(a < b);", "comparison: < -> <="),
        ("g(a == b);", "comparison: == -> !="),
        ("g(a + b);", "arithmetic: + -> -"),
        ("a *= b;", "arithmetic: *= -> /="),
        ("g(-a);", "arithmetic: -a -> a"),
        ("g(a && b);", "logic: && -> ||"),
        ("g(!a);", "logic: !a -> a"),
        ("g(a ? b : c);", "condition: b : c -> c : b"),
        ("if (a) b(); else c();", "condition: a -> !(a)"),
        ("g(3);", "constant: 3 -> 4"),
        ("g(3);", "constant: 3 -> 2"),
        ("g(0u);", "constant: 0u -> 1u"),
        ("g(2.0f);", "constant: 2.0f -> 2.02f"),
        ("g(true);", "constant: true -> false"),
        ("x[i][j] = 0;", "index order: x[i][j] -> x[j][i]"),
        ("g(a, b);", "swapped arguments: a, b -> b, a"),
        ("g(std::min<float>(a, b));", "swapped arguments: a, b -> b, a"),  # one may be NaN
        ("g(std::min<int>(a, b + c));", "arithmetic: + -> -"),
        ("g(a);", "dropped statement: g(a); -> ;"),
        ("a = b;", "dropped statement: a = b; -> ;"),
        ("if (a) b();", "dropped statement: if (a) b(); -> ;"),
        ("if (a) return;", "removed check: if (a) return; -> ;"),
        ('if (a) { throw std::runtime_error("b"); }', 'removed check: if (a) { throw std::runtime_error("b"); } -> ;'),
        ("check::same_sizes(a, b);", "removed check: check::same_sizes(a, b); -> ;"),
        ('TORCH_CHECK(a == 2, "b");', "comparison: == -> !="),
        ('TORCH_CHECK(a, "b");', 'removed check: TORCH_CHECK(a, "b"); -> ;'),
    ],
)
def test_expressions_and_statements_are_changed(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in changes(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        'TORCH_CHECK(a, "expected ", b + 1, " and ", c < 2);',  # a message
        'throw std::runtime_error("a" + std::to_string(b + 1));',
        "std::array<int, 4 + 1> a;",
        "static_assert(sizeof(float) == 4);",
        "#if A < 2\n#endif",
        "#include <a.h>",
        "g(std::min<int64_t>(a, b));",  # the same in either order
        "g(std::max<std::size_t>(a, b));",
        "g(std::min<unsigned>(a, b));",
    ],
)
def test_other_code_is_left_unchanged(tmp_path: Path, text: str) -> None:
    kept = {change for change in changes(tmp_path, text) if not change.startswith(("removed check", "dropped"))}
    assert kept == set()


def test_registrations_are_left_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "cpu.cpp"
    file.write_text(
        'TORCH_LIBRARY(mine, m) {\n    m.def("f", &f);\n}\nOPWRIGHT_IMPL(mine, CPU, m) { m.impl("f", g); }\n'
    )
    assert cpp_mutants(file) == []


def test_code_in_a_preprocessor_block_is_changed(tmp_path: Path) -> None:
    assert "arithmetic: + -> -" in changes(tmp_path, "#ifdef __AVX2__\ng(a + b);\n#endif")


def test_a_mutant_has_a_location_a_text_and_a_diff(tmp_path: Path) -> None:
    file = tmp_path / "cpu.cpp"
    file.write_text("int f(int a) {\n    return a < 3;\n}\n")
    mutant = next(mutant for mutant in cpp_mutants(file) if mutant.edit.replacement == "<=")
    assert (mutant.line, mutant.column) == (2, 14)
    assert mutant.text == b"int f(int a) {\n    return a <= 3;\n}\n"
    assert mutant.diff().splitlines()[2:] == ["@@ -2 +2 @@", "-    return a < 3;", "+    return a <= 3;"]
    assert mutant.name == "cpu.cpp:2: comparison: < -> <="


def test_line_numbers_do_not_change(tmp_path: Path) -> None:
    file = tmp_path / "cpu.cpp"
    file.write_text("void f() {\n    if (a) {\n        b();\n        c(d,\n          e);\n    }\n}\n")
    assert {mutant.text.count(b"\n") for mutant in cpp_mutants(file)} == {7}


@pytest.mark.parametrize(
    ("line", "marked"),
    [
        ("g(a + b);  // opwright: equivalent: b is zero", {"arithmetic", "swapped", "dropped"}),
        ("g(a + b);  // opwright: equivalent [-]: b is zero", {"arithmetic"}),
        ("// opwright: equivalent: b is zero\ng(a + b);", {"arithmetic", "dropped"}),
        (
            "// opwright: equivalent [-]: b is zero\n// opwright: equivalent [;]: b is zero\ng(a + b);",
            {"arithmetic", "dropped"},
        ),
        ("// opwright: equivalent [-]: b is zero\n// because it is\ng(a + b);", {"arithmetic"}),
        ("// opwright: equivalent: b is zero\ng(1);\n\ng(a + b);", {"constant", "dropped"}),
        ("// opwright: equivalent [-]: b is zero\n\ng(a + b);", {"arithmetic"}),
        ("g(a + b);  // equivalent", set()),
    ],
)
def test_the_author_can_mark_a_line_or_one_change_of_it(tmp_path: Path, line: str, marked: set[str]) -> None:
    file = tmp_path / "cpu.cpp"
    file.write_text(f"void f() {{\n{line}\n}}\n")
    found = [mutant for mutant in cpp_mutants(file) if mutant.marked]
    assert {mutant.edit.change.value.partition(" ")[0] for mutant in found} == marked - {"swapped"}
    assert all(mutant.marked == "b is zero" for mutant in found)
