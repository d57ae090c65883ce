from __future__ import annotations

from opwright.checker.demangle import demangled


def test_the_names_in_a_text_become_readable_and_the_rest_stays() -> None:
    text = "between _ZN4mine5outerEPf+0x70 and void mine::inner<float>(float*), not _Znonsense or a_Z1b"
    assert demangled(text) == text.replace("_ZN4mine5outerEPf", "mine::outer(float*)")


def test_the_namespace_without_a_name_that_nvcc_numbers_is_told_as_such() -> None:
    name = "_ZN36_GLOBAL__N__7ea7771b_4_k_cu_9e7bbb545innerIfEEvPT_i"
    assert demangled(name) == "void (anonymous namespace)::inner<float>(float*, int)"


def test_the_namespace_that_nvcc_makes_of_a_file_is_left_out() -> None:
    file = "_INTERNAL_a5bddfe1_9_faulty_cu_41218a75_953"
    name = f"_ZN{len(file)}{file}45_GLOBAL__N__a5bddfe1_9_faulty_cu_41218a75_95316add_up_in_a_warpEPVfi"
    assert demangled(name) == "(anonymous namespace)::add_up_in_a_warp(float volatile*, int)"
