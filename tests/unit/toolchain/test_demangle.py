from __future__ import annotations

from opwright.toolchain.demangle import demangled


def test_mangled_names_become_readable_and_the_rest_is_unchanged() -> None:
    text = "between _ZN4mine5outerEPf+0x70 and void mine::inner<float>(float*), not _Znonsense or a_Z1b"
    assert demangled(text) == text.replace("_ZN4mine5outerEPf", "mine::outer(float*)")


def test_an_anonymous_namespace_that_nvcc_numbers_is_shown_as_anonymous() -> None:
    name = "_ZN36_GLOBAL__N__7ea7771b_4_k_cu_9e7bbb545innerIfEEvPT_i"
    assert demangled(name) == "void (anonymous namespace)::inner<float>(float*, int)"


def test_the_namespace_that_nvcc_generates_for_a_file_is_removed() -> None:
    file = "_INTERNAL_a5bddfe1_9_faulty_cu_41218a75_953"
    name = f"_ZN{len(file)}{file}45_GLOBAL__N__a5bddfe1_9_faulty_cu_41218a75_95316add_up_in_a_warpEPVfi"
    assert demangled(name) == "(anonymous namespace)::add_up_in_a_warp(float volatile*, int)"
