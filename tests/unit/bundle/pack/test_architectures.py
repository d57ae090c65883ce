from __future__ import annotations

import itertools

import pytest

from opwright.bundle.pack.architectures import Served, in_common, served_by
from opwright.toolchain.flags import cuda_architectures

HOPPER = (9, 0)
GPUS = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (13, 1)]


@pytest.mark.parametrize(
    ("flags", "listed"),
    [
        ("-gencode=arch=compute_80,code=sm_80", ["8.0"]),
        ("-gencode arch=compute_120,code=sm_120", ["12.0"]),
        ("-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=[sm_90,compute_90]", ["8.0", "9.0+PTX"]),
        ("--generate-code=arch=compute_75,code=compute_75", ["7.5+PTX"]),
        ("--generate-code arch=compute_90a,code=sm_90a", ["9.0"]),
        ("-gencode=arch=compute_90a,code=[sm_90a,compute_90a]", ["9.0"]),
        ("-arch=sm_86", ["8.6+PTX"]),
        ("-arch sm_86 -O3", ["8.6+PTX"]),
        ("--gpu-architecture=compute_80", ["8.0+PTX"]),
        ("-arch=compute_80 -code=sm_80,sm_89", ["8.0"]),
        ("--gpu-architecture=compute_80 --gpu-code=sm_89", ["8.9"]),
        ("-arch=native", ["9.0"]),
    ],
)
def test_the_flags_of_nvcc_determine_the_supported_gpus(flags: str, listed: list[str]) -> None:
    served = served_by(["nvcc", *flags.split(), "-c", "sm_70.cu"], HOPPER)
    assert served is not None
    assert list(in_common([served])) == listed


@pytest.mark.parametrize("flags", ["", "-O3 -march=native", "-arch=all", "-arch=all-major"])
def test_other_flags_determine_nothing(flags: str) -> None:
    assert served_by(flags.split(), HOPPER) is None


def test_the_flags_that_opwright_composes_are_parsed() -> None:
    served = served_by(cuda_architectures("7.5;8.0;9.0a;10.0+PTX"), HOPPER)
    assert served == Served(frozenset({(7, 5), (8, 0), (9, 0), (10, 0)}), (10, 0))


def test_code_supports_newer_gpus_of_its_generation_and_ptx_all_newer_ones() -> None:
    served = Served(frozenset({(8, 6)}), (10, 0))
    assert [gpu for gpu in GPUS if served.serves(gpu)] == [(8, 6), (8, 9), (10, 0), (10, 3), (12, 0), (13, 1)]


def test_the_gpus_that_all_libraries_support_are_listed_and_no_others() -> None:
    kinds = [
        Served(frozenset({(8, 0), (9, 0)}), (9, 0)),
        Served(frozenset({(8, 6)}), (7, 5)),
        Served(frozenset({(8, 9), (9, 0)})),
        Served(frozenset(), (8, 6)),
        Served(frozenset({(9, 0)})),
    ]
    for count in range(1, len(kinds) + 1):
        for some in itertools.combinations(kinds, count):
            listed = [entry.partition("+") for entry in in_common(some)]
            assert all(rest in {"", "PTX"} for _, _, rest in listed)
            starts = [(tuple(map(int, number.split("."))), bool(rest)) for number, _, rest in listed]
            for gpu in GPUS:
                is_listed = any(gpu >= start and (ptx or gpu[0] == start[0]) for start, ptx in starts)
                assert is_listed == all(one.serves(gpu) for one in some)


def test_no_gpus_are_listed_without_code_for_gpus() -> None:
    assert in_common([]) == ()
