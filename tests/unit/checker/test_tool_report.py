"""Parsing the output of compute-sanitizer's tools, as releases from 2021 to 2025 write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwright.checker.tool_report import Place, ToolReport, distinct, reports, shown, troubles

ROOT = Path("/ops/mine")
HEAD = "========= COMPUTE-SANITIZER\n"
OUT_OF_BOUNDS = """\
========= Invalid __global__ read of size 4 bytes
=========     at _ZN4mine10differenceEPKfPfi+0x70 in /ops/mine/cuda.cu:31
=========     by thread (40,0,0) in block (3,0,0)
=========     Address 0x7f6510c00a00 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f6510c00800 of size 512 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: difference(at::Tensor) [0x8ccb] in /cache/mine.so
=========         Host Frame: c10::Dispatcher::call [0x1234] in /torch/lib/libtorch_cpu.so
=========
"""
MISALIGNED = """\
========= Invalid __global__ write of size 8 bytes
=========     at _ZN4mine5storeEP6float2+0x50 in /usr/include/vectors.h:9
=========     by thread (0,0,0) in block (0,0,0)
=========     Access to 0x710fdca00001 is misaligned
=========     and is inside the nearest allocation at 0x710fdca00000 of size 1,024 bytes
=========     Device Frame: _ZN4mine5pairsEPf+0x30 in /ops/mine/pairs.cuh:44
=========
"""
OLD = """\
========= Invalid __shared__ write of size 4 bytes
=========     at 0x180 in /ops/mine/cuda.cu:12:_Z4fillPf
=========     by thread (32,0,0) in block (0,0,0)
=========     Address 0x00000400 is out of bounds
=========     Host Frame:cudaLaunchKernel [0x6c318]
=========                in /usr/local/cuda/lib64/libcudart.so.11.0
=========     Host Frame:_Z4pathv [0x7d]
=========                in /cache/mine.so
=========
"""
FAILED_CALL = """\
========= Program hit cudaErrorInvalidConfiguration (error 9) due to "invalid configuration argument" on CUDA API \
call to cudaLaunchKernel.
=========     Saved host backtrace up to driver entry point at error
=========         Host Frame: cudaLaunchKernel [0x6c318] in /venv/lib/libcudart.so.13
=========         Host Frame: scale(at::Tensor) [0x8ccb] in /cache/mine.so
=========
"""
RACE = """\
========= Warning: Race reported between Read access at _Z3sumPKfPf+0x450 in /ops/mine/cuda.cu:27
=========     and Write access at _Z3sumPKfPf+0x480 in /ops/mine/cuda.cu:27 [124 hazards]
=========     and Write access at _Z3sumPKfPf+0x4c0 in /ops/mine/cuda.cu:28 [60 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""
HAZARD = """\
========= Error: Potential WAW hazard detected at __shared__ 0x0 in block (2,0,0) :
=========     Write Thread (0,0,0) at _Z3WAWv+0x2f0 in /ops/mine/waw.cu:20
=========     Write Thread (1,0,0) at _Z3WAWv+0x2f0 in /ops/mine/waw.cu:20
=========     Current Value : 1, Incoming Value : 2
=========
"""
UNINITIALIZED = """\
========= Uninitialized __global__ memory read of size 4 bytes
=========     at _Z4meanPKfPfi+0x90 in /ops/mine/cuda.cu:40
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
=========
"""
BARRIER = """\
========= Barrier error detected. Divergent thread(s) in block.
=========     at [clone mean(int *)] outlineSync()+0x11f0 in /ops/mine/cuda.cu:42
=========     by thread (33,0,0) in block (0,0,0)
=========     Device Frame: _Z4meanPi+0xe40 in /ops/mine/cuda.cu:60
=========
"""
# From release 2025.3.1, for libraries compiled with nvcc 13.0, on an H100.
RACE_OF_A_WARP = """\
========= Warning: Race reported between Write access at \
_ZN43_INTERNAL_a5bddfe1_9_faulty_cu_41218a75_95345_GLOBAL__N__a5bddfe1_9_faulty_cu_41218a75_95316add_up_in_a_warpEPVfi\
+0xc10 in /ops/mine/cuda.cu:22
=========     and Read access at \
_ZN43_INTERNAL_a5bddfe1_9_faulty_cu_41218a75_95345_GLOBAL__N__a5bddfe1_9_faulty_cu_41218a75_95316add_up_in_a_warpEPVfi\
+0xc20 in /ops/mine/cuda.cu:22 [372 hazards]
=========\x20
"""
BARRIER_OF_A_WARP = """\
========= Barrier error detected. Divergent thread(s) in warp.
=========     at _ZN46_GLOBAL__N__15ee61db_9_faulty_cu_f7d0e533_10855mixedEPKfPfl+0x1f0 in /ops/mine/cuda.cu:29
=========     by thread (64,0,0) in block (1,0,0)
=========\x20
"""


def only(text: str) -> ToolReport:
    (found,) = reports((HEAD + text + "========= ERROR SUMMARY: 1 error\n").encode())
    return found


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            OUT_OF_BOUNDS,
            (
                "Invalid __global__ read of size 4 bytes at cuda.cu:31, in the kernel "
                "mine::difference(float const*, float*, int), thread (40,0,0) of block (3,0,0)"
            ),
        ),
        (
            MISALIGNED,
            (
                "Invalid __global__ write of size 8 bytes at pairs.cuh:44, in the kernel mine::pairs(float*), "
                "thread (0,0,0) of block (0,0,0)"
            ),
        ),
        (
            OLD,
            (
                "Invalid __shared__ write of size 4 bytes at cuda.cu:12, in the kernel fill(float*), "
                "thread (32,0,0) of block (0,0,0)"
            ),
        ),
        (
            FAILED_CALL,
            (
                'Program hit cudaErrorInvalidConfiguration (error 9) due to "invalid configuration argument" on CUDA '
                "API call to cudaLaunchKernel"
            ),
        ),
        (
            RACE,
            (
                "Warning: Race reported between read at cuda.cu:27 and write at cuda.cu:27 and write at cuda.cu:28, in "
                "the kernel sum(float const*, float*)"
            ),
        ),
        (
            HAZARD,
            "Error: Potential WAW hazard detected write at waw.cu:20, in the kernel WAW(), block (2,0,0)",
        ),
        (
            UNINITIALIZED,
            (
                "Uninitialized __global__ memory read of size 4 bytes at cuda.cu:40, in the kernel "
                "mean(float const*, float*, int), thread (31,0,0) of block (1,0,0)"
            ),
        ),
        (
            RACE_OF_A_WARP,
            (
                "Warning: Race reported between write at cuda.cu:22 and read at cuda.cu:22, in the kernel "
                "(anonymous namespace)::add_up_in_a_warp(float volatile*, int)"
            ),
        ),
        (
            BARRIER_OF_A_WARP,
            (
                "Barrier error detected. Divergent thread(s) in warp at cuda.cu:29, in the kernel "
                "(anonymous namespace)::mixed(float const*, float*, long), thread (64,0,0) of block (1,0,0)"
            ),
        ),
        (
            BARRIER,
            (
                "Barrier error detected. Divergent thread(s) in block at cuda.cu:42, in the kernel mean(int*), "
                "thread (33,0,0) of block (0,0,0)"
            ),
        ),
    ],
    ids=["memcheck", "misaligned", "of 2021", "call", "race", "hazard", "initcheck", "warp race", "warp", "synccheck"],
)
def test_a_report_names_the_fault_its_place_and_its_thread(text: str, line: str) -> None:
    assert shown(only(text), ROOT) == line


def test_without_line_information_the_function_is_named() -> None:
    bare = only(OUT_OF_BOUNDS.replace(" in /ops/mine/cuda.cu:31", ""))
    assert bare.places == (Place("_ZN4mine10differenceEPKfPfi"),)
    assert "bytes at mine::difference(float const*, float*, int), in the kernel" in shown(bare, ROOT)


def test_a_file_on_a_separate_line_belongs_to_the_previous_line() -> None:
    wrapped = OUT_OF_BOUNDS.replace("+0x70 in", "+0x70\n=========        in")
    assert only(wrapped).places == only(OUT_OF_BOUNDS).places


@pytest.mark.parametrize(("text", "caller"), [(FAILED_CALL, "mine.so"), (OLD, "mine.so"), (BARRIER, "")])
def test_the_shared_object_that_called_cuda_is_named(text: str, caller: str) -> None:
    assert only(text).caller == caller


def test_a_report_has_readable_text_and_an_offset_in_bytes() -> None:
    before = HEAD + "========= a kernel named übung\n"
    (found,) = reports((before + OUT_OF_BOUNDS).encode())
    assert found.offset == len(before.encode())
    assert found.text.splitlines()[:3] == [
        "Invalid __global__ read of size 4 bytes",
        "at mine::difference(float const*, float*, int)+0x70 in /ops/mine/cuda.cu:31",
        "by thread (40,0,0) in block (3,0,0)",
    ]


def test_the_same_fault_in_several_threads_is_reported_once() -> None:
    elsewhere = OUT_OF_BOUNDS.replace("(40,0,0)", "(41,0,0)").replace("c00a00", "c00a04")
    other = OUT_OF_BOUNDS.replace("cuda.cu:31", "cuda.cu:57")
    found = reports((OUT_OF_BOUNDS + elsewhere + other + RACE).encode())
    assert len(found) == 4
    assert [report.places[0].line for report in distinct(found)] == [31, 57, 27]


def test_messages_of_the_tool_about_itself_are_not_reports() -> None:
    lines = (
        "========= COMPUTE-SANITIZER\n"
        "========= Target application terminated before first instrumented API call\n"
        "========= Tracking kernels launched by child processes requires the --target-processes all option.\n"
        "========= Error: couldn't find exit code.\n"
        "========= LEAK SUMMARY: 0 bytes leaked in 0 allocations\n"
        "========= ERROR SUMMARY: 0 errors\n"
        "what a kernel prints at _Z4workPf+0x70\n"
    )
    assert reports(lines.encode()) == []
    assert troubles(lines.encode()) == []


def test_limits_of_the_tool_are_reported() -> None:
    lost = "Internal Sanitizer Error: The Sanitizer encountered an error while launching _Z4workPf"
    overflow = "Warning: Detected overflow of tracked cuda::barrier structures. Results might be incorrect."
    refused = "Error: Device not supported. Please refer to the documentation."
    written = (
        f"========= {lost}\n=========\n========= {lost}\n=========\n========= {overflow}\n========= {refused}\n{RACE}"
    )
    assert troubles(written.encode()) == [lost.replace("_Z4workPf", "work(float*)"), overflow, refused]
    assert len(reports(written.encode())) == 1


@pytest.mark.parametrize("text", [OUT_OF_BOUNDS, MISALIGNED, OLD, FAILED_CALL, RACE_OF_A_WARP, UNINITIALIZED, BARRIER])
def test_a_truncated_report_is_parsed_as_far_as_possible(text: str) -> None:
    for size in range(len(text)):
        assert len(reports(text.encode()[:size])) <= 1
