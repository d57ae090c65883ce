from __future__ import annotations

import platform

import pytest

from opwright.bundle.compile.processor import features_needed
from opwright.errors import BundleError
from opwright.toolchain.machine import processor_features

V3 = {"abm", "avx", "avx2", "bmi1", "bmi2", "cx16", "f16c", "fma", "lahf_lm", "movbe", "pni", "popcnt"}
V3 |= {"sse4_1", "sse4_2", "ssse3"}
V4 = V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the features of other processors are unknown"),
]


def needed(*flags: str) -> set[str]:
    unknown: list[str] = []
    found = features_needed(flags, unknown.append)
    assert unknown == []
    assert sorted(found) == list(found)
    return set(found)


@pytest.mark.parametrize(
    ("flags", "features"),
    [
        ((), set()),
        (("-O3", "-fPIC", "-DNDEBUG", "-mtune=native", "-mcmodel=large", "-mprefer-vector-width=512"), set()),
        (("-march=x86-64",), set()),
        (("-march=x86-64-v3",), V3),
        (("-march=x86-64-v4",), V4),
        (("-O2", "-march=x86-64-v3", "-mavx512f"), V3 | {"avx512f"}),
        (("-mfma",), {"avx", "fma", "pni", "sse4_1", "sse4_2", "ssse3"}),
        (("-mamx-tile", "-mamx-bf16", "-mavx512vnni"), {"amx_bf16", "amx_tile", "avx512_vnni"}),
    ],
)
def test_the_features_are_those_that_the_compiler_may_use_with_linuxs_names(
    flags: tuple[str, ...], features: set[str]
) -> None:
    found = needed(*flags)
    assert features <= found
    if "-mavx512vnni" not in flags and "-mavx512f" not in flags:
        assert found - features <= {"popcnt"}


def test_code_for_this_machine_needs_only_features_that_the_machine_has() -> None:
    assert needed("-march=native") <= processor_features()


def test_a_feature_without_a_known_name_is_reported_and_not_invented() -> None:
    told: list[str] = []
    assert features_needed(["-m3dnow"], told.append) == ()
    assert told == ["the compiler may use 3dNOW, which is unknown to opwright: no host checks for it"]


def test_a_level_that_the_compiler_rejects_is_reported() -> None:
    with pytest.raises(BundleError, match=r"the compiler rejects -march=x86-64-v9: .*error"):
        needed("-march=x86-64-v9")
